"""Experts from the file of 2019 and from our own records, and everything that is neither."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.l2m.l2metrics.experts import training_curves
from evaluation.l2m.l2metrics.settings import COMPAT, LogSettings
from evaluation.l2m.ste_info import from_info_json
from evaluation.l2m.ste_sources import from_records, runs_of_records
from evaluation.l2m.ste_store import SteRun
from evaluation.metrics.l2m.smoothing import smooth
from evaluation.records import COLUMNS, MEASURES, Records
from evaluation.schedule import Block, Schedule
from tests.conftest import SHARED


@pytest.fixture
def write(tmp_path):
    def to_file(text):
        path = tmp_path / "info.json"
        path.write_text(text)
        return path

    return to_file


def test_names_and_numbers(write):
    path = write('{"package_Task-6x6": 0.95, "Ünï": 2, "package_task-6x6": -1e-3}')
    values = from_info_json(path)
    assert values == {"package_Task-6x6": 0.95, "Ünï": 2.0, "package_task-6x6": -0.001}
    assert all(isinstance(value, float) for value in values.values())
    assert from_info_json(write("{}")) == {}


def test_the_recorded_file():
    path = SHARED / "l2m" / "learnkit_2020" / "taskinfo_info.json"
    if not path.is_file():
        pytest.skip(f"no recorded file at {path}")
    assert from_info_json(path)["minigridkit_minigridkit_minigrid6x6"] == 0.95


BAD = {
    "empty": ("", "broken or truncated JSON at line 1, column 1"),
    "truncated": ('{"a": 1,\n', "broken or truncated JSON at line 2"),
    "list": ("[1]", r'must be an object such as \{"task": 0\.95\}'),
    "number": ("3", "must be an object"),
    "text": ('{"a": "0.9"}', "saturation of 'a' must be a number, not '0.9'"),
    "null": ('{"a": null}', "saturation of 'a' must be a number, not None"),
    "truth": ('{"a": true}', "must be a number, not True"),
    "inner": ('{"a": {"b": 1}}', "must be a number, not an object"),
    "nan": ('{"a": NaN}', "NaN is not a number of JSON"),
    "infinity": ('{"a": -Infinity}', "-Infinity is not a number of JSON"),
    "huge": ('{"a": 1e999}', "'a' is too large a number"),
    "huge whole": ('{"a": 1%s}' % ("0" * 400), "'a' is too large a number"),
    "digits": ('{"a": 1%s}' % ("0" * 5000), "is not JSON of task names and numbers"),
    "deep": ('{"a": ' * 100_000, "is not JSON of task names|broken"),
    "twice": ('{"a": 1, "a": 2}', "task 'a' is there twice"),
    "truth value": ('{"a": true}', "saturation of 'a' must be a number, not True"),
    "no name": ('{"": 1}', "'' is not a task name"),
    "line break": (r'{"a\nb": 1}', r"'a\\nb' is not a task name"),
    "half a character": (r'{"a\ud800": 1}', "is not a task name"),
    "long name": ('{"%s": 1}' % ("a" * 201), "not a task name; it must have 1 to 200"),
    "large": ('{"a": 1}' + " " * 2**20, "at most 1,048,576 are read"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_say_what_is_wrong(write, name):
    text, words = BAD[name]
    path = write(text)
    with pytest.raises(ValueError, match=words) as error:
        from_info_json(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        from_info_json(tmp_path / "absent.json")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        from_info_json(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b'{"\xff": 1}')
    with pytest.raises(ValueError, match="is not JSON"):
        from_info_json(tmp_path / "bytes.json")


# Records ------------------------------------------------------------------------------------------

FAR = (("target", 2),)
SINGLE = Schedule(
    "single",
    (
        Block(0, 1, "train", "Toy", FAR, 3, True),
        Block(1, 1, "test", "Toy", (), 2, False),
        Block(2, 2, "train", "Toy", FAR, 2, True),
    ),
)
LIFELONG = Schedule(
    "lifelong",
    (
        Block(0, 1, "train", "Toy", (), 3, True),
        Block(1, 1, "train", "Toy", (("target", 1),), 3, True),
        Block(2, 1, "train", "Toy", FAR, 3, True),
    ),
)


def records_of(schedule=SINGLE, lifetimes=3, first=0):
    shape = (lifetimes, schedule.num_episodes)
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    columns["performance"][:] = np.arange(shape[0] * shape[1]).reshape(shape) / 8
    columns["reward"][:] = columns["performance"] * 8
    columns["complete"][:] = True
    return Records(schedule, columns, np.zeros(3, np.int32), first)


def lists(runs):
    return {task: [curve.tolist() for curve in curves] for task, curves in runs.items()}


def test_training_blocks_make_one_curve_a_lifetime():
    runs = from_records(records_of(), "reward")
    assert lists(runs) == {"toy_v0": [[0, 1, 2, 5, 6], [7, 8, 9, 12, 13], [14, 15, 16, 19, 20]]}
    assert runs["toy_v0"][0].dtype == np.float64
    assert lists(from_records(records_of(lifetimes=1)))["toy_v0"] == [[0, 0.125, 0.25, 0.625, 0.75]]


def test_lifetimes_are_chosen_by_number():
    (curves,) = lists(from_records(records_of(first=40), "reward", [42, 40])).values()
    assert [curve[0] for curve in curves] == [14, 0]


def test_the_lifelong_syllabus_names_the_task():
    assert list(from_records(records_of(), syllabus=LIFELONG)) == ["toy_v2"]


def test_episodes_without_a_value_are_left_out():
    records = records_of()
    records.columns["complete"][0, 1] = False
    records.columns["reward"][0, 5] = np.nan
    assert lists(from_records(records, "reward", [0])) == {"toy_v0": [[0, 2, 6]]}


@pytest.mark.parametrize(
    ("records", "arguments", "words"),
    [
        (records_of(LIFELONG), {}, "lifelong trains 3: Toy, Toy target=1, Toy target=2"),
        (
            records_of(replace(SINGLE, blocks=SINGLE.blocks[1:2])),
            {},
            "trains 0: none",
        ),
        (records_of(), {"measure": "speed"}, "performance, reward, length"),
        (records_of(), {"lifetimes": [3]}, "lifetime is 3; it must be from 0 to 2"),
        (records_of(), {"lifetimes": [-1]}, "lifetime is -1; it must be from 0 to 2"),
        (
            records_of(),
            {"syllabus": replace(LIFELONG, blocks=LIFELONG.blocks[:2])},
            "lifelong does not have Toy target=2; it has Toy; Toy target=1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_records_say_what_to_change(records, arguments, words):
    with pytest.raises(ValueError, match=words):
        from_records(records, **arguments)


def test_a_lifetime_without_any_value_is_refused():
    records = records_of(first=5)
    records.columns["complete"][1] = False
    with pytest.raises(ValueError, match="lifetime 6 has no complete training episode"):
        from_records(records)


@pytest.mark.parametrize("compat", [None, COMPAT])
def test_training_of_experts_is_smoothed_by_the_windows_of_the_lifetimes(compat):
    """Regime by regime; windows of l2metrics 3.1 lag. Rows without a value are out."""
    values = np.array([1.0, 5.0, np.nan, 2.0, 8.0, 9.0, 0.0, 4.0])
    train = np.array([1, 1, 1, 1, 0, 0, 1, 1], bool)
    regimes = np.array([0, 0, 0, 0, 1, 1, 2, 2], np.int32)
    run = SteRun({"reward": values}, np.arange(10, 18), regimes, train)
    settings = LogSettings(window_length=3, compat=compat)
    (curve,) = training_curves([run], settings, settings.is_compat)
    assert curve.experiences.tolist() == [10, 11, 13, 16, 17]
    parts = np.zeros((2, 3))
    parts[0], parts[1, :2] = [1.0, 5.0, 2.0], [0.0, 4.0]
    smoothed = smooth(parts, np.array([3, 2]), 3, "flat", compat is None)
    np.testing.assert_array_equal(curve.values, [*smoothed[0], *smoothed[1, :2]])
    other = smooth(parts, np.array([3, 2]), 3, "flat", compat is not None)
    assert (smoothed != other).any()


def test_a_run_of_records_has_every_measure_and_the_places_of_its_episodes():
    records = records_of(lifetimes=2, first=4)
    records.columns["length"][:] = 100 + np.arange(14).reshape(2, 7)
    records.columns["complete"][1, 2] = False
    task, (first, second) = runs_of_records(records, [4, 5], source="mine")
    assert task == "toy_v0"
    # Blocks of three, two and two episodes; the one in the middle is a test.
    for run, row, episodes, regimes in (
        (first, 0, [0, 1, 2, 5, 6], [0, 0, 0, 2, 2]),
        (second, 1, [0, 1, 5, 6], [0, 0, 2, 2]),
    ):
        assert run.source == f"mine, lifetime {4 + row}"
        assert run.experiences.tolist() == episodes and run.regimes.tolist() == regimes
        assert run.train.dtype == bool and run.train.all() and len(run.train) == len(episodes)
        assert set(run.measures) == set(MEASURES)
        for name, values in run.measures.items():
            np.testing.assert_array_equal(values, records.columns[name][row, episodes])
