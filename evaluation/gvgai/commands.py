"""`jaxsim gvgai`."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command

if TYPE_CHECKING:
    from evaluation.gvgai.results import Announcer
    from evaluation.gvgai.rules import Rules
    from evaluation.gvgai.track import Track
    from evaluation.gvgai.trial import TrackLifetime

FINISHED, ENDED_EARLY = 0, 1
"""Exit codes: the agent came to the end of the track, or it did not."""

EXAMPLES = """examples:
  jaxsim gvgai run --agent examples/gvgai/agent.py --learning-seconds 20 --out runs/gvgai
  jaxsim gvgai serve --port 8080 --out runs/gvgai
  jaxsim gvgai connect --agent examples/gvgai/agent.py --port 8080
  jaxsim gvgai track > mine.json

docs/gvgai.md describes the protocol, the fields of an observation and the track file.
"""

RUN_EXAMPLES = """examples:
  jaxsim gvgai run --agent examples/gvgai/agent.py --learning-seconds 20 --out runs/gvgai
  jaxsim gvgai run --agent mine.py --track mine.json --preset gvgai2017 --seed 3

The file defines a class Agent with the methods init, act and result. Training takes 10 minutes
unless the track or --learning-seconds says otherwise. One line a level is printed; DIR then holds
results.jsonl (one object a level, written as it ends), records.parquet and track.json. Exit code 0:
the agent came to the end of the track, even if some levels disqualified it; 1: the track ended
early, as the agent was not ready in time, or its result failed or came too late; 2: wrong input.
"""

SERVE_EXAMPLES = """examples:
  jaxsim gvgai serve --port 8080 --out runs/gvgai
  jaxsim gvgai serve --track mine.json --sessions 10 --port 0

Clients of the framework connect to the port, one after the other; one that comes while another
plays is sent FINISH. With several sessions, results of client K are in DIR/K. Exit code as for run,
of the worst client. Only programs on this machine can connect, unless --host says otherwise;
there is no encryption and no password.
"""


def add_to(commands: Commands) -> None:
    """Add `gvgai` to the subcommands of `jaxsim`."""
    gvgai = add_command(
        commands,
        "gvgai",
        "play the learning track of the General Video Game AI competition",
        EXAMPLES,
    )
    verbs = gvgai.add_subparsers(dest="verb", required=True, metavar="VERB")

    run = add_command(verbs, "run", "play the track with an agent in this process", RUN_EXAMPLES)
    _add_agent(run)
    _add_track(run)
    _add_results(run)
    run.set_defaults(handler=_run)

    serve = add_command(verbs, "serve", "let clients play the track at a socket", SERVE_EXAMPLES)
    _add_address(serve)
    serve.add_argument("--sessions", type=int, default=1, metavar="N", help="clients (1)")
    serve.add_argument(
        "--transport-seconds",
        type=float,
        default=5.0,
        metavar="S",
        help="time for a reply on top of the agent's own limit (5)",
    )
    _add_track(serve)
    _add_results(serve)
    serve.set_defaults(handler=_serve)

    connect = add_command(
        verbs, "connect", "let an agent in this process play at a server", EXAMPLES
    )
    _add_agent(connect)
    _add_address(connect)
    _add_track(connect)
    connect.set_defaults(handler=_connect)

    track = add_command(verbs, "track", "print a track, the default one if none is named", EXAMPLES)
    _add_track(track)
    track.set_defaults(handler=_track)


def _add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent", type=Path, required=True, metavar="FILE", help="Python file with a class Agent"
    )
    parser.add_argument(
        "--form",
        choices=("JSON", "IMAGE", "BOTH"),
        default="JSON",
        help="form of observations (JSON)",
    )


def _add_track(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--track", type=Path, metavar="FILE", help="levels and rules, JSON")
    _add_rules(parser)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="other rules: track, document (every limit as the document prints it) or gvgai2017 "
        "(the published server's)",
    )
    parser.add_argument(
        "--learning-seconds", type=float, metavar="S", help="time for training (600)"
    )
    parser.add_argument(
        "--validation-times", type=int, metavar="N", help="plays of each validation level (1)"
    )
    parser.add_argument(
        "--on-overspent",
        metavar="WHAT",
        help="effect of an overspent action: disqualify or abort_level (disqualify)",
    )

    parser.add_argument(
        "--scope",
        metavar="WHAT",
        help="cost of an init that fails or is late: its level, or as on the published server its "
        "phase (level)",
    )
    parser.add_argument(
        "--timer",
        metavar="WHICH",
        help="measure of the agent's methods: wall or processor time (wall)",
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="(127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, metavar="N", help="0 for any (8080)")


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="root of all randomness (0)"
    )
    parser.add_argument(
        "--lifetime", type=int, default=0, metavar="K", help="number of the (first) lifetime (0)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for results")
    parser.add_argument("--overwrite", action="store_true", help="replace results in DIR")
    parser.add_argument("--quiet", action="store_true", help="print no lines of results")


def _given_track(arguments: argparse.Namespace) -> "Track":
    """The track that the arguments name, with the rules that they change."""
    from dataclasses import replace

    from evaluation.gvgai import track

    base = track.load(arguments.track) if arguments.track else track.default_track()
    return replace(base, rules=_given_rules(arguments, base.rules))


def _given_rules(arguments: argparse.Namespace, rules: "Rules") -> "Rules":
    """Rules with what the arguments change."""
    from evaluation.gvgai.rules import preset

    if arguments.preset:
        rules = preset(arguments.preset)
    options = ("learning_seconds", "validation_times", "on_overspent", "scope", "timer")
    values = {name: getattr(arguments, name) for name in options}
    return rules.changed({name: value for name, value in values.items() if value is not None})


def _run(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation import shims
    from evaluation.clock import SystemClock
    from evaluation.gvgai.agent import load_class
    from evaluation.gvgai.harness import run
    from evaluation.gvgai.trial import check

    shims.put_on_path()
    track, agent = _given_track(arguments), load_class(arguments.agent)
    check(track, arguments.seed, arguments.lifetime)  # before earlier results are replaced
    # An agent may change the folder, and what is written at the end is relative to this one.
    with _results(arguments, track, arguments.out) as announcer, contextlib.chdir("."):
        trial = run(
            track,
            agent,
            SystemClock(),
            announcer,
            seed=arguments.seed,
            lifetime=arguments.lifetime,
            form=arguments.form,
        )
    return _conclude(trial, arguments.out)


def _serve(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_directory
    from evaluation.gvgai.server import TrackServer
    from evaluation.gvgai.trial import check

    track, sessions = _given_track(arguments), arguments.sessions
    if sessions < 1:
        raise ValueError(f"sessions is {sessions}; it must be at least 1")
    lifetimes = range(arguments.lifetime, arguments.lifetime + sessions)
    for lifetime in (lifetimes[0], lifetimes[-1]):
        check(track, arguments.seed, lifetime)
    if arguments.out:
        check_output_directory(arguments.out, arguments.overwrite)
    code = FINISHED
    with TrackServer(
        track,
        host=arguments.host,
        port=arguments.port,
        warn=_complain,
        transport_seconds=arguments.transport_seconds,
        seed=arguments.seed,
        first_lifetime=arguments.lifetime,
    ) as server:
        _say(arguments, "listening at {}:{}".format(*server.address))
        for lifetime in lifetimes:
            out = arguments.out
            if out and sessions > 1:
                out = out / str(lifetime)
            with _results(arguments, track, out) as announcer:
                try:
                    (trial,) = server.serve(1, announcer)
                except KeyboardInterrupt:
                    _write_records(server.trial, out)
                    raise
            code = max(code, _conclude(trial, out))
    return code


def _connect(arguments: argparse.Namespace) -> int:
    from evaluation import shims
    from evaluation.gvgai.agent import load_class
    from evaluation.gvgai.client import connect

    shims.put_on_path()
    # A client measures its agent itself, so it needs the limits of the server's track.
    track, agent = _given_track(arguments), load_class(arguments.agent)
    try:
        finished = connect(
            agent,
            track.rules,
            host=arguments.host,
            port=arguments.port,
            form=arguments.form,
            warn=_complain,
        )
    except ConnectionRefusedError as error:
        raise ValueError(
            f"nothing listens at {arguments.host}, port {arguments.port}; start "
            "jaxsim gvgai serve first"
        ) from error
    return FINISHED if finished else ENDED_EARLY


def _track(arguments: argparse.Namespace) -> int:
    print(_given_track(arguments).dumps(), end="")
    return 0


@contextlib.contextmanager
def _results(
    arguments: argparse.Namespace, track: "Track", out: Path | None
) -> Iterator["Announcer"]:
    """Announcer that prints results, and writes them to a directory if one is named."""
    from evaluation.files import check_output_directory, write_whole
    from evaluation.gvgai.results import RESULTS_FILE, Announcer, ResultFile

    def say(line: str) -> None:
        _say(arguments, line)

    if out is None:
        yield Announcer(say)
        return
    check_output_directory(out, arguments.overwrite)
    (out / "records.parquet").unlink(missing_ok=True)
    write_whole(out / "track.json", track.dumps())
    with ResultFile(out / RESULTS_FILE) as file:
        yield Announcer(say, file.write)


def _conclude(trial: "TrackLifetime", out: Path | None) -> int:
    """Write the records of a trial that is over, and say how it ended."""
    _write_records(trial, out)
    if trial.reason:
        _complain(f"ended early: {trial.reason}")
    return ENDED_EARLY if trial.reason else FINISHED


def _write_records(trial: "TrackLifetime | None", out: Path | None) -> None:
    """Write the records to `out`, if there are any and it is named."""
    if out and trial and len(trial.log):
        trial.log.records().write(out / "records.parquet")


def _say(arguments: argparse.Namespace, line: str) -> None:
    if not arguments.quiet:
        print(line, flush=True)


def _complain(line: str) -> None:
    print(f"jaxsim: {line}", file=sys.stderr, flush=True)
