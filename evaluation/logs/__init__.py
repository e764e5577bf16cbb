"""Readers and writers of performance logs.

The names here are those of l2logger logs; `evaluation.logs.learnkit` has the logs of 2019.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.logs.l2logger import (
        FORMAT_VERSION,
        DataLogger,
        Log,
        LogColumns,
        LogError,
        LogRow,
        Problem,
        RecordError,
        Regime,
        check_log,
        find_regimes,
        read_columns,
        read_log,
        validate_log,
        write_columns,
        write_log,
    )

__all__ = [
    "FORMAT_VERSION",
    "DataLogger",
    "Log",
    "LogColumns",
    "LogError",
    "LogRow",
    "Problem",
    "RecordError",
    "Regime",
    "check_log",
    "find_regimes",
    "read_columns",
    "read_log",
    "validate_log",
    "write_columns",
    "write_log",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that a command does not wait for Arrow before it is needed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evaluation.logs import l2logger

    return getattr(l2logger, name)
