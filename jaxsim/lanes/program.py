"""The compiled program of pure agents: lifetimes that play lists of rounds in lanes.

A lane plays episodes one after the other. It needs one of three kinds of work next, and each is in
the program once:

* a step by the cheapest effort, after the agent chooses an action: nearly always, chunk by chunk,
  several steps in a row;
* a step by a higher effort, with the action already chosen: for the lanes whose cheap step may be
  wrong, packed densely;
* a turn: the episodes of a round are over. Their results are written, the agent learns, gets the
  hint and the entry of the next round, and its episodes start. Packed as well.

A lane waits only for the lanes of its round. Its results depend on its lifetime and list alone: all
randomness is counted from the numbers of lifetime, episode and step, and no lane reads another.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxsim import counters, rng
from jaxsim.agents.base import Agent, never_fails
from jaxsim.backend import in_parts, opaque_one, whole
from jaxsim.lanes.banks import Banked, Banks, LeafBanks, cut, gather, pasted, scatter
from jaxsim.lanes.lists import Batch, ProgramOutput, Rows
from jaxsim.lanes.minds import Minds
from jaxsim.lanes.state import History, Lanes, Lifetimes, gather_lanes, no_words
from jaxsim.lanes.steps import Steps
from jaxsim.lanes.traced import TracedStep
from jaxsim.lanes.turns import Turns, no_prediction
from jaxsim.lanes.work import Work
from jaxsim.lanes.worlds import Worlds
from jaxsim.marks import Marks, marked
from jaxsim.pytrees import Observation, Tree
from jaxsim.worlds.world import RUNNING, TERMINATED

T = TypeVar("T")

GAPS = 0.2
"""Share of finished lifetimes at which the others are compacted."""
TURNING = 32
"""Turns wait until one in this many unfinished lifetimes needs one."""


class Sizes(NamedTuple):
    """Sizes of groups of lanes; nothing here changes a result."""

    chunk: int  # lanes that advance together, a multiple of the width
    ticks: int  # steps of a chunk in a row
    turns: int  # lifetimes that turn together
    groups: tuple[int, ...]  # lanes packed together, by effort; the last for all higher efforts


@dataclass(frozen=True)
class Program:
    """Static description of a program; see the module.

    Attributes:
      agent: pure agent.
      works: environments, see `lanes.work`.
      width: most episodes of a round, W.
      rounds: length of the lists, R.
      predicts: whether predictions of novelty are recorded.
      names: whether the levels that the agent names are recorded.
      sizes: of groups of lanes.
      independent: whether rounds are independent episodes: each begins with a new memory, and its
        number is one of the whole run.
    """

    agent: Agent
    works: tuple[Work, ...]
    width: int
    rounds: int
    predicts: bool
    names: bool
    sizes: Sizes
    independent: bool = False

    def __call__(self, batch: Batch) -> ProgramOutput:
        """Play the lists of all lifetimes of a batch."""
        return Play(self, batch).whole()


class _Layouts(NamedTuple):
    """Layouts of leaves in banks."""

    body: Banks  # lanes without the agent's leaves
    mind: Banks
    life: Banks
    rows: Banks


class _Bodies(NamedTuple):
    """`Lanes` in banks; steps by higher efforts need `body` alone."""

    body: Banked  # all but the agent's leaves
    mind: Banked  # `local` and `prediction`


class Carry(NamedTuple):
    """State that the loops of a program carry."""

    lanes: _Bodies
    lifetimes: Banked
    history: History | None
    rows: LeafBanks  # rows of `Rows`, (K, R, L)


class Play:
    """A program while it is traced for a batch."""

    def __init__(self, program: Program, batch: Batch) -> None:
        self.program, self.batch, self.width = program, batch, program.width
        self.agent, self.sizes = program.agent, program.sizes
        self.worlds = Worlds(program.works, batch.tables)
        self.count = batch.number.shape[0]
        self.minds = Minds.of(
            self.agent, _one(batch.memory), _one(self.observations()), program.width
        )
        self.turns = Turns(
            self.agent,
            self.worlds,
            self.minds,
            batch,
            program.rounds,
            program.predicts,
            program.names,
            program.independent,
        )
        self.traces = self.turns.learns and self.agent.trace is not None
        self.steps = Steps(self.worlds, self.minds, self.traces)
        self.efforts: dict[tuple[int, int], TracedStep] = {}
        self.tick: TracedStep
        self.layouts: _Layouts

    # The whole ---------------------------------------------------------------------------------

    def whole(self) -> ProgramOutput:
        """Play all rounds of all lifetimes."""
        carry = self.initial()

        def unfinished(state: tuple[Carry, jax.Array]) -> jax.Array:
            return state[1] > 0

        def stretch(state: tuple[Carry, jax.Array]) -> tuple[Carry, jax.Array]:
            carry = jax.lax.while_loop(self.dense(state[1]), self.pass_over(state[1]), state[0])
            return self.compacted(carry)

        front = jnp.int32(self.count * self.width)
        carry = jax.lax.while_loop(unfinished, stretch, (carry, front))[0]
        lifetimes = self.lifetimes(carry)
        place = jnp.arange(self.count, dtype=lifetimes.place.dtype)
        back = jnp.zeros_like(place).at[lifetimes.place].set(place)
        local = self.minds.first(self.lanes(carry.lanes).local)
        memory = self.minds.joined(*gather_lanes((lifetimes.shared, local), back))
        rows: Rows = self.layouts.rows.tree(Banked(LeafBanks({}, []), carry.rows))
        return ProgramOutput(memory, rows)

    def initial(self) -> Carry:
        """Lifetimes before their first round."""
        batch, count = self.batch, self.count * self.width
        memory = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), batch.memory)
        shared, local = self.minds.split(memory)
        lanes = self.no_episodes(count, self.minds.spread(local))
        place = jnp.arange(self.count, dtype=jnp.int32)
        if self.program.independent:
            key = rng.Words(*(jnp.broadcast_to(word, self.count) for word in batch.root))
        else:
            key = rng.fold(batch.root, batch.number, counters.EPISODE)
        fails = self.agent.fault is not never_fails
        fault = jnp.zeros(self.count, jnp.int32) if fails else None
        lifetimes = Lifetimes(place, place * 0 - 1, ~batch.real, key, shared, fault)
        self.lay_out(lanes, lifetimes)
        history = None
        if self.traces:
            most = self.worlds.max_steps
            _, trace, reward = self.tick.extra
            history = jax.tree.map(
                lambda leaf: jnp.zeros((count, most, *leaf.shape[1:]), leaf.dtype),
                History(trace, reward),
            )
        life = self.layouts.life.banked(lifetimes)
        return Carry(self.banked(lanes), life, history, self.blank_rows())

    def observations(self) -> Observation:
        """Shapes of the observations of lanes."""

        def observe() -> Observation:
            lanes = self.no_episodes(self.count * self.width, [])
            return self.worlds.observed(lanes.states, lanes.length, lanes.length)

        return jax.eval_shape(observe)

    def no_episodes(self, count: int, local: list[jax.Array]) -> Lanes:
        """Lanes before their first episodes."""
        zero = jnp.zeros(count, jnp.int32)
        params = self.worlds.varying(zero)
        states = jax.eval_shape(
            lambda key, params: tuple(
                self.worlds.started(i, key, part) for i, part in enumerate(params)
            ),
            no_words(count),
            params,
        )
        scored = self.worlds.scored
        return Lanes(
            ending=zero + TERMINATED,
            needs=zero,
            length=zero,
            world=zero if len(self.worlds.works) > 1 else None,
            key=no_words(count),
            params=params,
            states=jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), states),
            action=zero,
            local=local,
            prediction=no_prediction(zero.shape) if self.program.predicts else None,
            reward=None if scored else jnp.zeros(count),
            performance=None if scored else jnp.zeros(count),
        )

    # Layout ------------------------------------------------------------------------------------

    def lay_out(self, lanes: Lanes, lifetimes: Lifetimes) -> None:
        """Trace the steps, and lay lanes and lifetimes out by the leaves that steps change."""
        chunk = self.sizes.chunk
        shared = _of_size(chunk // self.width, lifetimes.shared)
        self.tick = TracedStep(self.steps.tick, _of_size(chunk, lanes), shared)
        body = replace(lanes, local=[], prediction=None)
        for world, work in enumerate(self.worlds.works):
            for effort in range(1, len(work.efforts)):
                size = self.group_size(world, effort)
                raised = partial(self.steps.raised, world, effort)
                self.efforts[world, effort] = TracedStep(raised, _of_size(size, body))
        places = jax.tree.unflatten(jax.tree.structure(lanes), self.tick.changes)
        by_tick = jax.tree.leaves(replace(places, local=[], prediction=None))
        by_efforts = [step.changes for step in self.efforts.values()]
        changes = [any(of) for of in zip(by_tick, *by_efforts, strict=True)]
        mind = lanes.local, lanes.prediction
        number = lanes.length
        rows = Rows(
            number,
            number,
            lanes.reward,
            lanes.performance,
            lanes.prediction,
            number if self.program.names else None,
            None if lifetimes.fault is None else number,
        )
        self.layouts = _Layouts(
            Banks.of(body, changes),
            Banks.of(mind, jax.tree.leaves((places.local, places.prediction))),
            Banks.of(lifetimes),
            Banks.of(rows),
        )

    def group_size(self, world: int, effort: int) -> int:
        """Lanes of one group that need an effort."""
        groups = self.sizes.groups
        last = effort == len(self.worlds.works[world].efforts) - 1
        return min(groups[-1 if last else effort - 1], self.count * self.width)

    def banked(self, lanes: Lanes) -> _Bodies:
        """Put lanes in banks."""
        body = replace(lanes, local=[], prediction=None)
        mind = self.layouts.mind.banked((lanes.local, lanes.prediction))
        return _Bodies(self.layouts.body.banked(body), mind)

    def lanes(self, banked: _Bodies) -> Lanes:
        """Inverse of `banked`."""
        local, prediction = self.layouts.mind.tree(banked.mind)
        body: Lanes = self.layouts.body.tree(banked.body)
        return replace(body, local=local, prediction=prediction)

    def lifetimes(self, carry: Carry) -> Lifetimes:
        """Lifetimes from their banks."""
        lifetimes: Lifetimes = self.layouts.life.tree(carry.lifetimes)
        return lifetimes

    def blank_rows(self) -> LeafBanks:
        """Rows before anything is written."""
        shape = self.program.rounds, self.count * self.width
        widths = self.layouts.rows.widths().items()
        return LeafBanks({name: jnp.zeros((rows, *shape), name) for name, rows in widths}, [])

    # Passes ------------------------------------------------------------------------------------

    def dense(self, front: jax.Array) -> Callable[[Carry], jax.Array]:
        """Condition that few of the first `front` lanes are over, so that none are compacted."""
        # Compaction pays if it frees a chunk; histories are too large to move.
        chunk = self.sizes.chunk // self.width
        lives = front // self.width
        few = jnp.minimum((1 - GAPS) * lives, lives - chunk)
        few = jnp.float32(0.5) if self.traces else jnp.maximum(few, 0.5)

        def condition(carry: Carry) -> jax.Array:
            return jnp.sum(~self.lifetimes(carry).over, dtype=jnp.int32) > few

        return condition

    def pass_over(self, front: jax.Array) -> Callable[[Carry], Carry]:
        """One pass: do the work that each of the first `front` lanes needs."""

        def work(carry: Carry) -> Carry:
            carry = self.turned(carry)
            carry = self.advanced(carry, front)
            lanes = carry.lanes
            for world, effort in self.efforts:
                lanes = lanes._replace(body=self.packed(lanes.body, world, effort))
            return carry._replace(lanes=lanes)

        return work

    def compacted(self, carry: Carry) -> tuple[Carry, jax.Array]:
        """Move the unfinished lifetimes to the front, in the same order (compaction)."""
        over = self.lifetimes(carry).over
        remaining = jnp.sum(~over, dtype=jnp.int32)
        chunk = self.sizes.chunk
        if self.traces:
            return carry, jnp.where(remaining > 0, self.count * self.width, 0)
        front = jnp.where(remaining > 0, -(-(remaining * self.width) // chunk) * chunk, 0)
        place = jnp.arange(self.count, dtype=jnp.int32)
        unfinished, finished = marked(~over), marked(over)
        behind = finished.places(jnp.maximum(place - remaining, 0))
        index = jnp.where(place < remaining, unfinished.places(place), behind)
        lanes = _Bodies(*(gather(part, self.lanes_of(index)) for part in carry.lanes))
        lifetimes = gather(carry.lifetimes, index)
        return carry._replace(lanes=lanes, lifetimes=lifetimes), front

    def lanes_of(self, index: jax.Array) -> jax.Array:
        """Lanes of lifetimes, (K,) to (K W,)."""
        if self.width == 1:
            return index
        return (index[:, None] * self.width + jnp.arange(self.width, dtype=index.dtype)).ravel()

    # Cheapest steps ----------------------------------------------------------------------------

    def advanced(self, carry: Carry, front: jax.Array) -> Carry:
        """Advance all lanes by some cheap steps, chunk by chunk."""
        size = self.sizes.chunk
        lives = size // self.width
        body, mind = carry.lanes

        def chunk(index: jax.Array, state: tuple[LeafBanks, LeafBanks, History | None]) -> Tree:
            first = index * size
            part = _Bodies(Banked(body.still, state[0]), Banked(mind.still, state[1]))
            part = _Bodies(*(cut(banked, first, size) for banked in part))
            lanes = self.lanes(part)
            shared = self.layouts.life.tree(cut(carry.lifetimes, index * lives, lives)).shared
            body_moving, mind_moving, events = jax.lax.cond(
                jnp.any(lanes.ending == RUNNING),
                lambda: self.ticks_of_chunk(lanes, shared),
                lambda: (part.body.moving, part.mind.moving, self.no_events()),
            )
            history = state[2]
            if history is not None:
                history = self.recorded(history, first, events)
            return (
                pasted(state[0], body_moving, first),
                pasted(state[1], mind_moving, first),
                history,
            )

        start = body.moving, mind.moving, carry.history
        body_moving, mind_moving, history = jax.lax.fori_loop(0, front // size, chunk, start)
        lanes = _Bodies(Banked(body.still, body_moving), Banked(mind.still, mind_moving))
        return carry._replace(lanes=lanes, history=history)

    def ticks_of_chunk(self, lanes: Lanes, shared: list[jax.Array]) -> Tree:
        """Cheap steps of one chunk; the leaves that steps change, and the events of each step."""
        tick = self.tick

        def go(number: jax.Array, state: tuple[list[jax.Array], Tree]) -> Tree:
            moving, events = state
            after, event = tick(tick.merged(moving, lanes), shared)
            if events is not None:
                events = jax.tree.map(
                    lambda rows, leaf: jax.lax.dynamic_update_index_in_dim(rows, leaf, number, 0),
                    events,
                    event,
                )
            return tick.moving(after), events

        start = tick.moving(lanes), self.no_events()
        moving, events = jax.lax.fori_loop(0, self.sizes.ticks, go, start)
        after = self.banked(tick.merged(moving, lanes))
        return after.body.moving, after.mind.moving, events

    def no_events(self) -> Tree:
        """Empty events of the steps of a chunk: (rows, traces, rewards)."""
        if not self.traces:
            return None
        room = jax.tree.map(
            lambda leaf: jnp.zeros((self.sizes.ticks, *leaf.shape), leaf.dtype), self.tick.extra
        )
        return (room[0] + self.worlds.max_steps, *room[1:])

    def recorded(self, history: History, first: jax.Array, events: Tree) -> History:
        """Write the steps of a chunk to the history; rows past the end are dropped."""
        row, trace, reward = events
        lane = first + jnp.arange(row.shape[1], dtype=row.dtype)

        def write(into: jax.Array, values: jax.Array) -> jax.Array:
            return into.at[lane[None], row].set(values, mode="drop", unique_indices=True)

        rewards = None if history.rewards is None else write(history.rewards, reward)
        return History(jax.tree.map(write, history.trace, trace), rewards)

    # Packed work -------------------------------------------------------------------------------

    def packed(self, banked: Banked, world: int, effort: int) -> Banked:
        """Advance the lanes that need an effort by one step, packed in groups."""
        size = self.group_size(world, effort)
        step, layout = self.efforts[world, effort], self.layouts.body
        marks = marked(self.steps.waiting(layout.tree(banked), world, effort))

        def group(state: tuple[jax.Array, LeafBanks]) -> tuple[jax.Array, LeafBanks]:
            begin, moving = state
            # Places of a group without a lane point past the end: gathers clamp, scatters drop.
            index = _places(marks, begin, size)
            part: Lanes = layout.tree(gather(Banked(banked.still, moving), index))
            inside = index < self.count * self.width
            part = replace(part, ending=jnp.where(inside, part.ending, TERMINATED))
            after = layout.banked(step(part)[0])
            return begin + size, scatter(moving, after.moving, index)

        def unfinished(state: tuple[jax.Array, LeafBanks]) -> jax.Array:
            return state[0] < marks.number

        start = jnp.int32(0), banked.moving
        return Banked(banked.still, jax.lax.while_loop(unfinished, group, start)[1])

    def turned(self, carry: Carry) -> Carry:
        """Turn the lifetimes whose rounds are over, packed in groups."""
        ending, over = self.lanes(carry.lanes).ending, self.lifetimes(carry).over
        ended = jnp.all((ending != RUNNING).reshape(self.count, self.width), axis=1)
        marks = marked(ended & ~over)
        size = min(self.sizes.turns, self.count)
        remaining = in_parts(jnp.sum(~over, dtype=jnp.int32))
        least = jnp.clip(remaining // TURNING, 1, size)

        def enough(state: tuple[jax.Array, Tree]) -> jax.Array:
            return marks.number - state[0] >= least

        def group(state: tuple[jax.Array, Tree]) -> tuple[jax.Array, Tree]:
            begin, (bodies, lives, rows) = state
            index = _places(marks, begin, size)
            lane_index = self.lanes_of(index)
            lifetimes: Lifetimes = self.layouts.life.tree(gather(lives, index))
            spare = index >= self.count
            lifetimes = replace(
                lifetimes,
                over=lifetimes.over | spare,
                round=jnp.where(spare, -1, lifetimes.round),
            )
            lanes = self.lanes(_Bodies(*(gather(part, lane_index) for part in bodies)))
            place = self.lanes_of(lifetimes.place)
            lifetimes, lanes, row = self.turns.turn(
                lifetimes, lanes, gather_lanes(carry.history, lane_index)
            )
            rows = self.written(rows, place, *row)
            lives = scatter(lives, self.layouts.life.banked(lifetimes), index)
            pairs = zip(bodies, self.banked(lanes), strict=True)
            return begin + size, (
                _Bodies(*(scatter(*pair, lane_index) for pair in pairs)),
                lives,
                rows,
            )

        start = jnp.int32(0), (carry.lanes, carry.lifetimes, carry.rows)
        lanes, lifetimes, rows = jax.lax.while_loop(enough, group, start)[1]
        return Carry(lanes, lifetimes, carry.history, rows)

    def written(
        self, rows: LeafBanks, column: jax.Array, number: jax.Array, results: Rows
    ) -> LeafBanks:
        """Write results of rounds to the rows; a number past the end is dropped."""
        new = self.layouts.rows.banked(results).moving.banks
        written = {
            name: bank.at[:, number, column].set(new[name], mode="drop")
            for name, bank in rows.banks.items()
        }
        return LeafBanks(written, [])


def _places(marks: Marks, begin: jax.Array, size: int) -> jax.Array:
    """Places of a group of marks, computed once for all their consumers."""
    ranks = begin + jnp.arange(size, dtype=jnp.int32)
    # By a vector: XLA turns a division by a scalar into a product, which it duplicates.
    return whole(marks.places(ranks), opaque_one(ranks.astype(jnp.float32)))


def _one(tree: T) -> T:
    """Shapes of one lane of a tree."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tree)


def _of_size(size: int, tree: T) -> T:
    """Shapes of a tree with `size` lanes."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype), tree
    )
