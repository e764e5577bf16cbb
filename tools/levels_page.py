"""Islands of docs/levels.md: the changes, hints and quirks of every level."""

from collections.abc import Iterable, Iterator

import jaxsim
from evaluation.catalogue import hint_text, paths
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, Level
from jaxsim.worlds.cartpole3d.original.hints import HINT_LEVELS
from jaxsim.worlds.cartpole3d.original.quirks import EVERYWHERE, ON_THE_RAIL, Quirk
from tools.islands import Islands, table


def changes() -> Iterator[str]:
    """Changes of each level by difficulty; one entry where all difficulties are the same."""
    rows = []
    for level in jaxsim.levels():
        by_difficulty = [_changes(level, index) for index in range(len(DIFFICULTIES))]
        rows.append((level.number, level.change, " / ".join(dict.fromkeys(by_difficulty))))
    return table(("level", "what", "easy / medium / hard"), rows)


def _changes(level: Level, difficulty: int) -> str:
    fields, names = level.overrides[difficulty], paths(level)
    return ", ".join(f"`{names[f]}` {value:g}" for f, value in fields.items()) or "nothing"


def hints() -> Iterator[str]:
    """Hint of each level by hint level."""
    hint_levels = [number for number in HINT_LEVELS if number >= 0]
    rows = (
        (level.number, *(hint_text(level, number) for number in hint_levels))
        for level in jaxsim.levels()
    )
    return table(("level", *(f"hint level {number}" for number in hint_levels)), rows)


def quirks() -> Iterator[str]:
    """Unexpected behaviour of the original, by level."""
    rows = [*_quirks("50 to 53", ON_THE_RAIL), *_quirks("101 to 208", EVERYWHERE)]
    for level in jaxsim.levels():
        rows += _quirks(str(level.number), (q for q in level.quirks if q not in ON_THE_RAIL))
    return table(("level", "what happens", "otherwise"), rows)


def _quirks(name: str, quirks_of_level: Iterable[Quirk]) -> Iterator[tuple[str, str, str]]:
    for quirk in quirks_of_level:
        yield name, quirk.text, f"`{quirk.mended_by}`" if quirk.mended_by else ""


def islands() -> Islands:
    """Islands of the page."""
    return {"changes": changes(), "hints": hints(), "quirks": quirks()}
