"""What does not fit into memory is refused before play, with the number that does."""

import gc
import re
import shutil
import tracemalloc
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from evaluation import cli, memory, sailon
from evaluation.checkpoints.playing import HELD_BYTES
from evaluation.grader import ReinforcementLearningTestCase, RewardEvaluator, StepCountEvaluator
from evaluation.l2m.run import SyllabusRun
from evaluation.records import COLUMNS
from evaluation.sciencebirds import recording
from evaluation.sciencebirds.document import LARGEST
from evaluation.session import LOGGED_BYTES, EpisodeResult, Prediction
from jaxsim import agents
from tests.evaluation.sciencebirds.support import evaluation, level_set, trial


@pytest.fixture
def small(monkeypatch):
    """A machine of a MiB."""
    monkeypatch.setattr(memory, "physical", lambda: 2**20)


def test_the_memory_of_this_machine():
    assert 2**28 < memory.physical() < 2**50


def test_what_fits_passes_and_one_more_does_not(small):
    memory.check_fits(1024, 1024, "things", "take fewer")
    memory.check_fits(10**9, 0, "things that hold nothing", "take fewer")
    with pytest.raises(ValueError, match=r"^1,025 things do not .* at most 1,024 do: take fewer$"):
        memory.check_fits(1025, 1024, "things", "take fewer")
    with pytest.raises(ValueError, match="at most 1,023 do"):
        memory.check_fits(1024, 1024, "things", "take fewer", used=1)
    with pytest.raises(ValueError, match="at most 0 do"):
        memory.check_fits(1, 1024, "things", "take fewer", used=2**21)


def fitting(error) -> int:
    return int(re.search(r"at most ([0-9,]+) do", str(error.value))[1].replace(",", ""))


def test_lifetimes_of_a_run(small, monkeypatch, tmp_path):
    """In memory all columns of all episodes, on the disk four bytes of each episode."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4 * 10 * 7))
    job = SyllabusRun(out=tmp_path / "out", syllabus=tmp_path / "s.json", lifetimes=7)
    player = SimpleNamespace(agent=agents.get("random"))
    job.check_room(10, player)
    with pytest.raises(OSError, match=r"results of 308 bytes in .*: 280 are free"):
        job.check_room(11, player)
    held = sum(np.zeros(1, dtype).nbytes for dtype in COLUMNS.values())
    with pytest.raises(ValueError, match=r"^7 lifetimes of .* at most 6 do: .*--lifetime-idx"):
        job.check_room(2**20 // (6 * held), player)


def test_executions_of_a_trial(small):
    def of(number, *trials):
        recording.check_memory(evaluation(*trials, trial(3, [2], executions=number)))

    with pytest.raises(ValueError, match="2,147,483,647 executions of trial 0, of 5 plays") as no:
        of(LARGEST)
    most = fitting(no)
    assert most == 2**20 // (5 * LOGGED_BYTES)
    of(most)
    of(-1)
    with pytest.raises(ValueError, match="number_of_executions"):
        of(most + 1)
    # Trials share the memory.
    with pytest.raises(ValueError, match="executions of trial 1") as no:
        of(most, trial(3, [2], executions=most - 7))
    assert fitting(no) == 7
    # Of a set with a limit of interactions no more levels come to their ends.
    recording.check_memory(evaluation(trial(level_set(10**4, interactions=1), executions=1000)))


@pytest.mark.parametrize(
    ("training", "checkpoint", "plays", "words"),
    [
        (level_set(3, attempts=4), 0, 12 + 2, "of 14 plays of levels"),
        (level_set(3, attempts=4, interactions=5), 0, 5 + 2, "of 7 plays"),
        (level_set(3, attempts=0), 0, 3 + 2, "of at least 5 plays"),
        (level_set(3, attempts=4), 2, 12 + 2, "of at least 14 plays"),
    ],
)
def test_each_attempt_at_a_level_counts(small, training, checkpoint, plays, words):
    what = evaluation(trial(training, [2], executions=LARGEST, interactions=checkpoint))
    with pytest.raises(ValueError, match=words) as no:
        recording.check_memory(what)
    assert fitting(no) == 2**20 // (plays * LOGGED_BYTES)


def test_executions_are_checked_before_anything_is_served(tmp_path, monkeypatch, capsys):
    config = tmp_path / "config.xml"
    examples = cli.Path(__file__).parents[2] / "examples" / "sciencebirds"
    words = ["sciencebirds", "generate", str(examples / "sequences.xml"), "-o", str(config)]
    assert cli.main(words) == 0
    text = config.read_text()
    many = re.sub('number_of_executions="[0-9]+"', f'number_of_executions="{LARGEST}"', text)
    assert many != text
    config.write_text(many)
    capsys.readouterr()
    results = tmp_path / "runs"
    words = ["sciencebirds", "serve", "--config", str(config), "--port", "0"]
    assert cli.main([*words, "--results", str(results)]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"jaxsim: 2,147,483,647 executions of .* at most [0-9,]+ do: .*\n", error)
    assert not results.exists()


def test_a_run_counts_what_its_agents_remember(small, tmp_path, capsys):
    syllabus = tmp_path / "s.json"
    episodes = '{"$repeat": {"$episode": "CartPole"}, "count": 2}'
    syllabus.write_text(f'{{"instructions": [{{"$phase": "1.train"}}, {episodes}]}}')

    def most(agent):
        words = ["run", str(syllabus), "--agent", agent, "--lifetimes", "1000000"]
        assert cli.main([*words, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert "--lifetime-idx" in error
        return int(re.search(r"at most ([0-9,]+) do", error)[1].replace(",", ""))

    weights = jax.eval_shape(agents.get("ppo").init, jax.random.key(0))
    known = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(weights))
    assert most("ppo") == 2**20 // (known + 2 * HELD_BYTES)
    assert most("random") == 2**20 // (2 * HELD_BYTES)
    assert not (tmp_path / "out").exists()


def test_a_row_of_a_log_takes_what_is_said():
    gc.collect()  # empties Python's lists of free tuples, whose memory would not be counted
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        rows = [
            (EpisodeResult(n / 3, n / 7, n + 1000, True, True, n / 50 + 0.01), Prediction())
            for n in range(2000)
        ]
        taken = (tracemalloc.get_traced_memory()[0] - before) / len(rows)
    finally:
        tracemalloc.stop()
    assert LOGGED_BYTES <= taken < 1.5 * LOGGED_BYTES


@pytest.mark.parametrize("evaluator", [RewardEvaluator, StepCountEvaluator])
def test_runs_of_a_grader(small, evaluator):
    def case(runs):
        return ReinforcementLearningTestCase(10, None, "c", 1, runs, None, evaluator())

    if evaluator is StepCountEvaluator:  # it keeps two numbers, however many episodes
        assert case(10**9).n_runs == 10**9
        return
    with pytest.raises(ValueError, match="1,000,000,000 episodes of n_runs do not") as no:
        case(10**9)
    assert case(fitting(no)).n_runs == fitting(no)


def test_trials_of_an_experiment(small):
    def generated(trials):
        values = {"novelty": (203,), "difficulty": ("hard",), "novelty_visibility": (0,)}
        return sailon.generate(
            sailon.ExperimentSettings(**values, trials=trials, testing_episodes=4)
        )

    with pytest.raises(ValueError, match="100,000 trials of 4 episodes in each of 1 cells") as no:
        generated(100_000)
    assert len(generated(fitting(no)).trials) == fitting(no)
