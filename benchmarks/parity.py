"""Compare CartPole3D with recordings of the original and write docs/parity.md.

    python -m benchmarks.parity --recordings FOLDER --out docs/parity.md

Three comparisons a level and difficulty: the observation after reset, one tick from every recorded
state (float64), and whole episodes in closed loop (float32) with the policy of the recordings.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.recordings import Recording, observation_arrays, read_recording
from evaluation.files import write_whole
from jaxsim.agents import reference
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import CartPole3D, Observation, Params, State
from jaxsim.worlds.cartpole3d.wsu import wsu_shares

LANES = 1536  # of the compiled programs; every batch is padded to it
KINDS = ("free", "wall", "pair", "structure")
HEADINGS = ("no contact", "walls", "blocks", "cart or pole")
DIFFICULTIES = ("easy", "medium", "hard")

# Gains on rate (s), velocity (s/m) and position (1/m), dead band, sign.
USUAL_GAINS = (0.3, 0.1, 0.03, 0.004, 1.0)
OTHER_GAINS = {101: (0.3, 0.03, 0.005, 0.0, 1.0), 111: (0.3, 0.1, 0.03, 0.004, -1.0)}
DEAD_BAND_115 = {"easy": 0.02, "medium": 0.04, "hard": 0.06}


@dataclass(frozen=True)
class Case:
    """One recorded file with the level it is of."""

    level: int
    difficulty: str
    recording: Recording

    @property
    def values(self) -> dict[str, Any]:
        """Parameters by path."""
        return {"novelty/level": self.level, "novelty/difficulty": self.difficulty}

    @property
    def gains(self) -> tuple[float, ...]:
        """Gains of the recordings' policy at this level."""
        if self.level == 115:
            return (*USUAL_GAINS[:3], DEAD_BAND_115[self.difficulty], 1.0)
        return OTHER_GAINS.get(self.level, USUAL_GAINS)

    def starts(self, dtype: str) -> list[State]:
        """State before the hidden tick of every recorded seed."""
        return [
            cartpole3d.wsu_start(int(seed), self.level, self.difficulty, dtype)
            for seed in self.recording.seeds
        ]

    def shares(self, ticks: int) -> np.ndarray:
        """(E, ticks) what level 105 draws in each tick; zero elsewhere."""
        if self.level != 105:
            return np.zeros((len(self.recording.seeds), ticks))
        return np.stack([wsu_shares(int(seed), ticks) for seed in self.recording.seeds])


def cases(folder: Path, policy: str = "pd") -> Iterator[Case]:
    """Recordings of every level that the package has."""
    for level in cartpole3d.levels():
        for difficulty in DIFFICULTIES:
            path = folder / f"L{level.number}_{difficulty}_{policy}.npz"
            if path.exists():
                yield Case(level.number, difficulty, read_recording(path))


def environment(dtype: str) -> CartPole3D:
    """One environment that plays every level."""
    values = [
        {"novelty/level": level.number, "novelty/difficulty": difficulty}
        for level in cartpole3d.levels()
        for difficulty in DIFFICULTIES
    ]
    played = [jaxsim.make("CartPole3D-v0", each, dtype=dtype)[0] for each in values]
    return reduce(CartPole3D.covering, played)


@cache
def compiled_step(dtype: str) -> Callable[..., Any]:
    """One program for every level."""
    return jax.jit(environment(dtype).step)


def drawn(params: Params, share: Any) -> Params:
    """Parameters of a tick in which level 105 draws `share` instead of what the key would give."""
    pull = params.pull_centroid + params.pull_centroid_random * share
    return replace(params, pull_centroid=pull, pull_centroid_random=jnp.zeros_like(pull))


def params_of(case: Case, dtype: str, lanes: int) -> Params:
    """Parameters of a level for a number of lanes."""
    _, params = jaxsim.make("CartPole3D-v0", case.values, dtype=dtype)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (lanes,)), params)


def stack(trees: list[Any]) -> Any:
    """Stack pytrees along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def pad(tree: Any, lanes: int = LANES) -> Any:
    """Repeat the last lane."""

    def one(leaf: Any) -> Any:
        return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], lanes - leaf.shape[0], axis=0)])

    return jax.tree.map(one, tree)


def step(dtype: str, state: State, action: Any, params: Params) -> tuple[Observation, State]:
    """Advance any number of lanes up to `LANES`."""
    count = state.step.shape[0]
    arguments = pad((state, jnp.asarray(action, jnp.int32), params))
    observation, state, *_ = compiled_step(dtype)(jax.random.key(0), *arguments)
    return jax.tree.map(lambda leaf: leaf[:count], (observation, state))


def reset_error(case: Case) -> float:
    """Largest difference of the observation after reset, in the units of the fields."""
    starts = stack(case.starts("float64"))
    count = len(case.recording.seeds)
    params = drawn(params_of(case, "float64", count), jnp.asarray(case.shares(1)[:, 0]))
    observation, _ = step("float64", starts, np.zeros(count), params)
    ours, rows = observation_arrays(observation), case.recording.resets
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


def tick_errors(case: Case) -> dict[str, TickErrors]:
    """Errors after one tick from every recorded state, by class of contact."""
    recording, rows = case.recording, case.recording.steps
    state = _states(case, rows - 1)
    shares = case.shares(int(recording.tick.max()) + 1)
    share = shares[recording.episode[rows], recording.tick[rows]]
    params = drawn(params_of(case, "float64", len(rows)), jnp.asarray(share))
    _, after = step("float64", state, recording.action[rows], params)
    ours = cartpole3d.state_to_arrays(after)

    def error(name: str, parts: slice = slice(None)) -> np.ndarray:
        difference = np.abs(ours[name] - recording.state[name][rows])[..., parts]
        return difference.reshape(len(rows), -1).max(axis=1)

    cart, pole = error("cart_vel"), error("pole_jw", slice(2))
    block = error("block_vel")
    large = np.maximum(cart, block) > 1e-3
    found = {}
    for kind in KINDS:
        chosen = recording.kind[rows] == kind
        if chosen.any():
            worst = (float(values[chosen].max()) for values in (cart, pole, block))
            found[kind] = TickErrors(int(chosen.sum()), *worst, float(large[chosen].mean()))
    return found


def _states(case: Case, rows: np.ndarray) -> State:
    """Recorded states, with what their episodes drew and the pose reported last."""
    state = case.recording.states(rows)
    starts, episode = stack(case.starts("float64")), case.recording.episode[rows]
    bounce, wind = jax.tree.map(lambda leaf: leaf[episode], (starts.extra_bounce, starts.wind))
    first = case.recording.tick[rows] == 0
    before = case.recording.states(np.maximum(rows - 1, 0)).pose
    drawn_pose = jax.tree.map(lambda leaf: leaf[episode], starts.pose)
    reported = jax.tree.map(lambda a, b: jnp.where(first, a, b), drawn_pose, before)
    return replace(state, extra_bounce=bounce, wind=wind, reported=reported)


def policy(observation: Observation, gains: Any) -> jax.Array:
    """Proportional-derivative policy of the recordings, with terms in velocity and position."""
    (lx, ly), (dlx, dly) = reference.lean(observation)
    rate, speed, place, dead, sign = gains
    p, v = observation.cart_position, observation.cart_velocity
    ex = sign * (lx + rate * dlx + speed * v.x + place * p.x)
    ey = sign * (ly + rate * dly + speed * v.y + place * p.y)
    strong = jnp.maximum(jnp.abs(ex), jnp.abs(ey)) >= dead
    return jnp.where(strong, reference.push_along(ex, ey), 0)


@jax.jit
def _episodes(start: State, params: Params, gains: Any, shares: jax.Array) -> jax.Array:
    env = environment("float32")
    key = jax.random.key(0)

    def tick(k: Any, carry: Any) -> Any:
        observation, state = carry
        action = policy(observation, gains)
        observation, state, *_ = env.step(key, state, action, drawn(params, shares[k]))
        return observation, state

    # The first step from a start is the hidden tick; it ignores the action.
    return jax.lax.fori_loop(0, env.max_steps + 1, tick, (env.observe(start), start))[1].step


def same_lengths(found: list[Case]) -> np.ndarray:
    """Whether each recorded episode has the recorded length in closed loop, float32."""
    starts = stack([start for case in found for start in case.starts("float32")])
    params, gains, shares, lengths = [], [], [], []
    for case in found:
        count = len(case.recording.seeds)
        params.append(params_of(case, "float32", count))
        gains += [case.gains] * count
        shares.append(case.shares(201))
        lengths.append(case.recording.lengths)
    joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *params)
    table = tuple(jnp.asarray(np.array(gains, np.float32).T))
    per_tick = jnp.asarray(np.concatenate(shares).T, jnp.float32)
    ours = _episodes(starts, joined, table, per_tick)
    return np.asarray(ours) == np.concatenate(lengths)


def report(folder: Path) -> str:
    """The page: one table of ticks and resets, one of closed-loop lengths."""
    found = list(cases(folder))
    if not found:
        raise SystemExit(f"no recordings of the form L<level>_<difficulty>_pd.npz in {folder}")
    lines = [*_INTRODUCTION, "", "| level | reset | " + " | ".join(HEADINGS) + " |"]
    lines.append("| --- " * (2 + len(HEADINGS)) + "|")
    for case in found:
        errors = tick_errors(case)
        cells = [_cell(errors.get(kind)) for kind in KINDS]
        reset = f"{reset_error(case):.0e}"
        lines.append(f"| {case.level} {case.difficulty} | {reset} | " + " | ".join(cells) + " |")
    same = same_lengths(found)
    lines += ["", *_closed_loop(found, same)]
    return "\n".join(lines) + "\n"


_INTRODUCTION = [
    "# Parity with the original",
    "",
    "Generated by `python -m benchmarks.parity`; do not edit. The recordings are float32, so an",
    "exact value shows as about 1e-7 of its size.",
    "",
    "## One tick from every recorded state, float64",
    "",
    "Largest errors after one tick: cart velocity (m/s), pole rate across its axis (rad/s), block",
    "velocity (m/s), by the hardest contact of the tick; in brackets the number of ticks and the",
    "share with a velocity error above 1e-3. Hits of cart and pole differ because the original's",
    "collision detection works to a relative tolerance of 1e-3. `reset` is the largest difference",
    "of any field of the first observation over the recorded seeds.",
]


def _cell(errors: TickErrors | None) -> str:
    if errors is None:
        return ""
    worst = f"{errors.cart_velocity:.0e} / {errors.pole_rate:.0e} / {errors.block_velocity:.0e}"
    share = f", {errors.large:.0%}" if errors.large else ""
    return f"{worst} ({errors.ticks}{share})"


def _closed_loop(found: list[Case], same: np.ndarray) -> Iterator[str]:
    yield "## Whole episodes in closed loop, float32"
    yield ""
    yield "The recordings' policy on our own observations, from the recorded seeds: episodes of the"
    yield f"recorded length. All levels together: {same.sum()} of {same.size} ({same.mean():.1%})."
    yield ""
    yield "| level | same length |"
    yield "| --- | --- |"
    at = 0
    for case in found:
        own = same[at : at + len(case.recording.seeds)]
        at += own.size
        yield f"| {case.level} {case.difficulty} | {own.sum()} of {own.size} |"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--recordings", type=Path, required=True, help="folder of L*_*_pd.npz")
    parser.add_argument("--out", type=Path, help="file to write; standard output if missing")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    page = report(arguments.recordings)
    if arguments.out:
        write_whole(arguments.out, page)
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
