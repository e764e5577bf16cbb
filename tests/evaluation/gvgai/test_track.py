"""Track files, what becomes of them, and what is said of wrong ones."""

import json
from pathlib import Path

import pytest

from evaluation.gvgai import results, track
from evaluation.gvgai.results import LevelResult, ResultFile, final_score, read_results
from evaluation.gvgai.rules import Rules, preset
from tests.evaluation.gvgai.scripted import LEVELS

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "examples" / "gvgai" / "cartpole3d.json"


def document(**changes):
    values = {"name": "mine", "levels": [{"task": "CartPole"}] * 5}
    return json.dumps({**values, **changes})


@pytest.mark.requirement(73)
def test_the_shipped_track_is_the_default_one():
    assert SHIPPED.read_text(encoding="utf-8") == track.default_track().dumps()
    loaded = track.load(SHIPPED)
    assert loaded.levels == track.default_track().levels
    assert loaded.rules == Rules()
    assert all(level.about for level in loaded.levels)
    schedule = loaded.schedule
    assert len(schedule.variants) == 5
    assert [b.mode for b in schedule.blocks] == ["train"] * 3 + ["test"] * 2
    assert [b.learning for b in schedule.blocks] == [True] * 3 + [False] * 2


def test_levels_may_be_alike():
    result = track.loads(document())
    assert result.schedule.block_variants().tolist() == [0] * 5
    assert track.loads(result.dumps()).levels == result.levels


def test_rules_start_from_a_preset():
    result = track.loads(document(rules={"preset": "gvgai2017", "validation_times": 2}))
    assert result.rules == preset("gvgai2017").changed({"validation_times": 2})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2", "mine:1:6: Expecting"),
        pytest.param("[" * 100_000, "mine: ", id="deep"),
        ("3", "the document: must be an object"),
        ('{"name": "a", "name": "b"}', "'name' stands twice"),
        (document(levels=[{"task": "CartPole"}] * 4), "has 4 levels; it must have 5"),
        (document(levels=7), "levels: must be a list"),
        (document(levels=[7] * 5), r"levels\[0\]: must be an object"),
        (document(levels=[{}] * 5), r"levels\[0\]: has no 'task'; add it"),
        (document(levels=[{"task": 1}] * 5), r"levels\[0\].task: must be a text"),
        (document(levels=[{"task": "Cart"}] * 5), "unknown task 'Cart'; did you mean 'CartPole'"),
        (document(levels=[{"task": "CartPole", "gravity": 3}] * 5), "has 'gravity', which is"),
        (document(levels=[{"task": "CartPole", "parameters": []}] * 5), "must be an object of"),
        (
            document(levels=[{"task": "CartPole", "parameters": {"gravity": [1]}}] * 5),
            r"levels\[0\]: parameter 'gravity' is \[1\]; it must be a number from 0",
        ),
        (document(name=""), "name: is empty"),
        (document(name=None), "name: must be a text"),
        (document(rules=3), "rules: must be an object"),
        (document(rules={"preset": "x"}), "rules: preset is 'x'"),
        (document(rules={"act_seconds": -1}), "rules: act_seconds is -1"),
        (document(extra=1), "has 'extra', which is unknown; it may have levels, name, rules"),
    ],
)
def test_a_wrong_track_is_refused_where_it_is_wrong(text, words):
    with pytest.raises(ValueError, match=words) as error:
        track.loads(text, "mine")
    assert str(error.value).startswith("mine")
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_track(tmp_path):
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (track.LARGEST_FILE + 1))
    with pytest.raises(ValueError, match="at most"):
        track.load(large)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"binary\.json:1:1"):
        track.load(tmp_path / "binary.json")


def test_a_track_is_its_levels_and_rules():
    one = track.Track("a", LEVELS)
    assert one == track.Track("a", LEVELS)
    assert hash(one) == hash(track.Track("a", LEVELS))
    with pytest.raises(ValueError, match="must have 5"):
        track.Track("a", LEVELS[:3])


# Results ------------------------------------------------------------------------------------------

PLAY = LevelResult("mine", 0, "first", 1, 1, 1, 7.5, 200, act_max_ms=3.25, performance=1.0)


def test_results_come_back_from_their_file(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    with ResultFile(path) as file:
        file.write(PLAY)
        # On its way to disk before the file is closed.
        assert read_results(path) == [PLAY]
        file.write(PLAY)
    with path.open("a") as half:
        half.write('{"game": "mi')
    assert read_results(path) == [PLAY, PLAY]
    path.write_text("{}\n")
    with pytest.raises(ValueError, match=r"results\.jsonl:1: no result"):
        read_results(path)


@pytest.mark.requirement(93)
@pytest.mark.parametrize(
    ("winner", "score", "final"), [(1, 0.0, 1.0), (1, -3.0, 1.0), (1, 7.0, 7.0), (0, -1.0, -1.0)]
)
def test_a_win_is_worth_something(winner, score, final):
    assert final_score(winner, score) == final


@pytest.mark.requirement(81, 93)
def test_a_constructor_that_failed_has_a_line_too():
    failed = LevelResult("mine", 0, results.START_PHASE, None, 0, -100, -1000.0, 0)
    assert "disqualified" in failed.line
