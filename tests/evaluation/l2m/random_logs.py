"""Random lifetimes with what real ones have: retraining, sleep, rows that share an experience.

The logs of a seed are always the same, so results of other tools can be recorded for them.
Rewards have three digits, which every parser reads alike, and no two curves have equal peaks.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tests.evaluation.l2m.log_files import write_log

SMOOTHING = ("flat", "hanning", "hamming", "bartlett", "blackman", "none")


class Writer:
    """Collects the rows of one log."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.rows, self.experience = rng, list[dict[str, Any]](), 0

    def add(
        self, block: int, kind: str, subtype: str, task: str, reward: float, times: int
    ) -> None:
        """One experience of `times` rows; now and then incomplete or without a value."""
        for _ in range(times):
            value = "nan" if self.rng.random() < 0.01 else f"{reward + self.rng.normal(0, 0.1):.3f}"
            self.rows.append(
                {
                    "block_num": block,
                    "exp_num": self.experience,
                    "worker_id": "w0",
                    "block_type": kind,
                    "block_subtype": subtype,
                    "task_name": task,
                    "task_params": "{}",
                    "exp_status": "complete" if self.rng.random() < 0.97 else "incomplete",
                    "timestamp": f"20260101T000000.{len(self.rows):06}",
                    "reward": value,
                }
            )
        self.experience += 1


def write_case(root: Path, seed: int) -> list[list[str]]:
    """Write a lifetime and its experts below `root` / c<seed>.

    Returns:
      Arguments of `l2metrics`, relative to `root`: those that store the experts, and last two
      different ones that compute metrics; each without where results go.
    """
    rng = np.random.default_rng(seed)
    variants = (1, 2) if rng.random() < 0.4 else (1,)
    tasks = [f"T{letter}_{v}" for letter in "abc"[: rng.integers(1, 4)] for v in variants]
    _write_lifetime(root / f"c{seed}" / "run", tasks, rng)
    calls = []
    for task in tasks:
        for number in range(int(rng.integers(0, 3))):
            expert = f"c{seed}/expert_{task}_{number}"
            _write_expert(root / expert, task, rng)
            calls.append(["-l", expert, "-s", "a" if number else "w"])
    return calls + [_arguments(seed, len(variants) > 1, rng) for _ in range(2)]


def _write_lifetime(path: Path, tasks: list[str], rng: np.random.Generator) -> None:
    log, skill = Writer(rng), dict.fromkeys(tasks, 0.1)
    sleeps, shared = rng.random() < 0.3, rng.random() < 0.3
    offset = 5 if rng.random() < 0.3 else 0
    for block in range(int(rng.integers(4, 14))):
        kind = "test" if (block % 2 == 0) == (rng.random() < 0.85) else "train"
        subtype = "sleep" if sleeps and rng.random() < 0.4 else "wake"
        order = [str(task) for task in rng.permutation(tasks)]
        tasks_of_block = order if kind == "test" else order[: rng.integers(1, 3)]
        for task in tasks_of_block:
            for _ in range(int(rng.integers(1, 12 if kind == "test" else 60))):
                if kind == "train":
                    skill[task] = min(1.0, skill[task] + 0.02)
                reward = skill[task] * 10 + rng.normal(0, 0.4) - offset
                log.add(
                    block, kind, subtype, task, reward, int(rng.integers(1, 4)) if shared else 1
                )
    write_log(path, log.rows)


def _write_expert(path: Path, task: str, rng: np.random.Generator) -> None:
    log, skill = Writer(rng), 0.1
    for block in range(int(rng.integers(1, 4))):
        kind = "test" if block % 2 else "train"
        for _ in range(int(rng.integers(2, 70))):
            skill = min(1.0, skill + 0.02 * (kind == "train"))
            log.add(block, kind, "wake", task, skill * 10 + rng.normal(0, 0.3), 1)
    write_log(path, log.rows)


def _arguments(seed: int, variants: bool, rng: np.random.Generator) -> list[str]:
    words = ["-l", f"c{seed}/run", "-m", "both", "-t", "both", "-g", str(rng.choice(SMOOTHING))]
    words += ["-n", str(rng.choice(["task", "task", "run", "none"]))]
    for flags, share in (
        (["-w", str(rng.integers(2, 40))], 0.5),
        (["-G"], 0.4),
        (["-v", "time"], 0.3),
        (["-a", "median"], 0.3),
        (["-r", "agnostic"], 0.5 * variants),
    ):
        words += flags if rng.random() < share else []
    return words
