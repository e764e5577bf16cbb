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

With a width W a lifetime plays up to W episodes of a block side by side before the agent learns
from them, each from the agent's memory as it was. Start and randomness of an episode stay those of
its number. The memory that goes on is that of the first of them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import counters
from evaluation.records import Records
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import __version__, rng
from jaxsim.agents import Agent, Episodes, NoveltyPrediction

LANES = 64
"""Lanes come in multiples of this: remainder lanes of a SIMD loop round differently."""
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

    def layout(self, lifetimes: int) -> tuple[list[jax.Device], int, int]:
        """Devices, number of chunks and lanes of a chunk for a number of lifetimes.

        Raises:
          ValueError: as `check`, or more devices than there are.
        """
        self.check()
        available = jax.local_devices()
        number = len(available) if self.devices is None else self.devices
        if not 1 <= number <= len(available):
            raise ValueError(f"devices is {number}; it must be from 1 to {len(available)}")
        share = -(-lifetimes // number)
        lanes = self.chunk or min(CHUNK, -(-share // LANES) * LANES)
        chunks = -(-lifetimes // lanes)
        return available[: min(number, chunks)], chunks, lanes


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

    Returns:
      The records of all episodes.

    Raises:
      ValueError: a count or seed out of bounds, or tasks that do not fit together.
    """
    check_lifetimes(lifetimes, first_lifetime)
    check_width(width)
    root = counters.root(seed)
    tasks = Tasks.of(schedule)
    numbers = range(first_lifetime, first_lifetime + lifetimes)
    crew = _Crew(agent, tasks, root, numbers, width, options or Options())
    columns = crew.play(schedule, progress)
    metadata = {
        "agent": agent.name,
        "seed": seed,
        "lifetimes": lifetimes,
        **({"width": width} if width > 1 else {}),
        "versions": {"jaxsim-novelty": __version__, "jax": jax.__version__},
    }
    return Records(schedule, columns, tasks.novelty_levels, first_lifetime, metadata)


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
        devices, chunks, lanes = options.layout(self.lifetimes)
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

    def play(self, schedule: Schedule, progress: Progress | None) -> dict[str, np.ndarray]:
        """Play the whole schedule; return (L, E) columns."""
        total, done = schedule.num_episodes, 0
        memories = [
            self.begin(self.shared[home][0], numbers)
            for home, numbers in zip(self.homes, self.numbers, strict=True)
        ]
        plans = _plans(schedule, self.tasks, self.segment, self.width)
        compiled = self._compile(memories[0], plans[0])
        parts = []
        for plan in plans:
            outcomes = []
            for index, home in enumerate(self.homes):
                memories[index], outcome = compiled[home](
                    self.shared[home], self.numbers[index], memories[index], plan
                )
                outcomes.append(outcome)
            done += int(plan.count.sum())
            parts.append(_gather(outcomes, self.lifetimes))
            if progress:
                progress(done * self.lifetimes, total * self.lifetimes)
        counts = np.concatenate([plan.count for plan in plans])
        there = np.arange(self.width) < counts[:, None]
        outcome = jax.tree.map(lambda *leaves: _by_episode(np.concatenate(leaves), there), *parts)
        variant = schedule.block_variants()[schedule.episode_blocks()]
        return _columns(outcome, self.dt[variant])

    def _compile(self, memory: Any, plan: "_Plan") -> dict[jax.Device, Callable[..., Any]]:
        """Compile the same program for each device, side by side."""

        def build(home: jax.Device) -> Callable[..., Any]:
            example = jax.device_put((self.numbers[0], memory), home)
            return self.advance.lower(self.shared[home], *example, plan).compile()

        with ThreadPoolExecutor(len(self.shared)) as pool:
            return dict(zip(self.shared, pool.map(build, self.shared), strict=True))


def _by_episode(leaf: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(L, E) from (R, L, W), of the episodes of each round that are there, (R, W)."""
    return leaf.swapaxes(1, 2)[there].T


def _gather(outcomes: list["Outcome"], lifetimes: int) -> "Outcome":
    """Join the chunks of one segment: leaves (S, L, W)."""
    return jax.tree.map(
        lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves], axis=1)[
            :, :lifetimes
        ],
        *outcomes,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Plan:
    """A stretch of the schedule for the scan, S rounds of episodes side by side; leaves (S,)."""

    episode: Any  # int32, number of the round's first episode in its lifetime
    count: Any  # int32, episodes of the round; 0 behind the end of the schedule
    world: Any  # int32, environment that it is played in
    row: Any  # int32, row of that environment's parameter table
    learning: Any  # bool


def _plans(schedule: Schedule, tasks: Tasks, segment: int, width: int = 1) -> list[_Plan]:
    """Cut the schedule into rounds, and these into stretches of equal length; the last is padded.

    A round has up to `width` episodes of one block.
    """
    rounds = [
        (start, min(width, block.count - start), index)
        for index, block in enumerate(schedule.blocks)
        for start in range(0, block.count, width)
    ]
    within, counts, block = np.array(rounds, np.int32).T
    first = np.cumsum([0, *(b.count for b in schedule.blocks)])[block] + within
    learning = np.array([b.learning for b in schedule.blocks])[block]
    variant = schedule.block_variants()[block]
    world, row = tasks.world[variant], tasks.row[variant]
    plans = []
    for start in range(0, len(rounds), segment):
        index = np.arange(start, start + segment)
        at = np.minimum(index, len(rounds) - 1)
        count = np.where(index < len(rounds), counts[at], 0).astype(np.int32)
        plans.append(_Plan(first[at].astype(np.int32), count, world[at], row[at], learning[at]))
    return plans


def _columns(outcome: Any, dt: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the records; `dt` is (E,), s, the length of a step in each episode."""
    return {
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
    return jax.vmap(agent.init)(rng.to_key(rng.fold(root, numbers, counters.AGENT)))


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

    def play_in(env: Any, table: Any, memory: Any) -> tuple[Any, Outcome]:
        params = jax.tree.map(lambda leaf: leaf[plan.row], table)
        apart = jax.tree.map(lambda word: jnp.repeat(word, width, axis=0), lanes)
        key = rng.fold(apart, jnp.tile(plan.episode + places, active.size))
        copies = jax.tree.map(lambda leaf: jnp.repeat(leaf, width, axis=0), memory)
        playing = (active[:, None] & there).ravel()
        copies, outcome = play_episode(agent, env, params, key, playing, copies)
        memory = jax.tree.map(lambda leaf: leaf[::width], copies)
        return memory, jax.tree.map(lambda leaf: leaf.reshape(active.size, width), outcome)

    def run(memory: Any) -> tuple[Any, Outcome]:
        # Of one branch, `switch` is the branch itself.
        branches = [partial(play_in, *world) for world in worlds]
        memory, outcome = jax.lax.switch(plan.world, branches, memory)
        learn = partial(_learn, agent, outcome, there)
        memory = jax.lax.cond(plan.learning, learn, lambda m: m, memory)
        return memory, outcome

    def skip(memory: Any) -> tuple[Any, Outcome]:
        shapes = jax.eval_shape(run, memory)[1]
        return memory, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    return jax.lax.cond(plan.count > 0, run, skip, memory)


def _learn(agent: Agent, outcome: Outcome, there: jax.Array, memory: Any) -> Any:
    """Give each lane its episodes of a round; in the last of a block some may not be there."""
    totals = (outcome.reward, outcome.performance, outcome.length, outcome.terminated)
    if len(there) == 1:
        return jax.vmap(agent.learn)(memory, Episodes(*totals))
    played = jnp.broadcast_to(there, outcome.reward.shape)
    return jax.vmap(agent.learn)(memory, Episodes(*totals, played))


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
    state = env.start(rng.to_key(rng.fold(key, counters.RESET)), params)
    memory = jax.vmap(agent.begin)(memory, rng.to_key(rng.fold(key, counters.BEGIN)))
    outcome = _nothing_yet(active)

    def step(carry: Any) -> Any:
        tick, over, observation, state, memory, outcome = carry
        act_key = rng.to_key(rng.fold(key, counters.ACT, tick))
        action, said, thought = jax.vmap(agent.act)(memory, observation, act_key)
        step_key = rng.to_key(rng.fold(key, counters.STEP, tick))
        observation, state, reward, terminated, truncated, info = env.step(
            step_key, state, action, params
        )
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
        memory = _where(idle, memory, thought)
        complete = jnp.where(over, outcome.complete, played.complete)
        outcome = _where(idle, outcome, jax.tree.map(_cast, played, outcome))
        outcome = replace(outcome, complete=complete)
        return tick + 1, over | terminated | truncated, observation, state, memory, outcome

    def unfinished(carry: Any) -> jax.Array:
        return jnp.any(~carry[1])

    carry = (jnp.uint32(0), ~active, env.observe(state), state, memory, outcome)
    *_, memory, outcome = jax.lax.while_loop(unfinished, step, carry)
    return memory, outcome


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
