"""Plots: what stands in them, in which units, and what they refuse."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

from evaluation import cli
from evaluation.report import l2m_plots, live
from evaluation.report.l2m_plots import KINDS, plot_records, plot_run, task_colours
from evaluation.report.live import repeat_on_change
from tests.conftest import SHARED
from tests.evaluation.test_compare import run as made_up

pytest.importorskip("matplotlib")

# block, type, subtype, task, episodes
PLAN = (
    (0, "test", "wake", "a_1", 3),
    (0, "test", "wake", "b_1", 3),
    (1, "train", "wake", "a_1", 5),
    (2, "test", "wake", "a_1", 3),
    (2, "test", "wake", "b_1", 3),
    (3, "train", "wake", "b_1", 4),
    (4, "train", "wake", "a_1", 5),
    (5, "test", "wake", "a_1", 3),
    (5, "test", "wake", "b_1", 1),
)


def table(plan=PLAN, measure="reward", **more):
    rows = [row for row in plan for _ in range(row[-1])]
    values = np.random.default_rng(0).uniform(1, 101, len(rows))
    columns = {
        "block_num": [row[0] for row in rows],
        "exp_num": list(range(len(rows))),
        "block_type": [row[1] for row in rows],
        "block_subtype": [row[2] for row in rows],
        "task_name": [row[3] for row in rows],
        measure: values,
        f"{measure}_raw": values / 100,
        f"{measure}_smoothed": values / 50,
        f"{measure}_normalized": values,
    }
    return pa.table(columns | more)


@pytest.fixture
def figures(monkeypatch):
    """Figures by file name, drawn and not written."""
    by_name = {}
    monkeypatch.setattr(
        l2m_plots, "_save", lambda figure, path: by_name.update({path.name: figure})
    )
    return by_name


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def dashed(axes):
    return [line for line in axes.lines if line.get_linestyle() == "--"]


def test_four_files_are_written(tmp_path):
    ste = {"a_1": [np.arange(10.0)]}
    paths = plot_run(table(), None, tmp_path / "plots", run="mine", ste=ste)
    words = ("raw", "evaluation", "learning", "ste")
    assert paths == [tmp_path / "plots" / f"mine_{word}.png" for word in words]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_raw(figures):
    plot_run(table(), None, Path("x"), ["raw"], run="r")
    (axes,) = figures["r_raw.png"].axes
    assert legend(axes) == ["a_1", "b_1"]
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [5, 5, 4]  # a, a again, b
    assert dots[1].get_xdata().tolist() == [10, 11, 12, 13, 14]
    raw = np.asarray(table()["reward_raw"])
    np.testing.assert_array_equal(dots[0].get_ydata(), raw[6:11])
    lines = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert [line.get_color() for line in lines] == [line.get_color() for line in dots]
    np.testing.assert_array_equal([line.get_ydata()[0] for line in lines], 2 * raw[[6, 21, 17]])
    assert [line.get_xdata().tolist() for line in lines] == [
        line.get_xdata().tolist() for line in dots
    ]
    assert "episodes" in axes.get_xlabel()
    assert axes.get_ylabel().startswith("reward")


def test_learning_has_no_room_for_evaluation(figures):
    plot_run(table(), None, Path("x"), ["lb"], run="r")
    (axes,) = figures["r_learning.png"].axes
    values = np.asarray(table()["reward"])
    a, b = dashed(axes)
    assert a.get_xdata().tolist() == [0, 5, 14]
    assert b.get_xdata().tolist() == [0, 5, 14]
    expected = [values[:3].mean(), values[11:14].mean(), values[26:29].mean()]
    np.testing.assert_allclose(a.get_ydata(), expected)
    assert "normalised, 1 to 101" in axes.get_ylabel()
    plot_run(table(), None, Path("x"), ["lb"], run="r", eval_lines=False, normalized=False)
    (axes,) = figures["r_learning.png"].axes
    assert dashed(axes) == []
    assert "normalised" not in axes.get_ylabel()


def test_evaluation_means_come_from_the_table_of_regimes(figures):
    numbers = list(range(len(PLAN)))
    regimes = pa.table({"regime_num": numbers, "term_perf": [10.0 * n for n in numbers]})
    plot_run(table(), regimes, Path("x"), ["lb"], run="r")
    a, b = dashed(figures["r_learning.png"].axes[0])
    assert a.get_ydata().tolist() == [0, 30, 70]
    assert b.get_ydata().tolist() == [10, 40, 80]


def test_steps_are_a_unit(figures):
    steps = np.full(sum(row[-1] for row in PLAN), 7)
    plot_run(table(episode_step_count=steps), None, Path("x"), ["lb"], run="r", unit="steps")
    (axes,) = figures["r_learning.png"].axes
    assert "environment steps" in axes.get_xlabel()
    assert dashed(axes)[0].get_xdata().tolist() == [0, 35, 98]


def test_evaluation_has_a_panel_a_label_and_an_interval_a_block(figures):
    plan = (*PLAN, (6, "test", "wake", "a_2", 3))
    plot_run(table(plan), None, Path("x"), ["eb"], run="r")
    panels = figures["r_evaluation.png"].axes
    assert [legend(axes) for axes in panels] == [["a_1", "a_2"], ["b_1"]]
    first = panels[0].containers[0]
    values = np.asarray(table(plan)["reward"])
    np.testing.assert_allclose(first.lines[0].get_ydata()[0], values[:3].mean())
    low, high = (ends.get_ydata() for ends in first.lines[1])
    assert (low <= first.lines[0].get_ydata()).all()
    assert (high >= first.lines[0].get_ydata()).all()
    assert (low[0], high[0]) != (high[0], low[0])
    # A single episode is a point without a bar.
    assert panels[1].containers[0].lines[1][0].get_ydata()[-1] == values[29]
    assert panels[-1].get_xlabel() == "block number"
    assert panels[0].get_ylim() == panels[1].get_ylim()


def test_experts_stand_beside_the_joined_blocks(figures):
    ste = {"a_1": [np.arange(10.0), np.arange(8.0)], "c_1": [np.arange(3.0)], "b_1": []}
    plot_run(table(), None, Path("x"), ["ste"], run="r", ste=ste)
    (axes,) = figures["r_ste.png"].axes
    assert legend(axes) == ["single-task experts", "a_1"]
    assert [line.get_xdata()[0] for line in dashed(axes)] == [5.5]
    assert [len(line.get_xdata()) for line in axes.lines[:3]] == [10, 8, 10]


@pytest.mark.parametrize("normalized", [True, False])
def test_normalised_values_share_one_range(figures, normalized):
    ste = {"a_1": [np.arange(10.0)], "b_1": [np.arange(9.0)]}
    plot_run(table(), None, Path("x"), run="r", ste=ste, normalized=normalized)
    assert figures.keys() == {f"r_{kind}.png" for kind in ("raw", "evaluation", "learning", "ste")}
    for name, figure in figures.items():
        for axes in figure.axes:
            assert (axes.get_ylim() == (-2, 104)) == (normalized and name != "r_raw.png"), name


def test_tests_awake_are_left_out_if_the_lifetime_sleeps(figures):
    plan = (*PLAN, (6, "test", "sleep", "a_1", 2))
    numbers = list(range(len(plan)))
    regimes = pa.table({"regime_num": numbers, "term_perf": [10.0 * n for n in numbers]})
    plot_run(table(plan), regimes, Path("x"), ["eb", "lb"], run="r")
    (axes,) = figures["r_evaluation.png"].axes
    assert axes.containers[0].lines[0].get_xdata().tolist() == [6]
    (line,) = dashed(figures["r_learning.png"].axes[0])
    assert line.get_ydata().tolist() == [90]


def test_what_is_not_there_makes_no_file(tmp_path):
    trained = table([row for row in PLAN if row[1] == "train"])
    assert [p.name for p in plot_run(trained, None, tmp_path)] == [
        "run_raw.png",
        "run_learning.png",
    ]
    tested = table([row for row in PLAN if row[1] == "test"])
    assert [p.name for p in plot_run(tested, None, tmp_path)] == ["run_evaluation.png"]


def test_one_row_and_numbers_that_are_missing(tmp_path):
    assert len(plot_run(table(PLAN[2:3]).slice(0, 1), None, tmp_path)) == 2
    broken = table()
    nothing = pa.array(np.full(len(broken), np.nan))
    place = broken.schema.get_field_index("reward")
    plot_run(broken.set_column(place, "reward", nothing), None, tmp_path)


def test_only_the_processed_column_is_needed(figures):
    plain = table().select(["block_num", "exp_num", "block_type", "task_name", "reward"])
    plot_run(plain, None, Path("x"), run="r")
    assert "normalised" not in figures["r_learning.png"].axes[0].get_ylabel()
    assert set(figures) == {"r_raw.png", "r_evaluation.png", "r_learning.png"}


def test_colours_are_kept_over_runs(figures):
    colours = task_colours(["b_1", "a_1"])
    twenty = list(task_colours(map(str, range(20))).values())
    assert len(set(twenty)) == 20
    from matplotlib import colormaps

    assert twenty[:3] == [colormaps["tab20"](number) for number in (0, 2, 4)]  # strong ones first
    plot_run(table(), None, Path("x"), ["raw"], run="r", colours=colours)
    lines = figures["r_raw.png"].axes[0].get_legend().get_lines()
    assert [line.get_color() for line in lines] == [colours["a_1"], colours["b_1"]]
    plot_run(table(), None, Path("x"), ["raw"], run="r", colours={"b_1": "black"})
    lines = figures["r_raw.png"].axes[0].get_legend().get_lines()
    assert [line.get_color() for line in lines] == [task_colours(["a_1"])["a_1"], "black"]


def test_a_kind_that_is_asked_for_twice_is_drawn_once(tmp_path):
    paths = plot_run(table(), None, tmp_path, ["raw", "eb", "raw"], run="r")
    assert [path.name for path in paths] == ["r_raw.png", "r_evaluation.png"]


def test_names_are_neither_paths_nor_formulas(tmp_path):
    odd = table([(b, k, s, f"$\\frac{t}$", n) for b, k, s, t, n in PLAN], measure="$x^$")
    ste = {"$\\fraca_1$": [np.arange(3.0)]}
    paths = plot_run(odd, None, tmp_path / "a", run="../../$\\x$ y", measure="$x^$", ste=ste)
    assert [path.parent for path in paths] == 4 * [tmp_path / "a"]
    assert paths[0].name == ".._..___x__y_raw.png"
    assert len(list(tmp_path.rglob("*.png"))) == 4


def test_nothing_global_changes(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    loaded = "matplotlib.pyplot" in sys.modules
    plot_run(table(), None, tmp_path)
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kinds": ["pie"]}, "plot kind is 'pie'; it must be one of raw, eb, lb, ste"),
        ({"unit": "hours"}, "unit is 'hours'; it must be one of exp_num, steps"),
        ({"unit": "steps"}, "lacks the columns episode_step_count"),
        ({"measure": "score"}, "lacks the columns score"),
        ({"data": table().drop(["task_name"])}, "lacks the columns task_name"),
        ({"data": table().slice(0, 0)}, "has no rows"),
        ({"regimes": pa.table({"regime_num": [0]})}, "regimes lacks the columns term_perf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_says_what_to_change(tmp_path, change, words):
    arguments = {"data": table(), "regimes": None, "directory": tmp_path, "kinds": KINDS} | change
    with pytest.raises(ValueError, match=words):
        plot_run(**arguments)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pip install 'jaxsim-novelty\[plots\]'"):
        plot_run(table(), None, tmp_path)


def test_recorded_output_of_the_tool_is_plotted(tmp_path):
    folder = SHARED / "l2m" / "out" / "s00_shipped_example" / "default"
    if not folder.is_dir():
        pytest.skip(f"no recorded outputs at {folder}")
    tabs = pyarrow.csv.ParseOptions(delimiter="\t")
    data, regimes = (
        pyarrow.csv.read_csv(folder / f"out_{name}.tsv", parse_options=tabs)
        for name in ("data", "regime")
    )
    paths = plot_run(data, regimes, tmp_path, run="multi_task", measure="performance")
    assert len(paths) == 3


# Records ------------------------------------------------------------------------------------------


def bands(axes):
    return [c for c in axes.collections if type(c).__name__.endswith("PolyCollection")]


def test_records_have_a_curve_and_a_band_a_block(figures):
    records = made_up(12)
    plot_records(records, Path("x") / "r.png")
    (axes,) = figures["r.png"].axes
    assert [len(line.get_xdata()) for line in axes.lines] == [15, 12, 4]
    assert axes.lines[1].get_xdata()[0] == 16
    expected = records.columns["performance"].astype(float).mean(axis=0)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected[:15])
    assert len(bands(axes)) == 3
    assert legend(axes) == ["Toy", "Toy, target 1"]
    assert axes.get_ylabel() == "performance (0 to 1)"
    assert "12 lifetimes" in figures["r.png"].get_suptitle()


def test_a_band_stays_within_the_bounds_of_its_measure(figures):
    """Student's interval of two lifetimes is far wider than any performance."""
    records = made_up(2)
    for measure in ("performance", "reward"):
        records.columns[measure][:] = [[0.1], [0.9]]
    for measure in ("performance", "reward"):
        plot_records(records, Path("r.png"), measure)
        (axes,) = figures["r.png"].axes
        heights = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in bands(axes)])
        ends = heights.min(), heights.max()
        assert ends == (0, 1) if measure == "performance" else ends[0] < 0 and ends[1] > 1


def test_one_lifetime_has_no_band(figures):
    plot_records(made_up(1), Path("r.png"))
    (axes,) = figures["r.png"].axes
    assert "one lifetime" in figures["r.png"].get_suptitle()
    for band in bands(axes):
        assert not len(band.get_paths())


def test_long_lifetimes_are_averaged_in_groups(figures, monkeypatch):
    monkeypatch.setattr(l2m_plots, "MOST_POINTS", 10)
    records = made_up(6)
    plot_records(records, Path("r.png"))
    (axes,) = figures["r.png"].axes
    assert [len(line.get_xdata()) for line in axes.lines] == [4, 3, 1]
    assert axes.lines[0].get_xdata().tolist() == [2.5, 6.5, 10.5, 14]
    values = records.columns["performance"].astype(float)
    np.testing.assert_allclose(axes.lines[0].get_ydata()[0], values[:, :4].mean())
    assert "4 episodes a point" in figures["r.png"].get_suptitle()


def test_no_value_anywhere_is_refused(tmp_path):
    records = made_up(3)
    nothing = {**records.columns, "reward": np.full((3, 31), np.nan, np.float32)}
    with pytest.raises(ValueError, match="no episode has a reward that is a finite number"):
        plot_records(replace(records, columns=nothing), tmp_path / "r.png", "reward")


def test_the_command_plots_a_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    made_up(4).write(tmp_path / "pd" / "records.parquet")
    assert cli.main(["plot", "pd", "--out", "plots"]) == 0
    assert capfd.readouterr().out == "plots/pd_records.png\n"
    assert (tmp_path / "plots" / "pd_records.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(["plot", "pd/records.parquet", "--out", "plots"]) == 0
    assert capfd.readouterr().out == "plots/records_records.png\n"


# Saved tables -------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A lifetime as l2metrics saves it."""
    monkeypatch.chdir(tmp_path)
    pyarrow.feather.write_feather(table(), tmp_path / "mine_data.feather")
    numbers = list(range(len(PLAN)))
    regimes = pa.table({"regime_num": numbers, "term_perf": [10.0 * n for n in numbers]})
    tabs = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(regimes, tmp_path / "mine_regime.tsv", tabs)
    return tmp_path


def test_the_command_plots_a_saved_table(saved, figures, capfd):
    assert cli.main(["plot", "mine_data.feather", "--out", "p", "--kind", "lb"]) == 0
    assert capfd.readouterr().out == "p/mine_learning.png\n"
    a, _ = dashed(figures["mine_learning.png"].axes[0])
    assert a.get_ydata().tolist() == [0, 30, 70]
    (saved / "mine_regime.tsv").unlink()
    assert cli.main(["plot", "mine_data.feather", "--out", "p"]) == 0
    assert "p/mine_raw.png\np/mine_evaluation.png\np/mine_learning.png" in capfd.readouterr().out


def test_a_batch_has_plots_by_run_with_the_same_colours(saved, figures, capfd):
    names = ["block_num", "block_type", "exp_num", "task_name", "reward"]
    one = table().select(names)
    other = table(PLAN[4:6]).select(names)
    runs = pa.array(["x"] * len(one) + ["y"] * len(other))
    batch = pa.concat_tables([one, other]).append_column("run_id", runs)
    pyarrow.feather.write_feather(batch, saved / "ll_metrics_data.feather")
    assert cli.main(["plot", "ll_metrics_data.feather", "--out", "p", "--kind", "raw"]) == 0
    assert capfd.readouterr().out == "p/x_raw.png\np/y_raw.png\n"
    lines = [figures[f"{run}_raw.png"].axes[0].get_legend().get_lines() for run in "xy"]
    assert lines[0][1].get_color() == lines[1][0].get_color() == task_colours("ab")["b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no nowhere"),
        (["absent.feather"], "absent.feather: cannot be read"),
        (["pd"], "there is no pd/records.parquet"),
        (["text.feather"], "text.feather: is not a feather table"),
        (["mine_data.feather", "--measure", "score"], "lacks the columns score"),
        (["mine_data.feather", "--kind", "pie"], "kind is 'pie'; it must be one of raw, eb, lb"),
        (["mine_data.feather", "--kind", "ste"], "kind is 'ste'; it must be one of raw, eb, lb"),
        (["mine_data.feather", "--seed", "3"], "--seed is for directories of runs"),
        (["mine_data.feather", "--unit", "hours"], "unit is 'hours'"),
        (["mine_data.feather", "--live", "0"], "live is 0.0; it must be a number of seconds"),
        (["two_data.feather"], "name the performance column with --measure; there is a, b"),
        (["records.parquet", "--measure", "speed"], "performance, reward, length"),
        (["records.parquet", "--kind", "raw"], "--kind and --unit are for saved tables"),
        (["records.parquet", "--unit", "steps"], "--kind and --unit are for saved tables"),
    ],
)
def test_the_command_refuses(saved, capfd, arguments, words):
    (saved / "pd").mkdir()
    (saved / "text.feather").write_text("no table")
    two = pa.table({"a": [1.0], "b": [1], "exp_num": [0], "task_name": ["t"]})
    pyarrow.feather.write_feather(two, saved / "two_data.feather")
    made_up(2).write(saved / "records.parquet")
    assert cli.main(["plot", *arguments, "--out", "plots"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert words in line
    assert not (saved / "plots").exists()


def test_live_draws_again_when_the_file_changes(tmp_path):
    path, texts = tmp_path / "file", []
    path.write_text("1")

    def draw():
        if path.read_text() == "half":
            raise ValueError("half written")
        texts.append(path.read_text())

    steps = iter(["", "22", "", "half", "half", "gone", "333"])

    def wait(seconds):
        assert seconds == 5
        step = next(steps)
        if step == "gone":
            path.unlink()
        elif step:
            path.write_text(step)

    repeat_on_change(draw, path, 5, wait, rounds=7)
    assert texts == ["1", "22", "333"]
    path.write_text("half")
    with pytest.raises(ValueError, match="half written"):
        repeat_on_change(draw, path, 5, wait, rounds=0)


def test_live_ends_with_an_interrupt(saved, figures, capfd, monkeypatch):
    def interrupted(seconds):
        assert seconds == 30
        raise KeyboardInterrupt

    monkeypatch.setattr(live.repeat_on_change, "__defaults__", (interrupted, None))
    assert cli.main(["plot", "mine_data.feather", "--out", "p", "--live", "30"]) == 130
    assert "p/mine_raw.png" in capfd.readouterr().out
