"""Hunt for numbers that are not finite, at every level.

    python -m benchmarks.fuzz --episodes 100000 --settings 20000 --seed 0 --out docs/fuzz.json

Four hunts: whole episodes of uniformly random actions, at every level and with parameters at and
between their bounds; states in which bodies coincide, touch or
fly as fast as they can; and states of which one number is NaN, infinite or enormous. A number
that leaves `step` without being finite and without `info["nonfinite"]` is a leak, and so is a flag
that does not end the episode. The exit code is 1 if anything leaks.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import bounds
from benchmarks.catalogue import CaseGroup, groups
from benchmarks.output import add_out, put_json
from jaxsim import rng
from jaxsim.pytrees import Params, State, Tree
from jaxsim.worlds.cartpole3d import CartPole3D, state_from_arrays
from jaxsim.worlds.cartpole3d.types import UNROLLED
from jaxsim.worlds.world import all_finite

CHUNK = 256  # lanes; the state and the temporaries of a tick stay in the cache
FOLLOWED = 3  # steps that a made-up state is followed for
WARM_UP = 5  # steps before a number of a state is spoilt; few episodes are over by then
FEWER = 10
SPOILT = (np.nan, np.inf, -np.inf, 1e30, -1e30, 3e38)

# What an episode's randomness is for; the first counter below its key.
_START, _STEP, _ACT = 0, 1, 2


class Tally(NamedTuple):
    """Observations of a lane; leaves (L,)."""

    steps: jax.Array  # int32
    flagged: jax.Array  # bool, whether a step had `info["nonfinite"]`
    leaked: jax.Array  # bool, whether a step broke the contract


@dataclass(frozen=True)
class Hunt:
    """Totals of one hunt in one group.

    Attributes:
      tries: episodes or states.
      steps: environment steps.
      flagged: tries that ended with the flag.
      leaks: what leaked, by name.
    """

    tries: int
    steps: int
    flagged: int
    leaks: tuple[str, ...]

    @classmethod
    def of(cls, names: list[str], totals: Tally) -> "Hunt":
        """Totals of tries with these names."""
        leaks = tuple(names[lane] for lane in np.flatnonzero(totals.leaked))
        return cls(len(names), int(totals.steps.sum()), int(totals.flagged.sum()), leaks)


class GroupPrograms:
    """The compiled programs of one group, for `CHUNK` lanes."""

    def __init__(self, group: CaseGroup) -> None:
        self.env, self.names = group.env, list(group.params)
        self.table = jax.tree.map(lambda *leaves: np.stack(leaves), *group.params.values())
        self._start, self._play = jax.jit(group.env.start), jax.jit(partial(_play, group.env))

    @property
    def programs(self) -> int:
        """Number of programs that were compiled to play."""
        return int(self._play._cache_size())

    def params(self, case: np.ndarray) -> Any:
        """Parameters of each lane's case."""
        return jax.tree.map(lambda leaf: leaf[case], self.table)

    def begin(self, key: rng.Words, case: np.ndarray, limit: int) -> tuple[Tally, Any, Any]:
        """Play new episodes for so many steps at most, the hidden one included."""
        params = self.params(case)
        start = self._start(rng.to_key(rng.fold(key, _START)), params)
        return self._play(start, key, params, np.uint32(limit), np.False_)

    def follow(self, state: State, key: rng.Words, case: np.ndarray) -> Tally:
        """Take a few steps from given states."""
        return self._play(state, key, self.params(case), np.uint32(FOLLOWED), np.True_)[0]

    def episodes(self, count: int, seed: int) -> Hunt:
        """Play random actions; numbers of episodes of all cases differ by one at most."""
        root = rng.words(jax.random.key(seed))
        case = np.sort(np.arange(count) % len(self.names))
        number = np.concatenate([np.arange(n) for n in np.bincount(case)])
        limit = self.env.max_steps + 1
        parts = [
            self.begin(rng.fold(root, case[at], number[at]), case[at], limit)[0]
            for at in _chunks(count)
        ]
        names = [f"{self.names[c]}, episode {n}" for c, n in zip(case, number, strict=True)]
        return Hunt.of(names, _join(parts, count))

    def states(self, case: np.ndarray, names: list[str], state: State) -> Hunt:
        """Follow given states, leaves (S, ...), each under the parameters of a case, (S,)."""
        root = rng.words(jax.random.key(0))
        parts = []
        for at in _chunks(len(case)):
            lanes = jax.tree.map(lambda leaf, at=at: leaf[at], state)
            parts.append(self.follow(lanes, rng.fold(root, at), case[at]))
        labels = [f"{self.names[c]}, {name}" for c, name in zip(case, names, strict=True)]
        return Hunt.of(labels, _join(parts, len(case)))

    def crowded(self) -> Hunt:
        """Follow the states of `crowds` at every level."""
        names, arrays = crowds(self.env.config.max_blocks)
        state = jax.device_get(state_from_arrays(arrays, self.env.config))
        index = np.tile(np.arange(len(names)), len(self.names))
        case = np.repeat(np.arange(len(self.names)), len(names))
        state = jax.tree.map(lambda leaf: leaf[index], state)
        return self.states(case, [names[i] for i in index], state)

    def spoilt(self, seed: int) -> Hunt:
        """Spoil each number of a state in turn, at every level."""
        lanes = np.arange(CHUNK)
        case = lanes % len(self.names)
        key = rng.fold(rng.words(jax.random.key(seed)), lanes)
        _, over, state = jax.device_get(self.begin(key, case, WARM_UP))
        cases, names, states = [], [], []
        for index in range(len(self.names)):
            lane = int(np.flatnonzero((case == index) & ~over)[0])
            for name, spoilt in _spoil(jax.tree.map(lambda leaf, i=lane: leaf[i], state)):
                cases.append(index)
                names.append(name)
                states.append(spoilt)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
        return self.states(np.array(cases), names, stacked)


def _chunks(count: int) -> Iterator[np.ndarray]:
    """Indices in chunks of `CHUNK`; the last one is filled up with the last index."""
    for start in range(0, count, CHUNK):
        yield np.minimum(np.arange(start, start + CHUNK), count - 1)


def _join(parts: list[Tally], count: int) -> Tally:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *jax.device_get(parts))


def _play(
    env: Any, state: State, key: rng.Words, params: Params, limit: jax.Array, stay: jax.Array
) -> tuple[Tally, jax.Array, Any]:
    """Take random actions and check all results.

    Args:
      env: the environment.
      state: given states, leaves (L, ...).
      key: (L,) counter keys.
      params: physics, leaves (L,).
      limit: () uint32, most steps to take.
      stay: () bool, whether to check ended episodes as well, until the limit: a number of a given
        state may stay in it.

    Returns:
      `Tally`, the mask of lanes that are over, and the last states.
    """

    def step(carry: Tree) -> Tree:
        tick, over, state, tally = carry
        bits = rng.bits(rng.fold(key, _ACT), tick)
        action = (bits % jnp.uint32(env.num_actions)).astype(jnp.int32)
        result = env.step(rng.to_key(rng.fold(key, _STEP, tick)), state, action, params)
        *_, terminated, truncated, info = result
        ended, flagged = terminated | truncated, info["nonfinite"]
        leaked = ~(all_finite(result, 1) | flagged) | (flagged & ~ended)
        looked = ~over | stay
        tally = Tally(
            tally.steps + looked,
            tally.flagged | (looked & flagged),
            tally.leaked | (looked & leaked),
        )
        return tick + 1, over | ended, result[1], tally

    def unfinished(carry: Tree) -> jax.Array:
        tick, over, *_ = carry
        return (tick < limit) & jnp.any(~over | stay)

    nothing = jnp.zeros(key.a.shape, bool)
    tally = Tally(nothing.astype(jnp.int32), nothing, nothing)
    _, over, state, tally = jax.lax.while_loop(
        unfinished, step, (jnp.uint32(0), nothing, state, tally)
    )
    return tally, over, state


def _spoil(state: State) -> Iterator[tuple[str, Any]]:
    """One lane's state with each floating-point number replaced in turn; (description, state)."""
    paths = jax.tree_util.tree_leaves_with_path(state)
    leaves, tree = [np.asarray(leaf) for _, leaf in paths], jax.tree.structure(state)
    for index, (path, _) in enumerate(paths):
        if not np.issubdtype(leaves[index].dtype, np.floating):
            continue
        for row, value in itertools.product(np.ndindex(leaves[index].shape), SPOILT):
            spoilt = leaves[index].copy()
            spoilt[row] = value
            changed = [*leaves[:index], spoilt, *leaves[index + 1 :]]
            yield f"{value:g} in {jax.tree_util.keystr(path)}", jax.tree.unflatten(tree, changed)


# --- crowded states of CartPole3D ---------------------------------------------------------------

_CART = (0.5, -0.25)  # m
_FLAT = np.sqrt(0.5)
_PLACES = {
    "in the air": (1.0, 1.0, 5.0),
    "in the cart": (*_CART, 0.2),
    "at the cart's rim": (_CART[0] + 0.5, _CART[1], 0.2),
    "on the cart": (*_CART, 0.8),
    "where the cart attracts": (*_CART, 0.5),
    "in the pole": (*_CART, 0.75),
    "on the pole": (*_CART, 1.25),
    "at the pole's side": (_CART[0] + 0.03, _CART[1], 0.75),
    "at the origin": (0.0, 0.0, 0.0),
    "in a corner of the room": (4.95, 4.95, -0.05),
    "in a wall": (5.0, 0.0, 5.0),
    "outside": (300.0, -300.0, 500.0),
}
_GAPS = {"all at one point": 0.0, "touching one another": 1.0}
_SPEEDS = {"at rest": 0.0, "at 100 m/s": 100.0}
_POLES = {
    "upright": (0.0, 0.0, 0.0, 1.0),
    "flat": (_FLAT, 0.0, 0.0, _FLAT),
    "upside down": (1.0, 0.0, 0.0, 0.0),
}
_CARTS = {"at rest": 0.0, "as fast as can be": 100.0}
# Directions of the blocks' velocities, so that some meet and others part.
_WAYS = np.array([(1, 1, 1), (-1, -1, -1), (1, -1, 1), (-1, 1, -1)], float)


def crowds(capacity: int) -> tuple[list[str], dict[str, np.ndarray]]:
    """States in which bodies coincide, touch or fly as fast as they can.

    Args:
      capacity: most blocks; up to four are used.

    Returns:
      Their names, and named arrays for `state_from_arrays` with one entry each.
    """
    parts = itertools.product(
        _PLACES.items(), _GAPS.items(), _SPEEDS.items(), _POLES.items(), _CARTS.items()
    )
    count = min(capacity, len(_WAYS))
    names, columns = [], []
    for (where, place), (how, gap), (pace, speed), (stands, pole), (cart, fast) in parts:
        names.append(f"blocks {where}, {how}, {pace}, pole {stands}, cart {cart}")
        along = gap * np.arange(count)[:, None] * np.array([1.0, 0.0, 0.0])
        columns.append(
            {
                "cart_pos": np.array(_CART),
                "cart_yaw": np.array(0.0),
                "cart_vel": np.array([fast, -fast]),
                "cart_yaw_rate": np.array(fast),
                "pole_jq": np.array(pole),
                "pole_jw": np.array([fast, fast, -fast]),
                "block_pos": np.array(place) + along,
                "block_vel": speed * _WAYS[:count],
            }
        )
    return names, {name: np.stack([c[name] for c in columns]) for name in columns[0]}


# --- all hunts ----------------------------------------------------------------------------------


def hunts(all_groups: list[CaseGroup], episodes: int, seed: int) -> Iterator[tuple[str, str, Hunt]]:
    """Environment, kind and totals of every hunt; episodes are shared out by number of cases."""
    cases = sum(len(group.params) for group in all_groups)
    shared_out = 0
    for index, group in enumerate(all_groups):
        cases_so_far = sum(len(earlier.params) for earlier in all_groups[: index + 1])
        share = episodes * cases_so_far // cases - shared_out
        shared_out += share
        player, name = GroupPrograms(group), group.name
        if share:
            yield name, "random episodes", player.episodes(share, seed)
        if isinstance(group.env, CartPole3D):
            yield name, "crowded states", player.crowded()
        yield name, "spoilt states", player.spoilt(seed)


def hunts_at_bounds(settings: int, seed: int) -> Iterator[tuple[str, str, Hunt]]:
    """Settings of `bounds`: every parameter at its bounds, and random ones.

    Many slots take long: of the settings that need more than four, one of `FEWER` is played, and
    some of the others twice, so that every world plays as many episodes.
    """
    groups = bounds.groups(settings, seed, bounds.MOST_SLOTS)
    groups = sorted((_fewer(group) for group in groups), key=_slots)
    count: Counter[str] = Counter()
    for group in groups:
        count[group.env.name] += len(group.params)
    for group in groups:
        missing = max(0, settings - count[group.env.name])
        count[group.env.name] += missing
        hunt = GroupPrograms(group).episodes(len(group.params) + missing, seed)
        yield group.name, "settings at bounds", hunt


def _slots(group: CaseGroup) -> int:
    """Block slots of a group's environment."""
    return int(getattr(getattr(group.env, "config", None), "max_blocks", 0))


def _fewer(group: CaseGroup) -> CaseGroup:
    """A group itself, or one of `FEWER` of its settings where they need many slots."""
    if _slots(group) <= UNROLLED:
        return group
    names = list(group.params)[: -(-len(group.params) // FEWER)]
    return CaseGroup(group.env, {name: group.params[name] for name in names})


def main(argv: list[str] | None = None) -> int:
    """Hunt, write the results, and return the exit code."""
    parser = argparse.ArgumentParser(description="Hunt for numbers that are not finite.")
    parser.add_argument(
        "--episodes", type=int, default=100_000, metavar="N", help="in all (100000)"
    )
    parser.add_argument(
        "--settings",
        type=int,
        default=20_000,
        metavar="N",
        help="random settings of each world, besides those at one bound, and its least number of "
        "episodes; -1 for none (20000)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all randomness (0)")
    add_out(parser)
    arguments = parser.parse_args(argv)
    all_hunts = list(hunts(groups(), arguments.episodes, arguments.seed))
    if arguments.settings >= 0:
        all_hunts += hunts_at_bounds(arguments.settings, arguments.seed)
    rows = [{"environment": name, "hunt": kind, **asdict(hunt)} for name, kind, hunt in all_hunts]
    put_json({"seed": arguments.seed, "hunts": rows}, arguments.out)
    return int(any(hunt.leaks for _, _, hunt in all_hunts))


if __name__ == "__main__":
    sys.exit(main())
