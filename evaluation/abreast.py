"""The engine for agents on the host, many lifetimes in parallel.

Each lane has its own episode; a mask says which lanes take a step. Lane i plays the episodes of
lifetime `first_lifetime` + i as a `Session` does, tick for tick: start and step are those of
`jaxsim.stepper`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import counters, rng
from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.lanes.crew import MULTIPLE
from jaxsim.lanes.state import where
from jaxsim.lanes.worlds import of_lanes
from jaxsim.pytrees import Leaf, Observation, Params, State, Step
from jaxsim.stepper import EpisodeKeys, StepCarry, advanced, drawn


class Status(NamedTuple):
    """Status of the episodes of all lanes; leaves (P,)."""

    observation: Observation
    score: Leaf  # float32, sum of rewards
    tick: Leaf  # int32, steps taken; -1 before the hidden first one
    terminated: Leaf
    over: Leaf
    nonfinite: Leaf
    performance: Leaf  # float32


class _Episodes(NamedTuple):
    """Episodes in play; leaves (P,)."""

    world: Leaf  # int32
    params: Sequence[Params]  # one a world
    carry: StepCarry  # its state is one a world; only that of the lane's world is valid
    status: Status


class Abreast:
    """Lifetimes of a schedule, played in parallel.

    Args:
      schedule: schedule of the lifetimes.
      lanes: number of lifetimes, L.
      seed: root of all randomness, from 0 to 2^32 - 1.
      first_lifetime: number of the first lane's lifetime.

    Attributes:
      tasks: environments and parameters of the schedule's variants.
      filled: P, lanes padded to a multiple of `MULTIPLE`; batches of such sizes round alike.
      keys: counter keys of the lifetimes, (P,).

    Raises:
      ValueError: numbers out of bounds, or an unknown task or parameter.
    """

    def __init__(
        self, schedule: Schedule, *, lanes: int, seed: int = 0, first_lifetime: int = 0
    ) -> None:
        check_whole("lanes", lanes, 1)
        last = 2**32 - lanes
        check_whole("first lifetime", first_lifetime, 0, last)
        self.tasks, self.filled = Tasks.of(schedule), -(-lanes // MULTIPLE) * MULTIPLE
        self.envs = tuple(world.env for world in self.tasks.worlds)
        numbers = jnp.uint32(first_lifetime) + jnp.arange(self.filled, dtype=jnp.uint32)
        self.keys = rng.fold(counters.root(seed), numbers)
        self._episodes: _Episodes | None = None

    def open(self, variant: np.ndarray, number: np.ndarray, fresh: np.ndarray) -> None:
        """Begin episodes, each at its first observation; the first call must begin all lanes.

        Args:
          variant: (P,) index into the variants of the schedule.
          number: (P,) int32, number of the episode in its lifetime.
          fresh: (P,) bool, mask of the lanes that begin.
        """
        world, row = self.tasks.world[variant], self.tasks.row[variant]
        tables = [world.params for world in self.tasks.worlds]
        opened = _open(self.envs, tables, self.keys, number, world, row)
        previous = self._episodes
        self._episodes = opened if previous is None else _where(fresh, opened, previous)
        self.step(np.zeros(self.filled, np.int32), fresh)

    def step(self, actions: np.ndarray, moving: np.ndarray) -> None:
        """Take a step in some of the lanes.

        Args:
          actions: (P,) int32, codes of each lane's environment.
          moving: (P,) bool, mask of these lanes.
        """
        assert self._episodes is not None, "call open first"
        self._episodes = _step(self.envs, self._episodes, actions, moving)

    @property
    def world(self) -> np.ndarray:
        """Index of the environment of every lane, (P,) int32."""
        assert self._episodes is not None, "call open first"
        return np.asarray(self._episodes.world)

    def status(self, *, observation: bool = True) -> Status:
        """Status of the episodes, NumPy leaves; `observation` is None if it is not requested."""
        assert self._episodes is not None, "call open first"
        status = self._episodes.status
        host: Status = jax.device_get(status if observation else status._replace(observation=None))
        return host


@partial(jax.jit, static_argnames="envs")
def _open(
    envs: tuple[Env, ...],
    tables: Sequence[Params],
    lifetimes: rng.Words,
    number: Leaf,
    world: Leaf,
    row: Leaf,
) -> _Episodes:
    """Episodes of all lanes before their hidden first step."""
    params = []
    for index, table in enumerate(tables):
        place = jnp.where(world == index, row, 0)
        params.append(jax.tree.map(lambda leaf, place=place: leaf[place], table))
    keys = EpisodeKeys.of(rng.fold(lifetimes, counters.EPISODE, number))
    carry = drawn(partial(_started, envs), keys, params)
    views = [env.observe(state) for env, state in zip(envs, carry.state, strict=True)]
    zero, no = jnp.zeros(world.shape), jnp.zeros(world.shape, bool)
    tick = jnp.full(world.shape, -1, jnp.int32)
    status = Status(of_lanes(world, views), zero, tick, no, no, no, zero)
    return _Episodes(world, params, carry, status)


@partial(jax.jit, static_argnames="envs")
def _step(envs: tuple[Env, ...], episodes: _Episodes, actions: Leaf, moving: Leaf) -> _Episodes:
    """Step the lanes that move. The first step of an episode is hidden and does not count."""
    world, before = episodes.world, episodes.status
    carry, outcome = advanced(
        partial(_stepped, envs, world), episodes.carry, actions, episodes.params
    )
    tick = before.tick + 1
    status = Status(
        outcome.observation,
        jnp.where(tick == 0, 0.0, before.score + outcome.reward),
        tick,
        outcome.terminated,
        outcome.terminated | outcome.truncated,
        outcome.nonfinite,
        outcome.performance,
    )
    carry, status = where(moving, (carry, status), (episodes.carry, before))
    return episodes._replace(carry=carry, status=status)


def _started(envs: tuple[Env, ...], key: jax.Array, params: Sequence[Params]) -> tuple[State, ...]:
    """Starts of every world in all lanes."""
    return tuple(env.start(key, values) for env, values in zip(envs, params, strict=True))


def _stepped(
    envs: tuple[Env, ...],
    world: Leaf,
    key: jax.Array,
    states: tuple[State, ...],
    action: Leaf,
    params: Sequence[Params],
) -> tuple[Step, Leaf]:
    """A step of every world in all lanes, with the results of each lane's world."""
    after, results = [], []
    for env, state, values in zip(envs, states, params, strict=True):
        observation, state, *flags, info = env.step(key, state, action, values)
        after.append(state)
        results.append((observation, flags, {name: info[name] for name in _INFO}))
    observation, flags, info = of_lanes(world, results)
    return (observation, tuple(after), *flags, info), jnp.ones(world.shape, bool)


_INFO = "performance", "nonfinite"
"""Fields of `info` that every environment has."""

_where = jax.jit(where)
