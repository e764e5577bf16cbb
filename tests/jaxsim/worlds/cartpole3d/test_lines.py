"""Blocks on lines, level 202."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d import tick as tick_module
from jaxsim.worlds.cartpole3d.blocks import placement
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.generate import start
from jaxsim.worlds.cartpole3d.types import Rail, Sphere, Vector

BANDS = {"easy": (3.0, 4.0), "medium": (2.0, 3.0), "hard": (1.5, 2.0)}
LANES, LANES_OF_PAIRS = 2000, 256
ROUNDING = 2e-4  # four times what the two programs differed by, of numbers up to 10 in float32


@pytest.fixture(scope="module", params=["stock", "tbplanar"])
def drawn(request):
    """Starts of level 202 hard: cart, first pole number, angle of the line, place along it."""
    env, params = jaxsim.make("CartPole3D-v0", level=202, difficulty="hard", engine=request.param)
    state = jax.jit(env.start)(jax.random.split(jax.random.key(1), LANES), params)
    return request.param, state


def test_lines_pass_the_cart_in_their_band(drawn):
    _, state = drawn
    block = state.blocks[0]
    # The drawn angle is half the tangent of what the line turned out to be.
    rise = -np.asarray(block.rail.drop)
    angle = np.sqrt(rise)
    place = -np.asarray(block.rail.lag) / rise
    base = [
        np.asarray(p - r * f)
        for p, r, f in (
            (block.p.x, block.rail.x, place * (1 + rise)),
            (block.p.y, block.rail.y, place * (1 + rise)),
        )
    ]
    dx, dy = base[0] - np.asarray(state.pose.x), base[1] - np.asarray(state.pose.y)
    distance = np.abs(np.cos(angle) * dy - np.sin(angle) * dx)
    near, far = BANDS["hard"]
    well_drawn = rise > 0.05  # else the place cannot be told from the lag
    assert well_drawn.mean() > 0.9
    tolerance = 2e-3
    assert distance[well_drawn].min() > near - tolerance
    assert distance[well_drawn].max() < far + tolerance
    direction = 2 * np.arctan(angle)
    np.testing.assert_allclose(block.rail.x, np.cos(direction), atol=1e-4)


def test_whoever_waits_for_a_fit_draws_as_if_alone():
    """Many attempts in small groups find what one attempt after the other finds."""
    k = rng.fold(rng.words(jax.random.key(3)), jnp.arange(500))
    rare = jnp.linspace(0.001, 1.0, 500)  # share that fits

    def draw(given, attempt):
        share = rng.uniform(given[0], attempt)
        return Vector(share, 2 * share, 3 * share)

    def fits(given, v):
        return v.x < given[1]

    packed = jax.jit(lambda given: placement.rarely_fitting(draw, fits, 300, given))((k, rare))
    plain, attempts = placement.redrawn(
        lambda attempt: draw((k, rare), attempt), lambda v: fits((k, rare), v), 300
    )
    np.testing.assert_array_equal(packed, plain)
    assert attempts.max() > 50
    assert np.any(packed[0] > rare)  # the last drawn, where 300 attempts are not enough


def test_only_the_patched_engine_moves_places_to_the_ends(drawn):
    engine, state = drawn
    block = state.blocks[0]
    rise = -np.asarray(block.rail.drop)
    place = (-np.asarray(block.rail.lag) / rise)[rise > 0.05]
    at_ends = np.abs(np.abs(place) - 1) < 1e-2
    assert at_ends.mean() > 0.9 if engine == "tbplanar" else at_ends.mean() < 0.1


@pytest.mark.parametrize("engine", ["stock", "tbplanar"])
def test_joint_positions_of_both_engines(engine):
    expected = {"stock": 3.0, "tbplanar": 3.0 / np.sqrt(9.0 + 0.01**2)}
    assert start.joint_position(3.0, 0.01, engine) == pytest.approx(expected[engine], abs=1e-15)


@pytest.fixture(scope="module")
def easy():
    """Environment, parameters, compiled start and step of level 202 easy."""
    env, params = jaxsim.make("CartPole3D-v0", level=202, difficulty="easy")
    return env, params, jax.jit(env.start), jax.jit(env.step)


def test_a_block_on_a_line_neither_falls_nor_slows_down(easy):
    """Free ticks: speed stays, height stays, and what is seen is a tick old."""
    _, params, start, step = easy
    keys = jax.random.split(jax.random.key(5), 256)
    state = start(keys, params)
    _, state, *_ = step(keys, state, jnp.zeros(256, int), params)
    observation, after, *_ = step(keys, state, jnp.zeros(256, int), params)
    free = 0
    for i, (a, b) in enumerate(zip(state.blocks, after.blocks, strict=True)):
        same = np.asarray(a.alive & (a.v.x == b.v.x) & (a.v.y == b.v.y))
        free += same.sum()
        assert np.all(np.asarray(b.v.z) == 0)
        assert np.all(np.asarray(a.p.z == b.p.z))
        speed = np.hypot(np.asarray(b.v.x), np.asarray(b.v.y))
        moved = np.hypot(np.asarray(b.p.x - a.p.x), np.asarray(b.p.y - a.p.y))
        np.testing.assert_allclose(moved[same], 0.02 * speed[same], atol=1e-4)
        position = observation.block_position[i]
        for c, was in zip(position, a.p, strict=True):
            np.testing.assert_allclose(c, np.where(a.alive, was, 0.0), atol=1e-4)
        assert np.all(np.asarray(observation.block_velocity[i].x) == 0)
    assert free > 300


def test_the_first_observation_is_further_out(easy):
    """The original normalises a line's direction only in its hidden tick."""
    _, params, start, step = easy
    keys = jax.random.split(jax.random.key(2), 256)
    starts = start(keys, params)
    observation, state, *_ = step(keys, starts, jnp.zeros(256, int), params)
    for block, was, position in zip(
        state.blocks, starts.blocks, observation.block_position, strict=True
    ):
        alive = np.asarray(block.alive)
        for c, at in zip(position, was.p, strict=True):
            np.testing.assert_allclose(
                np.asarray(c)[alive], np.asarray(at)[alive], rtol=1e-4, atol=1e-3
            )
        higher = np.asarray(position.z - block.p.z)[alive]
        np.testing.assert_allclose(higher, -np.asarray(was.rail.drop)[alive], rtol=1e-4, atol=1e-4)
        assert np.all(np.asarray(block.p.z)[alive] <= 2.0 + 1e-5)


def test_a_hit_beside_the_floor_is_resolved_in_one_pass(easy):
    """Bullet overlooks what is left to correct for a block on the floor at the side of the cart.

    The numbers are those of PyBullet 3.2.7. Iterated to the end, the cart would get 5.3 m/s.
    """
    env, params, _, step = easy
    arrays = {
        "cart_pos": [-1.27517565, 0.76759725],
        "cart_vel": [0.45798009, -0.29253499],
        "cart_yaw": 0.0,
        "cart_yaw_rate": 0.0,
        "pole_jq": [-1.99553226e-3, -2.05239495e-3, -8.11244450e-4, 0.999995574],
        "pole_jw": [3.95502484e-2, 3.96251978e-2, 0.0],
        "block_pos": [[-1.11194378, -0.13815294, 0.1898662]],
        "block_vel": [[5.47302091, 9.64208054, 0.0]],
        "tick": 147,
    }
    state = cartpole3d.state_from_arrays(arrays, env.config)
    rail = Rail(*map(jnp.float32, (0.49363886, 0.8696672, 0.0, 0.0)))
    state = replace(state, blocks=(replace(state.blocks[0], rail=rail), *state.blocks[1:]))
    lanes = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (256, *jnp.shape(leaf))), state)
    keys = jax.random.split(jax.random.key(5), 256)
    _, after, *_ = step(keys, lanes, jnp.ones(256, int), params)
    actual = cartpole3d.state_to_arrays(after)
    np.testing.assert_allclose(actual["cart_vel"][0], [0.37696894, 5.64881612], atol=3e-3)
    np.testing.assert_allclose(actual["block_vel"][0, 0], [2.88316324, 5.07940543, 0], atol=3e-3)


def test_only_the_component_along_a_line_acts():
    rail = Rail(*map(jnp.asarray, (0.6, 0.8, 0.0, 0.0)))
    free = Rail(*map(jnp.asarray, (0.0, 0.0, 0.0, 0.0)))
    push = Vector(*map(jnp.asarray, (1.0, 2.0, 3.0)))
    np.testing.assert_allclose(jnp.stack(lines.along(rail, push)), [1.32, 1.76, 0.0], rtol=1e-6)
    assert lines.along(free, push) == push
    block = Sphere(push, push, jnp.asarray(True), rail)
    glided = lines.glide(block, Vector(*map(jnp.asarray, (3.0, 4.0, 0.0))))
    np.testing.assert_allclose(float(glided.rail.lag), 0.1, rtol=1e-6)


@pytest.mark.parametrize("normal", [(0.6, 0.0, 0.8), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)])
def test_tangents_span_the_contact_plane(normal):
    n = np.array(normal)
    p, q = map(np.asarray, rows_of.tangents(jnp.asarray(n)))
    frame = np.stack([n, p, q])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-6)


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="engine is 'mujoco'; it must be 'stock' or 'tbplanar'"):
        jaxsim.make("CartPole3D-v0", engine="mujoco")
    with pytest.raises(ValueError, match="engine is 'mujoco'"):
        cartpole3d.wsu_start(0, 202, engine="mujoco")


def test_a_contact_by_itself_is_resolved_as_among_all(easy):
    """Two implementations of friction: three rows of one contact, and rows of many contacts.

    Where one contact is all there is, they iterate alike and stop after equally many passes.
    """
    _, _, start, step = easy
    params = jaxsim.make("CartPole3D-v0", level=202, difficulty="hard")[1]
    table = jax.tree.map(lambda leaf: jnp.full(LANES_OF_PAIRS, leaf), params)
    running = jnp.ones(LANES_OF_PAIRS, bool)
    none = Vector(*(jnp.zeros(LANES_OF_PAIRS) for _ in range(3)))

    def advanced(version, state):
        moving = (state.pose, state.velocity, state.blocks)
        return version(table, moving, (none, None), running)

    full = jax.jit(partial(advanced, tick_module._full))
    single = jax.jit(partial(advanced, tick_module.single_tick))
    free = jax.jit(partial(advanced, tick_module.free_tick))
    state = start(jax.random.split(jax.random.key(3), LANES_OF_PAIRS), params)
    contacts = 0
    for t in range(50):
        keys = jax.random.split(jax.random.key(t), LANES_OF_PAIRS)
        _, state, *_ = step(keys, state, jnp.zeros(LANES_OF_PAIRS, int), params)
        moved = single(state)
        alone = np.asarray(moved.right & ~free(state).right & ~state.done)
        contacts += alone.sum()
        for a, b in zip(jax.tree.leaves(moved.moving), jax.tree.leaves(full(state)), strict=True):
            np.testing.assert_allclose(np.asarray(a)[alone], np.asarray(b)[alone], atol=ROUNDING)
    assert contacts > 100
