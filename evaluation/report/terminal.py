"""The terminal that commands write tables and progress to."""

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH: Final = 100
"""Characters of a line if standard output is not a terminal."""


def console() -> "Console":
    """Return a rich console for standard output.

    Raises:
      ValueError: rich is not installed.
    """
    try:
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise ValueError(
            "tables and progress need rich: pip install 'jaxsim-novelty[cli]', or pass --quiet"
        ) from error

    class Terminal(Console):
        """Leaves a closed pipe to the command, which ends with exit code 0 then."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    redirected = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Terminal(width=FILE_WIDTH if redirected else None)


def unless_quiet(arguments: argparse.Namespace) -> "Console | None":
    """Return the console of a command with ``--quiet`` and ``--json``; None with ``--quiet``.

    Raises:
      ValueError: ``--quiet`` without ``--json``, or rich is not installed.
    """
    if arguments.quiet and not arguments.json:
        raise ValueError("--quiet shows nothing: pass --json with it")
    return None if arguments.quiet else console()


def progress_bar(
    console: "Console | None", *about: Any, **more: Any
) -> contextlib.AbstractContextManager[Any]:
    """Open `evaluation.report.progress.progress_bar`; a context of None without a console."""
    if console is None:
        return contextlib.nullcontext()
    from evaluation.report.progress import progress_bar

    return progress_bar(console, *about, **more)
