"""Which bodies touch at each tick, from their places."""

import numpy as np

from jaxsim.render.scene import CART_BOTTOM, CART_RADIUS, CART_TOP, POLE_RADIUS

CONTACTS = ("block and cart", "block and pole", "cart and wall", "block and wall", "blocks")
"""Kinds of contact; kind i is bit i."""
NEAR = 0.02  # m, gap at which the physics separates bodies


def contacts(
    cart: np.ndarray,
    foot: np.ndarray,
    tip: np.ndarray,
    blocks: np.ndarray,
    alive: np.ndarray,
    *,
    radius: float,
    half_width: float,
    floor: float,
    ceiling: float,
) -> np.ndarray:
    """Return the contacts of each tick.

    Args:
      cart: (T, 3) m.
      foot: (T, 3) lower end of the pole, m.
      tip: (T, 3) upper end, m.
      blocks: (T, N, 3) centres, m.
      alive: (T, N) bool.
      radius: of the blocks, m.
      half_width: of the room, m; infinite for none.
      floor: height, m.
      ceiling: height, m.

    Returns:
      (T,) int32, bits of `CONTACTS`; cart and pole count as cylinders.
    """
    reach = radius + NEAR
    offset = blocks - cart[:, None]
    across = np.maximum(np.hypot(offset[..., 0], offset[..., 1]) - CART_RADIUS, 0)
    over = np.maximum(np.maximum(CART_BOTTOM - offset[..., 2], offset[..., 2] - CART_TOP), 0)
    along = tip - foot
    share = ((blocks - foot[:, None]) * along[:, None]).sum(-1) / np.square(along).sum(-1)[:, None]
    nearest = foot[:, None] + np.clip(share, 0, 1)[..., None] * along[:, None]
    sideways = half_width - np.abs(blocks[..., :2]).max(-1)
    upwards = np.minimum(blocks[..., 2] - floor, ceiling - blocks[..., 2])
    # A block that bounced in this tick is up to a tick's way from the wall, so its gap is compared
    # without `NEAR`: with an overlap, as in the physics.
    walls = np.minimum(sideways, upwards) <= radius
    between = np.linalg.norm(blocks[:, :, None] - blocks[:, None], axis=-1) <= 2 * radius
    pairs = alive[:, :, None] & alive[:, None] & np.triu(np.ones(between.shape[1:], bool), 1)
    kinds = (
        (alive & (np.hypot(across, over) <= reach)).any(-1),
        (alive & (np.linalg.norm(blocks - nearest, axis=-1) - POLE_RADIUS <= reach)).any(-1),
        np.abs(cart[:, :2]).max(-1) + CART_RADIUS >= half_width - NEAR,
        (alive & walls).any(-1),
        (between & pairs).any((-1, -2)),
    )
    bits = np.stack(kinds).astype(np.int32) << np.arange(len(kinds), dtype=np.int32)[:, None]
    return np.asarray(bits.sum(0, dtype=np.int32))
