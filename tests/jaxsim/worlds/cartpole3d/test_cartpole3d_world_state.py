"""Episodes that start from a given world."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import Config
from jaxsim.worlds.cartpole3d.original import messages
from tests.conftest import double_precision

DOUBLE = Config(dtype="float64")


@pytest.fixture(scope="module")
def arrays():
    """A world in which everything moves and the cart is turned."""
    return {
        "cart_pos": [1.5, -0.5],
        "cart_yaw": 0.4,
        "cart_vel": [0.3, -0.2],
        "cart_yaw_rate": 1.0,
        "pole_jq": [0.03, -0.02, 0.1, np.sqrt(1 - 0.0113)],
        "pole_jw": [0.2, -0.1, 0.5],
        "block_pos": [[2.0, 1.0, 6.0], [-3.0, 2.0, 3.0]],
        "block_vel": [[1.0, 2.0, -3.0], [0.0, 0.0, 7.0]],
    }


@pytest.fixture(scope="module")
def vector(arrays):
    with double_precision():
        state = cartpole3d.from_world_state(arrays, DOUBLE)
        observation = cartpole3d.observe(state)
    return messages.feature_vector(observation, first=True, time_stamp=12.5)


def test_arrays_come_back(arrays):
    with double_precision():
        state = cartpole3d.from_world_state(arrays, DOUBLE)
    actual = cartpole3d.state_to_arrays(state)
    for name, value in arrays.items():
        np.testing.assert_allclose(
            actual[name][: len(value)] if "block" in name else actual[name], value
        )
    np.testing.assert_array_equal(actual["block_alive"], [True, True, False, False])
    np.testing.assert_array_equal(actual["reported_cart_pos"], arrays["cart_pos"])
    assert int(state.step) == 0 and not bool(state.done)


def test_a_feature_vector_reads_as_it_was_given(vector):
    with double_precision():
        state = cartpole3d.from_world_state(vector, DOUBLE)
        observation = cartpole3d.observe(state)
    again = messages.feature_vector(observation, first=True, time_stamp=12.5)
    for body in ("cart", "pole"):
        assert again[body] == pytest.approx(vector[body], abs=2e-6)
    for a, b in zip(again["blocks"], vector["blocks"], strict=True):
        assert a == pytest.approx(b, abs=1e-9)
    yaw = cartpole3d.state_to_arrays(state)["cart_yaw"]
    assert yaw == 0  # a feature vector does not tell


def test_a_batch_of_arrays_starts_a_batch(arrays):
    batch = {name: np.stack([np.asarray(value)] * 3) for name, value in arrays.items()}
    batch["cart_pos"][1] = [0.0, 2.0]
    state = cartpole3d.from_world_state(batch, wind_angle=0.5, extra_bounce=0.05)
    assert state.step.shape == state.wind.x.shape == state.extra_bounce.shape == (3,)
    np.testing.assert_allclose(state.pose.y, [-0.5, 2.0, -0.5])


def test_what_a_level_draws_for_an_episode_may_be_given(arrays):
    state = cartpole3d.from_world_state(arrays, wind_angle=0.5, extra_bounce=0.05)
    np.testing.assert_allclose(state.wind, [-np.sin(0.5), np.cos(0.5), 0], rtol=1e-6)
    assert float(state.extra_bounce) == pytest.approx(0.05)
    plain = cartpole3d.from_world_state(arrays)
    np.testing.assert_allclose(plain.wind, [0, 1, 0])


def test_an_episode_goes_on_from_it(arrays, vector, lanes32):
    """All its steps are to come; a fallen pole ends it in the first."""
    fallen = arrays | {"pole_jq": [0.0, 0.3, 0.0, np.sqrt(0.91)]}
    batch = [cartpole3d.from_world_state(w) for w in (arrays, vector, fallen)]
    state = jax.tree.map(lambda *leaves: np.stack(leaves), *batch)
    observation, new, reward, terminated, truncated, _ = lanes32.step(state, 1)
    np.testing.assert_array_equal(new.step, 1)
    np.testing.assert_array_equal(terminated, [False, False, True])
    np.testing.assert_allclose(reward, 1 / 200)
    assert not truncated.any()
    # Ten newtons on 1.1 kg for one tick, and the push is along the room whatever the cart's yaw.
    assert observation.cart_velocity.x[0] == pytest.approx(0.3 + 0.18, abs=0.03)


def test_an_environment_whose_sensors_err_adopts_it(arrays):
    env, params = jaxsim.make("CartPole3D-v0", {"sensors/noise_position": 0.2})
    state = env.adopt(cartpole3d.from_world_state(arrays), jax.random.key(4), params)
    assert abs(float(env.observe(state).cart_position.x) - 1.5) > 1e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cart_poss": [0, 0]}, "unknown name 'cart_poss'; did you mean 'cart_pos'"),
        ({"cart_yaw": [0.0]}, "has shape"),
        ({"block_pos": np.zeros((5, 3)), "block_vel": np.zeros((5, 3))}, "max_blocks is 4"),
    ],
)
def test_wrong_arrays_are_refused(arrays, change, words):
    with pytest.raises(ValueError, match=words):
        cartpole3d.from_world_state(arrays | change)


def test_missing_arrays_are_named(arrays):
    with pytest.raises(ValueError, match="'pole_jw' is missing"):
        cartpole3d.from_world_state({k: v for k, v in arrays.items() if k != "pole_jw"})


def test_wrong_feature_vectors_are_refused(vector):
    with pytest.raises(ValueError, match=r"'cart\.x_position' is 'left'"):
        cartpole3d.from_world_state(vector | {"cart": vector["cart"] | {"x_position": "left"}})
    with pytest.raises(ValueError, match="field 'pole' is missing"):
        cartpole3d.from_world_state({k: v for k, v in vector.items() if k != "pole"})
    with pytest.raises(ValueError, match=r"holds 2 blocks; Config\.max_blocks is 1"):
        cartpole3d.from_world_state(vector, Config(max_blocks=1))


def test_an_episode_that_is_over_stays_so_whatever_ended_it(lanes32):
    """A lane for each number of the state that is not finite, one at the limit, one that fell."""
    _, state, *_ = lanes32.step(lanes32.start(0), 0)
    leaves, tree = jax.tree.flatten(state)
    numbers = [k for k, leaf in enumerate(leaves) if leaf.dtype == np.float32]
    lanes = len(numbers) + 2
    leaves = [np.repeat(np.asarray(leaf)[:1], lanes, axis=0) for leaf in leaves]
    for lane, k in enumerate(numbers):
        leaves[k][lane] = np.nan
    state = jax.tree.unflatten(tree, leaves)
    state.step[-2] = lanes32.env.max_steps - 1
    state.pose.qx[-1] = 0.8
    one = lanes32.step(state, 0)
    again = lanes32.step(one[1], 1)
    *_, terminated, truncated, info = one
    over = terminated | truncated
    assert terminated.tolist() == [False] * (lanes - 1) + [True]
    assert truncated[-2:].tolist() == [True, False]
    np.testing.assert_array_equal(info["nonfinite"][:-2], over[:-2])
    assert not info["nonfinite"][-2:].any()
    assert over.sum() > 20
    assert not again[2][over].any()

    def kept(step):
        return jax.tree.leaves((step[:2], step[3:5], step[5]["nonfinite"]))

    for before, after in zip(kept(one), kept(again), strict=True):
        np.testing.assert_array_equal(before[over], after[over])
