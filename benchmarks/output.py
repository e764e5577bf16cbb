"""Writes the result of a benchmark to a file, whole or not at all, or to standard output."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaluation.files import write_whole


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add `--out`, the file of a result."""
    parser.add_argument("--out", type=Path, help="file to write; standard output if missing")


def put(text: str, out: Path | None) -> None:
    """Write a text to its file, or print it."""
    if out:
        write_whole(out, text)
    else:
        print(text, end="")


def put_lines(lines: Iterable[str], out: Path | None) -> None:
    """Write lines that take long; with a file, also print each line as it comes."""
    all_lines = []
    for line in lines:
        all_lines.append(line)
        if out:
            print(line, flush=True)
    put("\n".join(all_lines) + "\n", out)


def put_json(values: Any, out: Path | None) -> None:
    """Write values as strict JSON, or print them."""
    put(json.dumps(values, indent=1, allow_nan=False) + "\n", out)
