"""Readers and writers of performance logs."""

from evaluation.logs.l2logger import (
    FORMAT_VERSION,
    Log,
    LogError,
    LogRow,
    Problem,
    Regime,
    check_log,
    find_regimes,
    read_log,
    validate_log,
    write_log,
)

__all__ = [
    "FORMAT_VERSION",
    "Log",
    "LogError",
    "LogRow",
    "Problem",
    "Regime",
    "check_log",
    "find_regimes",
    "read_log",
    "validate_log",
    "write_log",
]
