"""The agent contract: pure functions of one memory.

An agent is written for a single lifetime; engines batch it with `jax.vmap`. Its memory is any
pytree of arrays and lasts for a lifetime.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.pytrees import Leaf, Observation, Tree

Memory = Any

UNNAMED = -1
"""Value of `named` for agents that do not name novelties."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoveltyPrediction:
    """Novelty prediction of an agent after an observation."""

    level: jax.Array  # () int32, digit of a level as in hints: 3 for 103 and 203; 0 for none
    probability: jax.Array  # () that the world has changed, in [0, 1]
    threshold: jax.Array  # () probability from which it counts as a detection

    @classmethod
    def none(cls) -> "NoveltyPrediction":
        """Return the prediction that nothing is novel."""
        return cls(jnp.int32(0), jnp.float32(0.0), jnp.float32(1.0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Episodes:
    """Input of `learn`: results of the W episodes that were just played in parallel."""

    reward: jax.Array  # (W,) sum of rewards
    performance: jax.Array  # (W,) in [0, 1]
    length: jax.Array  # (W,) int32, steps
    terminated: jax.Array  # (W,) bool; False where a limit ended the episode
    played: Leaf = None  # (W,) bool mask, as the last batch of a block may be smaller; None for all
    trace: Tree = None  # leaves (W, T, ...), `Agent.trace` of each step
    rewards: Leaf = None  # (W, T) of each step, with a trace only
    final: Tree = None  # leaves (W, ...), `Agent.trace` of the last observation


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Entry:
    """Input of `enter`: the block of the schedule that begins."""

    block: Leaf  # () int32, from 0
    phase: Leaf  # () int32, number of its phase, from 1
    variant: Leaf  # () int32, number of the task and its parameters, from 0
    identity: Leaf  # () int32, hash of the task and its parameters, equal in all schedules
    learning: Leaf  # () bool, whether `learn` is called in the block
    new_phase: Leaf  # () bool, whether a training or testing phase begins with the block


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoveltyHint:
    """Hint of a protocol about the novelty of the next episode.

    Words are indices into `hints.ENTITIES`, `hints.ATTRIBUTES` and `hints.CHANGES`.
    """

    novel: jax.Array  # () int32, 1 for novel, 0 for not novel, -1 for no hint
    level: jax.Array  # () int32, digit of the level in hints, -1 for no hint
    entity: jax.Array  # () int32, -1 for no hint
    attribute: jax.Array  # () int32, -1 for no hint
    change: jax.Array  # () int32, -1 for no hint


def _keep_memory(memory: Memory, key: jax.Array) -> Memory:
    return memory


def hear_nothing(memory: Memory, hint: NoveltyHint) -> Memory:
    """Ignore hints."""
    return memory


def name_nothing(memory: Memory) -> jax.Array:
    """Name no novelty, `UNNAMED`."""
    return jnp.int32(UNNAMED)


def learn_nothing(memory: Memory, episodes: Episodes) -> Memory:
    """Keep the memory as it is."""
    return memory


def enter_unmoved(memory: Memory, entry: Entry) -> Memory:
    """Keep the memory as it is."""
    return memory


def _take_no_number(memory: Memory, number: jax.Array) -> Memory:
    return memory


def check_pushes(observation: Observation) -> None:
    """Reject an observation of a task whose actions are not pushes.

    Raises:
      ValueError: the observation is of CartPole3DLeans.
    """
    if hasattr(observation, "outlook"):
        raise ValueError(
            "this agent chooses pushes, and the actions of CartPole3DLeans are leans; play it on "
            "CartPole3D, or ppo+leans here"
        )


def never_fails(memory: Memory) -> jax.Array:
    """Report no fault."""
    return jnp.int32(0)


def _no_memory(key: jax.Array) -> Memory:
    return ()


Act = Callable[[Memory, Observation, jax.Array], tuple[jax.Array, NoveltyPrediction, Memory]]
Trace = Callable[[Memory, Observation, jax.Array], Tree]


@dataclass(frozen=True)
class Agent:
    """A pure agent.

    Attributes:
      name: short name, for tables.
      act: (memory, observation, key) -> (action () int, novelty prediction, memory). In a batch
        an action out of range is not refused; it does what `Env.step` says.
      init: (key) -> memory of a new lifetime.
      begin: (memory, key) -> memory, at an episode's first observation.
      learn: (memory, episodes) -> memory, called only while the schedule says learning.
      tell: (memory, hint) -> memory, before `begin`, in protocols that give hints.
      named: (memory) -> () int32, the level of the novelty catalogue that the agent identifies,
        0 for none; `UNNAMED` if it only predicts.
      acting: an agent with the same actions but without the novelty predictions; None for none.
      exact: an agent that does the same at less cost where sensors are exact
        (`CartPole3D.exact_sensors`), with a memory of the same form; None for none.
      trace: (memory, observation, action) -> pytree to keep of a step for `learn`; None to keep
        nothing. The memory is that before `act`. `learn` then gets the steps of the episodes
        beside their totals: the first `length` of T, the rest is padding. It is called once more
        with the last observation of an episode and action 0.
      enter: (memory, entry) -> memory, before the first episode of each block.
      assign: (memory, number () uint32) -> memory, once after `init`, with the lifetime's number.
      fault: (memory) -> () int32, 0 without a fault, else 1 + the index of its text in `faults`.
        Episodes that begin with a fault are recorded as not complete.
      faults: texts, for people.
      costly: whether a decision costs more than the rest of a step. Lanes whose step needs extra
        passes then get them after every step, so that no decision is computed for them meanwhile.

    A leaf of the memory that `begin` and `act` return unchanged is not copied for episodes that
    are played in parallel, however large it is.
    """

    name: str
    act: Act
    init: Callable[[jax.Array], Memory] = _no_memory
    begin: Callable[[Memory, jax.Array], Memory] = _keep_memory
    learn: Callable[[Memory, Episodes], Memory] = learn_nothing
    tell: Callable[[Memory, NoveltyHint], Memory] = hear_nothing
    named: Callable[[Memory], jax.Array] = name_nothing
    acting: "Agent | None" = None
    exact: "Agent | None" = None
    trace: Trace | None = None
    enter: Callable[[Memory, Entry], Memory] = enter_unmoved
    assign: Callable[[Memory, jax.Array], Memory] = _take_no_number
    fault: Callable[[Memory], jax.Array] = never_fails
    faults: tuple[str, ...] = ()
    costly: bool = False
