"""What the planner with full information knows of the pushes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import clairvoyant

PUSHES = [
    {"actions/sign": -0.5},
    {"force": 30.0, "actions/scale_y": -2.0},
    {"actions/turn": 100.0, "actions/scale_x": 0.5, "actions/delay": 3},
]
ACTIONS = jnp.arange(5, dtype=jnp.int32)


@pytest.fixture(scope="module")
def world():
    """An environment with every term that is tested here, and its compiled step of a lane each."""
    env, _ = jaxsim.make("CartPole3D-v0", {k: v for values in PUSHES for k, v in values.items()})
    return env, jax.jit(env.step)


@pytest.mark.parametrize("values", PUSHES)
def test_pushes_are_those_of_the_simulator(values, world):
    env, step = world
    _, params = jaxsim.make("CartPole3D-v0", values)
    keys = jnp.broadcast_to(jax.random.key(0), ACTIONS.shape)
    _, state, *_ = step(keys, env.start(keys, params), 0 * ACTIONS, params)
    model = clairvoyant._model(params, jax.tree.map(lambda leaf: leaf[0], state))
    assert int(model.delay) == values.get("actions/delay", 0)
    prompt = replace(params, action_delay=jnp.float32(0))
    velocity = step(keys, state, ACTIONS, prompt)[1].velocity
    speeds = np.stack([velocity.vx, velocity.vy], axis=-1)
    pushed = speeds[1:] - speeds[0]
    forces = np.array([model.pushes.force(*push) for push in ((1, 0), (-1, 0), (0, 1), (0, -1))])
    # A nearly upright cart and pole answer pushes alike in every direction, to the square of a lean
    # of some hundredths.
    np.testing.assert_allclose(
        pushed / np.linalg.norm(pushed[0]), forces / np.linalg.norm(forces[0]), atol=5e-3
    )
