"""Writes generated pages, and generated parts of pages that are written by hand.

Such a part is between `<!-- NAME: generated -->` and `<!-- NAME: end -->`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from evaluation.files import write_whole


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add `--out`, the file of a page."""
    parser.add_argument("--out", type=Path, help="file to write; standard output if missing")


def put(page: str, out: Path | None) -> None:
    """Write a page to its file, whole or not at all, or print it."""
    if out:
        write_whole(out, page)
    else:
        print(page, end="")


def replaced(text: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """Replace the lines between two marks, which have lines of their own.

    Raises:
      ValueError: the marks are missing.
    """
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(
            f"the table goes between {begin} and {end}, each of which must be there once"
        )
    before, rest = text.split(begin)
    return "\n".join([f"{before}{begin}", *lines, f"{end}{rest.split(end)[1]}"])


def filled(page: str, parts: Mapping[str, Callable[[], Iterable[str]]]) -> str:
    """Write the generated parts of a page anew.

    Args:
      page: text of the page.
      parts: lines of each part by its name.

    Raises:
      ValueError: the marks of a part are missing.
    """
    for name, lines in parts.items():
        begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
        page = replaced(page, begin, end, ["", *lines(), ""])
    return page


def write_parts(page: Path, parts: Mapping[str, Callable[[], Iterable[str]]]) -> None:
    """Write the generated parts of the page of a file anew; see `filled`."""
    write_whole(page, filled(page.read_text(encoding="utf-8"), parts))


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Lines of a table."""
    names = [str(name) for name in head]
    for row in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(str(cell) for cell in row)} |"


def put_lines(lines: Iterable[str], out: Path | None) -> None:
    """Write a page whose lines take long; with a file, also print each line as it comes."""
    all_lines = []
    for line in lines:
        all_lines.append(line)
        if out:
            print(line, flush=True)
    put("\n".join(all_lines) + "\n", out)
