"""Every value of a cell reaches what its base plays, and says what can be played together."""

from unittest.mock import MagicMock

import pytest

from evaluation import sweep
from evaluation.sweep import bases
from evaluation.sweep.bases.base import SweepFiles, complete
from evaluation.sweep.grid import SweepCell
from tests.evaluation.reached import arguments, reached

ROLLOUT, SCANNER = "jaxsim.rollout", "evaluation.scanner.play"
LEARNERS = "jaxsim.training.get"
REPORT, CURVE = (
    "evaluation.sweep.bases.run.summarise_records",
    "evaluation.train.curve.LearningCurve.of",
)
TRIALS = "evaluation.sailon.evaluate.play"

CALLS = {
    "evaluate": (ROLLOUT,),
    "run": (LEARNERS, SCANNER, REPORT),
    "train": (LEARNERS, SCANNER, CURVE),
    "sailon evaluate": (TRIALS,),
}
PHYSICS = {"pole/length": 0.7}
LEARNER = {"agent": "a2c", "settings/discount": 0.9, "settings/hidden": "8,8"}
FIXED = {
    "evaluate": {"agent": "random", "level": 203, "episodes": 4, **PHYSICS},
    "run": {"syllabus": "s.json", "lifetimes": 8, **LEARNER, **PHYSICS},
    "train": {"level": 203, "lifetimes": 8, "episodes": 40, "eval-every": 20, **LEARNER, **PHYSICS},
    "sailon evaluate": {},
}
OTHER = {
    "evaluate": {
        "agent": "nothing",
        "task": "CartPole",
        "level": 204,
        "difficulty": "hard",
        "episodes": 5,
        "seed": 5,
    },
    "run": {
        "syllabus": "other.json",
        "agent": "ppo",
        "lifetimes": 16,
        "seed": 5,
        "width": 2,
        "measure": "length",
        "window": 5,
        "settings/discount": 0.8,
        "settings/hidden": "4",
    },
    "train": {
        "task": "CartPole",
        "level": 205,
        "difficulty": "hard",
        "agent": "ppo",
        "episodes": 60,
        "eval-every": 40,
        "eval-episodes": 3,
        "lifetimes": 16,
        "seed": 5,
        "width": 2,
        "settings/discount": 0.8,
        "settings/hidden": "4",
    },
    "sailon evaluate": {
        "agent": "random",
        "baseline": "random",
        "level": 203,
        "difficulty": "hard",
        "visibility": 1,
        "hint-level": 1,
        "trials": 3,
        "episodes": 9,
        "button": 4,
        "training": 2,
        "seed": 5,
        "starts": "wsu",
    },
}
ABREAST = {
    "evaluate": {"difficulty", "pole/length"},  # other levels are other programs
    "run": {"settings/discount"},
    "train": {"settings/discount"},
    "sailon evaluate": {"level", "difficulty", "visibility"},
}
"""Values that may differ between the cells of one call."""
NO_AXIS = {"episodes", "lifetimes", "trials", "width"}
"""Values that all cells of a sweep share."""
SYLLABUS = """{"instructions": [{"$phase": "1.train"},
  {"$repeat": {"$episode": "CartPole", "gravity": %s}, "count": 6}]}"""


@pytest.fixture
def place(tmp_path):
    for name, gravity in (("s.json", 9.8), ("other.json", 5.0)):
        (tmp_path / name).write_text(SYLLABUS % gravity)
    return SweepFiles({name: tmp_path / name for name in ("s.json", "other.json")})


def changes(name):
    """Each other value of a cell, as (its name, values with it)."""
    base, fixed = bases.get(name), FIXED[name]
    replacements = OTHER[name] | ({"pole/length": 0.8} if "pole/length" in fixed else {})
    assert set(replacements) >= set(base.fields()), "a field without another value"
    whole = complete(base, fixed)
    for field, value in replacements.items():
        # A level is of a task: the task is changed where there is none.
        yield field, whole | {field: value} | ({"level": ""} if field == "task" else {})


def calls_of(name, values, place):
    """What a cell calls: (call, name of an argument, value)."""
    with reached({call: MagicMock() for call in CALLS[name]}) as calls:
        bases.get(name).play([SweepCell(3, values)], place)
    assert [call.target for call in calls] == list(CALLS[name])
    return arguments(calls)


@pytest.mark.parametrize("name", CALLS)
def test_every_value_changes_what_is_played(name, place):
    base = bases.get(name)
    usual = calls_of(name, complete(base, FIXED[name]), place)
    for field, values in changes(name):
        base.check(values, place)
        assert calls_of(name, values, place) != usual, field


@pytest.mark.parametrize("name", CALLS)
def test_cells_that_differ_in_what_a_call_takes_once_are_not_played_together(name, place):
    base = bases.get(name)
    usual = base.keys(complete(base, FIXED[name]), place)
    for field, values in changes(name):
        if field not in NO_AXIS:
            same = base.keys(values, place) == usual
            assert same == (field in ABREAST[name]), field


@pytest.mark.parametrize("name", CALLS)
def test_values_that_all_cells_share_are_no_axis(name, place, tmp_path):
    fixed = {"syllabus": str(place.file("s.json"))} if name == "run" else {}
    for field in sorted(NO_AXIS & set(bases.get(name).fields())):
        values = {"base": name, "fixed": fixed, "axes": {field: [2, 4]}}
        with pytest.raises(ValueError, match=f"{field} cannot be an axis"):
            sweep.plan(values, tmp_path / "plan")


TWO_TASKS = """{"instructions": [{"$phase": "1.train"},
  {"$repeat": {"$episode": "CartPole2D"}, "count": 4},
  {"$repeat": {"$episode": "CartPole"}, "count": 6}]}"""


@pytest.mark.parametrize(
    ("name", "values", "lanes", "episodes", "steps"),
    [
        ("evaluate", {"episodes": 7}, 7, 7, 7 * 200),
        ("evaluate", {"episodes": 7, "task": "CartPole"}, 7, 7, 7 * 500),
        # An episode of CartPole2D has at most 2,000 steps, one of CartPole 500.
        ("run", {"lifetimes": 8, "width": 2}, 16, 8 * 10, 8 * (4 * 2000 + 6 * 500)),
        (
            "train",
            {"lifetimes": 8, "width": 2, "episodes": 40, "eval-every": 20, "eval-episodes": 5},
            *(16, 8 * (40 + 3 * 5), 8 * (40 + 3 * 5) * 200),
        ),
        ("sailon evaluate", {"trials": 3, "episodes": 7}, 3, 3 * 7, 2 * 3 * 7 * 200),
    ],
)
def test_what_a_cell_takes_is_known_before_it_is_played(
    name, values, lanes, episodes, steps, place, tmp_path
):
    (tmp_path / "two.json").write_text(TWO_TASKS)
    place = SweepFiles({"two.json": tmp_path / "two.json"})
    base = bases.get(name)
    whole = complete(base, {"syllabus": "two.json", **values} if name == "run" else values)
    assert base.lanes(whole) == lanes
    assert base.episodes(whole, place) == episodes
    assert base.steps(whole, place) == steps
    assert base.bytes(whole, 2, place) > base.bytes(whole, 1, place) > 0
