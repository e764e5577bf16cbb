"""Readers and writers of performance logs.

The names here are those of l2logger logs; `evaluation.logs.learnkit` has the logs of 2019.
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.logs.l2logger import FORMAT_VERSION as FORMAT_VERSION
    from evaluation.logs.l2logger import DataLogger as DataLogger
    from evaluation.logs.l2logger import Log as Log
    from evaluation.logs.l2logger import LogColumns as LogColumns
    from evaluation.logs.l2logger import LogError as LogError
    from evaluation.logs.l2logger import LogRow as LogRow
    from evaluation.logs.l2logger import Problem as Problem
    from evaluation.logs.l2logger import RecordError as RecordError
    from evaluation.logs.l2logger import Regime as Regime
    from evaluation.logs.l2logger import check_log as check_log
    from evaluation.logs.l2logger import find_regimes as find_regimes
    from evaluation.logs.l2logger import read_columns as read_columns
    from evaluation.logs.l2logger import read_log as read_log
    from evaluation.logs.l2logger import validate_log as validate_log
    from evaluation.logs.l2logger import write_columns as write_columns
    from evaluation.logs.l2logger import write_log as write_log

__getattr__, __dir__ = exports(__name__)
