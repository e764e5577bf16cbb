"""Worlds with stacked block slots do what those with single ones do."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds.cartpole3d import Params, state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole3d import tick as tick_module
from jaxsim.worlds.cartpole3d.blocks.slots import inward, outward
from jaxsim.worlds.cartpole3d.types import Config, Vector
from tests.jaxsim.worlds.cartpole3d.near_contact import random_parameters, random_states

LANES = 400
SLOTS = 6


@pytest.fixture(scope="module")
def batch():
    draw = np.random.default_rng(3)
    params = random_parameters(draw, LANES)
    return params, random_states(draw, params)


def test_slots_go_in_front_of_lanes_of_any_shape_and_back(batch):
    state = state_from_arrays(batch[1], Config(max_blocks=SLOTS))
    state = jax.tree.map(lambda leaf: leaf.reshape(20, 20, *leaf.shape[1:]), state)
    moved = inward(state)
    for name in ("alive", "p", "v"):
        front, behind = (getattr(each.blocks[0], name) for each in (moved, state))
        expected = jax.tree.map(lambda leaf: np.transpose(leaf, (2, 0, 1)), behind)
        jax.tree.map(np.testing.assert_array_equal, front, expected)
    jax.tree.map(np.testing.assert_array_equal, outward(moved), state)


def advanced(params: Any, state: Any, moving: Any) -> Any:
    """Named arrays of a state after a tick's movement."""
    pose, velocity, blocks = moving
    return replace(state, pose=pose, reported=state.pose, velocity=velocity, blocks=blocks)


@pytest.mark.long
def test_a_full_tick_is_that_of_single_slots(ticks, batch):
    numbers, arrays = batch
    with ticks.precision():
        params, four = ticks.inputs(numbers, arrays)
        expected, _ = ticks.run("full", params, four, np.zeros((LANES, 3)))
        six = inward(state_from_arrays(arrays, Config(dtype="float64", max_blocks=SLOTS)))
        none = Vector(*(jnp.zeros(LANES) for _ in range(3)))

        @jax.jit
        def full(params: Params, state: Any) -> Any:
            needed = jnp.ones(LANES, bool)
            moving = (state.pose, state.velocity, state.blocks)
            return tick_module._full(params, moving, (none, None), needed)

        ours = state_to_arrays(outward(advanced(params, six, full(params, six))))
    assert ours["block_alive"].shape == (LANES, SLOTS)
    assert not ours["block_alive"][:, 4:].any()
    for name in ("cart_vel", "cart_yaw_rate", "pole_jq", "pole_jw", "cart_pos"):
        np.testing.assert_allclose(ours[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)
    for name in ("block_pos", "block_vel"):
        np.testing.assert_allclose(
            ours[name][:, :4], expected[name], rtol=1e-9, atol=1e-9, err_msg=name
        )


def test_the_capacity_is_the_smallest_that_holds_every_episode():
    sizes = {
        (level, difficulty): jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty)[
            0
        ].config.max_blocks
        for level in (108, 200, 208)
        for difficulty in ("easy", "medium", "hard")
    }
    assert [sizes[108, d] for d in ("easy", "medium", "hard")] == [8, 17, 32]
    assert [sizes[208, d] for d in ("easy", "medium", "hard")] == [71, 104, 205]
    assert {sizes[200, d] for d in ("easy", "medium", "hard")} == {4}
    shorter, _ = jaxsim.make("CartPole3D-v0", level=208, difficulty="hard", max_steps=20)
    assert shorter.config.max_blocks == 32  # 4 + 21 blocks
    more, _ = jaxsim.make("CartPole3D-v0", {"blocks/count_max": 150, "spawn/period": 1})
    assert more.config.max_blocks == 351
