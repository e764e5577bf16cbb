"""The compiled program behind `jaxsim.rollout`: many episodes, a few ticks of all at a time.

Most lanes have no contact in most ticks. A round takes every lane some ticks further in two phases.
In the first, lanes advance in chunks that fit the cache by steps that know no contacts between
bodies; a lane for which that may be wrong stays where it is. In the second, those lanes are packed
densely and take some steps with as much effort as they need. Lanes whose episodes are over are left
behind: the others close ranks where that frees a chunk. When all are over, the next wave of
episodes begins.

What a lane does depends on its episode alone: all its randomness is counted from the episode's
number, and no lane reads another.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents.base import Agent
from jaxsim.backend import FINE, Packing
from jaxsim.marks import marked
from jaxsim.worlds.base import RUNNING, TERMINATED, World

STARTS = 1024
"""Lanes that start together."""
GAPS = 0.2
"""Share of lanes that are over at which the others close ranks."""

# What an episode's randomness is for; the first counter below its key.
_START, _INIT, _BEGIN, _ACT, _STEP = range(5)


class Sizes(NamedTuple):
    """How the episodes of one device are laid out; nothing here changes a result."""

    lanes: int  # episodes side by side, a multiple of `chunk`
    chunk: int  # lanes that advance together
    ticks: int  # of a round
    packing: Packing = FINE


class Batch(NamedTuple):
    """Which episodes a device plays.

    Their numbers count from `first`; all arrays have room for E of them.
    """

    root: rng.Words  # counter key of all randomness
    first: Any  # () int32
    number: Any  # () int32 episodes, at most E
    row: Any  # (E,) int32, row of the parameters that each plays
    table: Any  # parameters; leaves () where all rows agree, else (V,)
    part: Any  # (V,) int32, place among the parts of the environment of the one that plays each row


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
    part: Any  # int32, place among the parts of the environment
    ending: Any  # int32, `RUNNING` or how the episode ended
    needs: Any  # int32, place among the efforts of the one that the next step needs at least
    length: Any  # int32, steps taken; -1 before the hidden first one
    params: Any  # leaves () where all rows agree
    state: Any  # what the next step reads
    action: Any  # int32, of the next step
    memory: Any  # of the agent


def play(parts: tuple[World, ...], agent: Agent, sizes: Sizes, batch: Batch) -> Results:
    """Play all episodes of a batch to their ends.

    Args:
      parts: the environment, behind simpler ones for some of the rows, see `World.parts`.
      agent: pure agent.
      sizes: how lanes are laid out.
      batch: which episodes.
    """
    program = Program(parts, agent, sizes, batch)
    zero = jnp.zeros(batch.row.shape[0], jnp.int32)
    waves = -(-batch.number // sizes.lanes)
    return jax.lax.fori_loop(0, waves, program.wave, Results(zero, zero))


class Program:
    """What a program for one environment, agent and batch consists of; see `play`."""

    def __init__(self, parts: tuple[World, ...], agent: Agent, sizes: Sizes, batch: Batch) -> None:
        self.parts, self.env = parts, parts[-1]
        self.agent, self.sizes, self.batch = agent, sizes, batch

    def wave(self, index: jax.Array, done: Results) -> Results:
        """Play as many episodes as there are lanes, or as are left."""
        lanes = self.begun(index * self.sizes.lanes)

        def running(lanes: _Lanes) -> jax.Array:
            return jnp.sum(lanes.ending == RUNNING, dtype=jnp.int32)

        def dense(carry: tuple[_Lanes, jax.Array]) -> jax.Array:
            lanes, front = carry
            # Closing ranks pays if it frees a chunk.
            few = jnp.minimum((1 - GAPS) * front, front - self.sizes.chunk)
            return running(lanes) > few

        def stretch(carry: tuple[_Lanes, jax.Array, Results]) -> Any:
            lanes, front, done = carry
            lanes, front = jax.lax.while_loop(dense, self.round, (lanes, front))
            return self.close_ranks(lanes, done)

        def unfinished(carry: tuple[_Lanes, jax.Array, Results]) -> jax.Array:
            return carry[1] > 0

        start = (lanes, jnp.int32(self.sizes.lanes), done)
        return jax.lax.while_loop(unfinished, stretch, start)[2]

    def round(self, carry: tuple[_Lanes, jax.Array]) -> tuple[_Lanes, jax.Array]:
        """Take every lane some ticks further.

        Args:
          carry: lanes, and the number of them from the first on that may be running.
        """
        lanes, front = carry
        lanes = self.advance(lanes, front)
        for effort in range(1, len(self.env.efforts)):
            lanes = self.packed(lanes, effort)
        return lanes, front

    def close_ranks(self, lanes: _Lanes, done: Results) -> tuple[_Lanes, jax.Array, Results]:
        """Write down what has ended, and move what has not to the front, in the same order."""
        done = _collect(done, lanes)
        marks = marked(lanes.ending == RUNNING)
        index, count = marks.places(jnp.arange(self.sizes.lanes, dtype=jnp.int32)), marks.number
        gone = jnp.arange(self.sizes.lanes) >= count
        lanes = _take(lanes, index)
        lanes = _with(
            lanes,
            number=jnp.where(gone, -1, lanes.number),
            ending=jnp.where(gone, TERMINATED, lanes.ending),
        )
        return lanes, -(-count // self.sizes.chunk) * self.sizes.chunk, done

    def begun(self, first: jax.Array) -> _Lanes:
        """The episodes of a wave, those alike in size side by side."""
        number = first + jnp.arange(self.sizes.lanes, dtype=jnp.int32)
        number = jnp.where(number < self.batch.number, number, -1)
        part = math.gcd(self.sizes.lanes, STARTS)
        lanes = _mapped(self.begin, number, part)
        kinds = len(self.parts) * len(self.env.widths)
        if kinds == 1:
            return lanes
        width = self.env.width(self.env.resumed(lanes.state, lanes.length))
        kind = lanes.part * len(self.env.widths) + width
        return _take(lanes, jnp.argsort(jnp.where(number < 0, kinds, kind)))

    def begin(self, number: jax.Array) -> _Lanes:
        """Episodes before their hidden first step; a number of -1 is of none."""
        row = self.batch.row[number]
        params = self._params(row)
        state = self.env.start(self._key(number, _START), params)
        memory = jax.vmap(self.agent.init)(self._key(number, _INIT))
        memory = jax.vmap(self.agent.begin)(memory, self._key(number, _BEGIN))
        zero = jnp.zeros_like(number)
        ending = jnp.where(number < 0, TERMINATED, RUNNING).astype(jnp.int32)
        carried = self.env.carried(state)
        part = self.batch.part[row]
        return _Lanes(number, part, ending, zero, zero - 1, params, carried, zero, memory)

    def _key(self, number: jax.Array, *counters: Any) -> jax.Array:
        """Typed keys of episodes for one purpose."""
        return rng.to_key(rng.fold(self.batch.root, self.batch.first + number, *counters))

    def _params(self, row: jax.Array) -> Any:
        return jax.tree.map(lambda leaf: leaf[row] if leaf.ndim else leaf, self.batch.table)

    def advance(self, lanes: _Lanes, front: jax.Array) -> _Lanes:
        """Take the lanes some ticks further, chunk by chunk; a lane that cannot be sure waits."""
        env, size, ticks = self.env, self.sizes.chunk, self.sizes.ticks
        split = self.split(lanes)

        def several(one: World, width: int, part: _Lanes) -> list[jax.Array]:
            small = _with(part, state=one.narrowed(part.state, width))
            own = Program((one,), self.agent, self.sizes, self.batch).split(small)
            moved = jax.lax.fori_loop(0, ticks, lambda _, m: own.after(m, small), own.moving(small))
            small = own.merged(moved, small)
            return split.moving(_with(small, state=env.widened(small.state, part.state, width)))

        branches: list[Callable[..., list[jax.Array]]] = [split.moving]
        # Only the simplest part, the fastest to compile and to play, has every width.
        last = len(env.widths) - 1
        branches += [partial(several, self.parts[0], width) for width in range(last + 1)]
        branches += [partial(several, one, last) for one in self.parts[1:]]

        def chunk(index: jax.Array, moving: list[jax.Array]) -> list[jax.Array]:
            begin = index * size

            def put(into: jax.Array, own: jax.Array) -> jax.Array:
                return jax.lax.dynamic_update_slice_in_dim(into, own, begin, 0)

            part = _batched(
                lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, begin, size),
                split.merged(moving, lanes),
            )
            running = part.ending == RUNNING
            width = env.width(env.resumed(part.state, part.length))
            widest = jnp.max(jnp.where(running, width, 0))
            place = self.shared(part.part, running)
            needed = 1 + jnp.where(place == 0, widest, last + place)
            needed = jnp.where(jnp.any(running), needed, 0)
            return jax.tree.map(put, moving, jax.lax.switch(needed, branches, part))

        moved = jax.lax.fori_loop(0, front // size, chunk, split.moving(lanes))
        return split.merged(moved, lanes)

    def shared(self, part: jax.Array, running: jax.Array) -> jax.Array:
        """Place of the part that plays all the running lanes, () int32."""
        last = len(self.parts) - 1
        least = jnp.min(jnp.where(running, part, last))
        return jnp.where(least == jnp.max(jnp.where(running, part, 0)), least, last)

    def packed(self, lanes: _Lanes, effort: int) -> _Lanes:
        """Take the lanes that need an effort a little further, packed in groups."""
        groups, repeats = self.sizes.packing
        last = effort == len(self.env.efforts) - 1
        size = groups[-1 if last else effort - 1]
        split = self.split(lanes)

        def waiting(lanes: _Lanes) -> jax.Array:
            return (lanes.ending == RUNNING) & (lanes.needs == effort)

        marks = marked(waiting(lanes))

        def going(carry: tuple[jax.Array, _Lanes]) -> jax.Array:
            return (carry[0] < repeats) & jnp.any(waiting(carry[1]))

        def go(carry: tuple[jax.Array, _Lanes]) -> tuple[jax.Array, _Lanes]:
            return carry[0] + 1, self.tick(self.tick(carry[1], effort), 0)

        def group(carry: tuple[jax.Array, list[jax.Array]]) -> tuple[jax.Array, list[jax.Array]]:
            begin, moving = carry
            # Places of a group without a lane point past the end: gathers clamp, scatters drop.
            index = marks.places(begin + jnp.arange(size, dtype=jnp.int32))
            part = _take(split.merged(moving, lanes), index)
            spare = index >= self.sizes.lanes
            part = _with(part, ending=jnp.where(spare, TERMINATED, part.ending))
            after = jax.lax.while_loop(going, go, (jnp.int32(0), part))[1]

            def put(into: jax.Array, own: jax.Array) -> jax.Array:
                return into.at[index].set(own, mode="drop", unique_indices=True)

            return begin + size, jax.tree.map(put, moving, split.moving(after))

        def unfinished(carry: tuple[jax.Array, list[jax.Array]]) -> jax.Array:
            return carry[0] < marks.number

        start = (jnp.int32(0), split.moving(lanes))
        return split.merged(jax.lax.while_loop(unfinished, group, start)[1], lanes)

    def split(self, lanes: _Lanes) -> "_Split":
        """Tell apart what a tick changes and what it leaves as it is."""
        return _Split(partial(self.tick, effort=0), lanes)

    def tick(self, lanes: _Lanes, effort: int) -> _Lanes:
        """One step of the lanes that need an effort; where it is not enough, they need more.

        Every step is taken with the least effort that is right for it, however rounds are cut.
        """
        env, agent = self.env, self.agent
        key = rng.fold(self.batch.root, self.batch.first + lanes.number)
        counted = (lanes.length + 1).astype(jnp.uint32)
        active = (lanes.ending == RUNNING) & (lanes.needs == effort)
        attempt = env.attempt(
            rng.to_key(rng.fold(key, _STEP, counted)),
            env.resumed(lanes.state, lanes.length),
            lanes.action,
            lanes.params,
            active,
            env.efforts[effort],
        )
        act_key = rng.to_key(rng.fold(key, _ACT, counted))
        seen = env.observe(attempt.state)
        action, _, memory = jax.vmap(agent.act)(lanes.memory, seen, act_key)
        after = _with(
            lanes,
            ending=attempt.ending.astype(jnp.int32),
            needs=jnp.zeros_like(lanes.needs),
            length=lanes.length + 1,
            state=env.carried(attempt.state),
            action=action.astype(jnp.int32),
            memory=memory,
        )
        needs = jnp.where(active, attempt.needs, lanes.needs)
        return _where(attempt.right, after, _with(lanes, needs=needs))


def _with(lanes: _Lanes, **fields: Any) -> _Lanes:
    return _Lanes(**(vars(lanes) | fields))


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select lane by lane, whatever follows the lane axis; what is the same stays itself."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        if a is b:
            return b
        return jnp.where(condition.reshape(condition.shape + (1,) * (b.ndim - 1)), a, b)

    return jax.tree.map(select, yes, no)


class _Split:
    """The leaves of lanes that a tick changes, for loops that carry no others."""

    def __init__(self, tick: Callable[[_Lanes], _Lanes], lanes: _Lanes) -> None:
        leaves, structure = jax.tree.flatten(lanes)

        def traced(*own: jax.Array) -> list[jax.Array]:
            return jax.tree.leaves(tick(jax.tree.unflatten(structure, own)))

        program = jax.make_jaxpr(traced)(*leaves).jaxpr
        self.tick, self.structure = tick, structure
        self.changing = [a is not b for a, b in zip(program.outvars, program.invars, strict=True)]

    def moving(self, lanes: _Lanes) -> list[jax.Array]:
        """Leaves that change."""
        leaves = jax.tree.leaves(lanes)
        return [leaf for changes, leaf in zip(self.changing, leaves, strict=True) if changes]

    def merged(self, moving: list[jax.Array], lanes: _Lanes) -> _Lanes:
        """Lanes with new leaves where they change."""
        own, leaves = iter(moving), jax.tree.leaves(lanes)
        merged = [
            next(own) if changes else leaf
            for changes, leaf in zip(self.changing, leaves, strict=True)
        ]
        return jax.tree.unflatten(self.structure, merged)

    def after(self, moving: list[jax.Array], lanes: _Lanes) -> list[jax.Array]:
        """Leaves that change, one tick on."""
        return self.moving(self.tick(self.merged(moving, lanes)))


def _collect(done: Results, lanes: _Lanes) -> Results:
    """Write down what has ended."""
    ended = (lanes.ending != RUNNING) & (lanes.number >= 0)
    place = jnp.where(ended, lanes.number, done.length.shape[0])

    def put(into: jax.Array, own: jax.Array) -> jax.Array:
        return into.at[place].set(own, mode="drop")

    return Results(put(done.length, lanes.length), put(done.ending, lanes.ending))


def _batched(change: Callable[..., jax.Array], lanes: _Lanes, *others: _Lanes) -> _Lanes:
    """Change the leaves that have lanes; parameters that all share have none."""
    return jax.tree.map(
        lambda leaf, *own: change(leaf, *own) if leaf.ndim else leaf, lanes, *others
    )


def _take(lanes: _Lanes, index: jax.Array) -> _Lanes:
    """Chosen lanes; an index past the end takes the last."""
    return _batched(lambda leaf: leaf.at[index].get(mode="clip"), lanes)


def _mapped(change: Callable[[jax.Array], _Lanes], numbers: jax.Array, size: int) -> _Lanes:
    """Make lanes from numbers, some at a time."""
    shapes = jax.eval_shape(change, numbers)
    made = jax.lax.map(change, numbers.reshape(-1, size))

    def joined(leaf: jax.Array, shape: Any) -> jax.Array:
        return leaf.reshape(shape.shape) if shape.ndim else leaf[0]

    return jax.tree.map(joined, made, shapes)
