"""Options of commands that save checkpoints."""

import argparse
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluation.checkpoints.keeper import Pace

NEVER = "never"
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)")


def add_options(parser: argparse.ArgumentParser, blocks: bool = True) -> None:
    """Add `--resume`, `--checkpoint-every` and, where blocks are played, `--checkpoint-blocks`."""
    parser.add_argument(
        "--resume", action="store_true", help="resume from the newest checkpoint in DIR"
    )
    parser.add_argument(
        "--checkpoint-every",
        default="5min",
        metavar="TIME",
        help="interval of saves in DIR/checkpoints: 90s, 10min, 2h or never (5min)",
    )
    parser.set_defaults(checkpoint_blocks=None)
    if not blocks:
        return
    parser.add_argument(
        "--checkpoint-blocks", type=int, metavar="N", help="save after every N blocks as well"
    )


def pace(arguments: argparse.Namespace) -> "Pace":
    """Return how often a run is saved under these options.

    Raises:
      ValueError: a time that cannot be read, or out of bounds.
    """
    from evaluation.checkpoints.keeper import Pace

    value = Pace(duration(arguments.checkpoint_every), arguments.checkpoint_blocks)
    value.check()
    return value


def duration(text: str) -> float | None:
    """Read a time as "90s", "10min" or "2h", s; None for "never".

    Raises:
      ValueError: none of these.
    """
    if text == NEVER:
        return None
    match = DURATION.fullmatch(text)
    if not match:
        raise ValueError(
            f"checkpoint-every is {text!r}; it must be a time as 90s, 10min or 2h, or never"
        )
    return float(match[1]) * SECONDS[match[2]]


def tell(line: str) -> None:
    """Write a line about checkpoints to standard error."""
    print(f"jaxsim: {line}", file=sys.stderr, flush=True)
