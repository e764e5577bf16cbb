"""Logs of the 2019 lifelong-learning framework (learnkit)."""

from evaluation.logs.learnkit.episodes import LearnkitEpisodes as LearnkitEpisodes
from evaluation.logs.learnkit.episodes import episodes as episodes
from evaluation.logs.learnkit.format import DEFAULT_WORKER as DEFAULT_WORKER
from evaluation.logs.learnkit.format import LearnkitBlock as LearnkitBlock
from evaluation.logs.learnkit.format import LearnkitLog as LearnkitLog
from evaluation.logs.learnkit.format import LearnkitRow as LearnkitRow
from evaluation.logs.learnkit.reader import check_log as check_log
from evaluation.logs.learnkit.reader import read_log as read_log
from evaluation.logs.learnkit.writer import RunLogger as RunLogger
from evaluation.logs.learnkit.writer import write_log as write_log
