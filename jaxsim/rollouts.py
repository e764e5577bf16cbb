"""Whole episodes as fast as the machine allows.

    result = jaxsim.rollout(*jaxsim.make("CartPole3D-v0"), agents.get("pd"), episodes=65536)

An episode's result depends on its number and the seed alone, and not on how it is played.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import rng
from jaxsim.agents.base import Agent
from jaxsim.backend import Layout
from jaxsim.rounds import Batch, Results, Sizes, play
from jaxsim.worlds.base import NONFINITE, TERMINATED, World

MULTIPLE = 64
"""Lanes come in multiples of this: remainder lanes of a SIMD loop round differently."""
MAX_EPISODES = 1 << 28


@dataclass(frozen=True)
class RolloutOptions:
    """How episodes are spread over the machine; nothing here changes a result.

    Attributes:
      lanes: episodes that a device plays side by side, a multiple of `chunk`; None for as many as
        suit the backend, or fewer for fewer episodes.
      chunk: lanes that advance together, a multiple of 64; None for as many as suit the backend.
      ticks: of a round, after which lanes that need more than the cheapest step are looked after;
        None for as many as suit the backend.
      devices: number of devices; None for all.
    """

    lanes: int | None = None
    chunk: int | None = None
    ticks: int | None = None
    devices: int | None = None

    def sizes(self, episodes: int, usual: Layout) -> Sizes:
        """The sizes for a number of episodes on one device.

        Args:
          episodes: of the device.
          usual: what suits the environment, `World.layout`.

        Raises:
          ValueError: a number that cannot work.
        """
        for name, number in (("lanes", self.lanes), ("chunk", self.chunk)):
            if number is not None and (number < MULTIPLE or number % MULTIPLE):
                raise ValueError(f"{name} is {number}; it must be a multiple of {MULTIPLE}")
        fitting = -(-episodes // MULTIPLE) * MULTIPLE
        chunk = self.chunk or min(usual.chunk, self.lanes or fitting)
        lanes = self.lanes or chunk * min(-(-episodes // chunk), max(1, usual.lanes // chunk))
        if lanes % chunk:
            raise ValueError(f"lanes is {lanes}; it must be a multiple of chunk, {chunk}")
        ticks = usual.ticks if self.ticks is None else self.ticks
        if ticks < 1:
            raise ValueError(f"ticks is {ticks}; it must be at least 1")
        return Sizes(lanes, chunk, ticks, usual.packing)

    def homes(self) -> list[jax.Device]:
        """The devices.

        Raises:
          ValueError: more than there are, or none.
        """
        available = jax.local_devices()
        number = len(available) if self.devices is None else self.devices
        if not 1 <= number <= len(available):
            raise ValueError(f"devices is {number}; it must be from 1 to {len(available)}")
        return available[:number]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Totals:
    """Results of episodes; leaves (E,)."""

    length: Any  # int32, steps
    performance: Any  # in [0, 1]
    reward: Any  # sum over the steps
    terminated: Any  # bool; False where a limit ended the episode
    complete: Any  # bool; False where a number was not finite


def rollout(
    env: World,
    params: Any,
    agent: Agent,
    episodes: int,
    *,
    seed: int = 0,
    variant: Any = None,
    options: RolloutOptions | None = None,
) -> Totals:
    """Play whole episodes with a pure agent, each with a memory of its own.

    Args:
      env: environment, see `jaxsim.env`.
      params: physics; scalar leaves, or (V,) together with `variant`.
      agent: pure agent; it does not learn here, and nobody asks what it says of novelty.
      episodes: number of episodes, E.
      seed: root of all randomness, from 0 to 2^32 - 1.
      variant: (E,) which row of the parameters each episode plays.
      options: sizes and devices.

    Returns:
      NumPy arrays (E,) of each episode's result, the same for any options.

    Raises:
      ValueError: a count, seed, size or shape that does not fit, or an environment whose scores do
        not follow from the number of steps, as a wrapped one.
    """
    if not hasattr(env, "score"):
        raise ValueError(_no_score(env))
    if not 1 <= episodes <= MAX_EPISODES:
        raise ValueError(f"episodes is {episodes}; it must be from 1 to {MAX_EPISODES}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; it must be from 0 to {2**32 - 1}")
    table, rows = _table(params, variant, episodes)
    options = options or RolloutOptions()
    homes = options.homes()
    share = -(-episodes // len(homes))
    parts, part = env.parts(table)
    # The program holds an agent several times: a detector that nobody asks would take minutes.
    program = program_of(parts, agent.acting or agent, options.sizes(share, env.layout))
    # Calls for similar numbers of episodes share a program.
    room = 1 << (share - 1).bit_length()
    root = rng.words(jax.random.key(seed))

    def one_share(index: int) -> Results:
        first = index * share
        own = rows[first : first + share]
        int32: Any = np.int32  # a jitted function takes NumPy's numbers and arrays as well
        row: Any = np.zeros(room, int32)
        row[: own.size] = own
        batch = Batch(root, int32(first), int32(own.size), row, table, part)
        results = program(jax.device_put(batch, homes[index]))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: own.size], results)

    if len(homes) == 1:  # in this thread, which may have switches of jax of its own
        shares = [one_share(0)]
    else:
        with ThreadPoolExecutor(len(homes)) as pool:
            shares = list(pool.map(one_share, range(len(homes))))
    length, ending = (
        np.concatenate([getattr(one, field) for one in shares]) for field in ("length", "ending")
    )
    reward, performance = (np.asarray(score) for score in env.score(jnp.asarray(length)))
    return Totals(length, performance, reward, ending == TERMINATED, ending != NONFINITE)


def _no_score(env: Any) -> str:
    """What to do with an environment whose scores do not follow from the number of steps."""
    inside, path = env, "env"
    while not hasattr(inside, "score") and hasattr(inside, "env"):
        inside, path = inside.env, f"{path}.env"
    if inside is env or not hasattr(inside, "score"):
        return f"{env.name} has no method `score`; play a schedule with evaluation.scanner"
    return (
        f"a {type(env).__name__} cannot be rolled out: pass {path}, the {type(inside).__name__} "
        "inside. A rollout starts and ends episodes itself, and its agents get the observation as "
        "it is; an agent for vectors calls jaxsim.spaces.flatten"
    )


@lru_cache(maxsize=32)
def program_of(parts: tuple[World, ...], agent: Agent, sizes: Sizes) -> Callable[[Batch], Results]:
    """The compiled program of one environment with its parts, agent and set of sizes."""
    return jax.jit(partial(play, parts, agent, sizes))


def _table(params: Any, variant: Any, episodes: int) -> tuple[Any, np.ndarray]:
    """Parameters as a table of rows, and the row of each episode.

    A parameter that is the same in all rows is a scalar: the step then computes with it once for
    all lanes.
    """
    params = jax.tree.map(np.asarray, params)
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    if variant is None:
        if shapes != {()}:
            raise ValueError("parameters must be scalars unless variant says who plays which row")
        return params, np.zeros(episodes, np.int32)
    rows = np.asarray(variant)
    if rows.shape != (episodes,) or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"variant must be ({episodes},) integers")
    if len(shapes) != 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError("with variant all parameters must have shape (V,)")
    number = min(shapes)[0]
    if rows.min() < 0 or rows.max() >= number:
        raise ValueError(f"variant holds rows beyond the {number} of the parameters")
    alike = jax.tree.map(lambda leaf: leaf[0] if (leaf == leaf[0]).all() else leaf, params)
    return alike, rows.astype(np.int32)
