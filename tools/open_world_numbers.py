"""Keep the numbers of docs/open-world.md from results of its measurements.

    python -m tools.open_world_numbers --calibration runs/novelty_space.parquet \\
      --report runs/open/report.json --parity runs/parity.txt
    python -m tools.pages docs/open-world.md

They are kept in docs/open-world.json; what is not given stays.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks import novelty_space
from evaluation.files import write_json
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.sailon import novelties
from jaxsim.novelty import FAMILIES
from tools.islands import DOCS, measured
from tools.open_world_page import FILE, MEASURES, STARTS, missed

QUARTILES = (0.25, 0.5, 0.75)


def of_calibration(path: Path) -> JsonObject:
    """Numbers of the page on calibrated samples."""
    table = pq.read_table(path).to_pydict()
    names, degenerate = np.array(table["name"]), np.array(table["degenerate"])
    composed = np.array(["+" in name for name in names])
    groups = {"compositions of two": composed, "all": np.ones(len(names), bool)}
    groups |= {name: names == name for name in FAMILIES}
    rows: JsonObject = {}
    for name, mask in groups.items():
        row: JsonObject = {"samples": int(mask.sum())}
        for kind in ("same", "lost"):
            row[kind] = int((degenerate[mask] == kind).sum())
        for kind in ("control", "first"):
            values = np.array(table[kind])[mask]
            row[kind] = [round(float(q), 3) for q in np.quantile(values, QUARTILES)]
        rows[name] = row
    return rows


def of_report(path: Path) -> JsonObject:
    """Numbers of the page from a report of `jaxsim sailon evaluate --novelties`."""
    report = json.loads(path.read_text(encoding="utf-8"))
    places = ("overall", "splits", "difficulties", "levels")
    rows = []
    for place in places:
        for row in report[place]:
            # Of families, only those with a missed trial.
            if row["visibility"] == 0 and (place != "levels" or (row["cdt"] or 0) < 1):
                name = " ".join(str(row[k]) for k in ("level", "difficulty") if row[k] is not None)
                values = {m: row[m] for m in MEASURES}
                intervals = {m: row["intervals"][m] for m in MEASURES}
                entry = {"place": place, "name": name or "all", "trials": row["trials"]}
                rows.append({**entry, "values": values, "intervals": intervals})
    agent = report["agent"]["agent"]
    settings = report["experiment"]["settings"]
    timing = report.get("timing", {})
    return {"agent": agent, "settings": settings, "timing": timing, "rows": rows}


def differing(report: JsonMapping, starts: int) -> dict[str, float]:
    """Expected share of trials in which any report differs, for families with a missed trial.

    It follows from the share of other starts in which a report differs from that of the nominal
    world; see `benchmarks.novelty_space`.
    """
    settings = report["settings"]
    novel = settings["testing_episodes"] - settings["pre_novel_episodes"]
    names = {row["name"] for row in missed(report)}
    entries = novelties.load(settings["novelty_list"]).part(settings["samples"], settings["split"])
    sampled = [entry.novelty for entry in entries if entry.novelty.name in names]
    shares: dict[str, list[float]] = {}
    for group in novelty_space.groups(sampled):
        _, differs = novelty_space.first_differences(group, starts, settings["seed"])
        for place, share in zip(group.places, differs, strict=True):
            whole = 1 - (1 - float(share)) ** novel
            shares.setdefault(sampled[place].name, []).append(whole)
    return {name: round(float(np.mean(values)), 4) for name, values in shares.items()}


def of_parity(path: Path) -> JsonObject:
    """Read the numbers in the output of `python -m tests.parity.bullet_novelties`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if "samples; largest errors" in line)
    comparison: JsonObject = {"samples": int(lines[start].split()[0]), "kinds": {}}
    for line in lines[start + 1 :]:
        if line.startswith(" "):
            break
        kind, _, rest = line.partition(": ")
        ticks, _, numbers = rest.partition(" ticks, ")
        comparison["kinds"][kind] = {"ticks": int(ticks), "errors": numbers.split()}
    return comparison


def main() -> None:
    """Reduce the given files to numbers, and keep them."""
    parser = argparse.ArgumentParser(description="Keep the page's numbers of the open world.")
    parser.add_argument("--calibration", type=Path, metavar="FILE", help="of novelty_space")
    parser.add_argument(
        "--report", type=Path, action="append", default=[], metavar="FILE", help="report.json"
    )
    parser.add_argument("--parity", type=Path, metavar="FILE", help="output of bullet_novelties")
    a = parser.parse_args()
    numbers: JsonObject = measured(FILE)
    if a.calibration:
        numbers["calibration"] = of_calibration(a.calibration)
    for path in a.report:
        report = of_report(path)
        report["differing"] = differing(report, STARTS)
        numbers["reports"][report["agent"]] = report
    if a.parity:
        numbers["parity"] = of_parity(a.parity)
    write_json(DOCS / FILE, numbers)


if __name__ == "__main__":
    main()
