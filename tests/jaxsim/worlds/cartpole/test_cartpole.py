"""The classic CartPole against recorded trajectories of the original and a NumPy twin."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks.parity_cartpole import Trajectory, ended_early, free_run, one_step, read, states_at
from jaxsim.worlds import cartpole
from tests.conftest import double_precision

NAME = "protocols/cartpole_trajectories.json"
TOLERANCE = {"float32": 1e-6, "float64": 1e-14}  # a few roundings of numbers up to 3
KEY = jax.random.key(0)
STEP = jax.jit(cartpole.CartPole().step)
START = jax.jit(cartpole.CartPole().start)


def precision(dtype: str) -> AbstractContextManager[None]:
    """64-bit types for float64."""
    return double_precision() if dtype == "float64" else nullcontext()


def twin(params: dict[str, float], s: np.ndarray, action: int) -> np.ndarray:
    """One Euler step in float64, from the mass matrix; s is x, x', angle, angle'."""
    p = {"g": 9.8, "f": 10.0, "mc": 1.0, "mp": 0.1, "l": 0.5, "tau": 0.02} | params
    x, v, angle, rate = s
    lever = p["mp"] * p["l"]
    coupling = lever * math.cos(angle)
    # A uniform rod of half length l has 4/3 m l^2 about its end.
    mass = np.array([[p["mc"] + p["mp"], coupling], [coupling, 4 / 3 * lever * p["l"]]])
    push = p["f"] if action == 1 else -p["f"]
    force = [push + lever * rate**2 * math.sin(angle), lever * p["g"] * math.sin(angle)]
    a = np.linalg.solve(mass, force)
    return s + p["tau"] * np.array([v, a[0], rate, a[1]])


def hold(rows: Any) -> np.ndarray:
    return np.asarray(cartpole.to_vector(rows), float)


@pytest.fixture(scope="module")
def trajectories(recorded_data: Callable[[str], Path]) -> list[Trajectory]:
    return read(recorded_data(NAME))


@pytest.mark.requirement(71)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_step_equals_the_recordings(trajectories: list[Trajectory], dtype: str) -> None:
    with precision(dtype):
        result = one_step(trajectories, dtype)
    np.testing.assert_allclose(result.errors, 0.0, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_array_equal(result.reward, 1.0)
    terminated = np.concatenate([t.terminated for t in trajectories])
    np.testing.assert_array_equal(result.terminated, terminated)


@pytest.mark.requirement(71)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_episodes_have_the_recorded_length(
    trajectories: list[Trajectory], dtype: str
) -> None:
    """From the first state on; longer episodes than 64 steps were cut by the old limit of 200."""
    ended = ended_early(trajectories)
    assert len(ended) == 6
    with precision(dtype):
        run = free_run(ended, dtype)
    np.testing.assert_array_equal(run.lengths, [t.length for t in ended])
    np.testing.assert_array_equal(run.reward.sum(axis=0), [t.total for t in ended])
    assert not run.truncated.any() and run.terminated[-1].all()
    for lane, t in enumerate(ended):
        # Roundings grow with the falling pole, at most tenfold in these lengths.
        path = run.path[: t.length, lane]
        np.testing.assert_allclose(path, t.states[1:], rtol=0, atol=100 * TOLERANCE[dtype])


def test_one_step_equals_the_twin_for_other_physics() -> None:
    random = np.random.default_rng(1)
    step = jax.jit(cartpole.CartPole(cartpole.Config(dtype="float64")).step)
    names = {"gravity": "g", "force": "f", "cart/mass": "mc", "pole/mass": "mp", "tau": "tau"}
    names["pole/length"] = "l"
    for _ in range(5):
        values = {path: float(random.uniform(0.06, 0.1)) for path in names}
        values |= {"gravity": float(random.uniform(1, 20)), "cart/mass": 2.0}
        rows = random.uniform(-1, 1, (20, 4)) * [2, 3, 0.5, 3]
        actions = random.integers(0, 2, 20)
        short = {names[path]: value for path, value in values.items()}
        expected = [twin(short, s, a) for s, a in zip(rows, actions, strict=True)]
        with precision("float64"):
            _, params = cartpole.make(values, dtype="float64")
            observation, *_ = step(KEY, states_at(rows, "float64"), actions, params)
        # Short poles turn at 1e4 rad/s^2, so the tolerance is relative as well.
        np.testing.assert_allclose(hold(observation), expected, rtol=1e-12, atol=1e-13)


def test_limits_end_an_episode_only_beyond() -> None:
    env, params = cartpole.make({})
    edge, lean = np.float32(2.4), np.float32(math.radians(12))
    rows = np.zeros((8, 4), np.float32)
    rows[:4, 0] = edge, -edge, np.nextafter(edge, 3), -np.nextafter(edge, 3)
    rows[4:, 2] = lean, -lean, np.nextafter(lean, 1), -np.nextafter(lean, 1)
    # Positions and angles move with the old velocities, which are zero.
    *_, terminated, truncated, _ = STEP(KEY, states_at(rows, "float32"), jnp.zeros(8, int), params)
    np.testing.assert_array_equal(terminated, [False, False, True, True] * 2)
    assert not truncated.any()


def test_truncation_after_500_steps_and_performance() -> None:
    env, params = cartpole.make({})
    assert env.max_steps == 500
    state = states_at([[0, 0, 0, 0], [0, 0, 0.2, 2.0]], "float32")
    state = cartpole.State(state.motion, jnp.full(2, 499, jnp.int32), state.done)
    for reward in (1.0, 0.0):
        _, state, rewards, terminated, truncated, info = STEP(KEY, state, jnp.ones(2, int), params)
        np.testing.assert_array_equal(rewards, reward)
        np.testing.assert_array_equal(terminated, [False, True])
        np.testing.assert_array_equal(truncated, [True, True])
        np.testing.assert_array_equal(info["performance"], 1.0)


def test_start_is_uniform_and_the_hidden_step_only_counts() -> None:
    env, params = cartpole.make({})
    lanes = 4000
    start = START(jax.random.split(KEY, lanes), params)
    np.testing.assert_array_equal(start.step, -1)
    for action in (0, 1):
        observation, state, reward, *_ = STEP(KEY, start, jnp.full(lanes, action), params)
        np.testing.assert_array_equal(hold(observation), hold(start.motion))
        np.testing.assert_array_equal(state.step, 0)
        np.testing.assert_array_equal(reward, 0.0)
    rows = hold(start.motion)
    assert np.abs(rows).max() <= 0.05
    assert np.abs(np.corrcoef(rows.T) - np.eye(4)).max() < 0.06
    # Each tenth of the interval holds a tenth of the draws, within 5 standard errors.
    for column in rows.T:
        counts = np.histogram(column, 10, (-0.05, 0.05))[0]
        assert np.abs(counts - lanes / 10).max() < 5 * math.sqrt(lanes * 0.09)


def test_ten_physics_compile_once_and_a_row_is_a_single_lane() -> None:
    count = 0

    def step(*args: Any) -> Any:
        nonlocal count
        count += 1
        return env.step(*args)

    env, _ = cartpole.make({})
    each = [cartpole.make({"pole/length": 0.1 + 0.1 * i})[1] for i in range(10)]
    compiled = jax.jit(step)
    state = START(KEY, each[0])
    for params in each:
        compiled(KEY, state, jnp.int32(1), params)
    assert count == 1
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
    keys = jax.random.split(KEY, 10)
    states = START(keys, batch)
    together = STEP(keys, states, jnp.ones(10, int), batch)
    for i, params in enumerate(each):
        state = jax.tree.map(lambda leaf, i=i: leaf[i], states)
        alone = STEP(keys[i], state, jnp.int32(1), params)
        # Programs for one lane and for many may contract products and sums differently.
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a, b[i], rtol=0, atol=1e-6),
            alone,
            together,
        )


def test_a_finished_episode_stays_as_it_is() -> None:
    env, params = cartpole.make({})
    ended = [[2.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.3, 1.0]]
    before = STEP(KEY, states_at(ended, "float32"), jnp.zeros(2, int), params)
    after = STEP(KEY, before[1], jnp.ones(2, int), params)
    jax.tree.map(np.testing.assert_array_equal, before[:2], after[:2])
    jax.tree.map(np.testing.assert_array_equal, before[3:], after[3:])
    assert before[3].all() and before[1].done.all()
    np.testing.assert_array_equal(after[2], 0.0)


def test_numbers_that_are_not_finite_end_the_episode_with_a_flag() -> None:
    env, params = cartpole.make({})
    rows = np.zeros((5, 4))
    rows[[0, 1, 2, 3], [0, 1, 2, 3]] = np.nan, np.inf, np.nan, 1e30
    _, state, _, terminated, truncated, info = STEP(
        KEY, states_at(rows, "float32"), jnp.zeros(5, int), params
    )
    np.testing.assert_array_equal(info["nonfinite"], [True] * 4 + [False])
    np.testing.assert_array_equal(truncated, [True] * 4 + [False])
    assert not terminated.any()
    _, again, _, terminated, truncated, info = STEP(KEY, state, jnp.zeros(5, int), params)
    np.testing.assert_array_equal(truncated, [True] * 4 + [False])
    np.testing.assert_array_equal(info["nonfinite"], truncated)
    assert not terminated.any()


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ({"pole/lenght": 1.0}, {}, "did you mean 'pole/length'"),
        ({"force": -1.0}, {}, "it must be a number from 0 to 1000 N"),
        ({}, {"level": 50}, "unknown option 'level'"),
        ({}, {"max_steps": 0}, "max_steps is 0; it must be at least 1"),
        ({}, {"max_steps": 10.5}, "max_steps is 10.5; it must be a whole number, at least 1"),
        ([("pole/length", 3.0)], {}, "values is .*; it must be a mapping of paths"),
        ({}, {"dtype": "float16"}, "must be 'float32' or 'float64'"),
        ({}, {"dtype": "float64"}, "jax_enable_x64"),
    ],
)
def test_mistakes_are_refused_in_words(values: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jaxsim.make("CartPole-v1", values, **options)


def test_raw_keys_are_refused() -> None:
    env, params = cartpole.make({})
    raw = jnp.zeros(2, jnp.uint32)
    with pytest.raises(TypeError, match="typed key"):
        env.reset(raw, params)
    _, state = env.reset(KEY, params)
    with pytest.raises(TypeError, match="typed key"):
        env.step(raw, state, jnp.int32(0), params)
