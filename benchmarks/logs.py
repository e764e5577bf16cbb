"""Time of writing and reading lifelong-learning logs: `python -m benchmarks.logs --json logs.json`.

One hundred logs in the shape of the example that l2metrics ships: 24 blocks, 48 regimes and 1,920
episodes each, 2,400 tables and 192,000 rows in all. CPU seconds of this process, the best of the
rounds; the row reader reads every fifth log, and its time is scaled to all.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.files import write_json
from evaluation.logs import L2LoggerRow, read_columns, read_log, write_columns, write_log

START = datetime(2024, 1, 1)
SCENARIO = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
METRICS = ("performance",)
PART = 5


def columns(seed: int) -> dict[str, Any]:
    """One lifetime: tests of three tasks of 20 episodes, then 100 of training, twelve times."""
    tasks, blocks = [], []
    for block in range(24):
        regimes = [(task, 20) for task in range(3)] if block % 2 == 0 else [(block // 2 % 3, 100)]
        for task, count in regimes:
            tasks += [task] * count
            blocks += [block] * count
    episodes = np.arange(len(tasks))
    generator = np.random.default_rng(seed)
    return {
        "block_num": np.array(blocks),
        "exp_num": episodes,
        "block_type": ["train" if block % 2 else "test" for block in blocks],
        "task_name": [f"task{task + 1}_1" for task in tasks],
        "task_params": {"min_perf": 2.5, "max_perf": 100},
        "timestamp": np.datetime64(START, "us") + episodes * np.timedelta64(123_457, "us"),
        "performance": generator.normal(50.0, 20.0, len(tasks)),
    }


def rows(lifetime: dict[str, Any]) -> list[L2LoggerRow]:
    """The same lifetime row by row."""
    return [
        L2LoggerRow(
            block_num=int(lifetime["block_num"][row]),
            exp_num=row,
            block_type=lifetime["block_type"][row],
            block_subtype="wake",
            task_name=lifetime["task_name"][row],
            task_params=lifetime["task_params"],
            exp_status="complete",
            timestamp=lifetime["timestamp"][row].item(),
            metrics={"performance": float(lifetime["performance"][row])},
        )
        for row in range(len(lifetime["exp_num"]))
    ]


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """The least CPU time of a few rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(logs: int, rounds: int) -> dict[str, float]:
    """CPU seconds for all logs by operation."""
    lifetimes = [columns(seed) for seed in range(logs)]
    row_lists = [rows(lifetime) for lifetime in lifetimes[::PART]]
    part = logs / len(row_lists)
    results = {}

    def write(writer: Callable[..., Path], lives: list[Any]) -> list[Path]:
        with tempfile.TemporaryDirectory() as base:
            return [writer(base, f"log{n}", x, METRICS, SCENARIO) for n, x in enumerate(lives)]

    results["write columns"] = cpu_seconds(lambda: write(write_columns, lifetimes), rounds)
    results["write rows"] = cpu_seconds(lambda: write(write_log, row_lists), rounds) * part
    with tempfile.TemporaryDirectory() as base:
        paths = [
            write_columns(base, f"log{n}", lifetime, METRICS, SCENARIO)
            for n, lifetime in enumerate(lifetimes)
        ]
        results["read columns"] = cpu_seconds(lambda: list(map(read_columns, paths)), rounds)
        results["read rows"] = (
            cpu_seconds(lambda: list(map(read_log, paths[::PART])), rounds) * part
        )
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure writing and reading of logs.")
    parser.add_argument("--logs", type=int, default=100, help="lifetimes of 1,920 episodes (100)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    arguments = parser.parse_args()
    results = measure(arguments.logs, arguments.rounds)
    if arguments.json:
        write_json(arguments.json, results)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
