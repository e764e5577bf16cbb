"""Writes the generated islands of pages that are otherwise written by hand.

An island is between the marks `<!-- NAME: generated -->` and `<!-- NAME: end -->`. On lines by
themselves they hold lines, such as a table; within a line they hold a few words, such as a number.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.files import write_whole

DOCS = Path(__file__).parents[1] / "docs"
NONE = "–"
"""Cell of a table without a value."""
_BEGIN = re.compile(r"<!-- ([^:>]+): generated -->")
_ISLAND = re.compile(_BEGIN.pattern + r".*?<!-- \1: end -->", re.DOTALL)

Islands = Mapping[str, str | Iterable[str]]
"""Words or lines of each island by its name."""


def filled(page: str, islands: Islands) -> str:
    """Write the islands of a page anew.

    Raises:
      ValueError: the page has other islands, or one without an end; or words begin a line, which
        Markdown would take for HTML.
    """
    names = [match[1] for match in _ISLAND.finditer(page)]
    if sorted(names) != sorted(islands) or names != _BEGIN.findall(page):
        raise ValueError(
            f"the page has the islands {', '.join(names) or 'none'}; "
            f"they must be {', '.join(islands)}, each with both marks once"
        )

    def replaced(match: re.Match[str]) -> str:
        name, island = match[1], islands[match[1]]
        if not isinstance(island, str):
            island = "\n".join(["", "", *island, "", ""])
        elif page[: match.start()].rstrip(" ").endswith("\n"):
            raise ValueError(f"the words of {name} must not begin a line")
        return f"<!-- {name}: generated -->{island}<!-- {name}: end -->"

    return _ISLAND.sub(replaced, page)


def write(page: Path, islands: Islands) -> None:
    """Write the islands of a file anew; see `filled`."""
    write_whole(page, filled(page.read_text(encoding="utf-8"), islands))


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Lines of a table."""
    names = [str(name) for name in head]
    for row in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(str(cell) for cell in row)} |"


def measured(name: str) -> Any:
    """Content of a JSON file beside the pages."""
    return json.loads((DOCS / name).read_text(encoding="utf-8"))
