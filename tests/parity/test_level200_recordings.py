"""Level 200 against recordings of the original: one tick at a time, and whole episodes.

The recordings are float32. A tick starts from the recorded state, so an error here is the error of
one tick. Levels that differ from 200 only in parameters, or only in how blocks are thrown, obey the
same physics and add contacts that level 200 rarely has.
"""

import csv
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.agents import Agent, reference
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import Observation, state_to_arrays
from tests.parity.bounds import PAIR

pytestmark = pytest.mark.optimised

RECORDINGS = [f"L200_{d}_{p}" for d in ("easy", "medium", "hard") for p in ("pd", "random")]

FREE = 5e-6  # the recording is float32: half a unit in the last place of a start at 10 m/s is 5e-7
WALL = 5e-6  # the same, plus four times the rounding of the depth
# The original finds contact points on hulls iteratively, with normals off by up to 1e-3, and keeps
# some contact points for several ticks. A hit changes velocities by several m/s.
STRUCTURE = {
    "cart_vel": 3e-3,  # m/s
    "block_vel": 4e-3,  # m/s
    "pole_tilt_rate": 3e-2,  # rad/s
    "pole_spin": 6.0,  # rad/s about its own axis, where its inertia is 7e-5 kg m^2
}
# Share of ticks with an error above 1e-3 in the cart's or a block's velocity. Measured by a NumPy
# prototype over 864 such ticks: 33 in any field.
STRUCTURE_SHARE = 0.04

# Levels with the physics of 200 up to parameters, and what they set. Where only the blocks' start
# differs there is nothing to set.
ELSEWHERE: dict[str, dict[str, float]] = {
    **{f"L{level}_{d}": {} for level in (103, 113, 114, 203) for d in ("easy", "hard")},
    "L101_easy": {"cart/mass": 10.0},
    "L104_easy": {"blocks/radius": 1.0},
    "L106_easy": {"blocks/buoyancy": 0.0},
    "L115_easy": {"force": 50.0},
    "L115_medium": {"force": 100.0},
    "L115_hard": {"force": 150.0},
    "L201_easy": {"pole/length": 3.0},
    "L201_medium": {"pole/length": 5.0},
    "L201_hard": {"pole/length": 8.0},
}


def errors_by_tick(rec: Any, lanes: Any, observed: Any, params: Any = None) -> dict[str, Any]:
    """Largest error of each field in each recorded tick, and what the step said besides."""
    rows = rec.steps
    parts = [rows[i : i + lanes.width] for i in range(0, len(rows), lanes.width)]
    fields: dict[str, list[np.ndarray]] = {}
    for part in parts:
        with lanes.precision():
            before = rec.states(part - 1)
        observation, after, *_ = lanes.step(before, rec.action[part], params)
        errors = rec.errors(part, state_to_arrays(after), observed(observation))
        for name, error in errors.items():
            fields.setdefault(name, []).append(error)
    return {name: np.concatenate(errors) for name, errors in fields.items()}


def check_simple_classes(kind: np.ndarray, errors: dict[str, np.ndarray]) -> None:
    """Free, wall and pair ticks agree in every field, the reported ones included."""
    for name, bound in (("free", FREE), ("wall", WALL), ("pair", PAIR)):
        for field, error in errors.items():
            worst = error[kind == name].max(initial=0.0)
            assert worst <= bound, f"{field} is off by {worst:.2g} in a tick of class {name}"


def check_structure(kind: np.ndarray, errors: dict[str, np.ndarray]) -> None:
    """Ticks in which cart or pole are hit agree within `STRUCTURE`, nearly all within 1e-3."""
    hit = kind == "structure"
    for field, bound in STRUCTURE.items():
        worst = errors[field][hit].max(initial=0.0)
        assert worst <= bound, f"{field} is off by {worst:.2g} in a tick with a hit"
    coarse = np.maximum(errors["cart_vel"], errors["block_vel"])[hit] > 1e-3
    assert coarse.sum() <= STRUCTURE_SHARE * hit.sum() + 0.5


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_tick_agrees_with_the_recording(name, recording, lanes64, observed):
    rec = recording(name)
    assert set(rec.kind) >= {"free", "wall"}
    errors = errors_by_tick(rec, lanes64, observed)
    kind = rec.kind[rec.steps]
    check_simple_classes(kind, errors)
    check_structure(kind, errors)


@pytest.mark.parametrize("name", RECORDINGS)
def test_ends_and_rewards_agree_with_the_recording(name, recording, lanes64):
    rec = recording(name)
    rows = rec.steps
    # The end test sees the pole of the row before; the step count decides the limit and reward.
    arrays = {field: values[rows - 1] for field, values in rec.state.items()}
    arrays["tick"] = rec.tick[rows] - 1
    # What was reported before that is two rows back; after a reset it is the start, with yaw 0.
    first = rec.tick[rows] == 1
    reports = {"cart_pos": "cart_position", "pole_jq": "pole_quaternion"}
    for field in ("cart_pos", "cart_yaw", "pole_jq"):
        older = rec.state[field][rows - 2]
        if field in reports:
            older[first] = rec.reported[reports[field]][rows[first] - 1][:, : older.shape[-1]]
        else:
            older[first] = 0
        arrays[f"reported_{field}"] = older
    with lanes64.precision():
        before = cartpole3d.state_from_arrays(arrays, lanes64.env.config)
    _, after, reward, terminated, truncated, info = lanes64.step(before, rec.action[rows])
    np.testing.assert_array_equal(after.done, rec.done[rows])
    np.testing.assert_array_equal(terminated | truncated, rec.done[rows])
    np.testing.assert_array_equal(truncated, rec.tick[rows] == 200)
    np.testing.assert_allclose(reward, rec.tick[rows] / 200, rtol=1e-15)
    np.testing.assert_allclose(reward, rec.reward[rows], rtol=1e-7)  # float32 in the recording
    np.testing.assert_array_equal(info["performance"], reward)
    assert not info["nonfinite"].any()


@pytest.mark.parametrize("name", RECORDINGS)
def test_reset_agrees_with_the_recording(name, recording, observed, x64):
    rec = recording(name)
    for seed, row in zip(rec.seeds, rec.resets, strict=True):
        state = cartpole3d.from_wsu_seed(int(seed))
        report = observed(cartpole3d.observe(state))
        # float32 recording of numbers up to 10: half a unit in the last place is 5e-7
        for field, values in rec.reported.items():
            np.testing.assert_allclose(report[field], values[row], rtol=0, atol=1e-6, err_msg=field)
        ours = state_to_arrays(state)
        empty = ~ours["block_alive"]
        ours["block_pos"][empty] = rec.state["block_pos"][row][empty]
        for field, values in rec.state.items():
            np.testing.assert_allclose(ours[field], values[row], rtol=0, atol=1e-6, err_msg=field)
        assert int(state.step) == 0
        assert not bool(state.done)


def test_physics_of_other_levels_agrees(recording, lanes64, observed, recorded_data):
    recorded_data("oracle/L203_hard_pd.npz")  # skips where only the excerpt is at hand
    kinds, errors = [], []
    for name, values in ELSEWHERE.items():
        with lanes64.precision():
            params = jaxsim.make("CartPole3D-v0", values, dtype="float64")[1]
        for policy in ("pd", "random"):
            rec = recording(f"{name}_{policy}")
            kinds.append(rec.kind[rec.steps])
            errors.append(errors_by_tick(rec, lanes64, observed, params))
            check_simple_classes(kinds[-1], errors[-1])
    kind = np.concatenate(kinds)
    assert (kind == "pair").sum() >= 15
    assert (kind == "structure").sum() >= 180
    check_structure(kind, {f: np.concatenate([e[f] for e in errors]) for f in errors[0]})


# --- whole episodes ---------------------------------------------------------------------------


def wsu_starts(seeds: list[int], width: int) -> Any:
    """Float32 starts of the original's seeds, the last one repeated to fill `width` lanes."""
    starts = [cartpole3d.wsu_start(seed, dtype="float32") for seed in seeds]
    starts += starts[-1:] * (width - len(starts))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *starts)


def recorded_policy(o: Observation, k: int) -> jax.Array:
    """The PD policy of the recordings: with terms in the cart's motion, and a dead band."""
    (lx, ly), (dlx, dly) = reference.lean(o)
    ex = lx + 0.3 * dlx + 0.1 * o.cart_velocity.x + 0.03 * o.cart_position.x
    ey = ly + 0.3 * dly + 0.1 * o.cart_velocity.y + 0.03 * o.cart_position.y
    idle = jnp.maximum(jnp.abs(ex), jnp.abs(ey)) < 0.004
    return jnp.where(idle, 0, reference.push_along(ex, ey))


def test_recorded_policy_reaches_the_recorded_lengths_in_float32(recording, lanes32):
    """At least 95 %: an episode may hang on one hit that rounding decides."""
    rec = recording("L200_easy_pd")
    starts = wsu_starts(rec.seeds.tolist(), lanes32.width)
    lengths = lanes32.play(starts, recorded_policy)[: len(rec.seeds)]
    assert np.mean(lengths == rec.lengths) >= 0.95, f"{lengths} instead of {rec.lengths}"


def baseline(path: Any) -> tuple[list[int], np.ndarray]:
    """Seeds and lengths of the original's level 200 episodes under one policy."""
    with open(path, newline="") as file:
        rows = [r for r in csv.DictReader(file) if (r["level"], r["difficulty"]) == ("200", "easy")]
    return [int(r["seed"]) for r in rows], np.array([int(r["length"]) for r in rows])


def _of(agent: Agent) -> Callable[[list[int]], Callable[[Observation, int], Any]]:
    """The policy of an agent that neither draws nor remembers, whatever the seeds."""
    act = jax.jit(lambda o: agent.act((), o, jax.random.key(0))[0])
    return lambda seeds: lambda o, k: act(o)


def _random(seeds: list[int]) -> Callable[[Observation, int], Any]:
    draws = [np.random.default_rng(seed + 10_000_000).integers(5, size=200) for seed in seeds]
    actions = np.stack(draws, axis=1)

    def act(o: Observation, k: int) -> np.ndarray:
        spare = np.shape(o.cart_position.x)[0] - len(seeds)
        return np.pad(actions[k], (0, spare))

    return act


def _nothing(seeds: list[int]) -> Callable[[Observation, int], Any]:
    return lambda o, k: 0


# Means as published for the original; random and nothing rarely meet a block, so that nothing
# decides their length but the free motion.
@pytest.mark.parametrize(
    ("policy", "play", "same", "mean"),
    [
        ("pd", _of(reference.pd), 0.97, 0.905),
        ("greedy", _of(reference.greedy), 0.97, 0.900),
        ("random", _random, 1.0, 0.1206),
        ("nothing", _nothing, 1.0, 0.2515),
    ],
)
def test_paired_episodes_have_the_original_lengths(
    policy, play, same, mean, recorded_data, lanes32
):
    seeds, lengths = baseline(recorded_data(f"baselines/ep_{policy}.csv"))
    assert len(seeds) == 200
    ours = lanes32.play(wsu_starts(seeds, lanes32.width), play(seeds))[:200]
    assert np.mean(ours == lengths) >= same, f"{np.flatnonzero(ours != lengths)} differ"
    assert abs(ours.mean() / 200 - mean) <= 0.002
    assert abs(lengths.mean() / 200 - mean) <= 0.0005  # the baseline is the published one
