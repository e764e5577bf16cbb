"""The property kit over all options of CartPole3D, and over environments that are broken."""

from dataclasses import dataclass
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import bounds
from jaxsim import rng
from jaxsim.testing import Programs, check_env
from jaxsim.worlds.cartpole3d.types import TERMS


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.nightly
def test_cartpole3d_keeps_the_contract():
    """As it is made for level 200, without the parts that other levels need."""
    check_env(*jaxsim.make("CartPole3D-v0"))


@pytest.mark.slow
@pytest.mark.long
def test_every_option_together_keeps_the_contract():
    """But for rounded readings: two programs may round a number to different steps."""
    values = {
        "actions/delay": 2,
        "actions/turn": 30.0,
        "blocks/count_max": 2,
        "blocks/pull_centroid_random": 3.0,
        "force": 40.0,
        "repairs/closed_room": 1,
        "repairs/wind_on_pole": 1,
        "sensors/delay": 1,
        "sensors/gain_rate": 0.9,
        "sensors/noise_angle": 0.02,
        "sensors/noise_position": 0.1,
        "sensors/noise_rate": 0.1,
        "sensors/noise_velocity": 0.1,
        "sensors/offset_angle": 0.01,
        "walls/bounce_spread": 0.1,
        "wind/speed": 2.0,
    }
    env, params = jaxsim.make("CartPole3D-v0", values, max_blocks=2)
    assert set(env.config.terms) == set(TERMS) - {"lines", "one_start", "spawn"}
    check_env(env, params)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.nightly
def test_combinations_of_options_keep_the_contract():
    """Random settings of several options at and between their bounds, in and beyond four slots.

    But for rounded readings, as above.
    """
    for group in bounds.combinations(40, seed=7, most_slots=8):
        programs = Programs(group.env)
        for name, params in group.params.items():
            try:
                check_env(group.env, params, programs=programs)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error


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

    def dt(self, params):
        return params["dt"]

    def start(self, key, params):
        k = rng.words(key)
        shape = jnp.broadcast_shapes(k.a.shape, jnp.shape(params["speed"]))
        at = jnp.broadcast_to(rng.uniform(k, 0, -0.5, 0.5), shape)
        zero = jnp.zeros(shape, bool)
        return {
            "at": at,
            "tick": jnp.full(shape, -1, jnp.int32),
            "terminated": zero,
            "truncated": zero,
        }

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
            "truncated": ((tick >= self.max_steps) & (jnp.abs(at) <= 1)) | ~jnp.isfinite(at),
        }
        new = jax.tree.map(lambda a, b: jnp.where(running, a, b), new, state)
        reward = jnp.where(running, 1.0 - jnp.abs(new["at"]), 0.0)
        share = jnp.clip(new["tick"] / self.max_steps, 0, 1)
        info = {"performance": share, "nonfinite": ~jnp.isfinite(new["at"])}
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

    def start(self, key, params):
        return self._weak(super().start(key, params))

    def reset(self, key, params):
        observation, state = super().reset(key, params)
        return observation, self._weak(state)

    @staticmethod
    def _weak(state):
        return state | {"at": jnp.where(state["at"] > 0, 0.1, -0.1)}


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
        share = info["performance"] / jnp.mean(1 + jnp.abs(state["at"]))
        return *rest, info | {"performance": share}


class ForgetsTheHiddenStep(Walk):
    def reset(self, key, params):
        state = self.start(key, params)
        return self.observe(state), state


class HeedsTheFirstAction(Walk):
    """The hidden step of an episode goes where its action says, and the first action nowhere."""

    def step(self, key, state, action, params):
        shift = jnp.where(state["tick"] < 0, 0.1 * action, 0.0)
        return super().step(key, state | {"at": state["at"] + shift}, action, params)


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


class OnlyNotesItsKey(Walk):
    """Other keys, other states; but nothing an agent sees ever depends on it."""

    def start(self, key, params):
        same = jax.tree.map(jnp.zeros_like, rng.words(key))
        note = rng.uniform(rng.words(key), 0)
        return super().start(rng.to_key(same), params) | {"note": note}

    def step(self, key, state, action, params):
        observation, new, *rest = super().step(key, _without_note(state), action, params)
        return observation, new | {"note": state["note"]}, *rest


def _without_note(state):
    return {name: leaf for name, leaf in state.items() if name != "note"}


class LetsNaNThrough(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, info | {"nonfinite": jnp.zeros_like(info["nonfinite"])}


class SpreadsNaN(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, info | {"performance": info["performance"] + 0 * jnp.sum(state["at"])}


class GoesOnWithNaN(Walk):
    def step(self, key, state, action, params):
        observation, new, reward, terminated, truncated, info = super().step(
            key, state, action, params
        )
        new = new | {"truncated": truncated & ~info["nonfinite"]}
        return observation, new, reward, terminated, new["truncated"], info


class CriesWolf(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, info | {"nonfinite": rest[0] > 0.5}


class HasNoFlag(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, {"performance": info["performance"]}


class ScoresAboveOne(Walk):
    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, info | {"performance": 2 * info["performance"]}


class StandsStill(Walk):
    def dt(self, params):
        return 0 * params["dt"]


class SeesCoarsely(Walk):
    """Sound: starts are told apart only when a border is crossed."""

    def observe(self, state):
        return jnp.round(0.9 * state["at"])


class StartsInOnePlace(Walk):
    """Sound if it is meant to."""

    def start(self, key, params):
        state = super().start(key, params)
        return state | {"at": jnp.full_like(state["at"], 0.25)}


def test_a_sound_environment_passes():
    check_env(Walk(), WALK_PARAMS)
    check_env(Walk(), WALK_PARAMS, key=jax.random.key(5), lanes=12, steps=4)


def test_starts_may_look_alike_at_first():
    env = SeesCoarsely()
    first, _ = jax.jit(env.reset)(jax.random.split(jax.random.key(0), 64), WALK_PARAMS)
    assert not np.any(first)
    check_env(env, WALK_PARAMS)


def test_one_start_is_accepted_only_where_it_is_meant():
    check_env(StartsInOnePlace(), WALK_PARAMS, one_start=True)
    with pytest.raises(AssertionError, match="reset ignores its key: other keys, same start"):
        check_env(StartsInOnePlace(), WALK_PARAMS)
    with pytest.raises(AssertionError, match="one_start is set, but other keys give another"):
        check_env(Walk(), WALK_PARAMS, one_start=True)


def test_programs_are_compiled_once_for_many_parameters():
    programs = Programs(Walk())
    for speed in (0.3, 0.5, 0.7):
        params = {"speed": jnp.float32(speed), "dt": jnp.float32(1.0)}
        check_env(Walk(), params, programs=programs)
    assert list(programs.step.traces.values()) == [1]
    check_env(Walk(), params, programs=programs, lanes=12)
    assert sorted(programs.step.traces.items()) == [((12,), 1), ((64,), 1)]
    with pytest.raises(ValueError, match="programs are of another environment"):
        check_env(IgnoresDone(), params, programs=programs)


def test_a_batch_without_two_lanes_of_one_physics_is_refused():
    with pytest.raises(ValueError, match="lanes is 10; it must be at least 11"):
        check_env(Walk(), WALK_PARAMS, lanes=10)


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
        (HeedsTheFirstAction, "reset, and start with a first step of action 2"),
        (GoesToInfinity, "is not finite after"),
        (NeverEnds, "no episode ended within max_steps"),
        (OnlyNotesItsKey, "other keys are never seen to make a difference"),
        (LetsNaNThrough, r"nan in \['at'\] of the state comes out of step as .*without a flag"),
        (SpreadsNaN, "a number of one lane that is not finite spoils .*performance.* of others"),
        (GoesOnWithNaN, r"nan in \['at'\] of the state is flagged, but the episode continues"),
        (CriesWolf, r"info\['nonfinite'\] is set, yet all is finite"),
        (HasNoFlag, "info has no 'nonfinite'"),
        (ScoresAboveOne, r"the performance leaves \[0, 1\]"),
        (StandsStill, "dt is 0.0; it must be above 0"),
    ],
)
def test_broken_environments_are_refused(broken, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_env(broken(), WALK_PARAMS)


def test_an_environment_that_needs_values_while_tracing_is_refused():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        check_env(TracesAnew(), WALK_PARAMS)
