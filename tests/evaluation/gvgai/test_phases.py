"""The order of levels as a pure function, against the same in plain Python; limits of lanes."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation.gvgai import phases
from evaluation.gvgai.phases import Call, CallOutcome, Lane, Phase
from evaluation.gvgai.rules import LONGEST, PRESETS, SCOPES, Rules, preset
from jaxsim import counters, rng

LANES, TURNS = 192, 60
SECOND, VALIDATION = Phase.SECOND, Phase.VALIDATION


@dataclass
class Twin:
    """The same lane, written for people."""

    randoms: np.ndarray  # the level drawn after each play
    times: int
    scope: str
    call: Call = Call.START
    phase: Phase = Phase.FIRST
    level: int = 0
    repetition: int = 0
    play: int = 0

    def advance(self, answer, chosen, late):
        if self.call in (Call.FINISH, Call.CLOSED):
            return
        if answer == CallOutcome.GONE:
            self.call = Call.CLOSED
        elif self.call == Call.START:
            self.call = Call.INIT if answer == CallOutcome.DONE else Call.CLOSED
        elif self.call == Call.INIT and answer == CallOutcome.DONE:
            self.call = Call.ACT
        elif self.call == Call.INIT and self.scope == "level":
            self.call = Call.RESULT
        elif self.call == Call.INIT and self.phase != VALIDATION:
            self.call = Call.CLOSED
        elif self.call == Call.INIT:
            self.skip()
        elif self.call == Call.ACT:
            self.call = Call.ACT if answer == CallOutcome.DONE else Call.RESULT
        elif self.phase == VALIDATION:
            if answer == CallOutcome.OVERSPENT or self.level == 4:
                self.skip()
            else:
                self.begin(VALIDATION, 4)
        elif answer == CallOutcome.OVERSPENT:
            self.call = Call.CLOSED
        elif late or answer == CallOutcome.END:
            self.begin(VALIDATION, 3)
        elif self.phase == Phase.FIRST and self.level < 2:
            self.begin(Phase.FIRST, self.level + 1)
        elif chosen in (0, 1, 2):
            self.begin(SECOND, chosen)
        else:
            self.begin(SECOND, int(self.randoms[self.play]))

    def begin(self, phase, level):
        self.call, self.phase, self.level, self.play = Call.INIT, phase, level, self.play + 1

    def skip(self):
        if self.repetition + 1 == self.times:
            self.call = Call.FINISH
        else:
            self.begin(VALIDATION, 3)
            self.repetition += 1

    def __iter__(self):
        return iter((self.call, self.phase, self.level, self.repetition, self.play))


def keys(count):
    return rng.fold(counters.root(0), jnp.arange(count, dtype=jnp.uint32))


@pytest.mark.requirement(73, 74, 76, 77, 80, 96)
@pytest.mark.parametrize("scope", SCOPES)
def test_lanes_go_the_way_of_the_twin_whatever_is_answered(scope):
    random, times = np.random.default_rng(0), 2
    one = jax.jit(jax.vmap(partial(phases.advance, validation_times=times, scope=scope)))
    lanes, lane_keys = phases.first((LANES,)), keys(LANES)
    draws = jax.jit(jax.vmap(phases.random_level, in_axes=(None, 0), out_axes=1))
    randoms = np.asarray(draws(lane_keys, jnp.arange(TURNS)))
    twins = [Twin(row, times, scope) for row in randoms]
    met = set()
    for _ in range(TURNS):
        # Mostly what leads on, so that lanes come far.
        answer = np.where(random.random(LANES) < 0.8, 0, random.integers(0, 7, LANES))
        chosen, late = random.integers(-3, 8, LANES), random.random(LANES) < 0.1
        acting = np.asarray(lanes.call) == Call.ACT
        answer = np.where(acting & (random.random(LANES) < 0.5), CallOutcome.OVER, answer)
        met |= {
            (int(c), int(p), int(a))
            for c, p, a in zip(lanes.call, lanes.phase, answer, strict=True)
        }
        lanes = one(lanes, answer.astype(np.int32), chosen.astype(np.int32), late, lane_keys)
        for twin, a, c, over in zip(twins, answer, chosen, late, strict=True):
            twin.advance(a, c, over)
        expected = np.array([list(twin) for twin in twins])
        np.testing.assert_array_equal(np.stack(lanes, axis=1), expected)
    assert all(leaf.dtype == jnp.int32 for leaf in lanes)
    # All answers to all calls of all phases were among them.
    for phase in Phase:
        for call in (Call.INIT, Call.ACT, Call.RESULT):
            assert {(call, phase, answer) for answer in CallOutcome} <= met


@pytest.mark.requirement(77)
def test_random_levels_are_equally_likely():
    draws = 3000
    levels = jax.vmap(partial(phases.random_level, keys(1)))(jnp.arange(draws)[:, None])[:, 0]
    counts = np.bincount(np.asarray(levels), minlength=3)
    chi_squared = float(np.sum((counts - draws / 3) ** 2 / (draws / 3)))
    # With two degrees of freedom the probability of a larger value is exp(-x/2).
    assert math.exp(-chi_squared / 2) > 1e-3
    assert len(counts) == 3


@pytest.mark.requirement(77)
def test_a_random_level_follows_any_choice_that_is_none():
    lane = Lane(*(jnp.int32(v) for v in (Call.RESULT, Phase.SECOND, 1, 0, 5)))
    key = jax.tree.map(lambda leaf: leaf[0], keys(1))
    expected = phases.random_level(key, 5)
    for chosen in (-1, 3, 4, 7, 2**31 - 1, -(2**31)):
        after = phases.advance(
            lane, jnp.int32(CallOutcome.DONE), jnp.int32(chosen), jnp.bool_(False), key, 1, "level"
        )
        assert after.level == expected


def test_limits_hold_for_every_lane_by_itself():
    rules = Rules()
    millis = np.array([0, 40, 40.0001, 40.001, 50, 50.001]) / 1e3
    np.testing.assert_array_equal(rules.act_late(millis), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(rules.act_overspent(millis), [0, 0, 0, 0, 0, 1])
    learned = np.array([0.0, 599.0, 600.0, 700.0])
    np.testing.assert_array_equal(rules.result_limit(learned), [601, 2, 1, 1])
    np.testing.assert_array_equal(preset("gvgai2017").result_limit(learned - 300), [600, 1, 1, 1])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("act_seconds", 0.0, "above 0"),
        ("act_seconds", "soon", "must be a number"),
        ("act_seconds", True, "must be a number"),
        ("learning_seconds", float("nan"), "must be a number"),
        ("learning_seconds", 2 * LONGEST, "up to 86400 s"),
        ("act_hard_seconds", 0.01, "at least act_seconds"),
        ("validation_times", 0, "from 1 to 1000"),
        ("validation_times", 1.0, "a whole number"),
        ("most_plays", 10**9, "from 1 to"),
        ("on_overspent", "forgive", "disqualify or abort_level"),
        ("scope", "all", "level or phase"),
        ("timer", "cpu", "wall or processor"),
        ("original_fields", 1, "true or false"),
        ("pauses", 1, "the rules are start_seconds"),
    ],
)
def test_rules_that_make_no_sense_are_refused(name, value, words):
    with pytest.raises(ValueError, match=words):
        Rules().changed({name: value})


def test_presets():
    assert preset("track") == Rules()
    assert preset("document") == Rules(act_hard_seconds=1.0)
    with pytest.raises(ValueError, match="must be one of track, document, gvgai2017"):
        preset("gvgai2016")
    assert {rules.start_seconds for rules in PRESETS.values()} == {1.0}
