"""The single-task expert: PPO that learns the first task it may learn, and no other."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.agents.base import Agent, Entry
from jaxsim.pytrees import Tree
from jaxsim.training import features, ppo
from jaxsim.training.features import Sight
from jaxsim.training.network import Network
from jaxsim.training.settings import Settings


def agent(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """PPO that learns only the first task and parameters it may learn; see `ppo.ppo`."""
    return ppo.learner("ste", settings or Settings(), sight, VARIANT)


def _init(parameters: Network) -> jax.Array:
    return jnp.int32(NO_TASK)


def _enter(memory: ppo.Memory, entry: Entry, fresh: Tree) -> ppo.Memory:
    has_none = memory.extra == NO_TASK
    identity = jnp.where(has_none & entry.learning, entry.identity, memory.extra)
    learning = entry.learning & (entry.identity == identity)
    return replace(memory, extra=identity, learning=learning)


NO_TASK = -1
"""In place of the hash of a task, which is not negative."""


VARIANT = ppo.plain._replace(init=_init, enter=_enter)
