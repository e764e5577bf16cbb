"""Rehearsal: decisions of earlier phases are learned again beside the present ones.

While it learns, the agent fills a bounded store with observations of the present phase. As the
phase ends, they join those of earlier phases, of each phase the same share, with the policy and the
value that the agent has by then. Later its network is drawn towards these.

Source: P. Buzzega et al., "Dark experience for general continual learning", 2020, and D. Rolnick
et al., "Experience replay for continual learning", 2019, whose clone of policy and value this is.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents.base import Agent, Entry
from jaxsim.pytrees import Tree
from jaxsim.training import features, network, normalise, ppo
from jaxsim.training.features import Sight
from jaxsim.training.network import Network
from jaxsim.training.settings import Settings

BATCH = 128
"""Most rehearsed decisions of each step of the optimiser."""
RENEWED = 8
"""Calls of `learn` within which the store of the present phase is filled anew."""


class Store(NamedTuple):
    """Observations with the policies and values to keep; M slots."""

    seen: jax.Array  # (M, F) inputs of earlier phases, not normalised
    chances: jax.Array  # (M, A) log-probabilities
    value: jax.Array  # (M,)
    phases: jax.Array  # () int32, number of stored phases
    now: jax.Array  # (M, F) inputs of the present phase
    rounds: jax.Array  # () int32, calls of `learn` in the present phase


def agent(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """PPO that rehearses earlier phases; see `ppo.ppo`."""
    settings = settings or Settings()
    size = settings.rehearsed
    variant = ppo.Variant(partial(_init, size, sight), _enter, partial(_penalty, size), _after)
    return ppo.learner("ppo+replay", settings, sight, variant)


def _init(size: int, sight: Sight, parameters: Network) -> Store:
    seen, zero = jnp.zeros((size, sight.size)), jnp.int32(0)
    return Store(seen, jnp.zeros((size, sight.actions)), jnp.zeros(size), zero, seen, zero)


def _enter(memory: ppo.Memory, entry: Entry, fresh: Tree) -> ppo.Memory:
    """Add the observations of the phase that has ended to the store."""
    store: Store = memory.extra
    x = normalise.apply(memory.moments, store.now)
    chances, value = network.apply(memory.parameters, x)
    words = rng.fold(rng.words(memory.key), entry.block, 7)
    draws = rng.uniform(words, jnp.arange(store.value.size))
    mask = draws * (store.phases + 1) < 1
    new_store = Store(
        jnp.where(mask[:, None], store.now, store.seen),
        jnp.where(mask[:, None], chances, store.chances),
        jnp.where(mask, value, store.value),
        store.phases + 1,
        store.now,
        jnp.int32(0),
    )
    ends = entry.new_phase & (store.rounds > 0)
    return replace(memory, extra=ppo.choose(ends, new_store, store))


def _penalty(size: int, memory: ppo.Memory, parameters: Network, key: jax.Array) -> jax.Array:
    """Divergence of the policy from the stored one, and squared error of the value."""
    store: Store = memory.extra
    start = rng.bits(rng.words(key), 0) % jnp.uint32(size)
    index = (start + jnp.arange(min(BATCH, size), dtype=jnp.uint32)) % jnp.uint32(size)
    x = normalise.apply(memory.moments, store.seen[index])
    chances, value = network.apply(parameters, x)
    target = store.chances[index]
    divergence = jnp.mean(jnp.sum(jnp.exp(target) * (target - chances), axis=-1))
    value_error = jnp.mean((value - store.value[index]) ** 2)
    weight = jnp.where(store.phases > 0, memory.hyper.rehearsal, 0.0)
    return weight * (divergence + memory.hyper.value_weight * value_error)


def _after(memory: ppo.Memory, decisions: ppo.Decisions, key: jax.Array) -> Store:
    """Replace a share of the present phase's observations by those of this call."""
    store: Store = memory.extra
    size = store.value.size
    slots = jnp.arange(size)
    words = rng.words(key)
    # In the first call of a phase the whole store is filled, later a share of it.
    mask = (rng.uniform(words, slots) * RENEWED < 1) | (store.rounds == 0)
    index = rng.bits(words, slots + size) % jnp.uint32(decisions.inputs.shape[0])
    now = jnp.where(mask[:, None], decisions.inputs[index], store.now)
    return store._replace(now=now, rounds=store.rounds + 1)
