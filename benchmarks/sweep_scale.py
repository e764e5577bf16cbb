"""How a sweep of many cells and units behaves: `python -m benchmarks.sweep_scale`.

Plans a million cells. Makes a folder with the names of 10^5 finished units, and measures `status`
and the search of `submit`. Makes up results of units, and measures `merge` with its memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.json_types import JsonObject

PLAIN = "import sys; from evaluation.cli import main; sys.exit(main())"


def command(*words: Any) -> dict[str, float]:
    """Seconds on the clock and of the processor, and peak memory in MiB, of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    program = (
        "import resource, sys; from evaluation.cli import main; code = main();"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    arguments = [sys.executable, "-c", program, "sweep", *map(str, words)]
    process = subprocess.run(arguments, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(used, 2),
        "MiB": int(process.stderr.split()[-1]) // 1024,
    }


def planned(folder: Path, units: int, episodes: int) -> Any:
    """A plan with a cell a unit."""
    from evaluation.sweep import planning, plans

    values = {
        "base": "evaluate",
        "lanes": episodes,
        "fixed": {"task": "CartPole", "agent": "random", "episodes": episodes},
        "axes": {
            "pole/length": {"linear": [0.3, 2.0], "count": units // 100},
            "seed": {"integers": [0, 99]},
        },
    }
    return plans.load(planning.plan(values, folder, minutes=1e-9).folder)


def names(folder: Path, units: int) -> None:
    """Make the folder of a plan with the names of all finished units but a hundred."""
    from evaluation.sweep import store

    plan = planned(folder, units, 10)
    for number in range(100, len(plan.units)):
        unit_hash = plan.unit_hash
        place = store.folder_of(plan, number)
        place.mkdir(parents=True, exist_ok=True)
        for ending in (store.CELLS, store.ROWS):
            (place / f"{number:07d}-{unit_hash}-{number:016x}{ending}").touch()


def fill(folder: Path, units: int, episodes: int) -> None:
    """Make the folder of a plan with finished units."""
    import pyarrow as pa

    from evaluation.sweep import playing, store
    from evaluation.sweep.bases import evaluate
    from evaluation.sweep.bases.base import PackResults, metrics_table

    plan = planned(folder, units, episodes)
    store.write_whole = _write  # type: ignore[assignment]
    draw = np.random.default_rng(0)
    names = evaluate.NAMES
    for number in range(len(plan.units)):
        unit = plan.units[number]
        cells = [plan.grid.cell(unit.first)]
        lengths = draw.integers(10, 500, episodes).astype(np.int32)
        columns = [
            np.full(episodes, unit.first),
            np.arange(episodes, dtype=np.int32),
            lengths,
            (lengths / 500).astype(np.float32),
            lengths.astype(np.float32),
            lengths < 500,
            np.ones(episodes, bool),
        ]
        rows = pa.Table.from_arrays([pa.array(c) for c in columns], schema=evaluate.ROWS)
        numbers = {k: np.full((1, len(names)), 0.5) for k in ("value", "low", "high")}
        numbers["count"] = np.full((1, len(names)), episodes)
        metrics = metrics_table([unit.first], names, numbers, np.full((1, len(names)), None))
        results_of_unit = playing.with_axes(plan, cells, PackResults(rows, metrics))
        store.write(plan, unit, results_of_unit.rows, results_of_unit.metrics)


def _write(path: Path, content: bytes) -> None:
    """Write a file without waiting for the disk, which takes ten times as long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description="Measure sweeps of many cells and units.")
    parser.add_argument("--units", type=int, default=100_000, metavar="N", help="finished (100000)")
    parser.add_argument(
        "--merged", type=int, default=10_000, metavar="N", help="units that are merged (10000)"
    )
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="of a merged unit (100)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, file = Path(place), Path(place) / "million.toml"
        file.write_text(
            'base = "evaluate"\n[fixed]\nepisodes = 64\n[axes]\n'
            "gravity = {linear = [2, 20], count = 1000}\n"
            '"pole/length" = {log = [0.5, 5], count = 100}\nseed = {integers = [0, 9]}\n'
        )
        results: JsonObject = {"plan of 10^6 cells": command("plan", file, "--out", folder / "m")}
        results["bytes of plan.json"] = (folder / "m" / "plan.json").stat().st_size
        names(folder / "plan", arguments.units)
        results["status"] = command("status", folder / "plan")
        from evaluation.sweep import plans, store

        start = time.perf_counter()
        unfinished = store.unfinished(plans.load(folder / "plan"))
        results["what submit looks for, seconds"] = round(time.perf_counter() - start, 2)
        assert len(unfinished) == 100
        for units in (1000, arguments.merged):
            fill(folder / str(units), units, arguments.episodes)
            results[f"merge of {units} units"] = command("merge", folder / str(units), "--quiet")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
