"""The property kit over every registered environment, and over environments that are broken."""

from dataclasses import dataclass
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng
from jaxsim.testing import check_env
from jaxsim.worlds.cartpole3d.types import TERMS


@pytest.mark.slow
@pytest.mark.parametrize("env_id", jaxsim.registered_envs())
def test_registered_environments_keep_the_contract(env_id):
    check_env(*jaxsim.make(env_id))


@pytest.mark.slow
def test_every_option_together_keeps_the_contract():
    """But for rounded readings: two programs may round a number to different steps."""
    values = {
        "actions/turn": 30.0,
        "blocks/count_max": 2,
        "blocks/pull_centroid_random": 3.0,
        "repairs/closed_room": 1,
        "repairs/wind_on_pole": 1,
        "sensors/noise_angle": 0.02,
        "sensors/noise_position": 0.1,
        "sensors/noise_rate": 0.1,
        "sensors/noise_velocity": 0.1,
        "walls/bounce_spread": 0.1,
        "wind/speed": 2.0,
    }
    env, params = jaxsim.make("CartPole3D-v0", values, max_blocks=2)
    assert set(env.config.terms) == set(TERMS) - {"one_start"}
    check_env(env, params)


# Ten settings, one a row, of what changes the physics.
TEN_SETTINGS: list[dict[str, Any]] = [
    {},
    {"pole/length": 3.0},
    {"pole/length": 8.0, "pole/com": 1.5},
    {"cart/mass": 10.0},
    {"gravity": 3.7, "blocks/buoyancy": 0.0},
    {"force": 50.0},
    {"walls/restitution": 1.3, "blocks/restitution": 1.1},
    {"blocks/radius": 1.0, "blocks/mass": 2.0},
    {"blocks/count_min": 0, "blocks/count_max": 1, "blocks/speed_max": 20.0},
    {"room/half_width": 8.0, "room/ceiling": 12.0, "drag": 0.0},
]


def test_the_step_compiles_once_for_ten_different_physics(lanes32):
    env, lanes = lanes32.env, lanes32.width  # a shape that is in the compilation cache
    rows = [jaxsim.make("CartPole3D-v0", setting)[1] for setting in TEN_SETTINGS]
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(key, state, action, params):
        return env.step(key, state, action, params)

    ends = []
    for shift in range(3):
        setting = (np.arange(lanes) + shift) % 10
        params = jax.tree.map(lambda *leaves, at=setting: np.stack(leaves)[at], *rows)
        state = lanes32.start(shift, params)
        for k in range(12):
            action = np.full(lanes, k % 5, np.int32)
            _, state, *_ = step(jax.random.key(0), state, action, params)
        ends.append(np.asarray(state.pose.x))
    assert np.isfinite(ends).all()
    # One state under ten physics goes seven ways; the other three settings show only in bounces,
    # in hits and at the start, and go the nominal way.
    start = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:1], lanes, 0), state)
    _, state, *_ = step(jax.random.key(0), start, np.ones(lanes, np.int32), params)
    speeds = np.stack([state.velocity.vx, state.velocity.wy, state.blocks[0].v.z], axis=1)
    assert len(np.unique(speeds[:10], axis=0)) == 7


# --- environments that the kit must refuse ----------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A small sound environment: a random walk that ends when it has gone too far."""

    name: str = "Walk"
    num_actions: int = 3
    max_steps: int = 8

    def start(self, key, params):
        k = rng.words(key)
        shape = jnp.broadcast_shapes(k.a.shape, jnp.shape(params["speed"]))
        at = jnp.broadcast_to(rng.uniform(k, 0, -0.5, 0.5), shape)
        zero = jnp.zeros(shape, bool)
        return {"at": at, "tick": jnp.full(shape, -1), "terminated": zero, "truncated": zero}

    def observe(self, state):
        return state["at"]

    def reset(self, key, params):
        state = self.start(key, params)
        _, state, *_ = self.step(key, state, jnp.zeros_like(state["tick"]), params)
        return self.observe(state), state

    def step(self, key, state, action, params):
        noise = rng.uniform(rng.words(key), 0, -0.1, 0.1)
        running = ~(state["terminated"] | state["truncated"])
        hidden = state["tick"] < 0
        push = jnp.where(hidden, 0.0, (action - 1) * params["speed"] + noise)
        at = state["at"] + push * params["dt"]
        tick = state["tick"] + 1
        new = {
            "at": at,
            "tick": tick,
            "terminated": jnp.abs(at) > 1,
            "truncated": (tick >= self.max_steps) & (jnp.abs(at) <= 1),
        }
        new = jax.tree.map(lambda a, b: jnp.where(running, a, b), new, state)
        reward = jnp.where(running, 1.0 - jnp.abs(new["at"]), 0.0)
        info = {"performance": jnp.clip(new["tick"] / self.max_steps, 0, 1)}
        flags = (new["terminated"], new["truncated"])
        return self.observe(new), new, reward, *flags, info


WALK_PARAMS = {"speed": jnp.float32(0.5), "dt": jnp.float32(1.0)}


class IgnoresDone(Walk):
    def step(self, key, state, action, params):
        fresh = state | {name: jnp.zeros_like(state[name]) for name in ("terminated", "truncated")}
        return super().step(key, fresh, action, params)


class RewardsTheDead(Walk):
    def step(self, key, state, action, params):
        observation, new, _, *rest = super().step(key, state, action, params)
        return observation, new, jnp.ones_like(new["at"]), *rest


class ChangesDtype(Walk):
    def step(self, key, state, action, params):
        observation, *rest = super().step(key, state, action, params)
        return observation.astype(jnp.float16), *rest


class StartsWithAnotherType(Walk):
    """Python numbers make "weak" arrays: the type reads the same, but jit compiles again."""

    def reset(self, key, params):
        observation, state = super().reset(key, params)
        return observation, state | {"at": jnp.where(state["at"] > 0, 0.1, -0.1)}


class IgnoresKey(Walk):
    def start(self, key, params):
        same = jax.tree.map(jnp.zeros_like, rng.words(key))
        return super().start(rng.to_key(same), params)


class AcceptsRawKeys(Walk):
    def step(self, key, state, action, params):
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.wrap_key_data(key)
        return super().step(key, state, action, params)


class MixesLanes(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, {"performance": info["performance"] / jnp.mean(1 + state["at"])}


class ForgetsTheHiddenStep(Walk):
    def reset(self, key, params):
        state = self.start(key, params)
        return self.observe(state), state


class TracesAnew(Walk):
    def step(self, key, state, action, params):
        float(jnp.sum(params["speed"]))  # asks for the value of a traced number
        return super().step(key, state, action, params)


class GoesToInfinity(Walk):
    def step(self, key, state, action, params):
        observation, *rest = super().step(key, state, action, params)
        return observation / jnp.where(rest[0]["tick"] > 3, 0.0, 1.0), *rest


class NeverEnds(Walk):
    def step(self, key, state, action, params):
        lost = state | {"at": 0.1 * state["at"], "tick": jnp.minimum(state["tick"], 3)}
        return super().step(key, lost, action, params)


def test_a_sound_environment_passes():
    check_env(Walk(), WALK_PARAMS)
    check_env(Walk(), WALK_PARAMS, key=jax.random.key(5), lanes=12, steps=4)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (IgnoresDone, "of a finished episode change|finished episode still"),
        (RewardsTheDead, "a finished episode still gets rewards"),
        (ChangesDtype, "observations of step and reset: .*float16.*float32"),
        (StartsWithAnotherType, "step was traced 2 times"),
        (IgnoresKey, "reset ignores its key"),
        (AcceptsRawKeys, "step accepts a raw uint32 key"),
        (MixesLanes, "vmap, and the batch given directly|depends on"),
        (ForgetsTheHiddenStep, "reset, and start with a first step"),
        (GoesToInfinity, "is not finite after"),
        (NeverEnds, "no episode ended within max_steps"),
    ],
)
def test_broken_environments_are_refused(broken, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_env(broken(), WALK_PARAMS)


def test_an_environment_that_needs_values_while_tracing_is_refused():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        check_env(TracesAnew(), WALK_PARAMS)
