"""One episode in every lane at once, and what the agents learn from it: the loop of the engines.

W neighbouring lanes may share a memory: what of it is only read in an episode, as the weights of a
network are, is there once, not once for each of them. For an agent with a `trace` the steps of the
episodes are kept until it has learned from them: all lanes take their steps together, so a step of
all of them is one row.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from evaluation import counters
from jaxsim import rng
from jaxsim.agents import Agent, Episodes, NoveltyPrediction


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """Totals of one episode; leaves (L,)."""

    reward: jax.Array
    performance: jax.Array
    length: jax.Array  # int32
    terminated: jax.Array  # bool
    complete: jax.Array  # bool
    prediction: NoveltyPrediction
    fault: Any = None  # int32, what the agent called its fault before; None if it has no faults


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kept:
    """The steps of episodes, for `Agent.learn`; leaves (T, L, ...), but `final` (L, ...)."""

    trace: Any
    rewards: jax.Array
    final: Any


def learn_from(
    agent: Agent, outcome: Outcome, played: jax.Array | None, kept: Kept | None, memory: Any
) -> Any:
    """Let every lifetime learn from its episodes.

    Args:
      agent: pure agent.
      outcome: totals, leaves (L, W).
      played: (L, W) bool, which episodes are there; None for all.
      kept: their steps, of L W lanes, if the agent has a `trace`.
      memory: leaves (L, ...).
    """
    totals = (outcome.reward, outcome.performance, outcome.length, outcome.terminated)
    shape = outcome.length.shape
    steps: tuple[Any, ...] = ()
    if kept is not None:

        def apart(leaf: jax.Array) -> jax.Array:
            return leaf.reshape(*shape, *leaf.shape[1:])

        def rows(leaf: jax.Array) -> jax.Array:
            return apart(jnp.moveaxis(leaf, 0, 1))

        final = jax.tree.map(apart, kept.final)
        steps = (jax.tree.map(rows, kept.trace), rows(kept.rewards), final)
    episodes = Episodes(*totals, played, *steps)
    return jax.vmap(agent.learn)(memory, episodes)


def play_episode(
    agent: Agent, env: Any, params: Any, key: rng.Words, active: jax.Array, memory: Any
) -> tuple[Any, Outcome]:
    """Play one episode in every lane until the last active one is over.

    Args:
      agent: pure agent for one lane.
      env: environment; see `jaxsim.env`.
      params: physics; scalar leaves, or (L,).
      key: (L,) counter keys of the episodes.
      active: (L,) bool; other lanes are padding.
      memory: agent memories, leaves (L, ...).

    Returns:
      (memory, outcome), leaves (L, ...).
    """
    memory, outcome, _ = play_abreast(agent, env, params, key, active, memory, 1, 0)
    return memory, outcome


def play_abreast(
    agent: Agent,
    env: Any,
    params: Any,
    key: rng.Words,
    active: jax.Array,
    memory: Any,
    width: int,
    steps: int,
) -> tuple[Any, Outcome, Kept | None]:
    """Play an episode in every lane, W neighbouring lanes for each memory.

    Args:
      agent: pure agent.
      env: environment; see `jaxsim.env`.
      params: physics; scalar leaves, or (L W,).
      key: (L W,) counter keys of the episodes.
      active: (L W,) bool; other lanes are padding.
      memory: agent memories, leaves (L, ...).
      width: lanes of each memory, W.
      steps: most steps of an episode to keep for an agent with a `trace`, T; 0 to keep none.

    Returns:
      (memory, outcome, steps): memory of the first of each W lanes, leaves (L, ...); leaves
      (L W, ...); None without a `trace` or with `steps` 0.
    """
    state = env.start(rng.to_key(rng.fold(key, counters.RESET)), params)
    minds = _Minds.of(agent, memory, env.observe(state), width)
    read, own = minds.apart(memory)
    own = minds.begin(read, own, rng.to_key(rng.fold(key, counters.BEGIN)))
    outcome = _nothing_yet(active)
    keeps = agent.trace is not None and steps > 0
    none_yet = minds.no_steps(read, own, env.observe(state), steps) if keeps else None

    def step(carry: Any) -> Any:
        tick, over, observation, state, own, outcome, kept = carry
        act_key = rng.to_key(rng.fold(key, counters.ACT, tick))
        action, said, thought = minds.act(read, own, observation, act_key)
        if keeps:
            mark = minds.trace(read, own, observation, action)
        step_key = rng.to_key(rng.fold(key, counters.STEP, tick))
        observation, state, reward, terminated, truncated, info = env.step(
            step_key, state, action, params
        )
        if keeps:
            kept = _put(kept, (mark, reward), tick)
        played = Outcome(
            outcome.reward + reward,
            info["performance"],
            outcome.length + 1,
            terminated,
            ~info["nonfinite"],
            said,
        )
        # The hidden first step plays itself; what the agent said to it does not count.
        idle = over | (tick == 0)
        own = _where(idle, own, thought)
        complete = jnp.where(over, outcome.complete, played.complete)
        outcome = _where(idle, outcome, jax.tree.map(_cast, played, outcome))
        outcome = replace(outcome, complete=complete)
        return tick + 1, over | terminated | truncated, observation, state, own, outcome, kept

    def unfinished(carry: Any) -> jax.Array:
        return jnp.any(~carry[1])

    carry: Any = (jnp.uint32(0), ~active, env.observe(state), state, own, outcome, none_yet)
    _, _, observation, _, own, outcome, kept = jax.lax.while_loop(unfinished, step, carry)
    memory = minds.first(read, own)
    if not keeps:
        return memory, outcome, None
    last = minds.trace(read, own, observation, jnp.zeros_like(outcome.length))
    trace, rewards = kept
    return memory, outcome, Kept(trace, rewards, last)


def _put(kept: Any, now: Any, tick: jax.Array) -> Any:
    """Write a step's row; that of the hidden first step is written over by the next."""
    row = jnp.maximum(tick.astype(jnp.int32) - 1, 0)
    return jax.tree.map(
        lambda rows, leaf: jax.lax.dynamic_update_index_in_dim(
            rows, jnp.asarray(leaf, rows.dtype), row, 0
        ),
        kept,
        now,
    )


@dataclass(frozen=True)
class _Minds:
    """An agent's functions over L W lanes, of which W neighbours share what is only read.

    A memory is its leaves, in two lists: those that `begin` and `act` hand on untouched, (L, ...),
    and those of each lane's own, (L W, ...).
    """

    agent: Agent
    structure: Any
    read: tuple[bool, ...]  # which leaves are only read
    width: int

    @classmethod
    def of(cls, agent: Agent, memory: Any, observation: Any, width: int) -> "_Minds":
        """Find out which leaves an agent only reads in an episode."""
        one = jax.eval_shape(lambda tree: jax.tree.map(lambda leaf: leaf[0], tree), memory)
        seen = jax.eval_shape(lambda tree: jax.tree.map(lambda leaf: leaf[0], tree), observation)
        leaves, structure = jax.tree.flatten(one)

        def episode(leaves: Any, observation: Any, key: jax.Array) -> Any:
            begun = agent.begin(jax.tree.unflatten(structure, leaves), key)
            return jax.tree.leaves(agent.act(begun, observation, key)[2])

        key = jax.eval_shape(lambda: jax.random.key(0))
        traced = jax.make_jaxpr(episode)(leaves, seen, key).jaxpr
        given = traced.invars[: len(leaves)]
        read = tuple(a is b for a, b in zip(given, traced.outvars, strict=True))
        return cls(agent, structure, read, width)

    def apart(self, memory: Any) -> tuple[list[jax.Array], list[jax.Array]]:
        """Split memories; each lane gets a copy of what is its own."""
        read, own = self._split(memory)
        return read, [jnp.repeat(leaf, self.width, axis=0) for leaf in own]

    def first(self, read: list[jax.Array], own: list[jax.Array]) -> Any:
        """Join memories, with what is the own of the first of each W lanes."""
        return self._joined(read, [leaf[:: self.width] for leaf in own])

    def begin(self, read: Any, own: Any, key: jax.Array) -> Any:
        """Call `Agent.begin`; return what is each lane's own."""
        return self._each(lambda m, k: self._split(self.agent.begin(m, k))[1], read, own, key)

    def act(self, read: Any, own: Any, observation: Any, key: jax.Array) -> Any:
        """Call `Agent.act`; of the memory it returns what is each lane's own."""

        def one(memory: Any, observation: Any, key: jax.Array) -> Any:
            action, said, thought = self.agent.act(memory, observation, key)
            return action, said, self._split(thought)[1]

        return self._each(one, read, own, observation, key)

    def trace(self, read: Any, own: Any, observation: Any, action: jax.Array) -> Any:
        """Call `Agent.trace`."""
        assert self.agent.trace is not None
        return self._each(self.agent.trace, read, own, observation, action)

    def no_steps(self, read: Any, own: Any, observation: Any, steps: int) -> Any:
        """Zeros for what is kept of `steps` steps: the trace and the rewards."""
        lanes = jax.tree.leaves(observation)[0].shape[0]
        action = jnp.zeros(lanes, jnp.int32)
        mark = jax.eval_shape(self.trace, read, own, observation, action)
        zeros = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), mark)
        return zeros, jnp.zeros((steps, lanes))

    def _each(self, function: Any, read: Any, own: Any, *given: Any) -> Any:
        """Call a function of one lifetime for every lane."""

        def one(read: Any, own: Any, *given: Any) -> Any:
            return function(self._joined(read, own), *given)

        if self.width == 1:
            return jax.vmap(one)(read, own, *given)
        folded = jax.tree.map(lambda x: x.reshape(-1, self.width, *x.shape[1:]), (own, *given))
        abreast = jax.vmap(one, in_axes=(None, *(0 for _ in folded)))
        result = jax.vmap(abreast)(read, *folded)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), result)

    def _split(self, memory: Any) -> tuple[list[jax.Array], list[jax.Array]]:
        marked = list(zip(self.read, jax.tree.leaves(memory), strict=True))
        return [leaf for read, leaf in marked if read], [leaf for read, leaf in marked if not read]

    def _joined(self, read: list[jax.Array], own: list[jax.Array]) -> Any:
        sources = {True: iter(read), False: iter(own)}
        return jax.tree.unflatten(self.structure, [next(sources[r]) for r in self.read])


def _nothing_yet(active: jax.Array) -> Outcome:
    """Totals before the first step."""
    zero, count = jnp.zeros(active.shape), jnp.zeros(active.shape, jnp.int32)
    prediction = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, active.shape), NoveltyPrediction.none()
    )
    return Outcome(zero, zero, count, ~active, jnp.ones_like(active), prediction)


def _cast(value: jax.Array, like: jax.Array) -> jax.Array:
    return jnp.asarray(value, like.dtype)


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select lane by lane, whatever follows the lane axis."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        lanes = condition.reshape(condition.shape + (1,) * (a.ndim - 1))
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            data = jnp.where(lanes[..., None], jax.random.key_data(a), jax.random.key_data(b))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(a))
        return jnp.where(lanes, a, b)

    return jax.tree.map(select, yes, no)
