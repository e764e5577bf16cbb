"""Advantage actor-critic: one step of the optimiser at each call of `learn`.

With a single step the ratio of new to old probability is 1, so that nothing is ever clipped, and
proximal policy optimisation is advantage actor-critic.

Source: V. Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016; S. Huang et
al., "A2C is a special case of PPO", 2022.
"""

from dataclasses import replace

from jaxsim.agents.base import Agent
from jaxsim.training import features, ppo
from jaxsim.training.features import Sight
from jaxsim.training.settings import Settings

SETTINGS = Settings(updates=1, samples=2048, learning_rate=5e-3)


def a2c(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """Advantage actor-critic; see `ppo.ppo`. Of `settings`, `updates` is taken as 1."""
    return ppo.learner("a2c", replace(settings or SETTINGS, updates=1), sight)
