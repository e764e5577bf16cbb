"""What the parsers of commands have in common."""

import argparse
from pathlib import Path
from typing import Any


def add_command(commands: Any, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    """Add a command.

    Args:
      commands: from `add_subparsers`.
      name: of the command.
      text: what it does, beginning with a small letter and without a full stop.
      examples: what its help ends with, as it is.

    Returns:
      The command's own parser.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_metric(
    parser: Any, text: str = "also compute the metrics of a Python file; may be repeated"
) -> None:
    """Give a command the option that takes metrics of users."""
    parser.add_argument("--metric", action="append", default=[], metavar="FILE[:NAME]", help=text)


def add_l2data(parser: Any) -> None:
    """Give a command the option that names the folder of lifelong-learning data."""
    parser.add_argument(
        "--l2data",
        type=Path,
        metavar="DIR",
        help="also log the first lifetime, or --log-lifetime, under DIR/logs ($L2DATA if set)",
    )
