"""What is drawn of an evaluation: each measure of each cell, in its panel and under its name."""

import numpy as np
import pytest

from evaluation.metrics import Numbers
from evaluation.sailon import plots
from evaluation.sailon.analysis import analyse
from tests.evaluation import made_up

figure = pytest.importorskip("matplotlib.figure", reason="needs the extra: plots")


@pytest.fixture(scope="module")
def rows():
    return analyse(made_up.trials(0), made_up.trials(1), resamples=20).rows


def drawn(axes):
    """Series of a panel by the legend: (x, middle, low, high) of the points."""
    series = {}
    for container in axes.containers:
        line, _, (bars,) = container.lines
        ends = np.array([[low[1], high[1]] for low, high in bars.get_segments()]).reshape(-1, 2)
        series[container.get_label()] = np.column_stack([*line.get_data(), ends])
    return series


def test_every_measure_of_every_cell_is_drawn_in_its_panel(rows, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(
        figure.Figure, "savefig", lambda self, *given, **named: figures.append(self)
    )
    paths = plots.write(rows, tmp_path)
    names = [f"{name}_{visibility}.png" for visibility in (0, 1) for name in plots.PANELS]
    assert [path.name for path in paths] == names
    for path, whole in zip(paths, figures, strict=True):
        name, _, visibility = path.stem.partition("_")
        cells = [r for r in rows if r.kind == "cell" and r.visibility == int(visibility)]
        assert len(whole.axes) == len(plots.PANELS[name]) == 3
        for axes, (label, series) in zip(whole.axes, plots.PANELS[name], strict=True):
            assert axes.get_ylabel() == label
            ticks = [text.get_text() for text in axes.get_xticklabels()]
            last = axes is whole.axes[-1]
            assert ticks == ([f"{row.level} hard" for row in cells] if last else [])
            points = drawn(axes)
            assert list(points) == list(series.values())
            for place, (measure, words) in enumerate(series.items()):
                expected = [
                    (number + 0.25 * place, *(float(end) for end in (v.values, v.low, v.high)))
                    for number, v in enumerate(row.values[measure] for row in cells)
                    if np.isfinite(v.values)
                ]
                expected = np.array(expected).reshape(-1, 4)
                middle = expected[:, 1:2]
                whole_ends = np.where(np.isnan(expected), middle, expected)
                np.testing.assert_allclose(points[words], whole_ends, err_msg=measure)


def test_an_end_beyond_all_trials_has_an_arrow():
    axes = figure.Figure().subplots()
    ends = [(2.0, 1.0, 5.0), (3.0, 1.0, np.nan), (4.0, np.nan, np.nan)]
    plots._draw(axes, [Numbers(v, 0, low, high) for v, low, high in ends], 0.0, "delay")
    (points,) = drawn(axes).values()
    np.testing.assert_allclose(points, [[0, 2, 1, 5], [1, 3, 1, 6], [2, 4, 4, 4]])
    (arrow,) = (line for line in axes.lines if line.get_marker() == "^")
    assert (arrow.get_xdata().tolist(), arrow.get_ydata().tolist()) == ([1], [6])
