"""An option of a command reaches what the command calls, under its own name and no other.

Each command is given all its options at once, and then all but one. What it would call is replaced
and writes down its arguments, so that nothing is played.
"""

import contextlib
import dataclasses
import functools
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

from evaluation import cli

parser = functools.cache(cli.build_parser)  # it is large
PLAIN = (bool, int, float, str, Path, type(None))


class Reached(Exception):
    """Ends a command where the last of the replaced functions is called."""


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
}
SPREAD_NAMES = {"threads": "threads threads", "chunk": "chunk chunk"}  # how it compiles as well
SAVED_NAMES = SPREAD_NAMES | {
    "lifetime-idx": "first_lifetime",
    "checkpoint-every": "seconds",
    "checkpoint-blocks": "blocks",
}
RULES = {
    "preset": "document",
    "learning-seconds": "7",
    "validation-times": "3",
    "on-overspent": "abort_level",
    "scope": "phase",
    "timer": "processor",
}
RULES_NAMES = {"preset": "act_hard_seconds"}  # the one number of it that no other option sets
JOB = {"jobs": "3", "gpus": "1", "cpus": "5", "memory": "1.5", "time": "30min"}

COMMANDS = {
    "run": Command(
        "run s.json --out x",
        (CONFIGURE, "evaluation.l2m.run.Job.checked_schedule"),
        SAVED
        | {"log-format": "learnkit", "l2data": "there", "keep-memory": ""}
        | {"measure": "reward", "window": "5"},
        SAVED_NAMES
        | {"log-lifetime": "log_lifetimes lifetimes"}
        | {"l2data": "logging folder lifetimes log_format"},
    ),
    "run with logs": Command(
        "run s.json --out x --l2data there",
        (CONFIGURE, "evaluation.l2m.run.Job.checked_schedule"),
        {"log-format": "l2logger"},
        {},  # of the logs there: learnkit is usual there, and l2logger elsewhere
    ),
    "train": Command(
        "train 203 --out x",
        (CONFIGURE, "evaluation.train.run.Job.check"),
        SAVED
        | {
            "agent": "random",
            "difficulty": "hard",
            "set": "pole/length=2",
            "eval-every": "8",
            "eval-episodes": "6",
        }
        | {"episodes": "48", "minutes": "9", "l2data": "there"},
        SAVED_NAMES
        | {"log-lifetime": "lifetimes", "l2data": "logging folder lifetimes log_format"}
        | {"difficulty": "parameters"}
        | {"set": "parameters", "eval-every": "every", "eval-episodes": "evaluation"},
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
        "sailon analyze a.csv",
        ("evaluation.sailon.results.load_results", PLACE, "evaluation.sailon.analysis.analyse"),
        {"baseline": "b.csv", "window": "4", "seed": "5", "wsu": ""},
        {"baseline": "baseline path"},
    ),
    "sailon evaluate": Command(
        "sailon evaluate --agent pd --out x",
        ("evaluation.sailon.evaluate.Job.checked",),
        {"baseline": "random", "overwrite": "", "levels": "200,203", "difficulties": "hard"}
        | {"visibilities": "1", "trials": "3", "episodes": "9", "button": "4", "training": "2"}
        | {"hint-level": "1", "seed": "5", "starts": "wsu", "threads": "2", "chunk": "64"},
    ),
    "sailon serve": Command(
        "sailon serve e.json --out x",
        (
            "evaluation.sailon.experiment.load",
            PLACE,
            "evaluation.sailon.serve.transport.Rabbit",
            "evaluation.sailon.serve.server.Server",
        ),
        {"broker": "amqp://there", "agents": "2", "overwrite": ""},
        {"broker": "url"},
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
        JOB | {"partition": "night", "image": "i", "claim": "c"},
        {"time": "minutes"},
    ),
    "sweep join": Command(
        "sweep join x y --out z", (PLACE, "evaluation.l2m.shards.join"), {"overwrite": ""}
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
    "gvgai run": Command(
        "gvgai run --agent a.py",
        ("evaluation.gvgai.agent.load_class", "evaluation.gvgai.harness.run"),
        RULES | {"form": "BOTH", "seed": "5", "lifetime": "3"},
        RULES_NAMES,
    ),
    "gvgai serve": Command(
        "gvgai serve --out x",
        (PLACE, "evaluation.gvgai.server.Server"),
        {"host": "there", "port": "7", "transport-seconds": "9", "seed": "5", "lifetime": "3"}
        | {"overwrite": ""},
        {"lifetime": "first_lifetime"},
    ),
    "gvgai connect": Command(
        "gvgai connect --agent a.py",
        ("evaluation.gvgai.agent.load_class", "evaluation.gvgai.client.connect"),
        RULES | {"host": "there", "port": "7", "form": "IMAGE"},
        RULES_NAMES,
    ),
    "sciencebirds serve": Command(
        "sciencebirds serve --config c.xml",
        (
            "evaluation.sciencebirds.document.load",
            "evaluation.sciencebirds.selection.trial_list",
            "evaluation.sciencebirds.selection.select",
            "evaluation.sciencebirds.recording.check_memory",
            "evaluation.sciencebirds.levels.schedule",
            "evaluation.sciencebirds.game.CartPoleGame",
            "evaluation.sciencebirds.server.listen",
            "evaluation.sciencebirds.results.Results.below",
            "evaluation.session.Log",
            "evaluation.sciencebirds.recording.Recorder",
            "evaluation.sciencebirds.harness.Harness",
            "evaluation.sciencebirds.server.Server",
        ),
        {"seed": "5", "host": "there", "port": "7", "results": "r", "agent-name": "me"}
        | {"trial": "2-3", "trial-list": "l.txt", "informed-only": "", "interaction": "episode"}
        | {"steps-per-shot": "4", "tell-levels": "", "idle-limit": "9", "dialect": "early"},
        {
            "seed": "seed seed",
            "results": "base",
            "agent-name": "agent agent",
            "trial": "within",
            "trial-list": "path listed",
        }
        | {"informed-only": "informed", "interaction": "per_episode"}
        | {"dialect": "fields note"},
    ),
    "view": Command(
        "view --out o.html",
        (
            "evaluation.view.of_level",
            "jaxsim.render.viewer.page",
            "evaluation.view.commands.write_whole",
            "evaluation.view.videos.check",
            "evaluation.view.videos.write",
        ),
        {"level": "203", "difficulty": "hard", "agent": "random", "seed": "5", "episode": "2"}
        | {"pixels": "200", "gif": "o.gif"},
        {"gif": "path path pixels"},
    ),
}


def is_plain(value: Any) -> bool:
    inside = isinstance(value, list | tuple | range)
    return all(map(is_plain, value)) if inside else isinstance(value, PLAIN)


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Plain values inside of an argument, by their dotted names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if is_plain(value):
        yield name, tuple(value) if isinstance(value, list | range) else value
    elif isinstance(value, list | tuple):
        yield from leaves({str(number): one for number, one in enumerate(value)}, name)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from leaves(one, f"{name}.{key}")


def arguments_of(command: Command, options: Mapping[str, str]) -> set[tuple[str, str, Any]]:
    """What a command calls with some options: (call, dotted name of an argument, value)."""
    reached: set[tuple[str, str, Any]] = set()

    def replaced(target: str, original: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(original).bind(*args, **kwargs).arguments
            reached.update((target, *leaf) for leaf in leaves(bound, ""))
            if target == command.calls[-1]:
                raise Reached
            return plan if target == PLAN else MagicMock()

        return called

    plan = MagicMock(units=range(99))
    words = command.words.split()
    for option, value in options.items():
        words += [f"--{option}", *([value] if value else [])]
    with pytest.MonkeyPatch.context() as patch:
        for target in command.calls:
            parent, _, name = target.rpartition(".")
            place = pkgutil.resolve_name(parent)
            patch.setattr(place, name, replaced(target, getattr(place, name)))
        patch.setattr(cli, "build_parser", parser)
        with contextlib.suppress(Reached):
            assert cli.main(words) == 0
    return reached


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
