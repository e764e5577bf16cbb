"""Agents with the memories of a saved run."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import agents
from evaluation.checkpoints import store
from evaluation.checkpoints.configuration import digest
from evaluation.schedule import Schedule
from jaxsim.agents import Agent
from jaxsim.agents.base import Memory
from jaxsim.rng import words_of

PREFIX = "checkpoint:"
"""Prefix of the names of agents that are loaded from a directory."""


@dataclass(frozen=True)
class SavedAgent:
    """An agent with the memories that lifetimes start from.

    Attributes:
      agent: pure agent, with the name that the user gave.
      built_in: name of the built-in agent, or of the file and variable that hold it.
      memory: leaves (L, ...) of NumPy as in a `scanner.Snapshot`; None for the agent's own initial
        memory.
      origin: hash of the checkpoint that the memory is from; "" for none.
    """

    agent: Agent
    built_in: str
    memory: Memory = None
    origin: str = ""


def load_memory(directory: Path | str, schedule: Schedule | None = None) -> tuple[Agent, Memory]:
    """Load an agent with the memories of all lifetimes of a run.

    Args:
      directory: of the results of `jaxsim train`, or of one checkpoint below it.
      schedule: of that run; only learners of environments of gymnax need it.

    Returns:
      (agent, memory): the agent of that run, and the memory of each of its L lifetimes at the
      newest checkpoint: leaves (L, ...) of NumPy, of typed keys their data. `scanner.play` takes it
      as `memory`.

    Raises:
      CheckpointError: there is no finished checkpoint, it is damaged, or of another agent.
      ValueError: its agent is not known here.
    """
    saved = _loaded(Path(directory), schedule)
    return saved.agent, saved.memory


def _loaded(directory: Path, schedule: Schedule | None = None) -> SavedAgent:
    """The agent of a checkpoint by its own name, with the memories of all lifetimes."""
    step = newest(directory)
    manifest = store.read_manifest(step)
    name = manifest["configuration"].get("agent")
    if not isinstance(name, str):
        raise store.CheckpointError(f"checkpoint {step} does not say which agent it is of")
    agent = agents.of_schedule(name, schedule) if schedule else agents.get(name)
    like = jax.eval_shape(partial(_memories, agent), jax.random.split(jax.random.key(0), 1))
    return SavedAgent(agent, name, store.load_memories(step, manifest, like), digest(manifest))


def newest(directory: Path) -> Path:
    """The newest checkpoint of a run, or the directory itself if it is a checkpoint.

    Raises:
      CheckpointError: there is no finished checkpoint.
    """
    if not directory.is_dir():
        raise store.CheckpointError(f"{directory} is not a directory with checkpoints")
    if (directory / store.MANIFEST).exists():
        return directory
    inside = directory / store.FOLDER
    steps = store.steps(inside)
    if not steps:
        raise store.CheckpointError(
            f"{inside} has no finished checkpoint; jaxsim train keeps the last one, and jaxsim "
            "run with --keep-memory"
        )
    return steps[-1]


def _memories(agent: Agent, keys: jax.Array) -> Memory:
    """Memories as in a snapshot, one for each key."""
    return jax.tree.map(words_of, jax.vmap(agent.init)(keys))


def player(
    name: str, lifetimes: int, first_lifetime: int = 0, schedule: Schedule | None = None
) -> SavedAgent:
    """Look up an agent by name.

    Args:
      name: of a built-in agent, "FILE.py", or "checkpoint:DIR" for what `load_memory(DIR)` gives.
        Of N saved memories, lifetime k starts with number k modulo N.
      lifetimes: number of lifetimes.
      first_lifetime: number of the first.
      schedule: what is played; None where it is not known yet.

    Raises:
      ValueError: no agent has that name, or as `load_memory`.
    """
    if not name.startswith(PREFIX):
        agent = agents.of_schedule(name, schedule) if schedule else agents.get(name)
        if agents.file_of(name):  # records name the file, to distinguish it from built-in agents
            agent = replace(agent, name=name)
        return SavedAgent(agent, name)
    directory = name.removeprefix(PREFIX)
    if not directory:
        raise ValueError(f"agent {name!r} names no directory; write {PREFIX}DIR")
    saved = _loaded(Path(directory), schedule)
    memory = _of_lifetimes(saved, np.arange(first_lifetime, first_lifetime + lifetimes))
    return replace(saved, agent=replace(saved.agent, name=name), memory=memory)


def _of_lifetimes(saved: SavedAgent, numbers: np.ndarray) -> Memory:
    """Memory of each lifetime; those that start with the same one differ in their randomness."""
    kinds = jax.eval_shape(saved.agent.init, jax.random.key(0))

    def chosen(leaf: np.ndarray, kind: jax.ShapeDtypeStruct) -> np.ndarray:
        rows, repeat = leaf[numbers % len(leaf)], numbers // len(leaf)
        if not jnp.issubdtype(kind.dtype, jax.dtypes.prng_key):
            return rows
        shape = (-1, *[1] * len(kind.shape))
        keys = jax.random.wrap_key_data(rows)
        repeats = np.broadcast_to(repeat.reshape(shape), keys.shape)
        fresh = np.asarray(jax.random.key_data(_folded(keys, repeats)))
        return np.where(repeats[..., None] > 0, fresh, rows)

    return jax.tree.map(chosen, saved.memory, kinds)


def _folded(keys: jax.Array, numbers: np.ndarray) -> jax.Array:
    """Keys of any shape, each with its number folded in."""
    folded = jax.vmap(jax.random.fold_in)(keys.reshape(-1), numbers.reshape(-1))
    return folded.reshape(keys.shape)
