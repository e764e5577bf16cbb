"""CPU seconds of `jaxsim l2metrics` beside those of l2metrics 3.1 on the same 100 logs.

    python -m venv peer && peer/bin/pip install "l2metrics==3.1.*" "numpy<1.25" "pandas<2" "pyarrow<15"
    python -m benchmarks.l2metrics --peer peer/bin/python --page docs/l2metrics.md

Every program runs as a process of its own, start and imports included; user and system seconds of
the process and its children count, not the time on the clock, which other programs share. The
kernels and the records are measured in this process, once they are compiled. Without --peer the
peer's column says so.
"""

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

RUNS, BLOCKS, TASKS = 100, 24, 3
TRAIN_ROWS, TEST_ROWS, EXPERT_ROWS = 100, 20, 400
COLUMNS = "block_num exp_num worker_id block_type block_subtype task_name task_params exp_status timestamp reward"  # noqa: E501
INFO = {
    "logger_info.json": {"metrics_columns": ["reward"], "log_format_version": "1.1"},
    "scenario_info.json": {
        "complexity": "2-intermediate",
        "difficulty": "2-medium",
        "scenario_type": "alternating",
    },
}
LIFETIMES = 10_000
REPEATS = 3


def write_workload(root: Path, runs: int) -> None:
    """Write `runs` lifetimes of 1,920 rows in 24 tables, and one expert of each of 3 tasks."""
    rng = np.random.default_rng(0)
    for run in range(runs):
        blocks = []
        for block in range(BLOCKS):
            if block % 2 == 0:
                blocks.append((block, "test", [(task, TEST_ROWS) for task in range(TASKS)]))
            else:
                blocks.append((block, "train", [(block // 2 % TASKS, TRAIN_ROWS)]))
        _write_log(root / "runs" / f"run-{run:04}", blocks, rng)
    for task in range(TASKS):
        block = (0, "train", [(task, EXPERT_ROWS)])
        _write_log(root / "experts" / f"expert-{task}", [block], rng)


def _write_log(path: Path, blocks: list[Any], rng: np.random.Generator) -> None:
    path.mkdir(parents=True)
    for name, content in INFO.items():
        (path / name).write_text(json.dumps(content))
    skill, row = np.zeros(TASKS), 0
    for block, kind, regimes in blocks:
        lines = ["\t".join(COLUMNS.split())]
        for task, rows in regimes:
            for _ in range(rows):
                skill[task] += (kind == "train") * (1 - skill[task]) * 0.01
                reward = float(100 * skill[task] + rng.normal())
                stamp = f"20260101T{row // 3600:02}{row // 60 % 60:02}{row % 60:02}.000000"
                lines.append(
                    f"{block}\t{row}\tw0\t{kind}\twake\ttask{task}_1\t{{}}\tcomplete\t{stamp}\t"
                    f"{reward!r}"
                )
                row += 1
        folder = path / "w0" / f"{block}-{kind}"
        folder.mkdir(parents=True)
        (folder / "data-log.tsv").write_text("\n".join(lines) + "\n")


def cpu_seconds(command: list[str], environment: Mapping[str, str], cwd: Path) -> float:
    """User and system seconds of a command and its children.

    Raises:
      RuntimeError: it failed; with the end of what it printed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=dict(environment), cwd=cwd, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout)[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def end_to_end(python: str, module: str, root: Path, label: str) -> dict[str, float]:
    """CPU seconds of a batch of logs, without and with result files; the least of `REPEATS`."""
    data = root / label
    (data / "taskinfo").mkdir(parents=True)
    repository = str(Path(__file__).parents[1])
    environment = os.environ | {"L2DATA": str(data), "OPENBLAS_NUM_THREADS": "1"}
    if module.startswith("evaluation"):
        environment["PYTHONPATH"] = repository
    program = [python, "-m", module]
    for task in range(TASKS):
        cpu_seconds(
            [*program, "-l", str(root / f"experts/expert-{task}"), "-s", "w"], environment, root
        )
    batch = [*program, "-l", str(root / "runs"), "-R", "--no-plot"]
    cases = {
        "100 runs, nothing saved": ["--no-save", "--no-save-settings"],
        "100 runs, all files saved": ["-O", str(root / f"results-{label}")],
    }
    return {
        name: min(cpu_seconds(batch + flags, environment, root) for _ in range(REPEATS))
        for name, flags in cases.items()
    }


def kernels(root: Path) -> dict[str, float]:
    """CPU seconds of all metrics of 100 lifetimes, read and padded, by array module."""
    import jax

    from evaluation.l2m.l2metrics import analysis
    from evaluation.l2m.l2metrics.experts import pad_experts
    from evaluation.l2m.l2metrics.pipeline import find_logs
    from evaluation.l2m.l2metrics.reading import read_log_columns
    from evaluation.l2m.l2metrics.runs import make_run
    from evaluation.l2m.l2metrics.settings import Settings
    from evaluation.metrics.l2m.lifetimes import lifetime_metrics

    settings = Settings()
    runs = [make_run(read_log_columns(path), settings) for path in find_logs(root / "runs")]
    library = analysis.Library(root / "ours" / "taskinfo", settings)
    values, experiences, structure, repeats = analysis.padded(runs, [])
    options = settings.options(repeats)
    curves = [[library.curves(task, False) for task in run.tasks] for run in runs]
    experts = pad_experts(curves, TASKS)
    arrays = (values, experiences, structure, experts)
    compiled = jax.jit(lifetime_metrics, static_argnames=("options",))
    found = {"NumPy, float64": _least(lambda: lifetime_metrics(*arrays, options))}
    for name, wide in (("JAX on the CPU, float64", True), ("JAX on the CPU, float32", False)):
        with jax.enable_x64(wide):
            dtype = np.float64 if wide else np.float32
            narrow = jax.tree.map(
                lambda a: jax.numpy.asarray(a, dtype if a.dtype.kind == "f" else None), arrays
            )
            before = time.process_time()
            jax.block_until_ready(compiled(*narrow, options))
            found[f"{name}: compiling, once"] = time.process_time() - before
            found[name] = _least(lambda: jax.block_until_ready(compiled(*narrow, options)))
    return found


def _least(call: Callable[[], Any]) -> float:
    """Least CPU seconds of `REPEATS` calls, all threads of this process."""
    seconds = []
    for _ in range(REPEATS):
        before = time.process_time()
        call()
        seconds.append(time.process_time() - before)
    return min(seconds)
