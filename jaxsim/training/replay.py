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
"""Rehearsed decisions of each step of the optimiser, at most."""
RENEWED = 8
"""Calls of `learn` within which the store of the present phase is filled anew."""


class Store(NamedTuple):
    """Observations with what to answer to them; M slots."""

    seen: jax.Array  # (M, F) of earlier phases, as seen
    chances: jax.Array  # (M, A) log-probabilities
    value: jax.Array  # (M,)
    phases: jax.Array  # () int32, how many there are in it
    now: jax.Array  # (M, F) observations of the present phase
    rounds: jax.Array  # () int32, calls of `learn` in it


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
    """Take the observations of the phase before in."""
    store: Store = memory.extra
    x = normalise.apply(memory.moments, store.now)
    chances, value = network.apply(memory.parameters, x)
    words = rng.fold(rng.words(memory.key), entry.block, 7)
    drawn = rng.uniform(words, jnp.arange(store.value.size))
    taken = drawn * (store.phases + 1) < 1
    joined = Store(
        jnp.where(taken[:, None], store.now, store.seen),
        jnp.where(taken[:, None], chances, store.chances),
        jnp.where(taken, value, store.value),
        store.phases + 1,
        store.now,
        jnp.int32(0),
    )
    ends = entry.new_phase & (store.rounds > 0)
    return replace(memory, extra=ppo.choose(ends, joined, store))


def _penalty(size: int, memory: ppo.Memory, parameters: Network, key: jax.Array) -> jax.Array:
    """Divergence of the policy from what is remembered, and the squared error of the value."""
    store: Store = memory.extra
    start = rng.bits(rng.words(key), 0) % jnp.uint32(size)
    at = (start + jnp.arange(min(BATCH, size), dtype=jnp.uint32)) % jnp.uint32(size)
    x = normalise.apply(memory.moments, store.seen[at])
    chances, value = network.apply(parameters, x)
    meant = store.chances[at]
    apart = jnp.mean(jnp.sum(jnp.exp(meant) * (meant - chances), axis=-1))
    miss = jnp.mean((value - store.value[at]) ** 2)
    weight = jnp.where(store.phases > 0, memory.hyper.rehearsal, 0.0)
    return weight * (apart + memory.hyper.value_weight * miss)


def _after(memory: ppo.Memory, decisions: ppo.Decisions, key: jax.Array) -> Store:
    """Put observations of this call in the place of older ones of the phase."""
    store: Store = memory.extra
    size = store.value.size
    slots = jnp.arange(size)
    words = rng.words(key)
    # In the first call of a phase the whole store is filled, later a share of it.
    renewed = (rng.uniform(words, slots) * RENEWED < 1) | (store.rounds == 0)
    at = rng.bits(words, slots + size) % jnp.uint32(decisions.seen.shape[0])
    now = jnp.where(renewed[:, None], decisions.seen[at], store.now)
    return store._replace(now=now, rounds=store.rounds + 1)
