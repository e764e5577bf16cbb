"""CartPole2D, the two-dimensional levels 50 to 53."""

from jaxsim.worlds.cartpole2d.arrays import state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole2d.env import CartPole2D, action_code, make
from jaxsim.worlds.cartpole2d.generate import initial
from jaxsim.worlds.cartpole2d.levels import PARAMETERS, levels
from jaxsim.worlds.cartpole2d.sensors import observe, to_vector
from jaxsim.worlds.cartpole2d.types import ACTIONS, ORIGINAL_ACTIONS, Config, Params, State
from jaxsim.worlds.cartpole2d.wsu import from_seed, start_from_seed

__all__ = [
    "ACTIONS",
    "ORIGINAL_ACTIONS",
    "PARAMETERS",
    "CartPole2D",
    "Config",
    "Params",
    "State",
    "action_code",
    "from_seed",
    "initial",
    "levels",
    "make",
    "observe",
    "start_from_seed",
    "state_from_arrays",
    "state_to_arrays",
    "to_vector",
]
