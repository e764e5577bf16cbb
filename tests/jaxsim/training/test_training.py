"""The parts of the learners against slow and obvious versions of them."""

import subprocess
import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import agents, rng, training
from jaxsim.agents import Entry, Episodes, reference
from jaxsim.training import (
    Settings,
    advantages,
    ewc,
    features,
    network,
    normalise,
    ppo,
    replay,
    reset,
    ste,
)
from jaxsim.worlds.cartpole3d.types import ACTIONS, DT, Vector

DRAW = np.random.default_rng(5)


def entry(**values):
    default = {"block": 1, "phase": 1, "variant": 0, "identity": 5}
    arguments = default | {"learning": True, "new_phase": True} | values
    return Entry(**{name: jnp.asarray(value) for name, value in arguments.items()})


# Networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(5, 16), (16, 16), (16, 5), (1, 3), (3, 1)])
def test_weights_are_drawn_orthonormal(rows, columns):
    keys = jax.random.split(jax.random.key(3), 256)
    drawn = jax.vmap(lambda key: network.orthogonal(key, rows, columns))(keys)
    assert drawn.shape == (256, rows, columns)
    short = drawn if rows <= columns else drawn.mT
    few, many = short.shape[1:]
    products = np.asarray(short, np.float64) @ np.asarray(short, np.float64).swapaxes(1, 2)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(few), products.shape), atol=2e-6)
    # In no direction more than in another: 256 means of numbers of variance 1 / many.
    means = np.asarray(drawn.mean(axis=0)) * many**0.5
    np.testing.assert_allclose(means, 0, atol=5 / 16)


@pytest.mark.parametrize(("rows", "columns"), [(2, 16), (16, 16), (39, 64)])
def test_weights_do_not_depend_on_how_many_are_drawn(rows, columns):
    """Plain sums had another order in batches of another size, such as 3 or 64 beside 128."""
    keys = jax.random.split(jax.random.key(4), 128)
    draw = jax.jit(jax.vmap(lambda key: network.orthogonal(key, rows, columns)))
    whole = np.asarray(draw(keys))
    for number in (64, 8, 3, 1):
        np.testing.assert_array_equal(draw(keys[:number]), whole[:number])


def test_every_layer_is_drawn_from_a_key_of_its_own(monkeypatch):
    drawn, normal = [], jax.random.normal

    def noted(key, *arguments):
        drawn.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))
        return normal(key, *arguments)

    monkeypatch.setattr(jax.random, "normal", noted)
    for seed in (0, 1):
        network.init(jax.random.key(seed), 4, (3, 3), 2)
    assert len(drawn) == len(set(drawn)) == 2 * 3


def test_a_learner_is_born_without_calling_a_library():
    """A call from many lifetimes at once waits on the threads that it runs on."""
    born = jax.jit(jax.vmap(training.get("ppo").init)).lower(jax.random.split(jax.random.key(0), 2))
    assert "custom_call" not in born.as_text()


# Advantages and statistics ------------------------------------------------------------------------


def test_advantages_equal_the_sum_of_discounted_surprises():
    rewards, values = DRAW.normal(size=(2, 4, 6))
    final = DRAW.normal(size=4)
    length, terminated = np.array([6, 3, 1, 4]), np.array([False, True, False, False])
    actual = advantages.advantages(
        *(jnp.asarray(leaf) for leaf in (rewards, values, final, length, terminated)), 0.9, 0.7
    )
    expected = np.zeros((4, 6))
    for w, steps in enumerate(length):
        beyond = 0.0 if terminated[w] else final[w]
        following = np.append(values[w, 1:steps], beyond)
        surprise = rewards[w, :steps] + 0.9 * following - values[w, :steps]
        for t in range(steps):
            powers = (0.9 * 0.7) ** np.arange(steps - t)
            expected[w, t] = np.sum(powers * surprise[t:])
    # A sum of six terms of about one in float32, against float64.
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_what_is_behind_the_end_of_an_episode_means_nothing():
    rewards, values = jnp.ones((2, 1, 4))
    spoiled = rewards.at[0, 2:].set(jnp.nan)
    arguments = (jnp.zeros(1), jnp.array([2]), jnp.array([True]), 0.9, 0.7)
    clean = advantages.advantages(rewards, values, *arguments)
    np.testing.assert_array_equal(advantages.advantages(spoiled, values, *arguments), clean)
    assert (clean[0, 2:] == 0).all()


def test_running_moments_are_those_of_all_that_counted():
    moments, vectors = normalise.init(3), []
    for size in (5, 1, 9, 0):
        x = DRAW.normal(2.0, 3.0, size=(size + 2, 3)).astype(np.float32)
        mask = np.arange(size + 2) < size
        x[~mask] = np.nan
        moments = normalise.update(moments, jnp.asarray(x), jnp.asarray(mask))
        vectors.append(x[mask])
    # What was there before counts as one vector of mean 0 and variance 1.
    values = np.concatenate(vectors)
    number = len(values) + 1
    mean = values.sum(0) / number
    squares = ((values**2).sum(0) + 1) / number
    np.testing.assert_allclose(moments.number, number)
    # Float32 against float64; the reference's variance, a difference of squares, loses a digit.
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(moments.variance, squares - mean**2, rtol=1e-4)
    x = normalise.apply(moments, jnp.asarray(values))
    # But for the one vector of before among sixteen.
    assert abs(float(x.mean())) < 0.1 and abs(float(x.std()) - 1) < 0.1


# Inputs of the networks ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def observation():
    """A cart that moves, a pole that leans, and blocks, one of which is not there."""
    env, params = jaxsim.make("CartPole3D-v0")
    shapes = jax.eval_shape(lambda key: env.observe(env.start(key, params)), jax.random.key(1))
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def vector(scale):
        return Vector(*(jnp.float32(c) for c in DRAW.normal(scale=scale, size=3)))

    half = np.array([0.03, -0.05, 0.01])
    quaternion = (*half, np.sqrt(1 - np.sum(half**2)))
    return replace(
        empty,
        cart_position=Vector(jnp.float32(1.0), jnp.float32(-2.0), jnp.float32(0.0)),
        cart_velocity=Vector(jnp.float32(0.3), jnp.float32(0.7), jnp.float32(0.0)),
        pole_quaternion=tuple(jnp.float32(q) for q in quaternion),
        pole_velocity=vector(0.3),
        block_position=tuple(vector(3.0) for _ in range(4)),
        block_velocity=tuple(vector(8.0) for _ in range(4)),
        block_alive=tuple(jnp.asarray(alive) for alive in (True, False, True, True)),
    )


def mirrored(o):
    """Mirrored at the plane x = y: a rotation by 90 degrees and a reflection."""

    def vector(v):
        return Vector(v.y, v.x, v.z)

    x, y, z, w = o.pole_quaternion
    spin = o.pole_velocity
    return replace(
        o,
        cart_position=vector(o.cart_position),
        cart_velocity=vector(o.cart_velocity),
        block_position=tuple(vector(p) for p in o.block_position),
        block_velocity=tuple(vector(v) for v in o.block_velocity),
        # Rotations are mirrored as axes of spin are: with the opposite sign.
        pole_quaternion=(-y, -x, -z, w),
        pole_velocity=Vector(-spin.y, -spin.x, -spin.z),
    )


def test_a_mirrored_room_looks_the_same_and_actions_are_mirrored(observation):
    one, other = (features.cartpole3d.look(o) for o in (observation, mirrored(observation)))
    # Mirrored, the same sums are added in another order of float32.
    np.testing.assert_allclose(one.inputs, other.inputs, rtol=1e-5, atol=1e-6)
    swapped = [0, 3, 4, 1, 2]
    np.testing.assert_array_equal(np.array(swapped)[one.actions], other.actions)
    assert sorted(one.actions.tolist()) == list(range(len(ACTIONS)))
    np.testing.assert_allclose(one.body[::2], other.body[1::2], rtol=1e-5, atol=1e-6)


def across(o):
    """Mirrored at the plane x = 0."""

    def vector(v):
        return Vector(-v.x, v.y, v.z)

    x, y, z, w = o.pole_quaternion
    spin = o.pole_velocity
    return replace(
        o,
        cart_position=vector(o.cart_position),
        cart_velocity=vector(o.cart_velocity),
        block_position=tuple(vector(p) for p in o.block_position),
        block_velocity=tuple(vector(v) for v in o.block_velocity),
        pole_quaternion=(x, -y, -z, w),
        pole_velocity=Vector(spin.x, -spin.y, -spin.z),
    )


def test_a_room_looks_the_same_from_all_sides_and_actions_turn_with_it(observation):
    """Mirrored at x = y and at x = 0 in turn, which leads through all eight views."""
    first, other, codes = features.cartpole3d.look(observation), observation, np.arange(5)
    views = set()
    for number in range(8):
        mirror, swapped = ((mirrored, [0, 3, 4, 1, 2]), (across, [0, 2, 1, 3, 4]))[number % 2]
        other, codes = mirror(other), np.array(swapped)[codes]
        view = features.cartpole3d.look(other)
        np.testing.assert_allclose(view.inputs, first.inputs, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(codes[first.actions], view.actions)
        views.add(tuple(codes))
    assert len(views) == 8


def test_the_first_push_is_the_one_under_the_fall(observation):
    for case in (observation, mirrored(observation)):
        action = reference.pd.act((), case, jax.random.key(0))[0]
        assert features.cartpole3d.look(case).actions[1] == action


def test_blocks_that_are_not_there_do_not_count(observation):
    moved = list(observation.block_position)
    moved[1] = Vector(*(jnp.float32(9.0),) * 3)
    other = replace(observation, block_position=tuple(moved))
    one, two = (features.cartpole3d.look(o).inputs for o in (observation, other))
    np.testing.assert_array_equal(one, two)
    none = replace(observation, block_alive=(jnp.asarray(False),) * 4)
    assert (features.cartpole3d.look(none).inputs[2 * features.PAIRS :] == 0).all()


def test_the_most_urgent_blocks_come_closest_soonest(observation):
    """By NumPy, block by block."""
    here, moving = np.array([1.0, -2.0, 0.6]), np.array([0.3, 0.7, 0.0])
    rows = []
    blocks = (observation.block_position, observation.block_velocity, observation.block_alive)
    for place, speed, alive in zip(*blocks, strict=True):
        if not alive:
            continue
        away, going = np.array(place, float) - here, np.array(speed, float) - moving
        wait = np.clip(-(away @ going) / (going @ going), 0.0, 1.5)
        miss = away + wait * going
        late = wait + np.linalg.norm(miss) / 8 + (wait <= 0)
        rows.append((late, [*away / 5, *going / 10, *miss / 5, np.exp(-2 * wait), 1.0]))
    expected = [row for _, row in sorted(rows)]
    np.testing.assert_allclose(features.urgent_blocks(observation), expected, rtol=1e-4, atol=1e-6)


def test_cart_and_pole_are_eight_numbers_about_one(observation):
    (lx, ly), (dlx, dly) = reference.lean(observation)
    # The lean is reported a tick late.
    expected = [10 * (lx + DT * dlx), 10 * (ly + DT * dly), dlx, dly, 1 / 5, -2 / 5, 0.3, 0.7]
    body = features.scaled(features.cart_and_pole(observation))
    np.testing.assert_allclose(body, expected, rtol=1e-5)


def test_of_large_observations_means_of_stretches_are_predicted():
    class Wide:
        name, num_actions = "Wide", 2

        def reset(self, key, params):
            return jnp.arange(130.0), None

    sight = features.flat(Wide(), None)
    assert (sight.size, sight.body) == (130, 64)
    view = sight.look(jnp.arange(130.0))
    np.testing.assert_array_equal(view.inputs, np.arange(130))
    stretches = np.pad(np.arange(130.0), (0, 62)).reshape(64, 3)
    np.testing.assert_allclose(view.body, stretches.mean(axis=1), rtol=1e-6)


def test_stacked_blocks_look_like_listed_ones(observation):
    def stacked(vectors):
        return (jax.tree.map(lambda *leaves: jnp.stack(leaves), *vectors),)

    other = replace(
        observation,
        block_position=stacked(observation.block_position),
        block_velocity=stacked(observation.block_velocity),
        block_alive=(jnp.stack(observation.block_alive),),
    )
    one, two = (features.cartpole3d.look(o).inputs for o in (observation, other))
    np.testing.assert_allclose(one, two, rtol=1e-6)  # a few roundings of float32
    assert one.shape == (features.cartpole3d.size,)


def test_other_environments_are_seen_flat():
    env, params = jaxsim.make("CartPole-v1")
    sight = features.flat(env, params)
    observation, _ = env.reset(jax.random.key(0), params)
    assert (sight.size, sight.body, sight.actions) == (4, 4, 2)
    np.testing.assert_array_equal(
        sight.look(observation).inputs, jnp.stack(jax.tree.leaves(observation))
    )
    with pytest.raises(ValueError, match=r"none of CartPole3D; make the learner with .*flat\(env"):
        features.cartpole3d.look(observation)


# Variants -----------------------------------------------------------------------------------------


def test_fisher_information_is_the_mean_square_of_gradients():
    key = jax.random.key(3)
    parameters = network.init(key, 4, (6, 5), 3)
    parameters = jax.tree.map(lambda p: p + 0.3 * jnp.ones_like(p), parameters)
    x = jax.random.normal(key, (7, 4))
    action = jax.nn.one_hot(jnp.arange(7) % 3, 3)

    def chance(parameters, x, action):
        return jnp.sum(network.apply(parameters, x)[0] * action)

    each = jax.jit(jax.vmap(jax.grad(chance), in_axes=(None, 0, 0)))(parameters, x, action)
    expected = jax.tree.map(lambda g: jnp.mean(g**2, axis=0), each)
    actual = jax.jit(ewc.fisher)(parameters, x, action)
    # Squares of gradients through two layers, by two ways in float32.
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), actual, expected
    )
    # The value is none of the policy.
    assert (actual.head.weight[:, -1] == 0).all() and (actual.head.weight[:, :-1] > 0).all()


def memory_of(agent):
    return agent.init(jax.random.key(0))


def test_consolidation_holds_parameters_once_a_phase_has_ended():
    memory = memory_of(ewc.agent())
    learned = memory.extra._replace(
        recent=jax.tree.map(jnp.ones_like, memory.extra.recent), rounds=jnp.int32(3)
    )
    memory = replace(memory, extra=learned)
    moved = jax.tree.map(lambda p: p + 0.1, memory.parameters)
    free = ewc.VARIANT.penalty(memory, moved, jax.random.key(0))
    same = ewc.agent().enter(memory, entry(new_phase=False))
    held = ewc.agent().enter(memory, entry(new_phase=True))
    assert free == 0 and ewc.VARIANT.penalty(same, moved, jax.random.key(0)) == 0
    assert ewc.VARIANT.penalty(held, memory.parameters, jax.random.key(0)) == 0
    number = sum(leaf.size for leaf in jax.tree.leaves(memory.parameters))
    expected = 0.5 * float(memory.hyper.consolidation) * 0.1**2 * number
    penalty = ewc.VARIANT.penalty(held, moved, jax.random.key(0))
    # Parameters that are moved by 0.1 in float32 have moved by 0.1 to 1e-6, thousands of them.
    np.testing.assert_allclose(penalty, expected, rtol=1e-3)
    # A test phase, in which nothing was learned, adds nothing.
    again = ewc.agent().enter(held, entry(block=2))
    jax.tree.map(np.testing.assert_array_equal, again.extra, held.extra)


def test_recent_importance_is_the_mean_of_a_phase_and_later_a_running_one(monkeypatch):
    memory = memory_of(ewc.agent())
    first = ewc.agent().enter(memory, entry())
    # Nothing has been learned that could be held on to.
    jax.tree.map(np.testing.assert_array_equal, first.extra, memory.extra)
    monkeypatch.setattr(ewc, "fisher", lambda p, x, a: jax.tree.map(lambda leaf: 0 * leaf + 3, p))
    decisions = SimpleNamespace(inputs=jnp.zeros((2, memory.moments.mean.size)), output=None)
    ones = jax.tree.map(jnp.ones_like, memory.extra.recent)
    for rounds, share in ((0, 1.0), (4, 1 / 5), (30, 1 / ewc.WINDOW)):
        held = memory.extra._replace(recent=ones, rounds=jnp.int32(rounds))
        taught = ewc.VARIANT.after(replace(memory, extra=held), decisions, jax.random.key(0))
        np.testing.assert_allclose(taught.recent.head.bias, 1 + 2 * share, rtol=1e-6)
        assert int(taught.rounds) == rounds + 1


def test_rehearsal_gives_each_phase_the_same_share_and_stays_bounded():
    settings = Settings(rehearsed=3000)
    agent = replay.agent(settings)
    memory = memory_of(agent)
    for phase in range(3):
        store = memory.extra._replace(
            now=jnp.full_like(memory.extra.now, phase + 1.0), rounds=jnp.int32(1)
        )
        memory = agent.enter(replace(memory, extra=store), entry(block=phase + 1))
    shares = [float(jnp.mean(memory.extra.seen[:, 0] == phase + 1)) for phase in range(3)]
    # 3,000 independent draws: a standard deviation of .009.
    np.testing.assert_allclose(shares, [1 / 3] * 3, atol=0.03)
    assert memory.extra.seen.shape == (3000, features.cartpole3d.size)
    # With the very answers that are remembered nothing is to be learned; with others there is.
    variant = agent.learn.args[2]
    # But for the rounding of logarithms.
    assert variant.penalty(memory, memory.parameters, jax.random.key(0)) < 1e-7
    other = jax.tree.map(lambda p: p + 0.1, memory.parameters)
    assert variant.penalty(memory, other, jax.random.key(0)) > 1e-4
    fresh = memory_of(agent)
    assert variant.penalty(fresh, other, jax.random.key(0)) == 0


def test_a_learner_that_resets_does_so_where_it_may_learn():
    agent = reset.agent(Settings(learning_rate=(0.1, 0.2)))
    memory = agent.assign(memory_of(agent), jnp.uint32(3))
    moved = replace(memory, parameters=jax.tree.map(lambda p: p + 1, memory.parameters))
    tested = agent.enter(moved, entry(learning=False))
    trained = agent.enter(moved, entry(learning=True))
    jax.tree.map(np.testing.assert_array_equal, tested.parameters, moved.parameters)
    assert not tested.learning and trained.learning
    weights = [m.parameters.trunk[0].weight for m in (trained, moved, memory)]
    assert (weights[0] != weights[1]).all() and (weights[0] != weights[2]).any()
    assert float(trained.hyper.learning_rate) == np.float32(0.2)


def test_an_expert_learns_the_first_thing_it_may_learn():
    agent = ste.agent()
    memory = memory_of(agent)
    learning = []
    for identity, allowed in ((4, False), (2, True), (3, True), (2, False), (2, True)):
        memory = agent.enter(memory, entry(identity=identity, learning=allowed))
        learning.append(bool(memory.learning))
    assert learning == [False, True, False, False, True]
    # In another schedule the same task may have another number.
    assert agent.enter(memory, entry(identity=2, variant=7)).learning
    assert not agent.enter(memory, entry(identity=7, variant=2)).learning


# Settings and doors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"learning_rate": -1e-3}, "learning_rate is -0.001; it must be from 0 to 1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be from 0 to 1"),
        ({"learning_rate": (1e-3, 2.0)}, "learning_rate is 2.0; it must be from 0 to 1"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'; it must be a number"),
        ({"learning_rate": ()}, r"learning_rate has shape \(0,\)"),
        ({"discount": 1.0}, "discount is 1.0; it must be from 0 to 0.99999"),
        ({"trace_decay": 1.5}, "trace_decay is 1.5; it must be from 0 to 1"),
        ({"clip": 0.0}, "clip is 0.0; it must be from 1e-06"),
        ({"gradient_limit": 0}, "gradient_limit is 0.0; it must be"),
        ({"entropy_weight": -0.1}, "entropy_weight is -0.1"),
        ({"reward_weight": float("inf")}, "reward_weight is inf"),
        ({"false_alarms": 0.0}, "false_alarms is 0.0; it must be from 1e-06 to 0.5"),
        ({"updates": 0}, "updates is 0; it must be from 1 to 10000"),
        ({"samples": 1.5}, "samples is 1.5; it must be a whole number"),
        ({"rehearsed": True}, "rehearsed is True; it must be a whole number"),
        ({"hidden": ()}, r"hidden is \(\); it must name from 1 to 8 layers"),
        ({"hidden": 64}, r"hidden is 64; it must be a tuple, as \(64, 64\)"),
        ({"hidden": (64, 0)}, "hidden is 0; it must be from 1 to 4096"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(values, words):
    with pytest.raises(ValueError, match=words):
        Settings(**values)


def test_a_sweep_gives_lifetimes_their_numbers_in_turn():
    settings = Settings(learning_rate=(0.1, 0.2, 0.3), discount=[0.9, 0.8])
    hypers = [settings.of_lifetime(jnp.uint32(number)) for number in range(4)]
    assert [round(float(h.learning_rate), 3) for h in hypers] == [0.1, 0.2, 0.3, 0.1]
    assert [round(float(h.discount), 3) for h in hypers] == [0.9, 0.8, 0.9, 0.8]
    assert settings.sweeps() == {"learning_rate": (0.1, 0.2, 0.3), "discount": (0.9, 0.8)}
    assert {f.name for f in fields(Settings)} >= set(ppo.Hyper._fields)
    assert hash(settings) == hash(replace(settings))


def test_learners_have_names():
    for name in training.LEARNERS:
        assert training.get(name).name == name
    with pytest.raises(ValueError, match="'pp0'"):
        training.get("pp0")


def test_those_who_do_not_learn_do_not_wait_for_optax():
    program = "import sys, jaxsim, jaxsim.agents; print('optax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


# Randomness of learning ---------------------------------------------------------------------------


def test_rows_are_drawn_by_their_words_and_lessons_end_with_the_episode():
    mask = jnp.arange(6) < jnp.array([[4], [6], [1]])
    rows = ppo._Rows.of(mask)
    words = [rng.fold(rng.words(jax.random.key(0)), n) for n in range(2)]
    (one, episode), (again, _), (other, _) = (rows.draw(w, 64) for w in (words[0], *words))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    # Only steps that were made, each about as often.
    made = np.flatnonzero(mask)
    assert set(np.asarray(one)) <= set(made.tolist())
    np.testing.assert_array_equal(one // 6, episode)
    # Of as many shares as there are steps, each is one step.
    np.testing.assert_array_equal(rows.draw(words[0], len(made))[0], made)


def test_every_update_and_every_round_draws_for_itself(monkeypatch):
    """The words of all draws of two rounds: of each update, of what comes after, and of lessons."""
    drawn = []
    real = ppo._Rows.draw

    def draw(self, words, number):
        jax.debug.callback(lambda a, b: drawn.append((int(a), int(b))), words.a, words.b)
        return real(self, words, number)

    monkeypatch.setattr(ppo._Rows, "draw", draw)
    learner = ppo.ppo(Settings(updates=3))
    memory = learner.init(jax.random.key(0))
    memory = learner.enter(memory, entry())
    learn = jax.jit(learner.learn)
    for _ in range(2):
        memory = learn(memory, made_up(learner, memory))
    jax.effects_barrier()
    assert int(memory.rounds) == 2
    assert len(drawn) == len(set(drawn)) == 2 * (3 + 1 + 1)


def made_up(learner, memory, width=2, horizon=5):
    """Episodes of numbers that no world has given, as `Agent.learn` takes them."""
    env, params = jaxsim.make("CartPole3D-v0")
    shapes, _ = jax.eval_shape(env.reset, jax.random.key(0), params)
    step = jax.eval_shape(learner.trace, memory, shapes, jnp.int32(0))

    def filled(*shape):
        return lambda leaf: jnp.asarray(DRAW.uniform(0, 1, (*shape, *leaf.shape)), leaf.dtype)

    totals = jnp.ones(width), jnp.ones(width), jnp.full(width, horizon), jnp.zeros(width, bool)
    return replace(
        Episodes(*totals),
        trace=jax.tree.map(filled(width, horizon), step),
        rewards=jnp.ones((width, horizon)),
        final=jax.tree.map(filled(width), step),
    )


def test_importances_of_all_phases_add_up():
    learner = agents.get("ppo+ewc")
    memory = learner.init(jax.random.key(0))
    held = memory.extra
    ones = jax.tree.map(jnp.ones_like, held.importance)
    taught = held._replace(importance=ones, recent=ones, rounds=jnp.int32(3))
    later = learner.enter(replace(memory, extra=taught), entry(phase=2)).extra
    for leaf in jax.tree.leaves(later.importance):
        np.testing.assert_array_equal(leaf, 2)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(later.recent))
    assert int(later.rounds) == 0


def test_a_lesson_is_a_step_and_what_follows_it(monkeypatch):
    """The next step of its own episode, behind the last one the episode's end."""
    learner = ppo.ppo(Settings(updates=1))
    memory = learner.init(jax.random.key(0))
    episodes = made_up(learner, memory)
    lengths = jnp.array([5, 3])
    episodes = replace(episodes, length=lengths)
    mask = jnp.arange(5) < lengths[:, None]
    taught = []

    def learn(model, lessons, *counts):
        taught.append(lessons)
        return model

    monkeypatch.setattr(ppo.forward_model, "learn", learn)
    words = rng.words(jax.random.key(1))
    ppo._learned_model(features.cartpole3d, memory.model, episodes, ppo._Rows.of(mask), words)
    (lessons,) = taught
    bodies, final = np.asarray(episodes.trace.body), np.asarray(episodes.final.body)
    follows = {}
    for w, length in enumerate((5, 3)):
        for t in range(length):
            after = bodies[w, t + 1] if t + 1 < length else final[w]
            follows[bodies[w, t].tobytes()] = after
    before, after = np.asarray(lessons[0]), np.asarray(lessons[2])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(other, follows[one.tobytes()])
    assert {one.tobytes() for one in before} == set(follows)


def test_an_episode_begins_without_what_the_last_one_has_surprised_with():
    learner = ppo.ppo()
    memory = memory_of(learner)
    watched = jax.tree.map(lambda leaf: leaf + jnp.ones_like(leaf), memory.watch)
    initial = learner.begin(replace(memory, watch=watched), jax.random.key(1))
    jax.tree.map(np.testing.assert_array_equal, initial.watch, memory.watch)
    jax.tree.map(np.testing.assert_array_equal, initial.parameters, memory.parameters)


def test_each_block_that_is_begun_afresh_is_begun_otherwise():
    """Networks of two blocks, and of two lifetimes, are drawn by keys of their own."""
    agent = reset.agent()
    born = [agent.init(jax.random.key(number)) for number in (0, 0, 1)]
    weights = [
        np.asarray(agent.enter(memory, entry(block=block)).parameters.trunk[0].weight)
        for memory, block in zip(born, (1, 2, 1), strict=True)
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (weights[one] != weights[other]).mean() > 0.9


def test_the_store_of_a_phase_is_filled_at_once_and_then_renewed_bit_by_bit():
    agent = replay.agent(Settings(rehearsed=2000))
    memory = agent.enter(memory_of(agent), entry())
    assert int(memory.extra.phases) == 0  # nothing has been learned that could be rehearsed
    after = agent.learn.args[2].after

    def decisions(value):
        return SimpleNamespace(inputs=jnp.full((50, features.cartpole3d.size), value))

    first = replace(memory, extra=after(memory, decisions(1.0), jax.random.key(0)))
    assert float(first.extra.now.min()) == 1.0
    second = after(first, decisions(2.0), jax.random.key(1))
    renewed = float(jnp.mean(second.now[:, 0] == 2.0))
    # 2,000 draws of one in eight: a standard deviation of .0074.
    assert renewed == pytest.approx(1 / replay.RENEWED, abs=0.04)
    # The next phase begins again.
    later = agent.enter(replace(first, extra=second), entry(block=2, phase=2))
    assert int(second.rounds) == 2 and int(later.extra.rounds) == 0
    assert int(later.extra.phases) == 1


def test_what_is_rehearsed_is_drawn_by_the_key():
    agent = replay.agent(Settings(rehearsed=2000))
    memory = memory_of(agent)
    store = memory.extra
    inputs = jnp.asarray(DRAW.normal(size=store.seen.shape), jnp.float32)
    memory = replace(memory, extra=store._replace(seen=inputs, phases=jnp.int32(1)))
    moved = jax.tree.map(lambda p: p + 0.1, memory.parameters)
    penalty = agent.learn.args[2].penalty
    penalties = [float(penalty(memory, moved, jax.random.key(n))) for n in (0, 0, 1, 2)]
    assert penalties[0] == penalties[1] and len(set(penalties)) == 3
