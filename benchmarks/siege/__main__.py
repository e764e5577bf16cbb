"""The command of `make siege`."""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.output import add_out, put_json
from benchmarks.siege import Blow
from benchmarks.siege.calls import calls
from benchmarks.siege.disks import full, read_only
from benchmarks.siege.kills import kills
from benchmarks.siege.servers import servers
from benchmarks.siege.state import BlowLog
from benchmarks.siege.tampered import tampered
from evaluation.json_types import JsonObject

ATTACKS: dict[str, Callable[[int, int], Iterator[Blow]]] = {
    "tampered": tampered,
    "servers": servers,
    "kills": kills,
    "calls": calls,
    "full": full,
    "read-only": read_only,
}
GOALS = {"kills": "kills", "messages": "servers", "files": "tampered"}
"""Attacks for which a least count can be given, by what is counted."""


def attack_for(
    attack: Callable[[int, int], Iterator[Blow]],
    seed: int,
    seconds: float,
    first: int = 0,
    least: int = 0,
) -> Iterator[Blow]:
    """Attack from try `first` on, at least once, for `seconds`, and until `least` is counted."""
    end, count = time.monotonic() + seconds, 0
    attempts = attack(seed, first)
    try:
        for blow in attempts:
            yield blow
            count += blow.count
            if blow.failure:
                print(f"FAILED {blow.what}: {blow.failure}", file=sys.stderr, flush=True)
            if time.monotonic() >= end and count >= least:
                break
    except ValueError as error:  # there is nothing to attack
        yield Blow("what is attacked", 1, "failed", str(error))
    finally:
        attempts.close()  # type: ignore[attr-defined]


def summary(blows: list[Blow], seed: int) -> JsonObject:
    """How often each kind of try was made, with its outcomes, the most frequent first."""
    times: dict[str, int] = defaultdict(int)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for blow in blows:
        times[blow.what] += blow.count
        outcomes[blow.what][blow.outcome] += 1
    rows = [
        {"what": what, "times": times[what], "outcomes": dict(outcomes[what].most_common())}
        for what in sorted(times)
    ]
    failures = [f"{blow.what}: {blow.failure}" for blow in blows if blow.failure]
    return {"seed": seed, "rows": rows, "failures": failures}


def main(argv: list[str] | None = None) -> int:
    """Attack, write the results, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make siege", description="Attack the package.")
    parser.add_argument(
        "--minutes", type=float, default=2.0, metavar="M", help="minutes for each attack (2)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all attacks (0)")
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        metavar="N",
        help="number of the first try, to repeat it (0)",
    )
    parser.add_argument(
        "--attack",
        action="append",
        choices=list(ATTACKS),
        help="make this attack only; may be repeated",
    )
    for counted, name in GOALS.items():
        parser.add_argument(
            f"--{counted}",
            type=int,
            default=0,
            metavar="N",
            help=f"least number of {counted} in the attack {name!r} (0)",
        )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="file of all tries, from which an interrupted siege continues",
    )
    add_out(parser)
    arguments = parser.parse_args(argv)
    try:
        state = BlowLog(arguments.state, arguments.seed)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    goals = {name: getattr(arguments, counted) for counted, name in GOALS.items()}
    for name in arguments.attack or ATTACKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        earlier = state.of(name)
        first = arguments.first + len(earlier)
        seconds = 60 * arguments.minutes - state.seconds(name)
        remaining = goals.get(name, 0) - sum(blow.count for blow in earlier)
        if earlier and seconds <= 0 and remaining <= 0:
            continue
        before = time.monotonic()
        for blow in attack_for(ATTACKS[name], arguments.seed, seconds, first, remaining):
            now = time.monotonic()
            state.add(name, blow, now - before)
            before = now
    blows = state.blows()
    put_json(summary(blows, arguments.seed), arguments.out)
    return int(any(blow.failure for blow in blows))


if __name__ == "__main__":
    sys.exit(main())
