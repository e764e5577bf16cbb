"""Agents by name: built-in ones, and those of Python files."""

import hashlib
import re
import runpy
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.json_types import JsonObject
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import agents, image_settings, inputs
from jaxsim.agents import Agent
from jaxsim.agents.base import Entry, Episodes, Memory, learn_nothing
from jaxsim.env import Env
from jaxsim.env_spec import GYMNAX
from jaxsim.pytrees import Params, Tree

_OF_FILE = re.compile(r"(?P<path>.+?\.py)(:(?P<variable>[^:+]*))?(\+(?P<detector>.*))?", re.DOTALL)


def file_of(name: str) -> str | None:
    """Path in a name of the form "FILE.py", "FILE.py:variable" or one of them with "+detector"."""
    match = _OF_FILE.fullmatch(name)
    return match and match["path"]


def files_of(names: Iterable[str]) -> JsonObject:
    """What a run must find again of agents that are from files: "agent_files", path to SHA-256.

    It is empty for built-in agents. Modules that such a file imports are not covered.
    """
    files = [file for file in map(file_of, names) if file is not None]
    digests = {file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files}
    return {"agent_files": digests} if digests else {}


def get(name: str) -> Agent:
    """Look up an agent.

    Args:
      name: of a built-in agent, as "pd" or "pd+residual"; "FILE.py" for the agent of a file that
        holds one `jaxsim.agents.Agent`; or "FILE.py:variable" for one of several. A detector joins
        those of files as well: "FILE.py+residual".

    Raises:
      ValueError: no such agent, detector or file, a file that holds no agent or several, or one
        that fails.
    """
    match = _OF_FILE.fullmatch(name)
    if match is None:
        return agents.get(name)
    path, detector = Path(match["path"]), match["detector"]
    if not path.is_file():
        raise ValueError(f"agent {name}: there is no file {path}")
    agent = _in_file(path, match["variable"])
    return agent if detector is None else agents.with_detector(agent, detector)


def _in_file(path: Path, variable: str | None) -> Agent:
    """The agent that a variable of a file holds, or the only one; see `get`."""
    variables = _variables(path)
    if variable is not None:
        return _one(path, variable, variables)
    names: dict[int, str] = {}
    for key, value in variables.items():
        if isinstance(value, Agent) and not key.startswith("_"):
            names.setdefault(id(value), key)
    if len(names) == 1:
        return _one(path, next(iter(names.values())), variables)
    if not names:
        raise ValueError(
            f"agent {path} holds no agent; assign one, as `agent = jaxsim.agents.Agent(...)`"
        )
    options = ", ".join(f"{path}:{key}" for key in names.values())
    raise ValueError(f"agent {path} holds {len(names)} agents; name one of {options}")


def of_schedule(name: str, schedule: Schedule) -> Agent:
    """Look up an agent for a schedule; learners are built for the observations of its tasks.

    If observations have a picture, learners get the picture only.

    Raises:
      ValueError: as `get`, or an agent that cannot act on the observations of a task.
    """
    task, values = schedule.variants[0]
    pictured = any(path.startswith(image_settings.GROUP) for path, _ in values)
    of_file = file_of(name)
    if not (of_file or pictured or task.startswith(GYMNAX)):
        return get(name)
    tasks = Tasks.of(schedule)
    agent = get(name) if of_file else agents.fitted(name, *tasks.variant(0))
    for index in np.unique(tasks.world, return_index=True)[1]:
        check_fit(agent, name, *tasks.variant(int(index)))
    return agent


def _one(path: Path, variable: str, variables: dict[str, object]) -> Agent:
    value = variables.get(variable)
    if not isinstance(value, Agent):
        kind = "no such variable" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"agent {path}:{variable} is {kind}; it must be a jaxsim.agents.Agent")
    return value


def _variables(path: Path) -> dict[str, object]:
    """Run a file; return its variables by name."""
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        line = error.lineno if isinstance(error, SyntaxError) else _line(error, str(path))
        where = f"{path}, line {line}" if line else str(path)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"agent {where} raised {reason}") from error


def _line(error: BaseException, path: str | None) -> int | None:
    """Last line of a file that an error has passed through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return lines[-1] if lines else None


_ANSWER = "action", "prediction", "memory"
_FITTING = set[tuple[Agent, Env]]()


def check_fit(agent: Agent, name: str, env: Env, params: Params) -> None:
    """Refuse an agent that cannot act on the observations of an environment, or learn from them.

    Args:
      agent: pure agent.
      name: of the agent, as the user wrote it.
      env: environment.
      params: of the environment.

    Raises:
      ValueError: the agent's functions raise, or return other shapes or types than the engine
        needs.
    """
    if (agent, env) in _FITTING:
        return
    try:
        jax.eval_shape(partial(_check_functions, agent, env, params), jax.random.key(0))
    except Exception as error:  # functions of an agent may raise anything
        reason = " ".join(str(error).split())[:200]
        line = _line(error, file_of(name))
        where = f"{name}, line {line}" if line else name
        raise ValueError(f"agent {where} cannot play {env.name}: {reason}") from error
    _FITTING.add((agent, env))


def _check_functions(agent: Agent, env: Env, params: Params, key: jax.Array) -> None:
    """Call each function of an agent once and check what it returns; for traced code."""
    import chex  # here, because most commands check no agent

    observation = env.observe(env.start(key, params))
    memory = agent.init(key)
    _check_memory("init", memory, memory)
    _check_memory("assign", agent.assign(memory, jnp.uint32(0)), memory)
    one, true = jnp.int32(1), jnp.bool_(True)
    _check_memory("enter", agent.enter(memory, Entry(one, one, one, true, true)), memory)
    chex.assert_shape(agent.fault(memory), (), custom_message="`fault` must return one number")
    first_memory = agent.begin(memory, key)
    _check_memory("begin", first_memory, memory)
    answer = agent.act(first_memory, observation, key)
    if not isinstance(answer, tuple) or len(answer) != len(_ANSWER):
        raise TypeError(f"`act` must return ({', '.join(_ANSWER)})")
    action, prediction, next_memory = answer
    chex.assert_shape(action, (), custom_message="`act` must return one action")
    inputs.action_codes(action, env.num_actions)
    numbers = (prediction.level, prediction.probability, prediction.threshold)
    chex.assert_shape(numbers, (), custom_message="a prediction holds one number each")
    _check_memory("act", next_memory, memory)
    if agent.learn is not learn_nothing:
        steps: tuple[Tree, ...] = ()
        if agent.trace is not None:
            final = jax.tree.map(jnp.asarray, agent.trace(memory, observation, jnp.int32(0)))
            size = 1, env.max_steps
            trace = jax.tree.map(lambda leaf: jnp.zeros((*size, *leaf.shape), leaf.dtype), final)
            steps = trace, jnp.zeros(size), jax.tree.map(lambda leaf: leaf[None], final)
        number, length = jnp.zeros(1), jnp.zeros(1, jnp.int32)
        episodes = Episodes(number, number, length, jnp.zeros(1, bool), None, *steps)
        _check_memory("learn", agent.learn(memory, episodes), memory)


def _check_memory(function: str, memory: Memory, first: Memory) -> None:
    """Check that the memory that a function returns is of the form of the first one."""
    for leaf in jax.tree.leaves(memory):
        if not hasattr(leaf, "dtype"):
            raise TypeError(
                f"the memory of `{function}` holds {leaf!r}; it must hold arrays, as jnp.int32(0)"
            )
    structures: list[Any] = [jax.tree.structure(tree) for tree in (first, memory)]
    if structures[0] != structures[1]:
        raise TypeError(f"the memory of `{function}` has another structure than of `init`")
    for leaf, other in zip(jax.tree.leaves(memory), jax.tree.leaves(first), strict=True):
        if (leaf.shape, leaf.dtype) != (other.shape, other.dtype):
            raise TypeError(
                f"the memory of `{function}` has {leaf.dtype} of shape {leaf.shape}; that of "
                f"`init` has {other.dtype} of shape {other.shape}"
            )
