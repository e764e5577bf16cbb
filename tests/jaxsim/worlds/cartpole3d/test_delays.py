"""Pushes that act late, sensors that report late, and sensors with factors and offsets."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds.cartpole3d.blocks.slots import inward, late_finiteness
from jaxsim.worlds.cartpole3d.terms import delays

TICKS = 14
KEYS = jax.random.split(jax.random.key(5), 16)
SLOTS = {"few": {}, "many": {"blocks/count_min": 5, "blocks/count_max": 6}}
"""Settings whose slots are single and stacked."""


TERMS = {"actions/delay": 1, "sensors/delay": 1, "sensors/gain_rate": 0.5}
"""Settings that need every term that is tested here, so that all tests share a program."""


@cache
def program(slots):
    """Compiled play of keys, actions and parameters to observations, leaves (1 + TICKS, L, ...)."""
    env, _ = jaxsim.make("CartPole3D-v0", {**SLOTS[slots], **TERMS})

    @jax.jit
    def play(keys, actions, params):
        def tick(state, action):
            observation, state, *_ = env.step(keys, state, action, params)
            return state, observation

        # As `reset` does: a tick without a push comes first.
        pushes = jnp.concatenate([jnp.zeros_like(actions[:1]), actions])
        return jax.lax.scan(tick, env.start(keys, params), pushes)[1]

    return play


def reports(values, actions, slots="few"):
    """Observations of the start and of each tick."""
    _, params = jaxsim.make("CartPole3D-v0", {**SLOTS[slots], **values})
    return jax.device_get(program(slots)(KEYS, actions, params))


@pytest.fixture(scope="module")
def actions():
    return np.random.default_rng(0).integers(1, 5, (TICKS, len(KEYS))).astype(np.int32)


@pytest.fixture(scope="module")
def prompt(actions):
    return {slots: reports({}, actions, slots) for slots in SLOTS}


def assert_close(read, expected, **tolerance):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, **{"atol": 2e-5, **tolerance}), read, expected
    )


@pytest.mark.parametrize("late", [1, 3, delays.MOST_PUSHES])
def test_pushes_that_act_late_are_those_of_before(actions, late):
    shifted = np.concatenate([np.zeros_like(actions[:late]), actions[: TICKS - late]])
    assert_close(reports({"actions/delay": late}, actions), reports({}, shifted))


@pytest.mark.parametrize(("slots", "late"), [("few", 1), ("few", 3), ("many", 2)])
def test_sensors_that_report_late_say_what_they_read_before(actions, prompt, slots, late):
    read = reports({"sensors/delay": late}, actions, slots)
    read = jax.tree.map(lambda leaf: leaf[late:], read)
    assert_close(read, jax.tree.map(lambda leaf: leaf[: TICKS + 1 - late], prompt[slots]))


def test_before_there_are_late_readings_the_sensors_read_the_start(actions):
    read = reports({"sensors/delay": 3}, actions)
    env, params = jaxsim.make("CartPole3D-v0", {})
    start = jax.device_get(env.observe(env.start(KEYS, params)))
    for tick in range(3):
        assert_close(jax.tree.map(lambda leaf, t=tick: leaf[t], read), start)


def test_what_is_asked_for_in_the_hidden_tick_is_not_remembered():
    env, params = jaxsim.make("CartPole3D-v0", {"actions/delay": 2})
    hidden = env.start(KEYS, params)
    for state, pushes in ((hidden, 0), (replace(hidden, step=hidden.step + 1), 4)):
        _, after = delays.due(state, jnp.full(len(KEYS), 4, jnp.int32), params)
        assert (np.asarray(after.pushes) == pushes).all()


def test_the_last_actions_are_remembered():
    """The newest first, as many as pushes may be late."""
    env, params = jaxsim.make("CartPole3D-v0", {"actions/delay": 2})
    state = jax.tree.map(lambda leaf: leaf[0], env.start(KEYS, params))
    state = replace(state, step=jnp.int32(5))
    for action in (3, 1, 4):
        _, state = delays.due(state, jnp.int32(action), params)
    assert delays.last(state).tolist() == [4, 1, 3, 0, 0, 0, 0, 0]
    assert delays.last(replace(state, pushes=None)).tolist() == [0] * delays.MOST_PUSHES


@pytest.mark.parametrize("name", SLOTS)
def test_late_readings_must_be_finite(name):
    env, params = jaxsim.make("CartPole3D-v0", {**SLOTS[name], **TERMS})
    shapes = jax.eval_shape(env.reset, KEYS[:2], params)[1]
    state = inward(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))
    leaves, structure = jax.tree.flatten(state.late)
    real = [k for k, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert len(real) > 70
    assert late_finiteness(state).tolist() == [0, 0]
    for k in (*real[:-1:9], real[-1]):
        broken = [leaf.at[..., 1].set(jnp.nan) if n == k else leaf for n, leaf in enumerate(leaves)]
        late = jax.tree.unflatten(structure, broken)
        unsound = jnp.isnan(late_finiteness(replace(state, late=late)))
        assert unsound.tolist() == [False, True], k


def test_a_state_from_a_world_without_delays_must_be_adopted_first():
    plain, params = jaxsim.make("CartPole3D-v0", {})
    late, other = jaxsim.make("CartPole3D-v0", {"sensors/delay": 1, "actions/delay": 2})
    state = plain.reset(KEYS, params)[1]
    with pytest.raises(ValueError, match=r"env\.adopt"):
        late.step(KEYS, state, jnp.zeros(len(KEYS), jnp.int32), other)
    adopted = late.adopt(state, KEYS, other)
    assert adopted.late is not None
    assert adopted.pushes is not None
    back = plain.adopt(adopted, KEYS, params)
    assert back.late is None
    assert back.pushes is None


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("position", ("cart_position", "block_position")),
        ("velocity", ("cart_velocity", "block_velocity")),
        ("rate", ("pole_velocity",)),
    ],
)
def test_readings_are_multiplied_and_offset(actions, prompt, kind, fields):
    values = {f"sensors/gain_{kind}": 0.5, f"sensors/offset_{kind}": 0.25}
    read, exact = reports(values, actions), prompt["few"]
    alive = {"block_position": exact.block_alive, "block_velocity": exact.block_alive}
    for name in read._fields if hasattr(read, "_fields") else vars(read):
        a, b = getattr(read, name), getattr(exact, name)
        if name not in fields:
            assert_close(a, b)
        elif name in alive:
            expected = [
                [np.where(present, 0.5 * c + 0.25, 0) for c in block]
                for block, present in zip(b, alive[name], strict=True)
            ]
            assert_close([list(block) for block in a], expected)
        else:
            known = 2 if name.startswith("cart") else 3
            assert_close(list(a)[:known], [0.5 * c + 0.25 for c in list(b)[:known]])


def test_the_orientation_is_multiplied_as_a_rotation_vector_and_then_turned(actions, prompt):
    from scipy.spatial.transform import Rotation

    values = {"sensors/gain_angle": 0.5, "sensors/offset_angle": 0.1}
    read, exact = (
        Rotation.from_quat(np.stack(o.pole_quaternion, axis=-1).reshape(-1, 4))
        for o in (reports(values, actions), prompt["few"])
    )
    half = Rotation.from_rotvec(0.5 * exact.as_rotvec())
    expected = Rotation.from_rotvec([0.1, 0.1, 0.1]) * half
    np.testing.assert_allclose((read * expected.inv()).magnitude(), 0, atol=1e-5)


def test_a_sensor_whose_factor_is_zero_reads_zero(actions):
    read = reports({"sensors/gain_rate": 0.0}, actions)
    assert not np.stack(read.pole_velocity).any()
