"""What the planner with full information knows of the pushes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import clairvoyant


@pytest.mark.parametrize(
    "values",
    [
        {"actions/sign": -0.5},
        {"force": 30.0, "actions/scale_y": -2.0},
        {"actions/turn": 100.0, "actions/scale_x": 0.5, "actions/delay": 3},
    ],
)
def test_pushes_are_those_of_the_simulator(values):
    env, params = jaxsim.make("CartPole3D-v0", values)
    _, state = env.reset(jax.random.key(0), params)
    model = clairvoyant._model(params, state)
    assert int(model.delay) == values.get("actions/delay", 0)
    prompt = params.__class__(**{**vars(params), "action_delay": jnp.float32(0)})
    speeds = []
    for action in range(5):
        _, after, *_ = env.step(jax.random.key(0), state, jnp.int32(action), prompt)
        speeds.append(np.array([after.velocity.vx, after.velocity.vy]))
    pushed = np.array(speeds[1:]) - speeds[0]
    forces = np.array([model.pushes.force(*push) for push in ((1, 0), (-1, 0), (0, 1), (0, -1))])
    # A nearly upright cart and pole answer pushes alike in every direction, to the square of a lean
    # of some hundredths.
    np.testing.assert_allclose(
        pushed / np.linalg.norm(pushed[0]), forces / np.linalg.norm(forces[0]), atol=5e-3
    )
