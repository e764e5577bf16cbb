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
    """The versions of the tick by name, to be called with one batch shape only."""

    compiled: Mapping[str, Callable[..., Any]]
    precision: Callable[..., Any]

    def inputs(self, params: Mapping[str, np.ndarray], arrays: Mapping[str, Any]) -> Any:
        """(params, state) of a batch."""
        with self.precision():
            numbers = {name: jnp.asarray(values) for name, values in params.items()}
            return Params(**numbers), state_from_arrays(arrays, DOUBLE)

    def run(self, which: str, params: Params, state: State, force: np.ndarray) -> Any:
        """Named arrays after a tick, and whether the version may be wrong, None for the full."""
        push = Vector(*np.moveaxis(np.asarray(force, float), -1, 0))
        moving = (state.pose, state.velocity, state.blocks)
        with self.precision():
            after, unsure = self.compiled[which](params, moving, (push, None))
            pose, velocity, blocks = after
            named = state_to_arrays(
                replace(state, pose=pose, reported=state.pose, velocity=velocity, blocks=blocks)
            )
        named["cart_local"] = np.stack([velocity.vx, velocity.vy], axis=-1)
        return named, None if unsure is None else np.asarray(unsure)


@pytest.fixture(scope="session")
def ticks(lanes64: Any) -> Ticks:
    """All versions of the tick in float64."""

    def active(params: Params) -> jax.Array:
        return jnp.ones_like(params.gravity, bool)

    def full(params: Params, moving: Any, forces: Any) -> Any:
        return tick_module._full(params, moving, forces, active(params)), None

    def cheap(params: Params, moving: Any, forces: Any) -> Any:
        free = dynamics.free_motion(params, moving, forces)
        after, meets, beyond = tick_module._cheap(params, moving, free, leaving=False)
        return after, meets | beyond

    def single(params: Params, moving: Any, forces: Any) -> Any:
        moved = tick_module.single_tick(params, moving, forces, active(params))
        return moved.moving, ~moved.right

    def walled(params: Params, moving: Any, forces: Any) -> Any:
        moved = tick_module.walled_tick(params, moving, forces, active(params), leaving=True)
        return moved.moving, ~moved.right

    versions = {each.__name__: jax.jit(each) for each in (full, cheap, single, walled)}
    return Ticks(versions, lanes64.precision)
