"""`gym.spaces`: the spaces of Gymnasium."""

from gymnasium.spaces import *  # noqa: F403
