"""Write the generated parts of docs/open-world.md, between its markers.

    python -m tools.open_world_page --out docs/open-world.md
    python -m tools.open_world_page --calibration runs/novelty_space.parquet \\
      --report runs/open/report.json --parity runs/parity.txt --out docs/open-world.md

Families come from the code and the shipped list from its file. Given files are reduced to the
numbers on the page, which are stored in `docs/open-world.json`; the other numbers stay.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import novelty_space
from benchmarks.pages import replaced
from evaluation.files import write_json, write_whole
from evaluation.sailon import novelties
from jaxsim.novelty import FAMILIES, Family
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS

NONE = "–"
STARTS = 128
"""Starts that are checked for differences."""
QUARTILES = (0.25, 0.5, 0.75)
MEASURES = ("cdt", "false_alarms", "mean_delay", "performance_post", "baseline_post")
HEADINGS = "| trials of | trials | detected | false alarms | mean delay | agent | baseline |"


def families() -> Iterator[str]:
    """The table of families."""
    yield "| family | entity, attribute, change | parameters |"
    yield "| --- | --- | --- |"
    for family in FAMILIES.values():
        change = " or ".join(filter(None, (family.change, family.lower)))
        words = f"{family.entity}, {family.attribute}, {change}"
        yield f"| `{family.name}` | {words} | {'; '.join(_parameters(family))} |"


def _parameters(family: Family) -> Iterator[str]:
    for one in family.ranges:
        row = PARAMETERS[one.path]
        spans = " or ".join(f"{low:g} to {high:g}" for low, high in one.spans)
        scale = f", {one.scale}" if one.scale != "linear" else ""
        yield f"`{one.path}` {spans}{f' {row.unit}' if row.unit else ''}{scale}"
        for path, factor, summand in one.linked:
            times = f"{factor:g} times that" if factor != 1 else "that"
            yield f"`{path}` {times}{f' plus {summand:g}' if summand else ''}"
    yield from (f"`{path}` {value:g}" for path, value in family.fixed)
    if family.choices:
        yield "one of " + ", ".join(f"`{p}` {v:g}" for group in family.choices for p, v in group)


def of_calibration(path: Path) -> dict[str, Any]:
    """Numbers of the page on calibrated samples."""
    table = pq.read_table(path).to_pydict()
    names, degenerate = np.array(table["name"]), np.array(table["degenerate"])
    composed = np.array(["+" in name for name in names])
    groups = {"compositions of two": composed, "all": np.ones(len(names), bool)}
    groups |= {name: names == name for name in FAMILIES}
    rows: dict[str, Any] = {}
    for name, mask in groups.items():
        row: dict[str, Any] = {"samples": int(mask.sum())}
        for kind in ("same", "lost"):
            row[kind] = int((degenerate[mask] == kind).sum())
        for kind in ("control", "first"):
            values = np.array(table[kind])[mask]
            row[kind] = [round(float(q), 3) for q in np.quantile(values, QUARTILES)]
        rows[name] = row
    return rows


def calibration(rows: Mapping[str, Any]) -> Iterator[str]:
    """The table of calibrated samples."""
    yield "Difficulties are quartiles: a quarter of the samples is below the first number."
    yield ""
    yield "| samples of | number | nothing differs | no agent can stand | control | first tick |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, row in rows.items():
        label = f"`{name}`" if name in FAMILIES else name
        control = ", ".join(f"{q:.2f}" for q in row["control"])
        first = ", ".join(f"{q:.0f}" for q in row["first"])
        counts = " | ".join(str(row[kind]) for kind in ("samples", "same", "lost"))
        yield f"| {label} | {counts} | {control} | {first} |"


def of_report(path: Path) -> dict[str, Any]:
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


def differing(report: Mapping[str, Any], starts: int) -> dict[str, float]:
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


def missed(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of families and compositions with a missed trial."""
    rows = [row for row in report["rows"] if row["place"] == "levels"]
    return sorted(
        (row for row in rows if (row["values"]["cdt"] or 0) < 1),
        key=lambda row: row["values"]["cdt"] or 0,
    )


def measured(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Tables of evaluations and of the comparison with PyBullet."""
    for report in numbers.get("reports", {}).values():
        yield from _report(report)
    if "parity" in numbers:
        yield from _parity(numbers["parity"])


def _report(report: Mapping[str, Any]) -> Iterator[str]:
    settings, timing = report["settings"], report["timing"]
    seconds = sum(timing.get("processor_seconds", {}).values())
    yield f"### `{report['agent']}`"
    yield ""
    yield (
        f"{settings['novelty_list']}, {settings['trials']} trials of each novelty of "
        f"{settings['testing_episodes']} episodes, {settings['pre_novel_episodes']} of them before "
        f"novelty, seed {settings['seed']}, without hints: {timing.get('steps', 0):,} steps in "
        f"{seconds:.0f} s of CPU time, with compilation of programs that were not cached. Mean "
        "delay of detected trials, in episodes; performance from the first novel episode on. 95 % "
        "intervals."
    )
    yield ""
    yield HEADINGS
    yield "| --- " * (HEADINGS.count("|") - 1) + "|"
    for row in report["rows"]:
        if row["place"] != "levels":
            yield _row(row)
    yield ""
    yield from _missed(report)


def _missed(report: Mapping[str, Any]) -> Iterator[str]:
    """Families with missed trials, and how many of these trials differ from level 200 at all."""
    differ = report["differing"]
    whole = next(row for row in report["rows"] if row["place"] == "overall")
    without = sum((1 - differ[row["name"]]) * row["trials"] for row in missed(report))
    detected = whole["values"]["cdt"] * whole["trials"]
    yield (
        "Trials of these families were missed. Some of them have nothing to detect: the novelty "
        "shows only in hits, or at the end of an episode, and there may be none. The share of "
        f"trials in which any report differs is estimated from {STARTS} other starts of each "
        "novelty. "
        f"Of the {whole['trials'] - without:,.0f} trials that are expected to differ, "
        f"{detected / (whole['trials'] - without):.1%} are detected."
    )
    yield ""
    yield "| family | trials | detected | trials that differ, expected |"
    yield "| --- | --- | --- | --- |"
    for row in missed(report):
        cell = _cell(row["values"]["cdt"], row["intervals"]["cdt"])
        yield f"| {row['name']} | {row['trials']} | {cell} | {differ[row['name']]:.3f} |"
    yield ""


def _row(row: Mapping[str, Any]) -> str:
    cells = [_cell(row["values"][m], row["intervals"][m]) for m in MEASURES]
    return f"| {row['name']} | {row['trials']} | {' | '.join(cells)} |"


def _cell(value: float | None, interval: list[float | None] | None) -> str:
    if value is None:
        return NONE
    ends = [] if interval is None else ["∞" if e is None else f"{e:.3f}" for e in interval]
    return f"{value:.3f}" + (f" ({' to '.join(ends)})" if ends else "")


def of_parity(path: Path) -> dict[str, Any]:
    """Read the numbers in the output of `python -m tests.parity.bullet_novelties`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if "samples; largest errors" in line)
    comparison: dict[str, Any] = {"samples": int(lines[start].split()[0]), "kinds": {}}
    for line in lines[start + 1 :]:
        if line.startswith(" "):
            break
        kind, _, rest = line.partition(": ")
        ticks, _, numbers = rest.partition(" ticks, ")
        comparison["kinds"][kind] = {"ticks": int(ticks), "errors": numbers.split()}
    return comparison


def _parity(comparison: Mapping[str, Any]) -> Iterator[str]:
    yield "### One tick beside live PyBullet"
    yield ""
    yield (
        f"{comparison['samples']:,} samples of the families that a scene of PyBullet can express, "
        "an episode each with `pd`: largest errors of our tick from each of its states, in "
        "double precision (`python -m tests.parity.bullet_novelties`)."
    )
    yield ""
    yield "| ticks | number | cart, m/s | pole, rad/s | blocks, m/s |"
    yield "| --- | --- | --- | --- | --- |"
    words = {"free": "no contact", "wall": "walls", "pair": "blocks", "structure": "cart or pole"}
    for kind, row in comparison["kinds"].items():
        yield f"| {words[kind]} | {row['ticks']:,} | {' | '.join(row['errors'])} |"


def island(text: str, name: str, lines: Iterator[str]) -> str:
    """Replace one generated part of the page."""
    begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    return replaced(text, begin, end, ["", *lines, ""])


def page(text: str, numbers: Mapping[str, Any]) -> str:
    """The page with its generated parts."""
    text = island(text, "families", families())
    if "calibration" in numbers:
        text = island(text, "calibration", calibration(numbers["calibration"]))
    return island(text, "measured", measured(numbers))


def main() -> None:
    """Reduce the given files to numbers, and write the page."""
    parser = argparse.ArgumentParser(description="Write the generated parts of a page.")
    parser.add_argument("--calibration", type=Path, metavar="FILE", help="of novelty_space")
    parser.add_argument(
        "--report", type=Path, action="append", default=[], metavar="FILE", help="report.json"
    )
    parser.add_argument("--parity", type=Path, metavar="FILE", help="output of bullet_novelties")
    parser.add_argument("--numbers", type=Path, default=Path("docs/open-world.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/open-world.md"))
    a = parser.parse_args()
    numbers: dict[str, Any] = json.loads(a.numbers.read_text()) if a.numbers.exists() else {}
    if a.calibration:
        numbers["calibration"] = of_calibration(a.calibration)
    for path in a.report:
        report = of_report(path)
        report["differing"] = differing(report, STARTS)
        numbers.setdefault("reports", {})[report["agent"]] = report
    if a.parity:
        numbers["parity"] = of_parity(a.parity)
    write_json(a.numbers, numbers)
    write_whole(a.out, page(a.out.read_text(encoding="utf-8"), numbers))


if __name__ == "__main__":
    main()
