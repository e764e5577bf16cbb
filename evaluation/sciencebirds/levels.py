"""Names of levels, and the CartPole3D episodes that they stand for.

A level is named by a path such as `novelty_level_1/type2/Levels/00017_1_1.xml`. No such file is
ever opened: the path says which physics are played and from which start.

| part of the path | what it says |
| --- | --- |
| novelty level 0, any type | level 200 of the catalogue, the nominal world |
| novelty level 1 to 8, type 1, 2, 3 | levels 201 to 208 at easy, medium, hard |
| novelty level 1 to 8, type 4, 5, 6 | levels 101 to 108 at easy, medium, hard |
| novelty level 11 to 15, type 1, 2, 3 | levels 111 to 115 at easy, medium, hard |
| number in front | start and randomness of the episode: a level is the same each time |
| second number 0 | the novelty is absent: the nominal world is played |
| third number 0 | the novelty cannot be seen: the nominal world is played, too |

Names without a second and third number hold the novelty of their folder. A name that does not begin
with a number has one all the same, the CRC-32 of its name. Levels of the catalogue outside the
table have no name.
"""

import re
import zlib
from dataclasses import dataclass
from typing import Final, Literal

from evaluation.difficulties import DIFFICULTIES
from evaluation.schedule import Variant

TASK: Final = "CartPole3D"
NOMINAL: Final = 200
MAX_PATH: Final = 512
"""Longest path of a level, characters."""

Kind = Literal["novel", "absent", "unseen"]
SUFFIXES: Final[dict[Kind, str]] = {"novel": "_1_1", "absent": "_0_0", "unseen": "_1_0"}

_PATH = re.compile(
    r"(?:[A-Za-z0-9_ .-]+/)*novelty_level_([0-9]{1,3})/type([0-9]{1,3})/"
    r"Levels/([A-Za-z0-9_.-]+)\.xml"
)


class LevelPathError(ValueError):
    """A path that names no level."""


@dataclass(frozen=True)
class LevelPath:
    """One level.

    Attributes:
      path: its name.
      novelty_level: of its folder; 0 for no novelty.
      novelty_type: of its folder.
      number: of the episode that is played, below 2^32.
      kind: whether the folder's novelty is in it, is absent or cannot be seen.
    """

    path: str
    novelty_level: int
    novelty_type: int
    number: int
    kind: Kind = "novel"

    @classmethod
    def of(cls, level: int, novelty_type: int, number: int, kind: Kind = "novel") -> "LevelPath":
        """Name a level of a pool."""
        file = f"{number:05}{SUFFIXES[kind]}.xml"
        path = f"novelty_level_{level}/type{novelty_type}/Levels/{file}"
        return cls(path, level, novelty_type, number, kind)

    @classmethod
    def parse(cls, path: str) -> "LevelPath":
        """Read a level from its path.

        Raises:
          LevelPathError: the path leads elsewhere, or no physics are known for it.
        """
        match = _PATH.fullmatch(path) if len(path) <= MAX_PATH else None
        parts = path.split("/")
        if match is None or ".." in parts or "." in parts:
            raise LevelPathError(
                f"level_path is {path[:80]!r}; it must be a relative path that ends in "
                "novelty_level_<number>/type<number>/Levels/<name>.xml"
            )
        stem = match[3]
        level = cls(path, int(match[1]), int(match[2]), _number(stem), _kind(stem))
        level.check()
        return level

    @property
    def novel(self) -> bool:
        """Whether it has a novelty that can be seen."""
        return self.novelty_level > 0 and self.kind == "novel"

    @property
    def catalogue(self) -> tuple[int, str]:
        """Level of the novelty catalogue and difficulty.

        Raises:
          LevelPathError: there is none for this novelty level and type.
        """
        level, novelty_type = self.novelty_level, self.novelty_type
        if level == 0:
            return NOMINAL, DIFFICULTIES[0]
        rank, harder = divmod(novelty_type - 1, len(DIFFICULTIES))
        if 1 <= level <= 8 and rank in (0, 1):
            return NOMINAL - 100 * rank + level, DIFFICULTIES[harder]
        if 11 <= level <= 15 and rank == 0:
            return NOMINAL - 100 + level, DIFFICULTIES[harder]
        raise LevelPathError(
            f"novelty level {level} of type {novelty_type} is not known; there are level 0, "
            "levels 1 to 8 of types 1 to 6 and levels 11 to 15 of types 1 to 3"
        )

    def check(self) -> None:
        """Check that there are physics for it; raises as `catalogue`."""
        _ = self.catalogue

    @property
    def variant(self) -> Variant:
        """Task and parameters in the form of `Schedule.variants`."""
        number, difficulty = self.catalogue
        if number == NOMINAL or not self.novel:
            return TASK, ()
        return TASK, (("novelty/difficulty", difficulty), ("novelty/level", number))


def _kind(stem: str) -> Kind:
    """Kind by the name `<index>_<position>_<difference>...`; other names are novel."""
    parts = stem.split("_")
    if len(parts) > 1 and parts[1] == "0":
        return "absent"
    return "unseen" if len(parts) > 2 and parts[2] == "0" else "novel"


def _number(stem: str) -> int:
    digits = re.match(r"[0-9]{1,9}", stem)
    return int(digits[0]) if digits else zlib.crc32(stem.encode())
