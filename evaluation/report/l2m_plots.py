"""Plots of one lifetime's log and of the records of many lifetimes; needs the extra `plots`.

Each figure has its own Agg canvas; pyplot and the backend of the calling program are not touched.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.metrics.statistics import bootstrap_interval, describe
from evaluation.records import MEASURE_BOUNDS, Records
from evaluation.schedule import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import ColorType

Kind: TypeAlias = Literal["raw", "eb", "lb", "ste"]
Unit: TypeAlias = Literal["exp_num", "steps"]
Floats: TypeAlias = npt.NDArray[np.float64]

KINDS: Final[tuple[Kind, ...]] = ("raw", "eb", "lb", "ste")
"""Raw training, evaluation blocks, learning blocks, comparison with single-task experts."""

FILE_WORDS: Final[dict[Kind, str]] = {
    "raw": "raw",
    "eb": "evaluation",
    "lb": "learning",
    "ste": "ste",
}
"""How the file of each kind ends: `<run>_<word>.png`."""

UNIT_LABELS: Final[dict[Unit, str]] = {
    "exp_num": "learning experiences (episodes)",
    "steps": "learning experiences (environment steps)",
}

NEEDED: Final = ("block_num", "exp_num", "block_type", "task_name")
STEPS_COLUMN: Final = "episode_step_count"
MOST_POINTS: Final = 300
"""Approximate maximum of points of a curve; neighbouring episodes are averaged beyond it."""

Dots: TypeAlias = tuple[Floats, Floats]
"""Places on the horizontal axis and values."""


@dataclass(frozen=True)
class PlotRegime:
    """A maximal sequence of episodes of one task in one block.

    Attributes:
      number: index among all regimes of the lifetime.
      block: number of the block.
      task: name of the task, label and variant.
      training: whether the agent learned.
      rows: (n,) rows of the table.
    """

    number: int
    block: int
    task: str
    training: bool
    rows: npt.NDArray[np.int64]

    @property
    def label(self) -> str:
        """The task without its variant."""
        return self.task.split("_", 1)[0]


def plot_run(
    data: pa.Table,
    regimes: pa.Table | None,
    directory: Path,
    kinds: Sequence[Kind] = KINDS,
    *,
    run: str = "run",
    measure: str = "reward",
    unit: Unit = "exp_num",
    normalized: bool | None = None,
    ste: Mapping[str, Sequence[npt.ArrayLike]] | None = None,
    eval_lines: bool = True,
    colours: Mapping[str, "ColorType"] | None = None,
) -> list[Path]:
    """Plot one lifetime: raw training, evaluation, learning, and the comparison with experts.

    Args:
      data: one row per episode in the order of the log, with the columns of a
        `<name>_data.feather`: block_num, exp_num, block_type ("train" or "test"), task_name and
        the processed ``<measure>``. Optional columns: block_subtype ("wake" if absent), regime_num
        (counted if absent), ``<measure>_raw`` and ``<measure>_smoothed`` for the raw plot
        (``<measure>`` if absent), episode_step_count for the unit "steps".
      regimes: the table of regimes; its columns regime_num and term_perf give the evaluation means
        between learning blocks. If None, they are the means of each regime's episodes.
      directory: where the files go; it is made if it is missing.
      kinds: some of `KINDS`.
      run: name of the run, the beginning of titles and file names.
      measure: the performance column.
      unit: of the horizontal axis of learning, "exp_num" for episodes or "steps".
      normalized: whether ``<measure>`` is normalised to 1 to 101; if None, whether there is a
        column ``<measure>_normalized``.
      ste: task name -> processed training curves of its single-task experts, (n,) each.
      eval_lines: whether dashed lines join the evaluation means in the learning plot.
      colours: task name -> colour, to keep colours over several runs; see `task_colours`.

    Returns:
      The files written, `<run>_raw.png`, `<run>_evaluation.png`, `<run>_learning.png` and
      `<run>_ste.png`; underscores replace characters that are unsafe in a file name. A kind
      without data makes no file.

    Raises:
      ValueError: matplotlib is not installed, a column is missing, no rows, or an unknown kind or
        unit.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"plot kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    check_matplotlib()
    lifetime = _Lifetime(data, regimes, measure, unit)
    if normalized is None:
        normalized = f"{measure}_normalized" in data.column_names
    shades = task_colours(lifetime.tasks) | dict(colours or {})
    style = _Style(run, measure, unit, normalized, shades)
    draw = {
        "raw": lambda: _draw_raw(lifetime, style),
        "eb": lambda: _draw_evaluation(lifetime, style),
        "lb": lambda: _draw_learning(lifetime, style, eval_lines),
        "ste": lambda: _draw_ste(lifetime, style, ste or {}),
    }
    paths = []
    for kind in dict.fromkeys(kinds):
        figure = draw[kind]()
        if figure is not None:
            path = directory / f"{_file_name(run)}_{FILE_WORDS[kind]}.png"
            _save(figure, path)
            paths.append(path)
    return paths


def _file_name(run: str) -> str:
    """A run's name with underscores for characters that are special in paths or shells."""
    return re.sub(r"[^0-9A-Za-z_.-]", "_", run)


def task_colours(tasks: Iterable[str]) -> dict[str, "ColorType"]:
    """A colour for each task, in the given order; twenty colours repeat."""
    check_matplotlib()
    from matplotlib import colormaps

    shades = [colormaps["tab20"](index) for index in range(20)]
    cycle = shades[::2] + shades[1::2]  # the strong ones first
    return {task: cycle[index % 20] for index, task in enumerate(dict.fromkeys(tasks))}


def check_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
      ValueError: matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ModuleNotFoundError as error:
        raise ValueError("plots need matplotlib: pip install 'jaxsim-novelty[plots]'") from error
    del matplotlib


@dataclass(frozen=True)
class _Style:
    """Settings that all plots of a run share."""

    run: str
    measure: str
    unit: Unit
    normalized: bool
    colours: Mapping[str, "ColorType"]

    @property
    def value_label(self) -> str:
        measure = _plain(self.measure)
        return f"{measure} (normalised, 1 to 101)" if self.normalized else measure

    def limit(self, axes: "Axes") -> None:
        """Let panels of normalised values share one range, with room for dots at its ends."""
        if self.normalized:
            axes.set_ylim(-2, 104)


class _Lifetime:
    """The table of one lifetime, cut into regimes."""

    def __init__(self, data: pa.Table, regimes: pa.Table | None, measure: str, unit: Unit) -> None:
        if unit not in UNIT_LABELS:
            raise ValueError(f"unit is {unit!r}; it must be one of {', '.join(UNIT_LABELS)}")
        needed = [*NEEDED, measure, *([STEPS_COLUMN] if unit == "steps" else [])]
        missing = [name for name in needed if name not in data.column_names]
        if missing:
            raise ValueError(f"the table of episodes lacks the columns {', '.join(missing)}")
        if not data.num_rows:
            raise ValueError("the table of episodes has no rows")
        self.values = _numbers(data, measure)
        self.raw = self._optional(data, f"{measure}_raw")
        self.smoothed = self._optional(data, f"{measure}_smoothed")
        self.regimes = _regimes(data)
        self.tasks = list(dict.fromkeys(regime.task for regime in self.regimes))
        training = np.zeros(data.num_rows, np.bool_)
        for regime in self.regimes:
            training[regime.rows] = regime.training
        spans = _numbers(data, STEPS_COLUMN) if unit == "steps" else np.ones(data.num_rows)
        # The axis counts learning only: an evaluation block has no width.
        self.places = np.cumsum(np.where(training, spans, 0.0))
        self.means = self._means(regimes)

    def _optional(self, data: pa.Table, name: str) -> Floats:
        return _numbers(data, name) if name in data.column_names else self.values

    def _means(self, regimes: pa.Table | None) -> list[float]:
        """Mean of each regime, from the table of regimes if there is one."""
        means = {regime.number: _mean(self.values[regime.rows]) for regime in self.regimes}
        if regimes is None:
            return list(means.values())
        missing = [n for n in ("regime_num", "term_perf") if n not in regimes.column_names]
        if missing:
            raise ValueError(f"the table of regimes lacks the columns {', '.join(missing)}")
        numbers, terms = _numbers(regimes, "regime_num"), _numbers(regimes, "term_perf")
        table = dict(zip(numbers.astype(int).tolist(), terms.tolist(), strict=True))
        return [table.get(number, mean) for number, mean in means.items()]

    def of(self, task: str, training: bool) -> list[PlotRegime]:
        """The training or evaluation regimes of a task, in order."""
        return [r for r in self.regimes if r.task == task and r.training == training]

    def place_before(self, regime: PlotRegime) -> float:
        """Amount of learning before a regime, in units of the horizontal axis."""
        first = int(regime.rows[0])
        return float(self.places[first - 1]) if first else 0.0


def _numbers(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(zero_copy_only=False), np.float64)


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _regimes(data: pa.Table) -> list[PlotRegime]:
    """Regimes of a table, without those that metrics ignore.

    If a lifetime has sleep blocks, only tests during sleep count; tests awake are left out.
    """
    names = ["block_num", "block_type", "task_name"]
    if "regime_num" in data.column_names:
        names.append("regime_num")
    subtypes = "block_subtype" in data.column_names
    keys = [data[name].to_pylist() for name in (*names, *(["block_subtype"] if subtypes else []))]
    rows = list(zip(*keys, strict=True))
    starts = [i for i, row in enumerate(rows) if i == 0 or row != rows[i - 1]]
    has_sleep = subtypes and "sleep" in keys[-1]
    regimes = []
    for count, (start, stop) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
        block, kind, task = rows[start][:3]
        number = int(rows[start][3]) if "regime_num" in names else count
        if kind == "test" and has_sleep and rows[start][-1] == "wake":
            continue
        episodes = np.arange(start, stop)
        regimes.append(PlotRegime(number, int(block), str(task), kind == "train", episodes))
    return regimes


def _figure(
    panels: int, title: str, width: float = 10.0, height: float = 3.5
) -> "tuple[Figure, np.ndarray]":
    """A figure with stacked panels, and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, min(1 + height * panels, 60)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_plain(title))
    return figure, figure.subplots(panels, 1, squeeze=False)[:, 0]


def _save(figure: "Figure", path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _legend(axes: "Axes") -> None:
    """Add a legend beside the panel, where it hides no data, and a grid."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            [_plain(label) for label in labels],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            fontsize="small",
        )
    axes.grid(alpha=0.3)


def _plain(text: str) -> str:
    """Escape dollar signs, which matplotlib reads as formulas."""
    return text.replace("$", r"\$")


def _draw_raw(lifetime: _Lifetime, style: _Style) -> "Figure | None":
    """Plot raw training as dots by task, with a smoothed line over each block."""
    if not any(regime.training for regime in lifetime.regimes):
        return None
    figure, (axes,) = _figure(1, f"{style.run}: training as it was logged", height=5)
    for task in lifetime.tasks:
        for number, regime in enumerate(lifetime.of(task, training=True)):
            places, colour = lifetime.places[regime.rows], style.colours[task]
            raw, smoothed = lifetime.raw[regime.rows], lifetime.smoothed[regime.rows]
            label = task if number == 0 else None
            axes.plot(places, raw, ".", color=colour, alpha=0.35, markersize=4)
            axes.plot(places, smoothed, "-", color=colour, linewidth=1.8, label=label)
    axes.set_xlabel(UNIT_LABELS[style.unit])
    axes.set_ylabel(f"{_plain(style.measure)} (dots raw, lines smoothed)")
    _legend(axes)
    return figure


def _draw_evaluation(lifetime: _Lifetime, style: _Style) -> "Figure | None":
    """Plot mean and interval of each evaluation block, one panel per task label."""
    evaluations = [regime for regime in lifetime.regimes if not regime.training]
    labels = list(dict.fromkeys(regime.label for regime in evaluations))
    if not labels:
        return None
    title = f"{style.run}: evaluation, mean and 95 % bootstrap interval over episodes"
    figure, panels = _figure(len(labels), title, height=2.6)
    blocks = sorted({regime.block for regime in evaluations})
    for axes, label in zip(panels, labels, strict=True):
        for task in (t for t in lifetime.tasks if t.split("_", 1)[0] == label):
            _draw_points(axes, lifetime, task, style.colours[task])
        axes.set_xticks(blocks)
        axes.set_ylabel(style.value_label.replace(" (", "\n("))
        style.limit(axes)
        _legend(axes)
    panels[-1].set_xlabel("block number")
    return figure


def _draw_points(axes: "Axes", lifetime: _Lifetime, task: str, colour: "ColorType") -> None:
    """Plot one task's evaluation blocks as points with error bars, joined by a line."""
    blocks: dict[int, list[Floats]] = {}
    for regime in lifetime.of(task, training=False):
        blocks.setdefault(regime.block, []).append(lifetime.values[regime.rows])
    numbers, means, bars = [], [], []
    for block, parts in blocks.items():
        values = np.concatenate(parts)
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        interval, mean = bootstrap_interval(values), float(values.mean())
        numbers.append(block)
        means.append(mean)
        # A single episode has no interval; a rounded mean may lie outside its interval.
        ends = [mean - float(interval.low), float(interval.high) - mean]
        bars.append(np.maximum(np.nan_to_num(ends), 0.0))
    if numbers:
        axes.errorbar(
            numbers, means, np.transpose(bars), fmt="o-", color=colour, capsize=3, label=task
        )


def _draw_learning(lifetime: _Lifetime, style: _Style, eval_lines: bool) -> "Figure | None":
    """Plot processed learning; the horizontal axis leaves out evaluation blocks."""
    if not any(regime.training for regime in lifetime.regimes):
        return None
    figure, (axes,) = _figure(1, f"{style.run}: learning blocks", height=5)
    for task in lifetime.tasks:
        training = lifetime.of(task, training=True)
        if training:
            rows = np.concatenate([regime.rows for regime in training])
            values, places = lifetime.values[rows], lifetime.places[rows]
            axes.plot(places, values, ".", color=style.colours[task], label=task)
        if eval_lines:
            _draw_eval_line(axes, lifetime, task, style.colours[task], labelled=not training)
    joins = {lifetime.place_before(regime) for regime in lifetime.regimes if regime.training}
    for join in sorted(joins - {0.0}):
        axes.axvline(join, color="0.85", linewidth=0.8, zorder=0)
    axes.set_xlabel(UNIT_LABELS[style.unit] + ", evaluation left out")
    dashed = ", dashed: evaluation means" if eval_lines else ""
    axes.set_ylabel(style.value_label + dashed)
    style.limit(axes)
    _legend(axes)
    return figure


def _draw_eval_line(
    axes: "Axes", lifetime: _Lifetime, task: str, colour: "ColorType", labelled: bool
) -> None:
    """Draw dashed lines between the evaluation means of one task."""
    points = [
        (lifetime.place_before(regime), mean)
        for regime, mean in zip(lifetime.regimes, lifetime.means, strict=True)
        if regime.task == task and not regime.training and math.isfinite(mean)
    ]
    if points:
        places, means = zip(*points, strict=True)
        label = f"{task} (evaluation only)" if labelled else None
        axes.plot(places, means, "--", color=colour, linewidth=1.2, label=label)


def _draw_ste(
    lifetime: _Lifetime, style: _Style, ste: Mapping[str, Sequence[npt.ArrayLike]]
) -> "Figure | None":
    """Plot the joined training blocks of each task beside its single-task experts."""
    tasks = [task for task in lifetime.tasks if ste.get(task) and lifetime.of(task, training=True)]
    if not tasks:
        return None
    title = f"{style.run}: lifelong learner and single-task experts"
    figure, panels = _figure(len(tasks), title, height=3)
    for axes, task in zip(panels, tasks, strict=True):
        pieces = [lifetime.values[regime.rows] for regime in lifetime.of(task, training=True)]
        for number, curve in enumerate(ste[task]):
            values = np.asarray(curve, np.float64)
            label = "single-task experts" if number == 0 else None
            axes.plot(np.arange(1, len(values) + 1), values, "-", color="0.6", label=label)
        joined = np.concatenate(pieces)
        axes.plot(np.arange(1, len(joined) + 1), joined, "-", color=style.colours[task], label=task)
        for join in np.cumsum([len(piece) for piece in pieces])[:-1]:
            axes.axvline(join + 0.5, color="0.3", linestyle="--", linewidth=0.9)
        axes.set_ylabel(style.value_label.replace(" (", "\n("))
        style.limit(axes)
        _legend(axes)
    panels[-1].set_xlabel("training episodes of the task, dashed: joins of its blocks")
    return figure


# ---------------------------------------------------------------------------------------------
# Many lifetimes
# ---------------------------------------------------------------------------------------------


def plot_records(records: Records, path: Path, measure: str = "performance", seed: int = 0) -> Path:
    """Plot the mean over lifetimes by episode, with its 95 % interval as a band, block by block.

    Args:
      records: of L lifetimes; a single lifetime has no band.
      path: of the picture.
      measure: column used as an episode's value, "performance", "reward" or "length".
      seed: of the bootstrap.

    Returns:
      The path.

    Raises:
      ValueError: matplotlib is not installed, an unknown measure, or no value anywhere.
    """
    check_matplotlib()
    records = records.by_episode()
    values, counts = records.by_block(measure)
    width = max(1, math.ceil(int(counts.sum()) / MOST_POINTS))
    blocks = [_grouped(values[:, b, :count], width) for b, count in enumerate(counts)]
    joined = np.concatenate([grouped for _, grouped in blocks], axis=1)
    if not np.isfinite(joined).any():
        raise ValueError(f"no episode has a {measure} that is a finite number")
    interval = bootstrap_interval(joined, seed, bounds=MEASURE_BOUNDS[measure])
    mean = describe(joined).mean
    figure, (axes,) = _figure(1, _records_title(records, measure, width), 11, 5)
    variants, numbers = records.schedule.variants, records.schedule.block_variants()
    colours = task_colours(_in_words(variant) for variant in variants)
    labelled: set[str] = set()
    start, column = 0, 0
    for block, variant, (places, grouped) in zip(
        records.schedule.blocks, numbers, blocks, strict=True
    ):
        name = _in_words(variants[variant])
        part = slice(column, column + grouped.shape[1])
        x, colour = start + places, colours[name]
        if block.mode == "test":
            axes.axvspan(start + 0.5, start + block.count + 0.5, color="0.93", zorder=0)
        axes.fill_between(
            x, interval.low[part], interval.high[part], color=colour, alpha=0.3, linewidth=0
        )
        marker = "." if grouped.shape[1] == 1 else None
        label = None if name in labelled else name
        axes.plot(x, mean[part], marker=marker, color=colour, label=label)
        labelled.add(name)
        start, column = start + block.count, part.stop
    axes.set_xlim(0.5, start + 0.5)
    axes.set_xlabel("episode of the lifetime (shaded: test blocks)")
    axes.set_ylabel(MEASURE_LABELS[measure])
    _legend(axes)
    _save(figure, path)
    return path


MEASURE_LABELS: Final = {
    "performance": "performance (0 to 1)",
    "reward": "reward (sum of an episode)",
    "length": "length (environment steps)",
}


def _grouped(values: Floats, width: int) -> tuple[Floats, Floats]:
    """Mean of each group of `width` episodes: centres (P,), counted from 1, and values (L, P)."""
    count = values.shape[1]
    edges = np.append(np.arange(0, count, width), count)
    finite = np.isfinite(values)
    sums = np.add.reduceat(np.where(finite, values, 0.0), edges[:-1], axis=1)
    numbers = np.add.reduceat(finite.astype(np.int64), edges[:-1], axis=1)
    with np.errstate(invalid="ignore"):
        means = np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)
    return (edges[:-1] + edges[1:] + 1) / 2, means


def _records_title(records: Records, measure: str, width: int) -> str:
    agent = records.metadata.get("agent")
    agent_text = f", {agent}" if agent else ""
    lifetimes = records.num_lifetimes
    band = "one lifetime" if lifetimes == 1 else f"mean of {lifetimes:,} lifetimes, 95 % interval"
    groups = f", {width} episodes a point" if width > 1 else ""
    return f"{records.schedule.name}{agent_text}: {measure}, {band}{groups}"


def _in_words(variant: Variant) -> str:
    task, parameters = variant
    return ", ".join([task, *(f"{path} {value}" for path, value in parameters)])
