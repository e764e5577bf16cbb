"""Makes environments and tables of traced parameters from the variants of a schedule.

All tasks of a schedule share one observation and one action space, CartPole3D's, into which
`jaxsim.embedding` puts the worlds of two dimensions; environments of gymnax share vectors of the
length of their longest. So one agent can play all of them.
"""

import json
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.schedule import Schedule, Variant
from jaxsim import registry
from jaxsim.agents import Entry
from jaxsim.embedding import SLOTS, embed
from jaxsim.env import Env
from jaxsim.env_spec import GYMNAX
from jaxsim.pytrees import Observation, Params
from jaxsim.worlds.cartpole3d.original.hints import LEVELS_PER_GROUP


class EnvTable(NamedTuple):
    """One environment with the parameters of all variants that are played in it.

    Attributes:
      env: the environment; all tables have the same observations and actions.
      params: its parameters, every leaf (R,), one entry per variant.
    """

    env: Any
    params: Params


_latest: list[tuple[Schedule, "Tasks"]] = []
"""Cache of the last schedule and its tasks: a command first checks a schedule, then plays it."""


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
        for cached, tasks in tuple(_latest):  # a copy: other threads build tasks as well
            if cached is schedule:
                return tasks
        pairs = [registry.make(task, dict(values)) for task, values in schedule.variants]
        envs, world = _shared([env for env, _ in pairs])
        members = [np.flatnonzero(world == index) for index in range(len(envs))]
        row, levels = np.zeros((2, len(pairs)), np.int32)
        worlds = []
        for env, indices in zip(envs, members, strict=True):
            row[indices] = np.arange(len(indices))
            rows = [pairs[index][1] for index in indices]
            table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
            worlds.append(EnvTable(env, table))
            # Levels 50, 100 and 200 are the catalogue's unchanged worlds.
            levels[indices] = np.asarray(table.novelty_level).astype(np.int32) % LEVELS_PER_GROUP
        _check_spaces(worlds, [schedule.variants[indices[0]][0] for indices in members])
        tasks = cls(tuple(worlds), world, row, levels)
        _latest[:] = [(schedule, tasks)]
        return tasks

    def env(self, index: int) -> Any:
        """Return the environment of one variant."""
        return self.worlds[self.world[index]].env

    def variant(self, index: int) -> tuple[Any, Params]:
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
    """Arguments of `Agent.enter` for each block, leaves (B,)."""
    blocks = schedule.blocks
    phases = [(block.phase, block.mode) for block in blocks]
    return Entry(
        block=np.arange(len(blocks), dtype=np.int32),
        phase=np.array([block.phase for block in blocks], np.int32),
        variant=schedule.block_variants(),
        identity=np.array([_hash(block.variant) for block in blocks], np.int32),
        learning=np.array([block.learning for block in blocks]),
        new_phase=np.array([i == 0 or phases[i] != phases[i - 1] for i in range(len(blocks))]),
    )


def _hash(variant: Variant) -> int:
    """Hash of a task and its parameters, 31 bits."""
    return zlib.crc32(json.dumps(variant, sort_keys=True).encode()) >> 1


def _shared(needed: Sequence[Env]) -> tuple[list[Env], np.ndarray]:
    """Merge environments that one can cover, and give all of them the same spaces.

    Returns:
      (environments, index into them for each of `needed`, int32).
    """
    envs: list[Any] = []
    indices = []
    for env in needed:
        for index, other in enumerate(envs):
            common = _covering(other, env)
            if common is not None:
                envs[index] = common
                indices.append(index)
                break
        else:
            indices.append(len(envs))
            envs.append(env)
    if len(envs) > 1 and all(env.name.startswith(GYMNAX) for env in envs):
        from jaxsim.adapters import from_gymnax  # here, because gymnax is an extra

        return list(from_gymnax.alike(envs)), np.array(indices, np.int32)
    configs = [getattr(env, "config", None) for env in envs]
    slots = max([SLOTS, *(getattr(config, "max_blocks", 0) for config in configs)])
    return [embed(env, slots) for env in envs], np.array(indices, np.int32)


def _covering(env: Any, other: Env) -> Env | None:
    """Return an environment that covers both; None if there is none."""
    if env == other:
        return env
    try:
        return env.covering(other)
    except (AttributeError, ValueError):
        return None


def _check_spaces(worlds: Sequence[EnvTable], names: Sequence[str]) -> None:
    """Refuse worlds whose observations or actions differ.

    Args:
      worlds: environments with their parameters.
      names: a task of each, for the error.
    """
    first, *spaces = (_space(world) for world in worlds) if len(worlds) > 1 else [None]
    for name, space in zip(names[1:], spaces, strict=True):
        if space != first:
            raise ValueError(
                f"task {name!r} has other observations or actions than {names[0]!r}, so that one "
                "agent cannot play both; play them as separate schedules (pictures, sensors/image, "
                "must be the same in all episodes)"
            )


def _space(world: EnvTable) -> Hashable:
    """Number of actions, and structure, shapes and types of observations, of a world."""
    params = jax.tree.map(lambda leaf: leaf[0], world.params)

    def observe(key: jax.Array) -> Observation:
        return world.env.observe(world.env.start(key, params))

    leaves, structure = jax.tree.flatten(jax.eval_shape(observe, jax.random.key(0)))
    return world.env.num_actions, structure, [(leaf.shape, leaf.dtype) for leaf in leaves]
