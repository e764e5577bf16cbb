"""Thin packages under the names of other tools, in a folder for PYTHONPATH.

Programs that were written for those tools import `aivle_grader`, `client.agent_client`,
`objects.TA2_logic`, `learnkit`, `l2metrics` or the old `gym`. With the folder on their search path
they run on this package unchanged.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "packages"


class Hidden(NamedTuple):
    """A package that cannot be imported, because another of its name comes first.

    Attributes:
      name: of both.
      used: place of the package that is imported.
      hidden: place of the other one.
    """

    name: str
    used: Path
    hidden: Path

    def __str__(self) -> str:
        return f"{self.name} is taken from {self.used}, which hides {self.hidden}"


def names() -> tuple[str, ...]:
    """Top-level names in the folder, sorted."""
    stems = (path.stem for path in FOLDER.iterdir() if path.name[0] not in "._")
    return tuple(sorted(stems))


def put_on_path() -> None:
    """Put the folder first on the search path of this process and of those that it spawns."""
    if sys.path[:1] != [str(FOLDER)]:
        sys.path.insert(0, str(FOLDER))


def hidden(path: Sequence[str], only: Sequence[str] | None = None) -> Iterator[Hidden]:
    """Find names of the folder that have a second package on a search path.

    Args:
      path: folders, the first one first.
      only: the names that matter; all of the folder if None.
    """
    for name in only if only is not None else names():
        specs = (PathFinder.find_spec(name, [folder]) for folder in dict.fromkeys(path))
        # A folder without __init__.py is a package only where there is no other.
        places = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
        places = list(dict.fromkeys(place.resolve() for place in places))
        if len(places) > 1:
            yield Hidden(name, *(_package(place) for place in places[:2]))


def _package(file: Path) -> Path:
    """A package's folder, or a module's file."""
    return file.parent if file.name == "__init__.py" else file
