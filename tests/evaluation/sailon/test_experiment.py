"""Plans of experiments: what is drawn, saved, read and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evaluation import cli
from evaluation.sailon import experiment
from evaluation.sailon.experiment import (
    TESTING_SEEDS,
    TRAINING_SEEDS,
    Cell,
    Experiment,
    Trial,
    generate,
    load,
    loads,
)
from evaluation.sailon.settings import ExperimentSettings
from evaluation.sailon.text import ExperimentError
from evaluation.sailon.worlds import groups

SHIPPED = """
[aiq-sail-on]
novelty = 200,101,102,103,104,105,106,107,108
difficulty = easy,medium,hard
novelty_visibility = 0,1
hint_level = -1,0,1,2,3
trials = 1
testing_episodes = 7
normal_timeout_seconds = 600
training_timeout_multiplier = 10
database = experiments.sql

[cartpole]
training_episodes = 20
testing_episodes = 20
pre_novel_episodes = 5
testing_novelty_p2 = 1.0
"""


def plan(**values):
    defaults = {"novelty": (203,), "difficulty": ("hard",), "novelty_visibility": (0,)}
    return generate(
        ExperimentSettings(**{**defaults, "trials": 3, "testing_episodes": 20, **values})
    )


def test_an_ini_file_of_the_original():
    drawn = loads(SHIPPED)
    assert len(drawn.trials) == 150
    assert (len(drawn.training), len(drawn.trials[0].seeds)) == (20, 20)
    assert all(trial.button == 5 for trial in drawn.trials if trial.cell.novel)
    assert drawn.settings.normal_timeout_seconds == 600
    visible = [trial.cell for trial in drawn.trials[27:]]
    # Level 200 is only ever told nothing; other cells come hint level by hint level.
    assert visible[:3] == [Cell(1, 200, d, -1) for d in ("easy", "medium", "hard")]
    assert visible[3:9] == [Cell(1, 101, "easy", h) for h in (-1, 0, 1, 2, 3)] + [
        Cell(1, 101, "medium", -1)
    ]


@pytest.mark.parametrize(
    ("episodes", "setting", "share", "before", "novel"),
    [(20, 5, 0.8, 5, 12), (100, None, 0.8, 30, 56), (45, 20, 1.0, 20, 25), (10, 10, 0.8, 5, 4)],
)
def test_how_many_episodes_are_novel(episodes, setting, share, before, novel):
    drawn = plan(testing_episodes=episodes, pre_novel_episodes=setting, testing_novelty_p2=share)
    for trial in drawn.trials:
        assert (trial.button, sum(trial.novel)) == (before, novel)
        assert not any(trial.novel[:before])


def test_mixed_in_episodes_are_shuffled():
    places = {trial.novel for trial in plan(trials=20, pre_novel_episodes=5).trials}
    assert len(places) > 10
    nothing = plan(testing_novelty_p2=0.0, pre_novel_episodes=5).trials[0]
    assert (nothing.button, any(nothing.novel)) == (20, False)


def test_seeds_are_distinct_and_in_bounds():
    drawn = plan(trials=50, training_episodes=30)
    assert len(set(drawn.training)) == 30
    assert all(TRAINING_SEEDS[0] <= seed <= TRAINING_SEEDS[1] for seed in drawn.training)
    seeds = [seed for trial in drawn.trials for seed in trial.seeds]
    assert len(set(seeds)) == len(seeds) == 1000
    assert all(TESTING_SEEDS[0] <= seed <= TESTING_SEEDS[1] for seed in seeds)


def test_equal_settings_draw_an_equal_experiment():
    assert plan() == plan()
    assert plan(seed=1) != plan()
    # Part of what makes an old experiment come back.
    assert plan(trials=1, testing_episodes=3).trials[0].seeds == (
        1796245640,
        3791282960,
        2584484063,
    )


def test_what_an_episode_tells():
    drawn = plan(novelty_visibility=(0, 1), hint_level=(2,), pre_novel_episodes=5, trials=1)
    hidden, visible = drawn.trials
    assert {e.indicator for e in drawn.episodes(hidden)} == {None}
    assert {e.hint_level for e in drawn.episodes(hidden)} == {-1}
    episodes = drawn.episodes(visible)
    assert [e.indicator for e in episodes] == [index >= 5 for index in range(20)]
    assert [e.hint_level for e in episodes] == [2 if e.novel else -1 for e in episodes]
    assert {(e.level, e.difficulty) for e in episodes if not e.novel} == {(200, "easy")}
    assert {(e.level, e.difficulty) for e in episodes if e.novel} == {(203, "hard")}


@pytest.mark.requirement(137)
def test_the_indicator_of_phase_1_tells_of_each_episode():
    drawn = plan(novelty_visibility=(1,), hint_level=(-1,), phase="1", trials=1)
    assert all(e.indicator == e.novel for e in drawn.episodes(drawn.trials[0]))
    button = plan(novelty_visibility=(1,), hint_level=(-1,), phase="1", indicator="button")
    assert button.episodes(button.trials[0])[-1].indicator is True


def test_level_200_is_never_novel():
    drawn = plan(novelty=(200,), novelty_visibility=(1,), trials=1)
    (trial,) = drawn.trials
    assert trial.button == 20
    assert {e.indicator for e in drawn.episodes(trial)} == {False}
    assert {e.level for e in drawn.episodes(trial)} == {200}


def test_a_trial_as_a_schedule():
    drawn = plan(pre_novel_episodes=5, testing_novelty_p2=1.0)
    schedule = drawn.schedule(drawn.trials[0])
    assert [(b.count, dict(b.parameters)["novelty/level"]) for b in schedule.blocks] == [
        (5, 200),
        (15, 203),
    ]
    assert schedule.num_episodes == 20


def test_trials_share_a_program_by_the_blocks_they_need():
    drawn = plan(novelty=(203, 208, 204, 50, 108), difficulty=("easy", "hard"), trials=1)
    sizes = [[t.cell.level for t in group.trials] for group in groups(drawn)]
    assert sizes == [[203, 203, 204, 204, 50, 50], [108, 108], [208, 208]]
    assert groups(drawn)[0].variants[0] == experiment.UNCHANGED


def test_few_trials_join_those_of_more_blocks_but_never_those_of_few():
    drawn = plan(novelty=(203, 208, 108), difficulty=("easy", "hard"), trials=1)
    (episodes,) = {len(trial.seeds) for trial in drawn.trials}

    def numbers(few):
        return [[trial.number for trial in group.trials] for group in groups(drawn, few)]

    apart, together = numbers(2 * episodes - 1), numbers(2 * episodes)
    assert apart == numbers(0)
    assert together == [apart[0], sorted(apart[1] + apart[2])]
    assert numbers(1 << 30) == together
    alone = plan(novelty=(108,), difficulty=("easy",), trials=1)
    (group,) = groups(alone, 1 << 30)
    assert group.tasks.worlds[0].env.config.max_blocks == 8


# Files --------------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path):
    drawn = plan(novelty=(200, 203, 101), novelty_visibility=(0, 1), training_episodes=4)
    path = tmp_path / "some" / "experiment.json"
    drawn.write(path)
    assert load(path) == drawn
    assert load(path).digest() == drawn.digest() == replace(drawn, name="other").digest()
    assert drawn.digest() != plan().digest()
    assert json.loads(path.read_text())["name"] == "sailon"


def test_settings_as_json():
    drawn = loads('{"novelty": [203], "trials": 2, "phase": "1"}')
    assert (drawn.settings.phase, drawn.settings.novelty) == ("1", (203,))
    assert len(drawn.trials) == 2 * 3 * (1 + 5)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (
            '{\n "novelty": [203],\n "trials": 0}',
            3,
            12,
            "'trials' is 0; it must be whole, from 1",
        ),
        ('{"novelti": [203]}', 1, 2, "did you mean 'novelty'"),
        ('{"trials": 1, "trials": 2}', 1, 15, "stands twice"),
        ('{"budget": NaN}', 1, 12, "NaN is not JSON"),
        ('{"budget": -1e999}', 1, 12, "-1e999 is not JSON"),
        ('{"trials": 1,,}', 1, 14, "broken JSON"),
        ('{"novelty": [299]}', 1, 13, "299 in it must be one of 50"),
        ('{"novelty": 203}', 1, 13, "must be a list"),
        ('{"novelty": [[203]]}', 1, 13, "[203] in it must be one of 50"),
        ('{"novelty": [203.0]}', 1, 13, "203.0 in it must be one of 50"),
        ('{"novelty": [203, 203]}', 1, 13, "twice"),
        ('{"training_novelty_p1": 0.5}', 1, 25, "it must be 0"),
        ("[cartpole]\nnovelty = 203\ntrials = x\n", 3, 1, "'trials' is 'x'"),
        ("[cartpole]\nbudget = 2\n", 2, 1, "'budget' is 2.0; it must be a number from -1 to 1"),
        ("[cartpole]\ntrial = 4\n", 2, 1, "did you mean 'trials'"),
        ("novelty = 203\n", 1, 1, "neither a JSON object nor an ini file"),
        ('[{"trials": 1}]\n[]\n', 2, 1, "neither a JSON object nor an ini file"),
        ("", 1, 1, "there are no settings"),
        ('{"format": "other"}', 1, 12, "must be 'jaxsim-sailon-1'"),
    ],
)
def test_errors_have_a_place(text, line, column, words):
    with pytest.raises(ExperimentError) as caught:
        loads(text, "file")
    error = caught.value
    assert (error.line, error.column) == (line, column), str(error)
    assert words in error.reason
    assert str(error).startswith(f"file:{line}:{column}: ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"novel": "0', '"novel": "2', "a digit 0 or 1"),
        ('"novel": "0', '"novel": "', "'seeds' has 20 entries for the 19 episodes"),
        ('"hint_level": -1, "trials"', '"hint_level": 4, "trials"', "must be one of -1, 0"),
        ('"visibility": 0', '"visibility": true', "must be one of 0, 1"),
        ('"training": [', '"training": [-1, ', "seed -1 must be from 0"),
        ('"trials": 3', '"trials": -3', "'trials' is -3"),
        ('"name": "sailon", ', "", "key 'name' is missing"),
    ],
)
def test_a_damaged_experiment_is_refused(old, new, words):
    text = plan(training_episodes=1).dumps()
    assert old in text
    with pytest.raises(ExperimentError, match=r"text>:[0-9]+:[0-9]+: ") as caught:
        loads(text.replace(old, new, 1))
    assert words in caught.value.reason


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ExperimentError, match="cannot be read"):
        load(tmp_path / "missing.json")
    (tmp_path / "bytes").write_bytes(b"{\n\xff}")
    with pytest.raises(ExperimentError, match="bytes:2:1: this byte is not UTF-8"):
        load(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trials", True),
        ("difficulty", ("soft",)),
        ("testing_novelty_p2", 1.5),
        ("normal_timeout_seconds", float("nan")),
        ("phase", "5"),
        ("starts", "other"),
        ("seed", 2**32),
        ("hint_level", ()),
    ],
)
def test_settings_that_are_refused(name, value):
    with pytest.raises(ValueError, match=f"^'{name}' is "):
        ExperimentSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "low", "high", "beyond"),
    [
        ("trials", 1, 100_000, 1),
        ("training_episodes", 0, 10_000, 1),
        ("testing_episodes", 1, 10_000, 1),
        ("pre_novel_episodes", 0, 10_000, 1),
        ("testing_novelty_p2", 0, 1, 0.01),
        ("normal_timeout_seconds", 1e-3, 1e9, 1e-4),
        ("training_timeout_multiplier", 0, 1e9, 0.01),
        ("budget", -1, 1, 0.01),
        ("seed", 0, 2**32 - 1, 1),
    ],
)
def test_numbers_of_settings_have_bounds(name, low, high, beyond):
    for value in (low, high):
        assert getattr(ExperimentSettings(**{name: value}), name) == value
    for value in (low - beyond, high + beyond):
        with pytest.raises(ValueError, match=f"^'{name}' is "):
            ExperimentSettings(**{name: value})


def test_an_experiment_may_be_written_by_hand():
    cell = Cell(0, 203, "hard", -1)
    trial = Trial(0, 0, cell, (False, True), (1, 2))
    written_experiment = Experiment("mine", ExperimentSettings(), (), (trial,))
    assert loads(written_experiment.dumps()) == written_experiment
    assert np.array_equal([e.level for e in written_experiment.episodes(trial)], [200, 203])


@pytest.mark.parametrize(("episodes", "before"), [(9, 2), (10, 3), (13, 3), (16, 4), (19, 5)])
def test_three_tenths_of_a_trial_come_before_novelty_and_parts_are_cut(episodes, before):
    trial = plan(testing_episodes=episodes, testing_novelty_p2=1.0).trials[0]
    assert trial.button == before
    assert sum(trial.novel) == episodes - before


@pytest.mark.parametrize(("share", "novel"), [(0.5, 3), (0.99, 6), (0.29, 2), (0.1, 0)])
def test_the_share_of_novel_episodes_is_cut_too(share, novel):
    trial = plan(testing_episodes=9, pre_novel_episodes=2, testing_novelty_p2=share).trials[0]
    assert sum(trial.novel) == novel


def test_cells_and_trials_have_seeds_and_numbers_of_their_own():
    """What is random in a trial follows from its number in the experiment, not in its cell."""
    cells = {"novelty": (203, 207), "difficulty": ("easy", "hard"), "novelty_visibility": (0, 1)}
    trials = plan(**cells, hint_level=(-1,)).trials
    assert [trial.number for trial in trials] == list(range(24))
    assert len({trial.seeds for trial in trials}) == 24


def test_no_two_trials_of_a_cell_share_a_seed(monkeypatch):
    """Also where there are no more seeds than episodes."""
    monkeypatch.setattr(experiment, "TESTING_SEEDS", (0, 5))
    few = ExperimentSettings(novelty=(203,), novelty_visibility=(0,), trials=3, testing_episodes=2)
    sample = generate(few)
    for index in range(len(few.difficulty)):
        trials = sample.trials[3 * index : 3 * index + 3]
        assert sorted(seed for trial in trials for seed in trial.seeds) == list(range(6))


# Sensors of every episode -------------------------------------------------------------------------

NOISY = (("sensors/noise_angle", 0.01), ("sensors/noise_position", 0.02))


def test_sensors_err_in_every_episode_training_included():
    drawn = plan(sensors=NOISY, training_episodes=2, pre_novel_episodes=5)
    episodes = [*drawn.training_episodes(), *drawn.episodes(drawn.trials[0])]
    assert len(episodes) == 22
    for one in episodes:
        _, values = one.variant.of_schedule
        assert NOISY[0] in values and NOISY[1] in values
    (group,) = groups(drawn)
    assert {variant.level for variant in group.variants} == {200, 203}
    assert {group.variant(one) for one in episodes} == {0, 1}


def test_sensors_are_written_read_and_part_of_the_digest(tmp_path):
    drawn = plan(sensors=NOISY)
    drawn.write(tmp_path / "noisy.json")
    assert load(tmp_path / "noisy.json") == replace(drawn, name=drawn.name)
    assert drawn.to_json()["settings"]["sensors"] == dict(NOISY)
    assert drawn.digest() != plan().digest()
    assert "sensors" not in plan().to_json()["settings"]


def test_sensors_in_settings_as_json():
    text = json.dumps({"trials": 1, "sensors": dict(reversed(NOISY))})
    assert loads(text).settings.sensors == NOISY


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"sensors": {"sensors/noise": 1}}', "did you mean"),
        ('{"sensors": {"sensors/noise_angle": -1}}', "sensors/noise_angle"),
        ('{"sensors": {"gravity": 5}}', "unknown parameter .gravity. .allowed: sensors"),
        ('{"sensors": [0.1]}', "an object of values by path"),
        ('{"sensors": {"sensors/noise_angle": 0.1}, "novelty": [51]}', "levels of CartPole3D"),
        ("[cartpole]\nsensors = 0.1\n", "JSON or by --set"),
    ],
)
def test_sensors_that_are_refused(text, words):
    with pytest.raises(ExperimentError, match=words):
        loads(text)


def test_generate_takes_sensors_from_the_command_line(tmp_path, capsys):
    (tmp_path / "settings.json").write_text('{"trials": 1, "novelty_visibility": [0]}')
    words = ["sailon", "generate", str(tmp_path / "settings.json"), "--out"]
    words += [str(tmp_path / "noisy.json"), "--set", "sensors/noise_rate=0.1"]
    assert cli.main(words) == 0
    assert load(tmp_path / "noisy.json").settings.sensors == (("sensors/noise_rate", 0.1),)
    assert cli.main([*words, "--set", "gravity=5"]) == 2
    assert "unknown parameter 'gravity' (allowed: sensors/" in capsys.readouterr().err
