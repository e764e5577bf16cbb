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
    return jnp.int32(-1)


def _enter(memory: ppo.Memory, entry: Entry, fresh: Tree) -> ppo.Memory:
    variant = jnp.where((memory.extra < 0) & entry.learning, entry.variant, memory.extra)
    learning = entry.learning & (entry.variant == variant)
    return replace(memory, extra=variant, learning=learning)


VARIANT = ppo.plain._replace(init=_init, enter=_enter)
