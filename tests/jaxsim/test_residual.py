"""The detector `residual` on feature vectors of the original, parsed from JSON, and by hand."""

import json
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import agents
from jaxsim.agents import bank, limits, residual, touch
from jaxsim.agents.base import hear_nothing, never_fails
from jaxsim.agents.detection import Transition, joined
from jaxsim.agents.noise_scale import NoiseScale
from jaxsim.agents.sight import Sighting, see
from jaxsim.worlds.cartpole3d.levels import params_of
from jaxsim.worlds.cartpole3d.original.messages import feature_vectors, parse_feature_vectors
from jaxsim.worlds.cartpole3d.types import Config, Observation, Sphere, Vector
from tests.oracles.recordings import observation_arrays, read_recording

KEY = jax.random.key(0)
TICKS = 201  # of the longest episode, with its reset


@cache
def watcher(watch_tick=residual.residual.watch):
    """Compiled: a lifetime's memory and one episode, padded, to (memory, probabilities)."""

    @jax.jit
    def watch(memory, observations, actions, length):
        def step(carry, row):
            memory, before = carry
            observation, action, k = row
            after = see(observation)
            later, prediction = watch_tick(memory, Transition(before, action, after, k == 0))
            memory = jax.tree.map(lambda new, old: jnp.where(k < length, new, old), later, memory)
            return (memory, after), prediction.probability

        memory = residual.residual.begin(memory)
        before = see(jax.tree.map(lambda leaf: leaf[0], observations))
        rows = (observations, actions, jnp.arange(TICKS))
        (memory, _), probability = jax.lax.scan(step, (memory, before), rows)
        return memory, probability

    return watch


def observation(reported, rows):
    """Reported arrays of some rows as an observation."""

    def vector(values):
        return Vector(*(values[..., i] for i in range(3)))

    r = {name: values[rows] for name, values in reported.items()}
    slots = range(r["block_alive"].shape[1])
    return Observation(
        vector(r["cart_position"]),
        vector(r["cart_velocity"]),
        tuple(r["pole_quaternion"][:, i] for i in range(4)),
        vector(r["pole_velocity"]),
        tuple(vector(r["block_position"][:, i]) for i in slots),
        tuple(vector(r["block_velocity"][:, i]) for i in slots),
        tuple(r["block_alive"][:, i] for i in slots),
    )


def through_json(observations, slots):
    """Write observations as feature vectors, and read them back from the text."""
    first = np.arange(len(observations.cart_position.x)) == 0
    text = json.dumps(feature_vectors(observations, first=first, time_stamp=0.0))
    return parse_feature_vectors(json.loads(text), Config(max_blocks=slots))[0]


def padded(leaf):
    return np.concatenate([leaf, np.repeat(leaf[-1:], TICKS - len(leaf), axis=0)])


def watch_episodes(recording, slots, longest=TICKS):
    """Yield what each episode of a recording ends with, as a lifetime of its own."""
    for number in range(len(recording.seeds)):
        rows = np.flatnonzero((recording.episode == number) & recording.covered)[:longest]
        if len(rows) < 2:
            continue
        alive = recording.reported["block_alive"][rows]
        observations = jax.tree.map(
            padded, through_json(observation(recording.reported, rows), slots)
        )
        # The action of a row led to it.
        actions = padded(np.maximum(recording.action[rows], 0).astype(np.int32))
        memory, probability = watcher()(residual.residual.init(), observations, actions, len(rows))
        yield int(residual.named(memory)), np.asarray(probability)[: len(rows)], alive


def test_no_false_alarm_in_recordings_of_the_original(recorded_data):
    for policy in ("pd", "random"):
        recording = read_recording(recorded_data(f"oracle/L200_easy_{policy}.npz"))
        for level, probability, _ in watch_episodes(recording, 4):
            assert level == 0
            # A block that meets a wall is predicted to 6e-5 m/s, all that is free to 1.9e-6, and a
            # first hit to .032, within the bounds of parity: a third of its limit, which is .25.
            assert probability.max() < 0.25


def test_a_turn_may_be_reported_by_either_of_its_quaternions(recorded_data):
    recording = read_recording(recorded_data("oracle/L200_easy_pd.npz"))
    signs = np.where(np.arange(len(recording.episode)) % 3 == 0, -1.0, 1.0)
    turned = recording.reported["pole_quaternion"] * signs[:, None]
    other = replace(recording, reported=recording.reported | {"pole_quaternion": turned})
    for usual, flipped in zip(*(watch_episodes(r, 4) for r in (recording, other)), strict=True):
        assert usual[0] == flipped[0] == 0
        np.testing.assert_array_equal(flipped[1], usual[1])


def test_a_force_is_fitted_to_the_blocks_that_are_free():
    along = Vector(jnp.array([0.6, 0.0, 1.0, 0.0]), jnp.array([0.8, 1.0, 0.0, 0.0]), jnp.zeros(4))
    change = Vector(*(jnp.array([3.0, 5.0, 70.0, 9.0]) * c for c in along))
    fitted = partial(bank._fit, along, change)
    assert float(fitted(jnp.array([True, True, False, False]))) == pytest.approx(4.0)
    assert float(fitted(jnp.array([True, False, False, False]))) == pytest.approx(3.0)
    assert float(fitted(jnp.zeros(4, bool))) == 0


def test_a_wind_is_fitted_to_the_blocks_that_are_free():
    p = Vector(jnp.zeros(4), jnp.zeros(4), jnp.array([3.0, 5.0, 7.0, 2.0]))
    slab = bank.wind_on_block(p.z)
    free = jnp.array([True, True, False, False])
    change = Vector(-2.0 * slab, -3.0 * slab, jnp.zeros(4))
    struck = Vector(change.x.at[2].set(50.0), change.y, change.z)
    for blown in (change, struck):
        left = bank._off_wind(p, blown, free)
        # Float32 of forces of up to 30 m/s^2, rounded at 2e-6.
        np.testing.assert_allclose(jnp.stack(left)[:, :2], 0.0, atol=1e-5)
    # It blows towards -x and -y only.
    against = bank._off_wind(p, Vector(-change.x, -change.y, change.z), free)
    np.testing.assert_array_equal(against.x[:2], -change.x[:2])


def test_only_a_block_that_flies_straight_at_the_cart_is_aimed():
    target, p = Vector(0.0, 0.0, 0.5), Vector(3.0, 4.0, 0.5)

    def heads(angle, turned=1.0):
        x, y = (
            -0.6 * np.cos(angle) + 0.8 * np.sin(angle),
            -0.8 * np.cos(angle) - 0.6 * np.sin(angle),
        )
        v = Vector(8.0 * turned * x, 8.0 * turned * y, 0.0)
        return bool(residual._heads_for(target, p, v, 8.0))

    # 2e-6 m/s more for the rounding of a report.
    edge = residual.AIMED + 2e-6 / 8
    assert heads(0.0) and heads(0.99 * edge) and heads(-0.99 * edge)
    assert not heads(1.01 * edge) and not heads(-1.01 * edge)
    assert not heads(0.0, turned=-1.0)


UNLIKE = {
    (108, "easy"): (1, 6),  # of six episodes, those that are over before anything can differ
    (108, "medium"): (1, 6),
    (203, "easy"): (3, 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [level for level in bank.LEVELS if level != 208])
def test_recorded_novelties_are_found_and_named(level, recorded_data):
    for difficulty in ("easy", "medium", "hard"):
        slots = 32 if level == 108 else 4
        name = f"oracle/L{level}_{difficulty}_pd.npz"
        episodes = list(watch_episodes(read_recording(recorded_data(name), slots), slots))
        detected = [probability.max() >= residual.THRESHOLD for _, probability, _ in episodes]
        missed, all_of = UNLIKE.get((level, difficulty), (0, 6))
        assert (len(detected), len(detected) - sum(detected)) == (all_of, missed)
        assert {named for named, _, _ in episodes} <= {level, 0}
        assert sum(named == level for named, _, _ in episodes) == sum(detected)


def play(lanes32, level, difficulty="easy", seed=7):
    """Reported arrays of 40 ticks of `pd` in 64 lanes, the actions, and which rows count."""
    params = params_of(level, difficulty, jnp.float32)
    start = lanes32.start(seed, params)
    reading, state, *_ = lanes32.step(start, 0, params)
    rows, actions, alive = [observation_arrays(reading)], [np.zeros(lanes32.width, int)], []
    for _ in range(40):
        action = agents.get("pd").act((), reading, KEY)[0]
        alive.append(~np.asarray(state.done))
        reading, state, *_ = lanes32.step(state, action, params)
        rows.append(observation_arrays(reading))
        actions.append(np.asarray(action))
    reported = {name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
    reported["block_alive"] = reported["block_alive"].astype(bool)
    return reported, np.stack(actions, axis=1), 1 + np.sum(alive, axis=0)


@pytest.mark.parametrize("level", [101, 102, 103, 104, 106, 201, 203, 204])
def test_simulated_novelties_are_found_and_named_from_json_only(level, lanes32):
    reported, actions, lengths = play(lanes32, level, "hard")
    named = []
    for lane in range(8):
        one = {name: values[lane] for name, values in reported.items()}
        rows = np.arange(lengths[lane])
        observations = jax.tree.map(padded, through_json(observation(one, rows), 4))
        done = padded(actions[lane][rows].astype(np.int32))
        memory, probability = watcher()(residual.residual.init(), observations, done, len(rows))
        detected = np.asarray(probability)[: len(rows)].max() >= residual.THRESHOLD
        assert detected or not residual.named(memory)
        named.append(int(residual.named(memory)))
    # An episode may be over before a block meets a wall, or have no block that is aimed, or have
    # all its blocks overlap at the start, which hides how they were thrown.
    assert set(named) <= {level, 0}
    assert named.count(level) >= (6 if level in (103, 104, 203, 204) else 8)


@pytest.mark.parametrize("level", [200, 201, 203])
def test_exact_sensors_need_no_estimate_of_their_noise(level, lanes32):
    """The same predictions from a memory of the same form, of which the estimate stays as it is."""
    reported, actions, lengths = play(lanes32, level, "hard")
    initial = replace(residual.residual.init(), nominal=jnp.asarray(level == 200))
    for lane in range(8):
        rows = np.arange(lengths[lane])
        episode = jax.tree.map(padded, observation({n: v[lane] for n, v in reported.items()}, rows))
        given = episode, padded(actions[lane][rows].astype(np.int32)), len(rows)
        whole, expected = watcher()(initial, *given)
        memory, probability = watcher(residual.residual.watch_exact)(initial, *given)
        # Two programs round differently: by 5e-7 at speeds of 5 m/s, and the limit is 1e-5.
        np.testing.assert_allclose(probability, expected, atol=0.05)
        np.testing.assert_array_equal(probability >= 0.5, expected >= 0.5)
        assert residual.named(memory) == residual.named(whole)
        assert jax.tree.structure(memory) == jax.tree.structure(whole)
        for part in ("noise", "sequence"):
            before, after = (jax.tree.leaves(getattr(m, part)) for m in (initial, memory))
            for old, new in zip(before, after, strict=True):
                np.testing.assert_array_equal(new, old)


def test_a_detector_changes_nothing_of_what_its_controller_does():
    draw = np.random.default_rng(1)
    q = draw.normal(size=(20, 4)) * [0.05, 0.05, 0.5, 0] + [0, 0, 0, 1]
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    zero, no = np.zeros(()), np.asarray(False)
    alone, both = agents.get("pd"), agents.get("pd+residual")
    assert both.name == "pd+residual"
    memory = both.begin(both.init(KEY), KEY)
    act = jax.jit(both.act)
    for one, spin in zip(q, draw.normal(size=(20, 3)), strict=True):
        still = Vector(zero, zero, zero)
        pole = tuple(np.float32(c) for c in one)
        rate = Vector(*(np.float32(c) for c in spin))
        reading = Observation(still, still, pole, rate, (still,) * 4, (still,) * 4, (no,) * 4)
        action, _, memory = act(memory, reading, KEY)
        assert int(action) == int(alone.act((), reading, KEY)[0]) == int(memory.action)
        assert not memory.first
    assert both.begin(memory, KEY).first


def evidence(**shown):
    return replace(residual.residual.init().now, strength=jnp.float32(5), **shown)


def test_most_episodes_decide_the_level_of_a_lifetime():
    memory = residual.residual.init()
    assert int(residual.named(memory)) == 0
    yes = jnp.asarray(True)
    for shown, level in [
        ({"aimed": yes}, 203),
        ({"resting": jnp.int32(2)}, 108),  # as many votes for both: the lower level counts
        ({"fast_walls": yes}, 108),
        ({"fast_walls": yes}, 204),
    ]:
        memory = replace(memory, now=evidence(**shown))
        assert int(residual.named(memory)) == level
        memory = residual.residual.begin(memory)
    assert int(residual.named(memory)) == 204
    # Nothing is named where nothing was found.
    calm = replace(evidence(fast_walls=jnp.asarray(True)), strength=jnp.float32(0.5))
    assert int(residual.name(calm)) == 0


def test_a_lifetime_does_not_forget_what_it_found():
    memory = residual.residual.init()
    votes = memory.votes.at[bank.LEVELS.index(203)].set(1.0)
    memory = residual.residual.begin(replace(memory, strength=jnp.float32(9.0), votes=votes))
    report = see(
        Observation(
            Vector(0.0, 0.0, 0.0),
            Vector(0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 1.0),
            Vector(0.0, 0.0, 0.0),
            tuple(Vector(3.0, 3.0, 2.0 * i) for i in range(3)),
            (Vector(7.0, -8.0, 9.0),) * 3,
            (np.asarray(True),) * 3,
        )
    )
    shown = Transition(report, jnp.int32(0), report, jnp.asarray(True))
    memory, prediction = jax.jit(residual.residual.watch)(memory, shown)
    assert float(memory.now.strength) == 0  # a start as the nominal world draws them
    assert int(prediction.level) == 3
    assert float(prediction.probability) == pytest.approx(0.9)
    assert float(prediction.threshold) == residual.THRESHOLD


def test_detectors_are_found_by_name():
    assert agents.get("greedy+residual") is agents.get("greedy+residual")
    with pytest.raises(ValueError, match="unknown detector 'residuals'; did you mean 'residual'"):
        agents.get("pd+residuals")
    with pytest.raises(ValueError, match="unknown detector ''"):
        agents.get("pd+")
    with pytest.raises(ValueError, match="unknown agent 'pid'"):
        agents.get("pid+residual")


def of_blocks(model, error, missed, **values):
    """Ten accelerations that one model misses by an error, and the others as the nominal world."""
    errors = jnp.full(bank.MODELS, missed).at[model].set(error)
    counts = jnp.full(bank.MODELS, 10.0)
    missed = jnp.full(bank.MODELS, missed)
    totals = {"block_errors": 10 * errors, "block_missed": 10 * missed, "block_counts": counts}
    return totals | values


def test_blocks_are_explained_by_the_model_that_misses_little():
    towards = {"inward": jnp.float32(1)}
    for model in range(bank.MODELS):
        evident = residual.name(evidence(**of_blocks(model, 0.4, 9.0, **towards)))
        assert int(evident) == bank.BLOCK_LEVELS[model]
    away = of_blocks(bank.CENTROID, 0.4, 9.0, inward=jnp.float32(-1))
    assert int(residual.name(evidence(**away))) == 205
    for error, missed in ((0.6, 9.0), (0.4, 3.0)):  # too much by itself, or too little explained
        assert int(residual.name(evidence(**of_blocks(2, error, missed)))) == 0
    nothing = of_blocks(2, 0.0, 0.0, block_counts=jnp.zeros(bank.MODELS))
    assert int(residual.name(evidence(**nothing))) == 0


def test_evidence_that_is_more_certain_names_the_level():
    yes, evident = jnp.asarray(True), {}
    for values, level in (
        ({"crowded": yes}, 208),
        ({"gathered": yes}, 103),
        ({"aimed": yes}, 203),
        ({"fast_walls": yes}, 204),
        (of_blocks(2, 0.4, 9.0), 107),
        ({"structure_ticks": ticks_of(1)}, bank.STRUCTURE_LEVELS[1]),
        ({"still": yes}, 102),
        ({"moved": yes}, 202),
        ({"resting": jnp.int32(1)}, 108),
        ({"flying": jnp.int32(2)}, 208),
    ):
        evident |= values
        assert int(residual.name(evidence(**evident))) == level
        assert int(residual.name(replace(evidence(**evident), strength=jnp.float32(0.9)))) == 0


def ticks_of(model):
    """Ticks in which one model explains cart and pole best."""
    return jnp.ones_like(residual._init().now.structure_ticks).at[model].set(2)


def test_an_episode_begins_without_the_evidence_of_the_last():
    fresh = residual._init()
    ones = jax.tree.map(jnp.ones_like, fresh.now)
    initial = residual._begin(replace(fresh, now=ones, strength=jnp.float32(2)))
    for kept, none in zip(jax.tree.leaves(initial.now), jax.tree.leaves(fresh.now), strict=True):
        np.testing.assert_array_equal(kept, none)
    assert float(initial.strength) == 2


def test_a_controller_behind_a_detector_hears_all_that_it_would_hear_alone():
    """Its memory is what each of its own functions makes of it; the detector's stays."""

    def noted(name):
        return lambda memory, *given: {**memory, name: memory[name] + given[-1]}

    calls = ("begin", "learn", "tell", "enter", "assign")
    alone = agents.Agent(
        "noting",
        lambda memory, reading, key: (2, agents.NoveltyPrediction.none(), memory),
        lambda key: {**dict.fromkeys(calls, 0), "fault": 3},
        **{name: noted(name) for name in calls},
        trace=lambda memory, reading, action: (memory["learn"], reading, action),
        fault=lambda memory: memory["fault"],
        faults=("one", "two", "three"),
    )
    both = joined(alone, replace(residual.residual, tell=hear_nothing))
    memory = both.init(KEY)
    for number, name in enumerate(calls, 5):
        before = memory
        memory = getattr(both, name)(memory, number)
        assert memory.controller == {**before.controller, name: number}
        jax.tree.map(np.testing.assert_array_equal, memory.detector, before.detector)
    assert both.trace(memory, "seen", 4) == (6, "seen", 4)
    assert both.fault(memory) == 3 and both.faults == alone.faults
    assert both.acting is alone
    heard = joined(alone, replace(residual.residual, tell=lambda memory, hint: hint))
    assert heard.tell(memory, 7).detector == 7
    mute = joined(replace(alone, trace=None, fault=never_fails), residual.residual)
    assert mute.trace is None and mute.fault is never_fails


@pytest.fixture(scope="module")
def nominal(lanes32):
    """Reported arrays, actions and lengths of episodes of level 200."""
    return play(lanes32, 200)


def strengths(reported, actions, length):
    """Strength of the evidence after each observation of an episode."""
    rows = np.arange(length)
    reports = jax.tree.map(padded, observation(reported, rows))
    done = padded(actions[rows].astype(np.int32))
    _, probability = watcher()(residual.residual.init(), reports, done, length)
    probability = np.asarray(probability)[:length]
    return probability / (1 - probability)


def lane_of(nominal, lane=0):
    reported, actions, lengths = nominal
    return {n: v[lane].copy() for n, v in reported.items()}, actions[lane], int(lengths[lane])


@pytest.mark.parametrize(
    ("name", "place", "usual", "odd"),
    [
        ("cart_position", 0, 2.999, 3.01),
        ("cart_position", 1, -2.999, -3.01),
        ("cart_velocity", 0, 0.0202, 0.021),
        ("cart_velocity", 1, -0.0202, -0.021),
        ("pole_quaternion", 0, 0.01, 0.0102),
        ("pole_quaternion", 1, -0.01, -0.0102),
        ("pole_quaternion", 2, 0.01, 0.0102),
        ("pole_velocity", 0, 0.0319, 0.034),
        ("pole_velocity", 1, -0.0319, -0.034),
    ],
)
def test_starts_of_cart_and_pole_are_held_against_the_nominal_ones(
    nominal, name, place, usual, odd
):
    reported, actions, _ = lane_of(nominal)
    for number, novel in ((usual, False), (odd, True)):
        reported[name][0, place] = number
        assert (strengths(reported, actions, 1)[0] >= 1) == novel


def test_a_start_is_held_against_where_the_blocks_were_before_the_hidden_tick():
    """A block beside the cart after the tick was away from it before, with a usual speed."""

    def odd(x):
        alive = jnp.arange(4) == 0
        at, flying = Vector(x, 0.0, 0.5), Vector(-8.0, -8.0, 3.0)
        slots = [jax.tree.map(lambda c: jnp.where(alive, c, 0.0), of) for of in (at, flying)]
        report = replace(
            Sighting.nothing(), block=Sphere(*slots, alive), count=jnp.int32(2), newest=flying
        )
        pose = replace(report.reported, qw=jnp.float32(1))
        limit = limits.of(NoiseScale.none(), jnp.asarray(False))
        start = residual._at_start(residual._no_evidence(), replace(report, reported=pose), limit)
        return float(start.strength) > 0

    # 3 m/s up is slower than any block of level 200, unless cart and pole may have slowed it.
    reach = 0.5 + 0.5 + touch.EXTRA
    assert odd(reach - 0.05)
    assert not odd(reach - 0.3)


@pytest.fixture(scope="module")
def strength():
    """Strength of the evidence of one tick, behind a hit of the cart."""
    memory = residual._init()
    memory = replace(memory, now=replace(memory.now, touched=jnp.asarray(True)))
    watch = jax.jit(residual.residual.watch)

    def of(before, after):
        shown = Transition(before, jnp.int32(0), after, jnp.asarray(False))
        return float(watch(memory, shown)[0].now.strength)

    return of


def test_a_block_moves_by_its_velocity_whatever_it_touches(strength):
    def block(height):
        alive = jnp.arange(4) == 0
        at, up = Vector(0.5, 0.0, height), Vector(0.0, 0.0, 1.0)
        slots = (jax.tree.map(lambda c: jnp.where(alive, c, 0.0), of) for of in (at, up))
        return replace(Sighting.nothing(), block=Sphere(*slots, alive), count=jnp.int32(1))

    assert strength(block(0.3), block(0.32)) < 0.2
    assert strength(block(0.3), block(0.32003)) > 1


def test_an_episode_must_end_where_the_pole_falls():
    fresh = residual._init()

    def after(ticks, falls):
        now = replace(fresh.now, ticks=jnp.int32(ticks), falls=jnp.asarray(falls))
        return float(residual._begin(replace(fresh, now=now)).strength)

    assert after(50, False) == residual.SURE
    assert after(50, True) == 0
    assert after(199, False) == residual.SURE
    assert after(200, False) == 0
    assert after(0, False) == 0  # before the first episode


def test_an_episode_may_not_go_on_behind_a_fall(strength):
    def leaning(angle):
        half, standing = jnp.float32(angle / 2), Sighting.nothing()
        pose = replace(standing.reported, qx=jnp.sin(half), qw=jnp.cos(half))
        return replace(standing, reported=pose)

    limit = float(residual.NOMINAL.lean_limit)
    assert strength(leaning(limit + 0.01), leaning(limit + 0.02)) == residual.SURE
    # The last observation of an episode.
    assert strength(leaning(limit - 0.01), leaning(limit + 0.01)) == 0
