"""Novelty through noisy sensors: what is learned of the noise, the filter, the sequential test."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import agents
from jaxsim.agents import directions, filtering, limits, martingale, sequential, sight
from jaxsim.agents.base import NoveltyHint
from jaxsim.agents.filtering import Scores
from jaxsim.agents.martingale import Mixture
from jaxsim.agents.noise_scale import NoiseScale
from jaxsim.agents.residual import residual
from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import DT, Vector

NOISE = {
    "sensors/noise_position": 0.01,
    "sensors/noise_velocity": 0.02,
    "sensors/noise_angle": 0.005,
    "sensors/noise_rate": 0.03,
}
ROWS = [
    NOISE,
    {"sensors/noise_angle": 0.01},
    {},
    {**NOISE, "cart/mass": 1.1},
    {**NOISE, "blocks/buoyancy": 0.995},
    {**NOISE, "sensors/offset_angle": 0.01},
    {**NOISE, "sensors/noise_rate": 0.06},
]
"""Worlds of the lanes: nominal ones, then some that change after the training."""
NOMINAL = 3
SAME, CHANGED = 16, 4
"""Lanes of each."""
TRAINING, AFTER = 4, 3


def lanes(nominal):
    """Parameters of all lanes, leaves (L,): in the training of nominal physics."""
    made = []
    for number, row in enumerate(ROWS):
        changed = number >= NOMINAL
        values = NOISE if changed and nominal else row
        _, params = jaxsim.make("CartPole3D-v0", values, level=200)
        made += [jax.tree.map(jnp.float32, params)] * (CHANGED if changed else SAME)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *made)


def lane_of(row):
    first = min(row, NOMINAL) * SAME + max(row - NOMINAL, 0) * CHANGED
    return slice(first, first + (SAME if row < NOMINAL else CHANGED))


@pytest.fixture(scope="module")
def reports():
    """Memories of `residual` behind each episode, leaves (E, L, ...), and probabilities, (E, L)."""
    env, _ = jaxsim.make("CartPole3D-v0", ROWS[-2], level=200)
    agent = agents.get("pd+residual")

    def episode(memory, key, params, known):
        hint = NoveltyHint(jnp.where(known, 0, -1), *(jnp.int32(-1),) * 4)
        memory = agent.begin(agent.tell(memory, hint), key)

        def tick(carry, _):
            memory, state, action, probability = carry
            observation, state, *_ = env.step(key, state, action, params)
            action, prediction, after = agent.act(memory, observation, key)
            decision = after, action, prediction.probability
            memory, action, probability = jax.tree.map(
                partial(jnp.where, state.done), (memory, action, probability), decision
            )
            return (memory, state, action, probability), None

        # The first of 201 ticks has no push, as in `reset`.
        start = memory, env.start(key, params), jnp.int32(0), jnp.float32(0)
        (memory, *_, probability), _ = jax.lax.scan(tick, start, None, length=201)
        return memory, (memory.detector, probability)

    batch = jax.jit(jax.vmap(episode, in_axes=(0, 0, 0, None)))
    number = NOMINAL * SAME + (len(ROWS) - NOMINAL) * CHANGED
    memory = jax.vmap(agent.init)(jax.random.split(jax.random.key(0), number))
    reports = []
    for place in range(TRAINING + AFTER):
        known = place < TRAINING
        keys = jax.random.split(jax.random.key(place), number)
        memory, report = batch(memory, keys, lanes(known), jnp.asarray(known))
        reports.append(jax.tree.map(np.asarray, report))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *reports)


def deviations(noise):
    return np.asarray(jax.vmap(lambda n: n.deviations(filtering.rate_per_angle()))(noise))


def test_the_size_of_the_noise_is_learned_from_the_training(reports):
    memory, _ = reports
    learned = deviations(jax.tree.map(lambda leaf: leaf[TRAINING - 1], memory.noise))
    true = np.array(list(NOISE.values()))
    # Estimates are upper ones by two standard errors, of some thousand numbers.
    ratio = learned[lane_of(0)] / true
    assert np.all((ratio > 0.95) & (ratio < 1.2)), ratio
    assert np.all(learned[lane_of(1)][:, :2] == 0)
    assert np.all(np.abs(learned[lane_of(1)][:, 2] / 0.01 - 1) < 0.2)
    assert np.all(learned[lane_of(2)] == 0)


def test_nothing_is_learned_from_episodes_that_may_be_novel(reports):
    memory, _ = reports
    counts = memory.noise.counts
    assert np.all(counts[TRAINING:] == counts[TRAINING - 1])
    assert np.all(counts[TRAINING - 1] > counts[0])


def test_training_is_no_evidence_and_the_nominal_world_no_novelty(reports):
    _, probability = reports
    assert np.all(probability[:TRAINING] == 0)
    same = NOMINAL * SAME
    assert np.all(probability[TRAINING:, :same] < 0.5)


@pytest.mark.parametrize("row", range(NOMINAL, len(ROWS)))
def test_small_changes_are_found_through_noise(row, reports):
    _, probability = reports
    assert np.all(probability[-1, lane_of(row)] >= 0.5)


def test_innovations_of_the_nominal_world_are_as_the_filter_expects(reports):
    """In units of their expected deviation; the noise is an upper estimate, so rather less."""
    memory, _ = reports
    scores = jax.tree.map(lambda leaf: leaf[TRAINING:, lane_of(0)], memory.sequence.scores)
    z = scores.slope / np.sqrt(np.maximum(scores.information, 1e-12))
    assert np.abs(z.mean()) < 0.1
    assert 0.75 < z.std() < 1.1
    assert 2 < scores.largest.max() < martingale.LIMIT


@pytest.mark.parametrize(
    ("row", "name", "size"),
    [(3, "cart_mass", 0.1), (4, "block_weight", 0.005 * 9.81), (5, "offset_angle", 0.01)],
)
def test_scores_estimate_the_size_of_a_change(row, name, size, reports):
    memory, _ = reports
    place = directions.NAMES.index(name)
    scores = memory.sequence.scores
    slope, information = (
        leaf[TRAINING:, lane_of(row), place].sum() for leaf in (scores.slope, scores.information)
    )
    # A mass is a relative change whose effect is not quite linear.
    assert slope / information == pytest.approx(size, rel=0.15)


def test_a_lane_is_followed_as_it_would_be_alone():
    """Beside lanes without noise, for which nothing is computed alone."""
    report = replace(sight.Sighting.nothing(), vx=jnp.float32(0.1))
    tick = sequential.Tick(
        jnp.full(4, 0.01),
        jnp.int32(1),
        report,
        jnp.asarray(False),
        jnp.asarray(True),
        jnp.ones(4, bool),
        jnp.asarray(False),
    )
    one = sequential.follow(jnp.asarray(True), sequential.Sequence.none(), tick)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (sequential.Sequence.none(), tick))
    batch = jax.vmap(sequential.follow)(jnp.array([True, False]), *both)
    for alone, beside in zip(jax.tree.leaves(one), jax.tree.leaves(batch), strict=True):
        np.testing.assert_allclose(beside[0], alone, rtol=1e-5, atol=1e-6)
    untouched = jax.tree.map(lambda leaf: leaf[1], batch)
    for left, before in zip(
        jax.tree.leaves(untouched[0]), jax.tree.leaves(sequential.Sequence.none()), strict=True
    ):
        np.testing.assert_array_equal(left, before)
    assert untouched[1] == 0


# Directions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("cart_mass", {"cart_mass": 1.01 * Params().cart_mass}),
        ("pole_length", {"pole_length": 1.01 * Params().pole_length}),
        ("push_size", {"force": 1.01 * Params().force}),
    ],
)
def test_directions_are_derivatives_of_a_tick(name, changed):
    report = replace(
        sight.Sighting.nothing(),
        reported=replace(
            sight.Sighting.nothing().reported,
            qx=jnp.float32(0.02),
            qy=jnp.float32(0.05),
            qw=jnp.float32(np.sqrt(1 - 0.02**2 - 0.05**2)),
        ),
        spin=Vector(jnp.float32(0.3), jnp.float32(-0.2), jnp.float32(0)),
    )
    action = jnp.int32(1)

    def next_of(params):
        pose, speed = sight.predicted(params, report, sight.push(params, action))
        return directions.along_axes(speed, sight.spin_of(pose, speed))

    nominal, other = next_of(Params()), next_of(Params(**changed))
    pose, speed = sight.predicted(directions.models(), report, sight.push(Params(), action))
    velocity, rate = directions.along_axes(speed, sight.spin_of(pose, speed))
    change = directions.of_motion(velocity, rate, action, filtering.push_response())
    place = directions.OF_CARTPOLE.index(name)
    for axis in range(2):
        for quantity in range(2):
            expected = float(other[quantity][axis] - nominal[quantity][axis]) / 0.01
            # The direction is measured with a tenth, which is not quite linear.
            assert float(change[quantity][place, axis]) == pytest.approx(
                expected, rel=0.15, abs=2e-3
            )


def test_a_block_that_weighs_something_falls():
    report = sight.Sighting.nothing()
    change = directions.of_blocks(report)[directions.OF_BLOCKS.index("block_weight")]
    np.testing.assert_allclose(change[2], -DT, rtol=1e-6)
    np.testing.assert_array_equal(change[:2], 0)


# The sequential test ----------------------------------------------------------------------------


def lifetimes(size, number, episodes=45, before=5, seed=0):
    """Strength of the evidence at the end of each episode of synthetic lifetimes, (E, L).

    One direction changes by `size` standard errors an episode behind `before` of them.
    """
    random = np.random.default_rng(seed)
    kinds = len(directions.NAMES)

    def scores(slope):
        return Scores(
            slope, jnp.ones(kinds), jnp.zeros_like(Scores.none().surprise), jnp.float32(0)
        )

    @jax.jit
    @partial(jax.vmap, in_axes=(0, 0))
    def episode(mixture, slope):
        mixture = mixture.opened()
        shown = scores(slope)
        return mixture.ended(shown), mixture.strength(shown)

    learned = Mixture.none().learn(scores(jnp.zeros(kinds)))
    mixture = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (number, *leaf.shape)), learned)
    strengths = []
    for place in range(episodes):
        slope = random.normal(size=(number, kinds))
        slope[:, 3] += size * (place >= before)
        mixture, strength = episode(mixture, jnp.float32(slope))
        strengths.append(strength)
    return np.array(strengths)


def test_false_alarms_are_as_rare_as_set():
    alarms = (lifetimes(0.0, 4000) >= 1).any(axis=0).mean()
    # Two standard errors above what is promised; Ville's bound is not tight, so mostly less.
    assert alarms <= martingale.FALSE_ALARMS + 2 * np.sqrt(martingale.FALSE_ALARMS / 4000)
    assert alarms > 0


@pytest.mark.parametrize(("size", "episodes"), [(2.0, 9.0), (4.0, 3.0), (8.0, 1.5)])
def test_changes_are_found_soon(size, episodes):
    strengths = lifetimes(size, 400)
    alarm = strengths[5:] >= 1
    assert alarm.any(axis=0).mean() > 0.99
    assert (alarm.argmax(axis=0) + 1).mean() < episodes


def test_evidence_stays_finite():
    strengths = lifetimes(1e6, 4, episodes=8)
    assert np.all(np.isfinite(strengths))
    assert np.all(strengths[5:] > 1)


def test_weights_of_all_times_of_change_add_up_to_one():
    mixture = Mixture.none()
    for _ in range(7):
        mixture = mixture.opened()
    spent = float(mixture.sizes[0, 0])
    assert spent + float(martingale._rest(mixture.episodes)) == pytest.approx(1.0, rel=1e-6)


# Limits -----------------------------------------------------------------------------------------


def test_without_noise_limits_allow_nothing_more():
    limit = limits.of(NoiseScale.none(), jnp.asarray(False))
    assert not limit.noisy
    for name in ("position", "velocity", "angle", "rate", "place", "spin", "turn", "blur"):
        assert getattr(limit, name) == 0


@pytest.mark.parametrize(("position", "angle"), [(0.1, 0.0), (0.1, 0.03), (1e-3, 0.03)])
def test_a_hit_is_missed_as_rarely_as_a_reading_is_an_alarm(position, angle):
    size = np.square([position, 0.0, angle, 0.0])
    factors = np.array([2.0, 2.0, 2.0 - DT**2 * filtering.rate_per_angle() ** 2 / 2, 2.0])
    noise = NoiseScale(jnp.asarray(1e9 * factors * size), jnp.full(4, 1e9))
    limit = limits.of(noise, jnp.asarray(False))
    # Readings of the places of two blocks, or of a block and the tip of a pole of 1 m.
    for spread in (np.sqrt(2) * position, np.hypot(position, angle)):
        assert limit.blur > 0.99 * martingale.LIMIT * spread
    assert limit.blur < 1.5 * martingale.LIMIT * np.hypot(position, angle)


def test_a_detector_hears_whether_an_episode_is_novel():
    memory = residual.init()
    for novel, nominal in ((0, True), (1, False), (-1, False)):
        hint = NoveltyHint(jnp.int32(novel), *(jnp.int32(-1),) * 4)
        assert bool(residual.tell(memory, hint).nominal) is nominal
