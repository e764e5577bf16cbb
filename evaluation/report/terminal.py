"""The terminal that commands write tables and progress to."""

from typing import Any


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
    return Console()
