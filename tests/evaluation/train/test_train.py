"""`jaxsim train`: what is played, what is written, and how runs go on."""

import csv
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from evaluation import cli, records
from evaluation.checkpoints import load_memory, loading, store
from evaluation.metrics.statistics import bootstrap_interval
from evaluation.report import html
from evaluation.schedule import Block, Schedule
from evaluation.train import run as training
from evaluation.train.course import TrainingCourse, task_of
from evaluation.train.curve import LearningCurve, plot
from jaxsim import agents
from tests.evaluation import toy
from tests.evaluation.report.test_html import check_page

LEARNER = "bandit"
LIFETIMES = 3


@pytest.fixture(scope="module", autouse=True)
def toy_task():
    agents.get.cache_clear()
    with toy.registered(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(agents.AGENTS, LEARNER, toy.bandit)
        yield
    agents.get.cache_clear()


def train(*arguments, out, episodes=12, task="Toy"):
    words = [task, "--agent", LEARNER, "--lifetimes", LIFETIMES, "--width", 1]
    words += ["--out", out, "--quiet"]
    words += ["--eval-every", 6, "--eval-episodes", 2, *arguments]
    if episodes:
        words += ["--episodes", episodes]
    return cli.main(["train", *map(str, words)])


# Tasks and courses --------------------------------------------------------------------------------

HARD = (("novelty/difficulty", "hard"), ("novelty/level", 203))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("203", "hard", []), ("CartPole3D", HARD)),
        (("203", None, []), ("CartPole3D", (("novelty/difficulty", "easy"), HARD[1]))),
        (("52", None, []), ("CartPole2D", (("novelty/difficulty", "easy"), ("novelty/level", 52)))),
        (("CartPole", None, []), ("CartPole", ())),
        (
            ("203", "hard", ["novelty/level=105"]),
            ("CartPole3D", (HARD[0], ("novelty/level", 105))),
        ),
        (
            ("CartPole3D-v0", "hard", ["pole/length=1.5", "novelty/level=203"]),
            ("CartPole3D-v0", (*HARD, ("pole/length", 1.5))),
        ),
    ],
)
def test_tasks_of_the_command_line(arguments, expected):
    assert task_of(*arguments) == expected
    TrainingCourse(*expected).check(200)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Toi"], "unknown task 'Toi'; did you mean 'Toy'"),
        (["299"], "'novelty/level' is 299; it must be one of"),
        (["200", "--difficulty", "harder"], "difficulty is 'harder'; it must be one of easy"),
        (["Toy", "--difficulty", "hard"], "Toy has no difficulties; the levels of CartPole3D"),
        (["200", "--agent", "checkpoint:"], "names no directory; write checkpoint:DIR"),
        (["Toy", "--set", "target"], "has no value; write PATH=VALUE"),
        (["Toy", "--set", "target=1", "--set", "target=2"], "--set gives target twice"),
        (["Toy", "--set", "target=9"], "'target' is 9; it must be a whole number from 0 to 4"),
        (["Toy", "--agent", "bandti"], "unknown agent 'bandti'; did you mean 'bandit'"),
        (["Toy", "--agent", "checkpoint:absent"], "absent is not a directory with checkpoints"),
        (["Toy", "--agent", "checkpoint:."], "checkpoints has no finished checkpoint"),
        (["Toy", "--episodes", "1000001"], "episodes is 1000001; it must be from 1 to 1000000"),
        (["Toy", "--episodes", "0"], "episodes is 0; it must be from 1 to 1000000"),
        (["Toy", "--eval-every", "0", "--episodes", "5"], "eval-every is 0; it must be from 1"),
        (["Toy", "--eval-every", "0"], "eval-every is 0; it must be from 1"),
        (["Toy", "--eval-every", "0", "--minutes", "1"], "eval-every is 0; it must be from 1"),
        (["Toy", "--eval-episodes", "-1"], "eval-episodes is -1; it must be from 1"),
        (["Toy", "--minutes", "0"], "minutes is 0; it must be above 0"),
        (["Toy", "--minutes", "nan"], "minutes is nan; it must be above 0"),
        (["Toy", "--lifetimes", "0"], "lifetimes is 0; it must be from 1"),
        (["Toy", "--width", "0"], "width is 0; it must be from 1"),
        (["Toy", "--seed", "-1"], "seed is -1; it must be from 0"),
        (["Toy", "--chunk", "65"], "chunk is 65; it must be a multiple of 64"),
        (["Toy", "--checkpoint-every", "5"], "checkpoint-every is '5'; it must be a time"),
        (["Toy", "--checkpoint-blocks", "0"], "checkpoint-blocks is 0; it must be at least 1"),
        (["Toy", "--resume", "--overwrite"], "pass one of them"),
        (["Toy", "--log-lifetime", "0"], "log-lifetime needs a folder: .* --l2data"),
        (["Toy", "--out", "."], "is not empty; choose another or pass --overwrite"),
    ],
)
def test_wrong_input(tmp_path, monkeypatch, capfd, arguments, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("L2DATA", raising=False)
    (tmp_path / "mine").write_text("")
    given = {"--agent": LEARNER, "--out": "out"}
    rest = [w for name, value in given.items() if name not in arguments for w in (name, value)]
    assert cli.main(["train", "--quiet", *arguments, *rest]) == 2
    captured = capfd.readouterr()
    (line,) = captured.err.splitlines()
    assert re.search(words, line), line
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_course_is_evaluation_and_learning_in_turn():
    course = TrainingCourse("Toy", (("target", 1),), every=6, evaluation=2)
    plan = course.schedule(12)
    assert [(b.phase, b.mode, b.count, b.learning) for b in plan.blocks] == [
        (1, "test", 2, False),
        (2, "train", 6, True),
        (2, "test", 2, False),
        (3, "train", 6, True),
        (3, "test", 2, False),
    ]
    assert [b.index for b in plan.blocks] == list(range(5))
    assert {b.variant for b in plan.blocks} == {("Toy", (("target", 1),))}
    assert course.schedule(18).blocks[:5] == plan.blocks
    assert course.ends(12) == {10, 18}
    assert [course.trained(end) for end in (2, 10, 18)] == [0, 6, 12]


def test_room_is_checked_where_the_number_of_episodes_is_known(monkeypatch, tmp_path):
    checked = []
    monkeypatch.setattr(training.TrainingRun, "check_room", lambda job, *what: checked.append(what))
    monkeypatch.setattr(training.TrainingRun, "check_playing", lambda job, schedule: "who")
    course = TrainingCourse("CartPole", (), 6, 2)
    training.TrainingRun(course=course, out=tmp_path, minutes=1.0).check()
    training.TrainingRun(course=course, out=tmp_path, episodes=12).check()
    assert checked == [(course.schedule(12).num_episodes, "who")]


def test_the_last_stretch_of_a_course_takes_what_is_left():
    course = TrainingCourse("Toy", every=6, evaluation=2)
    whole, plan = course.schedule(12), course.schedule(16)
    assert plan.blocks[: len(whole.blocks)] == whole.blocks
    assert [(b.mode, b.count) for b in plan.blocks[len(whole.blocks) :]] == [
        ("train", 4),
        ("test", 2),
    ]
    assert [b.count for b in course.schedule(5).blocks] == [2, 5, 2]
    assert [b.count for b in course.schedule(7).blocks] == [2, 6, 2, 1, 2]
    course.check(16)


def test_help_says_how_to_train_stop_and_go_on(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["train", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for words in ("--eval-every N", "--resume", "--checkpoint-every TIME", "examples:", "code 75"):
        assert words in text


# Curves -------------------------------------------------------------------------------------------


def test_a_curve_by_hand():
    blocks = [(0, "test", 2), (1, "train", 3), (2, "test", 2)]
    plan = Schedule("plan", tuple(Block(i, 1, m, "Toy", (), n, m == "train") for i, m, n in blocks))
    performance = np.array([[0.0, 0.5, 0.9, 0.9, 0.9, 0.5, 1.0], [0.2, 0.4, 0.9, 0, 0, 0.1, 0.3]])
    columns = {"performance": performance, "length": np.tile(np.arange(7), (2, 1))}
    curve = LearningCurve.of(records.Records(plan, columns, np.zeros(1)))
    assert curve.episodes.tolist() == [0, 3]
    assert curve.steps.tolist() == [0, 2 + 3 + 4]
    values = np.array([[0.25, 0.75], [0.3, 0.2]])
    np.testing.assert_allclose(curve.mean, values.mean(axis=0))
    np.testing.assert_allclose(curve.std, values.std(axis=0, ddof=1))
    expected = bootstrap_interval(values, 0, method="calibrated", bounds=(0, 1))
    np.testing.assert_allclose([curve.low, curve.high], [expected.low, expected.high])
    one = LearningCurve.of(
        records.Records(plan, {n: c[:1] for n, c in columns.items()}, np.zeros(1))
    )
    assert [(row["mean"], row["low"], row["std"]) for row in one.rows()] == [
        (0.25, None, None),
        (0.75, None, None),
    ]
    assert one.to_csv().splitlines()[:2] == [
        "episodes,steps,mean,low,high,std,lifetimes",
        "0,0.0,0.25,,,,1",
    ]


@pytest.mark.parametrize("lifetimes", [1, 3])
def test_what_is_drawn_of_a_curve(tmp_path, monkeypatch, lifetimes):
    figure = pytest.importorskip("matplotlib.figure")
    figures = []
    monkeypatch.setattr(
        figure.Figure, "savefig", lambda self, *given, **named: figures.append(self)
    )
    numbers = [np.array([0.0, 6.0]), *(np.array([k, k + 1.0]) / 10 for k in range(1, 6))]
    plot(LearningCurve(*numbers, lifetimes), "a title", tmp_path / "curve.png")
    (axes,) = figures[0].axes
    np.testing.assert_array_equal(axes.lines[0].get_data(), ([0, 6], [0.2, 0.3]))
    (band,) = axes.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert corners >= {(0.0, 0.3), (6.0, 0.4), (0.0, 0.4), (6.0, 0.5)}
    words = "mean of 3 lifetimes, 95 % interval" if lifetimes > 1 else "one lifetime"
    assert axes.get_title() == f"a title: {words}"
    assert axes.get_xlabel() == "training episodes"
    assert axes.get_ylabel() == "performance in evaluations (0 to 1)"
    assert axes.get_ylim() == (-0.02, 1.02)


# Runs ---------------------------------------------------------------------------------------------

NAMES = {
    "records.parquet",
    "schedule.json",
    "curve.csv",
    "curve.json",
    "report.html",
    "checkpoints",
}


def written(out):
    """Contents of the results, without the pictures and checkpoints."""
    return {
        path.name: path.read_bytes()
        for path in out.iterdir()
        if path.suffix != ".png" and path.is_file()
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "out"
    assert train(out=out) == 0
    return out


def test_what_is_written(trained):
    assert {path.name for path in trained.iterdir()} - {"curve.png"} == NAMES
    command = f"jaxsim train Toy --agent {LEARNER} --lifetimes {LIFETIMES} --seed 0 --episodes 12"
    check_page(
        trained / "report.html",
        f"{command} --eval-every 6 --eval-episodes 2 --width 1 --out out",
    )
    run_records = records.read(trained / "records.parquet")
    page = (trained / "report.html").read_text()
    for lifetime, episode in html.ends(run_records, "performance"):
        assert f"jaxsim view out --lifetime {lifetime} --episode {episode}" in page
    assert run_records.schedule == TrainingCourse("Toy", (), 6, 2).schedule(12)
    assert json.loads((trained / "schedule.json").read_text()) == run_records.schedule.to_json()
    curve = json.loads((trained / "curve.json").read_text())
    assert (curve["task"], curve["agent"], curve["lifetimes"]) == ("Toy", LEARNER, LIFETIMES)
    assert curve["curve"] == LearningCurve.of(run_records).rows()
    with (trained / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in curve["curve"]]
    # The bandit has tried every action once, and knows the best one.
    assert [row["mean"] for row in curve["curve"]] == [0.25, 1.0, 1.0]
    (step,) = store.steps(trained / "checkpoints")
    assert store.read_manifest(step)["episodes"] == run_records.schedule.num_episodes


def test_a_picture_where_matplotlib_is(trained):
    pytest.importorskip("matplotlib")
    assert (trained / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_what_was_learned_is_loaded(trained):
    agent, memory = load_memory(trained)
    assert agent is toy.bandit
    assert memory["scores"].shape == (LIFETIMES, toy.RING)
    assert (memory["scores"].argmax(axis=1) == 3).all()
    again, same = load_memory(store.newest(trained / "checkpoints"))
    assert again is agent
    np.testing.assert_array_equal(same["scores"], memory["scores"])


def test_a_trained_agent_plays(trained, tmp_path):
    """Of a run with more lifetimes, each starts with the memory of one in turn."""
    (tmp_path / "test.json").write_text(toy.syllabus(("1.train", [toy.repeat(2)])))
    words = ["run", tmp_path / "test.json", "--agent", f"checkpoint:{trained}", "--quiet"]
    out = tmp_path / "out"
    assert cli.main([*map(str, words), "--lifetimes", "5", "--out", str(out)]) == 0
    run_records = records.read(out / "records.parquet")
    assert run_records.metadata["agent"] == f"checkpoint:{trained}"
    assert (run_records.columns["performance"] == 1.0).all()


def test_lifetimes_take_the_memories_of_a_checkpoint_in_turn(monkeypatch):
    """Also those of a part of a longer run."""
    memory = {"known": np.arange(6).reshape(3, 2)}
    agent = replace(toy.bandit, init=lambda key: {"known": np.arange(2)})
    saved = loading.SavedAgent(agent, "bandit", memory, "hash")
    monkeypatch.setattr(loading, "_loaded", lambda *given: saved)
    for first, rows in ((0, [0, 1, 2, 0]), (2, [2, 0, 1, 2]), (7, [1, 2, 0, 1])):
        player = loading.player("checkpoint:there", 4, first)
        np.testing.assert_array_equal(player.memory["known"], memory["known"][rows])
        assert (player.agent.name, player.origin) == ("checkpoint:there", "hash")


def test_an_agent_of_a_file_is_known_by_its_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from tests.evaluation.toy import bandit as agent\n")
    assert train("--agent", str(path), out=tmp_path / "out") == 0
    saved = loading.player(f"checkpoint:{tmp_path / 'out'}", LIFETIMES)
    assert saved.built_in == str(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    metadata = records.read(tmp_path / "out" / "records.parquet").metadata
    assert metadata["agent_files"] == {str(path): digest}


def test_what_was_taught_can_be_taught_more_and_again(trained, tmp_path):
    """A run whose agent is from a checkpoint leaves checkpoints like any other."""
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert train("--agent", f"checkpoint:{trained}", out=once) == 0
    assert train("--agent", f"checkpoint:{once}", out=twice) == 0
    assert load_memory(twice)[0] is toy.bandit


def test_a_longer_run_goes_on_from_a_finished_one(trained, tmp_path):
    """And is the run that was so long from the start."""
    whole, longer = tmp_path / "whole" / "out", tmp_path / "longer" / "out"  # pages name the folder
    assert train(out=longer) == 0
    assert written(longer) == written(trained)
    assert train("--resume", out=longer, episodes=18) == 0
    assert train(out=whole, episodes=18) == 0
    assert written(longer) == written(whole)
    assert train("--resume", out=longer) == 2  # shorter than what was played


def test_a_run_that_ended_with_a_short_stretch_is_not_made_longer(tmp_path, capfd):
    out = tmp_path / "out"
    assert train(out=out, episodes=8) == 0
    assert LearningCurve.of(records.read(out / "records.parquet")).episodes.tolist() == [0, 6, 8]
    assert train("--resume", out=out, episodes=12) == 2
    assert "has played a shorter last stretch cannot be made longer" in capfd.readouterr().err
    assert train("--resume", out=out, episodes=14) == 2  # its last stretch is as short
    assert "has played a shorter last stretch cannot be made longer" in capfd.readouterr().err


def test_a_run_of_whole_stretches_is_made_longer_by_a_short_one(trained, tmp_path):
    whole, longer = tmp_path / "whole" / "out", tmp_path / "longer" / "out"
    assert train(out=longer) == 0
    assert train("--resume", out=longer, episodes=14) == 0
    assert train(out=whole, episodes=14) == 0
    assert written(longer) == written(whole)


@pytest.mark.parametrize(
    ("given", "width", "words"),
    [
        ([], 6, "width 6: a lifetime learns from 6 episodes at once"),
        (["--width", 2], 2, "width 2: learning after so few episodes is slow; --width 6"),
        (["--width", 3], 3, None),
    ],
)
def test_the_width_is_chosen_and_said(tmp_path, capsys, given, width, words):
    out = tmp_path / "out"
    arguments = ["Toy", "--eval-every", 6, "--eval-episodes", 2, "--episodes", 6, *given]
    words_of = [*arguments, "--agent", LEARNER, "--lifetimes", 2, "--out", out]
    assert cli.main(["train", *map(str, words_of)]) == 0
    assert records.read(out / "records.parquet").metadata.get("width") == width
    printed = capsys.readouterr().out
    assert words in printed if words else not printed.startswith("width")


def test_a_run_of_other_settings_is_refused(trained, capfd):
    before = written(trained)
    assert train("--resume", "--eval-episodes", 3, out=trained) == 2
    words = "of another run: schedule.eval-episodes is 2 in it and 3 now"
    assert words in capfd.readouterr().err
    assert train("--resume", "--width", 2, "--set", "target=1", out=trained) == 2
    words = "schedule.parameters.target is missing in it and 1 now; width is 1 in it and 2 now"
    assert words in capfd.readouterr().err
    assert train(out=trained) == 2
    assert "pass --resume to continue from them, or --overwrite" in capfd.readouterr().err
    assert written(trained) == before


def test_a_run_ends_when_its_time_is_over(trained, tmp_path, monkeypatch):
    out = tmp_path / "out"
    now = iter(np.arange(0.0, 1e6, 30.0))

    def keeper(job, *arguments):
        made = make(job, *arguments)
        assert made.seconds == 90
        return replace(made, clock=lambda: float(next(now)))

    make = training.TrainingRun.keeper
    monkeypatch.setattr(training.TrainingRun, "keeper", keeper)
    assert train("--minutes", 1.5, out=out, episodes=None) == 0
    run_records = records.read(out / "records.parquet")
    assert 0 < run_records.schedule.num_episodes < 100
    assert run_records.schedule == TrainingCourse("Toy", (), 6, 2).schedule(
        sum(b.count for b in run_records.schedule.blocks if b.learning)
    )
    whole = records.read(trained / "records.parquet")
    shared = min(whole.schedule.num_episodes, run_records.schedule.num_episodes)
    for name, column in whole.columns.items():
        np.testing.assert_array_equal(run_records.columns[name][:, :shared], column[:, :shared])


def test_a_full_disk_at_the_end(tmp_path, monkeypatch, capfd):
    """The run fails, and what was saved before is there."""
    out = tmp_path / "out"
    real = store.save

    def save(folder, snapshot, about):
        if about["episodes"] == 18:
            raise OSError(28, "No space left on device")
        return real(folder, snapshot, about)

    monkeypatch.setattr(store, "save", save)
    assert train("--checkpoint-every", "0s", out=out) == 1
    assert "No space left on device" in capfd.readouterr().err
    assert [path.name for path in out.iterdir()] == ["checkpoints"]
    monkeypatch.undo()
    assert train("--resume", out=out) == 0
