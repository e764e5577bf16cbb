"""States to and from named NumPy arrays, for tests, recordings and people."""

from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from jaxsim.worlds.cartpole.types import Motion, Scalar
from jaxsim.worlds.cartpole2d.types import ZONES, Config, State

SHAPES = {"p1": (4,), "reported": (4,), "zone_drag": (len(ZONES),), "tick": ()}
"""Names and shapes behind the batch axes."""


def state_from_arrays(mapping: Mapping[str, npt.ArrayLike], config: Config | None = None) -> State:
    """Build a state from named arrays; leading batch axes are kept.

    Args:
      mapping: `p1` (..., 4) position m, velocity m/s, angle rad and angular velocity rad/s; and,
        optionally, `reported` (..., 4) the same as the sensors report it (default `p1`),
        `zone_drag` (..., 5) drag coefficients by zone (default 0), `tick` (...) agent steps taken
        (default 0; -1 is before the hidden first tick).
      config: precision.

    Raises:
      ValueError: a missing or unknown name, or a wrong shape.
    """
    dtype = jnp.dtype((config or Config()).dtype)
    values = {name: np.asarray(value) for name, value in mapping.items()}
    if "p1" not in values:
        raise ValueError(f"'p1' is missing; known: {', '.join(SHAPES)}")
    batch = values["p1"].shape[:-1]
    values.setdefault("reported", values["p1"])
    values.setdefault("zone_drag", np.zeros((*batch, len(ZONES))))
    values.setdefault("tick", np.zeros(batch, int))
    _check(values, batch)

    def split(name: str) -> list[jax.Array]:
        return [jnp.asarray(values[name][..., i], dtype) for i in range(SHAPES[name][0])]

    tick = jnp.asarray(values["tick"], jnp.int32)
    return State(
        Motion(*split("p1")),
        Motion(*split("reported")),
        tuple(split("zone_drag")),
        tick,
        jnp.zeros(tick.shape, bool),
    )


def _check(values: Mapping[str, np.ndarray], batch: tuple[int, ...]) -> None:
    for name, value in values.items():
        if name not in SHAPES:
            raise ValueError(f"unknown name {name!r} (allowed: {', '.join(SHAPES)})")
        if value.shape != batch + SHAPES[name]:
            raise ValueError(f"{name!r} has shape {value.shape}, not {batch + SHAPES[name]}")


def state_to_arrays(state: State) -> dict[str, np.ndarray]:
    """Turn a state into named arrays, the inverse of `state_from_arrays`."""

    def stack(leaves: Iterable[Scalar]) -> np.ndarray:
        return np.stack([np.asarray(leaf) for leaf in leaves], axis=-1)

    def listed(motion: Motion) -> np.ndarray:
        return stack((motion.x, motion.v, motion.angle, motion.rate))

    return {
        "p1": listed(state.motion),
        "reported": listed(state.reported),
        "zone_drag": stack(state.zone_drag),
        "tick": np.asarray(state.step),
    }
