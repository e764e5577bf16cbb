"""Islands of docs/sciencebirds.md, which follow from the code."""

import inspect
from collections.abc import Iterator
from types import ModuleType

from evaluation.sciencebirds import codec, document, game, legacy, levels
from evaluation.sciencebirds.codes import DUTIES
from tools.islands import Islands, table


def layout(fields: codec.Fields) -> str:
    """Fields of a message with their kinds."""
    return "; ".join(f"{codec.KINDS[kind].layout} **{name}**" for name, kind in fields) or "–"


def requests() -> Iterator[str]:
    """Table of requests."""
    messages = sorted([*codec.REQUESTS.values(), *codec.EXTENSIONS.values()], key=lambda m: m.code)
    rows = ((m.code, f"`{m.name}`", layout(m.fields), layout(m.reply), m.note) for m in messages)
    return table(("code", "name", "request, after the code", "reply", "what"), rows)


def passages(module: ModuleType, *firsts: str) -> Iterator[str]:
    """Passages of a module's docstring by their first words, up to the next empty line."""
    lines = (inspect.getdoc(module) or "").splitlines()
    for number, first in enumerate(firsts):
        start = next(index for index, line in enumerate(lines) if line.startswith(first))
        end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
        yield from ["", *lines[start:end]] if number else lines[start:end]


def documents() -> Iterator[str]:
    """The two grammars and the passage on numbers, from the module of documents."""
    lines = (inspect.getdoc(document) or "").splitlines()
    yield "```"
    yield from (line[4:] for line in lines[2:] if line.startswith("    ") or not line)
    yield "```"
    yield ""
    yield from passages(document, "A number or boolean")


def states() -> Iterator[str]:
    """Table of states."""
    rows = ((int(state), state.name, duty) for state, duty in DUTIES.items())
    return table(("code", "state", "what the agent does"), rows)


def differences() -> Iterator[str]:
    """Table of differences from the original."""
    rows = (
        (
            f"`{name}`",
            each.document,
            each.original,
            "older" if name in legacy.OLDER_ONLY else "both",
        )
        for name, each in (legacy.SCHEDULING | legacy.GENERATION).items()
    )
    return table(("name", "here", "in the original", "snapshots"), rows)


def islands() -> Islands:
    """Islands of the page."""
    return {
        "documents": documents(),
        "levels": passages(levels, "A level is named", "| part of the path", "Names without"),
        "shots": passages(game, "A shot is an action", "| vector", "A polar shot"),
        "states": states(),
        "requests": requests(),
        "legacy": differences(),
    }
