"""`gym.utils.seeding`: the generators of Gymnasium."""

from gymnasium.utils.seeding import np_random

__all__ = ["np_random"]
