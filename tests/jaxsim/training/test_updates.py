"""One call of `learn`, number by number, against NumPy in float64 and against optax."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxsim
from jaxsim import agents, rng, training
from jaxsim.agents import Entry, Episodes
from jaxsim.training import (
    Settings,
    around,
    ewc,
    features,
    forward_model,
    network,
    normalise,
    ppo,
    regression,
    replay,
    surprise,
    wrap,
)
from jaxsim.training.around import Around, Blocks
from jaxsim.training.settings import BOUNDS, Hyper
from tests.jaxsim.draws import assert_each_once, drawn

SMALL = Settings(hidden=(5, 4), updates=3, samples=12, rehearsed=24)
HYPER = Hyper(
    learning_rate=0.02,
    discount=0.9,
    trace_decay=0.7,
    clip=0.1,
    entropy_weight=0.3,
    value_weight=0.6,
    gradient_limit=0.5,
    reward_weight=0.4,
    survival_reward=2.0,
    consolidation=3.0,
    rehearsal=0.8,
    false_alarms=0.02,
)
HYPERS = Hyper(*map(jnp.float32, HYPER))
KEY = jax.random.key(4)
WIDTH, HORIZON = 3, 5
LENGTHS = np.array([5, 3, 0])
"""Steps of episodes; the last one is not there."""


def cartpole_sight():
    return features.flat(*jaxsim.make("CartPole-v1"))


def entry(**values):
    default = {"block": 3, "phase": 2, "variant": 0, "identity": 5}
    default |= {"learning": True, "new_phase": True}
    return Entry(**{name: jnp.asarray(value) for name, value in (default | values).items()})


def memory_of(name="ppo", settings=SMALL):
    """A learner and its memory with moments and numbers that are none of the defaults."""
    learner = training.get(name, settings, cartpole_sight())
    memory = learner.init(KEY)
    random = np.random.default_rng(1)
    moments = normalise.Moments(
        jnp.float32(50), *(jnp.float32(random.uniform(0.5, 1.5, 4)) for _ in range(3))
    )
    parameters = jax.tree.map(
        lambda p: p + jnp.float32(0.3 * random.normal(size=p.shape)), memory.parameters
    )
    return learner, replace(memory, hyper=HYPERS, moments=moments, parameters=parameters)


def episodes_of(learner, memory, seed=2):
    """Episodes of numbers that no world has given, as `Agent.learn` takes them."""
    random = np.random.default_rng(seed)
    env, params = jaxsim.make("CartPole-v1")
    observation, _ = jax.eval_shape(env.reset, KEY, params)
    step = jax.eval_shape(learner.trace, memory, observation, jnp.int32(0))

    def filled(*shape):
        return lambda leaf: jnp.asarray(random.uniform(0, 1.9, (*shape, *leaf.shape)), leaf.dtype)

    trace = jax.tree.map(filled(WIDTH, HORIZON), step)
    # Of nearly the present policy, so that some ratios are clipped and some are not.
    chances, _ = network.apply(memory.parameters, normalise.apply(memory.moments, trace.inputs))
    chance = jnp.take_along_axis(chances, trace.output[..., None], axis=-1)[..., 0]
    chance = chance + jnp.float32(0.08 * random.normal(size=chance.shape))
    totals = jnp.ones(WIDTH), jnp.ones(WIDTH), jnp.asarray(LENGTHS)
    return Episodes(
        *totals,
        jnp.array([False, True, False]),
        played=jnp.asarray(LENGTHS > 0),
        trace=trace._replace(chance=chance),
        rewards=jnp.float32(random.normal(size=(WIDTH, HORIZON))),
        final=jax.tree.map(filled(WIDTH), step),
    )


# Networks -----------------------------------------------------------------------------------------


def forward(parameters, x):
    """Log-probabilities and value by NumPy."""
    for layer in parameters.trunk:
        x = np.tanh(x @ np.asarray(layer.weight, float) + np.asarray(layer.bias))
    out = x @ np.asarray(parameters.head.weight, float) + np.asarray(parameters.head.bias)
    logits = out[..., :-1]
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)), out[..., -1]


def normalised(moments, x):
    return np.clip((np.asarray(x, float) - moments.mean) * moments.factor, -8, 8)


def test_a_network_is_layers_of_tanh_with_two_heads():
    _, memory = memory_of()
    x = np.random.default_rng(0).normal(size=(7, 4))
    outputs = network.apply(memory.parameters, jnp.float32(x))
    for output, expected in zip(outputs, forward(memory.parameters, x), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


def test_a_network_is_drawn_by_its_gains():
    drawn = jax.vmap(lambda key: network.init(key, 8, (16, 16), 4))(jax.random.split(KEY, 200))
    for layer, (rows, columns) in zip(drawn.trunk, ((8, 16), (16, 16)), strict=True):
        # Orthonormal rows times the square root of two.
        assert layer.weight.shape[1:] == (rows, columns) and not np.any(layer.bias)
        squares = np.sum(np.square(layer.weight), axis=2)
        np.testing.assert_allclose(squares, 2, rtol=1e-4)
    assert drawn.head.weight.shape[1:] == (16, 5) and not np.any(drawn.head.bias)
    # Of 16,000 normal numbers.
    assert float(jnp.std(drawn.head.weight)) == pytest.approx(0.01 / 16**0.5, rel=0.03)


@pytest.mark.parametrize(("spread", "factor"), [(2.0, 0.5), (0.0, 1e4)])
def test_inputs_are_scaled_and_clipped(spread, factor):
    """By one over the standard deviation, of at least .0001, and up to eight of them."""
    x = jnp.array([[-spread], [spread]] * 500)
    empty = normalise.Moments(*(jnp.float32(n) for n in (0.0, [0.0], [0.0], [0.0])))
    moments = normalise.update(empty, x, jnp.ones(1000, bool))
    assert float(moments.factor[0]) == pytest.approx(factor, rel=1e-5)
    inputs = jnp.array([[0.5 / factor], [7.9 / factor], [8.1 / factor], [-9.0 / factor]])
    np.testing.assert_allclose(
        normalise.apply(moments, inputs).ravel(), [0.5, 7.9, 8, -8], rtol=1e-5
    )


# Learning -----------------------------------------------------------------------------------------


def gains(episodes, hyper=HYPER):
    """Advantages (W, T) by sums over the rest of each episode."""
    values, rewards = (np.asarray(a, float) for a in (episodes.trace.value, episodes.rewards))
    result = np.zeros((WIDTH, HORIZON))
    for w, length in enumerate(LENGTHS):
        beyond = 0.0 if bool(episodes.terminated[w]) else float(episodes.final.value[w])
        paid = (1 - hyper.discount) * (
            hyper.reward_weight * rewards[w, :length] + hyper.survival_reward
        )
        following = np.append(values[w, 1:length], beyond)[:length]
        surprises = paid + hyper.discount * following - values[w, :length]
        for t in range(length):
            powers = (hyper.discount * hyper.trace_decay) ** np.arange(length - t)
            result[w, t] = np.sum(powers * surprises[t:])
    return result


def test_decisions_are_rows_with_their_advantages():
    learner, memory = memory_of()
    episodes = episodes_of(learner, memory)
    mask = np.arange(HORIZON) < LENGTHS[:, None]
    rows = ppo._Rows.of(jnp.asarray(mask))
    words = rng.fold(rng.words(KEY), 5)
    draw = jax.jit(
        lambda memory, episodes: ppo._drawing(SMALL, cartpole_sight(), memory, episodes, rows)(
            words
        )
    )
    decisions = draw(memory, episodes)
    at = np.asarray(rows.draw(words, SMALL.samples)[0])
    better = gains(episodes)
    usual = better[mask]
    step = jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:])[at], episodes.trace
    )
    expected = ppo.Decisions(
        inputs=step.inputs,
        output=np.eye(2)[step.output],
        chance=step.chance,
        advantage=(better.ravel()[at] - usual.mean()) / usual.std(),
        value=step.value + better.ravel()[at],
    )
    for name in ppo.Decisions._fields:
        np.testing.assert_allclose(
            getattr(decisions, name), getattr(expected, name), rtol=1e-4, atol=1e-5, err_msg=name
        )


def drawn_decisions(memory):
    random = np.random.default_rng(3)
    inputs = random.normal(1.0, 1.0, size=(9, 4))
    output = np.eye(2)[random.integers(0, 2, 9)]
    chances, value = forward(memory.parameters, normalised(memory.moments, inputs))
    # Ratios on both sides of what is clipped.
    chance = (output * chances).sum(axis=1) + random.normal(size=9) * 0.3
    return ppo.Decisions(
        inputs, output, chance, random.normal(size=9), value + random.normal(size=9)
    )


def test_the_loss_is_that_of_the_paper():
    """Schulman et al., 2017, equation 9, with a penalty."""
    _, memory = memory_of()
    d = drawn_decisions(memory)
    variant = ppo.plain._replace(
        penalty=lambda memory, parameters, key: (
            10 * memory.hyper.consolidation + rng.uniform(rng.words(key), 0)
        )
    )
    loss = jax.jit(lambda *given: ppo._loss(given[0], variant, *given[1:]))(
        memory.parameters, memory, jax.tree.map(jnp.float32, d), KEY
    )
    chances, value = forward(memory.parameters, normalised(memory.moments, d.inputs))
    ratio = np.exp((d.output * chances).sum(axis=1) - d.chance)
    clipped = np.clip(ratio, 0.9, 1.1)
    assert 2 < np.sum(ratio != clipped) < 9
    gain = np.minimum(ratio * d.advantage, clipped * d.advantage).mean()
    entropy = -(np.exp(chances) * chances).sum(axis=1).mean()
    miss = ((value - d.value) ** 2).mean()
    penalty = 30 + float(rng.uniform(rng.words(KEY), 0))
    expected = HYPER.value_weight * miss - gain - HYPER.entropy_weight * entropy + penalty
    assert float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [0.01, 10.0])
def test_a_step_is_adam_with_gradients_scaled_to_their_limit(size):
    _, memory = memory_of()
    chain = optax.chain(
        optax.clip_by_global_norm(HYPER.gradient_limit), optax.adam(HYPER.learning_rate, eps=1e-5)
    )
    ours, theirs = (memory.parameters, memory.optimiser), memory.parameters
    state = chain.init(theirs)
    random = np.random.default_rng(4)
    for _ in range(3):
        gradients = jax.tree.map(
            lambda p: jnp.float32(size * random.normal(size=p.shape)), memory.parameters
        )
        ours = ppo._stepped(HYPERS, *ours, gradients)
        moves, state = chain.update(gradients, state)
        theirs = optax.apply_updates(theirs, moves)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), ours[0], theirs
    )


@pytest.fixture(scope="module")
def taught():
    """Compiled `learn` of a learner with every part of the memory."""
    learner, memory = memory_of()
    return jax.jit(learner.learn), memory, episodes_of(learner, memory)


def test_only_a_learner_that_may_learn_and_is_sound_changes(taught):
    learn, memory, episodes = taught
    for still in (
        replace(memory, learning=jnp.asarray(False)),
        replace(memory, fault=jnp.int32(2)),
    ):
        jax.tree.map(
            lambda a, b: np.testing.assert_array_equal(rng_words(a), rng_words(b)),
            learn(still, episodes),
            still,
        )
    spoiled = replace(episodes, rewards=episodes.rewards.at[0, 1].set(jnp.inf))
    broken = learn(memory, spoiled)
    assert int(broken.fault) == ppo.BAD_LOSS
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(rng_words(a), rng_words(b)),
        replace(broken, fault=memory.fault),
        memory,
    )


def rng_words(leaf):
    typed = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if typed else leaf


def test_every_part_of_the_memory_that_learns_has_learned(taught):
    learn, memory, episodes = taught
    after = learn(memory, episodes)
    changed = {
        field.name
        for field in fields(memory)
        if any(
            np.any(rng_words(a) != rng_words(b))
            for a, b in zip(
                jax.tree.leaves(getattr(after, field.name)),
                jax.tree.leaves(getattr(memory, field.name)),
                strict=True,
            )
        )
    }
    assert changed == {"parameters", "optimiser", "moments", "model", "usual", "rounds"}
    assert int(after.rounds) == 1 and float(after.usual.episodes) == 2
    assert float(after.moments.number) == 50 + LENGTHS.sum()
    # What is behind the end of an episode, or of one that is not there, counts for nothing.
    behind = np.arange(HORIZON) >= LENGTHS[:, None]
    spoiled = jax.tree.map(
        lambda leaf: jnp.where(
            jnp.asarray(behind).reshape(WIDTH, HORIZON, *(1,) * (leaf.ndim - 2)), leaf + 1, leaf
        ).astype(leaf.dtype),
        episodes.trace,
    )
    same = learn(memory, replace(episodes, trace=spoiled))
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(rng_words(a), rng_words(b)), same, after
    )


LEARNED_BY = set(Hyper._fields) - {"consolidation", "rehearsal", "false_alarms"}


@pytest.mark.parametrize("name", sorted(LEARNED_BY))
def test_every_number_of_a_lifetime_changes_what_is_learned(name, taught):
    learn, memory, episodes = taught
    usual = learn(memory, episodes).parameters
    hyper = memory.hyper._replace(**{name: 0.5 * getattr(memory.hyper, name)})
    other = learn(replace(memory, hyper=hyper), episodes).parameters
    assert not np.array_equal(usual.trunk[0].weight, other.trunk[0].weight)


def test_lifetimes_take_every_number_from_their_settings():
    values = {name: 0.25 + 0.01 * place for place, name in enumerate(BOUNDS)}
    assert set(values) == set(Hyper._fields)
    hyper = Settings(**values).of_lifetime(7)
    for name, value in values.items():
        assert float(getattr(hyper, name)) == pytest.approx(value), name


# Acting -------------------------------------------------------------------------------------------


def test_a_learner_draws_by_its_policy_and_otherwise_takes_the_best():
    learner, memory = memory_of()
    observation, _ = jaxsim.make("CartPole-v1")[0].reset(KEY, jaxsim.make("CartPole-v1")[1])
    keys = jax.random.split(KEY, 4000)
    act = jax.jit(jax.vmap(lambda memory, key: learner.act(memory, observation, key), (None, 0)))
    inputs = np.array(jax.tree.leaves(observation), float)
    chances, _ = forward(memory.parameters, normalised(memory.moments, inputs))
    best = int(chances.argmax())
    action, prediction, _ = act(memory, keys)
    # 4,000 draws: a standard deviation of at most .008.
    assert np.mean(np.asarray(action) == best) == pytest.approx(np.exp(chances[best]), abs=0.03)
    np.testing.assert_allclose(prediction.threshold, 1 - HYPER.false_alarms, rtol=1e-6)
    action, _, _ = act(replace(memory, learning=jnp.asarray(False)), keys)
    assert np.all(np.asarray(action) == best)


def test_what_is_kept_of_a_step_is_what_was_decided_on():
    learner, memory = memory_of()
    env, params = jaxsim.make("CartPole-v1")
    observation, _ = env.reset(KEY, params)
    memory = replace(memory, watch=memory.watch._replace(steps=jnp.int32(2)))
    inputs = np.array(jax.tree.leaves(observation), float)
    chances, value = forward(memory.parameters, normalised(memory.moments, inputs))
    for action in (0, 1):
        step = learner.trace(memory, observation, jnp.int32(action))
        assert (int(step.output), int(step.action)) == (action, action)
        assert float(step.chance) == pytest.approx(chances[action], rel=1e-4)
        assert float(step.value) == pytest.approx(float(value), rel=1e-4)
        np.testing.assert_allclose(step.inputs, inputs, rtol=1e-6)
        np.testing.assert_allclose(step.body, inputs, rtol=1e-6)


def test_a_step_teaches_nothing_of_a_body_that_was_hit_before():
    learner, memory = memory_of()
    observation, _ = jaxsim.make("CartPole-v1")[0].reset(KEY, jaxsim.make("CartPole-v1")[1])
    for calm in (True, False):
        watch = memory.watch._replace(steps=jnp.int32(2), calm=jnp.asarray(calm))
        step = learner.trace(replace(memory, watch=watch), observation, jnp.int32(0))
        assert bool(step.calm) == calm


def test_a_network_is_drawn_by_none_of_the_keys_of_its_lifetime():
    learner, _ = memory_of()
    memory = learner.init(KEY)
    other = network.init(KEY, 4, SMALL.hidden, 2)
    assert jnp.all(memory.key == KEY)
    assert not np.any(np.asarray(memory.parameters.head.weight) == np.asarray(other.head.weight))


def test_a_wrapped_policy_is_given_parameters_observation_and_key():
    agent = wrap.policy("mine", lambda *given: digest(given), {"gain": np.float32(3)})
    assert agent.name == "mine"
    memory = agent.init(KEY)

    def digest(given):
        parameters, observation, key = given
        return parameters["gain"] * observation + 10 * rng.uniform(rng.words(key), 0)

    for number in (1, 2):
        key = jax.random.key(number)
        action, prediction, after = agent.act(memory, jnp.float32(100), key)
        assert int(action) == int(300 + 10 * rng.uniform(rng.words(key), 0))
        assert action.dtype == jnp.int32 and after is memory
        assert prediction == agents.NoveltyPrediction.none()


# Variants -----------------------------------------------------------------------------------------


def test_phases_are_rehearsed_with_what_was_answered_at_their_ends():
    """Divergence from the policy, and squared error of the value, of the next 128 or all slots."""
    learner, memory = memory_of("ppo+replay")
    store = memory.extra
    now = np.random.default_rng(5).normal(1.0, 1.0, size=store.now.shape)
    memory = replace(memory, extra=store._replace(now=jnp.float32(now), rounds=jnp.int32(1)))
    held = learner.enter(memory, entry())
    chances, value = forward(memory.parameters, normalised(memory.moments, now))
    np.testing.assert_allclose(held.extra.chances, chances, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(held.extra.value, value, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(held.extra.seen, jnp.float32(now))
    other = jax.tree.map(lambda p: p + 0.2, memory.parameters)
    penalty = learner.learn.args[2].penalty(held, other, KEY)
    present, estimate = forward(other, normalised(memory.moments, now))
    apart = (np.exp(chances) * (chances - present)).sum(axis=1).mean()
    miss = ((estimate - value) ** 2).mean()
    expected = HYPER.rehearsal * (apart + HYPER.value_weight * miss)
    assert float(penalty) == pytest.approx(expected, rel=1e-3)


def test_the_next_phase_is_consolidated_around_its_own_end():
    learner, memory = memory_of("ppo+ewc")
    held = memory.extra
    ones = jax.tree.map(jnp.ones_like, held.recent)
    memory = replace(memory, extra=held._replace(recent=ones, rounds=jnp.int32(1)))
    after = learner.enter(memory, entry())
    jax.tree.map(np.testing.assert_array_equal, after.extra.anchor, memory.parameters)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(after.extra.recent))
    moved = jax.tree.map(lambda p: p + 0.5, memory.parameters)
    number = sum(leaf.size for leaf in jax.tree.leaves(moved))
    penalty = float(ewc.VARIANT.penalty(after, moved, KEY))
    assert penalty == pytest.approx(HYPER.consolidation / 2 * 0.25 * number, rel=1e-4)


@pytest.mark.parametrize("size", [24, 300])
def test_rehearsal_reads_as_many_neighbours_as_fit(size):
    learner, memory = memory_of("ppo+replay", replace(SMALL, rehearsed=size))
    store = memory.extra
    # Only the value differs, by slot.
    chances, value = network.apply(memory.parameters, normalise.apply(memory.moments, store.seen))
    off = np.arange(size, dtype=np.float32)
    memory = replace(
        memory,
        extra=store._replace(chances=chances, value=value + off, phases=jnp.int32(1)),
    )
    penalty = learner.learn.args[2].penalty(memory, memory.parameters, KEY)
    first = int(rng.bits(rng.words(KEY), 0)) % size
    slots = (first + np.arange(min(replay.BATCH, size))) % size
    expected = HYPER.rehearsal * HYPER.value_weight * np.mean(np.square(off[slots], dtype=float))
    assert float(penalty) == pytest.approx(expected, rel=1e-3)


def test_which_slots_are_renewed_and_by_what_are_drawn_apart():
    """The number that renews a slot is not the one that chooses its observation."""
    learner, memory = memory_of("ppo+replay")
    random = np.random.default_rng(3)
    inputs = jnp.float32(random.normal(size=(WIDTH * HORIZON, 4)))
    decisions = ppo.Decisions(inputs, *(None,) * (len(ppo.Decisions._fields) - 1))
    after = learner.learn.args[2].after
    store, draws = drawn(lambda: after(memory, decisions, KEY))
    assert_each_once(draws, least=2 * SMALL.rehearsed)
    assert len(np.unique(store.now[:, 0])) > SMALL.rehearsed / 4


# The model of the world ---------------------------------------------------------------------------


def lessons_of(random, number=400):
    """Steps of a body and of blocks by linear laws, some of which must not count."""
    body = random.normal(size=(number, 2))
    action = np.eye(3)[random.integers(0, 3, number)]
    place = random.uniform(-5.2, 5.2, size=(number, 3)) * [1, 1, 1]
    speed = random.uniform(-9, 9, size=(number, 3))
    calm, alone = random.random((2, number)) < 0.8
    laws = random.normal(size=(7, 2)) * 0.1, random.normal(size=(2, 3, 4)) * 0.1
    blocks = Blocks(*map(jnp.asarray, (jnp.float32(place), jnp.float32(speed), alone)))
    here = jax.tree.map(np.asarray, forward_model.flight(blocks))
    change = np.concatenate([body, body * np.abs(body), action], axis=1) @ laws[0]
    flown = (here.flying * laws[1][0]).sum(axis=-1)
    back = (here.bouncing * laws[1][1]).sum(axis=-1) * here.outward
    after = speed + np.where(here.bounces, back, np.where(here.flies, flown, 50.0))
    lessons = forward_model.Lessons(
        body, action, body + np.where(calm[:, None], change, 9.0), calm, blocks, after
    )
    return jax.tree.map(lambda a: a if a.dtype == bool else jnp.float32(a), lessons), laws


learn_model = jax.jit(forward_model.learn)


def test_linear_laws_are_learned_from_what_counts():
    random = np.random.default_rng(7)
    lessons, (of_body, of_blocks) = lessons_of(random)
    lessons = jax.tree.map(jnp.asarray, lessons)
    model = learn_model(forward_model.init(2, 3), lessons, jnp.float32(800), jnp.float32(0))
    calm = np.asarray(lessons.calm)
    predicted = forward_model.body_after(model, lessons.body, lessons.action)
    # The ridge leaves a part in a million.
    np.testing.assert_allclose(predicted[calm], lessons.after[calm], atol=1e-3)
    speed = np.asarray(forward_model.speed_after(model, lessons.block))
    here = forward_model.flight(lessons.block)
    mask = np.asarray(here.flies | here.bounces)
    assert 50 < np.sum(np.asarray(here.bounces)) < np.sum(mask)
    np.testing.assert_allclose(speed[mask], np.asarray(lessons.speed)[mask], atol=5e-3)
    # Each lesson stands for two steps, but for what it is off by.
    assert float(model.body.amount) == pytest.approx(2 * calm.sum(), rel=0.1)
    later = learn_model(model, lessons, jnp.float32(0), jnp.float32(160))
    ratio = float(later.body.amount / model.body.amount)
    assert ratio == pytest.approx(np.exp(-160 / 320), rel=1e-5)


def test_a_block_is_described_by_axis():
    place, speed = jnp.array([[1.0, -4.6, 4.55]]), jnp.array([[3.0, -4.0, -0.2]])
    here = forward_model.flight(Blocks(place, speed, jnp.array([True])))
    fast = np.sqrt(9 + 16 + 0.04) / 10
    np.testing.assert_allclose(here.outward, [[1, -1, 1]])
    v = np.asarray(speed[0])
    flying = [[1, v[i], v[i] * fast, place[0, i] / 5] for i in range(3)]
    np.testing.assert_allclose(here.flying[0], flying, rtol=1e-5)
    out = v * [1, -1, 1]
    depth = np.abs(place[0]) - np.array([4.45, 4.45, 4.5])
    bouncing = [[1, out[i], out[i] * fast, depth[i]] for i in range(3)]
    np.testing.assert_allclose(here.bouncing[0], bouncing, rtol=1e-4, atol=1e-6)
    assert here.flies.tolist() == [[True, False, False]]
    # Slower than half a metre a second towards a wall, or near something: nothing is learned.
    assert here.bounces.tolist() == [[False, True, False]]
    near = forward_model.flight(Blocks(place, speed, jnp.array([False])))
    assert not np.any(near.flies) and not np.any(near.bounces)


def test_least_squares_are_reweighted_by_cauchy():
    """Holland and Welsch, 1977, in float64."""
    random = np.random.default_rng(9)
    x, y = random.normal(size=(50, 3)), random.normal(size=(50, 2)) * 3
    weight = random.uniform(0, 2, 50)
    fit = regression.init(3, 2)
    gram, cross = np.zeros((3, 3)), np.zeros((3, 2))
    law, energy, amount, keep = np.zeros((3, 2)), np.zeros(2), 0.0, 0.7
    for number in range(3):
        fit = regression.update(fit, *map(jnp.float32, (x, y, weight)), jnp.float32(keep), 0.5)
        size = np.maximum(np.sqrt(energy / amount), 0.5) if number else np.full(2, 1e3)
        far = (((y - x @ law) / size) ** 2).mean(axis=1)
        w = weight / (1 + far / 5.0**2)
        gram = keep * gram + (w[:, None] * x).T @ x
        cross = keep * cross + (w[:, None] * x).T @ y
        law = np.linalg.solve(gram, cross)
        energy = keep * energy + w @ (y - x @ law) ** 2
        amount = keep * amount + w.sum()
        for leaf, expected in zip(fit, (gram, cross, energy, amount, law), strict=True):
            np.testing.assert_allclose(leaf, expected, rtol=1e-3, atol=1e-4)


# Surprise -----------------------------------------------------------------------------------------


def around_of(speeds, number, began=True, calm=True):
    """Blocks of speeds (K, 3) m/s in the middle of the room."""
    yes = jnp.full(around.BLOCKS, True)
    blocks = Blocks(jnp.zeros((around.BLOCKS, 3)), jnp.float32(speeds), yes)
    return Around(blocks, yes & began, jnp.asarray(calm), jnp.float32(number))


def test_an_episode_is_watched_from_its_first_observation():
    """Starts by the first, counts against it, and lessons by slots in turn."""
    model = forward_model.init(2, 3)
    random = np.random.default_rng(10)
    speeds = random.uniform(-9, 9, size=(4, around.BLOCKS, 3))
    action = jnp.array([0.0, 1.0, 0.0])
    watch = surprise.watch(2)
    for step, (number, calm) in enumerate(((4, True), (2, True), (5, False), (4, True))):
        now = around_of(speeds[step], number, calm=calm)
        body = jnp.float32(random.normal(size=2))
        before = watch
        watch = surprise.compare(model, watch, body, now)
        assert float(watch.slowest) == pytest.approx(np.abs(speeds[0]).min(), rel=1e-6)
        assert float(watch.fastest) == pytest.approx(np.abs(speeds[0]).max(), rel=1e-6)
        assert float(watch.number) == 4
        assert float(watch.changed) == max(0, 2 * (step >= 1))
        # Counted while nothing has hit the body since the episode began.
        assert float(watch.counts[0]) == min(step, 2)
        assert float(watch.counts[1]) == 3 * around.BLOCKS * step
        block, speed = surprise.lesson(before, now)
        slot = step % around.BLOCKS
        np.testing.assert_allclose(speed, speeds[step][slot], rtol=1e-6)
        if step:
            np.testing.assert_allclose(block.speed, speeds[step - 1][slot], rtol=1e-6)
            assert block.alone
        watch = surprise.expect(model, watch, body, now, action)
        assert int(watch.steps) == step + 1
        np.testing.assert_array_equal(watch.body, body)  # a model that knows nothing
        np.testing.assert_array_equal(watch.speed, now.blocks.speed)
        jax.tree.map(np.testing.assert_array_equal, watch.before, now.blocks)


def test_only_blocks_that_were_alone_a_tick_ago_show_how_they_started():
    began = np.arange(around.BLOCKS) == 1
    speeds = np.array([[9.0, 1, 9], [3, -4, 5], [7, 8, 9], [9, 9, 9]])[: around.BLOCKS]
    model = forward_model.init(2, 3)
    watch = surprise.compare(model, surprise.watch(2), jnp.zeros(2), around_of(speeds, 4, began))
    assert (float(watch.slowest), float(watch.fastest)) == (3, 5)
    none = surprise.compare(model, surprise.watch(2), jnp.zeros(2), around_of(speeds, 4, False))
    numbers = np.asarray(surprise.numbers(none))
    assert np.isnan(numbers[3:5]).all() and numbers[5] == 0


def test_six_numbers_tell_of_an_episode():
    watch = surprise.watch(2)._replace(
        errors=jnp.array([10.0, 12.0, 3.0]),
        counts=jnp.array([5.0, 4.0, 1.0]),
        slowest=jnp.float32(2.5),
        fastest=jnp.float32(8.5),
        changed=jnp.float32(3),
    )
    expected = [np.log1p(2.0), np.nan, np.log1p(3.0), -2.5, 8.5, 3]
    np.testing.assert_allclose(surprise.numbers(watch), expected, rtol=1e-6)


def test_the_farthest_number_is_told_in_standard_deviations():
    usual = surprise.usual()._replace(
        number=jnp.array([50.0, 49.0, 50, 50, 50, 50]),
        mean=jnp.array([1.0, 1, 1, 1, 1, 1]),
        variance=jnp.array([1.0, 1, 0.0, 0.0, 4.0, 4.0]),
    )
    for place, size, far in ((0, 3, 2), (1, 9, 0), (2, 2, 4), (3, 2, 10), (4, 2, 0.5), (5, 0, 0)):
        numbers = jnp.ones(6).at[place].set(size)
        assert float(surprise.deviation(usual, numbers)) == pytest.approx(far, rel=1e-6), place


def test_usual_numbers_are_averaged_and_fade():
    """Of 40 calls of 32 episodes, by the definition, with loops in float64."""
    random = np.random.default_rng(11)
    usual, episodes = surprise.usual(), 0
    number, mean, variance = np.zeros(6), np.zeros(6), np.ones(6)
    judged = share = excess = 0.0
    calibrate = jax.jit(surprise.calibrate)
    for _ in range(40):
        numbers = random.normal(2.0, 0.5, size=(32, 6))
        numbers[random.random((32, 6)) < 0.1] = np.nan
        mask = random.random(32) < 0.8
        usual = calibrate(usual, jnp.float32(numbers), jnp.asarray(mask))
        held = mask & (episodes >= 128) & (number.max() >= 50)
        with np.errstate(invalid="ignore"):
            least = np.array([0.25, 0.25, 0.25, 0.1, 0.1, 0.1])
            far = (numbers - mean) / np.maximum(np.sqrt(variance), least)
            known = ~np.isnan(far) & (number >= 50)
            far = np.where(known, far, 0).max(axis=1)
        before = min(judged, 400.0) * share
        beyond = held & (far > 2)
        over = before * excess + (far - 2)[beyond].sum()
        share = (before + beyond.sum()) / max(min(judged, 400.0) + held.sum(), 1)
        excess = over / max(before + beyond.sum(), 1e-6)
        judged += held.sum()
        if episodes >= 128:
            for i in range(6):
                column = numbers[mask, i]
                column = column[~np.isnan(column)]
                weight = len(column) / max(min(number[i], 200) + len(column), 1)
                gap = column.mean() - mean[i]
                variance[i] = (
                    (1 - weight) * variance[i]
                    + weight * column.var()
                    + weight * (1 - weight) * gap**2
                )
                mean[i] += weight * gap
                number[i] += len(column)
        episodes += mask.sum()
        expected = (episodes, number, mean, variance, judged, share, excess)
        for leaf, value, name in zip(usual, expected, surprise.Usual._fields, strict=True):
            np.testing.assert_allclose(leaf, value, rtol=1e-3, atol=1e-4, err_msg=name)
    assert judged > 400
    # An exponential tail beyond two standard deviations.
    odd = jnp.full(6, jnp.nan).at[4].set(float(mean[4] + 3 * np.sqrt(variance[4])))
    tail = max(share, 0.01) * np.exp(-1 / max(excess, 0.25))
    assert float(surprise.rarity(usual, odd)) == pytest.approx(tail, rel=1e-2)
    near = jnp.full(6, jnp.nan).at[4].set(float(mean[4] + 1.9 * np.sqrt(variance[4])))
    assert float(surprise.rarity(usual, near)) == 1


def test_defaults_and_bounds_of_settings_are_these():
    """Once more, to notice a change by mistake."""
    largest = 3.0e38
    numbers = {
        "learning_rate": (1e-3, 0.0, 1.0),
        "discount": (0.98, 0.0, 0.99999),
        "trace_decay": (0.95, 0.0, 1.0),
        "clip": (0.2, 1e-6, largest),
        "entropy_weight": (0.003, 0.0, 100.0),
        "value_weight": (1.0, 0.0, 100.0),
        "gradient_limit": (0.5, 1e-6, largest),
        "reward_weight": (0.0, -largest, largest),
        "survival_reward": (1.0, -largest, largest),
        "consolidation": (100.0, 0.0, largest),
        "rehearsal": (1.0, 0.0, largest),
        "false_alarms": (0.001, 1e-6, 0.5),
    }
    shapes = {"hidden": (64, 64), "updates": 16, "samples": 512, "rehearsed": 1024}
    assert vars(training.Settings()) == shapes | {name: row[0] for name, row in numbers.items()}
    assert {name: row[1:] for name, row in numbers.items()} == BOUNDS
    settings = training.settings
    most = (settings.MOST_UNITS, settings.MOST_LAYERS, settings.MOST_SAMPLES, settings.MOST_UPDATES)
    assert most == (4096, 8, 2**20, 10_000)
