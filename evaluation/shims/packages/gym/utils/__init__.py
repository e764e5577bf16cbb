"""`gym.utils`."""

from gymnasium.utils import seeding

__all__ = ["seeding"]
