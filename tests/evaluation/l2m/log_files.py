"""Writes small l2logger directories for tests, right ones and wrong ones."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

COLUMNS = (
    "block_num",
    "exp_num",
    "worker_id",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "exp_status",
    "timestamp",
    "reward",
)
SCENARIO = {"complexity": "1-low", "difficulty": "1-easy", "scenario_type": "custom"}
LOGGER = {"metrics_columns": ["reward"], "log_format_version": "1.1"}


def rows(regimes: Sequence[tuple[int, str, str, Sequence[float]]]) -> list[dict[str, Any]]:
    """Rows of (block, "train" or "test", task, rewards) regimes, one experience a row."""
    entries: list[dict[str, Any]] = []
    for block, kind, task, rewards in regimes:
        for reward in rewards:
            entries.append(
                {
                    "block_num": block,
                    "exp_num": len(entries),
                    "worker_id": "w0",
                    "block_type": kind,
                    "block_subtype": "wake",
                    "task_name": task,
                    "task_params": "{}",
                    "exp_status": "complete",
                    "timestamp": f"20260101T000000.{len(entries):06}",
                    "reward": reward,
                }
            )
    return entries


def write_log(
    path: Path,
    content: Iterable[Mapping[str, Any]],
    columns: Sequence[str] = COLUMNS,
    logger: Mapping[str, Any] | None = LOGGER,
    scenario: Mapping[str, Any] | None = SCENARIO,
) -> Path:
    """Write a log directory, one table for each block; info files that are None are left out."""
    path.mkdir(parents=True)
    for name, info in (("logger_info.json", logger), ("scenario_info.json", scenario)):
        if info is not None:
            (path / name).write_text(json.dumps(info))
    tables: dict[Path, list[str]] = {}
    for row in content:
        folder = path / row["worker_id"] / f"{row['block_num']}-{row['block_type']}"
        line = "\t".join(str(row[name]) for name in columns)
        tables.setdefault(folder, ["\t".join(columns)]).append(line)
    for folder, lines in tables.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data-log.tsv").write_text("\n".join(lines) + "\n")
    return path


def good_rows(seed: int = 0) -> list[dict[str, Any]]:
    """Two tasks, each trained and tested twice."""
    import numpy as np

    rng = np.random.default_rng(seed)
    plan = []
    for block in range(8):
        task = f"task{'ab'[block // 2 % 2]}_1"
        if block % 2:
            plan.append((block, "train", task, np.linspace(0, 1, 20) + rng.normal(0, 0.1, 20)))
        else:
            plan += [(block, "test", f"task{t}_1", rng.normal(block, 0.1, 4)) for t in "ab"]
    return rows(
        [(block, kind, task, [float(v) for v in values]) for block, kind, task, values in plan]
    )
