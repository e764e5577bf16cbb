"""Contacts among many blocks against the solver that iterates over every one of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import Params, State, state_from_arrays
from jaxsim.worlds.cartpole3d import tick as tick_module
from jaxsim.worlds.cartpole3d.blocks.slots import inward
from jaxsim.worlds.cartpole3d.contact import crowd, solver
from jaxsim.worlds.cartpole3d.types import Config, Sphere, Vector
from tests.jaxsim.worlds.cartpole3d.near_contact import random_parameters, random_states

LANES = 48
SLOTS = 40


def advanced(params: Params, state: State) -> Any:
    """Pose, velocities and blocks after a tick."""
    none = Vector(*(jnp.zeros(LANES) for _ in range(3)))
    moving = (state.pose, state.velocity, state.blocks)
    return tick_module._full(params, moving, (none, None), jnp.ones(LANES, bool))


@pytest.fixture(scope="module")
def world(lanes64):
    """A few blocks around cart and walls, many more at random, in rooms from sparse to crammed."""
    draw = np.random.default_rng(7)
    numbers = random_parameters(draw, LANES)
    arrays = random_states(draw, numbers)
    spread = np.linspace(1.2, 4.6, LANES)[:, None, None]
    more = draw.uniform(-1, 1, (LANES, SLOTS - 4, 3)) * spread + [0.0, 0.0, 4.95]
    arrays["block_pos"] = np.concatenate([arrays["block_pos"], more], axis=1)
    speeds = draw.normal(0, 4, more.shape)
    arrays["block_vel"] = np.concatenate([arrays["block_vel"], speeds], axis=1)
    present = draw.random(more.shape[:2]) < 0.9
    arrays["block_alive"] = np.concatenate([arrays["block_alive"], present], axis=1)
    with lanes64.precision():
        params = Params(**{name: jnp.asarray(values) for name, values in numbers.items()})
        config = Config(dtype="float64", max_blocks=SLOTS)
        return params, inward(state_from_arrays(arrays, config))


@dataclass
class Spied:
    """A compiled tick; `rooms`: sizes traced into it; `beyond`: where the few were too few."""

    tick: Callable[[Params, State], Any]
    rooms: list[crowd.Room] = field(default_factory=list)
    beyond: list[np.ndarray] = field(default_factory=list)

    def __call__(self, params: Params, state: State) -> Any:
        """A tick; `beyond` is of this call when it returns."""
        self.beyond.clear()
        result = jax.block_until_ready(self.tick(params, state))
        jax.effects_barrier()
        return result


@pytest.fixture(scope="module")
def full():
    """One program for both tests, spied on whichever of them traces it."""
    spied = Spied(jax.jit(advanced))
    resolved = crowd._resolved

    def noted(room: crowd.Room, *arguments: Any) -> Any:
        result, beyond = resolved(room, *arguments)
        spied.rooms.append(room)
        jax.debug.callback(lambda b: spied.beyond.append(np.asarray(b)), beyond)
        return result, beyond

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "_resolved", noted)
        yield spied


def test_every_contact_is_resolved_as_by_the_plain_solver(world, full, lanes64, monkeypatch):
    params, state = world
    with lanes64.precision():
        ours = full(params, state)
        monkeypatch.setattr(crowd, "resolve", solver.resolve)
        expected = jax.jit(lambda p, s: advanced(p, s))(params, state)
    assert full.rooms == [crowd.FEW, crowd.MANY]
    few = next(b for b in full.beyond if b.shape == (LANES,))
    assert 5 < few.sum() < LANES - 5, "both sizes of lists must be used"
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_a_lane_is_the_same_in_any_company(world, full, lanes64):
    params, state = world
    emptied = np.arange(LANES) % 2 == 1
    block = state.blocks[0]
    alone = replace(state, blocks=(Sphere(block.p, block.v, block.alive & ~emptied),))
    with lanes64.precision():
        together, apart = full(params, state), full(params, alone)
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[..., ~emptied], np.asarray(b)[..., ~emptied])
