"""Islands of docs/sailon.md on detection, characterisation and the time of evaluations."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scipy import stats

from benchmarks import detection
from evaluation.json_types import JsonMapping
from tools.islands import DOCS, NONE, Islands, measured, table
from tools.sailon_control import HARD, NOMINAL, Cell, name_of
from tools.sailon_evaluations import FILE, command

ORIGINAL_STEPS = 18_600  # environment steps a CPU-second of one process of the original

PUBLISHED_DETECTION: Mapping[int, tuple[int, int, str]] = {
    201: (4, 1, "6"),
    202: (3, 3, "0, 0, 0"),
    203: (4, 4, "1, 4, 5, 2"),
    204: (4, 4, "0, 3, 3, 3"),
    205: (4, 0, ""),
    206: (4, 4, "0, 2, 0, 0"),
    207: (4, 4, "7, 13, 5, 4"),
    101: (1, 0, ""),
    103: (1, 1, "1"),
    107: (1, 0, ""),
}
"""Trials, those with correct detection, and delays of the published agent at hard."""

EXPECTED: Mapping[Cell, float] = {(203, "easy"): 0.566, (203, "medium"): 0.854, (203, HARD): 0.973}
"""Share of episodes in which a block is aimed; the others do not differ from level 200."""


def islands() -> Islands:
    """Islands on detection."""
    singles = detection.load(DOCS / "sailon-detection.json")
    return islands_of(measured(FILE), singles)


def islands_of(evaluations: list[Any], singles: JsonMapping) -> Islands:
    """Islands of evaluations, and of detection in single episodes."""
    episodes = singles["rows"][0].episodes
    return {
        "totals": totals(evaluations),
        "detection": trials(evaluations, singles["rows"]),
        "single episodes": f"`{singles['agent']}`, seed {singles['seed']}, {episodes} a cell",
        "false alarms": false_alarms(evaluations),
        "time": time(evaluations),
    }


def trials(evaluations: list[Any], singles: list[detection.CellDetections]) -> Iterator[str]:
    """Detection in the trials of each evaluation, cell by cell."""
    by_name = {name_of((row.level, row.difficulty)): row for row in singles}
    for evaluation in evaluations:
        if not (cells := _novel(evaluation)):
            continue
        if evaluation["agent"].endswith("residual"):
            heading = "single episodes detected"
            more: Callable[[Cell], str] = lambda cell: _single(by_name, cell)  # noqa: E731
        else:
            heading, more = "the published agent: detected (delays)", _published
        head = ("cell", "trials", "CDT", "false alarms", "delay: median (mean)", heading)
        slots = ("level", "entity", "attribute", "change")
        yield from ("", f"`{command(evaluation)}`", "")
        yield from table((*head, *slots), (_trials(cell, more) for cell in cells))


def _novel(evaluation: JsonMapping) -> list[Any]:
    """Cells of novel levels without an indicator."""
    cells = evaluation["cells"]
    return [cell for cell in cells if cell["visibility"] == 0 and cell["level"] != NOMINAL]


def _trials(cell: JsonMapping, more: Callable[[Cell], str]) -> list[str]:
    median = cell["median_delay"]
    return [
        f"{cell['level']} {cell['difficulty']}",
        str(cell["trials"]),
        _share(cell["cdt"], cell["intervals"]["cdt"]),
        _number(cell["false_alarms"]),
        NONE if median is None else f"{median:g} ({cell['mean_delay']:.2f})",
        more((cell["level"], cell["difficulty"])),
        _number(cell["level_accuracy_found"]),
        *(_number(cell[f"{slot}_accuracy"]) for slot in ("entity", "attribute", "change")),
    ]


def _share(value: float | None, interval: Any) -> str:
    if value is None:
        return NONE
    if not interval:
        return f"{value:.2f}"
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _single(rows: Mapping[str, detection.CellDetections], cell: Cell) -> str:
    row = rows.get(name_of(cell))
    if row is None:
        return NONE
    low, high = stats.binomtest(row.detected, row.episodes).proportion_ci(method="wilson")
    expected = f"; {EXPECTED[cell]:.3f} differ" if cell in EXPECTED else ""
    return f"{row.detected / row.episodes:.3f} [{low:.3f}, {high:.3f}]{expected}"


def _published(cell: Cell) -> str:
    published = PUBLISHED_DETECTION.get(cell[0]) if cell[1] == HARD else None
    if published is None:
        return NONE
    number, detected, delays = published
    return f"{detected} of {number}" + (f" ({delays})" if delays else "")


def totals(evaluations: list[Any]) -> Iterator[str]:
    """Trials that each evaluation detects, over all novel cells."""
    rows = []
    for evaluation in evaluations:
        if not (cells := _novel(evaluation)):
            continue
        number = sum(cell["trials"] for cell in cells)
        detected = sum(round(cell["cdt"] * cell["trials"]) for cell in cells)
        whole = sum(cell["cdt"] == 1 for cell in cells)
        named = [cell for cell in cells if cell["level_accuracy_found"] is not None]
        right = sum(c["level_accuracy_found"] * c["cdt"] * c["trials"] for c in named)
        share = f"{right / max(detected, 1):.1%}"
        all_of = f"{whole} of {len(cells)} cells"
        rows.append((f"`{evaluation['agent']}`", f"{detected} of {number}", all_of, share))
    head = ("agent", "trials detected", "every trial detected", "level named, of those detected")
    return table(head, rows)


def false_alarms(evaluations: list[Any]) -> Iterator[str]:
    """Trials of level 200 with a false alarm."""
    rows = []
    for evaluation in evaluations:
        cells = evaluation["cells"]
        quiet = [cell for cell in cells if cell["level"] == NOMINAL and cell["visibility"] == 0]
        if number := sum(cell["trials"] for cell in quiet):
            alarms = sum(round(cell["false_alarms"] * cell["trials"]) for cell in quiet)
            low, high = stats.binomtest(alarms, number).proportion_ci(method="wilson")
            episodes = evaluation["settings"]["testing_episodes"]
            result = f"{alarms} of {number} trials [{low:.3f}, {high:.3f}]"
            rows.append((f"`{command(evaluation)}`", episodes, result))
    return table(("command", "episodes of a trial", "false alarms"), rows)


def time(evaluations: list[Any]) -> Iterator[str]:
    """How long evaluations take."""
    rows = []
    for evaluation in evaluations:
        timing = evaluation["timing"]
        seconds, processor = sum(timing["seconds"].values()), timing.get("processor_seconds")
        both = timing["steps"] * 2 / len(timing["seconds"])
        number = sum(cell["trials"] for cell in evaluation["cells"])
        rows.append(
            (
                f"`{evaluation['agent']}`",
                f"{len(evaluation['cells'])} cells, {number} trials",
                f"{timing['steps']:,}",
                f"{seconds:,.0f} s",
                f"{sum(processor.values()):,.0f} s" if processor else NONE,
                f"{both / ORIGINAL_STEPS:,.0f} s",
            )
        )
    original = f"the original's steps at {ORIGINAL_STEPS:,} a CPU-second"
    return table(("agent", "what", "steps", "wall clock", "CPU time", original), rows)
