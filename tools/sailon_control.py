"""Islands of docs/sailon.md on control: `mpc` beside `pd` and the published agent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks import control
from benchmarks.scores import Score, holm
from jaxsim.agents import mpc
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, EVALUATED
from tools.islands import DOCS, NONE, Islands, table

SIGNIFICANT = 0.05
NOMINAL = 200
HARD = "hard"
TRIALS, USUAL, NOVEL = 60, 20, 25
"""Trials of a cell in the full evaluation, both visibilities together, and episodes of level 200
before the button and of the cell's level after it in each."""
COMMAND = "jaxsim sailon evaluate --agent mpc+residual --trials 30"
"""The full evaluation."""

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
original simulator, measured with the agent's code."""

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


def name_of(cell: Cell) -> str:
    """Name of a cell; without a difficulty if the level is the same at all."""
    return f"{cell[0]} {cell[1]}" if CATALOGUE[cell[0]].varies else str(cell[0])


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


def paired(measurement: control.ControlMeasurement, agent: str) -> list[Paired]:
    """Cells with episodes of an agent and of `pd`."""
    out = []
    for row in measurement.rows:
        other = measurement.find(row.level, row.difficulty, agent)
        if row.agent == "pd" and other is not None:
            difference = other.performances - row.performances[: len(other.lengths)]
            out.append(Paired((row.level, row.difficulty), difference))
    return out


def islands() -> Islands:
    """Islands on control."""
    return islands_of(control.load(DOCS / "sailon-control.json"))


def islands_of(measurement: control.ControlMeasurement) -> Islands:
    """Islands of a measurement."""
    pairs = paired(measurement, "mpc")
    p_values = holm(np.array([each.p for each in pairs]))
    significant = [each for each, p in zip(pairs, p_values, strict=True) if p < SIGNIFICANT]
    worse = [name_of(each.cell) for each in significant if each.score.mean < 0]
    better = len(significant) - len(worse)
    return {
        "control episodes": f"{measurement.episodes} episodes a cell of seed {measurement.seed}",
        "control": scores(measurement, dict(zip((p.cell for p in pairs), p_values, strict=True))),
        "mpc better": f"{better} of {len(pairs)} cells",
        "mpc worse": ", ".join(worse) or "none",
        "targets": targets(measurement),
        "search": search([row for row in measurement.rows if row.agent == "mpc"]),
    }


def scores(
    measurement: control.ControlMeasurement, p_values: Mapping[Cell, float]
) -> Iterator[str]:
    """Mean performance of each agent, cell by cell."""
    head = ("cell", "episodes", "`pd`", "`mpc`", "to the end", "`mpc` − `pd`", "p (Holm)")
    order = {level: place for place, level in enumerate(EVALUATED)}
    pairs = sorted(
        paired(measurement, "mpc"),
        key=lambda each: (order[each.cell[0]], DIFFICULTIES.index(each.cell[1])),
    )
    rows = (_scores(measurement, each, p_values[each.cell]) for each in pairs)
    return table((*head, "published", "clairvoyant"), rows)


def _scores(measurement: control.ControlMeasurement, pair: Paired, p: float) -> list[str]:
    pd, best = (measurement.find(*pair.cell, name) for name in ("pd", "clairvoyant"))
    mpc = measurement.find(*pair.cell, "mpc")
    assert pd is not None
    assert mpc is not None
    by_name = {name_of(cell): numbers for cell, numbers in PUBLISHED.items()}
    published = by_name.get(name_of(pair.cell))
    values = mpc.performances
    return [
        name_of(pair.cell),
        str(len(values)),
        str(Score.of(pd.performances)),
        str(Score.of(values)),
        f"{(values >= 1).mean():.2f}",
        f"{pair.score.mean:+.3f} ± {pair.score.half:.3f}",
        f"{p:.2g}",
        NONE if published is None else f"{published[0]:.3f} ± {published[1]:.3f}",
        NONE if best is None else f"{Score.of(best.performances)} ({len(best.lengths)})",
    ]


def targets(measurement: control.ControlMeasurement) -> Iterator[str]:
    """Target performance of `mpc`, and whether it is reached."""
    rows = (
        _target(measurement.find(*cell, "mpc"), cell, target) for cell, target in TARGETS.items()
    )
    return table(("cell", "wanted", "`mpc`", "reached"), rows)


def _target(row: control.CellEpisodes | None, cell: Cell, target: float) -> list[str]:
    if row is None:
        return [name_of(cell), f"{target:.2f}", "not measured", NONE]
    score = Score.of(row.performances)
    word = "yes" if score.mean >= target else "no"
    if word == "no" and score.mean + score.half >= target:
        word = "no, but within the interval"
    return [name_of(cell), f"{target:.2f}", str(score), word]


def search(rows: list[control.CellEpisodes]) -> Iterator[str]:
    """What the decisions of `mpc` cost."""
    counted = [row.rollouts for row in rows if row.rollouts is not None]
    times = [row.milliseconds for row in rows]
    every_tick = mpc.ELITES + 2 + mpc.BUDGET.candidates * mpc.BUDGET.generations
    costs = [("CPU time of a decision with the simulator's step, ms, by cell", _range(times, 2))]
    if counted:
        costs += [
            ("futures of 60 ticks that a decision follows, by cell", _range(counted, 0)),
            ("the same for an agent that searches in every tick", every_tick),
        ]
    if whole := whole_evaluation(rows):
        futures, seconds = whole
        costs += [
            (f"futures of `{COMMAND}`, billions", f"{futures / 1e9:.1f}"),
            (f"CPU time of `{COMMAND}`, hours", f"{seconds / 3600:.2f}"),
        ]
    return table(("cost", "number"), costs)


def _range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def whole_evaluation(rows: list[control.CellEpisodes]) -> tuple[float, float] | None:
    """Futures and CPU seconds of the full evaluation, from the cost of its cells.

    None if a cell was not measured.
    """
    by_name = {name_of((row.level, row.difficulty)): row for row in rows}
    nominal = by_name.get(str(NOMINAL))
    names = [name_of((level, each)) for level in EVALUATED for each in DIFFICULTIES]
    if nominal is None or any(name not in by_name for name in names):
        return None
    seconds = futures = 0.0
    for name in names:
        for row, episodes in ((nominal, USUAL), (by_name[name], NOVEL)):
            decisions = TRIALS * episodes * float(np.mean(row.lengths))
            seconds += 1e-3 * row.milliseconds * decisions
            futures += (row.rollouts or 0.0) * decisions
    return futures, seconds
