"""CPU seconds of `jaxsim l2metrics` beside those of l2metrics 3.1 on the same 100 logs.

    python -m venv peer
    peer/bin/pip install "l2metrics==3.1.*" "numpy<1.25" "pandas<2" "pyarrow<15"
    python -m benchmarks.l2metrics --peer peer/bin/python --out docs/l2metrics.json

Every program runs as a separate process. Times are user and system seconds of the process and its
children, start and imports included. The kernels and the records are measured in this process, once
they are compiled. Without --peer, the peer is left out.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import add_out, put_json
from evaluation.json_types import JsonObject

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
CASES = ("100 runs, nothing saved", "100 runs, all files saved")
OURS = "evaluation.l2m.l2metrics"
LIFETIMES = 10_000
REPEATS = 3


def write_workload(root: Path, runs: int) -> None:
    """Write `runs` lifetimes of 1,920 rows in 24 tables, and one expert of each of 3 tasks."""
    rng = np.random.default_rng(0)
    for run in range(runs):
        _write_log(root / "runs" / f"run-{run:04}", _plan(), rng)
    for task in range(TASKS):
        block = (0, "train", [(task, EXPERT_ROWS)])
        _write_log(root / "experts" / f"expert-{task}", [block], rng)


def _plan() -> list[tuple[int, str, list[tuple[int, int]]]]:
    """(block, kind, (task, rows) of its regimes) of a lifetime: tests of all tasks, one trained."""
    tests = [(task, TEST_ROWS) for task in range(TASKS)]
    return [
        (block, "train", [(block // 2 % TASKS, TRAIN_ROWS)])
        if block % 2
        else (block, "test", tests)
        for block in range(BLOCKS)
    ]


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
    process = subprocess.run(
        command, env=dict(environment), cwd=cwd, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(process.stderr or process.stdout)[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def end_to_end(python: str, module: str, root: Path, label: str) -> dict[str, float]:
    """CPU seconds of a batch of logs, without and with result files; the least of `REPEATS`."""
    data = root / label
    (data / "taskinfo").mkdir(parents=True)
    environment = os.environ | {"L2DATA": str(data), "OPENBLAS_NUM_THREADS": "1"}
    if module.startswith("evaluation"):
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    program = [python, "-m", module]
    for expert in sorted((root / "experts").iterdir()):
        cpu_seconds([*program, "-l", str(expert), "-s", "w"], environment, root)
    batch = [*program, "-l", str(root / "runs"), "-R", "--no-plot"]
    flags = (["--no-save", "--no-save-settings"], ["-O", str(root / f"results-{label}")])
    return {
        case: min(cpu_seconds(batch + more, environment, root) for _ in range(REPEATS))
        for case, more in zip(CASES, flags, strict=True)
    }


def same_numbers(root: Path) -> int:
    """Number of lifetime numbers in compat mode, after a check that all equal the peer's.

    Raises:
      RuntimeError: one differs by more than 1e-8.
    """
    environment = os.environ | {"L2DATA": str(root / "ours")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    words = ["-l", str(root / "runs"), "-R", "-O", str(root / "results-compat"), "--no-plot"]
    program = [sys.executable, "-m", OURS, *words, "--compat", "l2metrics-3.1"]
    cpu_seconds(program, environment, root)
    compat, peer = (
        json.loads((root / f"results-{label}" / "ll_metrics.json").read_text())
        for label in ("compat", "peer")
    )
    count = 0
    for one, other in zip(compat, peer, strict=True):
        for name, value in other.items():
            if isinstance(value, float):
                count += 1
                if abs(one[name] - value) > 1e-8 * max(1.0, abs(value)):
                    raise RuntimeError(f"{other['run_id']}: {name} is {one[name]}, not {value}")
    return count


def kernels(root: Path) -> dict[str, float]:
    """CPU seconds of all metrics of the lifetimes, read and padded, by array module."""
    import jax

    from evaluation.l2m.l2metrics import analysis
    from evaluation.l2m.l2metrics.pipeline import find_logs
    from evaluation.l2m.l2metrics.reading import read_log_columns
    from evaluation.l2m.l2metrics.runs import make_run
    from evaluation.l2m.l2metrics.settings import LogSettings
    from evaluation.metrics.l2m.experts import pad_experts
    from evaluation.metrics.l2m.lifetimes import lifetime_metrics

    settings = LogSettings()
    runs = [make_run(read_log_columns(path), settings) for path in find_logs(root / "runs")]
    library = analysis.Library(root / "ours" / "taskinfo", settings)
    curves = [[library.curves(task, False) for task in run.tasks] for run in runs]
    values, experiences, structure, repeats = analysis.padded(runs, [])
    arrays = (values, experiences, structure, pad_experts(curves, TASKS))
    options = settings.options(repeats)
    compiled = jax.jit(lifetime_metrics, static_argnames=("options",))
    times = {"NumPy, float64": _least(lambda: lifetime_metrics(*arrays, options))}
    for precision in ("float64", "float32"):
        with jax.enable_x64(precision == "float64"):
            inputs = jax.tree.map(_in(precision), arrays)

            def call(inputs: Any = inputs) -> None:
                jax.block_until_ready(compiled(*inputs, options))

            times[f"JAX, {precision}, compiling (once)"] = _seconds(call)
            times[f"JAX, {precision}"] = _least(call)
    return times


def _in(precision: str) -> Callable[[Any], Any]:
    return lambda array: array.astype(precision) if array.dtype.kind == "f" else array


def from_records() -> dict[str, tuple[float, float]]:
    """Clock and CPU seconds of all metrics of `LIFETIMES` lifetimes of the same plan."""
    from evaluation.records import COLUMNS, Records
    from evaluation.report.recorded import record_metrics
    from evaluation.schedule import Block, Schedule

    blocks: list[Block] = []
    for block, kind, regimes in _plan():
        for task, rows in regimes:
            parameters = (("pole/length", 1.0 + task),)
            mode: Any = kind
            train = kind == "train"
            blocks.append(Block(len(blocks), block, mode, "CartPole3D", parameters, rows, train))
    schedule = Schedule("peer", tuple(blocks))
    shape = (LIFETIMES, schedule.num_episodes)
    columns = {name: np.zeros(shape, kind) for name, kind in COLUMNS.items()}
    columns["performance"] = np.random.default_rng(0).random(shape, dtype=np.float32)
    columns["complete"] = np.ones(shape, bool)
    records = Records(schedule, columns, np.zeros(TASKS, np.int32))
    seconds = {}
    for precision in ("float64", "float32"):
        record_metrics(records, precision=precision)  # compiles
        started, before = time.perf_counter(), time.process_time()
        times = []
        for _ in range(REPEATS):
            started, before = time.perf_counter(), time.process_time()
            record_metrics(records, precision=precision)
            times.append((time.perf_counter() - started, time.process_time() - before))
        seconds[precision] = min(times)
    return seconds


def _seconds(call: Callable[[], Any]) -> float:
    """CPU seconds of one call, all threads of this process."""
    before = time.process_time()
    call()
    return time.process_time() - before


def _least(call: Callable[[], Any]) -> float:
    return min(_seconds(call) for _ in range(REPEATS))


def measure(peer: str | None) -> JsonObject:
    """Times of all programs, and the number of equal results.

    Args:
      peer: python of an environment with l2metrics 3.1; None to leave it out.
    """
    theirs, same = {}, None
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_workload(root, RUNS)
        ours = end_to_end(sys.executable, OURS, root, "ours")
        if peer is not None:
            theirs = end_to_end(os.path.abspath(peer), "l2metrics", root, "peer")
            same = same_numbers(root)
        kernel = kernels(root)
    return {
        "machine": {
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "repeats": REPEATS,
        "runs": RUNS,
        "lifetimes": LIFETIMES,
        "end_to_end": [
            {"case": case, "ours": seconds, "peer": theirs.get(case)}
            for case, seconds in ours.items()
        ],
        "same_numbers": same,
        "kernels": kernel,
        "records": {
            precision: {"seconds": wall, "cpu_seconds": cpu}
            for precision, (wall, cpu) in from_records().items()
        },
    }


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="python of an environment with l2metrics 3.1")
    add_out(parser)
    arguments = parser.parse_args()
    put_json(measure(arguments.peer), arguments.out)


if __name__ == "__main__":
    main()
