"""`jaxsim tasks`, `jaxsim levels` and `jaxsim novelties`: list what can be played."""

import argparse
import json
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command

if TYPE_CHECKING:
    from jaxsim.novelty import Family
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


NOVELTIES_EXAMPLES = """examples:
  jaxsim novelties
  jaxsim novelties gravity
  jaxsim novelties gravity+push_turn --sample 3 --seed 7
  jaxsim novelties open-world-1
  jaxsim novelties open-world-1/17

Without a name, every family of novelties is listed. --sample draws novelties of a family, or of
several joined by +, a line of JSON each. Play one by
`jaxsim evaluate pd --set 'novelty={...}'`, or as "novelty": {...} in a syllabus.
"""


def add_to(commands: Commands) -> None:
    """Add the three commands to those of `jaxsim`."""
    tasks = add_command(
        commands, "tasks", "list tasks and the parameters a syllabus may set", TASKS_EXAMPLES
    )
    tasks.add_argument("task", nargs="?", metavar="TASK", help="only this one")
    tasks.set_defaults(handler=print_tasks)
    levels = add_command(
        commands, "levels", "list novelty levels, or say what one changes", LEVELS_EXAMPLES
    )
    levels.add_argument("level", nargs="?", metavar="LEVEL", help="number of a level, e.g. 105")
    levels.set_defaults(handler=print_levels)
    novelties = add_command(
        commands, "novelties", "list families of novelties, or draw some", NOVELTIES_EXAMPLES
    )
    novelties.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="a family, a list or its file (.jsonl), or an entry, LIST/NUMBER",
    )
    novelties.add_argument("--sample", type=int, metavar="N", help="draw N novelties")
    novelties.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (0)")
    novelties.set_defaults(handler=print_novelties)


def print_tasks(arguments: argparse.Namespace) -> int:
    """Print every task, or one, with its parameters."""
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    import jaxsim

    task = arguments.task
    if task is not None and task.isdigit():
        raise ValueError(f"{task} is not a task; for the novelty level: jaxsim levels {task}")
    ids = jaxsim.registered_envs() if task is None else (jaxsim.spec(task).env_id,)
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
            print(_wrapped(f"{level.number:4}  {level.task:10}  ", level.change))
        return 0
    by_number = {str(level.number): level for level in levels}
    if arguments.level not in by_number:
        raise ValueError(f"{arguments.level} is not a level; there are {', '.join(by_number)}")
    print("\n".join(_about(by_number[arguments.level])))
    return 0


def print_novelties(arguments: argparse.Namespace) -> int:
    """Print families, an entry or the summary of a list, or samples."""
    from evaluation.sailon import novelties
    from jaxsim import novelty, parameters

    name = arguments.name
    if arguments.sample is not None:
        if name is None:
            raise ValueError("--sample needs a family; see jaxsim novelties")
        import jax

        from jaxsim import counters, inputs

        counters.root(arguments.seed)
        inputs.check_whole("--sample", arguments.sample, 1, novelty.samples.MOST_SAMPLES)
        for one in novelty.sample(jax.random.key(arguments.seed), [name], arguments.sample):
            print(json.dumps(one.to_json()))
        return 0
    if name is None:
        for family in novelty.FAMILIES.values():
            print(_wrapped(f"{family.name:16}", ", ".join(_family(family))))
        return 0
    if name in novelty.FAMILIES:
        print("\n".join(_about_family(novelty.FAMILIES[name])))
        return 0
    if any(map(novelties.is_list, (name, name.rpartition("/")[0]))):
        print("\n".join(_about_list(name)))
        return 0
    raise ValueError(parameters.unknown("name", name, [*novelty.FAMILIES, *novelties.SHIPPED]))


def _family(family: "Family") -> tuple[str, ...]:
    """Entity, attribute and changes of a family."""
    changes = " or ".join(filter(None, (family.change, family.lower)))
    return family.entity, family.attribute, changes


def _about_family(family: "Family") -> Iterator[str]:
    """Lines on one family."""
    from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS

    yield f"{family.name}: {', '.join(_family(family))}"
    for one in family.ranges:
        row = PARAMETERS[one.path]
        spans = " or ".join(f"{low:g} to {high:g}" for low, high in one.spans)
        unit = f" {row.unit}" if row.unit else ""
        yield f"  {one.path}: {spans}{unit} ({one.scale}), in place of {row.default:g}"
        for path, factor, summand in one.linked:
            yield f"  {path}: {factor:g} times it" + (f" plus {summand:g}" if summand else "")
    for path, value in family.fixed:
        yield f"  {path}: {value:g}"
    for choice in family.choices:
        yield "  or " + ", ".join(f"{path} {value:g}" for path, value in choice)


def _about_list(name: str) -> Iterator[str]:
    """Lines on a list, or on an entry, LIST/NUMBER."""
    from evaluation.sailon import novelties

    list_name, _, number = name.rpartition("/")
    is_entry = not novelties.is_list(name)
    novelties_list = novelties.load(list_name if is_entry else name)
    if is_entry:
        if not (number.isdecimal() and int(number) < len(novelties_list.entries)):
            last = len(novelties_list.entries) - 1
            raise ValueError(f"{number!r} is not an entry of {list_name}; there are 0 to {last}")
        entry = novelties_list.entries[int(number)]
        yield _wrapped(f"{name}: ", entry.novelty.describe())
        yield f"  {entry.split}; difficulty {entry.control:g} for control, " + (
            f"{entry.detection:g} for detection ({entry.difficulty})"
        )
        yield f"  {json.dumps(entry.novelty.to_json())}"
        return
    counts = Counter((entry.split, entry.difficulty) for entry in novelties_list.entries)
    yield f"{name}: {len(novelties_list.entries)} novelties"
    for (split, difficulty), count in sorted(counts.items()):
        yield f"  {count:4} {split}, {difficulty}"
    if held_out := novelties_list.about.get("held_out"):
        yield _wrapped("  held out: ", ", ".join(held_out))


def _about(level: "Level") -> Iterator[str]:
    """Lines on one level."""
    from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
    from jaxsim.worlds.cartpole3d.original.hints import HINT_LEVELS

    names = paths(level)
    yield _wrapped(f"Level {level.number} of {level.task}: ", level.change)
    yield ""
    yield "What it sets:"
    for name, overrides in zip(DIFFICULTIES, level.overrides, strict=True):
        text = ", ".join(f"{names[f]} {value:g}" for f, value in overrides.items())
        yield _wrapped(f"  {name:7} ", text or "nothing")
    yield ""
    yield "What an agent is told, by hint level:"
    for number in HINT_LEVELS:
        yield _wrapped(f"  {number:2}  ", hint_text(level, number) or "nothing")
    yield ""
    yield "Quirks of the original, all kept:" if level.quirks else "No quirks are known."
    for quirk in level.quirks:
        mended = f" (otherwise: {quirk.mended_by})" if quirk.mended_by else ""
        yield _wrapped("  * ", f"{quirk.text}{mended}")


def paths(level: "Level") -> dict[str, str]:
    """Parameter paths of a level's task by the field they set."""
    from jaxsim.worlds.cartpole2d.levels import FIELDS as FIELDS_2D
    from jaxsim.worlds.cartpole3d.parameter_table import FIELDS

    fields = {"CartPole2D": FIELDS_2D, "CartPole3D": FIELDS}[level.task]
    return {field: path for path, field in fields.items()}


def hint_text(level: "Level", hint_level: int) -> str:
    """Text of the hint about a level at a hint level; empty if there is none."""
    objects = [[v for v in each.values() if v is not None] for each in level.hints[hint_level]]
    words = list(dict.fromkeys(", ".join(map(str, each)) for each in objects))
    times = f" ({len(objects)} times)" if len(objects) > len(words) else ""
    return "; ".join(words) + times


def _wrapped(start: str, text: str) -> str:
    """Wrap a paragraph to the terminal's width, indented below its start."""
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
