"""Programs written for other tools, as they are, on the packages of `jaxsim shims`."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from evaluation import cli, shims
from evaluation.logs.export import write_learnkit
from tests.evaluation import toy
from tests.evaluation.reached import reached
from tests.evaluation.sciencebirds.support import evaluation, serving, trial

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "sciencebirds" / "naive_agent_groundtruth.py"


def python(*words, cwd, **env):
    """Run Python with the folder on its path."""
    search = os.pathsep.join([str(shims.FOLDER), str(ROOT)])
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": search, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("words", "loads"),
    [
        ("gvgai run --agent a.py", "evaluation.gvgai.agent.load_class"),
        ("gvgai connect --agent a.py", "evaluation.gvgai.agent.load_class"),
        ("grade suite agent", "evaluation.grader.loading.load_suite"),
    ],
)
def test_agents_that_commands_load_find_the_folder(words, loads, monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(shims.FOLDER)])
    with reached({loads: None}) as calls:
        cli.main(words.split())
    assert calls
    assert sys.path[0] == str(shims.FOLDER)


def test_the_command_prints_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["shims"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{shims.FOLDER}\n"
    assert shims.FOLDER.is_dir()
    assert "tmp" not in captured.err


def test_every_name_is_ours():
    """All modules can be imported, and hold nothing of their own."""
    modules = list(pkgutil.walk_packages([str(shims.FOLDER)], "evaluation.shims.packages."))
    assert len(modules) > 15
    for info in modules:
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            home = getattr(getattr(module, name), "__module__", "gymnasium")
            assert home.startswith(("evaluation.", "gymnasium")), f"{info.name}.{name}"


def test_a_package_that_hides_another_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "gym").mkdir()
    (tmp_path / "gym" / "__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["shims"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "gym is" in line]
    ours, theirs = shims.FOLDER / "gym", tmp_path / "gym"
    assert line == f"jaxsim: warning: gym is taken from {theirs}, which hides {ours}"
    (package,) = shims.hidden([str(shims.FOLDER), str(tmp_path)], ["gym", "objects"])
    assert (package.used, package.hidden) == (ours, theirs)


# aiVLE --------------------------------------------------------------------------------------------

SUITE = """
import gym

from aivle_grader.abc.evaluator import EvaluationResult, Evaluator
from aivle_grader.abc.exception import TimeoutException
from aivle_grader.abc.util import time_limiter
from aivle_grader.evaluator import RewardEvaluator, StepCountEvaluator
from aivle_grader.test_case import ReinforcementLearningTestCase
from aivle_grader.test_suite import TestSuite

env = gym.make("CartPole-v1")


class Longest(Evaluator):
    def __init__(self):
        super().__init__()
        self.longest = self.length = 0

    def reset(self):
        self.length = 0

    def step(self, full_state):
        self.length += 1
        self.longest = max(self.longest, self.length)

    def get_result(self):
        return EvaluationResult(self.longest, self.error, "longest", [self.longest])


test_suite = TestSuite(
    suite_id="upstream",
    cases=[
        ReinforcementLearningTestCase(
            t_max=50, seeds=[2333] * 3, case_id=case, time_limit=60.0, n_runs=3,
            agent_init={}, env=env, evaluator=evaluator,
        )
        for case, evaluator in enumerate([RewardEvaluator(), StepCountEvaluator(), Longest()])
    ],
)
"""

AGENT = """
from aivle_grader.abc.agent import Agent


class Steady(Agent):
    def __init__(self, **kwargs):
        pass

    def step(self, state):
        return int(state[2] + 0.5 * state[3] > 0)

    def reset(self):
        pass


def create_agent(**kwargs):
    return Steady(**kwargs)
"""


@pytest.fixture
def submission(tmp_path):
    (tmp_path / "my_test_suite.py").write_text(SUITE)
    (tmp_path / "my_agent.py").write_text(AGENT)
    return tmp_path


def test_a_suite_for_the_original_grader(submission):
    done = python(
        "-m",
        "evaluation.cli",
        "grade",
        "my_test_suite",
        "my_agent",
        cwd=submission,
        PYTHONPATH=ROOT,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [each["result"]["value"] for each in results] == [50.0, 50.0, 50]


def test_the_module_of_the_original_grader(submission):
    done = python("-m", "aivle_grader", cwd=submission)
    assert done.returncode == 0, done.stderr
    assert "'suite_id': 'upstream'" in done.stdout and "'value': 50.0" in done.stdout


def test_the_time_limiter(submission):
    (submission / "limited.py").write_text(
        "from aivle_grader.abc.exception import TimeoutException\n"
        "from aivle_grader.abc.util import time_limiter\n"
        "with time_limiter(0):\n    pass\n"
        "try:\n    with time_limiter(0.05):\n        while True: pass\n"
        "except TimeoutException as error:\n    print('over', error)\n"
    )
    done = python("limited.py", cwd=submission)
    assert done.stdout.startswith("over"), done.stderr


# gym ----------------------------------------------------------------------------------------------


def test_environments_of_the_old_interface():
    gymnasium = pytest.importorskip("gymnasium")
    from evaluation.shims.packages import gym

    env = gym.make("CartPole-v1", max_episode_steps=3)
    twin = gymnasium.make("CartPole-v1", max_episode_steps=3)
    assert env.seed(7) == [7]
    state, (other, _) = env.reset(), twin.reset(seed=7)
    np.testing.assert_array_equal(state, other)
    assert env.action_space == twin.action_space and env.unwrapped is env
    for step in range(3):
        state, reward, done, info = env.step(1)
        other, value, _, _, _ = twin.step(1)
        np.testing.assert_array_equal(state, other)
        assert (reward, done) == (value, step == 2)
    assert info["TimeLimit.truncated"] is True
    np.testing.assert_array_equal(env.reset(), twin.reset()[0])  # a seed counts once
    with pytest.raises(ValueError, match=r"make it with gym.make\(..., render_mode='human'\)"):
        env.render()
    assert isinstance(env, gym.Env)


def test_environments_of_the_old_interface_define_reset_and_step():
    pytest.importorskip("gymnasium")
    from evaluation.shims.packages import gym

    class WithoutStep(gym.Env):
        def reset(self):
            return 0

    class Whole(WithoutStep):
        def step(self, action):
            return action, 1.0, True, {}

    with pytest.raises(TypeError, match="step"):
        WithoutStep()
    env = Whole()
    assert (env.reset(), env.step(3), env.render(), env.close()) == (
        0,
        (3, 1.0, True, {}),
        None,
        None,
    )


def test_wrappers_of_the_old_interface():
    pytest.importorskip("gymnasium")
    from evaluation.shims.packages import gym

    class Doubled(gym.Wrapper):
        def step(self, action):
            state, reward, done, info = self.env.step(action)
            return state, 2 * reward, done, info

    env = Doubled(gym.make("CartPole-v1"))
    env.seed(1)
    env.reset()
    assert env.step(0)[1] == 2.0
    assert env.observation_space.shape == (4,) and env.unwrapped is env.env
    assert env.gravity == pytest.approx(9.8)
    env.close()


def test_a_wrapper_of_the_old_interface_hands_everything_on():
    pytest.importorskip("gymnasium")
    from evaluation.shims.packages import gym

    inner = MagicMock()
    env = gym.Wrapper(inner)
    calls = {"reset": (), "step": (3,), "render": ("rgb_array",), "seed": (7,), "close": ()}
    for name, arguments in calls.items():
        result, handed_on = getattr(env, name)(*arguments), getattr(inner, name)
        handed_on.assert_called_once_with(*arguments)
        assert result is (None if name == "close" else handed_on.return_value)
    for name in ("metadata", "spec", "action_space", "observation_space", "reward_range"):
        assert getattr(env, name) is getattr(inner, name)
    assert env.unwrapped is inner.unwrapped


def test_the_worlds_of_this_package_are_known_to_it():
    pytest.importorskip("gymnasium")
    from evaluation.shims.packages import gym

    env = gym.make("jaxsim/CartPole-v1")
    env.seed(0)
    env.reset()
    assert len(env.step(0)) == 4


# Lifelong learning --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def l2data(tmp_path_factory):
    from evaluation import scanner

    home = tmp_path_factory.mktemp("l2data")
    with toy.registered():
        schedule = toy.schedule(
            ("1.train", [toy.repeat(12)]),
            ("1.test", [toy.repeat(12)]),
            ("2.train", [toy.repeat(12, wheel=5)]),
            name="syllabus1",
        )
        records = scanner.play(schedule, toy.busy, lifetimes=1)
    return home, write_learnkit(records, 0, home / "logs")


def test_commands_of_the_documents_work_as_printed(l2data, tmp_path):
    home, log = l2data
    done = python("-m", "learnkit.info", "-get", "logdir", cwd=tmp_path, L2DATA=home)
    assert done.stdout == f"{home / 'logs'}\n"
    words = ["-log_dir", log.name, "-syllabus_type", "agent"]
    done = python("-m", "l2metrics", *words, cwd=tmp_path, L2DATA=home)
    assert done.returncode == 0 and "Metric: " in done.stdout, done.stderr
    calc = [shims.FOLDER / "calc_metrics.py", "-syllabus_subtype=CL", f"-log_dir={log.name}"]
    done = python(*calc, cwd=tmp_path, L2DATA=home)
    assert done.returncode == 0 and "An Example Custom Metric" in done.stdout, done.stderr
    done = python("-m", "l2metrics", "-l", "absent", cwd=tmp_path, L2DATA=home)
    assert done.returncode == 2 and done.stderr.startswith("jaxsim: ")  # the command of 3.1


# Science Birds ------------------------------------------------------------------------------------


def test_the_naive_agent_plays_a_served_evaluation(tmp_path):
    pole = dict.fromkeys(("x_quaternion", "y_quaternion", "z_quaternion"), 0.1) | {
        "w_quaternion": 1.0,
        "x_velocity": 0.0,
        "y_velocity": 0.1,
    }
    with serving(evaluation(trial(3), step=1, in_training=True), shots=2) as (server, _, _):
        server._harness._game.feature_vector = lambda: {"pole": pole}
        done = python(EXAMPLE, "--port", server.address[1], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 levels, 6 shots\n"
