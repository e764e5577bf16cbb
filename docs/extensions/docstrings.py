"""Docstrings for Sphinx: what is plain text or Markdown in them becomes reStructuredText.

Fenced blocks and indented blocks between paragraphs become blocks of code, and tables list-tables.
Stars and bars beside a word, as in `(..., *shape)` and |v|, stay what they are.
"""

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"(?<![*\w\\])\*(?=\w)|\|(?=\w)")
TABLE = re.compile(r"^( *)\|( -+:? \|)+$")
INDENT = "    "


def plain(line: str) -> str:
    """A line whose marks outside of backticks mean nothing."""
    parts = line.split("`")
    parts[::2] = (MARK.sub(r"\\\g<0>", part) for part in parts[::2])
    return "`".join(parts)


def with_tables(lines: list[str]) -> Iterator[str]:
    """Lines whose tables are `list-table` directives."""
    table = False
    for number, line in enumerate(lines):
        rule = TABLE.match(line)
        head = number + 1 < len(lines) and TABLE.match(lines[number + 1])
        if head:
            yield from ("", f"{head[1]}.. list-table::", f"{head[1]}   :header-rows: 1", "")
        table = bool(head or rule) or (table and line.lstrip().startswith("|"))
        if not table:
            yield line
        elif not rule:
            first, *rest = line.strip().removeprefix("| ").removesuffix(" |").split(" | ")
            margin = line[: len(line) - len(line.lstrip())]
            yield f"{margin}   * - {first}"
            yield from (f"{margin}     - {cell}" for cell in rest)


def with_directives(lines: list[str]) -> Iterator[str]:
    """Lines whose blocks of code are `code-block` directives."""
    fenced = indented = False
    before = ""  # the last line that is not empty
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence:
            yield from (
                ("",) if fenced else ("", f"{fence[1]}.. code-block:: {fence[2] or 'text'}", "")
            )
            fenced = not fenced
            continue
        if not fenced and line.strip():
            opens = number and not lines[number - 1].strip() and not before.startswith(" ")
            starts = line.startswith(INDENT) and opens and not indented
            if starts:
                yield from (".. code-block:: python", "")
            indented = line.startswith(INDENT) and (starts or indented)
            before = line
        yield f"   {line}" if fenced else line if indented else plain(line)


def process(app: Sphinx, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """Handle the event `autodoc-process-docstring`."""
    lines[:] = list(with_directives(list(with_tables(lines))))


def plain_signature(
    app: Sphinx, what: str, name: str, of: Any, options: Any, signature: str | None, returns: str
) -> tuple[str | None, str]:
    """Handle the event `autodoc-process-signature`: a default that is a type is its name."""
    return signature and re.sub(r"<class '(\w+)'>", r"\1", signature), returns


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the events, that of docstrings before napoleon's."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-signature", plain_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
