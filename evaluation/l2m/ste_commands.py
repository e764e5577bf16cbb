"""The commands `jaxsim l2m ste ...`: the store of single-task experts."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.arguments import Commands, add_command

if TYPE_CHECKING:
    from evaluation.schedule import Schedule

FAILED: Final = 2
"""Exit code if a source could not be added."""

EXAMPLES = """examples:
  jaxsim run expert.json --agent pd --lifetimes 8 --out runs/expert
  jaxsim l2m ste add runs/expert --for examples/syllabi/ant_b.json
  jaxsim l2m ste add expert_log-1575473425-723 another_log-1575473480-114
  jaxsim l2m ste add taskinfo/info.json
  jaxsim l2m ste list
  jaxsim l2m ste clear cartpole_v0

A single-task expert is an agent that trained one task only; lifelong learners are compared with it.
Sources are logs of l2logger, one run each; directories of `jaxsim run`, one run for each of their
lifetimes; and .json files with a saturation value for each task, as in 2019. Saturation values are
for the reports of 2019; metrics that need a curve report that there is none. The store is the
folder $L2DATA/taskinfo and names tasks as logs do.
"""


def add_to(parts: Commands) -> None:
    """Add the group `ste`.

    Args:
      parts: subparsers of `jaxsim l2m`.
    """
    group = add_command(
        parts, "ste", "fill, list or clear the store of single-task experts", EXAMPLES
    )
    actions = group.add_subparsers(dest="ste_command", required=True, metavar="COMMAND")
    add = add_command(
        actions, "add", "add experts from logs, directories of runs, or an info.json", EXAMPLES
    )
    add.add_argument("sources", nargs="+", metavar="PATH", help="a directory or a file")
    add.add_argument(
        "--replace",
        action="store_true",
        help="replace the runs of a task instead of adding to them",
    )
    add.add_argument(
        "--for",
        dest="syllabus",
        type=Path,
        metavar="FILE",
        help="lifelong syllabus that names the task; for directories of runs",
    )
    add.add_argument(
        "--lifetimes",
        type=int,
        nargs="+",
        metavar="N",
        help="lifetimes of directories of runs (all)",
    )
    add.set_defaults(handler=_add)
    list_ = add_command(actions, "list", "list the tasks with their runs and values", EXAMPLES)
    list_.set_defaults(handler=_list)
    clear = add_command(
        actions, "clear", "delete tasks with their runs and saturation values", EXAMPLES
    )
    clear.add_argument("tasks", nargs="*", metavar="TASK", help="names from the list (all)")
    clear.set_defaults(handler=_clear)


def _add(arguments: argparse.Namespace) -> int:
    from evaluation.l2m import syllabus

    lifelong = syllabus.load(arguments.syllabus) if arguments.syllabus else None
    replaced: set[str] = set()
    code = 0
    for source in arguments.sources:
        try:
            if source.endswith(".json"):
                if arguments.lifetimes:
                    raise ValueError(f"--lifetimes are of runs; {source} has one value a task")
                line = _add_saturations(Path(source))
            else:
                keep = replaced if arguments.replace else None
                line = _add_runs(source, arguments.lifetimes, lifelong, keep)
            print(line)
        except ValueError as error:
            print(f"jaxsim: {' '.join(str(error).split())}", file=sys.stderr)
            code = FAILED
    return code


def _add_saturations(path: Path) -> str:
    from evaluation.l2m import ste_info, ste_store

    values = ste_info.from_info_json(path)
    ste_info.store_saturations(ste_store.default_directory(), values)
    return f"{path}: saturation value{'s' * (len(values) != 1)} of {', '.join(values) or 'no task'}"


def _add_runs(
    source: str,
    lifetimes: Sequence[int] | None,
    lifelong: "Schedule | None",
    replaced: set[str] | None,
) -> str:
    """Add the runs of a directory.

    Args:
      source: path, or the bare name of a log.
      lifetimes: as in `ste_sources.from_directory`.
      lifelong: the syllabus, as in `ste_sources.from_directory`.
      replaced: tasks whose earlier runs are already deleted; None to keep earlier runs.
    """
    from evaluation.l2m import ste_sources, ste_store
    from evaluation.logs.home import find_log

    path = Path(source)
    try:
        path = path if path.is_file() else find_log(source)
    except NotADirectoryError as error:
        raise ValueError(str(error)) from error
    task, runs = ste_sources.from_directory(path, lifetimes, lifelong)
    keep = replaced is None or task in replaced
    (ste_store.append if keep else ste_store.write)(ste_store.default_directory(), task, runs)
    if replaced is not None:
        replaced.add(task)
    return f"{source}: {len(runs)} run{'s' * (len(runs) > 1)} of {task}"


def _list(arguments: argparse.Namespace) -> int:
    del arguments
    from evaluation.l2m import ste_info, ste_store
    from evaluation.logs.layouts import text_table

    directory = ste_store.default_directory()
    saturations = ste_info.stored_saturations(directory)
    rows = []
    for task in sorted({*ste_store.list_tasks(directory), *saturations}):
        runs = ste_store.read(directory, task)
        rows_trained = sum(int(run.train.sum()) for run in runs)
        measures = ", ".join(dict.fromkeys(name for run in runs for name in run.measures))
        value = f"{saturations[task]:g}" if task in saturations else "-"
        rows.append((task, len(runs), rows_trained, measures or "-", value))
    if not rows:
        print(f"no single-task expert in {directory}")
        return 0
    print(text_table(("task", "runs", "training rows", "measures", "saturation value"), rows))
    return 0


def _clear(arguments: argparse.Namespace) -> int:
    from evaluation.l2m import ste_info, ste_store

    directory = ste_store.default_directory()
    stored = {*ste_store.list_tasks(directory), *ste_info.stored_saturations(directory)}
    unknown = [task for task in arguments.tasks if task not in stored]
    if unknown:
        listed = ", ".join(sorted(stored)) or "none"
        raise ValueError(f"no expert of {', '.join(unknown)} in {directory}; there are {listed}")
    tasks = arguments.tasks or sorted(stored)
    ste_store.clear(directory, tasks)
    ste_info.drop_saturations(directory, tasks)
    print(f"deleted the single-task experts of {', '.join(tasks) or 'no task'}")
    return 0
