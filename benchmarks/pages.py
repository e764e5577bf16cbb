"""Where a generated page goes."""

import argparse
from pathlib import Path

from evaluation.files import write_whole


def add_out(parser: argparse.ArgumentParser) -> None:
    """Give a command the option that names the page's file."""
    parser.add_argument("--out", type=Path, help="file to write; standard output if missing")


def put(page: str, out: Path | None) -> None:
    """Write a page to its file, whole or not at all, or print it."""
    if out:
        write_whole(out, page)
    else:
        print(page, end="")
