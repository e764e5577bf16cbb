"""The engine for pure agents: a schedule as one jit-compiled scan over its episodes.

Every lifetime is a lane. Lanes play the same episode of the schedule side by side, each with its
own agent memory, start and randomness; the scan goes from episode to episode. Lanes are grouped
in chunks that fit the cache; chunks are dealt out to the devices and advance by segments of
episodes, between which the host collects records and shows progress.

A lane's results depend on (seed, lifetime) alone. Randomness is counted from them, a tick's result
does not depend on its company, and every chunk on every device runs the very same single-device
program: one sharded program for all devices is compiled differently for each number of devices,
and its results then differ in the last bit. So neither the number of lifetimes nor chunks nor
devices change a record.

A run can be left between two segments and gone on with in another process: a `Snapshot` holds it
by lifetime, whatever the chunks and devices, and a `Keeper` decides when to take one.

With a width W a lifetime plays up to W episodes of a block side by side before the agent learns
from them, each from the agent's memory as it was. Start and randomness of an episode stay those of
its number. The memory that goes on is that of the first of them.
"""

import math
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import counters
from evaluation.episodes import Kept, Outcome, learn_from, play_abreast
from evaluation.records import Records
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks, entries
from jaxsim import __version__, rng
from jaxsim.agents import Agent, Entry, never_fails

LANES = 64
"""Lanes come in multiples of this: remainder lanes of a SIMD loop round differently."""
LIFETIMES = 8
"""The same of lifetimes whose episodes fill lanes side by side: the numbers of one vector."""
CHUNK = 128
"""Lanes of one chunk: the state and the temporaries of a tick stay in the second-level cache."""
SEGMENT = 16
"""Episodes between two returns to the host, which shows progress."""
MAX_LIFETIMES = 1_000_000
MAX_CHUNK = 1 << 20
MAX_WIDTH = 1024

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """How a schedule is spread over the machine; nothing here changes a result.

    Attributes:
      chunk: lanes of a chunk, a multiple of 64; None for a good size.
      devices: number of devices; None for all.
      segment: episodes between two progress reports.
    """

    chunk: int | None = None
    devices: int | None = None
    segment: int = SEGMENT

    def check(self) -> None:
        """Check what can be checked without looking at the devices.

        Raises:
          ValueError: a chunk that is not a multiple of 64, or numbers below one.
        """
        if self.chunk is not None and (not LANES <= self.chunk <= MAX_CHUNK or self.chunk % LANES):
            raise ValueError(
                f"chunk is {self.chunk}; it must be a multiple of {LANES} up to {MAX_CHUNK}"
            )
        if self.segment < 1:
            raise ValueError(f"segment is {self.segment}; it must be at least 1")

    def layout(self, lifetimes: int, width: int = 1) -> tuple[list[jax.Device], int, int]:
        """Devices, number of chunks and lifetimes of a chunk for a number of lifetimes.

        Args:
          lifetimes: L.
          width: episodes of each that are played side by side.

        Raises:
          ValueError: as `check`, or more devices than there are.
        """
        self.check()
        available = jax.local_devices()
        number = len(available) if self.devices is None else self.devices
        if not 1 <= number <= len(available):
            raise ValueError(f"devices is {number}; it must be from 1 to {len(available)}")
        share = -(-lifetimes // number)
        grain = max(LIFETIMES, LANES // math.gcd(LANES, width))
        lanes = self.chunk or min(CHUNK, -(-share // grain) * grain)
        chunks = -(-lifetimes // lanes)
        return available[: min(number, chunks)], chunks, lanes


@dataclass(frozen=True)
class Snapshot:
    """A run of L lifetimes between two segments.

    Attributes:
      rounds: played so far; a round is up to `width` episodes of one block side by side.
      memory: agent memories in NumPy, leaves (L, ...); of typed keys, their data.
      outcome: `Outcome` of the E' episodes so far in NumPy, leaves (L, E').
    """

    rounds: int
    memory: Any
    outcome: Any


class Keeper(Protocol):
    """Keeps a run that may end before its schedule does."""

    @property
    def ends(self) -> Collection[int]:
        """Numbers of episodes after which the run must return to the host."""

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return what to go on from; None for the start.

        Args:
          start: gives the start, with leaves (L, 0) for outcomes: structure, shapes and types of
            every later snapshot.
        """

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """Look at a run after a segment; whatever is raised here ends the run.

        Args:
          episodes: that each lifetime has played so far.
          take: gives the snapshot, at the cost of a copy of all memories.
        """


def play(
    schedule: Schedule,
    agent: Agent,
    *,
    lifetimes: int,
    seed: int = 0,
    first_lifetime: int = 0,
    width: int = 1,
    options: Options | None = None,
    progress: Progress | None = None,
    memory: Any = None,
    keeper: Keeper | None = None,
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
      width: episodes of a block that a lifetime plays side by side, learning from all of them at
        once; 1 is one after the other. Records of an agent without a memory do not depend on it.
      options: chunks and devices.
      progress: called as `progress(episodes done, episodes in all)`, counted over lifetimes.
      memory: what the agent knows already, leaves (L, ...) in NumPy as in a `Snapshot`: each
        lifetime starts from its own; None for the memory that the agent starts with.
      keeper: is asked where to go on, and told after each segment.

    Returns:
      The records of all episodes.

    Raises:
      ValueError: a count or seed out of bounds, memories of another number of lifetimes, or tasks
        that do not fit together.
    """
    check_lifetimes(lifetimes, first_lifetime)
    check_width(width)
    for leaf in jax.tree.leaves(memory):
        if len(leaf) != lifetimes:
            raise ValueError(f"memory is of {len(leaf)} lifetimes; lifetimes is {lifetimes}")
    root = counters.root(seed)
    tasks = Tasks.of(schedule)
    numbers = range(first_lifetime, first_lifetime + lifetimes)
    crew = _Crew(agent, tasks, root, numbers, width, options or Options())
    columns = crew.play(schedule, progress, memory, keeper)
    fault = columns.pop("fault", None)
    metadata = {
        "agent": agent.name,
        "seed": seed,
        "lifetimes": lifetimes,
        **({"width": width} if width > 1 else {}),
        **({} if fault is None else _named_faults(agent, fault, first_lifetime)),
        "versions": {"jaxsim-novelty": __version__, "jax": jax.__version__},
    }
    return Records(schedule, columns, tasks.novelty_levels, first_lifetime, metadata)


def _named_faults(agent: Agent, fault: np.ndarray, first_lifetime: int) -> dict[str, Any]:
    """Metadata that say which lifetimes broke, with which episode on and why; {} if none did."""
    broken = [
        {
            "lifetime": first_lifetime + int(lane),
            "episode": int(np.argmax(fault[lane] > 0)),
            "reason": agent.faults[int(fault[lane].max()) - 1],
        }
        for lane in np.flatnonzero(fault.any(axis=1))
    ]
    return {"faults": broken} if broken else {}


def check_lifetimes(lifetimes: int, first_lifetime: int = 0) -> None:
    """Check numbers of lifetimes.

    Raises:
      ValueError: none, too many, or a first one that does not exist.
    """
    if not 1 <= lifetimes <= MAX_LIFETIMES:
        raise ValueError(f"lifetimes is {lifetimes}; it must be from 1 to {MAX_LIFETIMES}")
    last = MAX_LIFETIMES - lifetimes
    if not 0 <= first_lifetime <= last:
        raise ValueError(f"first lifetime is {first_lifetime}; it must be from 0 to {last}")


def check_width(width: int) -> None:
    """Check a number of episodes side by side.

    Raises:
      ValueError: none or too many.
    """
    if not 1 <= width <= MAX_WIDTH:
        raise ValueError(f"width is {width}; it must be from 1 to {MAX_WIDTH}")


class _Crew:
    """All chunks of a run, each on its device with the memories of its lanes."""

    def __init__(
        self,
        agent: Agent,
        tasks: Tasks,
        root: rng.Words,
        numbers: range,
        width: int,
        options: Options,
    ) -> None:
        self.lifetimes, self.segment, self.width = len(numbers), options.segment, width
        devices, chunks, lanes = options.layout(self.lifetimes, width)
        self.tasks, self.dt = tasks, tasks.dt
        self.homes = [devices[index % len(devices)] for index in range(chunks)]
        # The numbers of lifetimes are data: the program must not depend on it.
        tables = tuple(world.params for world in tasks.worlds)
        shared = (root, tables, jnp.uint32(numbers.stop))
        self.shared = {device: jax.device_put(shared, device) for device in devices}
        self.numbers = [
            jax.device_put(jnp.arange(lanes, dtype=jnp.uint32) + start, home)
            for start, home in zip(
                numbers.start + lanes * np.arange(chunks), self.homes, strict=True
            )
        ]
        self.begin = jax.jit(partial(_start_lifetimes, agent))
        envs = tuple(world.env for world in tasks.worlds)
        self.advance = jax.jit(partial(_play_segment, agent, envs, width), donate_argnums=2)

    def play(
        self,
        schedule: Schedule,
        progress: Progress | None,
        memory: Any = None,
        keeper: Keeper | None = None,
    ) -> dict[str, np.ndarray]:
        """Play the whole schedule; return (L, E) columns."""
        memories = [
            self.begin(self.shared[home][0], numbers)
            for home, numbers in zip(self.homes, self.numbers, strict=True)
        ]
        if memory is not None:
            memories = self._spread(memory, memories)
        at = keeper.begin(partial(self._start, memories, schedule)) if keeper else None
        if at:
            memories = self._spread(at.memory, memories)
        first, ends = at.rounds if at else 0, keeper.ends if keeper else ()
        plans = _plans(schedule, self.tasks, self.segment, self.width, first, ends)
        outcome = self._advance(memories, plans, at, schedule.num_episodes, progress, keeper)
        variant = schedule.block_variants()[schedule.episode_blocks()]
        return _columns(outcome, self.dt[variant])

    def _advance(
        self,
        memories: list[Any],
        plans: list["_Plan"],
        at: Snapshot | None,
        total: int,
        progress: Progress | None,
        keeper: Keeper | None,
    ) -> Outcome:
        """Play stretches of a schedule; return the outcome from its start on, leaves (L, E)."""
        parts = [at.outcome] if at else []
        rounds = at.rounds if at else 0
        done = parts[0].length.shape[1] if parts else 0
        compiled = self._compile(memories[0], plans[0]) if plans else {}
        for plan in plans:
            outcomes = []
            for index, home in enumerate(self.homes):
                memories[index], outcome = compiled[home](
                    self.shared[home], self.numbers[index], memories[index], plan
                )
                outcomes.append(outcome)
            parts.append(_gather(outcomes, self.lifetimes, plan.count))
            done, rounds = done + int(plan.count.sum()), rounds + int((plan.count > 0).sum())
            if progress:
                progress(done * self.lifetimes, total * self.lifetimes)
            if keeper:
                keeper.between(done, partial(self._snapshot, rounds, memories, parts))
        return _in_one(parts)

    def _start(self, memories: list[Any], schedule: Schedule) -> Snapshot:
        """Return the snapshot before the first round."""
        plan = _plans(schedule, self.tasks, self.segment, self.width)[0]
        example = self.advance.eval_shape(
            self.shared[self.homes[0]], self.numbers[0], memories[0], plan
        )[1]
        nothing = jax.tree.map(lambda leaf: np.zeros((self.lifetimes, 0), leaf.dtype), example)
        return self._snapshot(0, memories, [nothing])

    def _snapshot(self, rounds: int, memories: list[Any], parts: list[Any]) -> Snapshot:
        """Join what all chunks know and what they have played."""
        memory = jax.tree.map(
            lambda *leaves: np.concatenate([np.asarray(bare(leaf)) for leaf in leaves])[
                : self.lifetimes
            ],
            *memories,
        )
        parts[:] = [_in_one(parts)]
        return Snapshot(rounds, memory, parts[0])

    def _spread(self, memory: Any, memories: list[Any]) -> list[Any]:
        """Deal memories, leaves (L, ...), out to the chunks; padding lanes keep theirs."""
        put, spread = jax.jit(_laid_over, donate_argnums=0), []
        for index, chunk in enumerate(memories):
            lanes = self.numbers[index].size
            rows = slice(index * lanes, min((index + 1) * lanes, self.lifetimes))
            spread.append(put(chunk, jax.tree.map(lambda leaf, rows=rows: leaf[rows], memory)))
        return spread

    def _compile(self, memory: Any, plan: "_Plan") -> dict[jax.Device, Callable[..., Any]]:
        """Compile the same program for each device, side by side."""

        def build(home: jax.Device) -> Callable[..., Any]:
            example = jax.device_put((self.numbers[0], memory), home)
            return self.advance.lower(self.shared[home], *example, plan).compile()

        with ThreadPoolExecutor(len(self.shared)) as pool:
            return dict(zip(self.shared, pool.map(build, self.shared), strict=True))


def bare(leaf: jax.Array) -> jax.Array:
    """Numbers of an array, or the data of typed keys."""
    typed = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if typed else leaf


def _laid_over(memory: Any, known: Any) -> Any:
    """Memories of all lanes, of which the first take what is known, types as they were."""

    def one(leaf: jax.Array, rows: jax.Array) -> jax.Array:
        laid = bare(leaf).at[: rows.shape[0]].set(rows)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(laid, impl=jax.random.key_impl(leaf))
        return laid

    return jax.tree.map(one, memory, known)


def _gather(outcomes: list[Outcome], lifetimes: int, counts: np.ndarray) -> Outcome:
    """Join the chunks of one segment of rounds of `counts` episodes: leaves (L, E')."""
    there = np.arange(outcomes[0].length.shape[2]) < counts[:, None]

    def one(*leaves: jax.Array) -> np.ndarray:
        joined = np.concatenate([np.asarray(leaf) for leaf in leaves], axis=1)[:, :lifetimes]
        return joined.swapaxes(1, 2)[there].T

    return jax.tree.map(one, *outcomes)


def _in_one(parts: list[Any]) -> Any:
    """Join outcomes one after the other, leaves (L, E)."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Plan:
    """A stretch of the schedule for the scan, S rounds of episodes side by side; leaves (S,)."""

    episode: Any  # int32, number of the round's first episode in its lifetime
    count: Any  # int32, episodes of the round; 0 behind the end of the schedule
    world: Any  # int32, environment that it is played in
    row: Any  # int32, row of that environment's parameter table
    learning: Any  # bool
    enters: Any  # bool, whether the round is the first of its block
    entry: Entry  # the block


def _plans(
    schedule: Schedule,
    tasks: Tasks,
    segment: int,
    width: int = 1,
    start: int = 0,
    ends: Collection[int] = (),
) -> list[_Plan]:
    """Cut the schedule into rounds, and these into stretches of equal length, padded where needed.

    A round has up to `width` episodes of one block. The first stretch begins with round `start`;
    none goes on across the episodes `ends`, which begin rounds.
    """
    rounds = [
        (place, min(width, block.count - place), index)
        for index, block in enumerate(schedule.blocks)
        for place in range(0, block.count, width)
    ]
    within, counts, block = np.array(rounds, np.int32).T
    first = np.cumsum([0, *(b.count for b in schedule.blocks)])[block] + within
    learning = np.array([b.learning for b in schedule.blocks])[block]
    variant = schedule.block_variants()[block]
    world, row = tasks.world[variant], tasks.row[variant]
    entry = jax.tree.map(lambda leaf: leaf[block], entries(schedule))
    edges = np.append(np.searchsorted(first, sorted(ends)), len(rounds))
    plans = []
    while start < len(rounds):
        stop = min(start + segment, int(edges[edges > start][0]))
        index = np.arange(start, start + segment)
        at = np.minimum(index, len(rounds) - 1)
        count = np.where(index < stop, counts[at], 0).astype(np.int32)
        where = (first[at].astype(np.int32), count, world[at], row[at], learning[at])
        here = jax.tree.map(lambda leaf, at=at: leaf[at], entry)
        plans.append(_Plan(*where, within[at] == 0, here))
        start = stop
    return plans


def _columns(outcome: Any, dt: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the records; `dt` is (E,), s, the length of a step in each episode."""
    faults = {} if outcome.fault is None else {"fault": outcome.fault}
    return faults | {
        "reward": outcome.reward,
        "performance": outcome.performance,
        "length": outcome.length,
        "complete": outcome.complete,
        "predicted_level": outcome.prediction.level,
        "predicted_probability": outcome.prediction.probability,
        "threshold": outcome.prediction.threshold,
        "seconds": (outcome.length * dt).astype(np.float32),
    }


def _start_lifetimes(agent: Agent, root: rng.Words, numbers: jax.Array) -> Any:
    """Memory of every lane at the start of its lifetime."""
    memory = jax.vmap(agent.init)(rng.to_key(rng.fold(root, numbers, counters.AGENT)))
    return jax.vmap(agent.assign)(memory, numbers)


def _play_segment(
    agent: Agent,
    envs: tuple[Any, ...],
    width: int,
    shared: Any,
    numbers: jax.Array,
    memory: Any,
    plan: _Plan,
) -> tuple[Any, Outcome]:
    """Scan the rounds of one segment; outcome leaves are (S, L, W)."""
    root, tables, stop = shared
    lanes = rng.fold(root, numbers, counters.EPISODE)
    worlds = tuple(zip(envs, tables, strict=True))
    step = partial(_next_round, agent, worlds, width, lanes, numbers < stop)
    return jax.lax.scan(step, memory, plan)


def _next_round(
    agent: Agent,
    worlds: tuple[tuple[Any, Any], ...],
    width: int,
    lanes: rng.Words,
    active: jax.Array,
    memory: Any,
    plan: _Plan,
) -> tuple[Any, Outcome]:
    """Play the next episodes of every lane side by side, then learn if the schedule says so.

    `plan` holds the scalars of one round here. All lanes play in the same world, so that of
    several worlds only that one is computed. Outcome leaves are (L, W).
    """
    places = jnp.arange(width)
    there = places < plan.count
    steps = max(env.max_steps for env, _ in worlds)

    def play_in(env: Any, table: Any, memory: Any) -> tuple[Any, Outcome, Kept | None]:
        params = jax.tree.map(lambda leaf: leaf[plan.row], table)
        apart = jax.tree.map(lambda word: jnp.repeat(word, width, axis=0), lanes)
        key = rng.fold(apart, jnp.tile(plan.episode + places, active.size))
        playing = (active[:, None] & there).ravel()
        memory, outcome, kept = play_abreast(agent, env, params, key, playing, memory, width, steps)
        outcome = jax.tree.map(lambda leaf: leaf.reshape(active.size, width), outcome)
        return memory, outcome, kept

    def run(memory: Any) -> tuple[Any, Outcome]:
        def enter(memory: Any) -> Any:
            entering = jax.vmap(agent.enter, in_axes=(0, None), axis_size=active.size)
            return entering(memory, plan.entry)

        memory = jax.lax.cond(plan.enters, enter, lambda m: m, memory)
        fault = None if agent.fault is never_fails else jax.vmap(agent.fault)(memory)
        # Of one branch, `switch` is the branch itself.
        branches = [partial(play_in, *world) for world in worlds]
        memory, outcome, kept = jax.lax.switch(plan.world, branches, memory)
        learn = partial(_learn, agent, outcome, there, kept)
        memory = jax.lax.cond(plan.learning, learn, lambda m: m, memory)
        if fault is not None:
            fault = jnp.broadcast_to(fault[:, None], outcome.length.shape)
            outcome = replace(outcome, fault=fault, complete=outcome.complete & (fault == 0))
        return memory, outcome

    def skip(memory: Any) -> tuple[Any, Outcome]:
        shapes = jax.eval_shape(run, memory)[1]
        return memory, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    return jax.lax.cond(plan.count > 0, run, skip, memory)


def _learn(agent: Agent, outcome: Outcome, there: jax.Array, kept: Kept | None, memory: Any) -> Any:
    """Give each lane its episodes of a round; in the last of a block some may not be there."""
    width = len(there)
    played = None if width == 1 else jnp.broadcast_to(there, outcome.reward.shape)
    return learn_from(agent, outcome, played, kept, memory)
