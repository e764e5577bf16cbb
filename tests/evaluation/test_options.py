"""An option of a command reaches what the command calls, under its own name and no other.

Each command is given all its options at once, and then all but one. What it would call is replaced
and writes down its arguments, so that nothing is played.
"""

import argparse
import functools
import importlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

from evaluation import cli, files
from evaluation.gvgai.track import default_track
from evaluation.sailon.settings import ExperimentSettings
from tests.evaluation.reached import Call, arguments, reached

parser = functools.cache(cli.build_parser)  # it is large


class Command(NamedTuple):
    """A command line, and what is replaced.

    Attributes:
      words: what is always given.
      calls: dotted names of functions and classes; where the last is called, the command ends.
      options: each option with its value, "" for a flag.
      names: of the arguments that an option decides, one for each call that takes it, where it is
        not its own name once.
    """

    words: str
    calls: tuple[str, ...]
    options: dict[str, str]
    names: Mapping[str, str] = MappingProxyType({})


PLAN, VERSION = "evaluation.sweep.plans.load", "evaluation.sweep.playing.check_version"
LOAD_ROWS = "evaluation.report.custom.load_rows"
SETTINGS = "evaluation.sailon.experiment.settings_from"
TRACK = "evaluation.gvgai.track.load"
TABLES = "evaluation.report.plot_tables.read_tables"
META = "evaluation.sciencebirds.commands._meta"
FILM = (
    "evaluation.view.of_level",
    "jaxsim.render.viewer.page",
    "evaluation.view.commands.write_whole",
    "evaluation.view.videos.check",
    "evaluation.view.videos.write",
)
PLACE = "evaluation.files.check_output_directory"
CONFIGURE = "evaluation.processor.configure"
SAVED = {
    "agent": "ppo",
    "lifetimes": "12",
    "seed": "5",
    "lifetime-idx": "3",
    "width": "2",
    "overwrite": "",
    "log-lifetime": "4",
    "threads": "2",
    "chunk": "64",
    "checkpoint-every": "90s",
    "checkpoint-blocks": "7",
    "resume": "",
    "metric": "m.py",
}
SPREAD_NAMES = {"threads": "threads threads", "chunk": "chunk chunk"}  # how it compiles as well
SAVED_NAMES = SPREAD_NAMES | {
    "lifetime-idx": "first_lifetime",
    "checkpoint-every": "seconds",
    "checkpoint-blocks": "blocks",
    "metric": "texts",
}
RULES = {
    "preset": "document",
    "learning-seconds": "7",
    "validation-times": "3",
    "on-overspent": "abort_level",
    "scope": "phase",
    "timer": "processor",
}
TRACK_NAMES = {
    "preset": "act_hard_seconds",  # the one number of it that no other option sets
    "track": "path",
}
DRAWN = {"seed": "5", "pool": "7", "training-time": "per_level", "legacy": "each_test_once"}
DRAWN_NAMES = {"legacy": "test_sets"}
JOB = {"jobs": "3", "gpus": "1", "cpus": "5", "memory": "1.5", "time": "30min"}

COMMANDS = {
    "run": Command(
        "run s.json --out x",
        (LOAD_ROWS, CONFIGURE, "evaluation.l2m.run.SyllabusRun.checked_schedule"),
        SAVED
        | {"log-format": "learnkit", "l2data": "there", "keep-memory": ""}
        | {"measure": "reward", "window": "5"},
        SAVED_NAMES
        | {"log-lifetime": "log_lifetimes lifetimes"}
        | {"l2data": "logging folder lifetimes log_format"},
    ),
    "run with logs": Command(
        "run s.json --out x --l2data there",
        (LOAD_ROWS, CONFIGURE, "evaluation.l2m.run.SyllabusRun.checked_schedule"),
        {"log-format": "l2logger"},
        {},  # of the logs there: learnkit is usual there, and l2logger elsewhere
    ),
    "run of a shard": Command(
        "run s.json --out x --lifetimes 12",
        (CONFIGURE, "evaluation.l2m.run.SyllabusRun.checked_schedule"),
        {"shard": "1/3"},
        {"shard": "lifetimes worker"},
    ),
    "run with a summary": Command(
        "run s.json --out x",
        (
            CONFIGURE,
            "evaluation.l2m.run.SyllabusRun.checked_schedule",
            "evaluation.cli._play",
            "evaluation.report.console.print_report",
        ),
        {"statistics": ""},
    ),
    "train": Command(
        "train 203 --out x --l2data there",
        (LOAD_ROWS, CONFIGURE, "evaluation.train.run.TrainingRun.check"),
        SAVED
        | {
            "agent": "random",
            "difficulty": "hard",
            "set": "pole/length=2",
            "eval-every": "8",
            "eval-episodes": "6",
        }
        | {"episodes": "48", "minutes": "9"},
        SAVED_NAMES
        | {"log-lifetime": "lifetimes"}
        | {"difficulty": "parameters"}
        | {"set": "parameters", "eval-every": "every", "eval-episodes": "evaluation"},
    ),
    "evaluate": Command(
        "evaluate pd --quiet --json j.json",
        (CONFIGURE, "evaluation.evaluate.job.AgentComparison.check"),
        {"task": "CartPole2D", "level": "50,51", "difficulty": "hard", "set": "pole/length=2"}
        | {"episodes": "9", "seed": "5"},
        {"level": "levels", "difficulty": "difficulties", "set": "pole/length"},
    ),
    "bench": Command(
        "bench --json j.json",
        ("evaluation.bench.commands.run",),
        {"workload": "200", "peer": "pybullet", "flags": "default", "agent": "random"}
        | {"episodes": "128", "rounds": "2", "seed": "5", "threads": "2", "chunk": "64"}
        | {"seconds": "1", "plot": "p.png"},
        {"workload": "workloads", "peer": "peers", "plot": "curve"},
    ),
    "classify": Command(
        "classify s.json --out x --quiet",
        (
            "evaluation.l2m.classification.folders.register",
            "evaluation.l2m.classification.run.ClassificationRun.checked_syllabus",
        ),
        {"learner": "softmax", "lifetimes": "5", "seed": "5", "overwrite": "", "window": "5"}
        | {"log-lifetime": "3", "data": "there"},
        {"log-lifetime": "log_lifetimes", "data": "folder"},
    ),
    "score": Command(
        "score a",
        (
            LOAD_ROWS,
            "evaluation.records.read_run",
            "evaluation.report.capabilities.lifetime_scores",
            "evaluation.report.capabilities.capability_scores",
            "evaluation.report.transfer.between_tasks",
        ),
        {"measure": "length", "window": "5", "seed": "5", "metric": "m.py"},
        {"measure": "measure measure unit", "metric": "texts"},
    ),
    "l2m aggregate": Command(
        "l2m aggregate a",
        ("evaluation.logs.home.find_log", "evaluation.logs.aggregate.aggregate"),
        {"format": "csv", "output": "there", "cut-off": "keep"},
        {"format": "file_format"},
    ),
    "l2m export": Command(
        "l2m export a",
        ("evaluation.records.read_run", "evaluation.logs.export.write_lifetimes"),
        {"lifetimes": "3,8-11", "format": "learnkit", "out": "there"},
        {"format": "log_format", "out": "base"},
    ),
    "l2m ste add": Command(
        "l2m ste add a",
        (
            "evaluation.l2m.syllabus.load",
            "evaluation.logs.home.find_log",
            "evaluation.l2m.ste_sources.from_directory",
        ),
        {"for": "s.json", "lifetimes": "3"},
        {"for": "path syllabus"},
    ),
    "l2metrics": Command(
        "l2metrics --log-dir a",
        (
            "evaluation.l2m.l2metrics.job.read_data_range",
            "evaluation.l2m.l2metrics.job.load_rows",
            "evaluation.l2m.l2metrics.job.run",
        ),
        {"data-range-file": "r.json", "metric": "m.py", "perf-measure": "length"}
        | {"variant-mode": "agnostic", "ste-averaging-method": "time"}
        | {"aggregation-method": "median", "maintenance-method": "both"}
        | {"transfer-method": "contrast", "normalization-method": "run"}
        | {"smoothing-method": "hamming", "smooth-eval-data": "", "window-length": "7"}
        | {"clamp-outliers": "", "noise-seed": "3", "compat": "l2metrics-3.1"},
        {
            "data-range-file": "path data_range",
            "metric": "texts",
            "smooth-eval-data": "do_smooth_eval_data",
        },
    ),
    "sailon run of a file": Command(
        "sailon run e.json --agent a.py --out x",
        ("evaluation.sailon.experiment.load", PLACE, "evaluation.sailon.host.run"),
        {"overwrite": "", "transcripts": "", "image": "64", "arguments": "--seed 3"},
        {"image": "pictures pixels"},
    ),
    "sailon run": Command(
        "sailon run e.json --agent pd --out x",
        (
            "evaluation.sailon.experiment.load",
            PLACE,
            CONFIGURE,
            "evaluation.sailon.batch.play_batch",
        ),
        {"overwrite": "", "threads": "2", "chunk": "64"},
        SPREAD_NAMES,
    ),
    "sailon analyze": Command(
        "sailon analyze a.csv --quiet",
        (
            LOAD_ROWS,
            "evaluation.sailon.reading.load_results",
            "evaluation.sailon.analysis.analyse",
            PLACE,
        ),
        {"baseline": "b.csv", "window": "4", "seed": "5", "wsu": "", "metric": "m.py"}
        | {"out": "x", "overwrite": ""},
        {"baseline": "baseline path", "metric": "texts", "out": "path overwrite"},
    ),
    "sailon evaluate": Command(
        "sailon evaluate --agent pd --out x",
        ("evaluation.sailon.evaluate.EvaluationPlan.checked",),
        {"baseline": "random", "overwrite": "", "levels": "200,203", "difficulties": "hard"}
        | {"visibilities": "1", "trials": "3", "episodes": "9", "button": "4", "training": "2"}
        | {"hint-level": "1", "seed": "5", "starts": "wsu", "threads": "2", "chunk": "64"}
        | {"novelties": "open-world-1", "samples": "6", "split": "held-out"}
        | {"set": "sensors/noise_position=0.01", "resume": "", "checkpoint-every": "90s"},
        {"novelties": "novelty_list", "set": "sensors", "checkpoint-every": "seconds"},
    ),
    "sailon generate": Command(
        "sailon generate s.ini --out x.json --novelties open-world-1",
        (SETTINGS, "evaluation.sailon.experiment.generate"),
        {"seed": "5", "samples": "6", "split": "held-out", "set": "sensors/noise_position=0.01"},
        {"set": "sensors"},
    ),
    "sailon generate of a list": Command(
        "sailon generate s.ini --out x.json",
        (SETTINGS, "evaluation.sailon.experiment.generate"),
        {"novelties": "open-world-1"},
        {"novelties": "novelty_list"},
    ),
    "sailon identify": Command(
        "sailon identify a.jsonl",
        (
            "evaluation.sailon.identify.of_transcripts",
            "evaluation.sailon.identify.to_json",
            "evaluation.files.write_json",
            "evaluation.sailon.identify.show",
        ),
        {"out": "x.json"},
        {"out": "path"},
    ),
    "sailon serve": Command(
        "sailon serve e.json --out x",
        (
            "evaluation.sailon.experiment.load",
            PLACE,
            "evaluation.sailon.serve.transport.Rabbit",
            "evaluation.sailon.serve.server.ExperimentServer",
        ),
        {"broker": "amqp://there", "agents": "2", "overwrite": "", "image": "64"},
        {"broker": "url", "image": "pictures pixels"},
    ),
    "sweep plan": Command(
        "sweep plan s.toml --out x",
        ("evaluation.sweep.planning.plan",),
        {"minutes": "3", "rate": "1000", "measure": "", "force": ""},
    ),
    "sweep run": Command(
        "sweep run x --quiet",
        (PLAN, VERSION, "evaluation.sweep.playing.run"),
        {"units": "1::3", "retries": "5", "threads": "2", "force": ""},
        {"units": "numbers"},
    ),
    "sweep merge": Command(
        "sweep merge x --out y --quiet",
        (PLAN, PLACE, "evaluation.sweep.merging.merge"),
        {"overwrite": ""},
    ),
    "sweep table": Command(
        "sweep table x --rows gravity",
        ("evaluation.sweep.tables.table",),
        {"columns": "agent", "metric": "length", "where": "seed=1"},
    ),
    "sweep table in files": Command(
        "sweep table x --rows gravity",
        (
            "evaluation.sweep.tables.table",
            "evaluation.sweep.tables.rich_table",
            "evaluation.sweep.tables.csv_text",
            "evaluation.files.write_whole",
            "evaluation.sweep.plots.write",
        ),
        {"csv": "a.csv", "plot": "a.png"},
        {"csv": "path", "plot": "path"},
    ),
    "sweep submit": Command(
        "sweep submit x --slurm",
        (PLAN, VERSION, "evaluation.sweep.submitting.submit"),
        JOB
        | {"parallel": "2", "partition": "night", "account": "us", "setup": "module load"}
        | {"force": ""},
        {"time": "minutes", "force": "force force"},
    ),
    "sweep launch": Command(
        "sweep launch x --sbatch",
        (PLAN, "evaluation.sweep.launch.text"),
        JOB | {"partition": "night"},
        {"time": "minutes"},
    ),
    "sweep launch of Kubernetes": Command(
        "sweep launch x --kubernetes",
        (PLAN, "evaluation.sweep.launch.text"),
        JOB | {"image": "i", "claim": "c"},
        {"time": "minutes"},
    ),
    "sweep join": Command(
        "sweep join x y --out z",
        (LOAD_ROWS, PLACE, "evaluation.l2m.shards.join"),
        {"overwrite": "", "metric": "m.py"},
        {"metric": "texts command"},
    ),
    "compare": Command(
        "compare a.parquet b.parquet --json j.json",
        ("evaluation.records.read_run", "evaluation.report.compare.compare_records"),
        {"metric": "mean", "measure": "length", "window": "5", "seed": "5", "paired": ""},
        {"metric": "metrics"},
    ),
    "plot": Command(
        "plot a.parquet --out x",
        ("evaluation.records.read_run", "evaluation.report.l2m_plots.plot_records"),
        {"measure": "length", "seed": "5"},
    ),
    "plot of a table": Command(
        "plot a.feather --out x",
        (TABLES, "evaluation.report.l2m_plots.plot_run"),
        {"measure": "length", "kind": "eb", "unit": "steps"},
        {"kind": "kinds"},
    ),
    "plot again": Command(
        "plot a.parquet --out x",
        (
            "evaluation.records.read_run",
            "evaluation.report.l2m_plots.plot_records",
            "evaluation.report.live.repeat_on_change",
        ),
        {"live": "30"},
        {"live": "path seconds path path measure seed"},  # without it, it draws at once
    ),
    "gvgai run": Command(
        "gvgai run --agent a.py",
        (TRACK, "evaluation.gvgai.agent.load_class", PLACE, "evaluation.gvgai.harness.run"),
        RULES
        | {"form": "BOTH", "seed": "5", "lifetime": "3", "track": "t.json"}
        | {"out": "x", "overwrite": ""},
        TRACK_NAMES | {"out": "path overwrite"},
    ),
    "gvgai track": Command(
        "gvgai track",
        (TRACK, "evaluation.gvgai.track.Track.dumps"),
        RULES | {"track": "t.json"},
        TRACK_NAMES,
    ),
    "gvgai serve": Command(
        "gvgai serve --out x",
        (TRACK, PLACE, "evaluation.gvgai.server.TrackServer"),
        RULES
        | {"host": "there", "port": "7", "transport-seconds": "9", "seed": "5", "lifetime": "3"}
        | {"overwrite": "", "track": "t.json"},
        TRACK_NAMES | {"lifetime": "first_lifetime"},
    ),
    "gvgai connect": Command(
        "gvgai connect --agent a.py",
        (TRACK, "evaluation.gvgai.agent.load_class", "evaluation.gvgai.client.connect"),
        RULES | {"host": "there", "port": "7", "form": "IMAGE", "track": "t.json"},
        TRACK_NAMES,
    ),
    "sciencebirds serve": Command(
        "sciencebirds serve --config c.xml",
        (
            "evaluation.sciencebirds.document.load",
            "evaluation.sciencebirds.selection.trial_list",
            "evaluation.sciencebirds.selection.select",
            "evaluation.sciencebirds.recording.check_memory",
            "evaluation.sciencebirds.document_order.schedule",
            "evaluation.sciencebirds.game.CartPoleGame",
            "evaluation.sciencebirds.server.listen",
            "evaluation.sciencebirds.results.ResultWriter.below",
            "evaluation.session.Log",
            "evaluation.sciencebirds.recording.LevelRecorder",
            "evaluation.sciencebirds.harness.Harness",
            "evaluation.sciencebirds.server.EvaluationServer",
        ),
        {"seed": "5", "host": "there", "port": "7", "results": "r", "agent-name": "me"}
        | {"trial": "2-3", "trial-list": "l.txt", "informed-only": "", "interaction": "episode"}
        | {"steps-per-shot": "4", "tell-levels": "", "idle-limit": "9", "dialect": "early"},
        {
            "seed": "seed seed",
            "results": "base",
            "agent-name": "agent agent",
            "trial": "within",
            "trial-list": "path places",
        }
        | {"informed-only": "informed", "interaction": "per_episode"}
        | {"dialect": "fields note"},
    ),
    "sciencebirds serve the uninformed": Command(
        "sciencebirds serve --config c.xml",
        ("evaluation.sciencebirds.document.load", "evaluation.sciencebirds.selection.select"),
        {"uninformed-only": ""},
        {"uninformed-only": "informed"},
    ),
    "sciencebirds serve what is drawn": Command(
        "sciencebirds serve",
        (META, "evaluation.sciencebirds.generate.refresh"),
        DRAWN | {"config-meta": "m.xml"},
        DRAWN_NAMES | {"config-meta": "option"},
    ),
    "sciencebirds generate": Command(
        "sciencebirds generate m.xml --out x.xml",
        (META, "evaluation.sciencebirds.generate.refresh"),
        DRAWN,
        DRAWN_NAMES,
    ),
    "sciencebirds generate once more": Command(
        "sciencebirds generate m.xml --out x.xml --overwrite",
        (META, "evaluation.sciencebirds.generate.config_text"),
        DRAWN,
        DRAWN_NAMES,
    ),
    "sciencebirds demo": Command(
        "sciencebirds demo",
        (
            "evaluation.sciencebirds.demo_agent.AgentClient",
            "evaluation.sciencebirds.demo_agent.DemoAgent",
        ),
        {"host": "there", "port": "7", "backups": "b"},
    ),
    "view": Command(
        "view --out o.html",
        FILM,
        {"level": "203", "difficulty": "hard", "agent": "random", "seed": "5", "episode": "2"}
        | {"pixels": "200", "gif": "o.gif"},
        {"gif": "path path pixels"},
    ),
    "view of a run": Command(
        "view .",
        ("evaluation.records.read_run", "evaluation.view.of_run"),
        {"lifetime": "3", "episode": "2", "agent": "mine.py"},
        {"lifetime": "lifetime path"},  # without it the run is asked for its first one
    ),
    "view as another video": Command(
        "view --out o.html",
        FILM,
        {"mp4": "o.mp4"},
        {"mp4": "path path pixels"},
    ),
}


NUMBERS = {"num_lifetimes": 99}
"""Attributes of what replaced functions return that commands compute with."""
RESULTS: Mapping[str, Callable[[], Any]] = {
    PLAN: lambda: MagicMock(units=range(99)),
    LOAD_ROWS: tuple,
    SETTINGS: ExperimentSettings,
    TRACK: default_track,
    TABLES: lambda: [MagicMock()],
}
"""What replaced functions return that is more than that."""


def words_of(command: Command, options: Mapping[str, str]) -> list[str]:
    words = command.words.split()
    for option, value in options.items():
        words += [f"--{option}", *([value] if value else [])]
    return words


def called_by(command: Command, words: Sequence[str]) -> list[Call]:
    """What a command line calls."""
    usual = functools.partial(MagicMock, **NUMBERS)
    results = {target: RESULTS.get(target, usual)() for target in command.calls}
    with pytest.MonkeyPatch.context() as patch, reached(results) as calls:
        patch.setattr(cli, "build_parser", parser)
        assert cli.main(list(words)) == 0
    return calls


def arguments_of(command: Command, options: Mapping[str, str]) -> set[tuple[str, str, Any]]:
    """What a command calls with some options: (call, dotted name of an argument, value)."""
    return arguments(called_by(command, words_of(command, options)))


def test_what_is_imported_while_functions_are_replaced_keeps_the_real_ones(tmp_path, monkeypatch):
    """A module may be imported by a command first, and by name what the command is not to call."""
    (tmp_path / "a_late_module.py").write_text("from evaluation.files import write_whole\n")
    monkeypatch.syspath_prepend(tmp_path)
    with reached({"evaluation.files.write_whole": None, "evaluation.files.sync": None}) as calls:
        module = importlib.import_module("a_late_module")
        module.write_whole(tmp_path / "file", "text")
    del sys.modules["a_late_module"]
    assert [call.target for call in calls] == ["evaluation.files.write_whole"]
    assert module.write_whole is files.write_whole


@pytest.mark.parametrize("name", COMMANDS)
def test_options_reach_what_they_are_for(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    whole = arguments_of(command, command.options)
    for option in command.options:
        rest = {key: value for key, value in command.options.items() if key != option}
        other = whole ^ arguments_of(command, rest)
        changed = {(call, path.rpartition(".")[2]) for call, path, _ in other}
        names = command.names.get(option, option.replace("-", "_"))
        assert sorted(name for _, name in changed) == sorted(names.split()), option


@pytest.mark.parametrize("name", ["run", "train"])
def test_without_a_number_the_first_lifetime_is_logged(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    words = [*command.words.split(), "--l2data", "logs", "--lifetime-idx", "7"]
    job = called_by(command, words)[-1].arguments["self"]
    assert (job.logging.folder, job.logging.lifetimes) == (Path("logs"), (7,))


ALWAYS = {"help", "quiet"}
PLAYED = {
    *("sweep run --local", "sweep status --json", "sweep status --watch", "sweep submit --local"),
    *("sweep submit --wait", "sweep launch --skypilot"),
    *("bench --quick", "validate --subtype", "validate --foreign", "validate --json"),
    "validate --data",
    *("metrics --scope", "metrics --needs", "metrics --json", "metrics --metric", "score --json"),
    "l2m ste add --replace",
    *("l2metrics --recursive", "l2metrics --ste-store-mode", "l2metrics --clear-ste"),
    *("l2metrics --load-settings", "l2metrics --noise", "l2metrics --output-dir"),
    *("l2metrics --output", "l2metrics --statistics", "l2metrics --seed", "l2metrics --unit"),
    *("l2metrics --show-eval-lines", "l2metrics --plot", "l2metrics --do-save"),
    *("l2metrics --do-save-settings", "l2metrics --plot-types", "l2metrics --no-show-eval-lines"),
    *("l2metrics --no-plot", "l2metrics --no-save", "l2metrics --no-save-settings"),
    *("gvgai serve --sessions", "grade --isolate", "grade --memory-limit", "grade --out"),
    *("novelties --sample", "novelties --seed", "view --trial", "view --ends"),
    *("cache --clear", "--no-cache", "--version"),
}
"""Options of which other tests play the command."""


def test_every_option_of_a_command_is_among_those_above():
    """A new option is added to its command in `COMMANDS`, or to `PLAYED` if that is played."""
    missing = set()
    for name, action in arguments_in(parser()):
        command = name.removesuffix(action.dest).strip()
        long = [text[2:] for text in action.option_strings if text.startswith("--")]
        options: set[str] = set()
        for one in COMMANDS.values():
            if f"{one.words} ".startswith(f"{command} "):
                options |= {*one.options, *re.findall(r"--(\S+)", one.words)}
        if long and not ALWAYS & {*long} and not options & {*long}:
            missing.add(f"{command} --{long[0]}".strip())
    assert missing == PLAYED


@pytest.mark.parametrize("name", ["run", "train", "sailon evaluate"])
def test_the_command_in_results_plays_the_same(name, tmp_path, monkeypatch):
    """But for options that change no number: how a run is spread, saved and logged."""
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    for left_out in ("", *command.options):
        options = {key: value for key, value in command.options.items() if key != left_out}
        (job,) = (
            call.arguments["self"] for call in called_by(command, words_of(command, options))[-1:]
        )
        program, *words = shlex.split(job.command)
        (again,) = (call.arguments["self"] for call in called_by(command, words)[-1:])
        assert program == "jaxsim"
        other = {field for field in vars(job) if getattr(job, field) != getattr(again, field)}
        assert other <= CHANGES_NO_NUMBER, left_out


CHANGES_NO_NUMBER = {
    *("files", "keep_memory", "log_format", "log_lifetimes", "logging", "options"),
    *("overwrite", "pace", "resume"),
}


TYPES = {
    "N": (int, float),
    "S": (float,),
    "GB": (float,),
    "K": (int,),
    "MIB": (int,),
    "PIXELS": (int,),
    "DIR": (Path,),
    "FILE": (Path,),
}
"""What is read as what, by the name that --help has for it."""
LATER = {"l2m validate log", "l2m aggregate log", "l2metrics log_dir", "l2metrics output_dir"}
"""Words that are read later, as they may be no path."""


def arguments_in(part: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, Any]]:
    """All arguments of a parser and of the commands in it, by the words before them."""
    for action in part._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inside in action.choices.items():
                yield from arguments_in(inside, f"{name} {word}".strip())
        else:
            yield f"{name} {action.dest}", action


def test_numbers_and_paths_are_read_as_such():
    checked = 0
    for name, action in arguments_in(parser()):
        if action.metavar in TYPES and name not in LATER:
            assert action.type in TYPES[action.metavar], name
            checked += 1
    assert checked > 100
