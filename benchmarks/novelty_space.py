"""Calibrate samples of the space of novelties: how hard each one is to notice and to cope with.

    python -m benchmarks.novelty_space --samples 10000 --out runs/novelty_space.parquet

Every sample plays the same episodes. Measured for each sample are

* `pd` and `clairvoyant`: mean performance of the controller that ignores novelties, and of the
  planner that gets state and parameters (`benchmarks.clairvoyant`);
* `first`: the first tick, counted from the first observation, in which the sensors' report differs
  by more than `RESOLUTION` from the nominal world's report, or only one episode ends. Start and
  pushes are equal (those of `pd` in the nominal world). It is the mean over some starts; one
  without a difference counts as the length of an episode.

From these follow two difficulties in [0, 1]. For control it is the share of the performance in the
nominal world that `pd` loses. For detection it is `first` as a share of an episode's length: 0 if
the first observation differs, 1 if no report differs. A sample without a difference in any start is
degenerate ("same"), and so is one in which neither controller balances for longer than a pole takes
to fall ("lost").
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import jaxsim
from benchmarks.clairvoyant import Opened, clairvoyant
from benchmarks.lockstep import play_episode
from evaluation.files import write_whole
from evaluation.sailon.novelties import ListedNovelty, load
from jaxsim import agents, counters, novelty, rng
from jaxsim.agents import Agent
from jaxsim.novelty import FAMILIES, Novelty
from jaxsim.novelty.families import check_together
from jaxsim.pytrees import Params, Tree
from jaxsim.worlds.cartpole3d import CartPole3D
from jaxsim.worlds.cartpole3d.types import UNROLLED

STEPS = 200  # of an episode
RESOLUTION = 1e-4
"""Least difference of reports, in m, m/s, rad/s, or units of a quaternion: a hundred times the
rounding of a report, and the limit of the detector of this package."""
LOST = 0.3
"""Performance below which a pole counts as fallen: doing nothing has .25 in the nominal world."""
PAIRS_SHARE = 0.2
"""Share of samples that are composed of two families."""
PD_EPISODES, PLANNED_EPISODES, STARTS = 16, 2, 8
LANES = 256
AGENT = 1  # counter of an agent's own randomness

COLUMNS = {
    "pd": pa.float32(),
    "clairvoyant": pa.float32(),
    "first": pa.float32(),
    "differs": pa.float32(),
}


@dataclass(frozen=True)
class Calibrated:
    """Measurements of samples; arrays (N,).

    Attributes:
      novelties: the samples.
      pd: mean performance of `pd`.
      clairvoyant: mean performance of the planner with full information.
      first: mean tick of the first report that differs, `STEPS` if none does.
      differs: share of the starts in which any report differs.
      nominal: mean performance of `pd` in the nominal world, in the same episodes.
    """

    novelties: tuple[Novelty, ...]
    pd: np.ndarray
    clairvoyant: np.ndarray
    first: np.ndarray
    differs: np.ndarray
    nominal: float

    @property
    def control(self) -> np.ndarray:
        """Difficulty for control, from 0 to 1."""
        return np.clip(1 - self.pd / self.nominal, 0, 1)

    @property
    def detection(self) -> np.ndarray:
        """Difficulty for detection, from 0 to 1."""
        return np.clip(self.first / STEPS, 0, 1)

    @property
    def degenerate(self) -> np.ndarray:
        """ "same", "lost" or "" for each sample."""
        lost = np.maximum(self.pd, self.clairvoyant) < LOST
        return np.where(self.differs == 0, "same", np.where(lost, "lost", ""))

    def table(self) -> pa.Table:
        """All measurements, one row per sample."""
        columns = {
            "name": [one.name for one in self.novelties],
            "novelty": [str(one.to_json()).replace("'", '"') for one in self.novelties],
            **{name: np.asarray(getattr(self, name)) for name in COLUMNS},
            "control": self.control,
            "detection": self.detection,
            "degenerate": self.degenerate.tolist(),
        }
        return pa.table(columns)


# Samples ----------------------------------------------------------------------------------------


def pairs() -> tuple[str, ...]:
    """Names of every two families that can be composed."""
    names = []
    for two in combinations(FAMILIES, 2):
        try:
            check_together(two)
        except ValueError:
            continue
        names.append("+".join(two))
    return tuple(names)


def drawn(size: int, seed: int) -> tuple[Novelty, ...]:
    """Samples, equally many of each family, and of pairs chosen by the seed."""
    twos = int(PAIRS_SHARE * size)
    key = jax.random.key(seed)
    singles = novelty.sample(jax.random.fold_in(key, 0), list(FAMILIES), size - twos)
    if not twos:
        return singles
    names = pairs()
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, 1), len(names)))
    shuffled = [names[place] for place in order]
    return singles + novelty.sample(jax.random.fold_in(key, 2), shuffled, twos)


# Measuring --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleGroup:
    """Samples that one environment plays, and their parameters, leaves (V,), row 0 nominal."""

    env: CartPole3D
    params: Params
    places: np.ndarray  # (V - 1,) of the samples


def groups(novelties: Sequence[Novelty]) -> Iterator[SampleGroup]:
    """Sort samples into those of few blocks and those of many, for two programs to compile."""
    pairs_of_novelties = [
        jaxsim.make("CartPole3D-v0", {"novelty": one}, host=True) for one in novelties
    ]
    sizes = np.array([env.config.max_blocks for env, _ in pairs_of_novelties])
    for few in (True, False):
        places = np.flatnonzero((sizes <= UNROLLED) == few)
        if places.size:
            most = int(sizes[places].max())
            env, nominal = jaxsim.make("CartPole3D-v0", max_blocks=most, host=True)
            for place in places:
                env = env.covering(pairs_of_novelties[place][0])
            rows = [nominal, *(pairs_of_novelties[place][1] for place in places)]
            params = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
            yield SampleGroup(env, params, places)


@cache
def _player(agent: Agent, env: CartPole3D) -> Any:
    """Compiled play of one episode a lane."""

    @jax.jit
    def play(root: rng.Words, numbers: jax.Array, params: Params) -> jax.Array:
        key = rng.fold(root, numbers)
        memory = jax.vmap(agent.init)(rng.to_key(rng.fold(key, AGENT)))
        shown_env = Opened(env, params) if agent is clairvoyant else env
        active = jnp.ones(numbers.shape, bool)
        _, outcome = play_episode(agent, shown_env, params, key, active, memory)
        return outcome.performance

    return play


def performance(group: SampleGroup, agent: Agent, episodes: int, seed: int) -> np.ndarray:
    """Mean performance in the same episodes of every row, (V,).

    All lanes play full ticks of one program: it takes less to compile than the many programs of a
    rollout of all these terms would save.
    """
    rows = len(group.places) + 1
    variant, numbers = np.divmod(np.arange(rows * episodes), episodes)
    play, root = _player(agent, group.env), counters.root(seed)
    parts = []
    for first in range(0, len(variant), LANES):
        index = np.arange(first, first + LANES) % len(variant)
        params = jax.tree.map(lambda leaf, at=index: leaf[variant[at]], group.params)
        parts.append(play(root, numbers[index].astype(np.uint32), params))
    return np.concatenate(parts)[: len(variant)].reshape(rows, episodes).mean(axis=1)


def first_differences(group: SampleGroup, starts: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean tick of the first report that differs, and share of starts with any; (V - 1,) each."""
    rows = len(group.places)
    params = jax.tree.map(lambda leaf: leaf[1:], group.params)
    nominal = jax.tree.map(lambda leaf: leaf[0], group.params)
    compare = _comparison(group.env)
    ticks = np.zeros((starts, rows))
    for start in range(starts):
        key = rng.fold(counters.root(seed), jnp.full(rows, start, jnp.uint32))
        ticks[start] = compare(key, params, jax.tree.map(lambda n: np.full(rows, n), nominal))
    return ticks.mean(axis=0), (ticks < STEPS).mean(axis=0)


@cache
def _comparison(env: CartPole3D) -> Any:
    """Compiled ticks of the first difference between two rows of parameters, (L,)."""
    act = jax.vmap(partial(agents.get("pd").act, ()))

    @jax.jit
    def compare(key: rng.Words, params: Params, nominal: Any) -> jax.Array:
        # Both worlds are lanes of one batch: those of the nominal world come first.
        both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), nominal, params)
        twice = jax.tree.map(lambda word: jnp.concatenate([word, word]), key)
        lanes = key.a.shape[0]
        split = (slice(None, lanes), slice(lanes, None))

        def tick(carry: Tree) -> Any:
            number, first, observation, state = carry
            halves = [jax.tree.map(lambda leaf, h=h: leaf[h], observation) for h in split]
            # It is a difference, too, if only one of the episodes has ended.
            ended = state.done[:lanes] != state.done[lanes:]
            different = differs(*halves) | ended
            first = jnp.where((first == STEPS) & different, number, first)
            action = act(halves[0], rng.to_key(rng.fold(key, counters.ACT, number)))[0]
            step_key = rng.to_key(rng.fold(twice, counters.STEP, number))
            action = jnp.concatenate([action, action])
            observation, state, *_ = env.step(step_key, state, action, both)
            return number + 1, first, observation, state

        def unfinished(carry: Tree) -> jax.Array:
            number, first, _, state = carry
            over = state.done[:lanes] & state.done[lanes:]
            return (number <= STEPS) & jnp.any((first == STEPS) & ~over)

        start = env.reset(rng.to_key(rng.fold(twice, counters.RESET)), both)
        carry = (jnp.int32(0), jnp.full(lanes, STEPS), *start)
        return jax.lax.while_loop(unfinished, tick, carry)[1]

    return compare


def differs(a: Any, b: Any) -> jax.Array:
    """Whether two observations, leaves (L, ...), differ by more than the resolution, (L,)."""

    def one(x: jax.Array, y: jax.Array) -> jax.Array:
        far = x != y if x.dtype == bool else jnp.abs(x - y) > RESOLUTION
        return jnp.any(far.reshape(far.shape[0], -1), axis=1)

    flags = [one(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]
    return jnp.any(jnp.stack(flags), axis=0)


def calibrated(
    novelties: Sequence[Novelty], seed: int, planned: int, say: Any = print
) -> Calibrated:
    """Measure samples.

    Args:
      novelties: N of them.
      seed: of the episodes.
      planned: episodes of the planner for each sample; 0 leaves it out, and its performance NaN.
      say: called with a line for each step.
    """
    size = len(novelties)
    pd, clear, first, share = (np.full(size, np.nan) for _ in range(4))
    nominal = 0.0
    for group in groups(novelties):
        start = process_time()
        means = performance(group, agents.get("pd"), PD_EPISODES, seed)
        nominal, pd[group.places] = float(means[0]), means[1:]
        say(f"{len(group.places)} of {group.env.config.max_blocks} slots, pd", start)
        start = process_time()
        first[group.places], share[group.places] = first_differences(group, STARTS, seed)
        say("  first differences", start)
        if planned:
            start = process_time()
            clear[group.places] = performance(group, clairvoyant, planned, seed)[1:]
            say("  planner", start)
    return Calibrated(tuple(novelties), pd, clear, first, share, nominal)


def add_list(parser: argparse.ArgumentParser, first: int, number: int) -> None:
    """Add options that choose samples of a list, by default so many from the first one on."""
    parser.add_argument(
        "--novelties", default="open-world-1", metavar="LIST", help="(open-world-1)"
    )
    parser.add_argument("--first", type=int, default=first, metavar="N", help=f"sample ({first})")
    parser.add_argument(
        "--samples", type=int, default=number, metavar="N", help=f"number ({number})"
    )


def listed(parser: argparse.ArgumentParser, a: argparse.Namespace) -> tuple[ListedNovelty, ...]:
    """The samples that these options choose; options that choose none end the program."""
    try:
        entries = load(a.novelties).entries
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if a.samples < 1 or not 0 <= a.first < len(entries):
        parser.error(
            f"--first is {a.first} and --samples {a.samples}: there are samples 0 to "
            f"{len(entries) - 1}, of which at least one is played"
        )
    return entries[a.first : a.first + a.samples]


def say(text: str, start: float) -> None:
    """Print the processor time of a step."""
    print(f"{text}: {process_time() - start:.0f} s of the processor", flush=True)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Calibrate samples of the space of novelties.")
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="(10000)")
    parser.add_argument("--planned", type=int, default=PLANNED_EPISODES, metavar="N", help="(2)")
    parser.add_argument("--seed", type=int, default=24, metavar="N", help="of all (24)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="Parquet file, a row a sample")
    a = parser.parse_args()
    jaxsim.configure_cpu()
    calibration = calibrated(drawn(a.samples, a.seed), a.seed, a.planned, say)
    table = calibration.table()
    for name in ("", "same", "lost"):
        number = int((calibration.degenerate == name).sum())
        print(f"{number} of {a.samples} {name or 'of use'}")
    if a.out:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        write_whole(a.out, sink.getvalue().to_pybytes())


if __name__ == "__main__":
    main()
