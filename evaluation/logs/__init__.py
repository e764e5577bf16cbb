"""Readers and writers of performance logs.

The names here are those of l2logger logs; `evaluation.logs.learnkit` has the logs of 2019.
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

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

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "l2logger"))
