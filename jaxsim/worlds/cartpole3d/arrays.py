"""States to and from named NumPy arrays, for tests, recordings and people."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from jaxsim.worlds.cartpole3d.blocks import slots
from jaxsim.worlds.cartpole3d.types import (
    RESTING,
    Config,
    Pose,
    Rail,
    Scalar,
    Sphere,
    State,
    Supply,
    Vector,
    Velocity,
)

Number = Callable[[np.ndarray], jax.Array]

SHAPES = {
    "cart_pos": (2,),
    "cart_yaw": (),
    "cart_vel": (2,),
    "cart_yaw_rate": (),
    "pole_jq": (4,),
    "pole_jw": (3,),
    "tick": (),
    "reported_cart_pos": (2,),
    "reported_cart_yaw": (),
    "reported_pole_jq": (4,),
}
"""Names and shapes; with `block_pos` (N, 3), `block_vel` (N, 3) and `block_alive` (N,)."""


def _pose(position: np.ndarray, yaw: np.ndarray, q: np.ndarray, number: Number) -> Pose:
    half = 0.5 * yaw
    return Pose(
        number(position[..., 0]),
        number(position[..., 1]),
        number(np.cos(half)),
        number(np.sin(half)),
        *(number(q[..., i]) for i in range(4)),
    )


def state_from_arrays(mapping: Mapping[str, npt.ArrayLike], config: Config | None = None) -> State:
    """Build a state from named arrays; leading batch axes are kept.

    Args:
      mapping: `cart_pos` (..., 2) m and `cart_vel` (..., 2) m/s in the world frame, `cart_yaw`
        (...) rad, `cart_yaw_rate` (...) rad/s, `pole_jq` (..., 4) xyzw pole to cart, `pole_jw`
        (..., 3) rad/s in the pole frame, `block_pos` and `block_vel` (..., n, 3) with n up to
        `config.max_blocks`, optional `block_alive` (..., n), `tick` (...) agent steps taken; and
        the poses of the last report, `reported_cart_pos`, `reported_cart_yaw`,
        `reported_pole_jq`, which default to the present ones.
      config: capacity, precision and terms; no block is on a line.

    Raises:
      ValueError: a missing name, a wrong shape or too many blocks.
    """
    config = config or Config()
    values = {name: np.asarray(value) for name, value in mapping.items()}
    for name in ("cart_pos", "cart_yaw", "pole_jq"):
        values.setdefault(f"reported_{name}", values.get(name, np.zeros(0)))
    values.setdefault("tick", np.zeros(np.shape(values.get("cart_yaw", 0.0)), int))
    _check(values, config)
    dtype = jnp.dtype(config.dtype)

    def number(value: np.ndarray) -> jax.Array:
        return jnp.asarray(value, dtype)

    yaw, v = values["cart_yaw"], values["cart_vel"]
    cos, sin = np.cos(yaw), np.sin(yaw)
    velocity = Velocity(
        number(cos * v[..., 0] + sin * v[..., 1]),
        number(cos * v[..., 1] - sin * v[..., 0]),
        number(values["cart_yaw_rate"]),
        *(number(values["pole_jw"][..., i]) for i in range(3)),
    )
    tick = jnp.asarray(values["tick"], jnp.int32)
    return State(
        _pose(values["cart_pos"], yaw, values["pole_jq"], number),
        _pose(
            values["reported_cart_pos"],
            values["reported_cart_yaw"],
            values["reported_pole_jq"],
            number,
        ),
        velocity,
        _blocks(values, config, number),
        jnp.zeros(tick.shape, dtype),
        Vector(*(jnp.zeros(tick.shape, dtype) for _ in range(3))),
        Vector(*(jnp.zeros(tick.shape, dtype) for _ in range(3))),
        tick,
        jnp.zeros(tick.shape, bool),
        _supply(values, number) if "spawn" in config.terms else None,
    )


def _supply(values: Mapping[str, np.ndarray], number: Number) -> Supply:
    """Supply of a cart that starts at its present place."""
    x, y = (number(values["cart_pos"][..., i]) for i in range(2))
    zero = 0.0 * x
    return Supply(Vector(x, y, zero), Vector(zero, zero, zero))


def _check(values: Mapping[str, np.ndarray], config: Config) -> None:
    batch = np.shape(values.get("cart_yaw", 0.0))
    shapes = dict(SHAPES)
    if "block_pos" in values:
        count = values["block_pos"].shape[-2] if values["block_pos"].ndim >= 2 else -1
        shapes |= {"block_pos": (count, 3), "block_vel": (count, 3)}
        if count > config.max_blocks:
            raise ValueError(
                f"block_pos holds {count} blocks; config.max_blocks is {config.max_blocks}"
            )
        if "block_alive" in values:
            shapes["block_alive"] = (count,)
    for name in shapes:
        if name not in values:
            raise ValueError(f"{name!r} is missing; needed: {', '.join(shapes)}")
    for name, shape in shapes.items():
        if values[name].shape != batch + shape:
            raise ValueError(f"{name!r} has shape {values[name].shape}, not {batch + shape}")


def _blocks(values: Mapping[str, np.ndarray], config: Config, number: Number) -> tuple[Sphere, ...]:
    batch = values["cart_yaw"].shape
    p = values.get("block_pos", np.zeros((*batch, 0, 3)))
    v = values.get("block_vel", np.zeros((*batch, 0, 3)))
    alive = values.get("block_alive", np.ones(p.shape[:-1], bool)).astype(bool)
    spare = config.max_blocks - p.shape[-2]
    filler = np.broadcast_to(np.array([0.0, 0.0, RESTING]), (*batch, spare, 3))
    p = np.concatenate([p, filler], axis=-2)
    v = np.concatenate([v, np.zeros((*batch, spare, 3))], axis=-2)
    alive = np.concatenate([alive, np.zeros((*batch, spare), bool)], axis=-1)
    v = np.where(alive[..., None], v, 0.0)
    rail = None
    if "lines" in config.terms:
        rail = Rail(*(number(np.zeros(alive.shape)) for _ in range(4)))
    block = Sphere(
        Vector(*(number(p[..., k]) for k in range(3))),
        Vector(*(number(v[..., k]) for k in range(3))),
        jnp.asarray(alive),
        rail,
    )
    if config.stacked:
        return (block,)
    return tuple(
        jax.tree.map(lambda leaf, i=i: leaf[..., i], block) for i in range(config.max_blocks)
    )


def state_to_arrays(state: State) -> dict[str, np.ndarray]:
    """Turn a state into named arrays, the inverse of `state_from_arrays`.

    Returns:
      NumPy arrays with the names above; `cart_yaw` is in (-2 pi, 2 pi].
    """

    def stack(*leaves: Scalar) -> np.ndarray:
        return np.stack([np.asarray(leaf) for leaf in leaves], axis=-1)

    def yaw(pose: Pose) -> np.ndarray:
        return 2 * np.arctan2(np.asarray(pose.half_sin), np.asarray(pose.half_cos))

    pose, old, vel = state.pose, state.reported, state.velocity
    block = state.blocks[0]
    if not slots.are_stacked(state.blocks, pose.x):
        block = jax.tree.map(lambda *leaves: stack(*leaves), *state.blocks)
    cos, sin = np.cos(yaw(pose)), np.sin(yaw(pose))
    vx, vy = np.asarray(vel.vx), np.asarray(vel.vy)
    return {
        "cart_pos": stack(pose.x, pose.y),
        "cart_yaw": yaw(pose),
        "cart_vel": stack(cos * vx - sin * vy, sin * vx + cos * vy),
        "cart_yaw_rate": np.asarray(vel.yaw_rate),
        "pole_jq": stack(pose.qx, pose.qy, pose.qz, pose.qw),
        "pole_jw": stack(vel.wx, vel.wy, vel.wz),
        "block_pos": stack(*block.p),
        "block_vel": stack(*block.v),
        "block_alive": np.asarray(block.alive),
        "tick": np.asarray(state.step),
        "reported_cart_pos": stack(old.x, old.y),
        "reported_cart_yaw": yaw(old),
        "reported_pole_jq": stack(old.qx, old.qy, old.qz, old.qw),
    }
