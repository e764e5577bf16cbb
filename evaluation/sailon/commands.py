"""`jaxsim sailon`: novelty experiments."""

import argparse
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.arguments import (
    Commands,
    add_command,
    add_metric,
    add_out,
    add_speed,
    parameters_of,
)
from evaluation.checkpoints import commands as checkpoint_commands
from evaluation.checkpoints.stopping import hearing
from evaluation.report import terminal
from evaluation.sailon.serve import commands as serving

if TYPE_CHECKING:
    from evaluation.sailon.analysis import ExperimentAnalysis
    from evaluation.sailon.experiment import Experiment
    from evaluation.sailon.pictures import Pictures
    from evaluation.sailon.results import Results
    from jaxsim.agents import Agent

DIFFERENT = 1
"""Exit code of a replay that differs."""

GENERATE_EXAMPLES = """examples:
  jaxsim sailon generate settings.json --out experiment.json
  jaxsim sailon generate TA1.ini --seed 7 --out experiment.json
  jaxsim sailon generate settings.json --novelties open-world-1 --samples 50 --out open.json

Settings are the original's keys, as an ini file or as one JSON object: novelty, difficulty,
novelty_visibility, hint_level, trials, training_episodes, testing_episodes, pre_novel_episodes,
testing_novelty_p2, normal_timeout_seconds, training_timeout_multiplier, budget, phase. Keys of this
package are seed, starts, labels, messages, indicator, novelty_list, samples, split, sensors. See
docs/sailon.md.
"""

RUN_EXAMPLES = """examples:
  jaxsim sailon run --agent examples/sailon/TA2.py examples/sailon/experiment.json --out runs/ta2
  jaxsim sailon run --agent pd experiment.json --out runs/pd
  jaxsim sailon run --agent their/TA2.py experiment.json --out runs/t \\
    --arguments="--printout --custom-value 3"

EXPERIMENT is an experiment, or settings that one is generated from. A Python file is run unchanged:
in it, `from objects.TA2_logic import TA2Logic` imports this package's class. Any other name is that
of a pure agent, which plays all trials at once. DIR then holds results.parquet, results.csv and
experiment.json. Errors of an agent are in the results, with the reason. If the run of a Python file
is interrupted, the trials that are over are in results.parquet.
"""

ANALYZE_EXAMPLES = """examples:
  jaxsim sailon analyze runs/ta2 --baseline runs/pd --out runs/metrics
  jaxsim sailon analyze agent.csv --baseline baseline.csv --wsu

RECORDS is a results.parquet, a directory that holds one, or a CSV file in the form of the
generator's analysis. With --out, report.json, metrics.csv and trials.csv are written.
"""

EVALUATE_EXAMPLES = """examples:
  jaxsim sailon evaluate --agent pd --trials 30 --out runs/evaluation
  jaxsim sailon evaluate --agent greedy --levels 200,203,207 --difficulties hard --trials 8 \\
    --episodes 20 --out runs/small
  jaxsim sailon evaluate --agent pd+residual --novelties open-world-1 --samples 100 --trials 4 \\
    --out runs/open

DIR then holds report.json, metrics.csv, trials.csv, agent.parquet, baseline.parquet and
experiment.json, and plots if matplotlib is installed (the extra plots). Until then it holds
checkpoints: the same command with --resume continues from the newest.
"""


DOMAIN_EXAMPLES = """examples:
  jaxsim sailon domain > cartpole.json
"""


IDENTIFY_EXAMPLES = """examples:
  jaxsim sailon identify runs/ta2/transcripts/trial-00000/episode-00005.jsonl
  jaxsim sailon identify --out novelty.json runs/ta2/transcripts/trial-00000/episode-0000[5-7].jsonl

All transcripts must be of episodes in one world; three suffice for most novelties. Only feature
vectors and actions are read. "novelty" in FILE is a value of "novelty" in a syllabus or an
experiment, and of --set.
"""


def add_to(commands: Commands) -> None:
    """Add `sailon` to the subcommands of `jaxsim`."""
    sailon = commands.add_parser(
        "sailon",
        help="novelty experiments: generate, run, serve, analyze, evaluate, identify",
        description="Novelty experiments of SAIL-ON, as the WSU novelty generator has them.",
    )
    parts = sailon.add_subparsers(dest="part", required=True, metavar="PART")
    _add_generate(parts)
    _add_run(parts)
    _add_analyze(parts)
    _add_evaluate(parts)
    serving.add_to(parts)
    domain = add_command(
        parts, "domain", "print cartpole.json: actions, sensors and their ranges", DOMAIN_EXAMPLES
    )
    domain.set_defaults(handler=_domain)
    replay = add_command(parts, "replay", "play transcripts again and compare", "")
    replay.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="transcripts, JSON lines"
    )
    replay.set_defaults(handler=_replay)
    part = add_command(
        parts, "identify", "name what changed in the world of transcripts", IDENTIFY_EXAMPLES
    )
    part.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="transcripts of one world, JSON lines"
    )
    part.add_argument("--out", type=Path, metavar="FILE", help="write the estimates as JSON")
    part.set_defaults(handler=_identify)


def _add_generate(parts: Commands) -> None:
    part = add_command(parts, "generate", "draw an experiment from settings", GENERATE_EXAMPLES)
    part.add_argument("settings", type=Path, metavar="SETTINGS", help="an ini file or JSON")
    part.add_argument("--seed", type=int, metavar="N", help="replaces the seed of the settings")
    _add_world(part)
    part.add_argument("--out", type=Path, required=True, metavar="FILE", help="the experiment")
    part.set_defaults(handler=_generate)


def _add_world(part: argparse.ArgumentParser) -> None:
    """Add the options that choose novelties of a list, and sensors."""
    part.add_argument(
        "--novelties",
        metavar="LIST",
        help="novelties in place of levels: open-world-1, or a file .jsonl; see docs/open-world.md",
    )
    part.add_argument("--samples", type=int, metavar="N", help="the first N of the list (all)")
    part.add_argument(
        "--split", metavar="NAME", help="known or held-out: only these novelties (both)"
    )
    part.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="sensors of every episode, such as sensors/noise_position=0.01; may be repeated",
    )


def _world(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings that these options give."""
    pairs = tuple(sorted(parameters_of(arguments.set).items()))
    if arguments.split not in (None, "known", "held-out"):
        raise ValueError(f"--split is {arguments.split!r}; it must be known or held-out")
    split = arguments.split and arguments.split.replace("-", " ")
    options = {"novelty_list": arguments.novelties, "samples": arguments.samples, "split": split}
    return {name: v for name, v in {**options, "sensors": pairs or None}.items() if v is not None}


def _add_run(parts: Commands) -> None:
    part = add_command(parts, "run", "let an agent play an experiment", RUN_EXAMPLES)
    part.add_argument("experiment", type=Path, metavar="EXPERIMENT", help="experiment to play")
    part.add_argument("--agent", required=True, metavar="FILE|NAME", help="a Python file or a name")
    add_out(part)
    part.add_argument(
        "--transcripts", action="store_true", help="write every message to DIR/transcripts"
    )
    serving.add_image(part)
    add_speed(part, "trials")
    part.add_argument(
        "--arguments", default="", metavar="TEXT", help="command line of the agent's file"
    )
    part.set_defaults(handler=_run)


def _add_analyze(parts: Commands) -> None:
    part = add_command(parts, "analyze", "compute the metrics of results", ANALYZE_EXAMPLES)
    part.add_argument("records", type=Path, metavar="RECORDS", help="results of the agent")
    part.add_argument("--baseline", type=Path, metavar="RECORDS", help="results of the baseline")
    part.add_argument("--out", type=Path, metavar="DIR", help="write JSON and CSV there")
    part.add_argument("--overwrite", action="store_true", help="replace files in DIR")
    part.add_argument(
        "--window",
        type=int,
        metavar="M",
        help="episodes at either end of the novel part (a tenth of a trial)",
    )
    part.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the bootstrap (0)")
    part.add_argument(
        "--wsu", action="store_true", help="treat zeros as the generator's own analysis does"
    )
    add_metric(part)
    part.add_argument("--quiet", action="store_true", help="print no tables")
    part.set_defaults(handler=_analyze)


def _add_evaluate(parts: Commands) -> None:
    part = add_command(parts, "evaluate", "evaluate a pure agent on all levels", EVALUATE_EXAMPLES)
    part.add_argument(
        "--agent", required=True, metavar="NAME", help="pure agent: its name or FILE.py"
    )
    part.add_argument("--baseline", default="pd", metavar="NAME", help="name of the baseline (pd)")
    add_out(part)
    checkpoint_commands.add_options(part, blocks=False)
    for option, text in (
        ("levels", "numbers with commas between them (all that hints describe)"),
        ("difficulties", "easy, medium, hard, with commas between them (all)"),
        ("visibilities", "0 and 1, with a comma between them (both)"),
    ):
        part.add_argument(f"--{option}", metavar="LIST", help=text)
    _add_world(part)
    for option, text in (
        ("trials", "trials of each cell (30)"),
        ("episodes", "episodes of a trial (45)"),
        ("button", "episodes before the first novel one (20, or half of a short trial)"),
        ("training", "episodes before all trials (0)"),
        ("hint-level", "how much a hint tells where visibility is 1 (-1)"),
        ("seed", "root of all randomness (0)"),
    ):
        part.add_argument(f"--{option}", type=int, metavar="N", help=text)
    part.add_argument(
        "--starts", metavar="NAME", help="counter, or wsu for the original's (counter)"
    )
    add_speed(part, "trials")
    part.set_defaults(handler=_evaluate)


def _generate(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from dataclasses import replace

    from evaluation.files import check_output_file
    from evaluation.sailon import experiment

    check_output_file("--out", arguments.out)
    settings = experiment.settings_from(arguments.settings)
    if arguments.seed is not None:
        settings = replace(settings, seed=arguments.seed)
    settings = replace(settings, **_world(arguments))
    plan = experiment.generate(settings, arguments.out.stem)
    plan.write(arguments.out)
    print(
        f"{len(plan.trials)} trials of {len(plan.cells)} cells, "
        f"{settings.testing_episodes} episodes each; experiment {plan.digest()}"
    )
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from evaluation import files, processor, scanner
    from evaluation.sailon import experiment

    plan = experiment.load(arguments.experiment)
    files.check_output_directory(arguments.out, arguments.overwrite)
    options = scanner.MachineOptions(chunk=arguments.chunk, threads=arguments.threads)
    options.spread()
    pictures = serving.pictures(arguments.image) if arguments.agent.endswith(".py") else None
    total = len(plan.training) + sum(len(trial.seeds) for trial in plan.trials)
    console = None if arguments.quiet else terminal.console()
    bar = terminal.progress_bar(console, f"{plan.name}, {Path(arguments.agent).stem}", total)
    if arguments.agent.endswith(".py"):
        with bar as move:
            results = _host(arguments, plan, pictures, move)
    else:
        if arguments.arguments:
            raise ValueError("a pure agent has no command line; leave --arguments out")
        if arguments.image is not None:
            raise ValueError("a pure agent gets no feature vectors; leave --image out")
        if arguments.transcripts:
            raise ValueError("a pure agent writes no transcripts; leave --transcripts out")
        from evaluation.sailon.batch import play_batch

        agent = _pure(arguments.agent)
        processor.configure(options)
        with bar as move:
            results = play_batch(plan, agent, options=options, progress=move)
    _write(arguments.out, plan, results)
    if not arguments.transcripts:  # those of earlier results, which are replaced
        shutil.rmtree(arguments.out / "transcripts", ignore_errors=True)
    problems = [text for text in results.rows["problem"] if text]
    reasons = list(results.metadata.get("problems", [])) + problems
    if reasons and not arguments.quiet:
        print(f"{len(reasons)} problems, the first: {reasons[0]}")
    if console is not None:
        table = arguments.out / "results.parquet"
        line = f"results in {arguments.out}; for metrics: jaxsim sailon analyze {table}"
        console.print(line, soft_wrap=True)
    return 0


def _pure(name: str) -> "Agent":
    """The pure agent of a name."""
    from evaluation import agents

    try:
        return agents.get(name)
    except ValueError as error:
        file = agents.file_of(name)
        if file is None:
            raise
        hint = f"if it is no pure agent, but one in the generator's form, name it by {file}"
        raise ValueError(f"{error}; {hint}") from error


def _write(out: Path, plan: "Experiment", results: "Results") -> None:
    """Write the files of a run, which appear together."""
    from evaluation import files

    with files.results(out, "results.parquet") as folder:
        plan.write(folder / "experiment.json")
        results.write(folder / "results.csv")
        results.write(folder / "results.parquet")


def _host(
    arguments: argparse.Namespace,
    plan: "Experiment",
    pictures: "Pictures | None",
    move: Callable[[int, int], None] | None,
) -> "Results":
    from evaluation.sailon import host, interactive

    try:
        words = shlex.split(arguments.arguments)
    except ValueError as error:
        raise ValueError(f"--arguments is {arguments.arguments!r}: {error}") from error
    out = arguments.out.resolve()  # agents may go to another folder
    over: list[Results] = []  # after each trial; all are views of one table
    options = interactive.PlayOptions(
        transcripts=out / "transcripts" if arguments.transcripts else None,
        pictures=pictures,
        progress=move,
        trial_over=over.append,
    )
    try:
        return host.run(Path(arguments.agent), plan, options, words)
    except KeyboardInterrupt:
        if over:
            _write(out, plan, over[-1].broken_off("the run was interrupted"))
            line = f"{len(over)} of {len(plan.trials)} trials are in {arguments.out}"
            print(f"jaxsim: {line}", file=sys.stderr)
        raise


def _analyze(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_directory
    from evaluation.report.custom import load_rows
    from evaluation.sailon.analysis import analyse
    from evaluation.sailon.reading import load_results

    def read(path: Path) -> "Results":
        file = path / "results.parquet" if path.is_dir() else path
        if path.is_dir() and not file.exists() and (tables := sorted(path.glob("*.parquet"))):
            listed = " or ".join(map(str, tables))
            raise ValueError(f"{file} does not exist; name a file of the directory: {listed}")
        return load_results(file)

    agent = read(arguments.records)
    baseline = None if arguments.baseline is None else read(arguments.baseline)
    analysis = analyse(
        agent,
        baseline,
        window=arguments.window,
        seed=arguments.seed,
        wsu=arguments.wsu,
        custom=load_rows(arguments.metric),
    )
    if arguments.out is not None:
        check_output_directory(arguments.out, arguments.overwrite)
        analysis.write(arguments.out)
    if not arguments.quiet:
        _print(analysis)
    return 0


def _print(analysis: "ExperimentAnalysis") -> None:
    from evaluation.sailon.analysis import tables

    console = terminal.console()
    for table in tables(analysis, console.width):
        console.print(table)


def _evaluate(arguments: argparse.Namespace) -> int:
    from evaluation import processor, scanner
    from evaluation.sailon import evaluate

    options = {
        "levels": _numbers("levels", arguments.levels),
        "visibilities": _numbers("visibilities", arguments.visibilities),
        "difficulties": None
        if arguments.difficulties is None
        else tuple(part.strip() for part in arguments.difficulties.split(",")),
        "trials": arguments.trials,
        "episodes": arguments.episodes,
        "button": arguments.button,
        "training": arguments.training,
        "hint_level": arguments.hint_level,
        "seed": arguments.seed,
        "starts": arguments.starts,
    }
    job = evaluate.EvaluationPlan(
        arguments.agent,
        arguments.out,
        baseline=arguments.baseline,
        overwrite=arguments.overwrite,
        resume=arguments.resume,
        pace=checkpoint_commands.pace(arguments),
        options=scanner.MachineOptions(chunk=arguments.chunk, threads=arguments.threads),
        **{name: value for name, value in options.items() if value is not None},
        **_world(arguments),
    )
    experiment = job.checked()
    processor.configure(job.options)
    console = None if arguments.quiet else terminal.console()
    started, tell = time.perf_counter(), checkpoint_commands.tell
    names = job.playing()
    total = len(names) * len(experiment.trials) * job.episodes
    with (
        hearing(tell) as stop,
        terminal.progress_bar(console, " and ".join(names), total) as move,
    ):
        outcome = evaluate.run(job, experiment, move, stop, tell)
    if console is None:
        return 0
    _print(outcome.analysis)
    seconds = time.perf_counter() - started
    console.print(
        f"{outcome.steps:,} environment steps in {seconds:.1f} s, compiling included; results in "
        f"{job.out}"
    )
    return 0


def _numbers(name: str, text: str | None) -> tuple[int, ...] | None:
    """Whole numbers with commas between them."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(
            f"{name} is {text!r}; it must be whole numbers with commas between them"
        ) from error


def _domain(arguments: argparse.Namespace) -> int:
    from importlib import resources

    shipped = resources.files("jaxsim.worlds.cartpole3d.original") / "cartpole.json"
    print(shipped.read_text(encoding="utf-8"), end="")
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    from evaluation.sailon.transcript import replay

    same = True
    for path in arguments.files:
        result = replay(path)
        if result.differences:
            same = False
            print(f"{path}:{result.differences[0]} ({len(result.differences)} lines differ)")
        else:
            print(f"{path}: {result.steps} steps, the same")
    return 0 if same else DIFFERENT


def _identify(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_file, write_json
    from evaluation.sailon import identify

    if arguments.out is not None:
        check_output_file("--out", arguments.out)
    with terminal.console().status("compiling, then fitting every family"):
        result = identify.of_transcripts(arguments.files)
    if arguments.out:
        write_json(arguments.out, identify.to_json(result))
    identify.show(result)
    return 0
