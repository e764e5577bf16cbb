"""What learners learn of how the world moves, and what surprises them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.training import around, features, forward_model, regression, surprise
from jaxsim.worlds.cartpole3d.types import ACTIONS, Vector

DRAW = np.random.default_rng(7)


# Least squares ------------------------------------------------------------------------------------


def test_elimination_solves_equations_of_any_units():
    x = DRAW.normal(size=(60, 7)) * np.array([1e3, 1.0, 1e-3, 5.0, 1.0, 20.0, 1.0])
    truth = DRAW.normal(size=(7, 2))
    gram, cross = x.T @ x, x.T @ x @ truth
    solution = regression.solve(jnp.asarray(gram, jnp.float32), jnp.asarray(cross, jnp.float32))
    # Predictions of hundreds, from correlations that float32 and the ridge change by 1e-6.
    np.testing.assert_allclose(x @ np.asarray(solution), x @ truth, atol=0.02)


def test_what_follows_another_law_does_not_spoil_a_regression():
    truth = DRAW.normal(size=(3, 2))
    fit, plain, update = regression.init(3, 2), [], jax.jit(regression.update)
    for _ in range(20):
        x = DRAW.normal(size=(200, 3))
        y = x @ truth + DRAW.normal(scale=0.01, size=(200, 2))
        y[:2] += 20.0
        plain.append((x, y))
        arrays = (jnp.asarray(a, jnp.float32) for a in (x, y, np.ones(200)))
        fit = update(fit, *arrays, jnp.float32(0.5), 1e-3)
    x, y = (np.concatenate(a) for a in zip(*plain, strict=True))
    spoiled = np.abs(np.linalg.lstsq(x, y, rcond=None)[0] - truth).max()
    assert np.abs(fit.weight - truth).max() < 0.01 < spoiled


def test_what_does_not_count_is_not_learned():
    x, y = jnp.ones((4, 2)), jnp.ones((4, 1))
    arguments = (jnp.array([1.0, 1, 0, 0]), jnp.float32(0.9), 1e-3)
    update = jax.jit(regression.update)
    fit = update(regression.init(2, 1), x, y, *arguments)
    spoiled = update(regression.init(2, 1), x, y.at[2:].set(99.0), *arguments)
    jax.tree.map(np.testing.assert_array_equal, fit, spoiled)
    assert regression.scale(regression.init(2, 1), 1e-3) == regression.UNKNOWN


# What is near what --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def start():
    env, params = jaxsim.make("CartPole3D-v0")
    shapes = jax.eval_shape(lambda key: env.observe(env.start(key, params)), jax.random.key(1))
    upright = (*[jnp.float32(0)] * 3, jnp.float32(1))
    here = Vector(*(jnp.float32(c) for c in (2.0, -1.0, 0.0)))
    observation = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    observation = replace(observation, cart_position=here, pole_quaternion=upright)
    far = [(here.x - 4 * jnp.sign(here.x), y, z) for y, z in ((2, 5), (-2, 5), (2, 8), (-2, 8))]
    places = tuple(Vector(*(jnp.float32(c) for c in place)) for place in far)
    still = (Vector(*(jnp.float32(0.0),) * 3),) * 4
    alive = (jnp.asarray(True),) * 4
    return replace(observation, block_position=places, block_velocity=still, block_alive=alive)


def moved(observation, **by):
    """The first block somewhere else, relative to the cart."""
    here = observation.cart_position
    place = Vector(*(jnp.float32(getattr(here, c) + by.get(c, 0.0)) for c in "xyz"))
    return replace(observation, block_position=(place, *observation.block_position[1:]))


def test_a_block_that_may_touch_cart_or_pole_is_not_alone(start):
    free = around.of(start)
    assert free.blocks.alone.all() and free.calm and free.number == 4
    for place in ({"x": 1.05, "z": 0.5}, {"y": 0.6, "z": 0.9}, {"z": 1.8}):
        touched = around.of(moved(start, **place))
        assert touched.blocks.alone.tolist() == [False, True, True, True] and not touched.calm
    for place in ({"x": 1.3, "z": 0.5}, {"z": 2.2}):
        assert around.of(moved(start, **place)).blocks.alone.all()


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"x": 0.67, "z": 1.0}, {"x": 0.69, "z": 1.0}),  # beside the pole
        ({"z": 1.92}, {"z": 1.94}),  # over its tip
        ({"y": 1.14, "z": 0.5}, {"y": 1.16, "z": 0.5}),  # beside the cart
        ({"y": -0.9, "z": 0.94}, {"y": -0.9, "z": 0.96}),  # over the cart
    ],
)
def test_distances_from_which_nothing_touches(start, inside, outside):
    assert not around.of(moved(start, **inside)).blocks.alone[0]
    assert around.of(moved(start, **outside)).blocks.alone[0]


def test_surroundings_are_of_now_and_of_a_tick_ago(start):
    """A block that leaves the cart is alone now, and was not before."""
    leaving = moved(start, x=1.3, z=0.5)
    fast = (Vector(*map(jnp.float32, (10.0, 0.0, 0.0))), *start.block_velocity[1:])
    for observation, began in ((leaving, True), (replace(leaving, block_velocity=fast), False)):
        surroundings = around.of(observation)
        assert surroundings.blocks.alone.all() and surroundings.calm
        assert surroundings.were_alone.tolist() == [began, True, True, True]
    np.testing.assert_allclose(surroundings.blocks.place[0], [3.3, -1.0, 0.5 - 4.95], rtol=1e-6)
    np.testing.assert_allclose(surroundings.blocks.speed[0], [10, 0, 0])
    for x, y, calm in ((4.34, 0, True), (4.36, 0, False), (0, -4.36, False)):
        cart = Vector(*map(jnp.float32, (x, y, 0.0)))
        assert bool(around.of(replace(start, cart_position=cart)).calm) == calm
    gone = replace(start, block_alive=(jnp.asarray(False), *start.block_alive[1:]))
    assert float(around.of(gone).number) == 3 and not around.of(gone).were_alone[0]


def test_blocks_that_touch_are_not_alone(start):
    second = start.block_position[1]
    beside = second._replace(x=second.x + 1.01)
    other = replace(start, block_position=(beside, *start.block_position[1:]))
    assert around.of(other).blocks.alone.tolist() == [False, False, True, True]
    apart = (beside._replace(x=second.x + 1.03), *start.block_position[1:])
    assert around.of(replace(start, block_position=apart)).blocks.alone.all()
    gone = replace(other, block_alive=(jnp.asarray(False), *start.block_alive[1:]))
    assert around.of(gone).blocks.alone.tolist() == [False, True, True, True]


def test_along_an_axis_a_block_flies_or_bounces():
    place = jnp.array([4.0, 4.5, -4.5]) * jnp.ones((2, 1))
    speed = jnp.array([[8.0, 8.0, 8.0], [8.0, 8.0, -8.0]])
    here = forward_model.flight(around.Blocks(place, speed, jnp.array([True, True])))
    # The floor is touched 4.5 m from the centre: at the very edge nothing is said.
    assert here.flies.tolist() == [[True, False, False]] * 2
    deeper = place.at[:, 2].set(-4.6)
    here = forward_model.flight(around.Blocks(deeper, speed, jnp.array([True, True])))
    assert here.bounces.tolist() == [[False, True, False], [False, True, True]]


# The learned model --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lessons():
    """Steps of 256 episodes of 16 random pushes each, in level 200."""
    env, params = jaxsim.make("CartPole3D-v0")

    def episode(key):
        first, *keys = jax.random.split(key, 17)
        observation, state = env.reset(first, params)
        initial = features.cartpole3d.look(observation)

        def step(carry, key):
            observation, state = carry
            action = jax.random.randint(key, (), 0, len(ACTIONS))
            observation, state, *_ = env.step(key, state, action, params)
            return (observation, state), (features.cartpole3d.look(observation), action)

        _, (later, actions) = jax.lax.scan(step, (observation, state), jnp.stack(keys))
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), initial, later), actions

    views, actions = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(4), 256))

    def flat(leaf):
        return leaf.reshape(-1, *leaf.shape[2:])

    before = jax.tree.map(lambda a: flat(a[:, :-1]), views)
    after = jax.tree.map(lambda a: flat(a[:, 1:]), views)
    first = jax.tree.map(lambda a: a[:, 0], before.around.blocks)
    speed = after.around.blocks.speed[:, 0]
    pushes = jax.nn.one_hot(flat(actions), len(ACTIONS))
    calm = flat(jnp.cumprod(views.around.calm[:, :-1], axis=1)) > 0
    return forward_model.Lessons(before.body, pushes, after.body, calm, first, speed)


@pytest.mark.long
@pytest.mark.nightly
def test_errors_of_the_model_fall_as_it_learns(lessons):
    half = jax.tree.map(lambda a: a[:2048], lessons)
    held = jax.tree.map(lambda a: a[2048:], lessons)
    here = forward_model.flight(held.block)
    model = forward_model.init(features.cartpole3d.body, len(ACTIONS))

    def errors(model):
        body = forward_model.body_after(model, held.body, held.action) - held.after
        speed = forward_model.speed_after(model, held.block) - held.speed
        sizes = ((body, held.calm[:, None]), (speed, here.flies), (speed, here.bounces))
        return [
            float(jnp.sqrt(jnp.sum(e**2 * t) / jnp.sum(t * jnp.ones_like(e)))) for e, t in sizes
        ]

    history = [errors(model)]
    for part in np.split(np.arange(2048), 4):
        taught = jax.tree.map(lambda a, part=part: a[part], half)
        model = forward_model.learn(model, taught, jnp.float32(512), jnp.float32(32))
        history.append(errors(model))
    # Cart and pole, to what linear laws leave out; few blocks have come back from a wall yet, at
    # some 8 m/s. Measured were .0066 m/s of blocks that fly and 1.3 m/s of those that come back.
    np.testing.assert_array_less(history[1], np.array(history[0]) / 5)
    np.testing.assert_array_less(history[-1], [0.02, 0.02, 2.5])


def test_errors_are_squares_by_the_square_of_the_standard_error(start):
    """Blocks that fly, at 3 m/s more than expected; axes whose standard errors are .5, 1 and 2."""
    model = forward_model.init(features.cartpole3d.body, len(ACTIONS))
    amount, errors = jnp.full(3, 8.0), jnp.array([0.5, 1.0, 2.0])
    flying = model.flying._replace(energy=8 * errors[:, None] ** 2, amount=amount)
    model = model._replace(flying=flying)
    now, body = around.of(start), features.cartpole3d.look(start).body
    watch = surprise.watch(features.cartpole3d.body)._replace(
        steps=jnp.int32(1), speed=now.blocks.speed - 3.0, before=now.blocks, body=body
    )
    comparison = surprise.compare(model, watch, body, now)
    np.testing.assert_allclose(comparison.counts, [1, 12, 0])
    np.testing.assert_allclose(comparison.errors, [0, 4 * 9 * (4 + 1 + 1 / 4), 0], rtol=1e-6)


# What is usual ------------------------------------------------------------------------------------


def numbers(episodes):
    """What tells of usual episodes: normal, one of the six now and then not known."""
    values = DRAW.normal(2.0, 0.5, size=(episodes, surprise.NUMBERS)).astype(np.float32)
    values[:, 2] = np.where(DRAW.random(episodes) < 0.3, np.nan, values[:, 2])
    return values


def learned(calls=40):
    usual = surprise.usual()
    for _ in range(calls):
        usual = surprise.calibrate(usual, jnp.asarray(numbers(32)), True)
    return usual


def judged(usual, values, rate=0.01):
    """Whether each of some episodes is called unusual."""
    judge = jax.vmap(lambda row: surprise.rarity(usual, row))
    probability = 1 - np.asarray(judge(jnp.asarray(values)))
    return probability >= 1 - rate


def test_no_more_usual_episodes_are_called_unusual_than_may_be():
    usual = learned()
    # Of 200 episodes that count: standard errors of .035 and .025, three to four of which may be.
    np.testing.assert_allclose(usual.mean, 2.0, atol=0.15)
    np.testing.assert_allclose(usual.variance, 0.25, atol=0.1)
    # Of the largest of six normal numbers, about one in seven is beyond two deviations.
    assert 0.05 < usual.share < 0.25
    # The rate is .01, and an exponential tail is a guess at it within a factor of two or so above.
    assert 0.0005 < judged(usual, numbers(20_000)).mean() < 0.025
    odd = numbers(200)
    odd[:, 1] += 4.0
    assert judged(usual, odd).mean() > 0.99


def test_nothing_is_unusual_before_enough_is_known():
    odd = jnp.asarray(numbers(1) + 50.0)[0]
    for calls, known in ((0, False), (4, False), (8, False), (40, True)):
        assert (surprise.rarity(learned(calls), odd) < 0.5) == known


def test_a_number_that_is_not_known_says_nothing():
    values = numbers(32)
    usual = learned()
    values[0] = np.nan
    assert surprise.rarity(usual, jnp.asarray(values[0])) == 1
    same = surprise.calibrate(usual, jnp.asarray(values), np.arange(32) < 0)
    # But for what multiplying and dividing by the same number rounds.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), same, usual)


def test_surprise_is_measured_with_these_numbers():
    """Once more, to notice a change by mistake."""
    assert surprise.LEAST == (5.0, 5.0, 1.0)
    assert surprise.SPREADS == (0.25, 0.25, 0.25, 0.1, 0.1, 0.1)
    episodes = (surprise.WAIT, surprise.ENOUGH, surprise.WINDOW, surprise.TAIL_WINDOW)
    assert episodes == (128.0, 200.0, 200.0, 400.0)
    assert (surprise.NUMBERS, surprise.TAIL, surprise.LEAST_TAIL) == (6, 2.0, (0.01, 0.25))
