"""The agent contract: pure functions around one memory.

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
    trace: Tree = None  # leaves (W, T, ...), what `Agent.trace` keeps of each step; see there
    rewards: Any = None  # (W, T) of each step, if there is a trace
    final: Any = None  # leaves (W, ...), what `Agent.trace` says to the last observation


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Entry:
    """What `enter` is given: the block of the schedule that begins."""

    block: Any  # () int32, from 0
    phase: Any  # () int32, number of its phase, from 1
    variant: Leaf  # () int32, number of what is played, task and parameters, from 0
    learning: Any  # () bool, whether `learn` will be called in it
    new_phase: Any  # () bool, whether a training or testing phase begins with it


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Told:
    """What a protocol tells an agent of the novelty of the episode that comes next.

    Words are codes: places in `hints.ENTITIES`, `hints.ATTRIBUTES` and `hints.CHANGES`.
    """

    novel: jax.Array  # () int32, 1 for novel, 0 for not, -1 for not told
    level: jax.Array  # () int32, digit of the level as hints give it, -1 for not told
    entity: jax.Array  # () int32, -1 for not told
    attribute: jax.Array  # () int32, -1 for not told
    change: jax.Array  # () int32, -1 for not told


def _keep_memory(memory: Memory, key: jax.Array) -> Memory:
    return memory


def hear_nothing(memory: Memory, told: Told) -> Memory:
    """Ignore what a protocol tells."""
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
    """Refuse an observation of a task whose actions are no pushes.

    Raises:
      ValueError: it is of CartPole3DLeans.
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


Act = Callable[[Memory, Any, jax.Array], tuple[jax.Array, NoveltyPrediction, Memory]]
Trace = Callable[[Memory, Any, jax.Array], Any]


@dataclass(frozen=True)
class Agent:
    """A pure agent.

    Attributes:
      name: short name, for tables.
      act: (memory, observation, key) -> (action () int, novelty prediction, memory).
      init: (key) -> memory of a new lifetime.
      begin: (memory, key) -> memory, at an episode's first observation.
      learn: (memory, episodes) -> memory, called only while the schedule says learning.
      tell: (memory, told) -> memory, before `begin`, by protocols that tell of novelty.
      named: (memory) -> () int32, the level of the novelty catalogue that the agent takes the
        world for, 0 for none; `UNNAMED` for no more than what its predictions say.
      acting: an agent that acts in the same way and only says less of novelty; None for none.
      trace: (memory, observation, action) -> pytree, what to keep of a step for `learn`; None to
        keep nothing. The memory is that before `act`. `learn` then gets the steps of the episodes
        beside their totals: those of an episode are the first `length` of T, what is behind them
        means nothing. Of the observation that an episode ended with it is asked once more, with
        action 0.
      enter: (memory, entry) -> memory, before the first episode of each block.
      assign: (memory, number () uint32) -> memory, once behind `init`, with the lifetime's number.
      fault: (memory) -> () int32, 0 while all is well, else 1 + the place of the reason in
        `faults`. Episodes that begin with a fault are recorded as not complete.
      faults: reasons, for people.
      costly: whether a decision costs more than the rest of a step. Lanes whose step needs more
        effort are then served after every step, so that they do not decide again meanwhile.

    A leaf of the memory that `begin` and `act` hand on untouched is not copied for episodes that
    are played side by side, however large it is.
    """

    name: str
    act: Act
    init: Callable[[jax.Array], Memory] = _no_memory
    begin: Callable[[Memory, jax.Array], Memory] = _keep_memory
    learn: Callable[[Memory, Episodes], Memory] = learn_nothing
    tell: Callable[[Memory, Told], Memory] = hear_nothing
    named: Callable[[Memory], jax.Array] = name_nothing
    acting: "Agent | None" = None
    trace: Trace | None = None
    enter: Callable[[Memory, Entry], Memory] = enter_unmoved
    assign: Callable[[Memory, jax.Array], Memory] = _take_no_number
    fault: Callable[[Memory], jax.Array] = never_fails
    faults: tuple[str, ...] = ()
    costly: bool = False
