"""Logs of the 2019 lifelong-learning framework (learnkit)."""

from evaluation.logs.learnkit.episodes import Episodes as Episodes
from evaluation.logs.learnkit.episodes import episodes as episodes
from evaluation.logs.learnkit.format import DEFAULT_WORKER as DEFAULT_WORKER
from evaluation.logs.learnkit.format import Block as Block
from evaluation.logs.learnkit.format import Log as Log
from evaluation.logs.learnkit.format import LogRow as LogRow
from evaluation.logs.learnkit.reader import check_log as check_log
from evaluation.logs.learnkit.reader import read_log as read_log
from evaluation.logs.learnkit.writer import RunLogger as RunLogger
from evaluation.logs.learnkit.writer import write_log as write_log
