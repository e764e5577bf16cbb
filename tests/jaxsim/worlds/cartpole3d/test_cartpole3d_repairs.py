"""Options that mend what levels of the original do not do, off unless asked for."""

from dataclasses import fields, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.terms import repairs
from jaxsim.worlds.cartpole3d.terms.attraction import attraction
from jaxsim.worlds.cartpole3d.terms.wind import PROFILE
from jaxsim.worlds.cartpole3d.types import Params, Sphere, Vector
from tests.conftest import double_precision

REPAIRS = ["repairs/closed_room", "repairs/wind_on_pole", "repairs/pull_to_centroid"]
REACH, FLOOR, CEILING = 4.45, 0.45, 9.45  # m, where centres of nominal blocks may be
EDGE = 5e-5  # m, what is left of an overlap, and float32


@pytest.mark.parametrize("path", REPAIRS)
def test_repairs_are_off_unless_asked_for(path):
    row = cartpole3d.PARAMETERS[path]
    assert row.default == 0 and row.choices == (0, 1)
    assert jaxsim.make("CartPole3D-v0", {path: 0}) == jaxsim.make("CartPole3D-v0")
    for value in (2, -1, 0.5, True, "on", None):
        with pytest.raises(ValueError, match=f"{path}' is .*; it must be one of 0, 1"):
            jaxsim.make("CartPole3D-v0", {path: value})


def test_repairs_compile_only_what_they_need():
    def terms(level, *paths):
        return set(
            jaxsim.make("CartPole3D-v0", dict.fromkeys(paths, 1), level=level)[0].config.terms
        )

    room, pole, pull = REPAIRS
    assert terms(204, room) - terms(204) == {"closed_room"}
    assert terms(206, pole) - terms(206) == {"pole_wind"}
    assert terms(200, pole) == set()  # no wind, nothing to push with
    assert terms(205, pull) == terms(205)


# --- a room that no block leaves --------------------------------------------------------------


def test_blocks_are_put_back_to_the_face_they_passed():
    places = np.array([[5.2, -9.0, 3.0], [0.0, 4.45, -0.2], [-4.0, 4.0, 60.0], [1.0, 2.0, 3.0]])
    block = Sphere(Vector(*places.T), Vector(*places.T), np.ones(4, bool))
    closed = replace(Params(), closed_room=np.array([1.0, 1.0, 1.0, 1.0]))
    (held,) = repairs.keep_inside(closed, [block])
    expected = [[REACH, -REACH, 3.0], [0.0, REACH, FLOOR], [-4.0, 4.0, CEILING], [1.0, 2.0, 3.0]]
    np.testing.assert_allclose(np.transpose(held.p), expected, atol=EDGE)
    np.testing.assert_array_equal(held.v, block.v)
    (free,) = repairs.keep_inside(Params(), [block])
    np.testing.assert_array_equal(np.transpose(free.p), places.astype(np.float32))


@pytest.fixture(scope="module")
def blown_and_bounced():
    """Largest |x| or |y| and the heights of 204 hard and 206 hard, closed and as in the original.

    Four groups of lanes in one program, over 200 ticks whether or not the pole falls: (ticks,
    groups, lanes a group) of the outermost, the lowest and the highest block.
    """
    lanes, rows = 16, []
    for level in (204, 206):
        for closed in (1, 0):
            values = {"repairs/closed_room": closed}
            rows.append(jaxsim.make("CartPole3D-v0", values, level=level, difficulty="hard"))
    env = rows[0][0].covering(rows[2][0])
    params = jax.tree.map(
        lambda *leaves: jnp.repeat(jnp.stack(leaves), lanes), *(p for _, p in rows)
    )
    keys = jax.random.split(jax.random.key(2), 4 * lanes)

    def tick(state, number):
        _, state, *_ = env.step(keys, state, number % 5 + jnp.zeros(len(keys), jnp.int32), params)
        coordinates = [
            jnp.where(b.alive, c, 5.0 * (i == 2)) for b in state.blocks for i, c in enumerate(b.p)
        ]
        side = jnp.max(jnp.abs(jnp.stack(coordinates[0::3] + coordinates[1::3])), axis=0)
        heights = jnp.stack(coordinates[2::3])
        extremes = (side, jnp.min(heights, axis=0), jnp.max(heights, axis=0))
        return replace(state, done=jnp.zeros_like(state.done)), extremes

    start = jax.jit(env.start)(keys, params)
    extremes = jax.jit(lambda s: jax.lax.scan(tick, s, jnp.arange(201)))(start)[1]
    return [np.asarray(a).reshape(201, 4, lanes) for a in extremes]


@pytest.mark.slow
def test_no_block_leaves_a_closed_room(blown_and_bounced):
    side, low, high = (a[:, [0, 2]] for a in blown_and_bounced)
    assert side.max() <= REACH + EDGE
    assert low.min() >= FLOOR - EDGE
    assert high.max() <= CEILING + EDGE
    # They have not come to rest at a wall either: each lane's blocks are seen elsewhere later on.
    assert (np.ptp(side[100:], axis=0) > 0.05).all()


@pytest.mark.slow
def test_blocks_leave_the_room_of_the_original(blown_and_bounced):
    side, _, _ = blown_and_bounced
    assert side[:, 1].max() > 6
    assert side[:, 3].max() > 50


# --- wind on the pole -------------------------------------------------------------------------


@cache
def states(count=6):
    """Starts of level 206 with different winds and yaws, float64, and their parameters."""
    env, params = jaxsim.make(
        "CartPole3D-v0", {"repairs/wind_on_pole": 1}, level=206, dtype="float64"
    )
    state = jax.jit(env.start)(jax.random.split(jax.random.key(1), count), params)
    half = np.linspace(-1.0, 1.0, count)
    lean = 0.05
    pose = replace(
        state.pose,
        half_cos=jnp.cos(half),
        half_sin=jnp.sin(half),
        qx=state.pose.qx * 0 + np.sin(lean),
        qy=state.pose.qy * 0,
        qz=state.pose.qz * 0,
        qw=state.pose.qw * 0 + np.cos(lean),
    )
    return replace(state, pose=pose), params


@pytest.mark.parametrize("length", [0.1, 1.0, 3.3, 9.0])
def test_the_wind_on_the_pole_is_the_drag_of_a_cylinder(length):
    with double_precision():
        state, params = states()
        params = replace(params, pole_length=jnp.asarray(length))
        force = np.array(repairs.force_on_pole(params, state))
    # The integral by many thin slices of the profile, from the pole's lower to its upper end.
    z, dz = np.linspace(0.25, 0.25 + length, 200_001, retstep=True)
    u = 16.0 * PROFILE[np.minimum((20 * z).astype(int), 199)]
    expected = 0.5 * 1.225 * 1.2 * 0.06 * np.sum(u[:-1] ** 2) * dz
    direction = np.array([state.wind.x, state.wind.y])
    np.testing.assert_allclose(force[:2], expected * direction, rtol=1e-3)
    with double_precision():
        thin = replace(params, pole_drag=jnp.asarray(0.3))
        np.testing.assert_allclose(repairs.force_on_pole(thin, state), force / 4, rtol=1e-12)
    np.testing.assert_array_equal(force[2], 0)
    if length == 1.0:
        assert 3 < expected < 8  # tens of newtons a kilogram: the pole's own weight is 1 N


def test_the_wind_spares_the_pole_where_it_is_not_asked_to():
    with double_precision():
        state, params = states()
        off = replace(params, wind_on_pole=jnp.asarray(0.0))
        np.testing.assert_array_equal(repairs.force_on_pole(off, state), 0)
        after = repairs.blown(off, state)
        for field in fields(after):
            np.testing.assert_array_equal(
                getattr(after, field.name), getattr(state.velocity, field.name)
            )


def test_the_impulse_solves_newtons_equations_of_cart_and_pole():
    """Cart held on its plane, pole held at the pivot: all unknowns at once, in the world frame."""
    with double_precision():
        state, params = states()
        force = np.array(repairs.force_on_pole(params, state))
        after = repairs.blown(params, state)
        before = state.velocity
        d_cart = np.array([after.vx - before.vx, after.vy - before.vy])
        d_spin = np.array([after.wx - before.wx, after.wy - before.wy, after.wz - before.wz])
        assert np.array_equal(after.yaw_rate, before.yaw_rate)
        pose = jax.tree.map(np.asarray, state.pose)
    for lane in range(force.shape[1]):
        c, s = pose.cos[lane], pose.sin[lane]
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        # About x by the angle whose half has these sine and cosine.
        sin = 2 * pose.qx[lane] * pose.qw[lane]
        cos = 1 - 2 * pose.qx[lane] ** 2
        r = turn @ np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
        across, along = 0.066, 1.006
        inertia = 0.1 / 12 * np.diag([across**2 + along**2] * 2 + [2 * across**2])
        inertia = r @ inertia @ r.T
        arm = r @ np.array([0.0, 0.0, 1.0])
        cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        # Unknowns: pivot velocity (x, y), spin, impulse of the pivot on the pole.
        a = np.zeros((8, 8))
        b = np.zeros(8)
        impulse = 0.02 * force[:, lane]
        a[0:2, 0:2], a[0:2, 5:7] = np.eye(2), np.eye(2)  # cart, 1 kg
        a[2:5, 0:2] = 0.1 * np.eye(3)[:, :2]  # pole, 0.1 kg: v = pivot + spin x arm
        a[2:5, 2:5], a[2:5, 5:8], b[2:5] = -0.1 * cross, -np.eye(3), impulse
        a[5:8, 2:5], a[5:8, 5:8] = inertia, cross  # spin: the pivot's impulse acts at -arm
        solved = np.linalg.solve(a, b)
        np.testing.assert_allclose(turn[:2, :2] @ d_cart[:, lane], solved[:2], atol=1e-9)
        np.testing.assert_allclose(r @ d_spin[:, lane], solved[2:5], atol=1e-7)


# --- blocks pulled to their centroid ----------------------------------------------------------


def test_blocks_of_205_are_pulled_together_on_request():
    key = jax.random.key(3)
    ways = []
    for repaired in (0, 1):
        values = {"repairs/pull_to_centroid": repaired}
        env, params = jaxsim.make("CartPole3D-v0", values, level=205, difficulty="medium")
        state = jax.jit(env.start)(key, params)
        pulls = np.array(attraction(params, state.reported, state.blocks, 0.0))
        alive = np.array([b.alive for b in state.blocks])
        p = np.array([b.p for b in state.blocks])[alive]
        np.testing.assert_allclose(np.linalg.norm(pulls[alive], axis=1), 3, rtol=1e-5)
        ways.append(np.sum(pulls[alive] * (p.mean(axis=0) - p), axis=1))
    assert (ways[0] < 0).all() and (ways[1] > 0).all()


def test_the_pull_of_other_levels_stays():
    for values in ({"novelty/level": 105}, {"blocks/pull_centroid": 2.0}):
        _, plain = jaxsim.make("CartPole3D-v0", values)
        _, repaired = jaxsim.make("CartPole3D-v0", {**values, "repairs/pull_to_centroid": 1})
        assert plain == repaired
    _, params = jaxsim.make(
        "CartPole3D-v0", {"blocks/pull_centroid": -2.0, "repairs/pull_to_centroid": 1}
    )
    assert float(params.pull_centroid) == 2


# --- starts -----------------------------------------------------------------------------------


def arrays(state):
    return cartpole3d.state_to_arrays(state)


@pytest.mark.parametrize("level", [200, 203, 102])
def test_a_zeroed_start_stands_still_in_the_middle(level):
    kept = 0
    for seed in range(8):
        drawn = cartpole3d.wsu_start(seed, level, dtype="float32")
        zeroed = cartpole3d.wsu_start(seed, level, dtype="float32", start_zeroed_out=True)
        zeroed_arrays, drawn_arrays = arrays(zeroed), arrays(drawn)
        for name in ("cart_pos", "cart_vel", "pole_jw"):
            np.testing.assert_array_equal(zeroed_arrays[name], 0)
        np.testing.assert_array_equal(zeroed_arrays["pole_jq"], [0, 0, 0, 1])
        np.testing.assert_array_equal(zeroed.push, 0)
        assert np.abs(drawn_arrays["cart_pos"]).max() > 0 and float(drawn.push.x) != 0
        # The stream goes on as it does without the option, up to a block that is drawn again.
        np.testing.assert_array_equal(zeroed_arrays["block_alive"], drawn_arrays["block_alive"])
        clear = np.linalg.norm(zeroed_arrays["block_pos"][:, :2], axis=1) >= 1
        assert clear[zeroed_arrays["block_alive"]].all()
        kept += np.array_equal(zeroed_arrays["block_pos"], drawn_arrays["block_pos"])
    assert kept >= 4


@pytest.mark.slow
def test_a_zeroed_episode_begins_upright():
    state = cartpole3d.from_wsu_seed(3, dtype="float32", start_zeroed_out=True)
    observation = cartpole3d.observe(state)
    np.testing.assert_allclose(observation.pole_quaternion, [0, 0, 0, 1], atol=1e-7)
    np.testing.assert_allclose(observation.cart_velocity, 0, atol=1e-7)
    assert int(state.step) == 0
