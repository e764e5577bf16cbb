"""Levels 50 to 53 against recordings of the original and a NumPy twin."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks.parity_cartpole2d import CASES, TICKS, RecordedEpisode, free_run, read, zones_of
from jaxsim.worlds import cartpole2d
from jaxsim.worlds.cartpole.types import Motion
from jaxsim.worlds.cartpole2d import dynamics, sensors
from tests.conftest import double_precision
from tests.oracles.twin_cartpole2d import PUSHES, Twin

KEY = jax.random.key(0)
STEP = jax.jit(cartpole2d.CartPole2D().step)
START = jax.jit(cartpole2d.CartPole2D().start)

Read = Callable[[int, str, str], list[RecordedEpisode]]


@pytest.fixture(scope="session")
def episodes(recorded_data: Callable[[str], Path]) -> Read:
    """Read the recorded episodes of a level, difficulty and policy, or skip the test."""
    return lambda level, difficulty, policy: read(
        recorded_data(f"oracle/L{level}_{difficulty}_{policy}.npz")
    )


# --- against the recordings -------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pd", "random"])
@pytest.mark.parametrize(("level", "difficulty"), CASES)
def test_whole_episodes_equal_the_recordings(
    level: int, difficulty: str, policy: str, episodes: Read
) -> None:
    """Float64: every tick to 1e-6, of which 2.4e-7 is the recording's own rounding near 5 m/s."""
    with double_precision():
        run = free_run(level, difficulty, episodes(level, difficulty, policy))
    if (level, difficulty) == (52, "medium"):
        # A sign that the fit found what the original drew.
        visited = [z for zones in run.zones for z in zones if z != 0.05]
        assert min(visited) >= 0.0125 and max(visited) <= 0.1
    assert not run.truncated.any() and not run.terminated[0].any()
    np.testing.assert_allclose(run.errors, 0.0, rtol=0, atol=1e-6)
    for lane, e in enumerate(run.recorded):
        n = min(TICKS, len(e.action))
        np.testing.assert_array_equal(run.terminated[1 : n + 1, lane], e.done[:n])
        np.testing.assert_allclose(run.reward[1 : n + 1, lane], e.reward[:n], rtol=1e-6)


@pytest.mark.parametrize(("level", "difficulty"), CASES)
def test_one_float32_tick_equals_the_recordings(
    level: int, difficulty: str, episodes: Read
) -> None:
    recorded = episodes(level, difficulty, "random")
    zones = [zones_of(level, difficulty, e) for e in recorded]
    before = np.concatenate([e.p1[:-1] for e in recorded])
    drags = np.concatenate(
        [np.tile(z, (len(e.action), 1)) for z, e in zip(zones, recorded, strict=True)]
    )
    action = np.concatenate([e.action for e in recorded])
    _, params = cartpole2d.make({}, level=level, difficulty=difficulty)
    state = cartpole2d.state_from_arrays({"p1": before, "zone_drag": drags})
    _, state, _, terminated, *_ = STEP(KEY, state, action, params)
    after = cartpole2d.state_to_arrays(state)["p1"]
    expected = np.concatenate([e.p1[1:] for e in recorded])
    np.testing.assert_allclose(after, expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(terminated, np.concatenate([e.done for e in recorded]))


@pytest.mark.parametrize(("level", "difficulty"), CASES)
def test_the_recorded_controller_acts_the_same_on_our_sensors(
    level: int, difficulty: str, episodes: Read
) -> None:
    """Its actions follow from what it was told, which the recordings do not hold.

    The controller weighs the pole's axis u and its rate u': u + 0.45 u' + 0.05 v + 0.02 x, and
    pushes right if that is positive.
    """
    with double_precision():
        _, params = cartpole2d.make({}, level=level, difficulty=difficulty, dtype="float64")
        for e in episodes(level, difficulty, "pd"):
            report = sensors.report(params, Motion(*e.p1[:-1].T))
            heard = np.stack([report.x, report.v, report.angle, report.rate], axis=-1)
            arrays = {"p1": e.p1[:-1], "reported": heard}
            state = cartpole2d.state_from_arrays(arrays, cartpole2d.Config(dtype="float64"))
            o = cartpole2d.observe(state)
            _, qy, _, qw = map(np.asarray, o.pole_quaternion)
            lean, rate = 2 * qy * qw, np.asarray(o.pole_velocity.y) * (1 - 2 * qy**2)
            wish = lean + 0.45 * rate + 0.05 * o.cart_velocity.x + 0.02 * o.cart_position.x
            np.testing.assert_array_equal(np.where(np.asarray(wish) > 0, 1, 2), e.action)


# --- against definitions ----------------------------------------------------------------------


def test_one_tick_equals_the_twin_for_other_physics() -> None:
    random = np.random.default_rng(3)
    rows = random.uniform(-1, 1, (50, 4)) * [2.9, 3.0, 0.4, 5.0]
    actions = random.integers(0, 3, 50)
    zones = tuple(random.uniform(0, 0.5, 5))
    with double_precision():
        env = cartpole2d.CartPole2D(cartpole2d.Config(dtype="float64"))
        step = jax.jit(env.step)
        for length in (0.5, 3.0):
            _, params = cartpole2d.make({"pole/length": length, "side_push": 2.0}, dtype="float64")
            state = cartpole2d.state_from_arrays(
                {"p1": rows, "zone_drag": np.tile(zones, (50, 1))}, env.config
            )
            result = cartpole2d.state_to_arrays(step(KEY, state, actions, params)[1])["p1"]
            twin = Twin(length, 2.0, zones)
            expected = [twin.tick(s, push) for s, push in zip(rows, PUSHES[actions], strict=True)]
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("bins", [30, 20, 10])
def test_bins_are_the_originals(bins: int) -> None:
    """The nearest of `numpy.arange`'s values, away from the middle between two."""
    random = np.random.default_rng(bins)
    for half in (6.0, 10.0, 2.4, 1.0):
        values = np.arange(-half, half, 2 * half / bins)
        assert len(values) == bins
        x = random.uniform(-1.3 * half, 1.3 * half, 500)
        distance = np.sort(np.abs(x[:, None] - values), axis=1)
        x = x[distance[:, 1] - distance[:, 0] > 1e-4 * half]
        nearest = values[np.argmin(np.abs(x[:, None] - values), axis=1)]
        ours = sensors.nearest_bin(jnp.asarray(x, jnp.float32), half, float(bins))
        np.testing.assert_allclose(ours, nearest, rtol=0, atol=1e-6 * half)
    assert sensors.nearest_bin(0.123, 1.0, 0.0) == np.float32(0.123)


def test_the_observation_has_the_form_of_the_three_dimensional_one() -> None:
    state = cartpole2d.state_from_arrays({"p1": [0.5, -1.0, 0.2, 3.0]})
    o = cartpole2d.observe(state)
    np.testing.assert_allclose(o.cart_position, [0.5, 0, 0])
    np.testing.assert_allclose(o.cart_velocity, [-1, 0, 0])
    np.testing.assert_allclose(o.pole_quaternion, [0, np.sin(0.1), 0, np.cos(0.1)], rtol=1e-6)
    np.testing.assert_allclose(o.pole_velocity, [0, 3, 0])
    np.testing.assert_array_equal(o.block_position, [[1, 1, 3]] * 3)
    np.testing.assert_array_equal(o.block_velocity, np.zeros((3, 3)))
    assert all(o.block_alive)
    np.testing.assert_allclose(cartpole2d.to_vector(o), [0.5, -1.0, 0.2, 3.0], rtol=1e-6)


def test_the_end_is_at_the_quaternion_limit_and_in_level_53_at_the_reported_one() -> None:
    angle = 2 * np.arcsin(np.deg2rad(12))
    assert np.rad2deg(angle) == pytest.approx(24.2, abs=0.05)
    x = jnp.asarray([0.0, 0.0, 2.401, -2.399])
    lean = jnp.asarray([angle + 1e-4, -angle + 1e-4, 0.0, 0.0])
    motion = Motion(x, jnp.zeros(4), lean, jnp.zeros(4))
    _, params = cartpole2d.make({})
    np.testing.assert_array_equal(
        dynamics.out_of_bounds(params, motion), [True, False, True, False]
    )
    # Hard bins are 1.2 rad apart, and the farthest position they know is -2.4 m.
    _, params = cartpole2d.make({}, level=53, difficulty="hard")
    lean = jnp.asarray([0.59, 0.61, 0.0, 0.0])
    far = jnp.asarray([0.0, 0.0, 5.0, -5.0])
    report = sensors.report(params, Motion(far, far, lean, far))
    np.testing.assert_array_equal(
        dynamics.out_of_bounds(params, report), [False, True, False, False]
    )


@pytest.mark.parametrize("engine", ["stock", "tbplanar"])
def test_starts_have_the_originals_distribution(engine: str) -> None:
    lanes = 4000
    env, params = cartpole2d.make({}, level=52, difficulty="medium", engine=engine)
    start = jax.jit(env.start)(jax.random.split(KEY, lanes), params)
    arrays = cartpole2d.state_to_arrays(start)
    x, *rest = arrays["p1"].T
    for column, value in zip(rest, (1.0, 0.0, 0.4), strict=True):
        np.testing.assert_array_equal(column, np.float32(value))
    # Within 5 standard errors of the uniform distribution's, or of a fair coin's.
    if engine == "stock":
        assert np.abs(x).max() <= 0.01
        counts = np.histogram(x, 10, (-0.01, 0.01))[0]
        assert np.abs(counts - lanes / 10).max() < 5 * np.sqrt(lanes * 0.09)
    else:
        assert set(x) == {-1.0, 1.0}
        assert abs(x.sum()) < 5 * np.sqrt(lanes)
    zones = arrays["zone_drag"]
    assert zones.min() >= 0.0125 and zones.max() <= 0.1
    middle = (0.0125 + 0.1) / 2
    assert np.abs(zones.mean(axis=0) - middle).max() < 5 * (0.0875 / np.sqrt(12 * lanes))
    assert np.abs(np.corrcoef([x, *zones.T]) - np.eye(6)).max() < 0.08


def test_the_hidden_tick_takes_no_action() -> None:
    _, params = cartpole2d.make({})
    start = START(jax.random.split(KEY, 3), params)
    one, other = (STEP(KEY, start, jnp.full(3, a), params) for a in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, one, other)
    np.testing.assert_array_equal(one[1].step, 0)
    np.testing.assert_array_equal(one[2], 0.0)
    np.testing.assert_allclose(cartpole2d.state_to_arrays(one[1])["p1"][0, 1:], [1, 0.008, 0.4])


def test_reward_passes_one_performance_does_not_and_the_cap_truncates() -> None:
    _, params = cartpole2d.make({})
    tick = np.array([99, 299, 1999])
    state = cartpole2d.state_from_arrays({"p1": np.zeros((3, 4)), "tick": tick})
    for _ in range(2):
        _, state, reward, terminated, truncated, info = STEP(KEY, state, jnp.zeros(3, int), params)
        np.testing.assert_array_equal(truncated, [False, False, True])
        assert not terminated.any()
    np.testing.assert_allclose(reward, [101 / 200, 301 / 200, 0.0])
    np.testing.assert_allclose(info["performance"], [101 / 200, 1.0, 1.0])


def test_a_finished_episode_stays_as_it_is() -> None:
    _, params = cartpole2d.make({})
    rows = [[2.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.6, 1.0], [2.5, 1.0, 0.0, 0.0]]
    state = cartpole2d.state_from_arrays({"p1": rows, "tick": [5, 6, 1999]})
    before = STEP(KEY, state, jnp.zeros(3, int), params)
    after = STEP(KEY, before[1], jnp.ones(3, int), params)
    jax.tree.map(np.testing.assert_array_equal, before[:2], after[:2])
    jax.tree.map(np.testing.assert_array_equal, before[3:], after[3:])
    np.testing.assert_array_equal(before[4], [False, False, True])
    assert before[3].all()
    np.testing.assert_array_equal(after[2], 0.0)


def test_numbers_that_are_not_finite_end_the_episode_with_a_flag() -> None:
    _, params = cartpole2d.make({})
    rows = np.zeros((3, 4))
    rows[0, 0], rows[1, 3] = np.nan, 1e30
    state = cartpole2d.state_from_arrays({"p1": rows})
    _, state, _, terminated, truncated, info = STEP(KEY, state, jnp.zeros(3, int), params)
    np.testing.assert_array_equal(info["nonfinite"], [True, True, False])
    np.testing.assert_array_equal(truncated, [True, True, False])
    _, _, _, terminated, truncated, info = STEP(KEY, state, jnp.zeros(3, int), params)
    np.testing.assert_array_equal(truncated, [True, True, False])
    np.testing.assert_array_equal(info["nonfinite"], truncated)
    assert not terminated.any()


def test_all_levels_compile_once_and_a_row_is_a_single_lane() -> None:
    count = 0

    def step(*args: Any) -> Any:
        nonlocal count
        count += 1
        return env.step(*args)

    env = cartpole2d.CartPole2D()
    each = [cartpole2d.make({}, level=v, difficulty=d)[1] for v, d in CASES]
    compiled = jax.jit(step)
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
    keys = jax.random.split(KEY, len(each))
    states = START(keys, batch)
    together = STEP(keys, states, jnp.ones(len(each), int), batch)
    for i, params in enumerate(each):
        state = jax.tree.map(lambda leaf, i=i: leaf[i], states)
        alone = compiled(keys[i], state, jnp.int32(1), params)
        # Programs for one lane and for many may contract products and sums differently.
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a, b[i], rtol=0, atol=1e-6),
            alone,
            together,
        )
    assert count == 1
    lone = jax.tree.map(lambda leaf: leaf[7], states)
    np.testing.assert_array_equal(START(keys[7], each[7]).motion.x, lone.motion.x)


# --- names and mistakes -----------------------------------------------------------------------


def test_actions_by_name() -> None:
    names = [*cartpole2d.ORIGINAL_ACTIONS, "forward", 1]
    assert [cartpole2d.action_code(name) for name in names] == [2, 1, 0, 0, 0]


def test_arrays_there_and_back() -> None:
    random = np.random.default_rng(0)
    arrays = {
        "p1": random.normal(size=(2, 3, 4)).astype(np.float32),
        "reported": random.normal(size=(2, 3, 4)).astype(np.float32),
        "zone_drag": random.uniform(size=(2, 3, 5)).astype(np.float32),
        "tick": np.arange(6).reshape(2, 3),
    }
    back = cartpole2d.state_to_arrays(cartpole2d.state_from_arrays(arrays))
    assert back.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(back[name], value)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"tick": 0}, "'p1' is missing"),
        ({"p1": np.zeros(3)}, r"'p1' has shape \(3,\), not \(4,\)"),
        ({"p1": np.zeros(4), "drag": 0.0}, "unknown name 'drag'"),
    ],
)
def test_wrong_arrays_are_refused(arrays: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cartpole2d.state_from_arrays(arrays)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ({"pole/lenght": 1.0}, {}, "did you mean 'pole/length'"),
        ({}, {"level": 54}, "must be one of 50, 51, 52, 53"),
        ({}, {"difficulty": "extreme"}, "one of 'easy', 'medium', 'hard'"),
        ({}, {"engine": "bullet"}, "must be 'stock' or 'tbplanar'"),
        ({}, {"blocks": 4}, "unknown option 'blocks'"),
        ({}, {"max_steps": 0}, "max_steps is 0"),
        ({}, {"dtype": "float64"}, "jax_enable_x64"),
        ({"drag/min": 0.2}, {}, "'drag/min' is 0.2, above 'drag/max'"),
        ({"sensors/bins": 2.5}, {}, "must be a whole number"),
    ],
)
def test_mistakes_are_refused_in_words(values: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jaxsim.make("CartPole2D-v0", values, **options)


def test_raw_keys_are_refused() -> None:
    env, params = cartpole2d.make({})
    raw = jnp.zeros(2, jnp.uint32)
    with pytest.raises(TypeError, match="typed key"):
        env.reset(raw, params)
    with pytest.raises(TypeError, match="typed key"):
        env.step(raw, START(KEY, params), jnp.int32(0), params)
