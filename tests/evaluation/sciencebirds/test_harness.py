"""The harness: answers to every request, and the files that an evaluation leaves."""

import csv
import json
import math
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.schedule import Block, Schedule
from evaluation.sciencebirds import codec, harness, results
from evaluation.sciencebirds.codes import LOST, MAIN_MENU, PLAYING, WON
from evaluation.sciencebirds.game import Counts, LevelOutcome, action_of, polar_action
from evaluation.sciencebirds.levels import LevelPath
from evaluation.sciencebirds.recording import LevelRecorder
from evaluation.sciencebirds.results import (
    LEVEL_COLUMNS,
    LIKELIHOOD_COLUMNS,
    EvaluationPlace,
    ResultWriter,
)
from evaluation.session import EpisodeResult, Log, Prediction
from tests.evaluation.sciencebirds.support import Run, ShotGame, evaluation, level_set, trial

STARTED = datetime(2020, 4, 7, 12, 30, 59)


@pytest.fixture
def files(tmp_path):
    return ResultWriter.below(tmp_path, "naive", 2004, STARTED)


def table(files, trial_number, end, group="uninformed"):
    """Rows of a file, its headings first."""
    path = files.folder / f"Agent_naive_Trial_{trial_number}_{group}_20200407123059_{end}"
    with path.open(newline="") as file:
        return list(csv.reader(file))


# --- answers ---------------------------------------------------------------------------------


def test_every_request_is_answered_at_every_time():
    """Nothing is left unanswered, and what is refused does not change what comes."""
    what = evaluation(trial(2, [1], interactions=1, notify=True), step=1, in_tests=True)
    run = Run(what)
    usual = {
        "u8": 0, "u32": 1, "i32": 1, "f32": 0.5, "text": "x", "signed text": "x", "ids": (1,),
        "shots": ((1, 0, 0, 0), (1, 0, 0, 0)), "groups": (0.5,), "rest": 300,
    }  # fmt: skip
    for _ in range(12):
        for name, message in codec.BY_NAME.items():
            values = {field: usual[kind] for field, kind in message.fields}
            reply = run.harness.answer(codec.Request(message, values))
            assert reply is not None
            assert bool(reply) == bool(message.reply), name
            if name not in ("shoot_sequence", "shoot_sequence_fast") and reply:
                run.ask(name, **values)
    assert run.state == 13


def test_answers_that_are_always_the_same():
    run = Run(evaluation(trial(3)))
    for _ in range(2):
        assert run.ask("configure", agent_id=7, mode=0) == {"round": 0, "minutes": 0, "levels": 0}
        assert run.ask("set_speed", speed=50) == 1
        assert run.ask("current_level") == 1
        assert run.ask("number_of_levels") == 0
        assert run.ask("all_scores") == ()
        run.begin()


@pytest.mark.requirement(33)
def test_the_header_of_a_set():
    tests = [level_set(2, time=9, interactions=8, attempts=0, selection=True)]
    what = evaluation(trial(level_set(3, time=600, interactions=200), tests, notify=True))
    training = {
        "time_limit": 600,
        "interaction_limit": 200,
        "levels": 0,
        "attempts": 1,
        "mode": 0,
        "order": 1,
        "novelty_query": 1,
    }
    run = Run(what)
    assert run.ask("ready") == training  # of the set that comes after the trial's announcement
    assert run.ask("ready") == training
    for _ in range(3):
        run.ask("load_next"), run.shoot()
    test = {"time_limit": 9, "interaction_limit": 8, "attempts": 0, "mode": 1, "order": 0}
    assert run.state == 8
    assert run.ask("ready") == training | test
    assert run.ask("ready") == dict.fromkeys(training, 0)


def test_numbers_of_levels_are_told_on_request():
    run = Run(evaluation(trial(3)), tell_levels=True)
    assert run.ask("ready")["levels"] == 3
    assert run.ask("number_of_levels") == 3


@pytest.mark.requirement(44)
def test_novelty_is_told_to_those_who_may_ask():
    levels = level_set(1).levels + level_set(1, novelty=2).levels + level_set(1).levels
    for notify, expected in ((True, [0, 0, 1, 0]), (False, [-1] * 4)):
        each = level_set(3)
        run = Run(evaluation(trial(type(each)(each.limits, levels), notify=notify)))
        run.begin()
        answers = [run.ask("novelty_info")]
        for _ in range(3):
            run.ask("load_next")
            answers.append(run.ask("novelty_info"))
            hint = run.ask("hint", level=1)
            assert hint == ([{"level": run.game.loaded[-1].novelty_level}] if notify else [])
            run.shoot()
        assert answers == expected


def test_the_score_is_that_of_the_level():
    run = Run(evaluation(trial(level_set(2, attempts=2), [1])), shots=2)
    assert run.ask("score") == 0
    run.begin()
    assert run.ask("score") == 0
    run.ask("load_next")
    run.shoot()
    assert run.ask("score") == 10
    run.shoot()
    assert (run.state, run.ask("score")) == (WON, 20)
    run.ask("load_next")
    assert run.ask("score") == 0


def test_before_the_first_level_of_a_set_nothing_of_the_last_one_is_shown():
    run = Run(evaluation(trial(1, [level_set(2, novelty=3)], notify=True)))
    names = ("score", "ground_truth", "screenshot", "initial_screenshot", "batch")
    pictures = run.game.picture(), run.game.first_picture()

    def answers():
        return [run.ask(name) for name in names] + [run.ask("hint", level=1)]

    nothing = [0, {}, codec.NO_PICTURE, codec.NO_PICTURE, [], []]
    assert answers() == nothing
    run.begin()
    assert answers() == nothing
    run.ask("load_next")
    run.shoot()  # the end of the training
    run.begin()
    assert run.game.score == 10
    assert answers() == nothing
    run.ask("load_next")
    assert answers() == [0, {"shots": 0}, *pictures, [{"shots": 0}], [{"level": 3}]]


def test_after_a_test_nothing_is_shown_before_a_level_is_loaded():
    what = evaluation(trial(2, [level_set(1, novelty=3)], interactions=1, notify=True))
    run = Run(what)
    run.begin()
    run.ask("load_next"), run.shoot()
    run.begin()
    run.ask("load_next"), run.shoot()
    assert run.ask("hint", level=1) == [{"level": 3}]
    assert run.begin() == [10]
    names = ("score", "novelty_info", "ground_truth", "screenshot", "initial_screenshot", "batch")
    answers = [run.ask(name) for name in names] + [run.ask("hint", level=1)]
    assert answers == [0, 0, {}, codec.NO_PICTURE, codec.NO_PICTURE, [], []]


@pytest.mark.parametrize("what", [trial(1), trial(1, executions=2), trial(1, [1])])
def test_the_last_level_is_shown_until_the_next_set_is_begun(what):
    run = Run(evaluation(what))
    run.begin()
    run.ask("load_next"), run.shoot()
    assert run.state in (8, 11, 13)
    assert (run.ask("score"), run.ask("ground_truth")) == (10, {"shots": 1})
    if run.state != 13:
        run.ask("ready")
        assert (run.ask("score"), run.ask("ground_truth")) == (0, {})


def test_the_last_level_of_a_trial_without_hints_stays_without_at_the_next_announcement():
    trials = trial(level_set(1, novelty=3)), trial(1, notify=True)
    run = Run(evaluation(*trials))
    run.begin()
    run.ask("load_next"), run.shoot()
    assert run.state == 11
    assert (run.ask("novelty_info"), run.ask("hint", level=1)) == (-1, [])


def test_a_limit_that_is_met_during_a_shot_counts_after_it():
    class SlowGame(ShotGame):
        def shoot(self, action):
            run.clock.advance(0.5)
            return super().shoot(action)

    def play(seconds, name, **values):
        """Begin a level with a limit of 10 s and let `seconds` pass before a request."""
        run.harness._game = run.game = SlowGame(shots=9)
        run.begin()
        run.ask("load_next")
        run.clock.advance(seconds)
        return run.ask(name, **values)

    shot = {"x": 1, "y": 0, "t1": 0, "t2": 0}
    requests = (
        (9.8, "shoot", shot, 1, 1),
        (9.8, "shoot_and_record", {**shot, "frequency": 1}, [{"shots": 1}], 1),
        (9.2, "shoot_sequence", {"shots": ((1, 0, 0, 0),) * 3}, [1, 1, 0], 2),
    )
    for seconds, name, values, expected, fired in requests:
        run = Run(evaluation(trial(level_set(3, time=10))))
        assert play(seconds, name, **values) == expected
        assert run.game.fired == fired
        assert run.state == 13


@pytest.mark.parametrize("tests", [(), [1]])
def test_a_level_that_a_load_leaves_at_a_limit_has_its_row(files, tests):
    what = evaluation(trial(level_set(4, interactions=1), tests), trial(level_set(1, first=90)))
    run = Run(what, shots=3, results=files, per_episode=True)
    run.begin()
    run.ask("load_next"), run.shoot()
    assert run.ask("load_next") == 0
    _, row = table(files, 0, "EvaluationData.csv")
    assert row[1:4] == ["1", "10", "Playing"]


def test_a_question_that_a_load_causes_is_about_the_level_that_was_left(files):
    what = evaluation(trial(2), step=1, in_training=True)
    run = Run(what, shots=3, results=files, per_episode=True)
    run.begin()
    run.ask("load_next"), run.shoot(), run.ask("load_next")
    assert run.state == 12
    run.likelihood()
    _, row = table(files, 0, "Likelihood.csv")
    assert row[1] == "1"


def test_won_and_lost():
    run = Run(evaluation(trial(level_set(2, attempts=0))))
    run.begin()
    for x, expected in ((1, WON), (0, LOST)):
        run.ask("load_next")
        assert run.state == PLAYING
        run.shoot(x)
        assert run.state == expected
        assert run.shoot() == 0


def test_shots_of_all_kinds():
    run = Run(evaluation(trial(level_set(1, attempts=0))), shots=4)
    run.begin()
    shot = {"x": 1, "y": 0, "t1": 0, "t2": 0}
    polar = {"radius": 1, "angle": 90, "t1": 0, "t2": 0}
    assert run.ask("shoot_and_record", **shot, frequency=1) == []
    assert run.ask("shoot_sequence", shots=((1, 0, 0, 0),) * 2) == [0, 0]
    run.ask("load_next")
    assert run.ask("shoot_fast", **shot) == 1
    assert run.ask("shoot_polar", **polar) == 1
    assert run.ask("shoot_and_record", **shot, frequency=1) == [{"shots": 3}]
    assert run.ask("zoom_out") == 1
    assert run.ask("shoot_sequence_fast", shots=((1, 0, 0, 0),) * 3) == [1, 0, 0]
    assert run.ask("zoom_out") == 0
    run.ask("load_next")
    assert run.ask("shoot_polar_fast", **polar) == 1


def test_what_is_seen_belongs_to_a_level():
    run = Run(evaluation(trial(level_set(1, attempts=0))))
    nothing = codec.NO_PICTURE
    assert run.ask("ground_truth") == {}
    assert run.ask("screenshot") == run.ask("initial_screenshot") == nothing
    assert run.ask("batch", frequency=1) == []
    run.begin()
    run.ask("load_next")
    assert run.ask("ground_truth") == run.ask("noisy_ground_truth") == {"shots": 0}
    assert run.ask("batch", frequency=1) == [{"shots": 0}]
    observations = {"vector": {"shots": 0}, "picture": codec.Picture(1, 2, b"abcdef")}
    assert run.ask("ground_truth_with_screenshot") == observations
    assert run.ask("noisy_ground_truth_with_screenshot") == observations
    assert run.ask("initial_screenshot") == codec.Picture(1, 1, b"xyz")


def test_a_level_is_begun_anew():
    run = Run(evaluation(trial(level_set(2, attempts=2))), shots=3)
    run.begin()
    assert run.ask("restart") == 0
    run.ask("load_next")
    run.shoot()
    assert run.ask("restart") == 1
    assert run.game.fired == 0
    assert run.ask("restart") == 0
    assert [level.number for level in run.game.loaded] == [0, 0]


@pytest.mark.parametrize(
    ("vector", "action"),
    [((0, 0), 0), ((5, 5), 1), ((5, -5), 1), ((-5, 5), 2), ((-1, 0), 2), ((2, 3), 3), ((2, -3), 4)],
)
def test_actions_of_shots(vector, action):
    assert action_of(*vector) == action


def test_polar_shots_are_the_same_actions():
    assert polar_action(0, 77) == 0
    for angle in range(-720, 720):
        x, y = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        if abs(abs(x) - abs(y)) > 1e-3:
            expected = action_of(round(1000 * x), round(1000 * y))
            assert polar_action(10, angle) == expected
            assert polar_action(-10, angle + 180) == expected
    assert [polar_action(1, angle) for angle in (0, 45, 90, 180, 225, 270)] == [1, 1, 3, 2, 2, 4]


# --- files -----------------------------------------------------------------------------------


@pytest.mark.requirement(46)
def test_columns_are_those_of_the_original():
    assert ",".join(LEVEL_COLUMNS) == (
        "EvaluationIndex,LevelIndex,Score,LevelStatus,birdsRemaining,pigsRemaining,birdsAtStart,"
        "pigsAtStart,trial,levelName,playStatus,informed,novelty"
    )
    assert ",".join(LIKELIHOOD_COLUMNS) == (
        "EvaluationIndex,LevelIndex,InteractionIndex,HasNoveltyLikelihood,NoNoveltyLikelihood,"
        "novel object IDs,novelty level,novelty description,true novel IDs,"
        "complete true novel IDs,trial,levelName,playStatus,informed,novelty"
    )


@pytest.mark.requirement(46)
def test_a_row_for_every_level_that_is_over_or_left(files):
    what = evaluation(trial(level_set(3, novelty=1, attempts=2), [1], interactions=5, executions=2))
    run = Run(what, shots=2, results=files)
    assert files.folder.name == "Agent_naive_Port_2004_Evaluation_20200407123059"
    run.begin()
    run.ask("load_next")
    run.shoot()
    run.ask("load_next")  # left
    run.shoot(), run.shoot()
    run.ask("load_next")
    run.shoot(), run.shoot(0)
    rows = table(files, 0, "EvaluationData.csv")
    name = "novelty_level_1/type1/Levels/{:05}_1_1.xml".format
    assert rows[0] == list(LEVEL_COLUMNS)
    assert rows[1:] == [
        ["1", "1", "10", "Playing", "1", "1", "2", "1", "0", name(0), "training", "False", "novel"],
        ["1", "1", "20", "Pass", "0", "0", "2", "1", "0", name(0), "training", "False", "novel"],
        ["1", "2", "20", "Fail", "0", "1", "2", "1", "0", name(1), "training", "False", "novel"],
    ]
    run.begin()
    run.ask("load_next")
    run.shoot(), run.shoot()
    last = table(files, 0, "EvaluationData.csv")[-1]
    assert last[9:] == ["novelty_level_0/type1/Levels/00000_1_1.xml", "test", "False", "basic"]
    run.begin()
    run.ask("load_next")
    run.harness.close()
    assert [row[3] for row in table(files, 0, "EvaluationData.csv")[4:]] == ["Pass", "Playing"]


@pytest.mark.requirement(46)
def test_a_level_that_a_limit_breaks_off_has_a_row(files):
    run = Run(evaluation(trial(level_set(1, interactions=1))), shots=9, results=files)
    run.begin()
    run.ask("load_next")
    run.shoot()
    assert run.state == 13
    assert [row[2:4] for row in table(files, 0, "EvaluationData.csv")[1:]] == [["10", "Playing"]]


@pytest.mark.requirement(20)
def test_a_refused_load_has_no_row(files):
    run = Run(evaluation(trial(level_set(2, selection=True))), results=files)
    run.begin()
    run.ask("load_level", level=1)
    run.shoot()
    before = table(files, 0, "EvaluationData.csv")
    assert run.ask("load_level", level=1) == 0
    assert run.ask("load_level", level=9) == 0
    assert table(files, 0, "EvaluationData.csv") == before


@pytest.mark.requirement(10)
def test_each_repeat_has_its_rows(files):
    what = evaluation(trial(2, executions=2), trial(1, notify=True))
    assert Run(what, results=files).trace() == "11 9 L1 L2 11 9 L1 L2 11 9 L1 13"
    rows = table(files, 0, "EvaluationData.csv")[1:]
    assert [(row[0], row[1]) for row in rows] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    (row,) = table(files, 1, "EvaluationData.csv", "informed")[1:]
    assert row[11] == "True"


@pytest.mark.requirement(31, 46)
def test_a_report_has_a_row_and_is_not_asked_for_again(files):
    run = Run(evaluation(trial(2), step=1, in_training=True), results=files)
    report = {"ids": (1, -2), "level": 2, "description": 'a, "b"\nc'}
    assert run.likelihood(**report) == 1  # nobody has asked
    run.begin()
    run.ask("load_next")
    run.shoot()
    assert run.state == 12
    assert run.likelihood(novel=float("nan"), **report) == 1
    assert run.state != 12
    rows = table(files, 0, "Likelihood.csv")
    assert rows[0] == list(LIKELIHOOD_COLUMNS)
    assert rows[1][:4] == ["1", "0", "0", "0.9"]
    name = "novelty_level_0/type1/Levels/00000_1_1.xml"
    where = ["0", name, "training", "False", "basic"]
    assert rows[2] == ["1", "1", "1", "nan", "0.1", "1 -2", "2", 'a "b" c', "", "", *where]


@pytest.mark.requirement(32)
def test_descriptions_are_kept_word_for_word(files):
    texts = ["", 'Pfahl "länger",\n🐦\0', "x" * 2**20]
    run = Run(evaluation(trial(1)), results=files)
    for text in texts:
        assert run.ask("report_description", text=text) == 1
    path = files.folder / "Agent_naive_Trial_0_uninformed_20200407123059_Descriptions.jsonl"
    lines = path.read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
    fields = {"execution", "level", "level_index", "interaction", "text"}
    assert {frozenset(json.loads(line)) for line in lines} == {frozenset(fields)}


def test_reports_do_not_fill_the_disk(files, monkeypatch):
    monkeypatch.setattr(results, "MAX_REPORTED", 3000)
    reported = []
    observer = SimpleNamespace(
        level_over=lambda *given: None, novelty_reported=lambda *given: reported.append(given)
    )
    what = evaluation(trial(1), step=1, in_training=True)
    run = Run(what, results=files, observer=observer)
    answers = [run.ask("report_description", text="x" * 500) for _ in range(20)]
    assert 3 <= sum(answers) <= 6 and answers == sorted(answers, reverse=True)
    assert run.ask("report_description", text="short") == 1  # for which there is room
    run.begin()
    run.ask("load_next"), run.shoot()
    assert run.likelihood() == 0
    assert run.state == 13  # the question is answered all the same
    assert reported == []


@pytest.mark.requirement(31, 46)
@pytest.mark.parametrize("executions", [1, 2])
def test_the_last_question_of_an_execution_is_about_its_last_level(files, executions):
    trials = trial(1, [1], executions=executions), trial(1, notify=True)
    run = Run(evaluation(*trials, step=1, in_training=True, in_tests=True), results=files)
    run.trace()
    rows = [[*row[:3], row[12]] for row in table(files, 0, "Likelihood.csv")[1:]]
    assert rows == [
        [str(1 + execution), "1", "1", kind]
        for execution in range(executions)
        for kind in ("training", "test")
    ]
    assert not list(files.folder.glob("*_Trial_1_*_Likelihood.csv"))


def test_an_end_without_trials_takes_reports(files):
    run = Run(evaluation(), results=files)
    assert run.likelihood() == 1
    assert run.ask("report_description", text="x") == 1
    assert run.ask("novelty_info") == -1
    assert run.state == 13
    assert list(files.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".x", "x" * 65, "a\0"])
def test_names_that_no_file_can_have(name, tmp_path):
    with pytest.raises(ValueError, match="agent name is"):
        ResultWriter.below(tmp_path, name, 1, STARTED)


def test_results_are_not_mixed_with_older_ones(files, tmp_path):
    with pytest.raises(ValueError, match="exists; wait a second"):
        ResultWriter.below(tmp_path, "naive", 2004, STARTED)


def test_phases_are_sets_and_parts_of_them():
    phases = []

    class Notes:
        def level_over(self, place, phase):
            phases.append((phase, place.testing, place.level_index))

    what = evaluation(trial(level_set(3, attempts=2), [2], interactions=2), trial(1))
    run = Run(what, observer=Notes())
    run.trace()
    assert phases == [
        (1, False, 1), (1, False, 1), (2, True, 1), (2, True, 2),
        (3, False, 2), (3, False, 2), (4, True, 1), (4, True, 2),
        (5, False, 3), (5, False, 3), (6, True, 1), (6, True, 2),
        (7, False, 1),
    ]  # fmt: skip


def test_a_report_belongs_to_the_level_that_runs_or_was_played_last():
    class Session:
        schedule = Schedule("s", (Block(0, 1, "train", "CartPole3D", (), 1, True),))
        tasks = type("Tasks", (), {"novelty_levels": np.array([0])})

    class Game(ShotGame):
        def level_result(self):
            return LevelOutcome(Session(), 0, EpisodeResult(0.0, 0.0, self.fired, True, True, 0.0))

    game, log = Game(2), Log("s")
    recorder = LevelRecorder(game, log)
    what = evaluation(trial(level_set(4, attempts=2)))
    clock = ScriptedClock()
    run = Run(what, shots=2, observer=recorder)
    run.harness = harness.Harness(what, game, clock=clock, observer=recorder)
    run.likelihood(novel=1.0, non_novel=0.0)  # before any level: of none
    run.begin()
    run.ask("load_next"), run.shoot()
    run.likelihood(novel=0.5, non_novel=1.5, level=3)
    run.shoot(), run.ask("load_next"), run.shoot(), run.shoot()
    run.likelihood(novel=2.0, non_novel=0.0, level=-4)
    run.ask("load_next"), run.shoot(), run.shoot()
    run.likelihood(novel=float("nan"))
    run.ask("load_next"), run.shoot(), run.harness.close()
    recorder.finish()
    columns = log.records().columns
    assert columns["length"].tolist() == [[2, 2, 2, 1]]
    assert columns["predicted_probability"].tolist() == [[0.25, 1.0, 0.0, 0.0]]
    assert columns["predicted_level"].tolist() == [[3, 0, 0, 0]]
    assert columns["threshold"].tolist() == [[0.5, 0.5, 0.5, 1.0]]


def test_menu_after_a_set_has_begun():
    run = Run(evaluation(trial(1)))
    assert run.begin() == [11, 9]
    assert run.state == MAIN_MENU


def test_every_column_of_the_result_files(tmp_path):
    place = EvaluationPlace(
        replace(trial(1, notify=True), number=7), 3, True, 5, LevelPath.of(2, 4, 6)
    )
    files = ResultWriter(tmp_path, "me", datetime(2026, 1, 2, 3, 4, 5))
    files.level(place, 40, "Pass", Counts(11, 12, 13, 14))
    values = {"novel": 0.75, "non_novel": 0.5, "ids": (8, 9), "level": 2, "description": "a, b"}
    assert files.likelihood(place, 10, values)
    assert files.description(place, 10, "a, b")
    path = "novelty_level_2/type4/Levels/00006_1_1.xml"
    last = {"trial": "7", "levelName": path, "playStatus": "test", "informed": "True"}
    last["novelty"] = "novel"
    name = "Agent_me_Trial_7_informed_20260102030405"

    def row(end):
        with (tmp_path / f"{name}_{end}").open(newline="") as lines:
            (only,) = csv.DictReader(lines)
        return only

    assert row("EvaluationData.csv") == {
        **{"EvaluationIndex": "3", "LevelIndex": "5", "Score": "40", "LevelStatus": "Pass"},
        **{"birdsRemaining": "11", "pigsRemaining": "12", "birdsAtStart": "13"},
        **{"pigsAtStart": "14"},
        **last,
    }
    assert row("Likelihood.csv") == {
        **{"EvaluationIndex": "3", "LevelIndex": "5", "InteractionIndex": "10"},
        **{"HasNoveltyLikelihood": "0.75", "NoNoveltyLikelihood": "0.5", "novelty level": "2"},
        **{"novel object IDs": "8 9", "novelty description": "a b"},
        **{"true novel IDs": "", "complete true novel IDs": ""},
        **last,
    }
    text = json.loads((tmp_path / f"{name}_Descriptions.jsonl").read_text())
    assert text == {"execution": 3, "level": path, "level_index": 5, "interaction": 10} | {
        "text": "a, b"
    }
    in_training = replace(place, testing=False, level=LevelPath.of(0, 1, 6))
    assert in_training.columns[1:] == (
        "novelty_level_0/type1/Levels/00006_1_1.xml",
        *("training", "True", "basic"),
    )
    assert replace(place, level=None).columns[1:] == ("", "test", "True", "basic")


def test_a_report_belongs_to_its_level_and_to_no_later_one():
    """Of a level that runs, or of the one before; a level without a report has no prediction."""
    added = []
    results = iter("abcd")
    game = SimpleNamespace(level_result=lambda: ("session", 1, next(results)))
    log = SimpleNamespace(add=lambda *given, **named: added.append((given, named)))
    recorder = LevelRecorder(game, log)
    places = [EvaluationPlace(trial(1), 1, testing, 1, None) for testing in (False, True)]

    def report(novel, running, **values):
        recorder.novelty_reported({"novel": novel, "non_novel": 1.0, **values}, running)

    report(1.0, True, level=4)
    recorder.level_over(places[0], 1)
    assert not added  # a report of it may still come
    recorder.level_over(places[1], 2)
    report(3.0, False, level=-1)
    recorder.level_over(places[1], 3)
    recorder.finish()
    recorder.finish()
    of_training = {"mode": "train", "learning": True}
    of_tests = {"mode": "test", "learning": False}
    assert added == [
        (("session", 1, "a", Prediction(4, 0.5, 0.5)), {"phase": 1, **of_training}),
        (("session", 1, "b", Prediction(0, 0.75, 0.5)), {"phase": 2, **of_tests}),
        (("session", 1, "c", Prediction()), {"phase": 3, **of_tests}),
    ]
