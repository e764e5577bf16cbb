"""State of lanes and lifetimes that the engine carries from step to step."""

from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.pytrees import Leaf, Params, State, Tree

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Lanes:
    """Episodes in play; leaves (L, ...), L = P W."""

    ending: Leaf  # int32, `RUNNING` or how the episode ended
    needs: Leaf  # int32, effort of the chosen action; 0 for an action and the cheapest step
    length: Leaf  # int32, steps taken; -1 before the hidden first one
    world: Leaf  # int32, index of the environment; None if there is only one
    key: rng.Words  # of the episode
    params: Params  # for each environment, the leaves of its parameters that differ between rows
    states: tuple[State, ...]  # one an environment, the parts that the next step reads
    action: Leaf  # int32, chosen for the next step
    local: list[Leaf]  # of the memory, see `Minds`
    prediction: Tree  # None if it is not recorded
    reward: Leaf  # sum so far; None if all environments are scored by length
    performance: Leaf  # as `reward`


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Lifetimes:
    """Lifetimes in play; leaves (P, ...)."""

    place: Leaf  # int32, index in the batch
    round: Leaf  # int32, -1 before the first
    over: Leaf  # bool
    key: rng.Words  # parent of the keys of its episodes
    shared: list[Leaf]  # of the memory, see `Minds`
    fault: Leaf  # int32 as the round began; None for agents without faults


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class History:
    """Steps of the episodes for `Agent.learn`; leaves (L, T, ...)."""

    trace: Tree
    rewards: Leaf  # None if they follow from the numbers of the steps


def where(condition: jax.Array, yes: T, no: T) -> T:
    """Select lane by lane, for any trailing axes; identical leaves are returned unchanged."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        if a is b:
            return b
        lanes = condition.reshape(condition.shape + (1,) * (b.ndim - 1))
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            data = jnp.where(lanes[..., None], jax.random.key_data(a), jax.random.key_data(b))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(b))
        return jnp.where(lanes, jnp.asarray(a, b.dtype), b)

    return jax.tree.map(select, yes, no)


def gather_lanes(tree: T, index: jax.Array) -> T:
    """Gather lanes of a tree; an index past the end takes the last lane."""
    return jax.tree.map(lambda leaf: leaf.at[index].get(mode="clip"), tree)


def like(values: list[jax.Array], models: list[jax.Array]) -> list[jax.Array]:
    """Cast values to the types of models."""
    return [jnp.asarray(value, old.dtype) for value, old in zip(values, models, strict=True)]


def no_words(lanes: int) -> rng.Words:
    """Placeholders for the keys of lanes."""
    return rng.Words(jnp.zeros(lanes, jnp.uint32), jnp.zeros(lanes, jnp.uint32))
