"""Episodes of every source are found again, tick for tick."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation import agents, records, sailon, scanner, session, view
from evaluation.checkpoints import store
from evaluation.cli import main
from evaluation.report import html, summarise_records
from evaluation.schedule import Block, Schedule, level_variant
from evaluation.view import videos
from tests.evaluation import learner, toy
from tests.evaluation.reached import reached

LIFETIMES, FIRST = 3, 5
EASY = (("novelty/level", 50),)
HARD = (("novelty/difficulty", "hard"), ("novelty/level", 53))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Records of an agent that learns, in two blocks."""
    learner.register()
    blocks = (
        Block(0, 1, "train", "CartPole2D", EASY, 4, True),
        Block(1, 1, "test", "CartPole2D", HARD, 3, False),
    )
    folder = tmp_path_factory.mktemp("run")
    run_records = scanner.play(
        Schedule("two", blocks),
        learner.searcher,
        lifetimes=LIFETIMES,
        first_lifetime=FIRST,
        seed=3,
    )
    run_records.write(folder / "records.parquet")
    return folder, run_records


@pytest.mark.parametrize(("lifetime", "episode"), [(5, 0), (6, 3), (7, 4), (7, 6)])
def test_an_episode_of_a_learner_is_the_one_that_was_recorded(run, lifetime, episode):
    folder, run_records = run
    film = view.of_run(folder, lifetime=lifetime, episode=episode)
    row = lifetime - FIRST, episode
    assert film.note == ""
    assert film.ticks == run_records.columns["length"][row]
    assert film.reward[-1] == pytest.approx(run_records.columns["reward"][row], rel=1e-3)
    assert film.novel == (episode >= 4)
    assert "replayed from the lifetime's start" in film.facts


def test_without_a_number_it_is_the_first_lifetime_of_the_run(run, tmp_path):
    with reached({"evaluation.view.of_run": None}) as calls:
        main(["view", str(run[0]), "--episode", "2", "--out", str(tmp_path / "view.html")])
    assert [(call.arguments["lifetime"], call.arguments["episode"]) for call in calls] == [(5, 2)]


def test_it_goes_on_from_the_nearest_checkpoint(run, tmp_path, monkeypatch):
    folder, run_records = run
    monkeypatch.chdir(tmp_path)
    # A run of the first block alone leaves what the long one knew after its four episodes.
    first = toy.repeat(4, "CartPole2D", novelty_level=50)
    Path("first.json").write_text(toy.syllabus(("1.train", [first])))
    numbers = ["--lifetimes", str(LIFETIMES), "--lifetime-idx", str(FIRST), "--seed", "3"]
    options = ["--agent", learner.NAME, *numbers, "--keep-memory", "--out", "x", "--quiet"]
    assert main(["run", "first.json", *options]) == 0
    shutil.copy(folder / "records.parquet", "x/records.parquet")
    film = view.of_run(Path("x"), lifetime=7, episode=5)
    (step,) = store.steps(Path("x") / store.FOLDER)
    assert f"replayed from the checkpoint {step}" in film.facts
    assert film.note == "" and film.ticks == run_records.columns["length"][2, 5]
    assert "the lifetime's start" in view.of_run(Path("x"), lifetime=7, episode=3).facts


def test_a_replay_that_differs_says_so_and_shows_what_was_recorded(run, tmp_path):
    _, run_records = run
    columns = {name: np.array(values) for name, values in run_records.columns.items()}
    columns["length"][0, 0] += 1
    metadata = {**run_records.metadata, "versions": {"jaxsim-novelty": "0.0.1"}}
    replace(run_records, columns=columns, metadata=metadata).write(tmp_path / "records.parquet")
    note = view.of_run(tmp_path, lifetime=5, episode=0).note
    assert f"recorded were {columns['length'][0, 0]} steps" in note
    assert "The run was of jaxsim-novelty 0.0.1, which is not installed." in note


def test_a_report_links_its_worst_and_best_lifetimes(run, tmp_path, capsys):
    _, run_records = run
    run_records.write(tmp_path / "records.parquet")
    assert main(["view", str(tmp_path), "--ends"]) == 2
    assert "has no report.html with its report.json or curve.json" in capsys.readouterr().err
    values = summarise_records(run_records).to_json()
    (tmp_path / "report.json").write_text(json.dumps(values))
    (tmp_path / "report.html").write_text(html.of_run(values, run_records, run="x"))
    assert main(["view", str(tmp_path), "--ends", "--seed", "1"]) == 2
    assert "--seed does not go with --ends" in capsys.readouterr().err
    assert main(["view", str(tmp_path), "--ends", "--agent", "pd", "--agent", "mpc"]) == 2
    assert "a run has one agent; name it once" in capsys.readouterr().err
    assert not (tmp_path / "views").exists()
    assert main(["view", str(tmp_path), "--ends"]) == 0
    assert f"3 pages in {tmp_path / 'views'}" in capsys.readouterr().out
    text = (tmp_path / "report.html").read_text()
    views = [html.view_of(*coordinates) for coordinates in html.ends(run_records, "performance")]
    assert len(views) == LIFETIMES
    for view_page in views:
        assert f'<a href="{view_page}">' in text
        assert "replayed from the lifetime's start" in (tmp_path / view_page).read_text()


def test_a_training_links_its_worst_and_best_lifetimes(run, tmp_path):
    _, recorded = run
    recorded.write(tmp_path / "records.parquet")
    (tmp_path / "curve.json").write_text(json.dumps({"measure": "performance"}))
    more = [html.lifetimes(recorded, "performance", "x")]
    (tmp_path / "report.html").write_text(html.of_report("a training", {}, more=more))
    assert main(["view", str(tmp_path), "--ends", "--quiet"]) == 0
    text = (tmp_path / "report.html").read_text()
    for coordinates in html.ends(recorded, "performance"):
        assert f'<a href="{html.view_of(*coordinates)}">' in text
        assert (tmp_path / html.view_of(*coordinates)).is_file()


def test_two_agents_meet_the_same_start(tmp_path, capsys):
    out = tmp_path / "two.html"
    options = ["--level", "203", "--difficulty", "hard", "--seed", "7", "--out", str(out)]
    assert main(["view", *options, "--agent", "pd", "--agent", "nothing"]) == 0
    text = out.read_text()
    values = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [film["title"] for film in values] == ["pd", "nothing"]
    one, other = (view.of_level(203, "hard", agent=a, seed=7) for a in ("pd", "nothing"))
    for name in ("cart", "blocks"):
        for a, b in zip(getattr(one.places, name), getattr(other.places, name), strict=True):
            np.testing.assert_array_equal(a[0], b[0])
    assert one.novel and one.truth == "novel, level 3"
    assert "kB" in capsys.readouterr().out


COUNTER_OF_A_FILE = """
import jax.numpy as jnp
from jaxsim.agents import Agent, NoveltyPrediction

def init(key):
    return jnp.bool_(True), jnp.int32(0)

def enter(memory, entry):
    return jnp.asarray(entry.learning), memory[1]

def begin(memory, key):
    return memory[0], memory[1] + 1

def act(memory, observation, key):
    explores, count = memory
    prediction = NoveltyPrediction(jnp.int32(0), count / 100.0, jnp.float32(1.0))
    return jnp.where(explores, 1, 2).astype(jnp.int32), prediction, memory

agent = Agent("counter", act, init, begin, enter=enter)
"""
"""Pushes right while it learns and left in tests; predicts its number of episodes in percent."""


@pytest.mark.parametrize("episode", [0, 2])
def test_an_episode_of_a_level_is_that_of_a_lifetime_of_tests(episode, tmp_path):
    path = tmp_path / "counter.py"
    path.write_text(COUNTER_OF_A_FILE)
    film = view.of_level(50, agent=str(path), seed=3, episode=episode)
    assert set(film.action) == {2}
    assert film.predictions.probability[0] == pytest.approx((episode + 1) / 100)
    assert ("replayed from the lifetime's start" in film.facts) == (episode > 0)
    block = Block(0, 1, "test", *level_variant(50, "easy"), episode + 1, False)
    player = session.PurePlayer(agents.get(str(path)), seed=3)
    expected = session.play(Schedule("tests", (block,)), player, seed=3)
    assert film.ticks == expected.columns["length"][0, episode]


class Scripted:
    """Pushes to and fro, and reports a novelty at the end."""

    def testing_instance(self, feature_vector, novelty_indicator=None):
        return {"action": "left" if feature_vector["cart"]["x_position"] > 0 else "right"}

    def testing_episode_end(self, performance, feedback=None):
        return 0.75, 0.5, 3, {}


def test_an_episode_of_a_trial_is_replayed_from_its_messages(tmp_path, capsys):
    from evaluation.sailon.interactive import PlayOptions

    settings = sailon.ExperimentSettings(
        novelty=(203,),
        difficulty=("hard",),
        novelty_visibility=(0,),
        trials=1,
        training_episodes=0,
        testing_episodes=2,
        seed=1,
    )
    folder = tmp_path / "transcripts"
    sailon.play(sailon.generate(settings), Scripted(), PlayOptions(transcripts=folder))
    film = view.of_trial(tmp_path, trial=0, episode=1)
    assert film.note == "" and film.ticks > 3
    assert set(film.predictions.probability) == {0.75} and set(film.predictions.level) == {3}
    path = folder / "trial-00000" / "episode-00001.jsonl"
    assert view.of_transcript(path).action == film.action
    lines = path.read_text().splitlines()
    changed = json.loads(lines[1])
    changed["cart"]["x_position"] += 1
    path.write_text("\n".join([lines[0], json.dumps(changed), *lines[2:]]) + "\n")
    assert "differs from the transcript: line 2: cart.x_position" in view.of_transcript(path).note
    for given, message in (
        (["--trial", "4"], "trial is 4;"),
        (["--trial", "0", "--episode", "7"], "episode is 7; trial 0 of"),
    ):
        assert main(["view", str(tmp_path), *given, "--out", str(tmp_path / "no.html")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--level", "999"], "level is 999; it must be one of 50"),
        (["--difficulty", "harsh"], "unknown difficulty 'harsh'"),
        (["--agent", "nobody"], "unknown agent 'nobody'"),
        (["--agent", "gone.py"], "agent gone.py: there is no file gone.py"),
        (["nowhere"], "there is no nowhere"),
        (["RUN", "--lifetime", "99"], "lifetime is 99;"),
        (["RUN", "--episode", "99"], "episode is 99; a lifetime of"),
        (["RUN", "--seed", "1"], "--seed does not go with a run; leave it out"),
        (["--lifetime", "1"], "--lifetime does not go with a level; leave it out"),
        (["--gif", "x.png"], "x.png must end in .gif"),
        (["--pixels", "9999"], "pixels is 9999; it must be from 16 to 1024"),
        (["--episode", "-1"], "episode is -1; it must be from 0"),
        (["--agent", "pd"] * 9, "9 episodes do not fit on a page"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(run, given, message, tmp_path, capsys):
    out = tmp_path / "out.html"
    given = [str(run[0]) if word == "RUN" else word for word in given]
    assert main(["view", *given, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_cannot_play_is_refused_as_in_other_commands(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(PD_OF_A_FILE.replace("int32(1)", "float32(1)"))
    assert main(["view", "--level", "200", "--agent", str(path)]) == 2
    error = capsys.readouterr().err
    assert "mine.py cannot play CartPole3D: action has dtype float32; it must be an" in error
    assert error.count("\n") == 1


def test_a_run_whose_agent_is_gone_asks_for_it(run, tmp_path):
    _, run_records = run
    metadata = {**run_records.metadata, "agent": "mine"}
    replace(run_records, metadata=metadata).write(tmp_path / "records.parquet")
    with pytest.raises(ValueError, match=r"say who played .* with --agent"):
        view.of_run(tmp_path, lifetime=5, episode=0)
    assert view.of_run(tmp_path, lifetime=5, episode=0, agent=learner.NAME).note == ""
    assert records.read_run(tmp_path).metadata["agent"] == "mine"


PD_OF_A_FILE = """
import jax.numpy as jnp
from jaxsim.agents import Agent, NoveltyPrediction
agent = Agent("pd", lambda memory, *_: (jnp.int32(1), NoveltyPrediction.none(), memory))
"""


def test_an_agent_of_a_file_is_not_taken_for_the_built_in_of_its_name(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    syllabus, agent = tmp_path / "one.json", tmp_path / "mine.py"
    syllabus.write_text(toy.syllabus(("1.train", [toy.repeat(2, "CartPole2D")])))
    agent.write_text(PD_OF_A_FILE)
    assert main(["run", "one.json", "--agent", "mine.py", "--out", "x", "--quiet"]) == 0
    assert records.read_run(Path("x")).metadata["agent"] == "mine.py"
    assert view.of_run(Path("x"), lifetime=0, episode=1).action[-1] == 1
    agent.unlink()
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert main(["view", "x", "--episode", "1"]) == 2
    error = capsys.readouterr().err
    assert "there is no file mine.py; say who played x with --agent" in error
    assert error.count("\n") == 1 and sorted(tmp_path.rglob("*")) == before


def test_videos_have_the_frames_of_the_films(tmp_path, recwarn):
    imageio = pytest.importorskip("imageio.v3")
    pytest.importorskip("imageio_ffmpeg")
    names = [tmp_path / "a.html", tmp_path / "a.gif", tmp_path / "a.mp4"]
    given = ["--level", "203", "--difficulty", "hard", "--pixels", "32", "--quiet"]
    options = zip(("--out", "--gif", "--mp4"), map(str, names), strict=True)
    assert main(["view", *given, *(word for pair in options for word in pair)]) == 0
    assert not [str(one.message) for one in recwarn if "os.fork" in str(one.message)]
    ticks = view.of_level(203, "hard").ticks
    gif = imageio.imread(names[1])
    assert gif.shape[1:] == (32, 32, 3) and len(gif) == -(-ticks // 2) + 1
    assert (gif[0] != gif[-1]).any()
    assert len(imageio.imread(names[2], plugin="FFMPEG")) >= ticks


@pytest.mark.parametrize(
    ("ticks", "dt", "expected"),
    [
        (7, 0.02, [0, 2, 4, 6, 7]),
        (6, 0.02, [0, 2, 4, 6]),
        (3, 0.1, [0, 0, 1, 1, 2, 2, 2, 3, 3]),
        (8, 0.03, [0, 1, 3, 4, 5, 7, 8]),
        (10, 0.001, [0, 10]),
    ],
)
def test_frames_of_a_video_keep_time_and_the_last_one_is_the_end(ticks, dt, expected):
    film = replace(view.of_level(200, agent="nothing"), action=[0] * ticks, dt=dt)
    chosen = videos.ticks_of(film, 25)
    assert chosen.tolist() == expected
    shown = np.arange(len(chosen) - 1) / 25
    assert abs(chosen[:-1] * dt - shown).max() <= dt / 2 + 1e-9


def test_frames_that_are_left_out_are_counted(tmp_path, monkeypatch, capsys):
    pytest.importorskip("imageio.v3")
    monkeypatch.setattr(videos, "MOST_FRAMES", 3)
    paths = {"--out": tmp_path / "a.html", "--gif": tmp_path / "a.gif"}
    options = [str(word) for pair in paths.items() for word in pair]
    assert main(["view", "--agent", "nothing", "--pixels", "32", *options]) == 0
    frames = len(videos.ticks_of(view.of_level(200, agent="nothing"), 25))
    note = f"{paths['--gif']} has the first 3 frames; {frames - 3} were left out\n"
    assert capsys.readouterr().out.endswith(note)
