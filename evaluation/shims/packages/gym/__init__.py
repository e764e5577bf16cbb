"""`gym` before version 0.26, as far as graders and agents use it: environments of Gymnasium."""

from gymnasium import error, spaces

from evaluation.shims.old_gym import GymEnv as Env
from evaluation.shims.old_gym import GymWrapper as Wrapper
from evaluation.shims.old_gym import make

__all__ = ["Env", "Wrapper", "error", "make", "spaces"]
