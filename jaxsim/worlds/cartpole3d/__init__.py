"""CartPole3D, the three-dimensional cart and pole with flying blocks."""

from jaxsim.worlds.cartpole3d.arrays import state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole3d.env import CartPole3D, make
from jaxsim.worlds.cartpole3d.generate import from_wsu_seed, wsu_start
from jaxsim.worlds.cartpole3d.levels import Level, levels
from jaxsim.worlds.cartpole3d.quirks import Quirk
from jaxsim.worlds.cartpole3d.sensors import observe, to_vector
from jaxsim.worlds.cartpole3d.settings import PARAMETERS, check_values, fill_values
from jaxsim.worlds.cartpole3d.types import ACTIONS, Config, Observation, Params, State
from jaxsim.worlds.cartpole3d.world_state import from_world_state

__all__ = [
    "ACTIONS",
    "PARAMETERS",
    "CartPole3D",
    "Config",
    "Level",
    "Observation",
    "Params",
    "Quirk",
    "State",
    "check_values",
    "fill_values",
    "from_world_state",
    "from_wsu_seed",
    "levels",
    "make",
    "observe",
    "state_from_arrays",
    "state_to_arrays",
    "to_vector",
    "wsu_start",
]
