"""From the variants of a schedule to environments with tables of traced parameters.

All tasks of a schedule share one observation and one action space, CartPole3D's, into which
`jaxsim.embedding` puts the worlds of two dimensions; environments of gymnax share vectors of the
length of their longest. An agent meets whatever task comes next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.schedule import Schedule
from jaxsim import registry
from jaxsim.agents import Entry
from jaxsim.embedding import SLOTS, embed
from jaxsim.worlds.cartpole3d.original.hints import LEVELS_PER_GROUP


class EnvTable(NamedTuple):
    """One compiled environment and all that is played in it.

    Attributes:
      env: the environment, with the observation and the actions of all others.
      params: its parameters, every leaf (R,), one entry a variant that is played in it.
    """

    env: Any
    params: Any


_latest: list[tuple[Schedule, "Tasks"]] = []
"""The schedule that was built last, with its tasks: a command checks one, and then plays it."""


@dataclass(frozen=True)
class Tasks:
    """What a schedule plays; P variants in W worlds.

    Attributes:
      worlds: environments, as few as can play all variants.
      world: (P,) int32, index of the world of each variant.
      row: (P,) int32, place of each variant in the parameters of its world.
      novelty_levels: (P,) int32, level of the novelty catalogue, 0 for none.
    """

    worlds: tuple[EnvTable, ...]
    world: np.ndarray
    row: np.ndarray
    novelty_levels: np.ndarray

    @classmethod
    def of(cls, schedule: Schedule) -> "Tasks":
        """Build environments and parameters for every variant of a schedule.

        Raises:
          ValueError: an unknown task or parameter, or tasks whose observations or actions differ.
        """
        for known, tasks in tuple(_latest):  # of one moment: other threads build as well
            if known is schedule:
                return tasks
        made = [registry.make(task, dict(values)) for task, values in schedule.variants]
        envs, world = _shared([env for env, _ in made])
        members = [np.flatnonzero(world == index) for index in range(len(envs))]
        row, levels = np.zeros((2, len(made)), np.int32)
        worlds = []
        for env, inside in zip(envs, members, strict=True):
            row[inside] = np.arange(len(inside))
            rows = [made[index][1] for index in inside]
            table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
            worlds.append(EnvTable(env, table))
            # Levels 50, 100 and 200 are the catalogue's unchanged worlds.
            levels[inside] = np.asarray(table.novelty_level).astype(np.int32) % LEVELS_PER_GROUP
        _check_spaces(worlds, [schedule.variants[inside[0]][0] for inside in members])
        tasks = cls(tuple(worlds), world, row, levels)
        _latest[:] = [(schedule, tasks)]
        return tasks

    def env(self, index: int) -> Any:
        """Return the environment of one variant."""
        return self.worlds[self.world[index]].env

    def variant(self, index: int) -> tuple[Any, Any]:
        """Return environment and parameters, scalar leaves, of one variant."""
        env, table = self.worlds[self.world[index]]
        row = int(self.row[index])
        return env, jax.tree.map(lambda leaf: leaf[row], table)

    @property
    def dt(self) -> np.ndarray:
        """Simulated time of a step of each variant, s, (P,) float32."""
        steps = np.zeros(len(self.world), np.float32)
        for index, (env, params) in enumerate(self.worlds):
            steps[self.world == index] = env.dt(params)
        return steps


def entries(schedule: Schedule) -> Entry:
    """What an agent is told as each block begins, leaves (B,)."""
    blocks = schedule.blocks
    phases = [(block.phase, block.mode) for block in blocks]
    return Entry(
        block=np.arange(len(blocks), dtype=np.int32),
        phase=np.array([block.phase for block in blocks], np.int32),
        variant=schedule.block_variants(),
        learning=np.array([block.learning for block in blocks]),
        new_phase=np.array([i == 0 or phases[i] != phases[i - 1] for i in range(len(blocks))]),
    )


def _shared(needed: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """Find as few environments as can stand in for those that are needed, behind one space.

    Returns:
      (environments, index of the one for each that is needed, int32).
    """
    envs: list[Any] = []
    found = []
    for env in needed:
        for index, other in enumerate(envs):
            both = _covering(other, env)
            if both is not None:
                envs[index] = both
                found.append(index)
                break
        else:
            found.append(len(envs))
            envs.append(env)
    if len(envs) > 1 and all(env.name.startswith(registry.GYMNAX) for env in envs):
        from jaxsim.adapters import from_gymnax  # here, because gymnax is an extra

        return list(from_gymnax.alike(envs)), np.array(found, np.int32)
    configs = [getattr(env, "config", None) for env in envs]
    slots = max([SLOTS, *(getattr(config, "max_blocks", 0) for config in configs)])
    return [embed(env, slots) for env in envs], np.array(found, np.int32)


def _covering(env: Any, other: Any) -> Any:
    """Return the environment that plays what either plays; None if there is none."""
    if env == other:
        return env
    try:
        return env.covering(other)
    except (AttributeError, ValueError):
        return None


def _check_spaces(worlds: Sequence[EnvTable], names: Sequence[str]) -> None:
    """Refuse worlds that no agent can tell its actions to in one and the same way.

    Args:
      worlds: environments with their parameters.
      names: a task of each, for the error.
    """
    first, *others = (_space(world) for world in worlds) if len(worlds) > 1 else [None]
    for name, space in zip(names[1:], others, strict=True):
        if space != first:
            raise ValueError(
                f"task {name!r} has other observations or actions than {names[0]!r}, so that one "
                "agent cannot play both; play them as separate schedules (pictures, sensors/image, "
                "must be the same in all episodes)"
            )


def _space(world: EnvTable) -> Any:
    """What an agent sees of a world: number of actions, structure and types of observations."""
    params = jax.tree.map(lambda leaf: leaf[0], world.params)

    def observe(key: jax.Array) -> Any:
        return world.env.observe(world.env.start(key, params))

    leaves, structure = jax.tree.flatten(jax.eval_shape(observe, jax.random.key(0)))
    return world.env.num_actions, structure, [(leaf.shape, leaf.dtype) for leaf in leaves]
