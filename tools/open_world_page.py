"""Islands of docs/open-world.md: families, and what was measured of them."""

from collections.abc import Iterable, Iterator

from evaluation.json_types import JsonMapping, JsonObject
from jaxsim.novelty import FAMILIES, Family
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS
from tools import open_control_page
from tools.islands import NONE, Islands, measured, table

FILE = "open-world.json"
STARTS = 128
"""Starts that are checked for differences."""
MEASURES = ("cdt", "false_alarms", "mean_delay", "performance_post", "baseline_post")


def islands() -> Islands:
    """Islands of the page."""
    numbers = measured(FILE)
    reports = numbers["reports"].values()
    return {
        "families": families(),
        "calibration": calibration(numbers["calibration"]),
        "evaluations": evaluations(reports),
        "trials": (line for report in reports for line in ("", *trials(report))),
        "missed": (line for report in reports for line in ("", *missed_families(report))),
        "starts": f"{STARTS} other starts",
        "samples": f"{numbers['parity']['samples']:,} samples",
        "parity": parity(numbers["parity"]),
        **open_control_page.islands(),
    }


def families() -> Iterator[str]:
    """Words and parameters of every family."""
    rows = (
        (f"`{family.name}`", _words(family), "; ".join(_parameters(family)))
        for family in FAMILIES.values()
    )
    return table(("family", "entity, attribute, change", "parameters"), rows)


def _words(family: Family) -> str:
    change = " or ".join(filter(None, (family.change, family.lower)))
    return f"{family.entity}, {family.attribute}, {change}"


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


def calibration(samples: JsonMapping) -> Iterator[str]:
    """Difficulties of calibrated samples."""
    rows = (
        (
            f"`{name}`" if name in FAMILIES else name,
            *(row[kind] for kind in ("samples", "same", "lost")),
            ", ".join(f"{q:.2f}" for q in row["control"]),
            ", ".join(f"{q:.0f}" for q in row["first"]),
        )
        for name, row in samples.items()
    )
    head = ("samples of", "number", "nothing differs", "no agent can stand", "control")
    return table((*head, "first tick"), rows)


def missed(report: JsonMapping) -> list[JsonObject]:
    """Rows of families and compositions with a missed trial."""
    rows = [row for row in report["rows"] if row["place"] == "levels"]
    return sorted(
        (row for row in rows if (row["values"]["cdt"] or 0) < 1),
        key=lambda row: row["values"]["cdt"] or 0,
    )


def evaluations(reports: Iterable[JsonMapping]) -> Iterator[str]:
    """Settings and cost of each evaluation, and detection where anything differs."""
    rows = []
    for report in reports:
        settings, timing = report["settings"], report["timing"]
        names = ("novelty_list", "trials", "testing_episodes", "pre_novel_episodes", "seed")
        whole = next(row for row in report["rows"] if row["place"] == "overall")
        same = sum((1 - report["differing"][r["name"]]) * r["trials"] for r in missed(report))
        differ = whole["trials"] - same
        rows.append(
            (
                f"`{report['agent']}`",
                *(settings[name] for name in names),
                f"{timing['steps']:,}",
                f"{sum(timing['processor_seconds'].values()):.0f}",
                f"{differ:,.0f}",
                f"{whole['values']['cdt'] * whole['trials'] / differ:.1%}",
            )
        )
    head = ("agent", "list", "trials of a novelty", "episodes", "before novelty", "seed", "steps")
    return table((*head, "CPU s", "trials that differ, expected", "of these detected"), rows)


def trials(report: JsonMapping) -> Iterator[str]:
    """Detection and performance of an agent, by split and difficulty."""
    rows = (
        (
            row["name"],
            row["trials"],
            *(_cell(row["values"][m], row["intervals"][m]) for m in MEASURES),
        )
        for row in report["rows"]
        if row["place"] != "levels"
    )
    head = ("trials", "detected", "false alarms", "mean delay", "agent", "baseline")
    return table((f"trials of `{report['agent']}`", *head), rows)


def missed_families(report: JsonMapping) -> Iterator[str]:
    """Families with missed trials, and how many of these trials differ from level 200 at all."""
    rows = (
        (
            row["name"],
            row["trials"],
            _cell(row["values"]["cdt"], row["intervals"]["cdt"]),
            f"{report['differing'][row['name']]:.3f}",
        )
        for row in missed(report)
    )
    head = (f"family, `{report['agent']}`", "trials", "detected", "trials that differ, expected")
    return table(head, rows)


def _cell(value: float | None, interval: list[float | None] | None) -> str:
    if value is None:
        return NONE
    ends = [] if interval is None else ["∞" if e is None else f"{e:.3f}" for e in interval]
    return f"{value:.3f}" + (f" ({' to '.join(ends)})" if ends else "")


def parity(comparison: JsonMapping) -> Iterator[str]:
    """Largest errors of a tick beside live PyBullet."""
    words = {"free": "no contact", "wall": "walls", "pair": "blocks", "structure": "cart or pole"}
    rows = (
        (words[kind], f"{row['ticks']:,}", *row["errors"])
        for kind, row in comparison["kinds"].items()
    )
    return table(("ticks", "number", "cart, m/s", "pole, rad/s", "blocks, m/s"), rows)
