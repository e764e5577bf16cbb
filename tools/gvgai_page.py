"""Islands of docs/gvgai.md, which follow from the code."""

import inspect
import json
import re
from collections.abc import Iterator

from evaluation.gvgai.observation import ACTIONS, ESCAPE, FIELDS, OBJECT_FIELDS, PUSHES, WINNERS
from evaluation.gvgai.results import LevelResult
from evaluation.gvgai.rules import PRESETS, TRAINING, Rules
from evaluation.gvgai.track import TrackLevel, default_track
from jaxsim.worlds.cartpole3d.types import ACTIONS as PUSH_NAMES
from tools.islands import Islands, table


def attributes(kind: type) -> dict[str, str]:
    """Names and meanings of a class's attributes, from its docstring."""
    text = inspect.getdoc(kind) or ""
    _, _, section = text.partition("Attributes:\n")
    entries = re.findall(r"^  (\w+): (.*(?:\n    .*)*)", section, re.MULTILINE)
    return {name: " ".join(meaning.split()).removesuffix(".") for name, meaning in entries}


def _meanings(kind: type) -> Iterator[tuple[str, str]]:
    return ((f"`{name}`", meaning) for name, meaning in attributes(kind).items())


def levels() -> Iterator[str]:
    """Levels of the default track."""
    rows = (
        (n, "training" if n in TRAINING else "validation", level.task, _values(level), level.about)
        for n, level in enumerate(default_track().levels)
    )
    return table(("level", "use", "task", "parameters", "what it is"), rows)


def _values(level: TrackLevel) -> str:
    return ", ".join(f"`{path}` {value}" for path, value in level.parameters) or "none"


def rules() -> Iterator[str]:
    """Rules with their values in each preset."""
    presets = {name: preset.to_json() for name, preset in PRESETS.items()}
    rows = (
        (f"`{name}`", *(json.dumps(preset[name]) for preset in presets.values()), meaning)
        for name, meaning in attributes(Rules).items()
    )
    return table(("rule", *(f"`{name}`" for name in presets), "meaning"), rows)


def fields() -> Iterator[str]:
    """Fields of an observation."""
    rows = ((f"`{f.name}`", f.kind, f.form, f.meaning) for f in FIELDS)
    return table(("field", "type", "form", "meaning"), rows)


def objects() -> Iterator[str]:
    """Fields of the objects in an observation."""
    return table(("field", "meaning"), ((f"`{n}`", m) for n, m in OBJECT_FIELDS.items()))


def actions() -> Iterator[str]:
    """Effect of each action."""

    def does(code: int) -> str:
        if code == ESCAPE:
            return "breaks the level off"
        return f"pushes {PUSH_NAMES[PUSHES[code]]}" if code in PUSHES else "nothing"

    rows = ((code, f"`{name}`", does(code)) for code, name in enumerate(ACTIONS))
    return table(("code", "action", "does"), rows)


def winners() -> Iterator[str]:
    """Codes of winners."""
    return table(("winner", "code"), WINNERS.items())


def results() -> Iterator[str]:
    """Fields of the result of a level."""
    return table(("field", "meaning"), _meanings(LevelResult))


def islands() -> Islands:
    """Islands of the page."""
    parts = (levels, rules, fields, objects, actions, winners, results)
    return {part.__name__: part() for part in parts}
