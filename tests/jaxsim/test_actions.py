"""Actions that no environment has are refused before anything is traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

WORLDS = {
    "CartPole3D-v0": "0 to 4 (nothing, right, left, forward, backward)",
    "CartPole2D-v0": "0 to 2 (nothing, right, left)",
    "CartPole-v1": "0 to 1 (left, right)",
}


@pytest.fixture(params=list(WORLDS))
def world(request):
    env, params = jaxsim.make(request.param)
    state = jax.eval_shape(env.start, jax.random.key(0), params)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)

    def step(action):
        return env.step(jax.random.key(0), blank, action, params)

    return WORLDS[request.param], step


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (1.0, "has dtype float64"),
        (jnp.float32(1), "has dtype float32"),
        (True, "has dtype bool"),
        (-1, "is -1"),
        (7, "is 7"),
        (np.int64(5), "is 5"),
        (jnp.int32(9), "is 9"),
    ],
)
def test_what_is_no_action_is_refused(world, action, problem):
    allowed, step = world
    with pytest.raises(ValueError) as error:
        step(action)
    assert str(error.value) == f"action {problem}; it must be an integer from {allowed}"


def test_the_type_of_a_traced_action_is_checked(world):
    allowed, step = world
    with pytest.raises(ValueError, match="action has dtype float32; it must be an integer from 0"):
        jax.eval_shape(step, jax.ShapeDtypeStruct((), jnp.float32))
    jax.eval_shape(step, jax.ShapeDtypeStruct((), jnp.int8))
