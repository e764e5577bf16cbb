"""Pure agents as agents of the grader."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.grader.agent import Agent
from jaxsim import agents, counters, rng, spaces
from jaxsim.agents.base import Memory


class PureAgent(Agent):
    """A pure agent of `jaxsim.agents`, for one environment or for a batch of them.

    In a batch, lane i has the memory and the randomness that the agent has in episode i of one
    environment, unless it remembers earlier episodes: each lane begins with a fresh memory.

    Args:
      agent: the pure agent. It gets no rewards, so it does not learn.
      env: environment of `jaxsim.adapters.gymnasium` that it plays, single or a batch: the agent
        gets its observations as they are in `jaxsim`. None to pass it vectors.
      seed: root of its randomness, from 0 to 2^32 - 1.

    Raises:
      ValueError: a seed out of bounds, or another kind of environment.
    """

    def __init__(self, agent: agents.Agent, env: Any = None, *, seed: int = 0) -> None:
        self._root = counters.root(seed)
        unwrapped: Any = getattr(env, "unwrapped", None)
        if env is not None and not hasattr(unwrapped, "core"):
            raise ValueError(
                f"env is a {type(unwrapped or env).__name__}; it must be one of "
                "jaxsim.adapters.gymnasium, or None"
            )
        world = None if env is None else (unwrapped.core, unwrapped.params)
        self._act = jax.jit(partial(_act, agent, world))
        self._begin = jax.jit(partial(_begin, agent))
        self._memory = jax.jit(agent.init)(rng.to_key(rng.fold(self._root, counters.AGENT)))
        self._fresh = self._memory
        self._episode = -1
        self._in_episode = False
        self._episodes = self._root
        self._tick = 0

    def reset(self) -> None:
        """Begin an episode, or a batch of them."""
        self._episode += 1
        self._in_episode = False

    def step(self, state: Any) -> Any:
        """Choose an action for a vector (D,), or (L,) of them for a batch (L, D)."""
        vector = np.asarray(state, np.float32)
        if not self._in_episode:
            self._start(vector.shape[:-1])
        self._tick += 1
        key = rng.fold(self._episodes, counters.ACT, jnp.uint32(self._tick))
        action, self._memory = self._act(self._memory, vector, rng.to_key(key))
        return np.asarray(action) if vector.ndim > 1 else int(action)

    def _start(self, lanes: tuple[int, ...]) -> None:
        """Begin at the first observation, whose shape gives the number of lanes."""
        self._in_episode, self._tick = True, 0
        number = jnp.uint32(self._episode)
        if lanes:
            number = jnp.arange(lanes[0], dtype=jnp.uint32)
            self._memory = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (*lanes, *jnp.shape(leaf))), self._fresh
            )
        self._episodes = rng.fold(self._root, counters.EPISODE, number)
        key = rng.to_key(rng.fold(self._episodes, counters.BEGIN))
        self._memory = self._begin(self._memory, key)


def _begin(agent: agents.Agent, memory: Memory, key: jax.Array) -> Memory:
    begin = jax.vmap(agent.begin) if key.ndim else agent.begin
    return begin(memory, key)


def _act(
    agent: agents.Agent, world: Any, memory: Memory, vector: jax.Array, key: jax.Array
) -> tuple[jax.Array, Memory]:
    """Action and memory; `world` is environment and parameters, None to pass the vector itself."""
    env, params = world or (None, None)
    observation = vector if env is None else spaces.unflatten(env, params, vector)
    act = jax.vmap(agent.act) if key.ndim else agent.act
    action, _, memory = act(memory, observation, key)
    return action, memory
