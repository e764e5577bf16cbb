"""States to and from named arrays, and observations as vectors."""

import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import observe, state_from_arrays, state_to_arrays, to_vector
from jaxsim.worlds.cartpole3d.types import Config
from tests.jaxsim.worlds.cartpole3d.near_contact import random_parameters, random_states

DOUBLE = Config(dtype="float64")


def arrays(lanes=6, seed=30):
    draw = np.random.default_rng(seed)
    named = random_states(draw, random_parameters(draw, lanes))
    other = random_states(draw, random_parameters(draw, lanes))
    named |= {f"reported_{n}": other[n] for n in ("cart_pos", "cart_yaw", "pole_jq")}
    named["tick"] = draw.integers(0, 200, lanes)
    named["block_alive"] = named["block_alive"].astype(bool)
    return named


def shaped(named, shape):
    """The same lanes under another batch shape."""
    return {name: values.reshape(shape + values.shape[1:]) for name, values in named.items()}


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6, 1)])
def test_a_round_trip_returns_every_array(shape, x64):
    lanes = int(np.prod(shape))
    named = shaped(arrays(lanes), shape)
    back = state_to_arrays(state_from_arrays(named, DOUBLE))
    alive = named["block_alive"][..., None]
    named["block_vel"] = np.where(alive, named["block_vel"], 0)  # an empty slot does not move
    assert set(back) == set(named)
    for name, values in named.items():
        assert back[name].shape == values.shape, name
        np.testing.assert_allclose(back[name], values, rtol=0, atol=1e-14, err_msg=name)


def test_precision_and_defaults():
    named = arrays()
    for name in [n for n in named if n.startswith("reported")] + ["tick", "block_alive"]:
        del named[name]
    state = state_from_arrays(named)
    assert state.pose.x.dtype == np.float32
    back = state_to_arrays(state)
    for name in ("cart_pos", "cart_yaw", "pole_jq"):
        np.testing.assert_array_equal(back[f"reported_{name}"], back[name])
    np.testing.assert_array_equal(back["tick"], 0)
    assert back["block_alive"].all()
    assert not np.asarray(state.done).any()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_missing_blocks_leave_empty_slots(count, x64):
    named = arrays()
    for name in ("block_pos", "block_vel", "block_alive"):
        named[name] = named[name][:, :count]
    back = state_to_arrays(state_from_arrays(named, DOUBLE))
    assert back["block_pos"].shape == (6, 4, 3)
    assert not back["block_alive"][:, count:].any()
    np.testing.assert_array_equal(back["block_vel"][:, count:], 0)
    # Wherever an empty slot is kept, it is inside the room and touches neither floor nor ceiling.
    assert ((back["block_pos"][:, count:, 2] > 1) & (back["block_pos"][:, count:, 2] < 9)).all()
    del named["block_pos"], named["block_vel"], named["block_alive"]
    assert not state_to_arrays(state_from_arrays(named, DOUBLE))["block_alive"].any()


@pytest.mark.parametrize("name", ["cart_pos", "cart_vel", "pole_jw", "block_vel", "cart_yaw"])
def test_a_missing_name_is_named(name):
    named = arrays()
    del named[name]
    with pytest.raises(ValueError, match=f"'{name}'"):
        state_from_arrays(named)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cart_pos", (6, 3)),
        ("cart_vel", (2,)),
        ("pole_jq", (6, 3)),
        ("pole_jw", (5, 3)),
        ("tick", ()),
        ("block_pos", (6, 4, 2)),
        ("block_vel", (6, 3, 3)),
        ("block_alive", (6, 3)),
        ("reported_pole_jq", (4,)),
    ],
)
def test_a_wrong_shape_is_named(name, shape):
    named = arrays() | {name: np.zeros(shape)}
    with pytest.raises(ValueError, match=rf"'{name}' has shape"):
        state_from_arrays(named)


def test_too_many_blocks_are_refused():
    named = arrays()
    for name in ("block_pos", "block_vel", "block_alive"):
        named[name] = np.concatenate([named[name], named[name]], axis=1)
    with pytest.raises(ValueError, match=r"8 blocks; config\.max_blocks is 4"):
        state_from_arrays(named)
    wide = state_from_arrays(named, Config(max_blocks=8))
    assert wide.blocks[0].alive.shape == (*np.shape(named["cart_yaw"]), 8)
    again = state_to_arrays(wide)
    named["block_vel"] = np.where(named["block_alive"][..., None], named["block_vel"], 0)
    for name in ("block_pos", "block_vel", "block_alive"):
        np.testing.assert_allclose(again[name], named[name], rtol=1e-6)


def test_observation_vector_holds_every_number_in_order():
    state = state_from_arrays(arrays())
    observation = observe(state)
    vector = np.asarray(to_vector(observation))
    assert vector.shape == (6, 11 + 7 * 4)
    np.testing.assert_array_equal(vector[:, 0], observation.cart_position.x)
    np.testing.assert_array_equal(vector[:, 3], observation.cart_velocity.y)
    np.testing.assert_array_equal(vector[:, 4:8], np.stack(observation.pole_quaternion, axis=1))
    np.testing.assert_array_equal(vector[:, 10], observation.pole_velocity.z)
    for i in range(4):
        block = vector[:, 11 + 7 * i : 18 + 7 * i]
        alive = np.asarray(observation.block_alive[i])
        np.testing.assert_array_equal(block[:, 0], alive)
        np.testing.assert_array_equal(
            block[:, 1:4], np.stack(observation.block_position[i], axis=1)
        )
        np.testing.assert_array_equal(block[:, 4:], np.stack(observation.block_velocity[i], axis=1))
        np.testing.assert_array_equal(block[~alive], 0)
