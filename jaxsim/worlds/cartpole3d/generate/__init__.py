"""Start states: drawn on the device (`start`), or by the original's stream (`wsu`)."""

from jaxsim.worlds.cartpole3d.generate.start import begin, draw, fitted
from jaxsim.worlds.cartpole3d.generate.wsu import (
    from_wsu_seed,
    wsu_distances,
    wsu_shares,
    wsu_spawns,
    wsu_start,
    wsu_starts,
)

__all__ = [
    "begin",
    "draw",
    "fitted",
    "from_wsu_seed",
    "wsu_distances",
    "wsu_shares",
    "wsu_spawns",
    "wsu_start",
    "wsu_starts",
]
