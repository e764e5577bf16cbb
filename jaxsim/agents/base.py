"""The agent contract: four pure functions around one memory.

An agent is written for a single lifetime; engines batch it with `jax.vmap`. Its memory is any
pytree of arrays and lasts for a lifetime.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Memory = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoveltyPrediction:
    """What an agent says about novelty after an observation."""

    level: jax.Array  # () int32, 0 (none) to 10
    probability: jax.Array  # () that the world has changed, in [0, 1]
    threshold: jax.Array  # () probability from which the agent calls it a detection

    @classmethod
    def none(cls) -> "NoveltyPrediction":
        """Never report novelty."""
        return cls(jnp.int32(0), jnp.float32(0.0), jnp.float32(1.0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Episodes:
    """What `learn` is given: the results of the W episodes just played side by side."""

    reward: jax.Array  # (W,) sum of rewards
    performance: jax.Array  # (W,) in [0, 1]
    length: jax.Array  # (W,) int32, steps
    terminated: jax.Array  # (W,) bool; False where a limit ended the episode
    played: Any = None  # (W,) bool, which are there: a block may end in fewer; None for all


def _keep_memory(memory: Memory, key: jax.Array) -> Memory:
    return memory


def _learn_nothing(memory: Memory, episodes: Episodes) -> Memory:
    return memory


def _no_memory(key: jax.Array) -> Memory:
    return ()


Act = Callable[[Memory, Any, jax.Array], tuple[jax.Array, NoveltyPrediction, Memory]]


@dataclass(frozen=True)
class Agent:
    """A pure agent.

    Attributes:
      name: short name, for tables.
      act: (memory, observation, key) -> (action () int, novelty prediction, memory).
      init: (key) -> memory of a new lifetime.
      begin: (memory, key) -> memory, at an episode's first observation.
      learn: (memory, episodes) -> memory, called only while the schedule says learning.
    """

    name: str
    act: Act
    init: Callable[[jax.Array], Memory] = _no_memory
    begin: Callable[[Memory, jax.Array], Memory] = _keep_memory
    learn: Callable[[Memory, Episodes], Memory] = _learn_nothing
