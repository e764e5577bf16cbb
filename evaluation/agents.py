"""Agents by name: built-in ones, and those of Python files."""

import contextlib
import hashlib
import re
import runpy
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import errors
from evaluation.json_types import JsonObject
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import agents, image_settings, program_store
from jaxsim.agents import Agent, contract
from jaxsim.env import Env
from jaxsim.env_spec import GYMNAX
from jaxsim.pytrees import Params

if TYPE_CHECKING:
    from jaxsim.training import Settings

_OF_FILE = re.compile(r"(?P<path>.+?\.py)(:(?P<variable>[^:+]*))?(\+(?P<detector>.*))?", re.DOTALL)


def file_of(name: str) -> str | None:
    """Path in a name of the form "FILE.py", "FILE.py:variable" or one of them with "+detector"."""
    match = _OF_FILE.fullmatch(name)
    return match and match["path"]


def files_of(names: Iterable[str]) -> JsonObject:
    """What a run must find again of agents that are from files: "agent_files", path to SHA-256.

    It is empty for built-in agents. Modules that such a file imports are not covered. Of a file
    that was loaded, it is the content at that time.
    """
    files = [file for file in map(file_of, names) if file is not None]
    digests = {file: _DIGESTS.get(file) or _digest(Path(file)) for file in files}
    return {"agent_files": digests} if digests else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


_DIGESTS: dict[str, str] = {}
"""SHA-256 of files when they were last loaded, by path as given."""


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


def of_schedule(name: str, schedule: Schedule, settings: "Settings | None" = None) -> Agent:
    """Look up an agent for a schedule; learners are built for the observations of its tasks.

    If observations have a picture, learners get the picture only.

    Args:
      name: as for `get`.
      schedule: what is played.
      settings: hyper-parameters of a learner; None for its default ones.

    Raises:
      ValueError: as `get`, or an agent that cannot act on the observations of a task.
    """
    task, values = schedule.variants[0]
    pictured = any(path.startswith(image_settings.GROUP) for path, _ in values)
    of_file, fits_all = file_of(name), not (pictured or task.startswith(GYMNAX))
    if fits_all and not of_file:
        return get(name) if settings is None else _learner(name, settings)
    first = Tasks.of(schedule).variant(0)
    if settings is not None:
        agent = _learner(name, settings, first)
    else:
        agent = get(name) if of_file else agents.fitted(name, *first)
    check_worlds(agent, name, schedule)
    return agent


def check_worlds(agent: Agent, name: str, schedule: Schedule) -> None:
    """Refuse an agent that cannot act on the observations of a task; see `check_fit`."""
    tasks = Tasks.of(schedule)
    for index in np.unique(tasks.world, return_index=True)[1]:
        check_fit(agent, name, *tasks.variant(int(index)))


def _learner(name: str, settings: "Settings", flat: tuple[Env, Params] | None = None) -> Agent:
    """A learner with settings, of all numbers of an environment's observations if it is given."""
    from jaxsim import training  # here, because optax is slow to import

    return training.get(name, settings, training.features.flat(*flat) if flat else None)


def _one(path: Path, variable: str, variables: dict[str, object]) -> Agent:
    value = variables.get(variable)
    if not isinstance(value, Agent):
        kind = "no such variable" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"agent {path}:{variable} is {kind}; it must be a jaxsim.agents.Agent")
    return value


def _variables(path: Path) -> dict[str, object]:
    """Run a file; return its variables by name."""
    try:
        _DIGESTS[str(path)] = _digest(path)
        with contextlib.chdir("."):  # also for agents that go to another folder
            return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        line = error.lineno if isinstance(error, SyntaxError) else _line(error, str(path))
        where = f"{path}, line {line}" if line else str(path)
        raise ValueError(f"agent {where} raised {errors.one_line(error)}") from error


def _line(error: BaseException, path: str | None) -> int | None:
    """Last line of a file that an error has passed through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return lines[-1] if lines else None


_FITTING = set[tuple[Agent, Env]]()
_FITS = b"fits"
"""Entry of `program_store` for an agent that has passed the check."""


def check_fit(agent: Agent, name: str, env: Env, params: Params) -> None:
    """Refuse an agent that cannot act on the observations of an environment, or learn from them.

    The check traces all functions of the agent. Where traced programs are kept on the disk, what an
    earlier process has checked is not checked again.

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
    shapes = jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), params)
    key = program_store.key_of("check_fit", agent, env, shapes)
    if key is None or program_store.load(key) != _FITS:
        _trace_functions(agent, name, env, params)
        if key is not None:
            program_store.store(key, _FITS)
    _FITTING.add((agent, env))


def _trace_functions(agent: Agent, name: str, env: Env, params: Params) -> None:
    """Trace all functions of an agent; see `check_fit`."""
    keys = jax.random.split(jax.random.key(0), 2)
    try:
        jax.eval_shape(partial(contract.check_functions, agent, env, params), keys)
    except Exception as error:  # functions of an agent may raise anything
        reason = " ".join(errors.message_of(error).split())[:200]
        line = _line(error, file_of(name))
        where = f"{name}, line {line}" if line else name
        raise ValueError(f"agent {where} cannot play {env.name}: {reason}") from error
