"""The classic CartPole, step for step Gymnasium's CartPole-v1."""

from jaxsim.worlds.cartpole.env import CartPole, make
from jaxsim.worlds.cartpole.generate import initial
from jaxsim.worlds.cartpole.levels import PARAMETERS
from jaxsim.worlds.cartpole.sensors import observe, to_vector
from jaxsim.worlds.cartpole.types import ACTIONS, Config, Motion, Observation, Params, State

__all__ = [
    "ACTIONS",
    "PARAMETERS",
    "CartPole",
    "Config",
    "Motion",
    "Observation",
    "Params",
    "State",
    "initial",
    "make",
    "observe",
    "to_vector",
]
