"""Unexpected behaviour of the original by level, reproduced unless a repair is switched on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quirk:
    """Behaviour of a level that looks like a mistake.

    Attributes:
      text: one line.
      mended_by: parameter path, function or option that repairs it; "" if there is none.
    """

    text: str
    mended_by: str = ""


SAME = Quirk("easy, medium and hard are the same")
THROUGH = Quirk("fast blocks pass through the walls and do not come back", "repairs/closed_room")

ON_THE_RAIL = (
    Quirk("nothing seeds it: the original cannot repeat an episode", "cartpole2d.from_seed"),
    Quirk("no limit of steps, so that the reward passes 1 after 200; here max_steps", "max_steps"),
    Quirk(
        "the sine of half the lean is compared with 12 degrees in radians: the pole may lean 24.2",
        "lean_limit",
    ),
    Quirk("three blocks are reported that do not exist"),
)
"""Quirks of levels 50 to 53."""

EVERYWHERE = (
    Quirk("cart position, pole orientation and the end of the episode are one tick late"),
    Quirk("reset runs one tick, in which the drawn velocity acts as a force", "start/push"),
    Quirk("the corners of the room in feature vectors, +-5 m, are not its faces at +-4.95 m"),
    Quirk("a block leaves a wall faster the deeper it was in it", "repairs/closed_room"),
    Quirk("blocks may start inside one another"),
    Quirk(
        "the option start_world_state ends with an error",
        "cartpole3d.from_world_state",
    ),
)
"""Quirks of every level from 101 on."""

QUIRKS: dict[int, tuple[Quirk, ...]] = {
    50: ON_THE_RAIL,
    51: ON_THE_RAIL,
    52: (*ON_THE_RAIL, Quirk("easy, medium and hard are three different novelties")),
    53: (*ON_THE_RAIL, Quirk("the end test uses the coarse readings too")),
    101: (SAME,),
    102: (SAME,),
    103: (SAME,),
    104: (SAME,),
    105: (SAME,),
    106: (
        SAME,
        Quirk("accelerations of 20, 30 and 40 m/s^2 are set and never used: it is 9.8", "gravity"),
    ),
    108: (
        Quirk("new places come from a generator without a seed", "the keys given to step"),
        Quirk("new blocks lie around the middle of the room, not around the cart"),
    ),
    111: (SAME,),
    112: (SAME, Quirk("every seed gives the same episode")),
    201: (
        Quirk(
            "the longer pole weighs the same and its centre of mass stays 1 m above the pivot",
            "pole/com",
        ),
    ),
    202: (
        Quirk("lines are turned by another angle than the drawn one and may pass near the cart"),
        Quirk("the velocity of blocks reads 0, their position is one tick old"),
        Quirk("a quarter of the blocks starts inside or behind a side wall"),
    ),
    204: (
        Quirk("the coefficients of wall and block multiply: up to 2.1 in hard"),
        THROUGH,
    ),
    205: (
        Quirk(
            "blocks are pushed away from their centroid; the hint says towards",
            "repairs/pull_to_centroid",
        ),
        Quirk("the hint names the pole, which does not change"),
    ),
    206: (
        Quirk("the wind misses the pole, which the hint names", "repairs/wind_on_pole"),
        THROUGH,
        Quirk("blocks are blown to the left and backward wherever the wind comes from"),
        Quirk("the cart feels almost only the part of the wind along x"),
        Quirk(
            "the hint lists the pole three times, for block, cart and pole",
            "hints.hint(..., distinct_entities=True)",
        ),
    ),
    207: (Quirk("blocks are pulled to where the cart was a tick ago"),),
}
"""Quirks by level; a level that is not listed has only those of `EVERYWHERE`."""
