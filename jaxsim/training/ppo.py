"""Proximal policy optimisation as a pure agent: a whole learner in one memory.

Between two calls of `learn` the agent acts with one set of parameters in W episodes. From their
steps it estimates advantages and takes a fixed number of optimiser steps, each on decisions drawn
evenly from all, so that the cost of learning does not depend on the length of episodes. While the
schedule does not let it learn, it takes the most probable action.

Source: J. Schulman et al., "Proximal policy optimization algorithms", 2017.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax

from jaxsim import rng
from jaxsim.agents.base import Agent, Entry, Episodes, NoveltyPrediction
from jaxsim.pytrees import Leaf, Observation, Tree
from jaxsim.training import advantages, features, forward_model, network, normalise, surprise
from jaxsim.training.around import Blocks
from jaxsim.training.features import LearnerView, Sight
from jaxsim.training.network import Network
from jaxsim.training.normalise import Moments
from jaxsim.training.settings import Hyper, Settings

T = TypeVar("T")

FAULTS = ("the loss is not a finite number", "a parameter is not a finite number")
BAD_LOSS, BAD_PARAMETER = 1, 2
LESSONS = 1024
"""Steps that the model of the world learns from at each call of `learn`."""

_ADAM = optax.scale_by_adam(eps=1e-5)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """A learner's lifetime so far."""

    parameters: Network
    optimiser: optax.OptState
    moments: Moments  # of its inputs, (F,)
    model: forward_model.LearnedLaws  # of the world
    usual: surprise.Usual
    hyper: Hyper
    key: jax.Array  # typed, of the lifetime
    rounds: jax.Array  # () int32, calls of `learn`
    fault: jax.Array  # () int32, place in `FAULTS` + 1, 0 for none
    learning: jax.Array  # () bool, whether it learns from the present block
    extra: Tree  # a variant's own part
    watch: surprise.Watch  # the episode in play


class Step(NamedTuple):
    """Trace of a step."""

    inputs: jax.Array  # (F,)
    body: jax.Array  # (D,)
    output: jax.Array  # () int32, the network's output for the action
    action: jax.Array  # () int32
    chance: jax.Array  # () log-probability of the action
    value: jax.Array  # ()
    calm: jax.Array  # () bool, whether nothing hits the body
    block: Blocks  # one of the blocks, a step before
    speed: jax.Array  # (3,) m/s, of the same block now
    numbers: jax.Array  # (6,) of the episode so far, see `surprise.numbers`


class Decisions(NamedTuple):
    """Decisions drawn to learn from, leaves (B, ...)."""

    inputs: jax.Array  # (B, F)
    output: jax.Array  # (B, A) one-hot, of the network
    chance: jax.Array  # (B,)
    advantage: jax.Array  # (B,)
    value: jax.Array  # (B,) target


class Variant(NamedTuple):
    """Functions that a lifelong variant adds to the learner.

    Attributes:
      init: (parameters) -> its own part of the memory.
      enter: (memory, entry, fresh) -> memory, as a block begins; `fresh(memory)` forgets all.
      penalty: (memory, parameters, key) -> () added to the loss.
      after: (memory, decisions, key) -> its own part of the memory, at the end of `learn`.
    """

    init: Callable[[Network], Tree]
    enter: Callable[[Memory, Entry, Callable[[Memory], Memory]], Memory]
    penalty: Callable[[Memory, Network, jax.Array], Leaf]
    after: Callable[[Memory, Decisions, jax.Array], Tree]


def _keep_extra(memory: Memory, decisions: Decisions, key: jax.Array) -> Tree:
    return memory.extra


def no_penalty(memory: Memory, parameters: Network, key: jax.Array) -> float:
    """Add nothing to the loss."""
    return 0.0


def _keep_memory(memory: Memory, entry: Entry, fresh: Tree) -> Memory:
    return memory


plain = Variant(lambda parameters: (), _keep_memory, no_penalty, _keep_extra)
"""No variant."""


def learner(name: str, settings: Settings, sight: Sight, variant: Variant = plain) -> Agent:
    """Make an agent that learns by proximal policy optimisation.

    Args:
      name: of the agent.
      settings: hyper-parameters.
      sight: makes inputs of observations.
      variant: functions of a lifelong variant.
    """
    return Agent(
        name,
        partial(_act, sight),
        partial(_init, settings, sight, variant),
        partial(_begin, sight),
        partial(_learn, settings, sight, variant),
        trace=partial(_trace, sight),
        enter=partial(_enter, settings, sight, variant),
        assign=partial(_assign, settings),
        fault=_fault,
        faults=FAULTS,
    )


def ppo(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """Proximal policy optimisation.

    Args:
      settings: hyper-parameters; None for good ones for CartPole3D.
      sight: makes inputs of observations; `features.flat(env, params)` for other environments.
    """
    return learner("ppo", settings or Settings(), sight)


# Playing ------------------------------------------------------------------------------------------


def _init(settings: Settings, sight: Sight, variant: Variant, key: jax.Array) -> Memory:
    # Learning folds keys of its own from the key, by another hash (`jaxsim.rng`).
    init_key = jax.random.split(key)[0]
    parameters = network.init(init_key, sight.size, settings.hidden, sight.actions)
    return Memory(
        parameters=parameters,
        optimiser=_ADAM.init(parameters),
        moments=normalise.init(sight.size),
        model=forward_model.init(sight.body, sight.actions),
        usual=surprise.usual(),
        hyper=settings.of_lifetime(0),
        key=key,
        rounds=jnp.int32(0),
        fault=jnp.int32(0),
        learning=jnp.asarray(True),
        extra=variant.init(parameters),
        watch=surprise.watch(sight.body),
    )


def _assign(settings: Settings, memory: Memory, number: jax.Array) -> Memory:
    return replace(memory, hyper=settings.of_lifetime(number))


def _enter(
    settings: Settings, sight: Sight, variant: Variant, memory: Memory, entry: Entry
) -> Memory:
    def fresh(memory: Memory) -> Memory:
        """Reset the memory, except hyper-parameters and fault, with new randomness."""
        key = jax.random.fold_in(memory.key, entry.block)
        new = _init(settings, sight, variant, key)
        return replace(new, hyper=memory.hyper, fault=memory.fault)

    return variant.enter(replace(memory, learning=entry.learning), entry, fresh)


def _fault(memory: Memory) -> jax.Array:
    return memory.fault


def _begin(sight: Sight, memory: Memory, key: jax.Array) -> Memory:
    return replace(memory, watch=surprise.watch(sight.body))


def _view(
    sight: Sight, memory: Memory, observation: Observation
) -> tuple[LearnerView, surprise.Watch, jax.Array, jax.Array]:
    """Evaluate an observation: view, watch with its errors, log-probabilities and value."""
    view = sight.look(observation)
    x = normalise.apply(memory.moments, view.inputs)
    watch = surprise.compare(memory.model, memory.watch, view.body, view.around)
    return view, watch, *network.apply(memory.parameters, x)


def _act(
    sight: Sight, memory: Memory, observation: Observation, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, Memory]:
    """Draw an action, or take the most probable one while not learning."""
    view, watch, chances, _ = _view(sight, memory, observation)
    noise = rng.uniform(rng.words(key), jnp.arange(sight.actions), low=1e-7, high=1.0)
    scores = chances - jnp.where(memory.learning, jnp.log(-jnp.log(noise)), 0.0)
    output = jnp.arange(sight.actions) == jnp.argmax(scores)
    action = jnp.sum(jnp.where(output, view.actions, 0)).astype(jnp.int32)
    prediction = surprise.judge(memory.usual, watch, memory.hyper.false_alarms)
    one_hot = jax.nn.one_hot(action, sight.actions)
    watch = surprise.expect(memory.model, watch, view.body, view.around, one_hot)
    return action, prediction, replace(memory, watch=watch)


def _trace(sight: Sight, memory: Memory, observation: Observation, action: jax.Array) -> Step:
    """Record a step to learn from; the compiler shares the values with `_act`."""
    view, watch, chances, value = _view(sight, memory, observation)
    output = view.actions == action
    block, speed = surprise.lesson(memory.watch, view.around)
    return Step(
        inputs=view.inputs,
        body=view.body,
        output=jnp.sum(jnp.where(output, jnp.arange(sight.actions), 0)).astype(jnp.int32),
        action=jnp.asarray(action, jnp.int32),
        chance=jnp.sum(jnp.where(output, chances, 0.0)),
        value=value,
        calm=watch.calm & view.around.calm,
        block=block,
        speed=speed,
        numbers=surprise.numbers(watch),
    )


# Learning -----------------------------------------------------------------------------------------


def _learn(
    settings: Settings, sight: Sight, variant: Variant, memory: Memory, episodes: Episodes
) -> Memory:
    """Learn from W episodes; after a fault, or while not learning, nothing changes."""
    episode_mask = True if episodes.played is None else episodes.played[:, None]
    steps = jnp.arange(episodes.rewards.shape[1])
    mask = (steps < episodes.length[:, None]) & episode_mask
    key = jax.random.fold_in(memory.key, memory.rounds)
    rows = _Rows.of(mask)
    draw = _drawing(settings, sight, memory, episodes, rows)

    def update(carry: Tree, number: jax.Array) -> Tree:
        parameters, optimiser = carry
        words = rng.fold(rng.words(key), number)
        decisions = draw(words)
        loss_key = rng.to_key(rng.fold(words, 1))
        loss, gradients = jax.value_and_grad(_loss)(
            parameters, variant, memory, decisions, loss_key
        )
        parameters, optimiser = _stepped(memory.hyper, parameters, optimiser, gradients)
        return (parameters, optimiser), loss

    start = (memory.parameters, memory.optimiser)
    (parameters, optimiser), losses = jax.lax.scan(update, start, jnp.arange(settings.updates))
    finite = all_finite(parameters)
    fault = jnp.where(jnp.all(jnp.isfinite(losses)), 0, BAD_LOSS)
    fault = jnp.where((fault == 0) & ~finite, BAD_PARAMETER, fault)
    last = rng.fold(rng.words(key), settings.updates)
    new = replace(
        memory,
        parameters=parameters,
        optimiser=optimiser,
        moments=normalise.update(memory.moments, episodes.trace.inputs, mask),
        model=_learned_model(sight, memory.model, episodes, rows, rng.fold(last, 2)),
        usual=surprise.calibrate(memory.usual, episodes.final.numbers, mask[:, 0]),
        rounds=memory.rounds + 1,
    )
    new = replace(new, extra=variant.after(new, draw(last), rng.to_key(rng.fold(last, 1))))
    learns = memory.learning & (memory.fault == 0)
    new = choose(learns & (fault == 0), new, memory)
    return replace(new, fault=jnp.where(learns, fault, memory.fault).astype(jnp.int32))


class _Rows(NamedTuple):
    """The steps of W episodes as rows of one table."""

    mask: jax.Array  # (W, T) bool, False for padding
    lengths: jax.Array  # (W,)
    ends: jax.Array  # (W,) number of steps up to the end of each episode

    @classmethod
    def of(cls, mask: jax.Array) -> "_Rows":
        lengths = jnp.sum(mask, axis=1)
        return cls(mask, lengths, jnp.cumsum(lengths))

    def draw(self, words: rng.Words, number: int) -> tuple[jax.Array, jax.Array]:
        """Draw a step from each of `number` equal shares: its row and its episode, (B,) each."""
        width, horizon = self.mask.shape
        slots = jnp.arange(number)
        place = (slots + rng.uniform(words, slots)) * (self.ends[-1] / number)
        place = jnp.minimum(place.astype(jnp.int32), self.ends[-1] - 1)
        episode = jnp.minimum(jnp.sum(place[:, None] >= self.ends, axis=1), width - 1)
        tick = jnp.maximum(place - (self.ends - self.lengths)[episode], 0)
        return episode * horizon + tick, episode

    def flat(self, leaf: jax.Array) -> jax.Array:
        """One row for each step, (W T, ...)."""
        return leaf.reshape(self.mask.size, *leaf.shape[2:])


def _drawing(
    settings: Settings, sight: Sight, memory: Memory, episodes: Episodes, rows: _Rows
) -> Callable[[rng.Words], Decisions]:
    """Return a function that draws decisions of the episodes, with their advantages."""
    hyper, step = memory.hyper, episodes.trace
    # Scaled like this, values are about as large as rewards.
    gains = hyper.reward_weight * episodes.rewards + hyper.survival_reward
    rewards = (1 - hyper.discount) * gains
    estimates = advantages.advantages(
        rewards,
        step.value,
        episodes.final.value,
        episodes.length,
        episodes.terminated,
        hyper.discount,
        hyper.trace_decay,
    )
    mask = rows.mask
    number = jnp.maximum(jnp.sum(mask), 1)
    mean = jnp.sum(jnp.where(mask, estimates, 0.0)) / number
    spread = jnp.sqrt(jnp.sum(jnp.where(mask, (estimates - mean) ** 2, 0.0)) / number)
    numbers = jnp.stack([step.output, step.chance, estimates, step.value], axis=-1)
    inputs, numbers = rows.flat(step.inputs), rows.flat(numbers)

    def draw(words: rng.Words) -> Decisions:
        index, _ = rows.draw(words, settings.samples)
        output, chance, gain, value = numbers[index].T
        return Decisions(
            inputs=inputs[index],
            output=jax.nn.one_hot(output.astype(jnp.int32), sight.actions),
            chance=chance,
            advantage=(gain - mean) / (spread + 1e-8),
            value=value + gain,
        )

    return draw


def _learned_model(
    sight: Sight,
    model: forward_model.LearnedLaws,
    episodes: Episodes,
    rows: _Rows,
    words: rng.Words,
) -> forward_model.LearnedLaws:
    """Update the model of the world from steps of the episodes."""
    step, final = episodes.trace, episodes.final
    index, episode = rows.draw(words, LESSONS)
    body, block, speed, action, calm = jax.tree.map(
        lambda leaf: rows.flat(leaf)[index],
        (step.body, step.block, step.speed, step.action, step.calm),
    )
    width, horizon = rows.mask.shape
    last = index - episode * horizon == rows.lengths[episode] - 1
    next_body = rows.flat(step.body)[jnp.minimum(index + 1, width * horizon - 1)]
    after = jnp.where(last[:, None], final.body[episode], next_body)
    one_hot = jax.nn.one_hot(action, sight.actions)
    lessons = forward_model.Lessons(body, one_hot, after, calm, block, speed)
    count = jnp.sum(rows.lengths > 0).astype(jnp.float32)
    return forward_model.learn(model, lessons, rows.ends[-1].astype(jnp.float32), count)


def _loss(
    parameters: Network,
    variant: Variant,
    memory: Memory,
    decisions: Decisions,
    key: jax.Array,
) -> jax.Array:
    """Loss of a batch of decisions."""
    hyper = memory.hyper
    x = normalise.apply(memory.moments, decisions.inputs)
    chances, value = network.apply(parameters, x)
    ratio = jnp.exp(jnp.sum(decisions.output * chances, axis=-1) - decisions.chance)
    clipped = jnp.clip(ratio, 1 - hyper.clip, 1 + hyper.clip)
    gain = jnp.mean(jnp.minimum(ratio * decisions.advantage, clipped * decisions.advantage))
    entropy = -jnp.mean(jnp.sum(jnp.exp(chances) * chances, axis=-1))
    value_error = jnp.mean((value - decisions.value) ** 2)
    return (
        hyper.value_weight * value_error
        - gain
        - hyper.entropy_weight * entropy
        + variant.penalty(memory, parameters, key)
    )


def _stepped(
    hyper: Hyper, parameters: Network, optimiser: optax.OptState, gradients: Network
) -> tuple[Network, optax.OptState]:
    """Take one step of Adam, with the gradient scaled down to its limit."""
    limit = optax.clip_by_global_norm(hyper.gradient_limit)  # a limit for each lifetime
    clipped, _ = limit.update(gradients, limit.init(parameters))
    moves, optimiser = _ADAM.update(clipped, optimiser)
    moved = jax.tree.map(lambda p, m: p - hyper.learning_rate * m, parameters, moves)
    return moved, optimiser


def all_finite(tree: Tree) -> jax.Array:
    """() bool, whether every number of a tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def choose(condition: jax.Array, yes: T, no: T) -> T:
    """Select one of two trees; leaves may be typed keys."""

    def pick(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.select(jnp.broadcast_to(condition, jnp.shape(a)), a, b)

    return jax.tree.map(pick, yes, no)
