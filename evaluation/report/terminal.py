"""The terminal that commands write tables and progress to."""

import os
import sys
from typing import Any, Final

FILE_WIDTH: Final = 100
"""Characters of a line where standard output is no terminal."""


def console() -> Any:
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
    redirected = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=FILE_WIDTH if redirected else None)
