"""Sensors that err, and pushes that are turned or scaled."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxsim
from jaxsim import spaces
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.env import _force
from jaxsim.worlds.cartpole3d.terms import actions, noise
from jaxsim.worlds.cartpole3d.types import Params

LANES = 4096
KEYS = jax.random.split(jax.random.key(3), LANES)
NOISE = {
    "sensors/noise_position": 0.3,
    "sensors/noise_velocity": 0.7,
    "sensors/noise_angle": 0.05,
    "sensors/noise_rate": 2.0,
}
STEPS = {
    "sensors/step_position": 0.25,
    "sensors/step_velocity": 0.5,
    "sensors/step_angle": 0.02,
    "sensors/step_rate": 0.125,
}


def reading(values, **changes):
    """(state, observation) of many starts under parameters by path."""
    env, params = jaxsim.make("CartPole3D-v0", values)
    state = replace(jax.jit(env.start)(KEYS, params), **changes)
    return state, jax.device_get(jax.jit(env.observe)(state))


@pytest.fixture(scope="module")
def exact():
    return reading({})[1]


@pytest.fixture(scope="module")
def noisy():
    return reading(NOISE)


@pytest.fixture(scope="module")
def stepped():
    return reading(STEPS)[1]


def turn(read, exact):
    """(L, 3) rotation vectors, world frame, from the exact to the read orientation of the pole."""
    after, before = (
        Rotation.from_quat(np.stack(o.pole_quaternion, axis=-1)) for o in (read, exact)
    )
    return (after * before.inv()).as_rotvec()


def errors(read, exact):
    """Errors of each kind, as (samples, axes)."""

    def difference(name, parts=slice(None)):
        return (
            np.stack(getattr(read, name), -1)[..., parts]
            - np.stack(getattr(exact, name), -1)[..., parts]
        )

    alive = np.stack(exact.block_alive)
    differences = {
        kind: np.stack(getattr(read, f"block_{kind}")) - np.stack(getattr(exact, f"block_{kind}"))
        for kind in ("position", "velocity")
    }
    blocks = {kind: np.moveaxis(e, 1, -1)[alive] for kind, e in differences.items()}
    return {
        "cart position": difference("cart_position", slice(2)),
        "cart velocity": difference("cart_velocity", slice(2)),
        "block position": blocks["position"],
        "block velocity": blocks["velocity"],
        "angle": turn(read, exact),
        "rate": difference("pole_velocity"),
    }


SIZES = {
    "cart position": 0.3,
    "cart velocity": 0.7,
    "block position": 0.3,
    "block velocity": 0.7,
    "angle": 0.05,
    "rate": 2.0,
}


@pytest.mark.parametrize("kind", list(SIZES))
def test_noise_has_the_size_that_was_asked_for(noisy, exact, kind):
    samples, size = errors(noisy[1], exact)[kind], SIZES[kind]
    count = len(samples)
    # Five standard errors of a mean, of a deviation, and of a correlation between axes.
    assert np.abs(samples.mean(axis=0)).max() < 5 * size / np.sqrt(count)
    assert np.abs(samples.std(axis=0) / size - 1).max() < 5 / np.sqrt(2 * count)
    axes = np.corrcoef(samples.T)[np.triu_indices(samples.shape[1], 1)]
    assert np.abs(axes).max() < 5 / np.sqrt(count)


def test_readings_of_one_tick_err_independently(noisy, exact):
    by_kind = errors(noisy[1], exact)
    columns = [by_kind[kind] for kind in SIZES if "block" not in kind]
    correlation = np.corrcoef(np.concatenate(columns, axis=1).T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 5.5 / np.sqrt(LANES)


def test_what_is_no_reading_has_no_noise(noisy, exact):
    _, read = noisy
    for name in ("cart_position", "cart_velocity"):
        np.testing.assert_array_equal(getattr(read, name).z, 0)
    np.testing.assert_array_equal(read.block_alive, exact.block_alive)
    gone = ~np.stack(exact.block_alive)
    assert gone.any()
    for name in ("block_position", "block_velocity"):
        np.testing.assert_array_equal(np.moveaxis(np.stack(getattr(read, name)), 1, -1)[gone], 0)


@pytest.mark.parametrize("values", [NOISE, STEPS, NOISE | STEPS], ids=["noise", "steps", "both"])
def test_orientations_keep_unit_length(values):
    q = np.stack(reading(values)[1].pole_quaternion)
    np.testing.assert_allclose(np.linalg.norm(q, axis=0), 1, atol=1e-6)


def test_a_state_always_reads_the_same_and_a_later_one_otherwise(noisy):
    state, read = noisy
    env = jaxsim.make("CartPole3D-v0", NOISE)[0]
    observe = jax.jit(env.observe)
    again = observe(state)
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (read, again)), strict=True)
    )
    later = observe(replace(state, step=state.step + 1))
    assert (np.asarray(later.cart_position.x) != read.cart_position.x).all()
    for lane in (0, 5, LANES - 1):
        alone = observe(jax.tree.map(lambda leaf, at=lane: leaf[at], state))
        batch = jax.tree.map(lambda leaf, at=lane: leaf[at], read)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), alone, batch)


def test_episodes_have_noise_of_their_own(noisy, exact):
    first = errors(noisy[1], exact)["cart position"][:, 0]
    assert len(np.unique(first)) > 0.99 * LANES


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("cart_position", 0.25),
        ("cart_velocity", 0.5),
        ("block_position", 0.25),
        ("block_velocity", 0.5),
        ("pole_velocity", 0.125),
    ],
)
def test_readings_are_the_nearest_multiples(stepped, exact, name, step):
    read, true = (np.stack(jax.tree.leaves(getattr(o, name))) for o in (stepped, exact))
    np.testing.assert_array_equal(read % step, 0)
    assert np.abs(read - true).max() <= step / 2 + 1e-6
    if name.startswith("block"):
        assert len(np.unique(read)) > 4


def test_orientations_are_rounded_by_angle():
    half = np.linspace(-1, 1, LANES)  # yaw of -2 to 2 rad, so that many steps are passed
    state = reading(STEPS)[0]
    pose = replace(state.reported, half_cos=jnp.cos(half), half_sin=jnp.sin(half))
    turned = replace(state, reported=pose)
    read = jax.jit(cartpole3d.observe)(turned)
    clean = cartpole3d.observe(replace(turned, sensors=None))
    vector, true = (
        Rotation.from_quat(np.stack(o.pole_quaternion, -1)).as_rotvec() for o in (read, clean)
    )
    np.testing.assert_allclose(vector / 0.02, np.round(vector / 0.02), atol=2e-4)
    assert np.abs(vector - true).max() <= 0.01 + 1e-5
    assert len(np.unique(np.round(vector[:, 2] / 0.02))) >= 201


def test_an_upright_pole_is_reported_upright():
    values = STEPS | {"start/lean": 0.0}
    q = reading(values)[1].pole_quaternion
    np.testing.assert_array_equal(np.stack(q)[:3], 0)
    np.testing.assert_array_equal(q[3], 1)


def test_a_lane_without_errors_reads_exactly_in_company(exact):
    env, loud = jaxsim.make("CartPole3D-v0", NOISE | STEPS)
    quiet = jaxsim.make("CartPole3D-v0")[1]
    wide = jax.tree.map(lambda a, b: jnp.stack([a, b])[jnp.arange(LANES) % 2], loud, quiet)
    read = jax.jit(env.observe)(jax.jit(env.start)(KEYS, wide))
    for a, b in zip(jax.tree.leaves(read), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(np.asarray(a)[1::2], b[1::2], rtol=1e-6)
    assert np.abs(np.asarray(read.cart_position.x) - exact.cart_position.x)[::2].mean() > 0.1


def test_bounds_hold_for_the_largest_noise_and_steps():
    values = {path: cartpole3d.PARAMETERS[path].high for path in NOISE | STEPS}
    env, params = jaxsim.make("CartPole3D-v0", values)
    space = spaces.observation_space(env)
    vector = spaces.flatten(env, jax.jit(env.observe)(jax.jit(env.start)(KEYS, params)))
    assert bool(space.contains(vector).all())
    nominal = spaces.observation_space(jaxsim.make("CartPole3D-v0")[0])
    # A gain and an offset of up to 10 count too.
    assert space.high[0] == pytest.approx(10 * nominal.high[0] + 10 + 10 * 5.5 + 5)


@pytest.mark.parametrize("path", list(NOISE | STEPS))
def test_each_size_asks_for_the_term(path):
    assert jaxsim.make("CartPole3D-v0", {path: 0.01})[0].config.terms == ("noise",)
    assert jaxsim.make("CartPole3D-v0", {path: 0.0})[0].config.terms == ()
    with pytest.raises(ValueError, match=f"{path}.* is -0.1; it must be a number from 0 to"):
        jaxsim.make("CartPole3D-v0", {path: -0.1})


def test_the_nominal_state_has_no_sensors():
    env, params = jaxsim.make("CartPole3D-v0")
    assert jax.eval_shape(env.start, KEYS, params).sensors is None


# --- in play ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    """Two small environments, alike but for their sensors, from one start on."""
    small = {"blocks/count_min": 1, "blocks/count_max": 1}
    start = cartpole3d.wsu_start(4, dtype="float32")
    start = replace(start, blocks=start.blocks[:1])
    key = jax.random.key(8)
    episodes = []
    for values in (small, small | NOISE):
        env, params = jaxsim.make("CartPole3D-v0", values, max_blocks=1)
        step = jax.jit(env.step)
        _, state, *_ = step(key, env.adopt(start, key, params), 0, params)
        rows = []
        for _ in range(env.max_steps):
            observation, state, _, terminated, *_ = step(key, state, 1, params)
            rows.append((observation, state))
            if terminated:
                break
        episodes.append((env, params, step, rows))
    return episodes


def test_neither_physics_nor_the_end_see_noise(pair):
    (*_, clean), (*_, noisy) = pair
    assert 5 < len(clean) == len(noisy) < 100
    for (_, a), (_, b) in zip(clean, noisy, strict=True):
        assert b.sensors is not None
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), a, replace(b, sensors=None)
        )


def test_noise_is_new_in_each_step(pair):
    (*_, clean), (*_, noisy) = pair
    off = [
        float(b.cart_position.x - a.cart_position.x)
        for (a, _), (b, _) in zip(clean, noisy, strict=True)
    ]
    assert len(np.unique(off)) == len(off)
    assert 0.1 < np.std(off) < 0.6


def test_sizes_may_change_within_an_episode(pair):
    env, params, step, rows = pair[1]
    state = rows[2][1]
    quiet = replace(params, noise_position=jnp.float32(0), noise_velocity=jnp.float32(0))
    read, new, *_ = step(jax.random.key(8), state, 1, quiet)
    assert read.cart_position.x == new.reported.x
    assert read.cart_position.x == pytest.approx(float(state.pose.x))


def test_a_state_from_elsewhere_needs_sensors(pair):
    (plain, *_, clean), (env, params, *_) = pair
    key, state = jax.random.key(1), clean[0][1]
    with pytest.raises(ValueError, match=r"put it through env\.adopt"):
        jax.eval_shape(env.step, key, state, 1, params)
    adopted = env.adopt(state, key, params)
    assert env.adopt(adopted, jax.random.key(2), params) is adopted
    assert plain.adopt(adopted, key, params).sensors is None
    assert float(adopted.sensors.noise.position) == pytest.approx(0.3)


def test_noise_follows_its_key(pair):
    env, params, *_ = pair[1]
    state = pair[0][3][0][1]
    one, two, again = (
        env.observe(
            env.adopt(replace(state, sensors=None), jax.random.key(seed), params)
        ).cart_position.x
        for seed in (1, 2, 1)
    )
    assert one == again != two


# --- pushes -----------------------------------------------------------------------------------


def pushed(values, push):
    params = jax.tree.map(jnp.asarray, replace(Params(), **values))
    return np.array(actions.redirect(params, *map(jnp.float32, push)))


@pytest.mark.parametrize(
    ("values", "right", "forward"),
    [
        ({}, (10, 0), (0, 10)),
        ({"action_turn": 90.0}, (0, 10), (-10, 0)),
        ({"action_turn": 180.0}, (-10, 0), (0, -10)),
        ({"action_turn": -90.0}, (0, -10), (10, 0)),
        ({"action_turn": 270.0}, (0, -10), (10, 0)),
        ({"action_turn": 360.0}, (10, 0), (0, 10)),
        ({"action_turn": 90.0, "action_scale_y": -1.0}, (0, 10), (10, 0)),  # axes change places
        ({"action_scale_x": 0.5}, (5, 0), (0, 10)),
        ({"action_scale_x": 0.0, "action_scale_y": -2.0}, (0, 0), (0, -20)),
    ],
)
def test_quarter_turns_and_scales_are_exact(values, right, forward):
    np.testing.assert_array_equal(pushed(values, (10, 0)), right)
    np.testing.assert_array_equal(pushed(values, (0, 10)), forward)


@pytest.mark.parametrize("degrees", [30.0, 45.0, 46.0, 135.0, -100.0, 300.0])
def test_other_turns_are_rotations(degrees):
    a = np.deg2rad(degrees)
    expected = [10 * np.cos(a), 10 * np.sin(a)]
    np.testing.assert_allclose(pushed({"action_turn": degrees}, (10, 0)), expected, atol=1e-5)


def test_pushes_of_the_environment_are_redirected():
    """Through the step, by the forces on the cart: each action in a lane of its own."""
    values = {"actions/sign": -1.0, "actions/scale_x": 0.5, "actions/turn": 90.0}
    env, params = jaxsim.make("CartPole3D-v0", values)
    assert env.config.terms == ("actions",)
    state = jax.jit(env.start)(KEYS[:5], params)
    running = replace(state, step=jnp.zeros(5, jnp.int32))
    force = _force(jnp.arange(5), params, env.config, running)
    np.testing.assert_array_equal(force.x, [0, 0, 0, 10, -10])
    np.testing.assert_array_equal(force.y, [0, -5, 5, 0, 0])
    hidden = _force(jnp.arange(5), params, env.config, state)
    np.testing.assert_array_equal(hidden.x, state.push.x)


@pytest.mark.parametrize(
    ("path", "value"),
    [("actions/turn", 361.0), ("actions/scale_x", 11.0), ("actions/scale_y", -10.5)],
)
def test_pushes_have_bounds(path, value):
    with pytest.raises(ValueError, match=f"{path}.* it must be a number from -"):
        jaxsim.make("CartPole3D-v0", {path: value})


def test_unknown_paths_are_refused_with_a_suggestion():
    with pytest.raises(ValueError, match="did you mean 'sensors/noise_position'"):
        jaxsim.make("CartPole3D-v0", {"sensors/noise_positions": 0.1})


def test_stacked_blocks_are_read_with_noise_where_each_lane_has_parameters_of_its_own():
    values = NOISE | {"blocks/count_min": 6, "blocks/count_max": 8}
    env, shared = jaxsim.make("CartPole3D-v0", values)
    lanes = 64
    params = jax.tree.map(lambda leaf: jnp.broadcast_to(jnp.asarray(leaf), (lanes,)), shared)
    state = jax.jit(env.start)(KEYS[:lanes], params)
    observation = jax.device_get(jax.jit(env.observe)(state))
    want = jax.device_get(jax.jit(env.observe)(jax.jit(env.start)(KEYS[:lanes], shared)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), observation, want)
    (place,), (alive,) = observation.block_position, observation.block_alive
    assert place.x.shape == (lanes, 8)
    assert 0.25 < (place.x - state.blocks[0].p.x)[alive].std() < 0.35


def test_each_size_of_an_error_belongs_to_its_reading():
    """Noise, steps, gains and offsets of places, velocities, angles and rates: 16 numbers."""
    kinds, errors = ("position", "velocity", "angle", "rate"), ("noise", "step", "gain", "offset")
    names = [f"{error}_{kind}" for error in errors for kind in kinds]
    params = Params(**{name: 2.0 + number for number, name in enumerate(names)})
    sizes = [2.0 + number - (name[:4] == "gain") for number, name in enumerate(names)]
    assert list(map(float, noise.sizes(params))) == sizes
    state = cartpole3d.wsu_start(5, dtype="float32")
    sensors = noise.attached(state, jax.random.key(3), params)
    for error in errors:
        ours = getattr(sensors, error)
        assert [float(getattr(ours, kind)) for kind in kinds] == [
            getattr(params, f"{error}_{kind}") for kind in kinds
        ]
    other = noise.follow(replace(state, sensors=sensors), Params(offset_rate=0.5)).sensors
    assert list(map(float, other.offset)) == [0, 0, 0, 0.5]
    assert [int(word) for word in other.key] == [int(word) for word in sensors.key]


def test_readings_have_the_errors_of_their_kind_from_numbers_of_their_own():
    """Without noise they are gain times value plus offset, rounded; the pole's turn apart."""
    params = Params(
        gain_position=2.0, gain_velocity=-3.0, gain_rate=0.5,
        offset_position=0.1, offset_velocity=0.2, offset_rate=0.3,
        step_position=0.25, step_velocity=0.5, step_rate=0.125,
    )  # fmt: skip
    state = cartpole3d.wsu_start(5, dtype="float32")
    exact = cartpole3d.observe(state)

    def read(params, step):
        sensors = noise.attached(state, jax.random.key(3), params)
        return jax.device_get(noise.disturb(exact, sensors, jnp.int32(step)))

    def off(vectors, gain, offset, step):
        numbers = np.array([float(c) for vector in vectors for c in vector])
        return np.round((gain * numbers + offset) / step) * step

    ours = read(params, 4)
    of_block = [np.repeat(alive, 3) for alive in exact.block_alive]
    for got, numbers in (
        (ours.cart_position[:2], off([exact.cart_position[:2]], 2, 0.1, 0.25)),
        (ours.cart_velocity[:2], off([exact.cart_velocity[:2]], -3, 0.2, 0.5)),
        (ours.pole_velocity, off([exact.pole_velocity], 0.5, 0.3, 0.125)),
        (
            np.ravel(ours.block_position),
            off(exact.block_position, 2, 0.1, 0.25) * np.ravel(of_block),
        ),
        (
            np.ravel(ours.block_velocity),
            off(exact.block_velocity, -3, 0.2, 0.5) * np.ravel(of_block),
        ),
    ):
        np.testing.assert_allclose(got, numbers, atol=1e-6)
    noisy = Params(noise_position=1.0, noise_velocity=1.0, noise_rate=1.0)
    drawn = [read(noisy, step) for step in (4, 5)]
    alive = np.ravel(of_block)
    errors = [
        np.concatenate(
            [
                np.subtract(o.cart_position[:2], exact.cart_position[:2]),
                np.subtract(o.cart_velocity[:2], exact.cart_velocity[:2]),
                np.subtract(o.pole_velocity, exact.pole_velocity),
                np.ravel(np.subtract(o.block_position, exact.block_position))[alive],
                np.ravel(np.subtract(o.block_velocity, exact.block_velocity))[alive],
            ]
        )
        for o in drawn
    ]
    numbers = np.abs(np.concatenate(errors))
    assert numbers.min() > 1e-4 and len(np.unique(np.round(numbers, 4))) == len(numbers) > 20
