"""Whole episodes as fast as the machine allows.

    result = jaxsim.rollout(*jaxsim.make("CartPole3D-v0"), agents.get("pd"), episodes=65536)

Most lanes have no contact in most ticks. A round takes every lane a few ticks further in two
phases. In the first, lanes advance in chunks that fit the cache by steps that know no contacts
between bodies; a lane for which that may be wrong stays where it is. In the second, those lanes are
packed densely and catch up with full steps. Between rounds, lanes whose episodes are over get new
ones, so that no tick is spent on what has ended.

An episode's result depends on its number and the seed alone, and on neither of the sizes here: all
its randomness is counted from them, and what it does in a round depends on no other lane.
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

LANES = 16_384
"""Most lanes of a device: the longest episodes at the end then cost little."""
CHUNK = 1024
"""Lanes of a chunk: the state and the temporaries of a tick stay in the cache."""
TICKS = 8
"""Ticks of a round."""
GROUP = 128
"""Lanes that catch up, or start, together."""
MULTIPLE = 64
"""Lanes come in multiples of this: remainder lanes of a SIMD loop round differently."""
MAX_EPISODES = 1 << 28

# What an episode's randomness is for; the first counter below its key.
_START, _INIT, _BEGIN, _ACT, _STEP = range(5)


@dataclass(frozen=True)
class RolloutOptions:
    """How episodes are spread over the machine; nothing here changes a result.

    Attributes:
      lanes: episodes that a device plays side by side, a multiple of `chunk`; None for a good size.
      chunk: lanes of a chunk, a multiple of 64; None for a good size.
      ticks: of a round; None for a good number.
      devices: number of devices; None for all.
    """

    lanes: int | None = None
    chunk: int | None = None
    ticks: int | None = None
    devices: int | None = None

    def sizes(self, episodes: int) -> tuple[int, int, int]:
        """(lanes, chunk, ticks) for a number of episodes on one device.

        Raises:
          ValueError: a number that cannot work.
        """
        fitting = -(-episodes // MULTIPLE) * MULTIPLE
        chunk = self.chunk or min(CHUNK, fitting)
        if chunk < MULTIPLE or chunk % MULTIPLE:
            raise ValueError(f"chunk is {chunk}; it must be a multiple of {MULTIPLE}")
        lanes = self.lanes or min(LANES, -(-episodes // chunk) * chunk)
        if lanes < chunk or lanes % chunk:
            raise ValueError(f"lanes is {lanes}; it must be a multiple of chunk, {chunk}")
        ticks = TICKS if self.ticks is None else self.ticks
        if ticks < 1:
            raise ValueError(f"ticks is {ticks}; it must be at least 1")
        return lanes, chunk, ticks

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
    env: Any,
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
      agent: pure agent; it does not learn here.
      episodes: number of episodes, E.
      seed: root of all randomness, from 0 to 2^32 - 1.
      variant: (E,) which row of the parameters each episode plays.
      options: sizes and devices.

    Returns:
      NumPy arrays (E,) of each episode's result, the same for any options.

    Raises:
      ValueError: a count, seed, size or shape that does not fit.
    """
    if not 1 <= episodes <= MAX_EPISODES:
        raise ValueError(f"episodes is {episodes}; it must be from 1 to {MAX_EPISODES}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; it must be from 0 to {2**32 - 1}")
    table, variant = _rows(params, variant, episodes)
    options = options or RolloutOptions()
    homes = options.homes()
    share = -(-episodes // len(homes))
    lanes, chunk, ticks = options.sizes(share)
    program = _program(env, agent, (lanes, chunk, ticks))
    root = rng.words(jax.random.key(seed))

    def play(index: int) -> Totals:
        first = index * share
        number = max(min(share, episodes - first), 0)
        own = np.zeros(share, np.int32)
        own[:number] = variant[first : first + number]
        arguments = (root, np.int32(first), np.int32(number), own, table)
        result = program(*jax.device_put(arguments, homes[index]))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:number], result)

    with ThreadPoolExecutor(len(homes)) as pool:
        parts = list(pool.map(play, range(len(homes))))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


@lru_cache(maxsize=32)
def _program(env: Any, agent: Agent, sizes: tuple[int, int, int]) -> Callable[..., Totals]:
    """The compiled program of one environment, agent and set of sizes."""
    return jax.jit(partial(_play, env, agent, sizes))


def _rows(params: Any, variant: Any, episodes: int) -> tuple[Any, np.ndarray]:
    """Parameters as a table of rows, and the row of each episode."""
    shapes = {jnp.shape(leaf) for leaf in jax.tree.leaves(params)}
    if variant is None:
        if shapes != {()}:
            raise ValueError("parameters must be scalars unless variant says who plays which row")
        table = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
        return table, np.zeros(episodes, np.int32)
    rows = np.asarray(variant)
    if rows.shape != (episodes,) or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"variant must be ({episodes},) integers")
    sizes = {shape[0] for shape in shapes if len(shape) == 1}
    if len(sizes) != 1 or len(shapes) != 1:
        raise ValueError("with variant all parameters must have shape (V,)")
    if rows.min() < 0 or rows.max() >= min(sizes):
        raise ValueError(f"variant holds rows beyond the {min(sizes)} of the parameters")
    return params, rows.astype(np.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Lanes:
    """Episodes on their way; leaves (L, ...)."""

    number: Any  # int32 of the episode, or -1
    row: Any  # int32 of the parameters
    tick: Any  # uint32, 0 before the hidden first step
    owed: Any  # int32, ticks still to go in this round
    over: Any  # bool
    state: Any
    memory: Any
    totals: Totals


Step = Callable[..., tuple[Any, Any]]


def _play(
    env: Any,
    agent: Agent,
    sizes: tuple[int, int, int],
    root: rng.Words,
    first: jax.Array,
    number: jax.Array,
    variant: jax.Array,
    table: Any,
) -> Totals:
    """Play `number` episodes, whose numbers count from `first`."""
    width, chunk, ticks = sizes
    done = _nothing(variant.shape[0])
    lanes = _empty(env, agent, width, table)
    advance = partial(_tick, env, agent, root, first, table)

    def one_round(carry: Any) -> Any:
        lanes, done, begun = carry
        done = _collect(done, lanes)
        lanes, begun = _refill(env, agent, root, first, table, variant, number, lanes, begun)
        lanes = _with(lanes, owed=jnp.where(lanes.over, 0, ticks))
        lanes = _in_chunks(chunk, ticks, partial(advance, env.step_free), lanes)
        lanes = _catch_up(partial(advance, env.step_full), lanes)
        return lanes, done, begun

    def unfinished(carry: Any) -> jax.Array:
        lanes, _, begun = carry
        return (begun < number) | jnp.any(~lanes.over)

    lanes, done, _ = jax.lax.while_loop(unfinished, one_round, (lanes, done, jnp.int32(0)))
    return _collect(done, lanes)


def _nothing(count: int) -> Totals:
    zero = jnp.zeros(count)
    return Totals(zero.astype(jnp.int32), zero, zero, zero > 0, zero == 0)


def _empty(env: Any, agent: Agent, width: int, table: Any) -> _Lanes:
    """Lanes without episodes."""
    row = jnp.zeros(width, jnp.int32)
    keys = jax.random.split(jax.random.key(0), width)
    shapes = jax.eval_shape(
        lambda: (
            env.start(keys, jax.tree.map(lambda leaf: leaf[row], table)),
            jax.vmap(agent.init)(keys),
        )
    )
    state, memory = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    over = jnp.ones(width, bool)
    return _Lanes(row - 1, row, row.astype(jnp.uint32), row, over, state, memory, _nothing(width))


def _with(lanes: _Lanes, **fields: Any) -> _Lanes:
    return _Lanes(**(vars(lanes) | fields))


def _collect(done: Totals, lanes: _Lanes) -> Totals:
    """Write down what has ended."""
    place = jnp.where(lanes.over & (lanes.number >= 0), lanes.number, done.length.shape[0])

    def put(into: jax.Array, own: jax.Array) -> jax.Array:
        return into.at[place].set(own, mode="drop")

    return jax.tree.map(put, done, lanes.totals)


def _refill(
    env: Any,
    agent: Agent,
    root: rng.Words,
    first: jax.Array,
    table: Any,
    variant: jax.Array,
    number: jax.Array,
    lanes: _Lanes,
    begun: jax.Array,
) -> tuple[_Lanes, jax.Array]:
    """Give new episodes to the lanes that are over, as long as there are any."""
    rank = begun + jnp.cumsum(lanes.over, dtype=jnp.int32) - 1
    fresh = lanes.over & (rank < number)
    own = jnp.where(fresh, rank, jnp.where(lanes.over, -1, lanes.number))
    lanes = _with(lanes, number=own, row=variant[jnp.maximum(own, 0)])

    def start(chosen: _Lanes) -> _Lanes:
        key = rng.fold(root, first + chosen.number)
        params = jax.tree.map(lambda leaf: leaf[chosen.row], table)
        memory = jax.vmap(agent.init)(rng.to_key(rng.fold(key, _INIT)))
        memory = jax.vmap(agent.begin)(memory, rng.to_key(rng.fold(key, _BEGIN)))
        zero = jnp.zeros_like(chosen.number)
        return _Lanes(
            chosen.number,
            chosen.row,
            zero.astype(jnp.uint32),
            zero,
            zero > 0,
            env.start(rng.to_key(rng.fold(key, _START)), params),
            memory,
            _nothing(zero.shape[0]),
        )

    return _densely(start, fresh, lanes), begun + jnp.sum(fresh, dtype=jnp.int32)


def _in_chunks(
    chunk: int, ticks: int, advance: Callable[[_Lanes], _Lanes], lanes: _Lanes
) -> _Lanes:
    """Take the lanes some ticks further, chunk by chunk; a lane that cannot be sure waits."""

    def several(part: _Lanes) -> _Lanes:
        return jax.lax.fori_loop(0, ticks, lambda _, p: advance(p), part)

    split = jax.tree.map(lambda leaf: leaf.reshape(-1, chunk, *leaf.shape[1:]), lanes)
    played = jax.lax.map(several, split)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), played)


def _catch_up(advance: Callable[[_Lanes], _Lanes], lanes: _Lanes) -> _Lanes:
    """Take the lanes that have waited to the end of the round."""

    def behind(part: _Lanes) -> jax.Array:
        return ~part.over & (part.owed > 0)

    def finish(part: _Lanes) -> _Lanes:
        return jax.lax.while_loop(lambda p: jnp.any(behind(p)), advance, part)

    return _densely(finish, behind(lanes), lanes)


def _densely(change: Callable[[_Lanes], _Lanes], chosen: jax.Array, lanes: _Lanes) -> _Lanes:
    """Change some of the lanes, packed in groups."""
    width = chosen.shape[0]
    size = min(GROUP, width)
    count = jnp.sum(chosen, dtype=jnp.int32)
    # Places of a group without a lane point past the end: gathers clamp, scatters drop.
    listed = jnp.nonzero(chosen, size=width + size, fill_value=width)[0]

    def group(carry: tuple[jax.Array, _Lanes]) -> tuple[jax.Array, _Lanes]:
        begin, lanes = carry
        index = jax.lax.dynamic_slice_in_dim(listed, begin, size)
        packed = jax.tree.map(lambda leaf: leaf.at[index].get(mode="clip"), lanes)
        packed = _with(packed, over=packed.over | (index >= width))
        changed = change(packed)

        def put(into: jax.Array, own: jax.Array) -> jax.Array:
            return into.at[index].set(own, mode="drop", unique_indices=True)

        return begin + size, jax.tree.map(put, lanes, changed)

    return jax.lax.while_loop(lambda c: c[0] < count, group, (jnp.int32(0), lanes))[1]


def _tick(
    env: Any,
    agent: Agent,
    root: rng.Words,
    first: jax.Array,
    table: Any,
    step: Callable[..., Any],
    lanes: _Lanes,
) -> _Lanes:
    """One tick of every lane that owes one and for which `step` is sure."""
    key = rng.fold(root, first + jnp.maximum(lanes.number, 0))
    params = jax.tree.map(lambda leaf: leaf[lanes.row] if leaf.shape[0] > 1 else leaf[0], table)
    act_key = rng.to_key(rng.fold(key, _ACT, lanes.tick))
    action, _, thought = jax.vmap(agent.act)(lanes.memory, env.observe(lanes.state), act_key)
    step_key = rng.to_key(rng.fold(key, _STEP, lanes.tick))
    result, sure = step(step_key, lanes.state, action, params)
    _, state, reward, terminated, truncated, info = result
    go = sure & ~lanes.over & (lanes.owed > 0)
    # The hidden first step plays itself; what the agent did in it does not count.
    counts = go & (lanes.tick > 0)
    old = lanes.totals
    totals = Totals(
        old.length + 1,
        info["performance"].astype(old.performance.dtype),
        old.reward + reward.astype(old.reward.dtype),
        terminated,
        ~info["nonfinite"],
    )
    return _Lanes(
        lanes.number,
        lanes.row,
        lanes.tick + go.astype(jnp.uint32),
        lanes.owed - go.astype(jnp.int32),
        lanes.over | (go & (terminated | truncated)),
        _where(go, state, lanes.state),
        _where(counts, thought, lanes.memory),
        _where(counts, totals, old),
    )


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select lane by lane, whatever follows the lane axis."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(select, yes, no)
