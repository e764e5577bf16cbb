"""The reference agents against NumPy twins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

from jaxsim import agents, rng
from jaxsim.agents import Episodes, NoveltyPrediction, base, reference
from jaxsim.worlds.cartpole3d.types import ACTIONS, Observation, Vector

KEY = jax.random.key(0)
NOTHING, RIGHT, LEFT, FORWARD, BACKWARD = range(5)
REFERENCE = (reference.random, reference.nothing, reference.pd, reference.greedy)


def observation(q, omega):
    """An observation of which only the pole matters; (L, 4) and (L, 3)."""
    q, omega = np.asarray(q, np.float32), np.asarray(omega, np.float32)
    zero = Vector(*(jnp.zeros(q.shape[:-1]),) * 3)
    pole = tuple(jnp.asarray(q[..., i]) for i in range(4))
    rate = Vector(*(jnp.asarray(omega[..., i]) for i in range(3)))
    return Observation(zero, zero, pole, rate, (), (), ())


def test_the_names_of_the_actions_are_the_codes_used_here():
    assert ACTIONS == ("nothing", "right", "left", "forward", "backward")


def pd_twin(q, omega):
    """One observation at a time, as the formula is written: lean plus 0.3 s of its rate."""
    axis = Rotation.from_quat(q).apply([0, 0, 1])
    rate = np.cross(omega, axis)
    ux, uy = axis[:2] + 0.3 * rate[:2]
    if ux == 0 and uy == 0:
        return NOTHING, 0.0
    margin = min(abs(abs(ux) - abs(uy)), max(abs(ux), abs(uy)))
    if abs(ux) >= abs(uy):
        return (RIGHT if ux > 0 else LEFT), margin
    return (FORWARD if uy > 0 else BACKWARD), margin


def test_pd_pushes_under_the_lean_and_its_rate():
    draw = np.random.default_rng(40)
    q = Rotation.from_rotvec(draw.normal(size=(3000, 3)) * [0.1, 0.1, 2]).as_quat()
    omega = draw.normal(size=(3000, 3)) * [0.3, 0.3, 5]
    action, _, memory = reference.pd.act((), observation(q, omega), KEY)
    assert action.dtype == jnp.int32
    assert memory == ()
    compared = set()
    for ours, (expected, margin) in zip(np.asarray(action), map(pd_twin, q, omega), strict=True):
        if margin > 1e-5:  # float32 observations of numbers up to 10
            assert int(ours) == expected
            compared.add(expected)
    assert compared == {RIGHT, LEFT, FORWARD, BACKWARD}


@pytest.mark.parametrize(
    ("ux", "uy", "action"),
    [
        (0.0, 0.0, NOTHING),
        (0.1, 0.1, RIGHT),
        (-0.1, 0.1, LEFT),
        (-0.1, -0.1, LEFT),
        (0.1, -0.1, RIGHT),
        (0.1, 0.2, FORWARD),
        (0.1, -0.2, BACKWARD),
        (0.0, 0.2, FORWARD),
        (0.2, 0.0, RIGHT),
        (-0.2, 0.0, LEFT),
        (0.0, -0.2, BACKWARD),
        (-0.0, 0.0, NOTHING),
    ],
)
def test_the_larger_demand_acts_and_x_on_a_tie(ux, uy, action):
    assert int(reference.push_along(jnp.float32(ux), jnp.float32(uy))) == action


@pytest.mark.parametrize(
    ("rotvec", "omega", "action"),
    [
        ((0, 0, 0), (0, 0, 0), NOTHING),
        ((0, 0.05, 0), (0, 0, 0), RIGHT),  # turned about +y, the pole leans to +x
        ((0, -0.05, 0), (0, 0, 0), LEFT),
        ((-0.05, 0, 0), (0, 0, 0), FORWARD),
        ((0.05, 0, 0), (0, 0, 0), BACKWARD),
        ((0, 0, 0), (0, 1, 0), RIGHT),  # upright, but falling
        ((0, 0.05, 0), (0, -1, 0), LEFT),  # leaning, but rising fast: rate 0.3 s x 1/s
        ((0, 0, 0), (0, 0, 50), NOTHING),  # spin about its own axis is no lean
    ],
)
def test_pd_by_hand(rotvec, omega, action):
    q = Rotation.from_rotvec(rotvec).as_quat()
    assert int(reference.pd.act((), observation(q, omega), KEY)[0]) == action


def greedy_twin(q, omega):
    """One observation at a time: the cost of every push after one tick, the first minimum."""
    roll, pitch, _ = Rotation.from_quat(q).as_euler("xyz")
    costs = []
    for fx, fy in ((-10, 0), (10, 0), (0, 10), (0, -10), (0, 0)):
        r = roll + 0.02 * (omega[0] + 0.02 * (9.861 * roll + 0.9148 * fy))
        p = pitch + 0.02 * (omega[1] + 0.02 * (9.861 * pitch - 0.9148 * fx))
        costs.append(r * r + p * p)
    best = int(np.argmin(costs))
    rest = np.delete(costs, best)
    return (LEFT, RIGHT, FORWARD, BACKWARD, NOTHING)[best], rest.min() - costs[best]


def test_greedy_takes_the_push_with_the_least_lean_after_one_tick():
    draw = np.random.default_rng(41)
    q = Rotation.from_rotvec(draw.normal(size=(3000, 3)) * [0.01, 0.01, 2]).as_quat()
    omega = draw.normal(size=(3000, 3)) * [0.3, 0.3, 5]
    action, _, memory = reference.greedy.act((), observation(q, omega), KEY)
    assert action.dtype == jnp.int32
    assert memory == ()
    compared = []
    for ours, (expected, margin) in zip(
        np.asarray(action), map(greedy_twin, q, omega), strict=True
    ):
        if margin > 1e-8:  # float32: a relative 1e-7 of angles up to 0.1, squared
            assert int(ours) == expected
            compared.append(expected)
    assert len(compared) > 2900
    assert set(compared) == {NOTHING, RIGHT, LEFT, FORWARD, BACKWARD}


def test_roll_and_pitch_are_euler_angles_about_fixed_axes():
    q = Rotation.random(1000, rng=42).as_quat()
    ours = np.stack(reference.roll_pitch(observation(q, np.zeros((1000, 3)))), axis=1)
    # Near a pitch of 90 degrees the arcsine turns a rounding of 1e-7 into its root.
    np.testing.assert_allclose(ours, Rotation.from_quat(q).as_euler("xyz")[:, :2], atol=1e-3)
    upended = observation(np.array([0, 0.70711, 0, 0.70711]), np.zeros(3))  # a little too long
    assert np.isfinite(reference.roll_pitch(upended)).all()


@pytest.mark.parametrize(
    ("rotvec", "omega", "action"),
    [
        ((0, 0, 0), (0, 0, 0), NOTHING),
        ((0, 0.05, 0), (0, 0, 0), RIGHT),
        ((0, -0.05, 0), (0, 0, 0), LEFT),
        ((-0.05, 0, 0), (0, 0, 0), FORWARD),
        ((0.05, 0, 0), (0, 0, 0), BACKWARD),
        ((0, 0, 0), (0, 1, 0), RIGHT),
        ((0, 0, 0), (1, 1, 0), RIGHT),  # as good as backward, and earlier in the order
        ((0, 0, 0), (-1, -1, 0), LEFT),  # as good as forward
        ((0, 0, 0), (0, 0.05, 0), NOTHING),  # a push would turn it by more than that
    ],
)
def test_greedy_by_hand(rotvec, omega, action):
    q = Rotation.from_rotvec(rotvec).as_quat()
    assert int(reference.greedy.act((), observation(q, omega), KEY)[0]) == action


def test_random_is_uniform_and_decided_by_its_key():
    keys = rng.to_key(rng.fold(rng.words(KEY), np.arange(20_000)))
    actions = np.asarray(reference.random.act((), None, keys)[0])
    assert actions.dtype == np.int32
    count = np.bincount(actions, minlength=5)
    assert len(count) == 5
    assert stats.chisquare(count).pvalue > 0.01
    np.testing.assert_array_equal(actions, reference.random.act((), None, keys)[0])
    # Successive decisions do not depend on one another.
    pairs = np.bincount(actions[1:] * 5 + actions[:-1], minlength=25)
    assert stats.chisquare(pairs).pvalue > 0.01
    alone = [int(reference.random.act((), None, keys[i])[0]) for i in range(5)]
    assert alone == actions[:5].tolist()


def test_nothing_does_nothing():
    action, prediction, memory = reference.nothing.act((), None, KEY)
    assert int(action) == NOTHING
    assert action.dtype == jnp.int32
    assert isinstance(prediction, NoveltyPrediction)
    assert memory == ()


@pytest.mark.parametrize("agent", REFERENCE, ids=lambda agent: agent.name)
def test_reference_agents_neither_learn_nor_report_novelty(agent):
    memory = agent.init(KEY)
    reading = observation(np.array([0, 0.01, 0, 1.0]), np.zeros(3))
    _, prediction, after = agent.act(agent.begin(memory, KEY), reading, KEY)
    assert (int(prediction.level), float(prediction.probability)) == (0, 0.0)
    assert float(prediction.threshold) == 1.0
    result = Episodes(*(jnp.zeros(3) for _ in range(4)))
    assert agent.learn(after, result) == memory == ()


def test_agents_are_found_by_name():
    assert agents.get("pd") is reference.pd
    assert {agent.name for agent in REFERENCE} <= set(agents.AGENTS)
    assert all(agents.get(name).name == name for name in agents.AGENTS)
    with pytest.raises(ValueError, match="unknown agent 'randon'; did you mean 'random'"):
        agents.get("randon")


def test_a_detector_acts_as_the_agent_that_it_joins():
    assert agents.get("pd+residual").acting is agents.get("pd")
    assert agents.get("mpc+wow").acting is agents.get("mpc")
    # The whole agent heeds its tests, so none without them acts like it.
    assert agents.get("wow").acting is None
    assert agents.get("pd").acting is None


def test_an_agent_that_names_no_level_says_so_by_a_number_that_is_none():
    """0 is the unchanged world, so it cannot mean that nothing was named."""
    assert base.UNNAMED == int(agents.get("pd").named(())) == -1
