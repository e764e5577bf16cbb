"""What is drawn for a start is drawn independently: no two numbers share their noise."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d.generate import start
from jaxsim.worlds.cartpole3d.types import Config, Params

LANES = 1024
LARGEST = 5 / np.sqrt(LANES)
"""Five standard deviations of the correlation of independent numbers."""


@pytest.fixture(scope="module")
def draw():
    """Compiled: states before the hidden tick, of parameters that are numbers only."""

    def drawn(config, **values):
        keys = jax.random.split(jax.random.key(3), LANES)
        one = jax.jit(partial(start.draw, config=config))
        return jax.device_get(one(keys, replace(Params(), **values)))

    return drawn


def assert_independent(columns):
    names = list(columns)
    correlation = np.corrcoef(np.stack([columns[name] for name in names]))
    for i, one in enumerate(names):
        for j, other in enumerate(names[:i]):
            assert abs(correlation[i, j]) < LARGEST, (one, other, correlation[i, j])


def of_episode(state):
    """The numbers of an episode, without its blocks."""
    pose, velocity = state.pose, state.velocity
    push = state.push
    columns = {"x": pose.x, "y": pose.y, "push x": push.x, "push y": push.y}
    columns |= {"qx": pose.qx, "qy": pose.qy, "qz": pose.qz, "wx": velocity.wx, "wy": velocity.wy}
    return columns | {"bounce": state.extra_bounce, "wind x": state.wind.x, "wind y": state.wind.y}


def test_numbers_of_an_episode_and_of_its_blocks(draw):
    always_four = {"block_count_min": 4.0, "block_count_max": 4.0}
    state = draw(Config(), bounce_spread=0.5, start_push=1.0, **always_four)
    columns = of_episode(state)
    for slot in (0, 1):
        block = state.blocks[slot]
        for axis, p, v in zip("xyz", block.p, block.v, strict=True):
            columns |= {f"p{axis} {slot}": p, f"|v{axis}| {slot}": np.abs(v)}
            columns[f"sign of v{axis} {slot}"] = np.sign(v)
    assert_independent(columns)
    # The wind blows from everywhere: a quarter each, give or take five standard deviations.
    quarters = 2 * (state.wind.x > 0) + (state.wind.y > 0)
    np.testing.assert_allclose(np.bincount(quarters) / LANES, [0.25] * 4, atol=0.068)


def test_the_number_of_blocks(draw):
    state = draw(Config(), bounce_spread=0.5)
    number = sum(block.alive.astype(int) for block in state.blocks)
    shares = [np.mean(number == n) for n in range(6)]
    # A third each, give or take five standard deviations.
    np.testing.assert_allclose(shares, [0, 0, 1 / 3, 1 / 3, 1 / 3, 0], atol=0.075)
    assert_independent({"number": number, **of_episode(state)})


def test_whether_a_block_is_aimed_says_nothing_of_its_speed(draw):
    values = {"aim_share": 0.25, "aim_speed_min": 2.0, "aim_speed_max": 6.0}
    state = draw(Config(), block_count_min=4.0, **values)
    v = np.stack([np.stack(block.v) for block in state.blocks], axis=1).reshape(3, -1)
    speed = np.linalg.norm(v, axis=0)
    aimed = speed < 7.0  # others have 6 m/s along each axis
    np.testing.assert_allclose(aimed.mean(), 0.25, atol=0.04)
    assert 2.0 <= speed[aimed].min() < 2.1 and 5.9 < speed[aimed].max() <= 6.0
    np.testing.assert_allclose(speed[aimed].mean(), 4.0, atol=0.2)


def test_numbers_of_a_line(draw):
    state = draw(Config(terms=("lines",)), line_near=0.2, line_far=3.0, block_count_min=4.0)
    columns = {"x": state.pose.x, "y": state.pose.y, "qx": state.pose.qx}
    for slot in (0, 1):
        block = state.blocks[slot]
        assert (block.rail.x**2 + block.rail.y**2 > 0.99).all()
        speed = block.rail.x * block.v.x + block.rail.y * block.v.y
        columns |= {f"|v| {slot}": np.abs(speed), f"sign of v {slot}": np.sign(speed)}
        columns[f"height {slot}"] = block.p.z + block.rail.drop
        columns[f"angle {slot}"] = np.arctan2(block.rail.y, block.rail.x)
    assert_independent(columns)
