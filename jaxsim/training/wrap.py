"""Policies that were trained elsewhere, as agents."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxsim.agents.base import Agent, Memory, NoveltyPrediction
from jaxsim.pytrees import Observation, Tree

Policy = Callable[[Tree, Observation, jax.Array], jax.Array]


def policy(name: str, choose: Policy, parameters: Tree) -> Agent:
    """Wrap a policy as an agent that does not learn any more.

    Args:
      name: of the agent.
      choose: (parameters, observation, key) -> action () int; the observation is that of the
        environment, see `jaxsim.training.features` and `jaxsim.spaces.flatten` for vectors.
      parameters: pytree of arrays; it becomes the agent's memory.
    """

    def act(
        memory: Memory, observation: Observation, key: jax.Array
    ) -> tuple[jax.Array, NoveltyPrediction, Memory]:
        action = choose(memory, observation, key)
        return jnp.asarray(action, jnp.int32), NoveltyPrediction.none(), memory

    def init(key: jax.Array) -> Memory:
        return jax.tree.map(jnp.asarray, parameters)

    return Agent(name, act, init)
