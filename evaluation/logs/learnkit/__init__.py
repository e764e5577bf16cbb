"""Logs of the 2019 lifelong-learning framework (learnkit)."""

from evaluation.logs.learnkit.episodes import Episodes, episodes
from evaluation.logs.learnkit.format import DEFAULT_WORKER, Block, Log, LogRow
from evaluation.logs.learnkit.reader import check_log, read_log
from evaluation.logs.learnkit.writer import RunLogger, write_log

__all__ = [
    "DEFAULT_WORKER",
    "Block",
    "Episodes",
    "Log",
    "LogRow",
    "RunLogger",
    "check_log",
    "episodes",
    "read_log",
    "write_log",
]
