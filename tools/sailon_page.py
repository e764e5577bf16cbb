"""Write measurements into docs/sailon.md, between its two markers.

    python -m tools.sailon_page docs --out docs/sailon.md
    python -m tools.sailon_page docs --add runs/evaluation/report.json --out docs/sailon.md

The folder holds `sailon-control.json` and `sailon-detection.json` of the benchmarks of these names,
and `sailon-evaluations.json`, the numbers of the page from each added report of `jaxsim sailon
evaluate`. Parts without a file are missing on the page.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import control, detection
from benchmarks.pages import add_out, put, replaced
from benchmarks.scores import Score, holm
from evaluation.files import write_json
from jaxsim.agents import mpc
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, EVALUATED

BEGIN, END = "<!-- measured: generated -->", "<!-- measured: end -->"
CONTROL, DETECTION, EVALUATIONS = (
    f"sailon-{name}.json" for name in ("control", "detection", "evaluations")
)
NONE = "–"
SIGNIFICANT = 0.05
NOMINAL = 200
HARD = "hard"
NOMINAL_NAME = str(NOMINAL)
TRIALS, USUAL, NOVEL = 60, 20, 25
"""Trials of a cell in the full evaluation, both visibilities together, and episodes of level 200
before the button and of the cell's own level after it in each."""
ORIGINAL_STEPS = 18_600  # environment steps a CPU-second of one process of the original

Cell = tuple[int, str]

PUBLISHED: Mapping[Cell, tuple[float, float, int]] = {
    (200, HARD): (0.900, 0.036, 200),
    (201, "easy"): (0.815, 0.064, 100),
    (201, "medium"): (0.754, 0.071, 100),
    (201, HARD): (0.675, 0.075, 100),
    (202, "easy"): (0.860, 0.060, 100),
    (202, "medium"): (0.811, 0.070, 100),
    (202, HARD): (0.762, 0.072, 100),
    (203, "easy"): (0.678, 0.069, 100),
    (203, "medium"): (0.539, 0.071, 100),
    (203, HARD): (0.411, 0.063, 100),
    (204, "easy"): (0.930, 0.040, 100),
    (204, "medium"): (0.896, 0.042, 100),
    (204, HARD): (0.890, 0.047, 100),
    (205, "easy"): (0.888, 0.054, 100),
    (205, "medium"): (0.913, 0.048, 100),
    (205, HARD): (0.924, 0.043, 100),
    (206, "easy"): (0.864, 0.056, 100),
    (206, "medium"): (0.778, 0.073, 100),
    (206, HARD): (0.680, 0.082, 100),
    (207, "easy"): (0.854, 0.056, 100),
    (207, "medium"): (0.721, 0.058, 100),
    (207, HARD): (0.600, 0.059, 100),
    (101, HARD): (0.888, 0.053, 100),
    (102, HARD): (1.000, 0.000, 100),
    (103, HARD): (0.979, 0.021, 100),
    (104, HARD): (0.823, 0.060, 100),
    (105, HARD): (0.876, 0.056, 100),
    (106, HARD): (0.925, 0.042, 100),
}
"""Mean performance, half its 95 % interval and episodes of the published agent's controller on the
original simulator, measured with the agent's own code."""

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

TARGETS: Mapping[Cell, float] = {
    (200, HARD): 0.95,
    (201, HARD): 0.88,
    (202, HARD): 0.80,
    (203, HARD): 0.77,
    (204, HARD): 0.90,
    (206, HARD): 0.64,
    (207, HARD): 0.87,
    (208, HARD): 0.60,
    (101, HARD): 0.85,
    (104, HARD): 0.85,
}
"""Target mean performance of `mpc`."""

EXPECTED: Mapping[Cell, float] = {(203, "easy"): 0.566, (203, "medium"): 0.854, (203, HARD): 0.973}
"""Share of episodes in which a block is aimed; the others do not differ from level 200."""

KEPT = (
    "cdt",
    "false_alarms",
    "median_delay",
    "mean_delay",
    "performance_pre",
    "performance_post",
    "level_accuracy_found",
    "entity_accuracy",
    "attribute_accuracy",
    "change_accuracy",
)
"""Numbers of the page from a cell of a report."""


def kept(report: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a report of `jaxsim sailon evaluate` that are stored.

    Raises:
      ValueError: it is not a report.
    """
    try:
        settings = report["experiment"]["settings"]
        names = ("seed", "trials", "testing_episodes", "pre_novel_episodes")
        cells = [
            {
                **{name: cell[name] for name in ("level", "difficulty", "visibility", "trials")},
                **{name: cell[name] for name in KEPT},
                "intervals": {name: cell["intervals"][name] for name in KEPT},
            }
            for cell in report["cells"]
        ]
        return {
            "agent": report["agent"]["agent"],
            "baseline": report["baseline"]["agent"],
            "versions": report["agent"]["versions"],
            "settings": {name: settings[name] for name in names},
            "timing": report["timing"],
            "cells": cells,
        }
    except (KeyError, TypeError) as error:
        raise ValueError("that is not a report.json of jaxsim sailon evaluate") from error


# Tables -----------------------------------------------------------------------------------------


def table(header: list[str], body: list[list[str]]) -> Iterator[str]:
    """Lines of a table."""
    yield ""
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join('---' for _ in header)} |"
    for row in body:
        yield f"| {' | '.join(row)} |"


def one_difficulty(level: int) -> bool:
    """Whether a level is the same at every difficulty."""
    return len(list(detection.cells([level], ["easy", "hard"]))) == 1


def name_of(cell: Cell) -> str:
    """Name of a cell; without a difficulty if there is only one."""
    return str(cell[0]) if one_difficulty(cell[0]) else f"{cell[0]} {cell[1]}"


@dataclass(frozen=True)
class Paired:
    """One agent beside `pd` on the same episodes of a cell."""

    cell: Cell
    differences: np.ndarray  # of performance, episode by episode

    @property
    def score(self) -> Score:
        """Mean difference."""
        return Score.of(self.differences)

    @property
    def p(self) -> float:
        """P-value of the paired t-test, two-sided; 1 if no episode differs."""
        if not self.differences.any():
            return 1.0
        return float(stats.ttest_1samp(self.differences, 0.0).pvalue)


def paired(measurement: control.Measurement, agent: str) -> list[Paired]:
    """Every cell that an agent and `pd` have played."""
    out = []
    for row in measurement.rows:
        other = measurement.find(row.level, row.difficulty, agent)
        if row.agent == "pd" and other is not None:
            difference = other.performances - row.performances[: len(other.lengths)]
            out.append(Paired((row.level, row.difficulty), difference))
    return out


def _control_rows(measurement: control.Measurement) -> Iterator[list[str]]:
    pairs = paired(measurement, "mpc")
    adjusted = dict(zip((p.cell for p in pairs), holm(np.array([p.p for p in pairs])), strict=True))
    order = {level: place for place, level in enumerate(EVALUATED)}
    difficulty = {"easy": 0, "medium": 1, "hard": 2}
    for one in sorted(pairs, key=lambda p: (order[p.cell[0]], difficulty[p.cell[1]])):
        pd, mpc = (measurement.find(*one.cell, name) for name in ("pd", "mpc"))
        assert pd is not None
        assert mpc is not None
        best = measurement.find(*one.cell, "clairvoyant")
        published = PUBLISHED.get(one.cell)
        values = mpc.performances
        yield [
            name_of(one.cell),
            str(len(values)),
            str(Score.of(pd.performances)),
            str(Score.of(values)),
            f"{(values >= 1).mean():.2f}",
            f"{one.score.mean:+.3f} ± {one.score.half:.3f}",
            f"{adjusted[one.cell]:.2g}",
            NONE if published is None else f"{published[0]:.3f} ± {published[1]:.3f}",
            NONE if best is None else f"{Score.of(best.performances)} ({len(best.lengths)})",
        ]


def control_part(measurement: control.Measurement) -> Iterator[str]:
    """The section on controllers."""
    yield "### Control"
    yield ""
    yield (
        f"Mean performance with half its 95 % interval, {measurement.episodes} episodes a cell of "
        f"seed {measurement.seed}, which no setting was chosen on; all agents play the same "
        "episodes. A level without a difficulty is the same at all three. The published agent's "
        "controller was "
        "measured by itself, on the original and its own seeds, in 100 episodes a cell (200 of "
        "level 200). P-values are of paired t-tests, corrected by Holm's method over all cells of "
        "the table."
    )
    header = ["cell", "episodes", "`pd`", "`mpc`", "to the end", "`mpc` − `pd`", "p (Holm)"]
    body = list(_control_rows(measurement))
    if any(row.agent == "clairvoyant" for row in measurement.rows):
        yield ""
        yield (
            "`clairvoyant` is the planner with the simulator's state, the level and a larger "
            "budget, in as many episodes as its brackets say, the first ones of the same: a mark, "
            "and no agent."
        )
        yield from table([*header, "published", "clairvoyant"], body)
    else:
        yield from table([*header, "published"], [row[:-1] for row in body])
    yield ""
    compared = paired(measurement, "mpc")
    adjusted = holm(np.array([one.p for one in compared]))
    pairs = list(zip(compared, adjusted, strict=True))
    worse = [name_of(one.cell) for one, p in pairs if p < SIGNIFICANT and one.score.mean < 0]
    better = sum(p < SIGNIFICANT and one.score.mean > 0 for one, p in pairs)
    yield (
        f"`mpc` is significantly better than `pd` in {better} of {len(compared)} cells, and "
        f"significantly worse in {', '.join(worse) or 'none'}."
    )
    yield from table(
        ["cell", "wanted", "`mpc`", "reached"],
        [_target(measurement.find(*cell, "mpc"), cell, target) for cell, target in TARGETS.items()],
    )
    yield ""
    yield from _searching(measurement)


def _target(row: control.Row | None, cell: Cell, target: float) -> list[str]:
    if row is None:
        return [name_of(cell), f"{target:.2f}", "not measured", NONE]
    score = Score.of(row.performances)
    word = "yes" if score.mean >= target else "no"
    if word == "no" and score.mean + score.half >= target:
        word = "no, but within the interval"
    return [name_of(cell), f"{target:.2f}", str(score), word]


def _searching(measurement: control.Measurement) -> Iterator[str]:
    rows = [row for row in measurement.rows if row.agent == "mpc"]
    counted = [row for row in rows if row.rollouts is not None]
    if not rows:
        return
    times = sorted(row.milliseconds for row in rows)
    yield (
        f"A decision of `mpc` with the step of the simulator takes {times[0]:.2f} to "
        f"{times[-1]:.2f} ms of the processor in these batches of 128 lanes, by cell."
    )
    if counted:
        least, most = (f(row.rollouts or 0.0 for row in counted) for f in (min, max))
        all_of_them = mpc.ELITES + 2 + mpc.BUDGET.candidates * mpc.BUDGET.generations
        yield (
            f"It follows {least:.0f} to {most:.0f} futures of 60 ticks, by cell; an agent that "
            f"searched in every tick would follow {all_of_them}."
        )
        yield from _whole(counted)
    yield ""


def _whole(rows: list[control.Row]) -> Iterator[str]:
    """Estimated cost of the full evaluation of `mpc`, from the measured cost of its cells."""
    of = {name_of((row.level, row.difficulty)): row for row in rows}
    cells = [(level, difficulty) for level in EVALUATED for difficulty in DIFFICULTIES]
    if NOMINAL_NAME not in of or any(name_of(cell) not in of for cell in cells):
        return
    seconds = futures = 0.0
    for cell in cells:
        for row, episodes in ((of[NOMINAL_NAME], USUAL), (of[name_of(cell)], NOVEL)):
            decisions = TRIALS * episodes * float(np.mean(row.lengths))
            seconds += 1e-3 * row.milliseconds * decisions
            futures += (row.rollouts or 0.0) * decisions
    yield (
        "By these numbers, `jaxsim sailon evaluate --agent mpc+residual --trials 30` follows "
        f"{futures / 1e9:.1f} billion futures, in {seconds / 3600:.2f} hours of the processor."
    )


def _share(value: float | None, interval: Any) -> str:
    if value is None:
        return NONE
    if not interval:
        return f"{value:.2f}"
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _trial_row(cell: Mapping[str, Any], more: Callable[[Cell], list[str]]) -> list[str]:
    median = cell["median_delay"]
    return [
        f"{cell['level']} {cell['difficulty']}",
        str(cell["trials"]),
        NONE if cell["level"] == NOMINAL else _share(cell["cdt"], cell["intervals"]["cdt"]),
        _number(cell["false_alarms"]),
        NONE if median is None else f"{median:g} ({cell['mean_delay']:.2f})",
        *more((cell["level"], cell["difficulty"])),
        _number(cell["level_accuracy_found"]),
        *(_number(cell[f"{slot}_accuracy"]) for slot in ("entity", "attribute", "change")),
    ]


def _single(rows: Mapping[Cell, detection.Row], cell: Cell) -> list[str]:
    row = rows.get((cell[0], "easy") if one_difficulty(cell[0]) else cell)
    if row is None:
        return [NONE]
    low, high = stats.binomtest(row.found, row.episodes).proportion_ci(method="wilson")
    expected = f"; {EXPECTED[cell]:.3f} differ" if cell in EXPECTED else ""
    return [f"{row.found / row.episodes:.3f} [{low:.3f}, {high:.3f}]{expected}"]


def _published(cell: Cell) -> list[str]:
    published = PUBLISHED_DETECTION.get(cell[0]) if cell[1] == HARD else None
    if published is None:
        return [NONE]
    trials, detected, delays = published
    return [f"{detected} of {trials}" + (f" ({delays})" if delays else "")]


def _command(evaluation: Mapping[str, Any]) -> str:
    levels = sorted({cell["level"] for cell in evaluation["cells"]})
    visibilities = sorted({cell["visibility"] for cell in evaluation["cells"]})
    parts = [f"jaxsim sailon evaluate --agent {evaluation['agent']}"]
    if set(levels) != set(EVALUATED):
        parts.append(f"--levels {','.join(map(str, levels))}")
    difficulties = list(dict.fromkeys(cell["difficulty"] for cell in evaluation["cells"]))
    if len(difficulties) < 3:
        parts.append(f"--difficulties {','.join(difficulties)}")
    if len(visibilities) < 2:
        parts.append(f"--visibilities {visibilities[0]}")
    settings = evaluation["settings"]
    parts.append(f"--trials {settings['trials']} --seed {settings['seed']} --out DIR")
    return " ".join(parts)


def detection_part(evaluations: list[Any], singles: Mapping[str, Any] | None) -> Iterator[str]:
    """The section on detectors."""
    rows = {(r.level, r.difficulty): r for r in singles["rows"]} if singles else {}
    yield "### Detection and characterisation"
    yield ""
    yield (
        "System detection: the agent gets no indicator. Trials have 45 episodes, novel from "
        "episode 20 on. CDT is the share of trials with a report after the button and none before "
        "it, with Wilson's 95 % interval; false alarms are the share of trials with one before the "
        "button; "
        "delays are in episodes. The level counts in trials that were detected; entity, attribute "
        "and change count in all trials, against the words of the generator's own hints."
    )
    for evaluation in evaluations:
        silent = [c for c in evaluation["cells"] if c["visibility"] == 0 and c["level"] != NOMINAL]
        if not silent:
            continue
        ours = evaluation["agent"].endswith("residual")
        yield ""
        yield f"`{_command(evaluation)}`"
        if ours:
            heading = "single episodes found"
            more: Callable[[Cell], list[str]] = lambda cell: _single(rows, cell)  # noqa: E731
        else:
            heading, more = "the published agent: found (delays)", _published
        header = ["cell", "trials", "CDT", "false alarms", "delay: median (mean)", heading]
        header += ["level", "entity", "attribute", "change"]
        yield from table(header, [_trial_row(cell, more) for cell in silent])
        yield ""
        yield from _sums(evaluation["agent"], silent)
    yield from _singles(singles)
    yield from _alarms(evaluations)


def _sums(agent: str, cells: list[Any]) -> Iterator[str]:
    whole = [cell for cell in cells if cell["cdt"] == 1]
    trials = sum(cell["trials"] for cell in cells)
    detected = sum(round(cell["cdt"] * cell["trials"]) for cell in cells)
    named = [c for c in cells if c["level_accuracy_found"] is not None]
    share = sum(c["level_accuracy_found"] * c["cdt"] * c["trials"] for c in named)
    text = f"`{agent}` detects {detected} of {trials} trials, all of {len(whole)} of {len(cells)} "
    text += f"cells, and names the level of {share / max(detected, 1):.1%} of those that it finds."
    yield text


def _singles(singles: Mapping[str, Any] | None) -> Iterator[str]:
    if not singles:
        return
    yield ""
    yield (
        "Single episodes are those of `python -m benchmarks.detection`, "
        f"`{singles['agent']}`, seed {singles['seed']}, "
        f"{singles['rows'][0].episodes} a cell, each by itself, with Wilson's "
        "interval. Some cannot differ from level 200: those of 203 without an aimed block, of 204 "
        "that are over before a bounce, and of 108 that are over before a block appears."
    )


def _alarms(evaluations: list[Any]) -> Iterator[str]:
    for evaluation in evaluations:
        quiet = [c for c in evaluation["cells"] if c["level"] == NOMINAL and c["visibility"] == 0]
        trials = sum(cell["trials"] for cell in quiet)
        if not trials:
            continue
        alarms = sum(round(cell["false_alarms"] * cell["trials"]) for cell in quiet)
        low, high = stats.binomtest(alarms, trials).proportion_ci(method="wilson")
        yield ""
        yield (
            f"Level 200, `{_command(evaluation)}`: a false alarm in {alarms} of {trials} trials of "
            f"{evaluation['settings']['testing_episodes']} episodes, [{low:.3f}, {high:.3f}]."
        )


def time_part(evaluations: list[Any]) -> Iterator[str]:
    """The section on how long evaluations take."""
    yield "### Time"
    yield ""
    yield (
        "Time of the evaluations above, compiling included: on the clock, with other programs "
        "running, and of the processor, all cores together. A detector never acts, so a "
        "baseline that it joins plays once for both. The original makes "
        f"{ORIGINAL_STEPS:,} environment steps a second of the processor, as it was measured, one "
        "process, and would play agent and baseline each."
    )
    body = []
    for evaluation in evaluations:
        timing = evaluation["timing"]
        seconds, processor = sum(timing["seconds"].values()), timing.get("processor_seconds")
        both = timing["steps"] * 2 / len(timing["seconds"])
        trials = sum(cell["trials"] for cell in evaluation["cells"])
        body.append(
            [
                f"`{evaluation['agent']}`",
                f"{len(evaluation['cells'])} cells, {trials} trials",
                f"{timing['steps']:,}",
                f"{seconds:,.0f} s",
                f"{sum(processor.values()):,.0f} s" if processor else NONE,
                f"{both / ORIGINAL_STEPS:,.0f} s",
            ]
        )
    header = [
        "agent",
        "what",
        "steps that were played",
        "clock",
        "processor",
        "the original's steps alone",
    ]
    yield from table(header, body)


INTRODUCTION = """\
## What was measured

Generated by `python -m tools.sailon_page`; do not edit from here to the next section. Numbers
are in `sailon-control.json` (written by `python -m benchmarks.control`), `sailon-detection.json`
(`python -m benchmarks.detection`) and `sailon-evaluations.json` (from reports of `jaxsim sailon
evaluate`), beside this page. What is in none of them, was not measured.

The metrics are held against the worked examples of their definition, number for number, and against
the numbers of the generator's own analysis, by `tests/evaluation/metrics/test_novelty.py`.
"""


def page(folder: Path) -> Iterator[str]:
    """Lines of the generated part."""
    yield from INTRODUCTION.splitlines()
    yield ""
    if (folder / CONTROL).exists():
        yield from control_part(control.load(folder / CONTROL))
    evaluations = loaded(folder)
    singles = detection.load(folder / DETECTION) if (folder / DETECTION).exists() else None
    if evaluations:
        yield from detection_part(evaluations, singles)
        yield ""
        yield from time_part(evaluations)


def loaded(folder: Path) -> list[Any]:
    """Evaluations that the folder holds."""
    path = folder / EVALUATIONS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def added(evaluations: list[Any], new: Mapping[str, Any]) -> list[Any]:
    """Add an evaluation, or replace that of the same command."""
    return [*(old for old in evaluations if _command(old) != _command(new)), dict(new)]


def with_part(text: str, lines: Iterator[str]) -> str:
    """A page whose generated part is replaced.

    Raises:
      ValueError: the markers are not there once.
    """
    return replaced(text, BEGIN, END, lines)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write what was measured into docs/sailon.md.")
    parser.add_argument("folder", type=Path, help="of the page and its measurements")
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="reports to keep")
    add_out(parser)
    arguments = parser.parse_args()
    evaluations = loaded(arguments.folder)
    for path in arguments.add:
        evaluations = added(evaluations, kept(json.loads(path.read_text(encoding="utf-8"))))
    if arguments.add:
        write_json(arguments.folder / EVALUATIONS, evaluations)
    text = (arguments.folder / "sailon.md").read_text(encoding="utf-8")
    put(with_part(text, page(arguments.folder)), arguments.out)


if __name__ == "__main__":
    main()
