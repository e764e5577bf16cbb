"""`jaxsim tasks` and `jaxsim levels`: what there is to play, in words."""

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaluation.arguments import add_command

if TYPE_CHECKING:
    from jaxsim.worlds.cartpole3d.levels import Level

WIDTH = 100

TASKS_EXAMPLES = """examples:
  jaxsim tasks
  jaxsim tasks CartPole3D

`jaxsim levels` lists the novelty levels.
"""

LEVELS_EXAMPLES = """examples:
  jaxsim levels
  jaxsim levels 105

A level sets parameters; `jaxsim tasks` lists all parameters. Play one by
`jaxsim evaluate pd --level 105`.
"""


def add_to(commands: Any) -> None:
    """Add both to the subcommands of `jaxsim`."""
    tasks = add_command(
        commands, "tasks", "list tasks and the parameters a syllabus may set", TASKS_EXAMPLES
    )
    tasks.add_argument("task", nargs="?", metavar="TASK", help="only this one")
    tasks.set_defaults(handler=print_tasks)
    levels = add_command(
        commands, "levels", "list novelty levels, or say what one changes", LEVELS_EXAMPLES
    )
    levels.add_argument("level", nargs="?", metavar="LEVEL", help="number of one, as 105")
    levels.set_defaults(handler=print_levels)


def print_tasks(arguments: argparse.Namespace) -> int:
    """Print every task, or one, with its parameters."""
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    import jaxsim

    asked = arguments.task
    if asked is not None and asked.isdigit():
        raise ValueError(f"{asked} is no task; for the novelty level: jaxsim levels {asked}")
    ids = jaxsim.registered_envs() if asked is None else (jaxsim.spec(asked).env_id,)
    for env_id in ids:
        spec = jaxsim.spec(env_id)
        print(f'{env_id} (in a syllabus: "$episode": "{spec.task}")')
        for row in spec.parameters.values():
            print(f"  {row.path:22} {row.default!s:8} {row.allowed}; {row.description}")
    return 0


def print_levels(arguments: argparse.Namespace) -> int:
    """Print all levels, a line each, or everything about one."""
    import jaxsim

    levels = jaxsim.levels()
    if arguments.level is None:
        for level in levels:
            print(_folded(f"{level.number:4}  {level.task:10}  ", level.change))
        return 0
    known = {str(level.number): level for level in levels}
    if arguments.level not in known:
        raise ValueError(f"{arguments.level} is no level; there are {', '.join(known)}")
    print("\n".join(_about(known[arguments.level])))
    return 0


def _about(level: "Level") -> Iterator[str]:
    """Lines on one level."""
    from jaxsim.worlds.cartpole3d.hints import HINT_LEVELS
    from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

    names = paths(level)
    yield _folded(f"Level {level.number} of {level.task}: ", level.change)
    yield ""
    yield "What it sets:"
    for name, overrides in zip(DIFFICULTIES, level.overrides, strict=True):
        text = ", ".join(f"{names[f]} {value:g}" for f, value in overrides.items())
        yield _folded(f"  {name:7} ", text or "nothing")
    yield ""
    yield "What an agent is told, by hint level:"
    for number in HINT_LEVELS:
        yield _folded(f"  {number:2}  ", told(level, number) or "nothing")
    yield ""
    yield "Quirks of the original, all kept:" if level.quirks else "No quirks are known."
    for quirk in level.quirks:
        mended = f" (otherwise: {quirk.mended_by})" if quirk.mended_by else ""
        yield _folded("  * ", f"{quirk.text}{mended}")


def paths(level: "Level") -> dict[str, str]:
    """Parameter paths of a level's task by the field they set."""
    from jaxsim.worlds.cartpole2d.levels import FIELDS as FIELDS_2D
    from jaxsim.worlds.cartpole3d.settings import FIELDS

    fields = {"CartPole2D": FIELDS_2D, "CartPole3D": FIELDS}[level.task]
    return {field: path for path, field in fields.items()}


def told(level: "Level", hint_level: int) -> str:
    """What a hint level tells of a level, in words; empty for nothing."""
    objects = [[v for v in each.values() if v is not None] for each in level.hints[hint_level]]
    words = list(dict.fromkeys(", ".join(map(str, each)) for each in objects))
    times = f" ({len(objects)} times)" if len(objects) > len(words) else ""
    return "; ".join(words) + times


def _folded(start: str, text: str) -> str:
    """A paragraph that fits the terminal, indented below its start."""
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
