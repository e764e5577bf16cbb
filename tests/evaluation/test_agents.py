"""Agents by name and from files."""

import hashlib
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from evaluation import agents, cli
from jaxsim import program_store
from jaxsim.agents import Agent, NoveltyPrediction

PUSHER = """
import jax.numpy as jnp
from jaxsim.agents import Agent, NoveltyPrediction

def right(memory, observation, key):
    return jnp.int32(1), NoveltyPrediction.none(), memory

agent = Agent(name="pusher", init=lambda key: (), act=right)
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_built_in_agents_and_those_of_files(file):
    assert agents.get("pd+residual").name == "pd+residual"
    path = file(PUSHER)
    assert agents.get(str(path)).name == "pusher"
    assert agents.get(f"{path}:agent").name == "pusher"
    # Another name of the same agent is no second one, nor is one that begins with an underscore.
    assert agents.get(str(file(PUSHER + "again = agent\n"))).name == "pusher"


@pytest.mark.parametrize(
    ("text", "suffix", "words"),
    [
        ("x = 1\n", "", "holds no agent"),
        (
            PUSHER + "other = Agent(name='other', init=agent.init, act=right)\n",
            "",
            "2 agents; name",
        ),
        (PUSHER, ":pusher", "is no such variable"),
        (PUSHER, ":right", "is a function"),
        ("x = 1\n\nraise KeyError('gone')\n", "", "line 3 raised KeyError: 'gone'"),
        ("x = (\n", "", "raised SyntaxError"),
        ("import sys\nsys.exit(3)\n", "", "line 2 raised SystemExit: 3"),
        ("import nowhere_to_be_found\n", "", "line 1 raised ModuleNotFoundError"),
    ],
)
def test_files_without_the_agent_that_is_asked_for(file, text, suffix, words):
    with pytest.raises(ValueError) as caught:
        agents.get(f"{file(text)}{suffix}")
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["", ":agent"])
def test_a_detector_joins_an_agent_of_a_file(file, suffix):
    path = file(PUSHER, "my.python.py")
    agent = agents.get(f"{path}{suffix}+residual")
    assert agent.name == "pusher+residual"
    assert agents.file_of(f"{path}{suffix}+residual") == str(path)
    assert agents.file_of("pd+residual") is None
    with pytest.raises(ValueError, match=r"unknown detector 'rest' \(allowed: residual"):
        agents.get(f"{path}{suffix}+rest")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        agents.get(str(tmp_path / "absent.py"))


def none(memory, observation, key):
    return jnp.int32(0), NoveltyPrediction.none(), memory


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda *a: (jnp.zeros(5, jnp.int32), *none(*a)[1:]), "`act` must return one action"),
        (
            lambda *a: (none(*a)[0], jax.tree.map(jnp.atleast_1d, none(*a)[1]), a[0]),
            "must hold one number each, and has shape",
        ),
        (lambda *a: (*none(*a)[:2], (a[0], a[0])), "the memory of `act` has another structure"),
        (lambda *a: none(*a)[0], r"`act` must return \(action, prediction, memory\)"),
        (lambda *a: (*none(*a)[:2], a[0] + 0.5), "`act` has float32 of shape .*`init` has int32"),
        (lambda *a: (jnp.float32(1), *none(*a)[1:]), "action has dtype float32"),
    ],
)
def test_an_agent_whose_numbers_have_other_shapes_is_refused(act, words):
    env, params = jaxsim.make("CartPole-v1")
    agent = Agent("mine", act, init=lambda key: jnp.int32(0))
    with pytest.raises(ValueError, match=f"^agent mine cannot play CartPole: .*{words}"):
        agents.check_fit(agent, "mine", env, params)
    agents.check_fit(replace(agent, act=none), "mine", env, params)


def call_back(memory, key):
    return jax.pure_callback(lambda m: m, jax.ShapeDtypeStruct((), jnp.int32), memory)


def read_nothing(memory, episodes):
    return memory + episodes.nothing


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ({"init": lambda key: 0}, "`init` holds 0; it must hold arrays, as jnp.int32"),
        ({"init": lambda key: "none"}, "`init` holds 'none'; it must hold arrays"),
        ({"assign": lambda memory, number: number}, "`assign` has uint32 of shape"),
        ({"enter": lambda memory, entry: memory[None]}, r"`enter` has int32 of shape \(1,\)"),
        ({"begin": lambda memory, key: (memory, memory)}, "`begin` has another structure"),
        ({"fault": lambda memory: jnp.zeros(2, jnp.int32)}, "`fault` must return one number"),
        ({"learn": lambda memory, episodes: memory + 0.5}, "`learn` has float32 of shape"),
        ({"learn": lambda memory, episodes: episodes.length}, r"`learn` has int32 of shape \(1,\)"),
        ({"learn": read_nothing}, "has no attribute 'nothing'"),
        ({"begin": call_back}, "vmap is only supported for the pure_callback primitive when"),
        ({"trace": lambda *a: "text", "learn": lambda memory, episodes: memory}, "text"),
    ],
)
def test_an_agent_whose_other_functions_are_wrong_is_refused(functions, words):
    env, params = jaxsim.make("CartPole-v1")
    agent = Agent("mine", none, **{"init": lambda key: jnp.int32(0), **functions})
    with pytest.raises(ValueError, match=f"^agent mine cannot play CartPole: .*{words}"):
        agents.check_fit(agent, "mine", env, params)


def test_an_agent_that_learns_from_steps_is_tried_with_episodes_of_their_form():
    env, params = jaxsim.make("CartPole-v1", max_steps=7)
    shapes = []

    def learn(memory, episodes):
        leaves = episodes.trace, episodes.rewards, episodes.final, episodes.terminated
        shapes.append([(leaf.shape, leaf.dtype.name) for leaf in leaves])
        assert episodes.played is None
        return memory + episodes.length[0]

    def trace(memory, observation, action):
        return jnp.stack([action, memory])

    agent = Agent("mine", none, init=lambda key: jnp.int32(0), learn=learn, trace=trace)
    agents.check_fit(agent, "mine", env, params)
    row = ((1, 7, 2), "int32"), ((1, 7), "float32"), ((1, 2), "int32"), ((1,), "bool")
    assert shapes == [list(row)]


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """Names of agents whose functions a process traces, with a store of traced programs."""
    monkeypatch.setenv(program_store.VARIABLE, str(tmp_path / "store"))
    monkeypatch.setattr(program_store, "_is_changed", lambda: False)
    traced = []
    check = agents.contract.check_functions

    def counted(agent, *arguments):
        traced.append(agent.name)
        return check(agent, *arguments)

    monkeypatch.setattr(agents.contract, "check_functions", counted)
    return traced


def test_what_an_earlier_process_has_checked_is_not_checked_again(checks, monkeypatch):
    def check_anew(name, *world):
        monkeypatch.setattr(agents, "_FITTING", set())  # as in another process
        agents.check_fit(agents.get(name), name, *world)

    world = jaxsim.make("CartPole3D-v0", level=200)
    check_anew("pd", *world)
    check_anew("pd", *world)
    assert checks == ["pd"]
    check_anew("random", *world)
    check_anew("pd", *jaxsim.make("CartPole3D-v0", level=200, max_steps=50))
    assert checks[:2] == ["pd", "random"]
    assert len(checks) == 3


def test_agents_of_files_are_checked_by_every_process(checks, monkeypatch):
    env, params = jaxsim.make("CartPole-v1")
    agent = Agent("mine", none, init=lambda key: jnp.int32(0))
    for _ in range(2):
        monkeypatch.setattr(agents, "_FITTING", set())
        agents.check_fit(agent, "mine", env, params)
    assert checks == ["mine", "mine"]


def test_a_check_that_fails_is_not_kept(checks, monkeypatch):
    env, params = jaxsim.make("CartPole-v1")
    agent = replace(agents.get("random"), act=lambda *a: none(*a)[0])
    monkeypatch.setattr(program_store, "key_of", lambda *parts: "0" * 64)
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot play CartPole"):
            agents.check_fit(agent, "random", env, params)
    assert checks == ["random", "random"]


def test_an_agent_that_goes_to_another_folder_leaves_us_in_ours(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agents.get(str(file("import os\nos.chdir('/')\n" + PUSHER)))
    assert Path.cwd() == tmp_path


def test_files_of_agents_are_known_by_their_content(file):
    path = file(PUSHER)
    (known,) = agents.files_of(["pd", f"{path}:agent+residual"]).values()
    assert known == {str(path): hashlib.sha256(PUSHER.encode()).hexdigest()}
    assert agents.files_of(["pd", "mpc+residual"]) == {}
    agents.get(str(path))
    path.write_text(PUSHER + "# changed while it plays\n")
    assert agents.files_of([str(path)])["agent_files"] == known  # what was loaded
    agents.get(str(path))
    assert agents.files_of([str(path)])["agent_files"] != known


SYLLABUS = Path(__file__).parents[2] / "examples/syllabi/cl_pole_length.json"
OUT = ["--out", "out"]


@pytest.mark.parametrize(
    "command",
    [
        ["run", str(SYLLABUS), "--lifetimes", "2", *OUT, "--agent"],
        ["sailon", "evaluate", "--levels", "203", "--trials", "1", *OUT, "--agent"],
        ["sailon", "evaluate", "--levels", "203", *OUT, "--agent", "pd", "--baseline"],
        ["evaluate", "pd"],
    ],
    ids=["run", "sailon", "baseline", "evaluate"],
)
def test_an_agent_whose_function_fails_is_refused_before_anything_is_written(
    command, file, capsys, monkeypatch, tmp_path
):
    path = file(PUSHER.replace("jnp.int32(1)", "observation.lean"))
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, str(path)]) == 2
    error = capsys.readouterr().err
    line = PUSHER.split("jnp.int32(1)")[0].count("\n") + 1
    assert error.startswith(f"jaxsim: agent {path}, line {line} cannot play CartPole3D: ")
    assert "lean" in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()
