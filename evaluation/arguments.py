"""Options that several commands share, and helpers for their parsers."""

import argparse
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from evaluation.json_types import JsonValue

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The subparsers to which a command or its parts are added."""

Parser: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"


def add_command(commands: Commands, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    """Add a command.

    Args:
      commands: from `add_subparsers`.
      name: of the command.
      text: what it does, beginning with a small letter and without a full stop.
      examples: end of its help, printed verbatim.

    Returns:
      The command's parser.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def parameter(text: str) -> tuple[str, JsonValue]:
    """Read a parameter of a task from PATH=VALUE; the value is JSON, or a word.

    Raises:
      ValueError: no path or no value.
    """
    path, equals, value = text.partition("=")
    if not (path and equals and value):
        raise ValueError(f"--set {text} has no value; write PATH=VALUE, as pole/length=3")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value


def parameters_of(texts: Iterable[str]) -> dict[str, JsonValue]:
    """Read parameters of a task, by path; see `parameter`.

    Raises:
      ValueError: a path that is given twice, or as `parameter`.
    """
    values: dict[str, JsonValue] = {}
    for path, value in map(parameter, texts):
        if path in values:
            raise ValueError(f"--set gives {path} twice; leave one out")
        values[path] = value
    return values


def command_line(words: Iterable[str], options: Iterable[tuple[str, object, object]]) -> str:
    """Quote a command for a shell; results record the command that made them.

    Args:
      words: of the command, up to its options.
      options: (name, value, default) of each; options with their default are left out.
    """
    arguments = [
        word for name, value, default in options if value != default for word in (name, value)
    ]
    return shlex.join(["jaxsim", *words, *map(str, arguments)])


def add_metric(
    parser: Parser, text: str = "also compute the metrics of a Python file; may be repeated"
) -> None:
    """Add `--metric`, which takes metrics of users."""
    parser.add_argument("--metric", action="append", default=[], metavar="FILE[:NAME]", help=text)


def add_l2data(parser: Parser) -> None:
    """Add `--l2data`, the folder of lifelong-learning data."""
    parser.add_argument(
        "--l2data",
        type=Path,
        metavar="DIR",
        help="also log the first lifetime, or --log-lifetime, under DIR/logs ($L2DATA if set)",
    )


def add_out(parser: Parser, overwrite: str = "replace results in DIR") -> None:
    """Add `--out` and `--overwrite`, for a directory of results."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where results go")
    parser.add_argument("--overwrite", action="store_true", help=overwrite)


def add_measure(parser: Parser) -> None:
    """Add `--measure` and `--window`, for metrics of runs."""
    parser.add_argument(
        "--measure",
        default="performance",
        metavar="NAME",
        help="an episode's value: performance, reward or length (performance)",
    )
    parser.add_argument("--window", type=int, default=11, metavar="N", help="smoothing window (11)")


def add_speed(
    parser: Parser, what: str = "lanes", quiet: str = "no progress bar and no tables"
) -> None:
    """Add `--threads`, `--chunk` and `--quiet`."""
    parser.add_argument("--threads", type=int, metavar="N", help="threads (one a core)")
    help_text = f"{what} at a time, a multiple of 64"
    parser.add_argument("--chunk", type=int, metavar="N", help=help_text)
    parser.add_argument("--quiet", action="store_true", help=quiet)
