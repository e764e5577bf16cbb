"""A guessing game whose results can be computed by hand, in the shape of a real environment.

The state shows a `place` on a ring of five; the agent's action moves on from it, and the closer it
lands to `target`, the higher the reward. Every number is a multiple of 1/32, so sums are exact in
any order and a loop in Python must give the very same bits as the compiled scan.
"""

import itertools
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from evaluation import l2m
from jaxsim import registry, rng
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.parameters import Parameter

RING = 5
STEPS = 8
NEVER = 1000

PARAMETERS = {
    row.path: row
    for row in (
        Parameter("target", 3, low=0, high=RING - 1, description="where to land"),
        Parameter("wheel", 1, low=1, high=RING, description="places that are drawn; 1 for none"),
        Parameter("tolerance", RING - 1, low=0, high=RING - 1, description="farthest that goes on"),
        Parameter("spoil", NEVER, low=0, high=NEVER, description="step that is not finite"),
        Parameter("novelty/level", 200, choices=(200, 203), description="for the records"),
        Parameter("rules", "plain", choices=("plain", "other", "third"), description="a world"),
    )
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    target: Any
    wheel: Any
    tolerance: Any
    spoil: Any
    novelty_level: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    place: jax.Array  # int32
    step: jax.Array  # int32, -1 before the hidden first step
    score: jax.Array  # float32
    terminated: jax.Array
    truncated: jax.Array


@dataclass(frozen=True)
class Toy:
    """One guess a step, eight steps; the reward of a step is (4 - distance)/32.

    By the other rules an action moves twice as far, by the third three times.
    """

    rules: str = "plain"

    name = "Toy"
    num_actions = RING
    max_steps = STEPS

    def dt(self, params):
        return 0.25 * params.wheel

    def start(self, key, params):
        place = _draw(key, params)
        nothing = jnp.zeros(place.shape, bool)
        zero = jnp.zeros(place.shape)
        return State(place, jnp.full(place.shape, -1, jnp.int32), zero, nothing, nothing)

    def observe(self, state):
        return {"place": state.place, "step": state.step}

    def reset(self, key, params):
        state = self.start(key, params)
        action = jnp.zeros(state.place.shape, jnp.int32)
        observation, state, *_ = self.step(key, state, action, params)
        return observation, state

    def step(self, key, state, action, params):
        running = ~(state.terminated | state.truncated)
        guessing = running & (state.step >= 0)
        moved = state.place + action * (1 + ("plain", "other", "third").index(self.rules))
        distance = jnp.abs(moved % RING - params.target)
        reward = jnp.where(guessing, (RING - 1 - distance) / 32, 0.0).astype(jnp.float32)
        step = state.step + running
        nonfinite = running & (step == params.spoil)
        new = State(
            jnp.where(running, _draw(key, params), state.place),
            step,
            state.score + reward,
            state.terminated | (guessing & (distance > params.tolerance)),
            state.truncated | (step >= STEPS) | nonfinite,
        )
        info = {"performance": new.score, "nonfinite": nonfinite}
        return self.observe(new), new, reward, new.terminated, new.truncated, info


def _draw(key, params):
    place = rng.bits(rng.words(key), 0) % jnp.asarray(params.wheel).astype(jnp.uint32)
    return place.astype(jnp.int32)


def make(values, **options):
    merged = {path: row.default for path, row in PARAMETERS.items()} | dict(values)
    numbers = {name: merged[name] for name in ("target", "wheel", "tolerance", "spoil")}
    numbers["novelty_level"] = merged["novelty/level"]
    params = Params(**{name: jnp.int32(value) for name, value in numbers.items()})
    return Toy(merged["rules"]), params


@contextmanager
def registered():
    """Make the task "Toy" known, and take it away again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_SPECS", dict(registry._SPECS))
        registry.register("Toy-v0", make, PARAMETERS)
        yield


def repeat(count, task="Toy", sub_episodes=None, **values):
    """One $repeat; `novelty_level` stands for the path "novelty/level"."""
    named = {name.replace("_", "/"): value for name, value in values.items()}
    several = {} if sub_episodes is None else {"sub_episodes": sub_episodes}
    return {"$repeat": {"$episode": task, **several, **named}, "count": count}


def syllabus(*phases, **top):
    """Text of a syllabus whose phases are ("1.train", [instruction, ...])."""
    parts = ([{"$phase": name}, *instructions] for name, instructions in phases)
    return json.dumps({**top, "instructions": list(itertools.chain.from_iterable(parts))})


def schedule(*phases, **top):
    return l2m.loads(syllabus(*phases, **top))


def say(level=0, probability=0.0, threshold=0.5):
    return NoveltyPrediction(
        jnp.asarray(level, jnp.int32), jnp.float32(probability), jnp.float32(threshold)
    )


def constant(action):
    """Always the same action, and no memory."""
    return Agent(f"always {action}", lambda memory, observation, key: (action, say(), memory))


# An agent that learns -----------------------------------------------------------------------------

UNTRIED = -1.0


def _bandit_init(key):
    return {"scores": jnp.full(RING, UNTRIED), "action": jnp.int32(0)}


def _bandit_choose(memory, key):
    """The first action without a score, or the best one."""
    scores = memory["scores"]
    action = jnp.where(jnp.any(scores < 0), jnp.argmax(scores < 0), jnp.argmax(scores))
    return {**memory, "action": action.astype(jnp.int32)}


def _bandit_act(memory, observation, key):
    return memory["action"], say(), memory


def _bandit_learn(memory, episodes):
    """Note the score of the action; start over when it falls short of what it was."""
    scores, action = memory["scores"], memory["action"]
    score = episodes.performance[0]
    noted = scores.at[action].set(score)
    changed = (scores[action] >= 0) & (score < scores[action])
    return {**memory, "scores": jnp.where(changed, jnp.full(RING, UNTRIED), noted)}


bandit = Agent("bandit", _bandit_act, _bandit_init, _bandit_choose, _bandit_learn)


# An agent that uses everything an agent is given --------------------------------------------------


def _busy_init(key):
    return {
        "key": jax.random.fold_in(key, 7),
        "best": jnp.float32(UNTRIED),
        "action": (rng.bits(rng.words(key), 3) % RING).astype(jnp.int32),
        "trial": jnp.int32(0),
        "bold": jnp.bool_(False),
        "ticks": jnp.int32(0),
        "seen": jnp.zeros(RING, jnp.int32),
    }


def _busy_begin(memory, key):
    return {
        **memory,
        "key": jax.random.fold_in(memory["key"], 1),
        "trial": jax.random.randint(key, (), 0, RING),
        "bold": jax.random.bernoulli(memory["key"]),
    }


def _busy_act(memory, observation, key):
    wild = jax.random.bernoulli(key, 0.25)
    steady = jnp.where(memory["bold"], memory["trial"], memory["action"]) - observation["place"]
    action = jnp.where(wild, jax.random.randint(key, (), 0, RING), steady % RING)
    visits = memory["seen"].at[observation["place"]].add(1)
    draw = rng.uniform(rng.words(memory["key"]), 0)
    new = {**memory, "ticks": memory["ticks"] + 1, "seen": visits}
    return action, say(new["ticks"], draw, visits[0] / 1024), new


def _busy_learn(memory, episodes):
    better = (episodes.performance[0] > memory["best"]) & ~episodes.terminated[0]
    shown = jnp.where(memory["bold"], memory["trial"], memory["action"])
    return {
        **memory,
        "best": jnp.where(better, episodes.performance[0], memory["best"]),
        "action": jnp.where(better, shown, memory["action"]),
        "ticks": memory["ticks"] + 100 * episodes.length[0] + (32 * episodes.reward[0]).astype(int),
    }


busy = Agent("busy", _busy_act, _busy_init, _busy_begin, _busy_learn)


def with_learning(schedule, learning):
    """The same schedule with other permissions to learn, one a block."""
    blocks = zip(schedule.blocks, learning, strict=True)
    return replace(schedule, blocks=tuple(replace(b, learning=flag) for b, flag in blocks))
