"""The compiled program behind `jaxsim.rollout`: many episodes, a few ticks of all at a time.

Most lanes have no contact in most ticks. A round takes every lane some ticks further in two phases.
In the first, lanes advance in chunks that fit the cache by steps that know no contacts between
bodies; a lane for which that may be wrong stays where it is. In the second, those lanes are packed
densely and catch up with full steps. Between rounds, lanes whose episodes are over get new ones, so
that no tick is spent on what has ended.

What a lane does depends on its episode alone: all its randomness is counted from the episode's
number, and no lane reads another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents.base import Agent
from jaxsim.worlds.base import RUNNING, TERMINATED, World

GROUP = 256
"""Lanes that catch up, or start, together."""

# What an episode's randomness is for; the first counter below its key.
_START, _INIT, _BEGIN, _ACT, _STEP = range(5)


class Sizes(NamedTuple):
    """How the episodes of one device are laid out; nothing here changes a result."""

    lanes: int  # episodes side by side, a multiple of `chunk`
    chunk: int  # lanes that advance together
    ticks: int  # of a round


class Batch(NamedTuple):
    """Which episodes a device plays.

    Their numbers count from `first`; all arrays have room for E of them.
    """

    root: rng.Words  # counter key of all randomness
    first: jax.Array  # () int32
    number: jax.Array  # () int32, at most E
    row: jax.Array  # (E,) int32, row of the parameters that each plays
    table: Any  # parameters; leaves () where all rows agree, else (V,)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Results:
    """How episodes ended; leaves (E,)."""

    length: Any  # int32, steps
    ending: Any  # int32, see `worlds.base`


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Lanes:
    """Episodes on their way; leaves (L, ...)."""

    number: Any  # int32 of the episode, -1 for none
    ending: Any  # int32, `RUNNING` or how the episode ended
    due: Any  # int32, steps at the end of the round
    length: Any  # int32, steps taken; -1 before the hidden first one
    params: Any  # leaves () where all rows agree
    state: Any  # what the next step reads
    action: Any  # int32, of the next step
    memory: Any  # of the agent


def play(env: World, agent: Agent, sizes: Sizes, batch: Batch) -> Results:
    """Play all episodes of a batch to their ends."""
    play_of = _Play(env, agent, sizes, batch)
    count = batch.row.shape[0]
    zero = jnp.zeros(count, jnp.int32)
    start = (play_of.nothing(), Results(zero, zero), jnp.int32(0))
    lanes, done, _ = jax.lax.while_loop(play_of.unfinished, play_of.round, start)
    return play_of.collect(done, lanes)


class _Play:
    """The parts of a program for one environment, agent and batch."""

    def __init__(self, env: World, agent: Agent, sizes: Sizes, batch: Batch) -> None:
        self.env, self.agent, self.sizes, self.batch = env, agent, sizes, batch
        self.order = self._order()

    def _order(self) -> jax.Array:
        """Order in which episodes begin, (E,): those alike in size side by side."""
        numbers = jnp.arange(self.batch.row.shape[0], dtype=jnp.int32)
        if len(self.env.widths) == 1:
            return numbers
        state = self.env.start(self._key(numbers, _START), self._params(self.batch.row))
        width = jnp.where(numbers < self.batch.number, self.env.width(state), len(self.env.widths))
        return jnp.argsort(width).astype(jnp.int32)

    def _key(self, number: jax.Array, *counters: Any) -> jax.Array:
        """Typed keys of episodes for one purpose."""
        return rng.to_key(rng.fold(self.batch.root, self.batch.first + number, *counters))

    def _params(self, row: jax.Array) -> Any:
        return jax.tree.map(lambda leaf: leaf[row] if leaf.ndim else leaf, self.batch.table)

    def unfinished(self, carry: tuple[_Lanes, Results, jax.Array]) -> jax.Array:
        """Whether there is an episode to begin or to go on with."""
        lanes, _, begun = carry
        return (begun < self.batch.number) | jnp.any(lanes.ending == RUNNING)

    def round(self, carry: tuple[_Lanes, Results, jax.Array]) -> tuple[_Lanes, Results, jax.Array]:
        """Take every lane some ticks further, and begin the episodes that there is room for."""
        lanes, done, begun = carry
        done = self.collect(done, lanes)
        lanes, begun = self.refill(lanes, begun)
        lanes = _with(lanes, due=lanes.length + self.sizes.ticks)
        lanes = self.advance(lanes)
        return (self.catch_up(lanes) if self.env.has_free_steps else lanes), done, begun

    def nothing(self) -> _Lanes:
        """Lanes without episodes."""
        none = jnp.full(self.sizes.lanes, -1, jnp.int32)
        shapes = jax.eval_shape(self.begin, none)
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return _with(blank, number=none, ending=none + 1 + TERMINATED, params=self._params(none))

    def begin(self, number: jax.Array) -> _Lanes:
        """Episodes before their hidden first step."""
        params = self._params(self.batch.row[number])
        state = self.env.start(self._key(number, _START), params)
        memory = jax.vmap(self.agent.init)(self._key(number, _INIT))
        memory = jax.vmap(self.agent.begin)(memory, self._key(number, _BEGIN))
        zero = jnp.zeros_like(number)
        carried = self.env.carried(state)
        return _Lanes(number, zero + RUNNING, zero, zero - 1, params, carried, zero, memory)

    def collect(self, done: Results, lanes: _Lanes) -> Results:
        """Write down what has ended."""
        ended = (lanes.ending != RUNNING) & (lanes.number >= 0)
        place = jnp.where(ended, lanes.number, done.length.shape[0])

        def put(into: jax.Array, own: jax.Array) -> jax.Array:
            return into.at[place].set(own, mode="drop")

        return Results(put(done.length, lanes.length), put(done.ending, lanes.ending))

    def refill(self, lanes: _Lanes, begun: jax.Array) -> tuple[_Lanes, jax.Array]:
        """Give new episodes to the lanes that are over, as long as there are any."""
        over = lanes.ending != RUNNING
        rank = begun + jnp.cumsum(over, dtype=jnp.int32) - 1
        fresh = over & (rank < self.batch.number)
        number = jnp.where(over, -1, lanes.number)
        number = jnp.where(fresh, self.order[jnp.where(fresh, rank, 0)], number)
        lanes = _with(lanes, number=number)
        lanes = _densely(lambda chosen: self.begin(chosen.number), fresh, lanes)
        return lanes, begun + jnp.sum(fresh, dtype=jnp.int32)

    def advance(self, lanes: _Lanes) -> _Lanes:
        """Take the lanes some ticks further, chunk by chunk; a lane that cannot be sure waits."""
        size, ticks = self.sizes.chunk, self.sizes.ticks
        widths = range(len(self.env.widths))

        def several(width: int, part: _Lanes) -> _Lanes:
            small = _with(part, state=self.env.narrowed(part.state, width))
            tick = partial(self.tick, full=not self.env.has_free_steps)
            small = _repeat(tick, ticks, small)
            return _with(small, state=self.env.widened(small.state, part.state, width))

        branches = [lambda part: part, *(partial(several, width) for width in widths)]

        def chunk(part: _Lanes) -> _Lanes:
            running = part.ending == RUNNING
            width = self.env.width(self.env.resumed(part.state, part.length), ticks)
            needed = jnp.max(jnp.where(running, 1 + width, 0))
            return jax.lax.switch(needed, branches, part)

        return _in_chunks(chunk, size, lanes)

    def catch_up(self, lanes: _Lanes) -> _Lanes:
        """Take the lanes that have waited to the end of the round."""

        def behind(part: _Lanes) -> jax.Array:
            return (part.ending == RUNNING) & (part.length < part.due)

        def finish(part: _Lanes) -> _Lanes:
            return jax.lax.while_loop(
                lambda p: jnp.any(behind(p)), partial(self.tick, full=True), part
            )

        return _densely(finish, behind(lanes), lanes)

    def tick(self, lanes: _Lanes, full: bool) -> _Lanes:
        """One step of every lane that is running and for which it is sure to be right."""
        env, agent = self.env, self.agent
        key = rng.fold(self.batch.root, self.batch.first + lanes.number)
        counted = (lanes.length + 1).astype(jnp.uint32)
        active = lanes.ending == RUNNING
        if full:
            active = active & (lanes.length < lanes.due)
        attempt = env.attempt(
            rng.to_key(rng.fold(key, _STEP, counted)),
            env.resumed(lanes.state, lanes.length),
            lanes.action,
            lanes.params,
            active,
            full,
        )
        act_key = rng.to_key(rng.fold(key, _ACT, counted))
        seen = env.observe(attempt.state)
        action, _, memory = jax.vmap(agent.act)(lanes.memory, seen, act_key)
        after = _with(
            lanes,
            ending=attempt.ending,
            length=lanes.length + 1,
            state=env.carried(attempt.state),
            action=action.astype(jnp.int32),
            memory=memory,
        )
        return _where(attempt.right, after, lanes)


def _with(lanes: _Lanes, **fields: Any) -> _Lanes:
    return _Lanes(**(vars(lanes) | fields))


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select lane by lane, whatever follows the lane axis; what is the same stays itself."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        if a is b:
            return b
        return jnp.where(condition.reshape(condition.shape + (1,) * (b.ndim - 1)), a, b)

    return jax.tree.map(select, yes, no)


def _repeat(tick: Callable[[_Lanes], _Lanes], times: int, lanes: _Lanes) -> _Lanes:
    """Apply a tick some times; what it leaves as it is takes no part in the loop."""
    leaves, structure = jax.tree.flatten(lanes)
    traced = jax.make_jaxpr(lambda *own: jax.tree.leaves(tick(jax.tree.unflatten(structure, own))))(
        *leaves
    ).jaxpr
    changing = [a is not b for a, b in zip(traced.outvars, traced.invars, strict=True)]

    def body(_: Any, moving: list[jax.Array]) -> list[jax.Array]:
        own = iter(moving)
        merged = [next(own) if c else leaf for c, leaf in zip(changing, leaves, strict=True)]
        after = jax.tree.leaves(tick(jax.tree.unflatten(structure, merged)))
        return [leaf for c, leaf in zip(changing, after, strict=True) if c]

    moving = [leaf for c, leaf in zip(changing, leaves, strict=True) if c]
    after = iter(jax.lax.fori_loop(0, times, body, moving))
    merged = [next(after) if c else leaf for c, leaf in zip(changing, leaves, strict=True)]
    return jax.tree.unflatten(structure, merged)


def _in_chunks(change: Callable[[_Lanes], _Lanes], size: int, lanes: _Lanes) -> _Lanes:
    """Change the lanes chunk by chunk."""
    return _scattered_params(change, size, lanes)


def _scattered_params(change: Callable[[_Lanes], _Lanes], size: int, lanes: _Lanes) -> _Lanes:
    leaves, structure = jax.tree.flatten(lanes)
    batched = [leaf.ndim > 0 for leaf in leaves]
    split = [leaf.reshape(-1, size, *leaf.shape[1:]) for leaf in leaves if leaf.ndim]

    def one(own: list[jax.Array]) -> list[jax.Array]:
        given = iter(own)
        merged = [next(given) if b else leaf for b, leaf in zip(batched, leaves, strict=True)]
        after = jax.tree.leaves(change(jax.tree.unflatten(structure, merged)))
        return [leaf for b, leaf in zip(batched, after, strict=True) if b]

    after = iter(leaf.reshape(-1, *leaf.shape[2:]) for leaf in jax.lax.map(one, split))
    merged = [next(after) if b else leaf for b, leaf in zip(batched, leaves, strict=True)]
    return jax.tree.unflatten(structure, merged)


def _densely(change: Callable[[_Lanes], _Lanes], chosen: jax.Array, lanes: _Lanes) -> _Lanes:
    """Change some of the lanes, packed in groups."""
    width = chosen.shape[0]
    size = min(GROUP, width)
    before = jnp.cumsum(chosen, dtype=jnp.int32)

    def group(carry: tuple[jax.Array, _Lanes]) -> tuple[jax.Array, _Lanes]:
        begin, lanes = carry
        # Places of a group without a lane point past the end: gathers clamp, scatters drop.
        index = jnp.searchsorted(before, begin + 1 + jnp.arange(size, dtype=jnp.int32))

        def take(leaf: jax.Array) -> jax.Array:
            return leaf.at[index].get(mode="clip") if leaf.ndim else leaf

        packed = jax.tree.map(take, lanes)
        spare = index >= width
        packed = _with(packed, ending=jnp.where(spare, TERMINATED, packed.ending))
        changed = change(packed)

        def put(into: jax.Array, own: jax.Array, old: jax.Array) -> jax.Array:
            if own is old or not into.ndim:
                return into
            return into.at[index].set(own, mode="drop", unique_indices=True)

        return begin + size, jax.tree.map(put, lanes, changed, packed)

    return jax.lax.while_loop(lambda carry: carry[0] < before[-1], group, (jnp.int32(0), lanes))[1]
