"""Agents by name: built-in ones, and those that a Python file holds."""

import runpy
import traceback
from pathlib import Path
from typing import Any

import jax

from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import agents, image_settings, registry
from jaxsim.agents import Agent

SUFFIX = ".py"


def is_file(name: str) -> bool:
    """Whether a name is that of a Python file, "FILE.py" or "FILE.py:name"."""
    return name.endswith(SUFFIX) or f"{SUFFIX}:" in name


def get(name: str) -> Agent:
    """Look up an agent.

    Args:
      name: of a built-in agent, as "pd" or "pd+residual"; "FILE.py" for the agent of a file that
        holds one `jaxsim.agents.Agent`; or "FILE.py:variable" for one of several.

    Raises:
      ValueError: no such agent or file, a file that holds none or several, or one that fails.
    """
    if not is_file(name):
        return agents.get(name)
    before, _, variable = name.rpartition(f"{SUFFIX}:")
    path = Path(f"{before}{SUFFIX}" if before else name)
    if not path.is_file():
        raise ValueError(f"agent {name}: there is no file {path}")
    held = _names(path)
    if before:
        return _one(path, variable, held)
    found: dict[int, str] = {}
    for key, value in held.items():
        if isinstance(value, Agent) and not key.startswith("_"):
            found.setdefault(id(value), key)
    if len(found) == 1:
        return _one(path, next(iter(found.values())), held)
    if not found:
        raise ValueError(
            f"agent {path} holds no agent; assign one, as `agent = jaxsim.agents.Agent(...)`"
        )
    named = ", ".join(f"{path}:{key}" for key in found.values())
    raise ValueError(f"agent {path} holds {len(found)} agents; name one of {named}")


def of_schedule(name: str, schedule: Schedule) -> Agent:
    """Look up an agent for what a schedule plays; learners see what its tasks show.

    Where observations have a picture, learners see nothing else.

    Raises:
      ValueError: as `get`, or an agent that cannot act on what environments of gymnax show.
    """
    task, values = schedule.variants[0]
    pictured = any(path.startswith(image_settings.GROUP) for path, _ in values)
    if is_file(name) or not (pictured or task.startswith(registry.GYMNAX)):
        return get(name)
    env, params = Tasks.of(schedule).variant(0)
    agent = agents.fitted(name, env, params)
    check_fit(agent, env, name, params)
    return agent


def _one(path: Path, variable: str, held: dict[str, Any]) -> Agent:
    value = held.get(variable)
    if not isinstance(value, Agent):
        kind = "no such variable" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"agent {path}:{variable} is {kind}; it must be a jaxsim.agents.Agent")
    return value


def _names(path: Path) -> dict[str, Any]:
    """Run a file; the names that it defines."""
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        places = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else places and places[-1].lineno
        where = f"{path}, line {line}" if line else str(path)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"agent {where} raised {reason}") from error


_FITTING = set[tuple[Any, Any]]()


def check_fit(agent: Agent, env: Any, name: str, params: Any) -> None:
    """Refuse an agent that cannot act on the observations of an environment.

    Args:
      agent: pure agent.
      env: environment.
      name: of the agent, as the user wrote it.
      params: of the environment.

    Raises:
      ValueError: the agent's functions raise, or what they return has another shape or type than
        the engine carries on.
    """
    if (agent, env) in _FITTING:
        return
    import chex  # here, because most commands check no agent

    def act(key: jax.Array) -> Any:
        observation = env.observe(env.start(key, params))
        memory = agent.init(key)
        begun = agent.begin(memory, key)
        action, prediction, after = agent.act(begun, observation, key)
        chex.assert_shape(action, (), custom_message="`act` must return one action")
        numbers = (prediction.level, prediction.probability, prediction.threshold)
        chex.assert_shape(numbers, (), custom_message="a prediction holds one number each")
        for kept in (begun, after):
            chex.assert_trees_all_equal_shapes_and_dtypes(memory, kept)
        return action

    try:
        jax.eval_shape(act, jax.random.key(0))
    except Exception as error:  # whatever the functions of an agent raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"agent {name} cannot play {env.name}: {reason}") from error
    _FITTING.add((agent, env))
