"""Levels 50 to 53 by a seed, which the original ignores."""

import jax
import numpy as np
import pytest
from scipy import stats

import jaxsim
from jaxsim.worlds import cartpole2d
from jaxsim.worlds.cartpole2d import Config, start_from_seed
from jaxsim.worlds.cartpole3d.generate import wsu


def arrays(state):
    return cartpole2d.state_to_arrays(state)


def test_the_seed_decides():
    first, again, other = (arrays(start_from_seed(seed, 52, "medium")) for seed in (3, 3, 4))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert first["p1"][0] != other["p1"][0]
    assert (first["zone_drag"] != other["zone_drag"]).all()
    assert first["tick"] == -1


def test_the_stream_is_that_of_the_generator():
    """The place is the first number of the seed's stream, drags are the third and on."""
    draws = wsu.generator(11).random_sample(22)
    start = arrays(start_from_seed(11, 52, "medium"))
    np.testing.assert_allclose(start["p1"], [0.01 * (2 * draws[0] - 1), 1.0, 0.0, 0.4], rtol=1e-6)
    drags = 0.0125 + 0.0875 * draws[2:]
    np.testing.assert_allclose(start["zone_drag"], drags[8:13], rtol=1e-6)


def test_places_have_the_law_of_the_original():
    x = np.array([arrays(start_from_seed(seed))["p1"][0] for seed in range(300)])
    assert stats.kstest((x + 0.01) / 0.02, "uniform").pvalue > 0.01


def test_levels_parameters_and_engines_reach_the_start():
    np.testing.assert_allclose(arrays(start_from_seed(1, 52, "easy"))["zone_drag"], 0.125)
    np.testing.assert_array_equal(arrays(start_from_seed(1, 50))["zone_drag"], 0)
    env, params = jaxsim.make("CartPole2D-v0", {"start/spread": 2.0, "start/velocity": 0.0})
    custom, nominal = start_from_seed(1, params=params), start_from_seed(1)
    assert float(custom.motion.x) == pytest.approx(200 * float(nominal.motion.x), rel=1e-5)
    assert float(custom.motion.v) == 0
    patched = {
        float(start_from_seed(s, config=Config(engine="tbplanar")).motion.x) for s in range(9)
    }
    assert patched == {-1.0, 1.0}


def test_the_state_after_the_hidden_tick():
    start, state = start_from_seed(5, 51, "hard"), cartpole2d.from_seed(5, 51, "hard")
    assert int(state.step) == 0
    env, params = jaxsim.make("CartPole2D-v0", level=51, difficulty="hard")
    _, expected = env.restart(jax.random.key(0), start, params)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1,), "seed is -1; it must be a whole number from 0"),
        ((1, 54), "level is 54; it must be one of 50, 51, 52, 53"),
        ((1, 50, "Easy"), "difficulty is 'Easy'; it must be 'easy', 'medium' or 'hard'"),
        ((1, 50, "easy", None, Config(dtype="float64")), "float64.*jax_enable_x64"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    for function in (start_from_seed, cartpole2d.from_seed):
        with pytest.raises(ValueError, match=words):
            function(*arguments)
