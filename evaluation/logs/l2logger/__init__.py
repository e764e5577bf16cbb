"""Logs of l2logger, format versions 1.0 and 1.1."""

from evaluation.logs.l2logger.batch import write_columns as write_columns
from evaluation.logs.l2logger.columns import LogColumns as LogColumns
from evaluation.logs.l2logger.columns import read_columns as read_columns
from evaluation.logs.l2logger.format import FORMAT_VERSION as FORMAT_VERSION
from evaluation.logs.l2logger.format import L2LoggerLog as L2LoggerLog
from evaluation.logs.l2logger.format import L2LoggerRow as L2LoggerRow
from evaluation.logs.l2logger.format import Regime as Regime
from evaluation.logs.l2logger.live import DataLogger as DataLogger
from evaluation.logs.l2logger.live import RecordError as RecordError
from evaluation.logs.l2logger.reader import check_log as check_log
from evaluation.logs.l2logger.reader import find_regimes as find_regimes
from evaluation.logs.l2logger.reader import read_log as read_log
from evaluation.logs.l2logger.reader import validate_log as validate_log
from evaluation.logs.l2logger.writer import write_log as write_log
from evaluation.logs.problems import LogError as LogError
from evaluation.logs.problems import Problem as Problem
