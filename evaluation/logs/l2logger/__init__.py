"""Logs of l2logger, format versions 1.0 and 1.1."""

from evaluation.logs.l2logger.batch import write_columns
from evaluation.logs.l2logger.columns import LogColumns, read_columns
from evaluation.logs.l2logger.format import (
    FORMAT_VERSION,
    Log,
    LogRow,
    Regime,
)
from evaluation.logs.l2logger.live import DataLogger, RecordError
from evaluation.logs.l2logger.reader import check_log, find_regimes, read_log, validate_log
from evaluation.logs.l2logger.writer import write_log
from evaluation.logs.problems import LogError, Problem

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
