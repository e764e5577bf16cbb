"""Whatever is random in an episode has a number of its own."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng
from jaxsim.worlds.cartpole3d.generate import start
from jaxsim.worlds.cartpole3d.levels import params_of
from jaxsim.worlds.cartpole3d.types import Config, Sphere, Vector
from tests.jaxsim.draws import assert_each_once, drawn

EVERYTHING = {
    "walls/bounce_spread": 0.5,
    "sensors/noise_position": 0.1,
    "sensors/noise_velocity": 0.1,
    "sensors/noise_angle": 0.1,
    "sensors/noise_rate": 0.1,
    "wind/speed": 3.0,
    "blocks/count_min": 1,
    "blocks/count_max": 2,
    "blocks/aim_share": 0.5,
    "blocks/aim_speed_min": 2.0,
    "blocks/aim_speed_max": 3.0,
    "blocks/pull_centroid_random": 5.0,
    "spawn/period": 99,
    "spawn/speed_min": 1.0,
    "spawn/speed_max": 2.0,
}
SPAWNS = 97
"""Number of the step before a block appears."""
POINT = range(11, 15)
"""Slots of the point that blocks gather at and of their speed."""


@pytest.fixture(scope="module")
def world():
    return jaxsim.make("CartPole3D-v0", EVERYTHING)


def test_no_number_is_drawn_twice(world):
    env, params = world
    state, first = drawn(lambda: env.start(jax.random.key(3), params))
    state = replace(state, step=np.int32(SPAWNS))
    _, then = drawn(lambda: env.step(jax.random.key(4), state, np.int32(1), params))
    assert_each_once([*first, *then], least=101)


def test_blocks_gather_at_a_point_and_a_speed_that_are_drawn(world):
    """Each of the four numbers changes where blocks go, and how fast."""
    env, params = world
    params = replace(params, gather_speed_max=np.float32(2.0))

    def started(change=None):
        state, draws = drawn(lambda: env.start(jax.random.key(3), params), change)
        return [np.asarray(leaf) for block in state.blocks for leaf in block.v], draws

    usual, draws = started()
    point = [place for place, draw in enumerate(draws) if draw[0, 2] in POINT]
    assert len(point) == len(POINT)
    for place in point:
        assert not all(map(np.array_equal, started(place)[0], usual))


def test_no_attempt_at_a_line_or_a_place_on_it_draws_for_another(monkeypatch):
    """Three attempts each, for all blocks of a lane."""

    def tried(draw, fits, most, inputs):
        for attempt in (0, 1, most - 1):
            vector = draw(inputs, attempt)
        return vector

    monkeypatch.setattr(start, "rarely_fitting", tried)
    params, number = params_of(208, "hard", np.float32), 2
    config, zero = Config(max_blocks=number, terms=("lines",)), jnp.zeros(())
    rest = Vector(*(jnp.zeros(number) for _ in range(3)))
    free = Sphere(rest, rest, jnp.ones(number, bool))
    key = rng.words(jax.random.key(2))
    _, draws = drawn(lambda: start._draw_lines(key, free, zero, zero, zero, params, config))
    # Height, speed and sign; three numbers of a line and one of a place in each attempt.
    assert_each_once(draws, least=number * (3 + 3 * (3 + 1)))
