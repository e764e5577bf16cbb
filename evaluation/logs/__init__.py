"""Readers and writers of performance logs.

The names here are those of l2logger logs; `evaluation.logs.learnkit` has the logs of 2019.
"""

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
