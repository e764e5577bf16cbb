"""Compiled pieces of the float64 tick for the tests of one world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import Params, State, dynamics, state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole3d import tick as tick_module
from jaxsim.worlds.cartpole3d.types import Config, Vector

DOUBLE = Config(dtype="float64")


@dataclass(frozen=True)
class Ticks:
    """The cheap and the full tick, to be called with one batch shape only."""

    cheap: Callable[..., Any]
    full: Callable[..., Any]
    precision: Callable[..., Any]

    def inputs(self, params: Mapping[str, np.ndarray], arrays: Mapping[str, Any]) -> Any:
        """(params, state) of a batch."""
        with self.precision():
            numbers = {name: jnp.asarray(values) for name, values in params.items()}
            return Params(**numbers), state_from_arrays(arrays, DOUBLE)

    def run(self, which: str, params: Params, state: State, force: np.ndarray) -> Any:
        """Named arrays after a tick, and for the cheap tick whether it may be wrong."""
        push = Vector(*np.moveaxis(np.asarray(force, float), -1, 0))
        moving = (state.pose, state.velocity, state.blocks)
        with self.precision():
            if which == "cheap":
                after, meets, beyond = self.cheap(params, moving, (push, None))
                touching = meets | beyond
            else:
                after, touching = self.full(params, moving, (push, None)), None
            pose, velocity, blocks = after
            named = state_to_arrays(
                replace(state, pose=pose, reported=state.pose, velocity=velocity, blocks=blocks)
            )
        named["cart_local"] = np.stack([velocity.vx, velocity.vy], axis=-1)
        return named, None if touching is None else np.asarray(touching)


@pytest.fixture(scope="session")
def ticks(lanes64: Any) -> Ticks:
    """Both versions of the tick in float64."""

    def full(params: Params, moving: Any, forces: Any) -> Any:
        return tick_module._full(params, moving, forces, jnp.ones_like(params.gravity, bool))

    def cheap(params: Params, moving: Any, forces: Any) -> Any:
        free = dynamics.free_motion(params, moving, forces)
        return tick_module._cheap(params, moving, free, leaving=False)

    return Ticks(jax.jit(cheap), jax.jit(full), lanes64.precision)
