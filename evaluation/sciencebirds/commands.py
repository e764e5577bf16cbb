"""`jaxsim sciencebirds generate`, `serve` and `demo`."""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.arguments import Commands, add_command
from evaluation.sciencebirds import demo_agent, legacy

if TYPE_CHECKING:
    from evaluation.sciencebirds.document import Evaluation
    from evaluation.sciencebirds.generate import GenerateOptions

EXAMPLES = """examples:
  jaxsim sciencebirds generate examples/sciencebirds/sequences.xml --seed 1 -o config.xml
  jaxsim sciencebirds serve --config config.xml --results runs/sciencebirds
  jaxsim sciencebirds demo --backups runs/demo_agent
"""

GENERATE_EXAMPLES = """examples:
  jaxsim sciencebirds generate configMeta.xml --seed 1 -o config.xml
  jaxsim sciencebirds generate configMeta.xml --legacy per-level-time,each-test-once -o config.xml

A file that was generated is replaced, any other only with --overwrite. The same document, seed and
options give the same file, byte by byte.
"""

SERVE_EXAMPLES = """examples:
  jaxsim sciencebirds serve --config config.xml
  jaxsim sciencebirds serve --config-meta configMeta.xml --seed 1 --trial 0-4
  jaxsim sciencebirds serve --config config.xml --interaction episode --legacy later

Without --config, config.xml is generated beside configMeta.xml, again whenever that, the seed or an
option of `generate` has changed. With --config, options of `generate` are refused.
The server ends with exit code 0 when the evaluation has ended and its client is gone. Results are
files in a directory of DIR named after agent, port and time; every level that is over is on disk.
When a client has left, the next one continues the evaluation.
"""

DEMO_EXAMPLES = """examples:
  jaxsim sciencebirds demo
  jaxsim sciencebirds demo --port 2005 --backups runs/demo_agent

The agent prints its announcements and levels, and exits with 0 on state 13.
"""


def add_to(commands: Commands) -> None:
    """Add `sciencebirds` to the subcommands of `jaxsim`."""
    parser = commands.add_parser(
        "sciencebirds",
        help="trials with novelty behind the protocol of the Science Birds competition",
        description="Trials with novelty behind the protocol of the Science Birds competition.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    _add_generate(parts)
    _add_serve(parts)
    demo = add_command(parts, "demo", "play with the demo agent", DEMO_EXAMPLES)
    demo_agent.add_options(demo)
    demo.set_defaults(handler=demo_agent.play)


def _add_generate(parts: Commands) -> None:
    generate = add_command(
        parts, "generate", "draw trials from a configMeta.xml", GENERATE_EXAMPLES
    )
    generate.add_argument("meta", type=Path, metavar="configMeta.xml", help="trials to draw")
    generate.add_argument(
        "-o", "--out", type=Path, required=True, metavar="config.xml", help="file to write"
    )
    generate.add_argument("--overwrite", action="store_true", help="replace any existing file")
    _add_generation(generate)
    generate.set_defaults(handler=_generate)


def _add_generation(parser: argparse.ArgumentParser) -> None:
    """Options of both commands that draw trials."""
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="root of all randomness (0)"
    )
    parser.add_argument(
        "--training-time",
        default="overall",
        metavar="WHAT",
        help="meaning of a time limit of training: overall or per_level (overall)",
    )
    parser.add_argument(
        "--pool", type=int, metavar="N", help="levels of each novelty level and type (10000)"
    )
    parser.add_argument(
        "--legacy",
        nargs="?",
        const=legacy.LATER,
        metavar="NAMES",
        help="do as the original does: later (if no name is given), older, or names of differences "
        "with commas between them, as the page on the protocol lists them",
    )


def _add_serve(parts: Commands) -> None:
    serve = add_command(parts, "serve", "run trials for an agent behind a TCP port", SERVE_EXAMPLES)
    trials = serve.add_mutually_exclusive_group()
    trials.add_argument("--config", type=Path, metavar="FILE", help="trials to run")
    trials.add_argument(
        "--config-meta",
        type=Path,
        metavar="FILE",
        help="without --config: trials to draw (configMeta.xml, here or in ./StreamingAssets); a "
        "bare name is also looked up in ./ScienceBirds/configMetaSamples",
    )
    _add_generation(serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, default=2004, metavar="N", help="TCP port (2004)")
    serve.add_argument(
        "--results",
        type=Path,
        default=Path("runs/sciencebirds"),
        metavar="DIR",
        help="folder in which a directory of results is made (runs/sciencebirds)",
    )
    serve.add_argument(
        "--agent-name", default="agent", metavar="NAME", help="name in the files of results (agent)"
    )
    serve.add_argument(
        "--trial",
        metavar="K|A-B",
        help="run these trials only, counted from 0 in the document or in --trial-list; numbers "
        "past the last trial mean the last",
    )
    serve.add_argument(
        "--trial-list", type=Path, metavar="FILE", help="numbers of these trials, one a line"
    )
    group = serve.add_mutually_exclusive_group()
    group.add_argument(
        "--informed-only", action="store_true", help="only trials that tell of novelty"
    )
    group.add_argument(
        "--uninformed-only", action="store_true", help="only trials that do not tell of it"
    )
    serve.add_argument(
        "--interaction",
        default="step",
        metavar="WHAT",
        help="what counts as an interaction: step (a shot) or episode (a level played) (step)",
    )
    serve.add_argument(
        "--steps-per-shot", type=int, default=1, metavar="N", help="steps that a shot lasts (1)"
    )
    serve.add_argument("--tell-levels", action="store_true", help="tell how many levels a set has")
    serve.add_argument(
        "--dialect",
        default="current",
        metavar="NAME",
        help="requests: current, or early for those of the original up to 0.3.6 (current)",
    )
    serve.add_argument(
        "--idle-limit",
        type=float,
        default=300.0,
        metavar="S",
        help="time that a client may take between requests, and for a reply (300)",
    )
    serve.add_argument("--quiet", action="store_true", help="print errors only")
    serve.set_defaults(handler=_serve)


def _options(arguments: argparse.Namespace, names: tuple[str, ...]) -> "GenerateOptions":
    from evaluation.sciencebirds import generate

    pool = generate.POOL if arguments.pool is None else arguments.pool
    options = generate.GenerateOptions(training_time=arguments.training_time, pool=pool)
    return legacy.generation(names, options)


def _generate(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_file, write_whole
    from evaluation.sciencebirds import document, generate

    check_output_file("--out", arguments.out)
    legacy.check_effect(arguments.legacy, legacy.SCHEDULING, "generate")
    options = _options(arguments, legacy.names_of(arguments.legacy))
    meta = _meta(arguments.meta)
    if arguments.overwrite:
        text = generate.config_text(meta, arguments.seed, options)
        write_whole(arguments.out, text)
    else:
        generate.refresh(meta, arguments.out, arguments.seed, options)
    print(f"{arguments.out}: {_summary(document.load(arguments.out))}")
    return 0


def _summary(evaluation: "Evaluation") -> str:
    trials = evaluation.trials
    training = sum(len(t.training.levels) for t in trials if t.training is not None)
    tests = [each for trial in trials for each in trial.tests]
    levels = sum(len(each.levels) for each in tests)
    return (
        f"{len(trials)} trials, {training} training levels, {len(tests)} test sets with {levels} "
        "levels"
    )


def _serve(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.clock import SystemClock
    from evaluation.sciencebirds import codec, document_order, harness, server
    from evaluation.sciencebirds.game import CartPoleGame
    from evaluation.sciencebirds.recording import LevelRecorder, check_memory
    from evaluation.sciencebirds.results import ResultWriter
    from evaluation.session import Log

    names = legacy.names_of(arguments.legacy)
    for name, allowed in (("interaction", ("step", "episode")), ("dialect", codec.DIALECTS)):
        if getattr(arguments, name) not in allowed:
            value = getattr(arguments, name)
            raise ValueError(f"{name} is {value!r}; it must be {' or '.join(allowed)}")
    if not arguments.idle_limit > 0:
        raise ValueError(f"idle limit is {arguments.idle_limit}; it must be above 0 s")
    whole, message = _evaluation(arguments, names)
    evaluation = _selected(arguments, whole)
    check_memory(evaluation)
    game = CartPoleGame(
        document_order.schedule(evaluation),
        seed=arguments.seed,
        steps_per_shot=arguments.steps_per_shot,
    )
    listener = server.listen(arguments.host, arguments.port)
    port = listener.getsockname()[1]
    with listener:
        results = ResultWriter.below(arguments.results, arguments.agent_name, port, datetime.now())
        log = Log("sciencebirds", metadata={"agent": arguments.agent_name, "seed": arguments.seed})
        recorder = LevelRecorder(game, log)
        run = harness.Harness(
            evaluation,
            game,
            clock=SystemClock(),
            results=results,
            options=harness.HarnessOptions(
                arguments.interaction == "episode", arguments.tell_levels, legacy.quirks(names)
            ),
            observer=recorder,
        )
        game.warm()
        serving = server.EvaluationServer(
            run,
            listener,
            clock=SystemClock(),
            idle_limit=arguments.idle_limit,
            table=codec.DIALECTS[arguments.dialect],
            note=_say if not arguments.quiet else _say_nothing,
        )
        if not arguments.quiet:
            if message:
                _say(message)
            print(f"listening on {arguments.host}, port {port}; {_summary(evaluation)}", flush=True)
        try:
            serving.serve()
        finally:
            recorder.finish()
            if len(log):
                log.records().write(results.folder / "records.parquet")
    if not arguments.quiet:
        print(f"the evaluation has ended; results in {results.folder}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say_nothing(text: str) -> None:
    pass


META: Final = Path("configMeta.xml")
PLACES: Final = (Path(), Path("StreamingAssets"), Path("ScienceBirds", "configMetaSamples"))
"""Folders that are searched for documents: this one, and those of the original."""


def _meta(option: Path | None) -> Path:
    """Find a configMeta.xml: by its path, or by its name in one of `PLACES`.

    Raises:
      ValueError: there is none.
    """
    name = option or META
    bare = len(name.parts) == 1 and not name.is_absolute()
    places = [place / name for place in PLACES] if bare else [name]
    for path in places:
        if path.is_file():
            return path
    candidates = " or ".join(map(str, places))
    raise ValueError(f"there is no {candidates}; name trials with --config, or --config-meta")


def _evaluation(arguments: argparse.Namespace, names: tuple[str, ...]) -> tuple["Evaluation", str]:
    """Read the trials; generate them first if no config.xml is named.

    Returns:
      (trials, message on the generated file, "" for none).
    """
    from evaluation.sciencebirds import document, generate

    if arguments.config is not None:
        _check_drawn(arguments)
        return document.load(arguments.config), ""
    meta = _meta(arguments.config_meta)
    config = meta.with_name("config.xml")
    verb = "replaced" if config.exists() else "wrote"
    written = generate.refresh(meta, config, arguments.seed, _options(arguments, names))
    message = f"{verb} {config}: drawn from {meta} with seed {arguments.seed}" if written else ""
    return document.load(config), message


def _check_drawn(arguments: argparse.Namespace) -> None:
    """Refuse options of the generator for trials that are drawn already."""
    from evaluation.sciencebirds.generate import GenerateOptions

    command = "the trials of --config, which are drawn already"
    legacy.check_effect(arguments.legacy, legacy.GENERATION, command)
    for option, value, default in (
        ("--pool", arguments.pool, None),
        ("--training-time", arguments.training_time, GenerateOptions().training_time),
    ):
        if value != default:
            raise ValueError(f"{option} {value} has no effect on {command}; leave it out")


def _selected(arguments: argparse.Namespace, evaluation: "Evaluation") -> "Evaluation":
    from evaluation.sciencebirds import selection

    informed = True if arguments.informed_only else False if arguments.uninformed_only else None
    return selection.select(
        evaluation,
        within=None if arguments.trial is None else selection.trial_range(arguments.trial),
        places=None if arguments.trial_list is None else selection.trial_list(arguments.trial_list),
        informed=informed,
    )
