"""Numbers with intervals, as JSON, console tables and plots."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.report.summary import Report, summarise_records

__all__ = ["Report", "summarise_records"]


def __getattr__(name: str) -> Any:
    # Imported when first used, so that the command line can name its commands without JAX.
    if name in __all__:
        from evaluation.report import summary

        return getattr(summary, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
