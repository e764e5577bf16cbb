"""CartPole3D, the three-dimensional cart and pole with flying blocks.

| module | subject |
| --- | --- |
| `env` | the environment: reset, step, reward, end of an episode |
| `types` | configuration, parameters, state, observation |
| `levels` | the novelty catalogue |
| `parameter_table` | parameters that a user may set by name |
| `tick` | one physics tick: terms, free motion, contacts |
| `dynamics` | free motion of cart, pole and blocks |
| `geometry` | vectors, rotations, the cart's prism |
| `lines` | blocks that slide on horizontal lines |
| `contact` | walls and contacts, from one to hundreds |
| `terms` | optional forces, pushes and sensor errors |
| `blocks` | block slots, placement, spawning |
| `sensors` | state to observation |
| `generate` | starts of episodes: drawn on the device, or by the original's random stream |
| `original` | the original's wire format, hints and quirks |
| `arrays` | states to and from named NumPy arrays |
| `grouping` | lanes of a batch computed in groups |
"""

from jaxsim.worlds.cartpole3d.arrays import state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole3d.env import CartPole3D, make
from jaxsim.worlds.cartpole3d.generate import from_wsu_seed, wsu_start
from jaxsim.worlds.cartpole3d.levels import Level, levels
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.original.quirks import Quirk
from jaxsim.worlds.cartpole3d.original.world_state import from_world_state
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS, check_values, fill_values
from jaxsim.worlds.cartpole3d.sensors import observe, to_vector
from jaxsim.worlds.cartpole3d.types import ACTIONS, Config, Observation, Params, State

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
    "messages",
    "observe",
    "state_from_arrays",
    "state_to_arrays",
    "to_vector",
    "wsu_start",
]
