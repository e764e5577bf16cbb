"""Parts of a tick on states made by hand, in closed form."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng
from jaxsim.worlds.cartpole3d.blocks import spawn
from jaxsim.worlds.cartpole3d.generate import start
from jaxsim.worlds.cartpole3d.terms import attraction, noise, wind
from jaxsim.worlds.cartpole3d.types import Params, Vector

KEY = rng.words(jax.random.key(0))


@pytest.fixture(scope="module")
def world():
    """A start of a world with room for more blocks, whose third tick brings one."""
    values = {"spawn/period": 3, "spawn/speed_min": 3.0, "spawn/speed_max": 5.0}
    env, params = jaxsim.make("CartPole3D-v0", values, max_steps=8)
    return jax.jit(env.start)(jax.random.key(1), params), params, env


def number(state):
    return int(sum(np.sum(block.alive) for block in state.blocks))


# Blocks that appear -------------------------------------------------------------------------------


def test_a_block_appears_in_every_third_tick_and_the_hidden_one_is_the_first(world):
    state, params, _ = world
    supplied = jax.jit(spawn.supply)
    count = number(state)
    for step in range(-1, 9):
        after = supplied(params, KEY, replace(state, step=jnp.int32(step)))
        due = step in (1, 4, 7)
        assert number(after) == count + due, step


def test_a_block_without_a_place_forgets_the_way_and_does_not_appear(world):
    state, _, _ = world
    heading = Vector(*(jnp.float32(c) for c in (1.0, 2.0, 0.0)))
    state = replace(state, supply=replace_heading(state.supply, heading))
    p = v = Vector(*(jnp.float32(c) for c in (1.0, 1.0, 5.0)))
    for due, placed, more, way in (
        (True, True, 1, 0.0),
        (True, False, 0, 0.0),
        (False, True, 0, 1.0),
        (False, False, 0, 1.0),
    ):
        after = spawn.add_block(state, p, v, jnp.bool_(due), jnp.bool_(placed))
        assert number(after) == number(state) + more
        assert [float(c) for c in after.supply.heading] == [way, 2 * way, 0.0]


def replace_heading(supply, heading):
    return type(supply)(supply.base, heading)


# Lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [-1.2, 0.0, 0.3, 1.0])
def test_a_line_points_to_twice_the_arc_tangent_of_what_was_drawn(angle):
    base = Vector(*(jnp.float32(c) for c in (0.5, -1.0, 2.0)))
    block = start.on_line(base, jnp.float32(angle), jnp.float32(1.5), jnp.float32(2.0))
    square = 1 + angle * angle
    way = np.array([(1 - angle * angle) / square, 2 * angle / square])
    np.testing.assert_allclose([block.rail.x, block.rail.y], way, atol=1e-6)
    np.testing.assert_allclose([block.v.x, block.v.y, block.v.z], [*(2 * way), 0], atol=1e-6)
    # In the hidden tick everything stands further out; the rail knows the way back.
    far = np.array([0.5, -1.0]) + 1.5 * square * way
    np.testing.assert_allclose([block.p.x, block.p.y], far, atol=1e-5)
    np.testing.assert_allclose(float(block.p.z), 2 + square, atol=1e-6)
    np.testing.assert_allclose(float(block.rail.lag), -1.5 * angle * angle, atol=1e-6)


# Wind ---------------------------------------------------------------------------------------------


def yawed(angle):
    return SimpleNamespace(cos=jnp.float32(np.cos(angle)), sin=jnp.float32(np.sin(angle)))


def blown(reported, pose=0.0, way=0.6):
    """Force on a cart, N, (2,); the wind comes from an angle."""
    towards = Vector(jnp.float32(np.sin(way)), jnp.float32(np.cos(way)), jnp.float32(0))
    state = SimpleNamespace(wind=towards, reported=yawed(reported), pose=yawed(pose))
    force = wind.on_cart(replace(Params(), wind_speed=18.0), state)
    assert float(force.z) == 0
    return np.array([force.x, force.y])


def test_the_wind_on_a_cart_follows_its_reported_yaw():
    fx, _ = blown(0.0)
    fy, _ = blown(np.pi / 2)
    assert fx > 0 and fy > 0
    ratio = np.sin(0.6) ** 2 / np.cos(0.6) ** 2
    assert fx / fy == pytest.approx(ratio, rel=1e-4)
    for yaw in (0.3, 1.0, -2.0):
        cos, sin = np.cos(yaw), np.sin(yaw)
        # The yaw is applied twice over: what is left points almost along x.
        expected = [fx * cos * cos + fy * sin * sin, (fx - fy) * cos * sin]
        np.testing.assert_allclose(blown(yaw), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(blown(yaw, pose=0.7), blown(yaw))


def test_the_wind_rises_to_the_middle_of_the_room_and_falls_likewise():
    profile = wind.PROFILE
    assert profile.shape == (wind.CELLS,) and profile[0] == 0 and profile.max() == 1
    # Six numbers of the original differ from their partners by one or two in the last digit.
    np.testing.assert_allclose(profile, profile[::-1], rtol=0, atol=3e-12)
    rises = np.diff(profile[: wind.CELLS // 2])
    assert (rises >= 0).all()
    assert (np.diff(rises) <= 2e-12).all()  # concave, but for the same digit


def test_the_wind_has_the_sizes_of_the_original():
    """At 20 m/s along x: the lowest four cells push the cart, half a metre of air each block."""
    blowing = Vector(jnp.float32(1.0), jnp.float32(0.0), jnp.float32(0.0))
    block = SimpleNamespace(p=Vector(*(jnp.float32(c) for c in (0.0, 0.0, 5.0))))
    upright = SimpleNamespace(cos=jnp.float32(1.0), sin=jnp.float32(0.0))
    state = SimpleNamespace(wind=blowing, reported=upright, blocks=[block])
    params = replace(Params(), wind_speed=jnp.float32(20.0))
    profile = 0.292659820067**2 + 0.408892724327**2 + 0.470367836002**2
    force = wind.on_cart(params, state)
    # Half the density, the area across, the drag coefficient, the square of the speed.
    np.testing.assert_allclose(force.x, 0.5 * 1.225 * 0.05 * 2 * profile * 20**2, rtol=1e-5)
    assert float(force.y) == float(force.z) == 0
    (force,) = wind.on_blocks(params, state)
    squares = np.sum(np.square(wind.PROFILE[95:105]))  # from 4.75 m to 5.25 m, by 0.05 m
    drag = 0.5 * 1.225 * 0.5 * np.pi * 0.25 * 0.5
    np.testing.assert_allclose(force.x, -drag * squares * 20**2, rtol=1e-5)
    assert float(force.y) == float(force.z) == 0


# Attraction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_forces_of_attraction_are_those_of_the_parameters(share):
    """To the centroid by what is drawn as well, to the cart half a metre up, to the origin."""
    places = [(3.0, 0.0, 0.5), (-1.0, 0.0, 0.5)]
    blocks = [
        SimpleNamespace(p=Vector(*map(jnp.float32, place)), alive=jnp.asarray(True))
        for place in places
    ]
    cart = SimpleNamespace(x=jnp.float32(3.0), y=jnp.float32(4.0))

    def forces(**values):
        params = replace(Params(), **values)
        forces_ = attraction.attraction(params, cart, blocks, jnp.float32(share))
        return [[float(c) for c in force] for force in forces_]

    drawn = forces(pull_centroid=2.0, pull_centroid_random=4.0)
    size = 2.0 + 4.0 * share
    np.testing.assert_allclose(drawn, [[-size, 0, 0], [size, 0, 0]], atol=1e-5)
    np.testing.assert_allclose(
        forces(pull_cart=10.0), [[0, 10, 0], [10 / 2**0.5, 10 / 2**0.5, 0]], atol=1e-5
    )
    to_origin = [[-5 * c / np.hypot(place[0], 0.5) for c in place] for place in places]
    np.testing.assert_allclose(forces(pull_origin=5.0), to_origin, atol=1e-5)


def test_the_random_part_of_an_attraction_is_drawn_in_every_tick():
    values = {"blocks/pull_centroid_random": 40.0, "blocks/count_min": 4}
    env, params = jaxsim.make("CartPole3D-v0", values)
    state = jax.jit(env.start)(jax.random.key(1), params)
    step = jax.jit(env.quick_step)  # contacts have no part in it
    first, again, other = (
        step(jax.random.key(n), state, 0, params)[0][1].blocks[0].v.x for n in (1, 1, 2)
    )
    assert float(first) == float(again) != float(other)


# Sensors ------------------------------------------------------------------------------------------


def test_every_reading_has_noise_of_its_own():
    values = {f"sensors/noise_{name}": 0.5 for name in ("position", "velocity", "rate", "angle")}
    env, params = jaxsim.make("CartPole3D-v0", values)
    quiet, _ = jaxsim.make("CartPole3D-v0")
    state = jax.jit(env.start)(jax.random.key(1), params)
    exact = quiet.observe(replace(state, sensors=None))
    errors = jax.tree.map(
        lambda read, true: np.float64(read) - np.float64(true),
        noise.disturb(exact, state.sensors, jnp.int32(3)),
        exact,
    )
    cart = [*errors.cart_position[:2], *errors.cart_velocity[:2], *errors.pole_velocity]
    blocks = [
        c
        for p, v in zip(errors.block_position, errors.block_velocity, strict=True)
        for c in (*p, *v)
    ]
    offsets = np.array([*cart, *blocks])
    assert np.all(offsets != 0)
    # The same draw anywhere would leave a difference of rounding only.
    apart = np.abs(offsets[:, None] - offsets) + np.eye(len(offsets))
    assert apart.min() > 1e-4
    again = noise.disturb(exact, state.sensors, jnp.int32(4))
    assert float(again.cart_position.x) != float(exact.cart_position.x) + errors.cart_position.x


def test_an_episode_with_an_extra_bounce_has_it_at_walls_and_between_blocks(world, monkeypatch):
    from jaxsim.worlds.cartpole3d import tick
    from jaxsim.worlds.cartpole3d.types import Config

    restitution = {}

    def move(params, moving, forces, active, leaving):
        restitution.update(wall=params.restitution_wall, block=params.restitution_block)
        return tick.Moved(moving, active, tick.EVERY)

    env, params = jaxsim.make("CartPole3D-v0", level=204, difficulty="easy")
    state = jax.jit(env.start)(jax.random.key(1), params)
    tick.advance(
        params, Config(terms=("bounce",)), KEY, state, Vector(0.0, 0.0, 0.0), jnp.bool_(True), move
    )
    extra = float(state.extra_bounce)
    assert 0 < extra <= 0.1
    assert float(restitution["wall"]) == pytest.approx(1.05 + extra)
    assert float(restitution["block"]) == pytest.approx(1.05 + extra)
