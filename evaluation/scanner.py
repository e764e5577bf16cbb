"""The engine for pure agents: a schedule as lists of rounds that lanes play.

Every lifetime plays the same list, each with its own agent memory, starts and randomness, in the
compiled program of `jaxsim.lanes`. Lifetimes are spread over the machine's cores or accelerators.
The list is played in segments, between which the host collects records and shows progress.

A lane's results depend on (seed, lifetime) alone. Randomness is counter-based, a lane's tick does
not depend on the other lanes of its batch, and one executable plays all parts of the lifetimes. So
the number of lifetimes, chunks, threads and segments change no record.

A run can be stopped between two segments and resumed in another process. A `Snapshot` holds it by
lifetime, for any chunks and threads; a `Keeper` decides when to take one.

With width W, a lifetime plays up to W episodes of a block in parallel, all from the same memory,
and then the agent learns from them. An episode's start and randomness still follow from its number.
The lifetime continues with the memory of the first of these episodes.

Nothing connects the episodes of an agent without a memory, so few lifetimes play several of them in
parallel as well: thousands of lanes fill the groups that contacts need, and records do not change.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import jax
import numpy as np

from evaluation.json_types import JsonObject
from evaluation.records import Records
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks, entries
from jaxsim import __version__, counters
from jaxsim.agents import Agent
from jaxsim.agents.base import Memory, learn_nothing
from jaxsim.agents.contract import check_agent
from jaxsim.inputs import check_whole
from jaxsim.lanes.crew import Crew, Spread
from jaxsim.lanes.lists import Rounds, Rows
from jaxsim.pytrees import Tree
from jaxsim.worlds.world import NONFINITE

SEGMENT = 16
"""Rounds between two returns to the host, which shows progress."""
MAX_LIFETIMES = 1_000_000
MAX_WIDTH = 1024
ENOUGH_LANES, MOST_UNCONNECTED = 8192, 16
"""Lanes, and episodes of a lifetime, that agents without a memory play in parallel; by measurement,
and alike on all machines, since rounds of a `Snapshot` have as many episodes."""
LEAST_AT_WORK = 0.5
"""More than this share of the lanes of a schedule's rounds must have an episode: in worlds of many
blocks, a lane without one takes as much time as the others."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class MachineOptions:
    """How a schedule is spread over the machine; nothing here changes a result.

    Attributes:
      chunk: lanes that advance together, a multiple of 64; None for a good size.
      threads: parts of the lifetimes that are played at the same time; None for one for each core,
        or for each accelerator.
      segment: rounds between two progress reports.
    """

    chunk: int | None = None
    threads: int | None = None
    segment: int = SEGMENT

    def spread(self) -> Spread:
        """Check the options.

        Raises:
          ValueError: a chunk that is not a multiple of 64, or a number out of bounds.
        """
        check_whole("segment", self.segment, 1)
        return Spread(self.chunk, self.threads)


@dataclass(frozen=True)
class Snapshot:
    """A run of L lifetimes between two segments.

    Attributes:
      rounds: played so far; a round is up to `width` episodes of one block in parallel.
      memory: agent memories in NumPy, leaves (L, ...); of typed keys, their data.
      outcome: columns of the records of the E' episodes so far in NumPy, (L, E') each.
    """

    rounds: int
    memory: Memory
    outcome: Tree


class Keeper(Protocol):
    """Saves a run, so that it may end before its schedule does."""

    @property
    def ends(self) -> Collection[int]:
        """Numbers of episodes after which the run must return to the host."""

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return the snapshot to resume from; None for the start.

        Args:
          start: returns the snapshot of the start, with outcomes (L, 0); every later snapshot has
            its structure and types.
        """

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """Called after each segment; an exception ends the run.

        Args:
          episodes: number that each lifetime has played so far.
          take: returns the snapshot; this copies all memories.
        """


def play(
    schedule: Schedule,
    agent: Agent,
    *,
    lifetimes: int,
    seed: int = 0,
    first_lifetime: int = 0,
    width: int = 1,
    options: MachineOptions | None = None,
    progress: Progress | None = None,
    memory: Memory = None,
    keeper: Keeper | None = None,
    randomness: Sequence[int] | None = None,
) -> Records:
    """Play a schedule with a pure agent, many lifetimes at once.

    Args:
      schedule: what is played.
      agent: pure agent; each lifetime has a memory of its own.
      lifetimes: number of lifetimes, L.
      seed: root of all randomness, from 0 to 2^32 - 1. The first lifetimes of a longer run with
        the same seed are the same, bit for bit.
      first_lifetime: number of the first lifetime: with K, lifetimes K to K + L - 1 of a longer run
        are played, the same bit for bit.
      width: episodes of a block that a lifetime plays in parallel, learning from all of them at
        once; 1 is one after the other. Records of an agent without a memory do not depend on it.
      options: chunks, threads and segments.
      progress: called as `progress(episodes done, episodes in all)`, counted over lifetimes.
      memory: initial memory of each lifetime, leaves (L, ...) in NumPy as in a `Snapshot`; None
        for the agent's own initial memory.
      keeper: says where to resume, and is called after each segment.
      randomness: (L,) numbers of lifetimes whose starts and randomness these have, so that several
        agents of one call can meet the same; None for each lifetime's own.

    Returns:
      The records of all episodes.

    Raises:
      ValueError: a count or seed out of bounds, memories of another number of lifetimes, tasks
        that do not fit together, or a prediction of novelty out of its bounds.
      TypeError: another object than an agent.
    """
    check_agent(agent)
    check_lifetimes(lifetimes, first_lifetime)
    check_width(width)
    for what, leaves in (("memory", jax.tree.leaves(memory)), ("randomness", [randomness])):
        for leaf in leaves:
            if leaf is not None and len(leaf) != lifetimes:
                raise ValueError(f"{what} is of {len(leaf)} lifetimes; lifetimes is {lifetimes}")
    for number in () if randomness is None else randomness:
        check_whole("a number of randomness", number, 0, 2**32 - 1)
    numbers = range(first_lifetime, first_lifetime + lifetimes)
    counts = [block.count for block in schedule.blocks]
    parallel = max(width, unconnected(agent, lifetimes, counts))
    run = _ScannerRun(schedule, agent, numbers, seed, parallel, randomness)
    columns = run.play(options or MachineOptions(), progress, memory, keeper)
    fault = columns.pop("fault", None)
    metadata = {
        "agent": agent.name,
        "seed": seed,
        "lifetimes": lifetimes,
        **({"width": width} if width > 1 else {}),
        **({} if fault is None else _named_faults(agent, fault, first_lifetime)),
        "versions": {"jaxsim-novelty": __version__, "jax": jax.__version__},
    }
    return Records(schedule, columns, run.tasks.novelty_levels, first_lifetime, metadata)


def check_predictions(
    agent: Agent, level: np.ndarray, probability: np.ndarray, threshold: np.ndarray
) -> None:
    """Refuse predictions of novelty that are none, as the session does.

    Args:
      agent: that made them.
      level: of the novelties.
      probability: that the world has changed.
      threshold: probability from which it counts as a detection.

    Raises:
      ValueError: a level below 0, a probability or a threshold that is not in [0, 1].
    """
    for name, values, most in (
        ("level", level, np.inf),
        ("probability", probability, 1),
        ("threshold", threshold, 1),
    ):
        refused = values[~((values >= 0) & (values <= most))]
        if refused.size:
            bounds = "0 or more" if most == np.inf else "from 0 to 1"
            raise ValueError(
                f"agent {agent.name} predicts a {name} of {refused[0]:g}; it must be {bounds}"
            )


def _named_faults(agent: Agent, fault: np.ndarray, first_lifetime: int) -> JsonObject:
    """Metadata of faults: lifetime, first episode that it affects, and reason; {} for none."""
    faults = [
        {
            "lifetime": first_lifetime + int(lane),
            "episode": int(np.argmax(fault[lane] > 0)),
            "reason": _fault_text(agent, int(fault[lane].max())),
        }
        for lane in np.flatnonzero(fault.any(axis=1))
    ]
    return {"faults": faults} if faults else {}


def _fault_text(agent: Agent, fault: int) -> str:
    """Text of a fault; its number where the agent has no text for it."""
    return agent.faults[fault - 1] if 1 <= fault <= len(agent.faults) else f"fault {fault}"


def check_lifetimes(lifetimes: int, first_lifetime: int = 0) -> None:
    """Check numbers of lifetimes.

    Raises:
      ValueError: none, too many, or a first one that does not exist.
    """
    check_whole("lifetimes", lifetimes, 1, MAX_LIFETIMES)
    last = MAX_LIFETIMES - lifetimes
    check_whole("first lifetime", first_lifetime, 0, last)


def check_width(width: int) -> None:
    """Check a number of episodes in parallel.

    Raises:
      ValueError: none or too many.
    """
    check_whole("width", width, 1, MAX_WIDTH)


def unconnected(agent: Agent, lifetimes: int, counts: Sequence[int]) -> int:
    """Episodes of a lifetime that are played in parallel as no memory connects them; 1 if one does.

    Args:
      agent: that plays.
      lifetimes: number of lifetimes; the more there are, the fewer of these episodes.
      counts: episodes of each block. In short blocks, few are played in parallel.
    """
    memory = jax.eval_shape(agent.init, jax.random.key(0))
    if jax.tree.leaves(memory) or agent.learn is not learn_nothing:
        return 1
    width = min(MOST_UNCONNECTED, 1 << (max(1, ENOUGH_LANES // lifetimes).bit_length() - 1))
    while width > 1 and sum(counts) <= LEAST_AT_WORK * width * sum(-(-n // width) for n in counts):
        width //= 2
    return width


class _Stretch(NamedTuple):
    """A part of a schedule that is played without a return to the host."""

    rounds: Rounds  # leaves (S, 1)
    episodes: int  # of each lifetime
    number: int  # of its rounds


class _ScannerRun:
    """A schedule with an agent and the lifetimes that play it."""

    def __init__(
        self,
        schedule: Schedule,
        agent: Agent,
        numbers: range,
        seed: int,
        width: int,
        randomness: Sequence[int] | None = None,
    ) -> None:
        self.schedule, self.agent, self.numbers, self.width = schedule, agent, numbers, width
        self._randomness = numbers if randomness is None else randomness
        self.root, self.tasks = counters.root(seed), Tasks.of(schedule)

    def play(
        self,
        options: MachineOptions,
        progress: Progress | None,
        memory: Memory,
        keeper: Keeper | None,
    ) -> dict[str, np.ndarray]:
        """Play the whole schedule; return (L, E) columns."""
        crew = self.crew(options)
        if memory is not None:
            crew.remember(memory)
        snapshot = keeper.begin(partial(self._start, crew)) if keeper else None
        if snapshot:
            crew.remember(snapshot.memory)
        parts = [snapshot.outcome] if snapshot else []
        rounds, lifetimes = snapshot.rounds if snapshot else 0, len(self.numbers)
        done = parts[0]["length"].shape[1] if parts else 0
        ends = keeper.ends if keeper else ()
        for stretch in self.stretches(options.segment, rounds, ends):
            rows = crew.play(stretch.rounds)
            parts.append(self._columns(rows, stretch.rounds.count))
            names = ("predicted_level", "predicted_probability", "threshold")
            check_predictions(self.agent, *(parts[-1][name] for name in names))
            done, rounds = done + stretch.episodes, rounds + stretch.number
            if progress:
                progress(done * lifetimes, self.schedule.num_episodes * lifetimes)
            if keeper:
                keeper.between(done, partial(self._snapshot, rounds, crew, parts))
        columns = _concatenated(parts)
        variant = self.schedule.block_variants()[self.schedule.episode_blocks()]
        seconds = columns["length"] * self.tasks.dt[variant]
        return columns | {"seconds": seconds.astype(np.float32)}

    def crew(self, options: MachineOptions) -> Crew:
        """The lifetimes, spread over the machine."""
        return Crew(
            self.agent,
            [world.env for world in self.tasks.worlds],
            [world.params for world in self.tasks.worlds],
            self.root,
            np.asarray(self._randomness),
            width=self.width,
            spread=options.spread(),
            assigned=np.asarray(self.numbers),
        )

    def _start(self, crew: Crew) -> Snapshot:
        """Return the snapshot before the first round."""
        columns = self._columns(crew.no_rows(), np.zeros((0, 1), np.int32))
        return Snapshot(0, crew.memory(), columns)

    def _snapshot(self, rounds: int, crew: Crew, parts: list[Tree]) -> Snapshot:
        """Return the snapshot after so many rounds; joins `parts` in place."""
        parts[:] = [_concatenated(parts)]
        return Snapshot(rounds, crew.memory(), parts[0])

    def stretches(self, segment: int, start: int, ends: Collection[int]) -> list[_Stretch]:
        """Cut the schedule into rounds, and these into stretches of equal length, padded at ends.

        A round has up to W episodes of one block. The first stretch begins with round `start`. No
        stretch crosses an episode of `ends`; these begin rounds.
        """
        rounds = self._rounds()
        first, count = rounds.episode[:, 0], rounds.count[:, 0]
        number = len(first)
        # Short schedules share programs with others of about their length.
        segment = min(segment, 1 << (number - 1).bit_length())
        edges = np.append(np.searchsorted(first, sorted(ends)), number)
        stretches = []
        while start < number:
            stop = min(start + segment, int(edges[edges > start][0]))
            index = np.arange(start, start + segment)
            part = rows_at(rounds, np.minimum(index, number - 1))
            part.count[index >= stop] = 0
            stretches.append(_Stretch(part, int(count[start:stop].sum()), stop - start))
            start = stop
        return stretches

    def _rounds(self) -> Rounds:
        """List of all rounds of a lifetime, leaves (R, 1)."""
        blocks, width = self.schedule.blocks, self.width
        rounds = [
            (place, min(width, block.count - place), index)
            for index, block in enumerate(blocks)
            for place in range(0, block.count, width)
        ]
        within, count, block = np.array(rounds, np.int32).T
        first = np.cumsum([0, *(b.count for b in blocks)])[block] + within
        variant = self.schedule.block_variants()[block]
        learning = np.array([b.learning for b in blocks])
        all_rounds = Rounds(
            episode=first.astype(np.int32),
            count=count,
            world=self.tasks.world[variant],
            row=self.tasks.row[variant],
            learning=learning[block] if learning.any() else None,
            enters=within == 0,
            entry=jax.tree.map(lambda leaf: leaf[block], entries(self.schedule)),
        )
        return jax.tree.map(lambda leaf: leaf[:, None], all_rounds)

    def _columns(self, rows: Rows, count: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of the records of a stretch, (L, E') each, by the episodes of its rounds."""
        mask = np.arange(self.width) < count

        def column(leaf: np.ndarray) -> np.ndarray:
            return leaf.swapaxes(0, 1)[:, mask]

        prediction, complete = rows.prediction, column(rows.ending) != NONFINITE
        columns = {
            "reward": column(rows.reward),
            "performance": column(rows.performance),
            "length": column(rows.length),
            "predicted_level": column(prediction.level),
            "predicted_probability": column(prediction.probability),
            "threshold": column(prediction.threshold),
        }
        if rows.fault is not None:
            columns["fault"] = column(rows.fault)
            complete &= columns["fault"] == 0
        return columns | {"complete": complete}


def rows_at(tree: Tree, index: np.ndarray) -> Tree:
    """Rows of all leaves, NumPy; a copy."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _concatenated(parts: list[Tree]) -> Tree:
    """Concatenate columns of stretches along the episodes, (L, E)."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)
