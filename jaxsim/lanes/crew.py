"""Distributes lifetimes over the cores or accelerators of a machine.

On a processor there is one device and one executable, which a thread for each core calls; an
accelerator takes all lanes of its lifetimes at once. Parts of the lifetimes have equal sizes, so
one executable plays them all.
"""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import jax
import numpy as np
from jax.tree_util import PyTreeDef

from jaxsim import backend, counters, program_store, rng
from jaxsim.agents.base import Agent, Memory, NoveltyPrediction, learn_nothing, never_fails
from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.lanes.kept import KeptProgram
from jaxsim.lanes.lists import Batch, Rounds, Rows
from jaxsim.lanes.program import Program, Sizes
from jaxsim.lanes.work import scores_by_length, work_of
from jaxsim.pytrees import Leaf, Params, State, Tree
from jaxsim.worlds.world import World

Shapes = tuple[tuple[tuple[int, ...], np.dtype], ...]
"""Shape and type of each leaf of a batch."""


MULTIPLE = 64
"""Lanes come in multiples of this: remainder lanes of a SIMD loop round differently."""
LIFETIMES = 8
"""Lifetimes are padded to a multiple of this if several of their episodes run in parallel; it
equals the SIMD width."""
LEARNING_LANES = 2048
"""Most lanes of a part while agents learn from the steps, which are stored for all lanes."""
MAX_CHUNK = 1 << 20
MAX_THREADS = 256
MAX_EXECUTABLES = 14
"""Most compiled programs of a process. One of level 200 takes some 2,200 of the 65,530 memory
mappings that Linux grants a process; a process that needs more dies."""

CALLBACK_FAILED = "CpuCallback error"
"""What JAX says of Python code that raises when a compiled program calls it."""


@dataclass(frozen=True)
class Spread:
    """How lifetimes are spread over the machine; nothing here changes a result.

    Attributes:
      chunk: lanes that advance together, a multiple of 64; None for the backend's size.
      threads: parts of the lifetimes that are played at the same time; None for one for each core,
        or for each accelerator.
    """

    chunk: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        """Check both.

        Raises:
          ValueError: a chunk that is not a multiple of 64, or a number out of bounds.
        """
        chunk, threads = self.chunk, self.threads
        if chunk is not None and (not MULTIPLE <= chunk <= MAX_CHUNK or chunk % MULTIPLE):
            raise ValueError(
                f"chunk is {chunk}; it must be a multiple of {MULTIPLE} up to {MAX_CHUNK}"
            )
        if threads is not None:
            check_whole("threads", threads, 1, MAX_THREADS)

    @property
    def number(self) -> int:
        """Number of threads."""
        usual = backend.cores() if backend.on_cpu() else len(jax.local_devices())
        return self.threads or usual

    @property
    def compilers(self) -> int:
        """Number of programs that are compiled at the same time, also for accelerators."""
        return self.threads or backend.cores()

    def homes(self) -> list[jax.Device]:
        """Devices of the threads."""
        devices = jax.local_devices()
        if backend.on_cpu():
            return devices[:1] * self.number
        return [devices[index % len(devices)] for index in range(self.number)]


class Crew:
    """Lifetimes with their memories, in parts of equal size.

    Args:
      agent: pure agent.
      envs: environments, see `jaxsim.env`.
      tables: parameters of each, leaves (V,) or ().
      root: counter key of all randomness.
      numbers: of the lifetimes, (P,).
      width: most episodes of a round, W.
      spread: how they are spread.
      predicts: whether predictions of novelty are recorded.
      names: whether the levels that the agent names are recorded.
      independent: whether the episodes of a list are independent; their numbers are then those of
        the run, and `numbers` only distinguish lists.
      assigned: numbers for `Agent.assign`, (P,); those of the lifetimes if None.
    """

    def __init__(
        self,
        agent: Agent,
        envs: Sequence[Env | World],
        tables: Sequence[Params],
        root: rng.Words,
        numbers: Leaf,
        *,
        width: int = 1,
        spread: Spread | None = None,
        predicts: bool = True,
        names: bool = False,
        independent: bool = False,
        assigned: Leaf | None = None,
    ) -> None:
        self.independent = independent
        self.works = tuple(map(work_of, envs))
        exact = all(getattr(work, "exact_sensors", False) for work in self.works)
        self.agent = agent.exact if exact and agent.exact else agent
        self.root, self.width = root, width
        self.tables = tuple(map(_shared_where_equal, tables))
        self.number = np.asarray(numbers, np.uint32)
        self._assigned = self.number if assigned is None else np.asarray(assigned, np.uint32)
        self.predicts, self.names = predicts, names
        spread = spread or Spread()
        homes = spread.homes()
        self.sizes, self.share = self._layout(spread, len(homes))
        count = -(-self.number.size // self.share)
        self.homes = [homes[index % len(homes)] for index in range(count)]
        self.threads = min(len(homes), count)
        self._memories: list[Memory] | None = None

    def _layout(self, spread: Spread, parts: int) -> tuple[Sizes, int]:
        """Sizes of the program, and number of lifetimes of a part."""
        layouts = [getattr(work, "layout", backend.layout()) for work in self.works]
        grain = max(LIFETIMES, MULTIPLE // math.gcd(MULTIPLE, self.width))
        learns = self.agent.trace is not None and self.agent.learn is not learn_nothing
        usual = min(layout.chunk for layout in layouts)
        most = min(layout.lanes for layout in layouts)
        # Products of matrices round by the shapes of all lanes, so learners have one shape.
        chunk = MULTIPLE if learns else spread.chunk or usual
        if learns:
            most = min(most, LEARNING_LANES)
        chunk = max(1, chunk // (grain * self.width)) * grain
        # Similar numbers of lifetimes share a program, and padding costs next to nothing.
        share = power_of_two(-(-self.number.size // parts), grain)
        share = max(grain, min(share, most // self.width // chunk * chunk))
        chunk = min(chunk, share)
        share = -(-share // chunk) * chunk
        turns = min(layout.turns for layout in layouts)
        turns = grain if learns else max(grain, turns // self.width // grain * grain)
        ticks = 1 if self.agent.costly else min(layout.ticks for layout in layouts)
        sizes = Sizes(chunk * self.width, ticks, turns, layouts[0].groups)
        return sizes, share

    def play(self, rounds: Rounds) -> Rows:
        """Play lists, continuing after the last ones.

        Args:
          rounds: leaves (R, P) or (R, 1).

        Returns:
          NumPy leaves (R, P, W).

        Raises:
          ValueError: Python code that the agent calls by a callback of JAX raises.
        """
        number = np.shape(rounds.count)[0]
        program, memories = self.program(number), self.memories()
        self.compile(rounds)

        def play(index: int) -> Rows:
            batch = self.batch(rounds, index)
            result = executable(program, self.homes[index], *_signature(batch))(batch)
            memories[index] = result.memory
            return jax.tree.map(np.asarray, result.rows)

        with _callbacks_of(self.agent):
            parts = backend.in_threads(play, self.threads, range(len(self.homes)))

        def joined(*leaves: np.ndarray) -> np.ndarray:
            apart = [leaf.reshape(number, self.share, self.width) for leaf in leaves]
            return np.concatenate(apart, axis=1)[:, : self.number.size]

        rows: Rows = jax.tree.map(joined, *parts)
        return rows if rows.reward is not None else self._scored(rows, rounds.world)

    def compile(self, rounds: Rounds) -> None:
        """Compile the program that plays such lists; once for all threads of a processor."""
        program = self.program(np.shape(rounds.count)[0])
        first = self.batch(rounds, 0)
        for home in dict.fromkeys(self.homes):
            executable(program, home, *_signature(first))

    def program(self, number: int) -> Program:
        """The program that plays lists of a number of rounds."""
        return Program(
            self.agent,
            self.works,
            self.width,
            number,
            self.predicts,
            self.names,
            self.sizes,
            self.independent,
        )

    def batch(self, rounds: Rounds, index: int) -> Batch:
        """Input of the program for a part of the lifetimes, on the part's device."""
        lists = jax.tree.map(lambda leaf: self._listed(leaf, index), rounds)
        numbers = self._dealt(self.number, index)
        real = np.arange(self.share) + index * self.share < self.number.size
        batch = self.root, numbers, real, self.tables, lists, self.memories()[index]
        return Batch(*jax.device_put(batch, self.homes[index]))

    def _scored(self, rows: Rows, world: Leaf) -> Rows:
        """Add the rewards and performances that follow from the numbers of steps."""
        worlds = np.broadcast_to(np.asarray(world)[..., None], rows.length.shape)
        reward, performance = np.zeros((2, *rows.length.shape), np.float32)
        for index, work in enumerate(self.works):
            mask = worlds == index
            sums, shares = scores_by_length(work)
            reward[mask] = sums[rows.length[mask]]
            performance[mask] = shares[rows.length[mask]]
        return replace(rows, reward=reward, performance=performance)

    def renumber(self, numbers: Leaf) -> None:
        """Give the lifetimes other numbers, (P,)."""
        self.number = self._assigned = np.asarray(numbers, np.uint32)

    def no_rows(self) -> Rows:
        """Rows of empty lists, NumPy leaves (0, P, W), with the types of all rows."""
        shape = 0, self.number.size, self.width
        integer: Leaf = np.zeros(shape, np.int32)
        number: Leaf = np.zeros(shape, np.float32)
        prediction = NoveltyPrediction(integer, number, number)
        return Rows(
            length=integer,
            ending=integer,
            reward=number,
            performance=number,
            prediction=prediction if self.predicts else None,
            named=integer if self.names else None,
            fault=None if self.agent.fault is never_fails else integer,
        )

    def memories(self) -> list[Memory]:
        """Memories of the parts, on their devices, leaves (share, ...)."""
        if self._memories is None:
            start = _start_of(self.agent)
            memories = []
            with _callbacks_of(self.agent):
                for index, home in enumerate(self.homes):
                    numbers = [self._dealt(n, index) for n in (self.number, self._assigned)]
                    memories.append(start(*jax.device_put((self.root, *numbers), home)))
            self._memories = memories
        return self._memories

    def memory(self) -> Memory:
        """Memories of the lifetimes in NumPy, leaves (P, ...); of typed keys, their words."""

        def joined(*leaves: jax.Array) -> np.ndarray:
            return np.concatenate([np.asarray(rng.words_of(leaf)) for leaf in leaves])[
                : self.number.size
            ]

        return jax.tree.map(joined, *self.memories())

    def remember(self, memory: Memory) -> None:
        """Set the memories of the lifetimes, in the form that `memory` returns.

        Raises:
          ValueError: they are of another form, as those of another agent.
        """
        memories = self.memories()
        if _form(memory) != _form(jax.eval_shape(partial(jax.tree.map, rng.words_of), memories[0])):
            raise ValueError(f"memory is of another agent; it must be one of {self.agent.name}")
        for index, part in enumerate(memories):
            first = index * self.share
            rows = jax.tree.map(lambda leaf, first=first: leaf[first : first + self.share], memory)
            memories[index] = _laid_over(part, rows)

    def _dealt(self, values: np.ndarray, index: int) -> np.ndarray:
        """Values of the lifetimes of a part, (..., P) to (..., share), padded with zeros."""
        part = values[..., index * self.share : (index + 1) * self.share]
        padding = self.share - part.shape[-1]
        return np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, padding)])

    def _listed(self, leaf: Leaf, index: int) -> np.ndarray:
        """Leaf of the lists of a part, (R, P, ...) to (R, share, ...); (R, 1, ...) stays."""
        leaf = np.asarray(leaf)
        if leaf.shape[1] == 1:
            return leaf
        return np.moveaxis(self._dealt(np.moveaxis(leaf, 1, -1), index), -1, 1)


@contextmanager
def _callbacks_of(agent: Agent) -> Iterator[None]:
    """Raise a ValueError that names the agent if Python code that it calls by a callback raises."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if CALLBACK_FAILED not in str(error):
            raise
        reason = _raised_in_callback(str(error))
        raise ValueError(f"a callback of agent {agent.name!r} raised {reason}") from error


def _raised_in_callback(message: str) -> str:
    """Type and message of an exception, which end the traceback that JAX's message is."""
    lines = message.splitlines()
    last = max((at for at, line in enumerate(lines) if line.startswith("  File ")), default=-1)
    return " ".join(" ".join(lines[last + 1 :]).split())


def power_of_two(number: int, grain: int = 1) -> int:
    """The smallest product of `grain` and a power of two that is at least `number`."""
    return grain * (1 << (-(-number // grain) - 1).bit_length())


def _shared_where_equal(table: Params) -> Params:
    """Make those parameters of a table scalars that are equal in all rows.

    A step then computes with them once for all lanes.
    """

    def one(leaf: Leaf) -> Leaf:
        leaf = np.asarray(leaf)
        return leaf if leaf.ndim == 0 or (leaf != leaf[0]).any() else leaf[0]

    return jax.tree.map(one, table)


@lru_cache(maxsize=32)
def _start_of(agent: Agent) -> Callable[[rng.Words, jax.Array, jax.Array], Memory]:
    """Return the compiled function that makes memories before the first episodes."""

    def start(root: rng.Words, numbers: jax.Array, assigned: jax.Array) -> State:
        keys = rng.to_key(rng.fold(root, numbers, counters.AGENT))
        return jax.vmap(agent.assign)(jax.vmap(agent.init)(keys), assigned)

    return jax.jit(start)


def _signature(batch: Batch) -> tuple[PyTreeDef, Shapes]:
    """Structure, shapes and types of a batch."""
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def lowered(
    program: Program, home: jax.Device, structure: PyTreeDef, shapes: Shapes
) -> jax.stages.Lowered:
    """A program lowered for a device and batches of some shapes."""
    place = jax.sharding.SingleDeviceSharding(home)
    leaves = [jax.ShapeDtypeStruct(*shape, sharding=place) for shape in shapes]
    batch = jax.tree.unflatten(structure, leaves)
    key = program_store.key_of(program, jax.tree.unflatten(structure, shapes))
    with _uncollected():
        play = program if key is None else KeptProgram(program, key, batch)
        return jax.jit(play).lower(batch)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection: a trace makes millions of objects, and little garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@lru_cache(maxsize=MAX_EXECUTABLES)
def executable(
    program: Program, home: jax.Device, structure: PyTreeDef, shapes: Shapes
) -> jax.stages.Compiled:
    """A compiled program for a device and batches of some shapes."""
    return backend.compiled(lowered(program, home, structure, shapes))


def _form(memory: Memory) -> tuple[PyTreeDef, Shapes]:
    """Structure of memories of lifetimes, and shape and type of each leaf of one of them."""
    leaves, structure = jax.tree.flatten(memory)
    return structure, tuple((leaf.shape[1:], leaf.dtype) for leaf in leaves)


@jax.jit
def _laid_over(memory: Memory, values: Tree) -> Memory:
    """Overwrite the memories of the first lanes; types stay as they are."""

    def one(leaf: jax.Array, rows: jax.Array) -> jax.Array:
        laid = rng.words_of(leaf).at[: rows.shape[0]].set(rows)
        if rng.is_typed(leaf):
            return jax.random.wrap_key_data(laid, impl=jax.random.key_impl(leaf))
        return laid

    return jax.tree.map(one, memory, values)
