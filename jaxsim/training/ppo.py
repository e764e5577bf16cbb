"""Proximal policy optimisation as a pure agent: a whole learner in one memory.

Between two calls of `learn` the agent acts with one set of parameters in W episodes. From their
steps it estimates advantages and takes a fixed number of optimiser steps, each on decisions drawn
evenly from all that were made, so that what learning costs does not depend on how long episodes
are. While the schedule does not let it learn it takes the most probable action.

Source: J. Schulman et al., "Proximal policy optimization algorithms", 2017.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxsim import rng
from jaxsim.agents.base import Agent, Entry, Episodes, NoveltyPrediction
from jaxsim.training import advantages, dynamics, features, network, normalise
from jaxsim.training.features import Sight, View
from jaxsim.training.network import Network
from jaxsim.training.normalise import Moments
from jaxsim.training.settings import Hyper, Settings

FAULTS = ("the loss is not a finite number", "a parameter is not a finite number")
BAD_LOSS, BAD_PARAMETER = 1, 2
DYNAMICS_WEIGHT = 10.0
"""Of the model's error beside the policy's loss; they share no parameters."""

_ADAM = optax.scale_by_adam(eps=1e-5)


class Parameters(NamedTuple):
    """All that gradients move."""

    network: Network
    model: Network  # of the world, see `dynamics`


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """A learner's lifetime so far."""

    parameters: Parameters
    optimiser: Any
    moments: Moments  # of what it sees, (F,)
    bodies: Moments  # of the bodies, (D,)
    usual: dynamics.Usual
    hyper: Hyper
    key: jax.Array  # typed, of the lifetime
    rounds: jax.Array  # () int32, calls of `learn`
    fault: jax.Array  # () int32, place in `FAULTS` + 1, 0 for none
    learning: jax.Array  # () bool, whether what is played now is learned from
    extra: Any  # a variant's own
    watch: dynamics.Watch  # the episode in play


class Step(NamedTuple):
    """What is kept of a step."""

    seen: jax.Array  # (F,)
    body: jax.Array  # (D,)
    output: jax.Array  # () int32, the network's output that stood for the action
    action: jax.Array  # () int32
    chance: jax.Array  # () log-probability of the action
    value: jax.Array  # ()
    error: jax.Array  # () of what the model had expected


class Decisions(NamedTuple):
    """Decisions drawn to learn from, leaves (B, ...)."""

    seen: jax.Array  # (B, F)
    output: jax.Array  # (B, A) one-hot, of the network
    action: jax.Array  # (B, A) one-hot
    chance: jax.Array  # (B,)
    advantage: jax.Array  # (B,)
    value: jax.Array  # (B,) to aim at
    body: jax.Array  # (B, D)
    after: jax.Array  # (B, D) body one step later


class Variant(NamedTuple):
    """What a lifelong variant adds to the learner.

    Attributes:
      init: (parameters) -> its own part of the memory.
      enter: (memory, entry, fresh) -> memory, as a block begins; `fresh(memory)` forgets all.
      penalty: (memory, parameters, key) -> () added to the loss.
      after: (memory, decisions, key) -> its own part of the memory, at the end of `learn`.
    """

    init: Callable[[Any], Any]
    enter: Callable[[Memory, Entry, Any], Memory]
    penalty: Callable[[Memory, "Parameters", jax.Array], Any]
    after: Callable[[Memory, Decisions, jax.Array], Any]


def _nothing_more(memory: Memory, decisions: Decisions, key: jax.Array) -> Any:
    return memory.extra


def no_penalty(memory: Memory, parameters: Any, key: jax.Array) -> float:
    """Add nothing to the loss."""
    return 0.0


def _just_go_on(memory: Memory, entry: Entry, fresh: Any) -> Memory:
    return memory


plain = Variant(lambda parameters: (), _just_go_on, no_penalty, _nothing_more)
"""No variant."""


def learner(name: str, settings: Settings, sight: Sight, variant: Variant = plain) -> Agent:
    """Make an agent that learns by proximal policy optimisation.

    Args:
      name: of the agent.
      settings: hyper-parameters.
      sight: how it sees.
      variant: what it does beyond that.
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
      sight: how it sees; `features.flat(env, params)` for other environments.
    """
    return learner("ppo", settings or Settings(), sight)


# Playing ------------------------------------------------------------------------------------------


def _init(settings: Settings, sight: Sight, variant: Variant, key: jax.Array) -> Memory:
    first, second = jax.random.split(key)
    parameters = Parameters(
        network.init(first, sight.size, settings.hidden, sight.actions),
        dynamics.init(second, sight.body, sight.actions),
    )
    return Memory(
        parameters=parameters,
        optimiser=_ADAM.init(parameters),
        moments=normalise.init(sight.size),
        bodies=normalise.init(sight.body),
        usual=dynamics.usual(),
        hyper=settings.of_lifetime(0),
        key=key,
        rounds=jnp.int32(0),
        fault=jnp.int32(0),
        learning=jnp.asarray(True),
        extra=variant.init(parameters),
        watch=dynamics.watch(sight.body),
    )


def _assign(settings: Settings, memory: Memory, number: jax.Array) -> Memory:
    return replace(memory, hyper=settings.of_lifetime(number))


def _enter(
    settings: Settings, sight: Sight, variant: Variant, memory: Memory, entry: Entry
) -> Memory:
    def fresh(memory: Memory) -> Memory:
        """All as at birth, but for the numbers given and for the randomness."""
        key = jax.random.fold_in(memory.key, entry.block)
        born = _init(settings, sight, variant, key)
        return replace(born, hyper=memory.hyper, fault=memory.fault)

    return variant.enter(replace(memory, learning=entry.learning), entry, fresh)


def _fault(memory: Memory) -> jax.Array:
    return memory.fault


def _begin(sight: Sight, memory: Memory, key: jax.Array) -> Memory:
    return replace(memory, watch=dynamics.watch(sight.body))


def _view(
    sight: Sight, memory: Memory, observation: Any
) -> tuple[View, jax.Array, jax.Array, jax.Array]:
    """See an observation: its view, the body normalised, log-probabilities and value."""
    view = sight.look(observation)
    x = normalise.apply(memory.moments, view.seen)
    body = normalise.apply(memory.bodies, view.body)
    return view, body, *network.apply(memory.parameters.network, x)


def _act(
    sight: Sight, memory: Memory, observation: Any, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, Memory]:
    """Draw an action, or take the best one where nothing is to be learned."""
    view, body, chances, _ = _view(sight, memory, observation)
    noise = rng.uniform(rng.words(key), jnp.arange(sight.actions), low=1e-7, high=1.0)
    drawn = chances - jnp.where(memory.learning, jnp.log(-jnp.log(noise)), 0.0)
    output = jnp.arange(sight.actions) == jnp.argmax(drawn)
    action = jnp.sum(jnp.where(output, view.actions, 0)).astype(jnp.int32)
    watch, _ = dynamics.seen(memory.watch, body)
    done = jax.nn.one_hot(action, sight.actions)
    expected = dynamics.predict(memory.parameters.model, body, done)
    watch = watch._replace(expected=expected, first=jnp.asarray(False))
    said = dynamics.judge(memory.usual, watch, memory.hyper.alarm)
    return action, said, replace(memory, watch=watch)


def _trace(sight: Sight, memory: Memory, observation: Any, action: jax.Array) -> Step:
    """Keep what a step teaches; the same values as in `_act`, which the compiler shares."""
    view, body, chances, value = _view(sight, memory, observation)
    _, error = dynamics.seen(memory.watch, body)
    output = view.actions == action
    chance = jnp.sum(jnp.where(output, chances, 0.0))
    place = jnp.sum(jnp.where(output, jnp.arange(sight.actions), 0)).astype(jnp.int32)
    return Step(view.seen, view.body, place, jnp.asarray(action, jnp.int32), chance, value, error)


# Learning -----------------------------------------------------------------------------------------


def _learn(
    settings: Settings, sight: Sight, variant: Variant, memory: Memory, episodes: Episodes
) -> Memory:
    """Learn from W episodes; what is broken, or not to be learned from, changes nothing."""
    played = True if episodes.played is None else episodes.played[:, None]
    steps = jnp.arange(episodes.rewards.shape[1])
    there = (steps < episodes.length[:, None]) & played
    key = jax.random.fold_in(memory.key, memory.rounds)
    draw = _drawing(settings, sight, memory, episodes, there)

    def update(carry: Any, number: jax.Array) -> Any:
        parameters, optimiser = carry
        words = rng.fold(rng.words(key), number)
        decisions = draw(words)
        own = rng.to_key(rng.fold(words, 1))
        loss, gradients = jax.value_and_grad(_loss)(parameters, variant, memory, decisions, own)
        parameters, optimiser = _stepped(memory.hyper, parameters, optimiser, gradients)
        return (parameters, optimiser), loss

    start = (memory.parameters, memory.optimiser)
    (parameters, optimiser), losses = jax.lax.scan(update, start, jnp.arange(settings.updates))
    sound = all_finite(parameters)
    fault = jnp.where(jnp.all(jnp.isfinite(losses)), 0, BAD_LOSS)
    fault = jnp.where((fault == 0) & ~sound, BAD_PARAMETER, fault)
    new = replace(
        memory,
        parameters=parameters,
        optimiser=optimiser,
        moments=normalise.update(memory.moments, episodes.trace.seen, there),
        bodies=normalise.update(memory.bodies, episodes.trace.body, there),
        usual=dynamics.calibrate(memory.usual, episodes.trace.error, there),
        rounds=memory.rounds + 1,
    )
    last = rng.fold(rng.words(key), settings.updates)
    new = replace(new, extra=variant.after(new, draw(last), rng.to_key(rng.fold(last, 1))))
    goes_on = memory.learning & (memory.fault == 0)
    new = choose(goes_on & (fault == 0), new, memory)
    return replace(new, fault=jnp.where(goes_on, fault, memory.fault).astype(jnp.int32))


def _drawing(
    settings: Settings, sight: Sight, memory: Memory, episodes: Episodes, there: jax.Array
) -> Callable[[rng.Words], Decisions]:
    """Return how to draw decisions of the episodes, with what they turned out to be worth."""
    hyper, step = memory.hyper, episodes.trace
    # Scaled like this, values are about as large as rewards.
    gains = hyper.reward_weight * episodes.rewards + hyper.survival_reward
    rewards = (1 - hyper.discount) * gains
    better = advantages.advantages(
        rewards,
        step.value,
        episodes.final.value,
        episodes.length,
        episodes.terminated,
        hyper.discount,
        hyper.trace_decay,
    )
    number = jnp.maximum(jnp.sum(there), 1)
    mean = jnp.sum(jnp.where(there, better, 0.0)) / number
    spread = jnp.sqrt(jnp.sum(jnp.where(there, (better - mean) ** 2, 0.0)) / number)
    lengths = jnp.sum(there, axis=1)
    ends = jnp.cumsum(lengths)
    width, horizon = there.shape

    def flat(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(width * horizon, *leaf.shape[2:])

    numbers = [step.output, step.action, step.chance, better, step.value]
    seen, body = flat(step.seen), flat(jnp.concatenate([step.body, jnp.stack(numbers, -1)], -1))
    finals = episodes.final.body

    def draw(words: rng.Words) -> Decisions:
        # One decision from each of as many equal shares of all decisions.
        slots = jnp.arange(settings.samples)
        place = (slots + rng.uniform(words, slots)) * (ends[-1] / settings.samples)
        place = jnp.minimum(place.astype(jnp.int32), ends[-1] - 1)
        episode = jnp.sum(place[:, None] >= ends, axis=1)
        episode = jnp.minimum(episode, width - 1)
        tick = jnp.maximum(place - (ends - lengths)[episode], 0)
        at = episode * horizon + tick
        last = tick == lengths[episode] - 1
        follows = body[jnp.minimum(at + 1, width * horizon - 1)][:, : sight.body]
        here = body[at]
        output, action, chance, gain, value = here[:, sight.body :].T
        return Decisions(
            seen=seen[at],
            output=jax.nn.one_hot(output.astype(jnp.int32), sight.actions),
            action=jax.nn.one_hot(action.astype(jnp.int32), sight.actions),
            chance=chance,
            advantage=(gain - mean) / (spread + 1e-8),
            value=value + gain,
            body=here[:, : sight.body],
            after=jnp.where(last[:, None], finals[episode], follows),
        )

    return draw


def _loss(
    parameters: Parameters,
    variant: Variant,
    memory: Memory,
    decisions: Decisions,
    key: jax.Array,
) -> jax.Array:
    """What gradients descend on."""
    hyper = memory.hyper
    x = normalise.apply(memory.moments, decisions.seen)
    chances, value = network.apply(parameters.network, x)
    ratio = jnp.exp(jnp.sum(decisions.output * chances, axis=-1) - decisions.chance)
    clipped = jnp.clip(ratio, 1 - hyper.clip, 1 + hyper.clip)
    gain = jnp.mean(jnp.minimum(ratio * decisions.advantage, clipped * decisions.advantage))
    entropy = -jnp.mean(jnp.sum(jnp.exp(chances) * chances, axis=-1))
    miss = jnp.mean((value - decisions.value) ** 2)
    body, after = (normalise.apply(memory.bodies, b) for b in (decisions.body, decisions.after))
    expected = dynamics.predict(parameters.model, body, decisions.action)
    wrong = jnp.mean(dynamics.error(expected, after))
    return (
        hyper.value_weight * miss
        - gain
        - hyper.entropy_weight * entropy
        + DYNAMICS_WEIGHT * wrong
        + variant.penalty(memory, parameters, key)
    )


def _stepped(
    hyper: Hyper, parameters: Parameters, optimiser: Any, gradients: Parameters
) -> tuple[Parameters, Any]:
    """Take one step of Adam, the actor-critic's gradient scaled down to its limit."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients.network)))
    scale = jnp.minimum(1.0, hyper.gradient_limit / (norm + 1e-8))
    shorter = jax.tree.map(lambda g: scale * g, gradients.network)
    moves, optimiser = _ADAM.update(Parameters(shorter, gradients.model), optimiser)
    moved = jax.tree.map(lambda p, m: p - hyper.learning_rate * m, parameters, moves)
    return moved, optimiser


def all_finite(tree: Any) -> jax.Array:
    """() bool, whether every number of a tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def choose(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select one of two trees; leaves may be typed keys."""

    def pick(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.select(jnp.broadcast_to(condition, jnp.shape(a)), a, b)

    return jax.tree.map(pick, yes, no)
