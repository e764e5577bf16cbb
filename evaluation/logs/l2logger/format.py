"""Format of l2logger logs, version 1.1.

A log is one lifetime on disk::

    <base>/<scenario name>-<seconds since 1970, '.' written as '-'>/
        logger_info.json            {"metrics_columns": [...], "log_format_version": "1.1"}
        scenario_info.json          free, usually complexity, difficulty and scenario_type
        <worker>/<block number>-<train|test>/data-log.tsv

A TSV row is one episode (an "experience"): the nine columns of `STANDARD_COLUMNS`, then metrics and
extra columns together, in the order of their code points. Text is UTF-8, lines end in a line feed,
a field is quoted only if necessary, ``task_params`` is JSON text and ``timestamp`` is local time.
The byte layout is that of logs written by l2logger 1.8.2.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.json_types import JsonMapping
from evaluation.logs.cells import Scalar
from evaluation.logs.problems import Problem
from evaluation.logs.tables import CONTROL

FORMAT_VERSION: Final = "1.1"
READABLE_VERSIONS: Final = ("1.0", "1.1")
DATA_FILE: Final = "data-log.tsv"
STANDARD_COLUMNS: Final = (
    "block_num",
    "exp_num",
    "worker_id",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "exp_status",
    "timestamp",
)
REQUIRED_COLUMNS: Final = tuple(n for n in STANDARD_COLUMNS if n != "block_subtype")
BLOCK_TYPES: Final = ("train", "test")
BLOCK_SUBTYPES: Final = ("wake", "sleep")
EXP_STATUSES: Final = ("complete", "incomplete")
WORDS: Final = {
    "block_type": BLOCK_TYPES,
    "block_subtype": BLOCK_SUBTYPES,
    "exp_status": EXP_STATUSES,
}
"""Columns with a fixed set of words, and the words."""
DEFAULT_WORKER: Final = "worker-default"
SCENARIO_FIELDS: Final = {
    "complexity": ("1-low", "2-intermediate", "3-high"),
    "difficulty": ("1-easy", "2-medium", "3-hard"),
    "scenario_type": ("condensed", "dispersed", "permuted", "alternating", "ste", "custom"),
}
"""Fields that evaluators read in scenario_info.json, and their values."""
DEFAULT_SUBTYPE: Final = "wake"
TASK_NAME: Final = re.compile(r"[0-9a-zA-Z]+_[0-9a-zA-Z]+")


@dataclass(frozen=True, slots=True)
class L2LoggerRow:
    """One episode of a log.

    Attributes:
      block_num: number of the block, from 0, never falling.
      exp_num: number of the episode in the lifetime, from 0, never falling.
      block_type: ``"train"`` or ``"test"``.
      block_subtype: ``"wake"`` or ``"sleep"``.
      task_name: by convention ``<task label>_<variant label>``, letters and digits.
      task_params: the task's parameters; any JSON object.
      exp_status: ``"complete"`` or ``"incomplete"``.
      timestamp: end of the episode, written without conversion (the format uses local time). None
        (only for writing) means the start of the log.
      metrics: a number for each of the log's ``metrics_columns``. NaN means not measured.
      extras: extra columns; every row of a log has the same ones.
      worker_id: None (only for writing) means the worker of the log.
    """

    block_num: int
    exp_num: int
    block_type: str
    block_subtype: str
    task_name: str
    task_params: JsonMapping
    exp_status: str
    timestamp: datetime | None
    metrics: Mapping[str, float]
    extras: Mapping[str, Scalar] = field(default_factory=dict)
    worker_id: str | None = None


class Regime(NamedTuple):
    """A maximal run of episodes with equal block number, type, subtype and task name.

    Attributes:
      regime_num: from 0.
      block_num: number of the block.
      block_type: ``"train"`` or ``"test"``.
      block_subtype: ``"wake"`` or ``"sleep"``.
      task_name: in lower case.
      start: position of its first row.
      length: number of rows.
    """

    regime_num: int
    block_num: int
    block_type: str
    block_subtype: str
    task_name: str
    start: int
    length: int


@dataclass(frozen=True)
class L2LoggerLog:
    """A whole log.

    Attributes:
      path: its directory.
      format_version: ``log_format_version`` of logger_info.json; ``"1.0"`` if absent.
      metrics_columns: names of the metrics.
      scenario_info: content of scenario_info.json.
      rows: all episodes, stably sorted by (exp_num, block_num). Text is as in the file.
      regimes: the runs in ``rows``.
      warnings: the problems that do not make it invalid.
    """

    path: Path
    format_version: str
    metrics_columns: tuple[str, ...]
    scenario_info: JsonMapping
    rows: tuple[L2LoggerRow, ...]
    regimes: tuple[Regime, ...]
    warnings: tuple[Problem, ...]


def metrics_columns_problem(names: object) -> str:
    """What is wrong with a list of metric names; empty if nothing."""
    if not isinstance(names, list | tuple) or not names:
        return "must be a non-empty list of names"
    if not all(isinstance(name, str) and name and not CONTROL.search(name) for name in names):
        return f"must be non-empty printable strings, not {names!r}"
    if len(set(names)) < len(names):
        return f"must be distinct, not {names!r}"
    reserved = sorted(set(names) & set(STANDARD_COLUMNS))
    return f"must not use the standard names {', '.join(reserved)}" if reserved else ""
