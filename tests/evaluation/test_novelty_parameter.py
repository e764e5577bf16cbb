"""A novelty among the parameters of a syllabus, of a track and of a command."""

import json

import pytest

from evaluation.gvgai import track
from evaluation.l2m import SyllabusError, loads
from evaluation.train.course import task_of

HEAVY = {"families": ["gravity"], "parameters": {"gravity": 15.0}}
TWO = {
    "families": ["push_turn", "wind"],
    "parameters": {"actions/turn": 26.35, "wind/speed": 7.105},
}


def syllabus(values, defaults=None):
    episode = {"$episode": "CartPole3D", **values}
    return json.dumps(
        {
            "name": "one",
            "contains": "episodes",
            "default_params": defaults or {},
            "instructions": [{"$phase": "1.train"}, {"$repeat": episode, "count": 2}],
        }
    )


def test_a_syllabus_takes_a_novelty():
    schedule = loads(syllabus({"novelty": TWO}))
    assert schedule.variants == loads(syllabus(TWO["parameters"])).variants
    assert dict(schedule.variants[0][1]) == TWO["parameters"]
    assert loads(syllabus({}, {"novelty": TWO})).variants == schedule.variants


def test_a_syllabus_says_where_a_novelty_is_wrong():
    wrong = {"families": ["gravty"], "parameters": {"gravity": 15.0}}
    with pytest.raises(SyllabusError, match=r"1:\d+: .*did you mean 'gravity'"):
        loads(syllabus({"novelty": wrong}))
    with pytest.raises(SyllabusError, match="did you mean 'gravity'"):
        loads(syllabus({}, {"novelty": wrong}))


def test_a_track_takes_a_novelty():
    document = track.default_track().to_json()
    document["levels"][1] = {"task": "CartPole3D", "parameters": {"novelty": HEAVY}}
    assert track.loads(json.dumps(document)).levels[1].parameters == (("gravity", 15.0),)
    document["levels"][1] = {"task": "CartPole", "parameters": {"novelty": HEAVY}}
    with pytest.raises(ValueError, match="unknown parameter 'novelty'"):
        track.loads(json.dumps(document))


def test_a_command_takes_a_novelty():
    setting = f"novelty={json.dumps(TWO)}"
    assert task_of("CartPole3D", None, [setting]) == (
        "CartPole3D",
        tuple(TWO["parameters"].items()),
    )
    task, values = task_of("203", "hard", [setting])
    assert task == "CartPole3D"
    assert dict(values) == TWO["parameters"] | {
        "novelty/level": 203,
        "novelty/difficulty": "hard",
    }
