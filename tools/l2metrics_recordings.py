"""Records results of l2metrics 3.1 for the random lifetimes of the tests.

    python -m tools.l2metrics_recordings --peer peer/bin/python

`benchmarks.l2metrics` says how to make the peer's environment.
"""

import argparse
import csv
import gzip
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from evaluation.json_types import JsonObject
from tests.evaluation.l2m.random_logs import write_case

SEEDS = range(16)
OUT = Path(__file__).parents[1] / "tests" / "data" / "l2m" / "l2metrics_3_1.json.gz"
LEFT_OUT = ("run_id", "runtime", "complexity", "difficulty", "scenario_type", "metrics_column")


def record(peer: str, seed: int) -> list[JsonObject]:
    """Run the peer on one case; one mapping for each call that computes metrics."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "l2data" / "taskinfo").mkdir(parents=True)
        environment = os.environ | {"L2DATA": str(root / "l2data")}
        for words in write_case(root, seed):
            command = [peer, "-m", "l2metrics", *words, "-O", "out", "-o", "out", "--no-plot"]
            subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
            if "-s" in words:
                continue
            metrics = json.loads((root / "out" / "out_metrics.json").read_text())
            with (root / "out" / "out_regime.tsv").open(newline="") as stream:
                regimes = list(csv.DictReader(stream, delimiter="\t"))
            results.append({"arguments": words, "metrics": _strict(metrics), "regimes": regimes})
    return results


def _strict(value: Any) -> Any:
    """The same values as strict JSON, twelve digits of each number."""
    if isinstance(value, dict):
        return {name: _strict(part) for name, part in value.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [_strict(part) for part in value]
    if isinstance(value, float):
        return None if value != value else float(f"{value:.12g}")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="python of an environment with l2metrics 3.1")
    peer = os.path.abspath(parser.parse_args().peer)
    content = {str(seed): record(peer, seed) for seed in SEEDS}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))


if __name__ == "__main__":
    main()
