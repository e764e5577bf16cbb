"""How much work a step is, as the compiler counts it: the same on every run, unlike seconds.

The bounds are about a tenth above what was measured, which stands beside them. A bound that fails
asks whether the extra work is wanted; it is often a value that XLA:CPU computes again in each of
its consumers.
"""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import tick as tick_module
from jaxsim.worlds.cartpole3d.types import Vector

LANES = 512


def work(function: Any, *args: Any) -> tuple[float, float]:
    """Flops and bytes of a compiled function, by lane."""
    cost = jax.jit(function).lower(*args).compile().cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost  # older versions of jax: one a program
    return cost["flops"] / LANES, cost["bytes accessed"] / LANES


@pytest.fixture(scope="module")
def shapes() -> dict[str, Any]:
    """Abstract arguments: nothing is run."""
    env, params = jaxsim.make("CartPole3D-v0")
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), LANES))
    number = jax.ShapeDtypeStruct((LANES,), jnp.float32)
    state = jax.eval_shape(lambda k: env.start(k, params), keys)
    return {
        "env": env,
        "params": params,
        "keys": keys,
        "state": state,
        "moving": (state.pose, state.velocity, state.blocks),
        "forces": (Vector(number, number, number), None),
        "action": jax.ShapeDtypeStruct((LANES,), jnp.int32),
        "needed": jax.ShapeDtypeStruct((LANES,), jnp.bool_),
    }


def test_a_step_without_contacts_is_cheap(shapes, monkeypatch):
    """What nearly every lane pays in nearly every step; four blocks."""
    monkeypatch.setattr(tick_module, "_full_where", lambda p, m, f, touching, after: after)
    env = shapes["env"]
    arguments = (shapes["keys"], shapes["state"], shapes["action"], shapes["params"])
    flops, size = work(lambda *a: env.step(*a), *arguments)
    assert flops <= 2500  # 2,410
    assert size <= 3350  # 3,120


def test_nothing_optional_is_compiled_into_the_nominal_step():
    """Every optional part at its default is no part of the program."""
    defaults = {path: row.default for path, row in cartpole3d.PARAMETERS.items()}
    env, params = jaxsim.make("CartPole3D-v0", defaults)
    assert (env, params) == jaxsim.make("CartPole3D-v0")
    assert env.config.terms == ()
    assert jax.eval_shape(env.start, jax.random.key(0), params).sensors is None


@pytest.mark.slow
def test_options_cost_what_they_should(shapes, monkeypatch):
    """Flops of a step without contacts beyond the nominal ones."""
    monkeypatch.setattr(tick_module, "_full_where", lambda p, m, f, touching, after: after)

    def flops(values):
        env, params = jaxsim.make("CartPole3D-v0", values)
        state = jax.eval_shape(lambda k: env.start(k, params), shapes["keys"])
        arguments = (shapes["keys"], state, shapes["action"], params)
        return work(lambda *a: env.step(*a), *arguments)[0]

    nominal = flops({})

    def extra(values):
        return flops(values) - nominal

    assert 0 < extra({"blocks/line_far": 3.0}) <= 1200  # 1,061
    assert 0 < extra({"actions/turn": 90.0}) <= 30  # 16
    assert 0 < extra({"repairs/closed_room": 1}) <= 80  # 72
    assert 1000 < extra({"sensors/noise_position": 0.1}) <= 4500  # 4,036: 34 normal numbers


@pytest.mark.slow
def test_a_full_tick_is_bounded(shapes):
    """Rows of every contact, and one pass over them as the compiler counts a loop: once."""
    flops, _ = work(
        lambda *a: tick_module._full(*a),
        shapes["params"],
        shapes["moving"],
        shapes["forces"],
        shapes["needed"],
    )
    assert flops <= 12300  # 11,175


def test_a_start_is_cheap(shapes):
    """Once an episode."""
    flops, size = work(lambda k, p: shapes["env"].start(k, p), shapes["keys"], shapes["params"])
    assert flops <= 8300  # 7,576
    assert size <= 2150  # 1,948
