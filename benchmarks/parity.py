"""Compare every world with recordings of the original.

    python -m benchmarks.parity --recordings FOLDER --out docs/parity.json

The comparisons of CartPole3D are here, three a level and difficulty: the observation after reset,
one tick from every recorded state (float64), and whole episodes in closed loop (float32) with the
policy of the recordings. Those of CartPole2D and of the classic CartPole have modules of their own.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks import parity_cartpole, parity_cartpole2d
from benchmarks.output import add_out, put_json
from evaluation.json_types import JsonObject
from jaxsim.agents import reference
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import CartPole3D, Observation, Params, State
from jaxsim.worlds.cartpole3d.blocks.slots import inward, outward
from jaxsim.worlds.cartpole3d.blocks.spawn import add_block
from jaxsim.worlds.cartpole3d.generate import fitted, wsu_shares
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
from jaxsim.worlds.cartpole3d.types import CAPACITIES, UNROLLED, Vector
from tests.oracles.recordings import KINDS, Recording, observation_arrays, read_recording
from tests.oracles.supplies import Supplies, supplied

LANES = 1536  # of the compiled programs; every batch is padded to it
STACKED_LANES = 128  # the same with stacked slots

# Gains on rate (s), velocity (s/m) and position (1/m), dead band, sign.
USUAL_GAINS = (0.3, 0.1, 0.03, 0.004, 1.0)
OTHER_GAINS = {101: (0.3, 0.03, 0.005, 0.0, 1.0), 111: (0.3, 0.1, 0.03, 0.004, -1.0)}
DEAD_BAND_115 = {"easy": 0.02, "medium": 0.04, "hard": 0.06}


def gains_of(level: int, difficulty: str) -> tuple[float, ...]:
    """Gains of the recordings' policy at a level."""
    if level == 115:
        return (*USUAL_GAINS[:3], DEAD_BAND_115[difficulty], 1.0)
    return OTHER_GAINS.get(level, USUAL_GAINS)


@dataclass(frozen=True)
class Case:
    """One recorded file with the level it is of."""

    level: int
    difficulty: str
    recording: Recording
    changes: Mapping[str, float] = field(default_factory=dict)  # of physics besides, by path
    levels: frozenset[int] | None = None  # that share its program; None for all

    @property
    def values(self) -> JsonObject:
        """Parameters by path."""
        named = {"novelty/level": self.level, "novelty/difficulty": self.difficulty}
        return {**named, **self.changes}

    @property
    def slots(self) -> int:
        """Block slots that the level needs."""
        return most_slots(self.level, self.difficulty)

    @property
    def supplies(self) -> Supplies:
        """Blocks that appear in the recorded episodes."""
        return Supplies.of(self.level, self.difficulty, self.recording.seeds)

    @property
    def gains(self) -> tuple[float, ...]:
        """Gains of the recordings' policy at this level."""
        return gains_of(self.level, self.difficulty)

    def starts(self, dtype: str) -> list[State]:
        """State before the hidden tick of every recorded seed."""
        config = environment(dtype, self.slots, self.levels).config
        starts = (
            cartpole3d.wsu_start(int(seed), self.level, self.difficulty, dtype)
            for seed in self.recording.seeds
        )
        return [fitted(start, config) for start in starts]

    def shares(self, ticks: int) -> np.ndarray:
        """(E, ticks) draws of level 105 in each tick; zero for other levels."""
        if self.level != 105:
            return np.zeros((len(self.recording.seeds), ticks))
        return np.stack([wsu_shares(int(seed), ticks) for seed in self.recording.seeds])


def cases(folder: Path, policy: str = "pd") -> Iterator[Case]:
    """Recordings of every level that the package has; their programs play no other level."""
    paths = {
        (level.number, difficulty): path
        for level in cartpole3d.levels()
        for difficulty in DIFFICULTIES
        if (path := folder / f"L{level.number}_{difficulty}_{policy}.npz").exists()
    }
    levels = frozenset(level for level, _ in paths)
    for cell, path in paths.items():
        yield Case(*cell, read_recording(path, most_slots(*cell)), levels=levels)


def most_slots(level: int, difficulty: str) -> int:
    """Block slots to play a level with: one of two sizes, so that there are few programs."""
    env, _ = jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty)
    return CAPACITIES[-1] if env.config.stacked else UNROLLED


@cache
def environment(
    dtype: str, slots: int = UNROLLED, levels: frozenset[int] | None = None
) -> CartPole3D:
    """One environment that plays every level with a number of slots.

    Args:
      dtype: of its numbers.
      slots: of blocks.
      levels: numbers of the levels to play, for a smaller program; None for all.
    """
    envs = [
        jaxsim.make("CartPole3D-v0", level=level.number, difficulty=difficulty, dtype=dtype)[0]
        for level in cartpole3d.levels()
        for difficulty in DIFFICULTIES
        if most_slots(level.number, difficulty) == slots
        and (levels is None or level.number in levels)
    ]
    whole = reduce(CartPole3D.covering, envs)
    return CartPole3D(replace(whole.config, max_blocks=slots))


@cache
def compiled_step(
    dtype: str, slots: int = UNROLLED, levels: frozenset[int] | None = None
) -> Callable[..., Any]:
    """One program for every level with a number of slots; see `environment`."""
    return jax.jit(environment(dtype, slots, levels).step)


def drawn(params: Params, share: Any) -> Params:
    """Parameters of a tick in which level 105 draws `share` for any key."""
    pull = params.pull_centroid + params.pull_centroid_random * share
    return replace(params, pull_centroid=pull, pull_centroid_random=0 * pull)


def quiet(params: Params) -> Params:
    """Parameters with which no block appears by itself, because recorded ones are added."""
    return replace(params, spawn_period=0 * params.spawn_period)


def params_of(case: Case, dtype: str, lanes: int) -> Params:
    """Parameters of a level for a number of lanes."""
    _, params = jaxsim.make("CartPole3D-v0", case.values, dtype=dtype)
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (lanes,)), params)


def stack(trees: list[Any]) -> Any:
    """Stack pytrees as the lanes of a batch."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def chosen(tree: Tree, lanes: Any) -> Any:
    """Choose lanes."""
    return jax.tree.map(lambda leaf: leaf[lanes], tree)


def pad(tree: Tree, lanes: int = LANES) -> Any:
    """Repeat the last lane; in NumPy, which compiles nothing for yet another number of lanes."""

    def one(leaf: Leaf) -> np.ndarray:
        leaf = np.asarray(leaf)
        return np.concatenate([leaf, np.repeat(leaf[-1:], lanes - len(leaf), axis=0)])

    return jax.tree.map(one, tree)


def step(
    dtype: str, levels: frozenset[int] | None, state: State, action: Any, params: Params
) -> tuple[Observation, State]:
    """Advance any number of lanes by the program of some levels; see `environment`."""
    slots = max(len(state.blocks), *state.blocks[0].alive.shape[1:], 1)
    lanes = LANES if slots == UNROLLED else STACKED_LANES
    count = state.step.shape[0]
    # Lanes are cut in NumPy, which compiles nothing for yet another number of them.
    arguments = jax.tree.map(np.asarray, (state, np.asarray(action, np.int32), params))
    parts = []
    for first in range(0, count, lanes):
        part = chosen(arguments, slice(first, first + lanes))
        count_of_part = part[0].step.shape[0]
        advance = compiled_step(dtype, slots, levels)
        observation, state, *_ = advance(jax.random.key(0), *pad(part, lanes))
        parts.append(chosen(jax.tree.map(np.asarray, (observation, state)), slice(count_of_part)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def reset_error(case: Case) -> float:
    """Largest difference of the observation after reset, in the units of the fields."""
    rows = case.recording.resets
    episode = case.recording.episode[rows]
    starts = chosen(stack(case.starts("float64")), episode)
    if case.level == 208:
        starts = supplied(starts, chosen(case.supplies, episode), 1)
    params = quiet(drawn(params_of(case, "float64", len(rows)), case.shares(1)[episode, 0]))
    observation, _ = step("float64", case.levels, starts, np.zeros(len(rows)), params)
    ours = observation_arrays(observation)
    return max(
        float(np.abs(ours[name] - values[rows]).max())
        for name, values in case.recording.reported.items()
    )


@dataclass(frozen=True)
class TickErrors:
    """Largest errors of one tick in a class of ticks."""

    ticks: int
    cart_velocity: float  # m/s
    pole_rate: float  # rad/s, across the pole's axis
    block_velocity: float  # m/s
    large: float  # share of ticks with a velocity error above 1e-3


def field_errors(case: Case) -> dict[str, np.ndarray]:
    """Errors of every field after one tick from every recorded state, see `Recording.errors`."""
    recording, rows = case.recording, case.recording.steps
    state = _states(case, rows - 1)
    shares = case.shares(int(recording.tick.max()) + 1)
    share = shares[recording.episode[rows], recording.tick[rows]]
    params = quiet(drawn(params_of(case, "float64", len(rows)), share))
    observation, after = step("float64", case.levels, state, recording.action[rows], params)
    ours = cartpole3d.state_to_arrays(after)
    return recording.errors(rows, ours, observation_arrays(observation))


def tick_errors(case: Case) -> dict[str, TickErrors]:
    """Errors after one tick from every recorded state, by class of contact."""
    recording, errors = case.recording, field_errors(case)
    cart, pole, block = (errors[f] for f in ("cart_vel", "pole_tilt_rate", "block_vel"))
    large = np.maximum(cart, block) > 1e-3
    by_kind = {}
    for kind in KINDS:
        mask = recording.kind[recording.steps] == kind
        if mask.any():
            worst = (float(values[mask].max()) for values in (cart, pole, block))
            by_kind[kind] = TickErrors(int(mask.sum()), *worst, float(large[mask].mean()))
    return by_kind


def _states(case: Case, rows: np.ndarray) -> State:
    """Recorded states, with the draws of their episodes and the last reported pose."""
    config = environment("float64", case.slots, case.levels).config
    recording = case.recording
    state = recording.states(rows, config)
    drawn_starts = jax.tree.map(np.asarray, stack(case.starts("float64")))
    starts = chosen(drawn_starts, recording.episode[rows])
    first = recording.tick[rows] == 0
    before = recording.states(np.maximum(rows - 1, 0), config).pose
    reported = jax.tree.map(lambda a, b: np.where(first, a, b), starts.pose, before)
    state = replace(state, extra_bounce=starts.extra_bounce, wind=starts.wind, reported=reported)
    if "lines" in config.terms:
        pairs = zip(state.blocks, starts.blocks, strict=True)
        state = replace(state, blocks=tuple(replace(b, rail=own.rail) for b, own in pairs))
    return _with_next_block(case, state, rows) if case.slots > UNROLLED else state


def _with_next_block(case: Case, state: State, rows: np.ndarray) -> State:
    """Add the block that appears before the next tick, if one does."""
    alive = case.recording.state["block_alive"].astype(bool)
    after = np.minimum(rows + 1, len(alive) - 1)
    new = alive[after] & ~alive[rows]
    slot = new.argmax(axis=1)
    place, speed = (case.recording.state[name][after, slot] for name in ("block_pos", "block_vel"))
    if case.level == 208:
        supplies = case.supplies
        index = np.maximum((case.recording.tick[after] + 1) // supplies.period[0] - 1, 0)
        episode = case.recording.episode[rows]
        place = supplies.positions[episode, index]
        speed = supplies.velocities[episode, index]
    else:  # it was at rest before the tick
        place, speed = place - 0.02 * speed, 0.0 * speed
    due = new.any(axis=1)
    p, v = (Vector(*jnp.asarray(numbers.T)) for numbers in (place, speed))
    return outward(add_block(inward(state), p, v, jnp.asarray(due)))


def policy(observation: Observation, gains: Any) -> jax.Array:
    """Proportional-derivative policy of the recordings, with terms in velocity and position."""
    (lx, ly), (dlx, dly) = reference.lean(observation)
    rate, speed, place, dead, sign = gains
    p, v = observation.cart_position, observation.cart_velocity
    ex = sign * (lx + rate * dlx + speed * v.x + place * p.x)
    ey = sign * (ly + rate * dly + speed * v.y + place * p.y)
    strong = jnp.maximum(jnp.abs(ex), jnp.abs(ey)) >= dead
    return jnp.where(strong, reference.push_along(ex, ey), 0)


@partial(jax.jit, static_argnums=0)
def _episodes(
    env: CartPole3D, start: State, params: Params, gains: Any, shares: jax.Array, supplies: Any
) -> jax.Array:
    key = jax.random.key(0)

    def tick(k: Any, carry: Tree) -> Any:
        observation, state, used = carry
        action = policy(observation, gains)
        if supplies is not None:
            state, used = supplied(state, supplies, k + 1, used)
        observation, state, *_ = env.step(key, state, action, quiet(drawn(params, shares[k])))
        return observation, state, used

    # The first step from a start is the hidden tick; it ignores the action.
    carry = (env.observe(start), start, jnp.zeros_like(start.step))
    return jax.lax.fori_loop(0, env.max_steps + 1, tick, carry)[1].step


def same_lengths(all_cases: list[Case]) -> np.ndarray:
    """Whether each recorded episode has the recorded length in closed loop, float32."""
    same = [np.zeros(0, bool)] * len(all_cases)
    for slots in sorted({case.slots for case in all_cases}):
        group = [index for index, case in enumerate(all_cases) if case.slots == slots]
        ours = _same_lengths([all_cases[index] for index in group], slots)
        ends = np.cumsum([len(all_cases[index].recording.seeds) for index in group])
        for index, part in zip(group, np.split(ours, ends[:-1]), strict=True):
            same[index] = part
    return np.concatenate(same)


def _same_lengths(all_cases: list[Case], slots: int) -> np.ndarray:
    starts = stack([start for case in all_cases for start in case.starts("float32")])
    params, gains, shares, lengths = [], [], [], []
    for case in all_cases:
        count = len(case.recording.seeds)
        params.append(params_of(case, "float32", count))
        gains += [case.gains] * count
        shares.append(case.shares(201))
        lengths.append(case.recording.lengths)
    joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *params)
    table = tuple(jnp.asarray(np.array(gains, np.float32).T))
    per_tick = jnp.asarray(np.concatenate(shares).T, jnp.float32)
    supplies = None
    if slots > UNROLLED:
        parts = [case.supplies for case in all_cases]
        supplies = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    env = environment("float32", slots, all_cases[0].levels)
    ours = _episodes(env, starts, joined, table, per_tick, supplies)
    return np.asarray(ours) == np.concatenate(lengths)


def compare(recordings: Path, trajectories: Path) -> JsonObject:
    """Errors by world; a world without recorded data has the reason in place of its rows.

    Args:
      recordings: folder of L<level>_<difficulty>_<policy>.npz.
      trajectories: file of the classic CartPole.
    """
    if not any(recordings.glob("L*_*_*.npz")):
        raise SystemExit(f"no recordings of the form L<level>_<difficulty>_pd.npz in {recordings}")
    return {
        "CartPole3D": errors_by_level(recordings),
        "CartPole2D": parity_cartpole2d.errors_by_level(recordings),
        "CartPole": parity_cartpole.errors_by_dtype(trajectories),
    }


def errors_by_level(folder: Path) -> JsonObject:
    """Errors of ticks and resets of CartPole3D, and lengths of episodes in closed loop."""
    all_cases = list(cases(folder))
    if not all_cases:
        return {"missing": "the folder of recordings has none of CartPole3D under the policy `pd`"}
    same, rows = same_lengths(all_cases), []
    for case in all_cases:
        episodes, same = np.split(same, [len(case.recording.seeds)])
        rows.append(
            {
                "level": case.level,
                "difficulty": case.difficulty,
                "reset": reset_error(case),
                "ticks": {kind: asdict(errors) for kind, errors in tick_errors(case).items()},
                "episodes": episodes.size,
                "same_length": int(episodes.sum()),
            }
        )
    return {"rows": rows}


def main() -> None:
    """Compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--recordings", type=Path, required=True, help="folder of L*_*_*.npz")
    parser.add_argument(
        "--trajectories",
        type=Path,
        help="file of CartPole; FOLDER/../protocols/cartpole_trajectories.json if missing",
    )
    add_out(parser)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    folder = arguments.recordings
    trajectories = folder / ".." / "protocols" / "cartpole_trajectories.json"
    put_json(compare(folder, arguments.trajectories or trajectories), arguments.out)


if __name__ == "__main__":
    main()
