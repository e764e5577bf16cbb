"""Where an episode starts: drawn on the device (`start`), or by the original's stream (`wsu`)."""

from jaxsim.worlds.cartpole3d.start import begin, draw
from jaxsim.worlds.cartpole3d.wsu import from_wsu_seed, wsu_shares, wsu_start

__all__ = ["begin", "draw", "from_wsu_seed", "wsu_shares", "wsu_start"]
