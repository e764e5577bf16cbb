"""Results on disk and back, and how trials are paired with the baseline's."""

import csv
import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.metrics import Reason
from evaluation.sailon.analysis import MEASURES, _digits, analyse
from evaluation.sailon.experiment import generate
from evaluation.sailon.reading import load_results, read_csv
from evaluation.sailon.results import COLUMNS, NEEDED, Results, complete_rows, planned
from evaluation.sailon.settings import ExperimentSettings
from evaluation.sailon.text import ExperimentError
from evaluation.sailon.trial_data import trial_data

HEADER = ",".join(NEEDED)


@pytest.fixture
def results():
    """Results of a small experiment, filled with numbers that tell rows apart."""
    experiment = generate(
        ExperimentSettings(
            novelty=(200, 203),
            difficulty=("hard",),
            novelty_visibility=(0,),
            trials=2,
            training_episodes=3,
            testing_episodes=4,
            pre_novel_episodes=2,
            testing_novelty_p2=1.0,
        )
    )
    rows = planned(experiment)
    count = len(rows["performance"])
    rows["performance"][:] = np.arange(count) / 100
    rows["novelty_probability"][:] = np.where(rows["novelty_initiated"], 0.75, 0.125)
    rows["novelty_threshold"][:] = 0.5
    rows["complete"][:] = True
    rows["novelty"][:] = 3
    rows["level_probs"][:] = 0.0
    rows["level_probs"][:, 3] = 1.0
    rows["entity"][:], rows["attribute"][:], rows["change"][:] = "Block", "speed", ""
    return Results(rows, experiment, {"agent": "tester"})


def planned_table():
    """An Arrow table of an experiment that nobody has played."""
    experiment = generate(ExperimentSettings(trials=1))
    return Results(planned(experiment), experiment).table()


def same(one, other, names):
    for name in names:
        np.testing.assert_array_equal(one.rows[name], other.rows[name], err_msg=name)


def test_columns_that_are_missing_stand_for_nothing():
    rows = complete_rows({"length": np.array([3, 4], np.int32)}, 2)
    assert rows["length"].tolist() == [3, 4]
    assert not rows["complete"].any() and not rows["budget_active"].any()
    assert np.isnan(rows["performance"]).all() and np.isnan(rows["novelty_threshold"]).all()
    assert (rows["novelty"].tolist(), rows["problem"].tolist()) == ([0, 0], ["", ""])
    assert rows["level_probs"].shape == (2, 9) and np.isnan(rows["level_probs"]).all()


def test_parquet_keeps_everything(results, tmp_path):
    path = tmp_path / "some" / "results.parquet"
    results.write(path)
    again = load_results(path)
    assert again.experiment == results.experiment
    assert again.metadata == results.metadata
    same(again, results, results.rows)


def test_a_changed_byte_is_noticed(results, tmp_path):
    path = tmp_path / "results.parquet"
    results.write(path)
    content = path.read_bytes()
    refused = 0
    for place in range(50, len(content), len(content) // 100):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            again = load_results(path)
        except ValueError as error:
            refused += "is damaged" in str(error)
        else:  # of what no checksum covers, which are not the values
            same(again, results, results.rows)
    assert refused > 50


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("performance", lambda column: column.cast("string")),
        ("novelty", lambda column: column.cast("int64")),
        ("novelty_difficulty", lambda column: pa.array([None] * len(column), "string")),
        ("length", lambda column: pa.array([None, *column.to_pylist()[1:]], "int32")),
    ],
)
def test_a_column_of_another_type_is_noticed(results, tmp_path, name, column):
    table = results.table()
    place = table.column_names.index(name)
    changed = table.set_column(place, name, column(table[name]))
    pq.write_table(changed, tmp_path / "results.parquet")
    with pytest.raises(ValueError, match=r"results\.parquet is not a file of SAIL-ON results"):
        load_results(tmp_path / "results.parquet")


def test_csv_keeps_the_trials(results, tmp_path):
    path = tmp_path / "results.csv"
    results.write(path)
    again = load_results(path)
    assert len(results) == 3 + 16
    assert len(again) == 16
    tested = replace(results, rows=results.tested())
    same(again, tested, [*COLUMNS, "level_probs"])
    one, other = (analyse(r, None, resamples=20).to_json() for r in (again, results))
    assert one["cells"] == other["cells"]


def test_metrics_see_the_button_and_the_words(results):
    data = trial_data(results, results)
    assert data.trials.button.tolist() == [4, 4, 2, 2]
    assert data.labels.level.tolist() == [200, 200, 203, 203]
    assert data.predictions.digit.tolist() == [0, 0, 3, 3]
    np.testing.assert_array_equal(data.trials.baseline, data.trials.performance)
    # 203 is block, direction, toward location; level 200 has no words.
    assert data.predictions.true_words.tolist() == [[-1, -1, -1]] * 2 + [[1, 1, 1]] * 2
    assert data.predictions.words[2].tolist() == [1, 0, 0]


def test_one_trial_as_records(results):
    trial = results.experiment.trials[3]
    records = results.records(trial)
    assert records.columns["performance"].shape == (1, 4)
    assert records.columns["predicted_level"].tolist() == [[3] * 4]
    assert records.novelty_levels.tolist() == [0, 3]
    assert [b.count for b in records.schedule.blocks] == [2, 2]
    # Records hold float32, which rounds numbers up to 1 at 6e-8.
    np.testing.assert_allclose(
        records.columns["performance"][0], results.rows["performance"][-4:], atol=1e-6
    )


def test_a_trial_of_which_the_end_was_not_played(results):
    results.rows["performance"][-2:] = np.nan
    results.rows["level_probs"][-2:] = np.nan
    data = trial_data(results, None)
    # What was said last is what was said in the last episode that was played.
    assert data.predictions.probabilities[-1][3] == 1
    row = analyse(results, None, resamples=20).rows[1]
    assert row.counts["performance_post"] == 1


def test_trials_are_paired_by_their_number(results):
    """A table without the first trial of a cell still has each trial beside its partner."""
    rows = results.rows
    index, level = rows["trial_index"], rows["novelty_level"]
    varied = {**rows, "performance": np.arange(len(index)) / 100}
    keep = ~((index == index[index >= 0].min()) & (level == level[index >= 0][0]))
    fewer = Results({name: column[keep] for name, column in varied.items()})
    data = trial_data(fewer, Results(varied))
    np.testing.assert_array_equal(data.trials.performance, data.trials.baseline)
    assert len(data.trials.count) == 3
    # Where the numbers are of another tool and have nothing in common, places decide.
    renumbered = Results({**varied, "trial_index": np.where(index < 0, index, index + 50)})
    whole = trial_data(Results(varied), renumbered)
    np.testing.assert_array_equal(whole.trials.performance, whole.trials.baseline)
    # A number that two trials of a cell have decides nothing either.
    twice = {**varied, "trial_index": np.minimum(index, 0)}
    paired = trial_data(Results(twice), Results(twice))
    np.testing.assert_array_equal(paired.trials.performance, paired.trials.baseline)


def test_a_trial_that_the_baseline_lacks_has_none_beside_it(results):
    shorter = {name: column[:15] for name, column in results.rows.items()}
    data = trial_data(results, Results(shorter))
    assert np.isnan(data.trials.baseline[3]).all()
    np.testing.assert_array_equal(data.trials.baseline[2], results.rows["performance"][11:15])


def test_results_of_different_experiments_are_not_compared(results):
    other = generate(replace(results.experiment.settings, seed=1))
    with pytest.raises(ValueError, match="different experiments"):
        trial_data(results, Results(planned(other), other))


def test_a_report_says_what_is_missing(results):
    report = analyse(results, None, resamples=20).to_json()
    cell = next(cell for cell in report["cells"] if cell["level"] == 203)
    assert (cell["cdt"], cell["median_delay"], cell["level_accuracy"]) == (1.0, 0.0, 1.0)
    assert cell["opti"] is None
    assert cell["reasons"]["opti"] == Reason.NO_BASELINE.sentence
    assert cell["intervals"]["opti"] is None
    # Wilson's interval of 2 of 2, by hand with three decimals.
    assert cell["intervals"]["cdt"] == pytest.approx([0.342, 1.0], abs=1e-3)
    assert set(MEASURES) <= set(cell)
    assert (cell["entity_accuracy"], cell["attribute_accuracy"]) == (1.0, 0.0)
    nominal = next(cell for cell in report["cells"] if cell["level"] == 200)
    assert nominal["cdt"] is None
    assert nominal["false_alarms"] == 0.0
    assert [row["trials"] for row in report["overall"]] == [2]


def test_a_report_as_csv(results):
    lines = list(csv.DictReader(io.StringIO(analyse(results, None, resamples=20).to_csv())))
    row = next(row for row in lines if row["kind"] == "cell" and row["level"] == "203")
    assert (row["cdt"], row["opti"]) == ("1.0", "")
    trials = analyse(results, None, resamples=20).trials_csv().splitlines()
    assert len(trials) == 1 + 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.5, "9.50"), (45.678, "45.68"), (99.99, "99.99"), (100.0, "100"), (-123.4, "-123")],
)
def test_numbers_have_two_decimals_below_100(value, text):
    assert _digits(value) == text
    assert _digits(None) == "∞"


def test_the_generator_s_own_files(recorded_data):
    agent = load_results(recorded_data("sailon/agent.csv"))
    baseline = load_results(recorded_data("sailon/baseline.csv"))
    analysis = analyse(agent, baseline, resamples=20)
    hidden, visible = (row for row in analysis.rows if row.kind == "cell")
    assert (hidden.visibility, visible.visibility) == (0, 1)
    assert hidden.values["cdt"].values == 0.5
    # The generator's analysis prints six decimals.
    assert hidden.values["opti"].values == pytest.approx(0.543103, abs=1e-6)
    assert visible.values["asymptotic_nrp"].values == pytest.approx(0.805556, abs=1e-6)


def test_an_agent_s_characterisations_in_a_csv_file(recorded_data):
    analysis = analyse(load_results(recorded_data("sailon/wow_agent_detection.csv")), None)
    cells = {row.level: row for row in analysis.rows if row.kind == "cell"}
    levels = [lv for lv in cells if lv != 200 and cells[lv].values["found"].values == 1]
    assert levels == [103, 202, 203, 204, 206, 207]
    assert cells[202].values["level_accuracy"].values == 1
    assert cells[203].values["level_accuracy"].values == 0
    assert cells[207].values["censored_median_delay"].values == 5
    assert cells[200].values["false_alarms"].values == 0.25


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "column 'trial_index' is missing"),
        ("trial_index,novelty_level\n", 1, "column 'novelty_difficulty' is missing"),
        (HEADER + "\n", 1, "no row"),
        (HEADER + "\n0,201,easy,0,0,1.0,False,0.1\n", 2, "8 cells for the 9 columns"),
        (HEADER + "\n0,201,easy,0,0,1.0,False,0.1,x\n", 2, "novelty_threshold is 'x'"),
        (HEADER + "\n0,201,easy,0,0,1.0,maybe,0.1,1\n", 2, "it must be True or False"),
        (HEADER + "\na,201,easy,0,0,1.0,True,0.1,1\n", 2, "it must be a whole number"),
    ],
)
def test_csv_files_that_are_none(text, line, words):
    with pytest.raises(ExperimentError, match=f"^file:{line}:1: ") as caught:
        read_csv(text, "file")
    assert words in caught.value.reason


def test_files_that_hold_no_results(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        load_results(tmp_path / "missing.parquet")
    (tmp_path / "other.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a file of SAIL-ON results"):
        load_results(tmp_path / "other.parquet")
    table = planned_table().drop_columns(["performance"])
    pq.write_table(table, tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="not a file of SAIL-ON results"):
        load_results(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="window is 9"):
        analyse(read_csv(HEADER + "\n0,201,easy,0,0,1.0,False,0.1,1\n", "f"), None, window=9)


@pytest.mark.parametrize(
    ("word", "value"),
    [("True", True), ("true", True), ("1", True), ("False", False), ("FALSE", False), ("0", False)],
)
def test_truth_in_a_csv_file(word, value):
    table = read_csv(f"{HEADER}\n0,201,easy,0,0,1.0,{word},0.1,1\n", "file")
    assert table.rows["novelty_initiated"].tolist() == [value]


def test_every_cell_of_a_csv_file_is_in_its_column():
    """One row with a value of its own in every column, in another order than that of the table."""
    numbers = {np.int32: "{}", np.float64: "{}.25", np.str_: "word {}"}
    cells = {
        name: "False" if kind is np.bool_ else numbers[kind].format(3 + place)
        for place, (name, kind) in enumerate(reversed(COLUMNS.items()))
    }
    cells["level_probs"] = " ".join(f"0.{digit}" for digit in range(1, 10))
    table = read_csv(",".join(cells) + "\n" + ",".join(cells.values()) + "\n", "file").rows
    for place, (name, kind) in enumerate(reversed(COLUMNS.items())):
        (value,) = table[name].tolist()
        expected = {np.int32: 3 + place, np.float64: 3.25 + place, np.bool_: False}
        assert value == expected.get(kind, cells[name]), name
    assert table["level_probs"].tolist() == [[digit / 10 for digit in range(1, 10)]]


def test_a_trial_of_the_nominal_level_has_no_button():
    """Whatever a file of another program has in its column."""
    rows = [
        f"0,{level},easy,0,{episode},1.0,{episode >= 2},0.1,1"
        for level in (200, 203)
        for episode in range(5)
    ]
    data = trial_data(read_csv("\n".join([HEADER, *rows]) + "\n", "file"), None)
    assert data.trials.button.tolist() == [5, 2] and data.trials.count.tolist() == [5, 5]
