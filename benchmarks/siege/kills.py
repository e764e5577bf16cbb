"""Runs that are killed at any moment, and have to go on to the very same files."""

import itertools
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.siege import Blow
from benchmarks.siege.runs import LONGEST, Run, completed, contents, differing, runs, start, whole

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_KILLS = 4  # of one run


def kills(seed: int, first: int = 0) -> Iterator[Blow]:
    """Kill runs; one blow a run that has come to its end."""
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place:
        folder = Path(place)
        commands, wanted = runs(folder), {}
        names = list(commands)
        for number in itertools.count(first):
            name = names[number % len(names)]
            if name not in wanted:
                found, ended = whole(commands[name], folder / f"whole-{len(wanted)}")
                wanted[name] = found, ended.seconds
            draw = random.Random(f"{seed} {number}")
            out = folder / f"out-{number}"
            out.mkdir()
            yield _killed(name, commands[name], out, draw, *wanted[name], number)


def _killed(
    name: str,
    run: Run,
    out: Path,
    draw: random.Random,
    wanted: Mapping[str, bytes],
    took: float,
    number: int,
) -> Blow:
    """Kill a run some times, let it come to its end, and compare its files."""
    sent, code = 0, -1
    for kill in range(draw.randint(1, MOST_KILLS)):
        process = start(run, out, again=kill > 0)
        how, wait = draw.choice(SIGNALS), draw.uniform(0.0, 1.1 * took)
        try:
            process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            process.communicate(timeout=LONGEST)
            sent += 1
        code = process.returncode
        if code == 0:
            break
    wrong = differing(contents(out), wanted) if code == 0 else completed(run, out, wanted)
    label = f"kills of `jaxsim {name}`"
    if wrong:
        return Blow(label, sent, "failed", f"try {number}: {wrong}")
    return Blow(label, sent, "the same files in the end")
