"""The re-implemented published agent, by hand."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxsim import agents
from jaxsim.agents import wow
from jaxsim.agents.detection import Transition
from jaxsim.agents.lookahead import collided
from jaxsim.agents.sight import Sighting, see
from jaxsim.worlds.cartpole3d.original.messages import feature_vector, parse_feature_vector
from jaxsim.worlds.cartpole3d.types import Observation, Sphere, Vector

KEY = jax.random.key(0)
NOWHERE = Vector(0.0, 0.0, 0.0)


def observation(p, v, q=(0.0, 0.0, 0.0, 1.0), rate=NOWHERE):
    """Four slots, filled with what is given."""
    empty = 4 - len(p)
    p, v = (np.concatenate([a, np.zeros((empty, 3))]) for a in (p, v))
    alive = [np.asarray(i < 4 - empty) for i in range(4)]
    return Observation(
        NOWHERE,
        NOWHERE,
        q,
        rate,
        tuple(Vector(*map(np.float32, one)) for one in p),
        tuple(Vector(*map(np.float32, one)) for one in v),
        tuple(alive),
    )


USUAL = observation([[3, 3, 3], [-3, 2, 6], [2, -3, 5]], [[7, -8, 9], [-7, 7, -6.5], [9, 6.2, -7]])


def test_tails_are_those_of_weibull_or_as_published():
    at = wow.Tail(2.0, 1.7, 0.6)
    x = np.linspace(0, 5, 11)
    # Probabilities in float32 against float64: rounded at 6e-8, a few operations deep.
    weibull = stats.weibull_min.cdf(x, at.shape, loc=at.begin, scale=at.scale)
    np.testing.assert_allclose(wow.tail(x, at, published=False), weibull, atol=1e-6)
    exponential = stats.expon.cdf(x, loc=at.begin, scale=at.scale / at.shape)
    np.testing.assert_allclose(wow.tail(x, at, published=True), exponential, atol=1e-6)
    assert float(wow.tail(2.0, at, published=False)) == 0


def test_small_errors_and_collisions_are_no_evidence():
    limit = 0.2
    errors = np.float32([0.1, 0.19, 0.21, 0.5, -0.7, 1.19, 1.21, -2.0, 30.0])
    excess = np.abs(errors) - limit
    tails = stats.weibull_min.cdf(excess, wow.SHAPE, scale=wow.SCALE)
    expected = np.where((excess > 0) & (excess < 1), tails, 0)
    assert np.count_nonzero(expected) == 4
    # Float32 of an excess of 0.01, rounded at 1e-8.
    np.testing.assert_allclose(wow._excess(errors, limit, published=False), expected, atol=1e-5)


def test_the_forecast_collides_blocks_elastically():
    p = np.array([[0, 0, 5], [0.9, 0.1, 5], [3, 3, 3], [0, 0, 0]], np.float32)
    v = np.array([[6, 0, 0], [-6, 1, 2], [6, 7, 8], [0, 0, 0]], np.float32)
    block = Sphere(Vector(*p.T), Vector(*v.T), np.array([True, True, True, False]))
    after = np.stack(collided(wow.NOMINAL, block, Vector(*v.T)))
    # Float32 sums of speeds of up to 10 m/s, each rounded at 5e-7.
    np.testing.assert_allclose(after.sum(axis=1), v.sum(axis=0), atol=1e-5)
    np.testing.assert_allclose(np.sum(after**2), np.sum(v**2), rtol=1e-5)
    assert after[0, 0] < 0 < after[0, 1]
    np.testing.assert_array_equal(after[:, 2:], v.T[:, 2:])
    moved = wow.flown(block)
    # Drag takes 0.04 (1 + 12 m/s) of the speed a second, 1 % in a tick: 0.0013 m of the way.
    assert float(moved.p.x[2]) == pytest.approx(3 + 0.02 * 6, abs=0.0015)


@pytest.mark.parametrize(
    ("tick", "height", "side", "hits", "counts"),
    [
        (45, 12.0, 0.0, 0, True),  # squared errors of the height and of one side, m^2
        (55, 25.0, 0.0, 0, False),
        (55, 25.0, 0.0, 1, True),
        (55, 42.0, 42.5, 0, True),  # the mean of the three axes is above 28
        (65, 42.0, 58.0, 0, False),  # 33.3
        (65, 42.0, 58.0, 2, True),
        (65, 42.0, 59.0, 0, True),  # 33.7
        (75, 12.0, 0.0, 0, False),
        (75, 12.0, 0.0, 1, True),
        (75, 18.0, 0.0, 1, False),  # the height is off by more than 17
        (75, 45.0, 64.0, 0, False),
    ],
)
def test_late_forecasts_count_after_a_hit_or_where_they_are_far_off(
    tick, height, side, hits, counts
):
    one, nothing = jnp.array([True, False, False, False]), jnp.zeros(4)
    still = Vector(nothing, nothing, nothing)
    place = Vector(nothing - 3.9, nothing, nothing + 1.1)
    report = replace(Sighting.nothing(), block=Sphere(place, still, one))
    off = Vector(place.x + np.sqrt(side), place.y, place.z + np.sqrt(height))
    memory = replace(
        wow._init(),
        ticks=jnp.int32(tick),
        run=jnp.int32(hits),
        forecast=Sphere(off, still, one),
    )
    after = wow._forecast(memory, report, False)
    heights, places = wow.FORECAST[tick]
    mean = (height + side) / 3
    tails = [float(wow.tail(e, at, False)) for e, at in ((height, heights), (mean, places))]
    assert max(tails) > 0
    expected = 0.25 * max(tails) * (hits + 1) if counts else 0.0
    assert float(after.errors) == pytest.approx(expected, rel=1e-4)
    assert int(after.run) == (hits + 1 if counts else 0)


def watched(episode, first, later=None):
    """Evidence of an episode of two observations."""
    memory = replace(wow._init(), episode=jnp.int32(episode))
    watch = wow.detector().watch
    report = see(first)
    memory, prediction = watch(memory, Transition(report, jnp.int32(0), report, jnp.asarray(True)))
    if later is not None:
        shown = Transition(report, jnp.int32(0), see(later), jnp.asarray(False))
        memory, prediction = watch(memory, shown)
    return memory, prediction


def test_nothing_is_declared_in_the_first_episodes():
    more = observation(
        [[3, 3, 3], [-3, 2, 6], [2, -3, 5], [0, 4, 2]],
        [[7, -8, 9], [-7, 7, -6.5], [9, 6.2, -7], [4, 4, 4]],
    )
    for episode, probability in ((5, 0.0), (16, 0.0), (17, 1.0), (30, 1.0)):
        memory, prediction = watched(episode, USUAL, more)
        assert float(prediction.probability) == probability
        assert int(prediction.level) == (8 if probability else 0)
        assert float(memory.appeared) == 1


def test_an_odd_start_is_evidence_and_a_usual_one_is_not():
    assert float(wow._opening(see(USUAL), False)[0]) == 0
    slow = observation([[3, 3, 3], [-3, 2, 6]], [[0.1, 0.2, 0.1], [-7, 7, -6.5]])
    number, violations = wow._opening(see(slow), False)
    assert float(number) > 0.5
    assert int(violations) == 1
    one = observation([[3, 3, 3]], [[7, -8, 9]])
    assert float(wow._opening(see(one), False)[0]) >= 1


@pytest.mark.parametrize(
    ("turns", "usual", "odd"),
    [((1, 0, 0), 0.027, 0.5), ((0, -1, 0), 0.027, 0.5), ((0, 0, 1), 0.57, 2.0)],
)
def test_a_pole_may_turn_as_fast_as_usual_at_the_start(turns, usual, odd):
    def number(rate):
        start = replace(USUAL, pole_velocity=Vector(*(np.float32(rate * c) for c in turns)))
        return float(wow._opening(see(start), False)[0])

    assert number(usual) == 0
    assert number(odd) > 0.5


@pytest.mark.parametrize(("place", "limit"), [(0, 2.85), (1, 3.39), (2, 13.5)])
def test_a_pole_that_turns_otherwise_than_predicted_is_evidence(place, limit):
    before = see(USUAL)

    def evidence(error):
        spin = [np.float32(error if axis == place else 0) for axis in range(3)]
        after = replace(before, spin=Vector(*spin))
        shown = Transition(before, jnp.int32(0), after, jnp.asarray(False))
        return float(wow._structure_error(shown, False))

    assert evidence(0.99 * limit) == 0
    assert evidence(limit + 0.3) > 0.1


def test_a_block_that_flies_at_the_cart_is_a_relation():
    p = np.array([3.0, 4.0, 5.0])
    straight = observation([p], [-1.7 * p])
    assert float(wow._relations(see(straight))) == pytest.approx(0.5)
    away = observation([p], [1.7 * p])
    assert float(wow._relations(see(away))) == 0
    # Side by side: 0.5 for one direction; their lines are apart.
    beside = observation([[3, 3, 3], [-3, 2, 6]], [[7, -8, 9], [7, -8, 9]])
    assert float(wow._relations(see(beside))) == pytest.approx(0.5)


def test_divergence_is_that_of_two_normal_distributions():
    memory = replace(wow._init(), listed=jnp.float32(1.2), entries=jnp.int32(10))
    # Float32; the mean of 0.12 less 0.04 loses a digit, its square two.
    assert float(wow._divergence(memory)) == pytest.approx((0.12 - 0.04) ** 2 / (2 * 0.09**2), 1e-4)
    usual = replace(memory, listed=jnp.float32(0.2))
    assert float(wow._divergence(usual)) == 0
    worse = replace(memory, recent=jnp.full(7, 0.8), ticks=jnp.int32(159))
    expected = 0.15 * (0.88835 - 0.8) ** 2 / (2 * 0.08242**2)
    # Float32: 0.88835 less 0.8, rounded at 6e-8, is 0.088, and is squared.
    assert float(wow._worse(worse)) == pytest.approx(expected, rel=1e-5)


def test_a_lifetime_remembers_failures_and_never_forgets_a_detection():
    begin = wow.detector().begin
    memory = begin(wow._init())
    assert int(memory.episode) == 0
    memory = begin(replace(memory, ticks=jnp.int32(30)))
    assert (int(memory.failures), int(memory.failed_row), int(memory.episode)) == (1, 1, 1)
    assert float(memory.recent[0]) == pytest.approx(31 / 200)
    memory = begin(replace(memory, ticks=jnp.int32(199), episode=jnp.int32(40)))
    assert (int(memory.failures), int(memory.failed_row), int(memory.episode)) == (1, 0, 41)
    memory = begin(replace(memory, declared=jnp.float32(0.7)))
    assert float(memory.declared) == pytest.approx(0.7)
    assert int(memory.since) == 1


def test_it_plays_greedily_until_two_episodes_after_a_detection():
    agent = agents.get("wow")
    memory = agent.begin(agent.init(KEY), KEY)
    leaning = replace(USUAL, pole_quaternion=(0.0, 0.02, 0.0, 0.9998))
    action, prediction, after = agent.act(memory, leaning, KEY)
    assert int(action) == int(agents.get("greedy").act((), leaning, KEY)[0]) == 1
    assert float(prediction.probability) == 0
    assert int(after.action) == 1
    heeding = replace(memory, detector=replace(memory.detector, since=jnp.int32(2)))
    assert int(agent.act(heeding, leaning, KEY)[0]) in range(5)
    # A block overhead, off to the right: it does not push further under it.
    near = observation([[0.75, 0.0, 0.9]], [[-1.0, 0.0, -1.0]])
    away = int(agent.act(heeding, near, KEY)[0])
    assert away != 1
    # From the second episode after a detection on, not before.
    near = replace(near, pole_quaternion=(0.0, 0.002, 0.0, 1.0))
    greedy, cautious = int(agents.get("greedy").act((), near, KEY)[0]), int(wow._cautious(near))
    assert greedy != cautious
    for since, expected in ((0, greedy), (1, greedy), (2, cautious), (3, cautious)):
        heeding = replace(memory, detector=replace(memory.detector, since=jnp.int32(since)))
        assert int(agent.act(heeding, near, KEY)[0]) == expected


def test_the_published_form_joins_controllers_too():
    assert agents.get("pd+wow").name == "pd+wow"
    assert agents.get("wow-published").name == "wow-published"
    shown = Transition(see(USUAL), jnp.int32(0), see(USUAL), jnp.asarray(True))
    _, prediction = wow.detector(published=True).watch(wow._init(), shown)
    assert float(prediction.threshold) == wow.THRESHOLD


def test_the_published_form_is_that_of_each_tail():
    """At each observation, and as an episode ends."""
    often = jnp.full(9, 3.3 * 25 / 7)  # 3.3 violations an episode, which is in the tail
    tagged = replace(wow._init(), episode=jnp.int32(24), tags=often)
    later = replace(tagged, ticks=jnp.int32(3))
    slow = see(observation([[3, 3, 3], [-3, 2, 6]], [[0.1, 0.2, 0.1], [-7, 7, -6.5]]))
    ends, starts, steps = [], [], []
    for published in (False, True):
        detector = wow.detector(published)
        ends.append(float(detector.begin(later).declared))
        assert ends[-1] == float(wow._declared(later, published))
        for numbers, memory, first in ((starts, tagged, True), (steps, later, False)):
            shown = Transition(slow, jnp.int32(0), slow, jnp.asarray(first))
            numbers.append(float(detector.watch(memory, shown)[1].probability))
    for plain, published in (ends, starts, steps):
        assert 0 < plain != published > 0


def test_it_needs_no_more_than_a_feature_vector():
    agent = agents.get("wow")
    memory = agent.begin(agent.init(KEY), KEY)
    vector = json.loads(json.dumps(feature_vector(USUAL, first=True, time_stamp=0.0)))
    parsed, _ = parse_feature_vector(vector)
    action, prediction, _ = agent.act(memory, parsed, KEY)
    expected, same, _ = agent.act(memory, USUAL, KEY)
    assert int(action) == int(expected)
    assert float(prediction.probability) == float(same.probability)


def test_an_episode_begins_without_what_the_last_one_has_shown():
    shown = replace(
        wow._init(),
        episode=jnp.int32(3),
        ticks=jnp.int32(120),
        listed=jnp.float32(1),
        entries=jnp.int32(2),
        opening=jnp.float32(3),
        errors=jnp.float32(4),
        run=jnp.int32(5),
        appeared=jnp.float32(6),
        hits=jnp.int32(7),
    )
    initial = wow._begin(shown, published=False)
    for name in ("ticks", "listed", "entries", "opening", "errors", "run", "appeared", "hits"):
        assert float(getattr(initial, name)) == 0, name
    assert int(initial.episode) == 4
    assert float(initial.recent[0]) == pytest.approx(121 / 200)
    assert int(initial.failures) == 1


@pytest.mark.parametrize(
    ("episode", "failures", "share"), [(3, 0, 0.25), (8, 1, 2 / 9), (9, 1, 0.2), (19, 3, 0.2)]
)
def test_the_rate_of_failures_counts_the_episode_in_play(episode, failures, share):
    """The present episode, of 11 ticks so far, counts among the failures and the episodes."""
    now = replace(
        wow._init(),
        episode=jnp.int32(episode),
        failures=jnp.int32(failures),
        ticks=jnp.int32(10),
    )
    ramp = np.clip((share - 0.20) / (0.25 - 0.20), 0, 1)
    assert float(wow._failing(now)) == pytest.approx(ramp, abs=1e-5)
