"""How well novelties are identified from a few episodes.

    python -m benchmarks.identification --out docs/identification.json

Each sample of a list is played by `pd`, and `jaxsim.identification` gets nothing but these
observations and actions. A sample whose observations all equal those of the nominal world, with the
same starts and the same agent, cannot be identified; it is counted apart. Of a composition, each
family is played alone as well: one whose observations are all nominal may be impossible to name.
The error of a value is relative to the true one. Samples 0 to 599 of open-world-1 were used while
the method was developed; the default is the next 200.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.novelty_space import RESOLUTION, SampleGroup, add_list, groups, listed
from evaluation.files import write_json
from evaluation.json_types import JsonObject
from evaluation.sailon.novelties import ListedNovelty
from jaxsim import agents, counters, rng
from jaxsim.identification import Identification, ObservedEpisode, identify
from jaxsim.novelty import FAMILIES, Novelty
from jaxsim.pytrees import Params, Tree
from jaxsim.worlds.cartpole3d import CartPole3D

STEPS = 200  # of an episode
AGENT = "pd"
USED = 600  # samples of the list that the method was developed with


@dataclass(frozen=True)
class Recorded:
    """Episodes of one sample.

    Attributes:
      episodes: of the sample.
      differs: whether any observation differs from those of the nominal world.
    """

    episodes: tuple[ObservedEpisode, ...]
    differs: bool


@cache
def _player(env: CartPole3D) -> Any:
    """Compiled play of one episode a lane: observations (201, L), actions and running (200, L)."""
    act = jax.vmap(partial(agents.get(AGENT).act, ()))

    @jax.jit
    def play(root: rng.Words, episode: jax.Array, params: Params) -> Tree:
        key = rng.fold(root, episode)

        def tick(carry: Tree, number: jax.Array) -> tuple[Tree, Tree]:
            observation, state = carry
            action = act(observation, rng.to_key(rng.fold(key, counters.ACT, number)))[0]
            step_key = rng.to_key(rng.fold(key, counters.STEP, number))
            after, new, *_ = env.step(step_key, state, action, params)
            return (after, new), (after, action, ~state.done)

        start = env.reset(rng.to_key(rng.fold(key, counters.RESET)), params)
        _, outcomes = jax.lax.scan(tick, start, jnp.arange(1, STEPS + 1, dtype=jnp.uint32))
        observations, actions, running = outcomes
        whole = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start[0], observations)
        return whole, actions, running

    return play


def recorded(group: SampleGroup, episodes: int, seed: int) -> Iterator[Recorded]:
    """Play every sample of a group."""
    rows = len(group.places) + 1
    variant, number = np.divmod(np.arange(rows * episodes), episodes)
    params = jax.tree.map(lambda leaf: leaf[variant], group.params)
    outcomes = _player(group.env)(counters.root(seed), number.astype(np.uint32), params)
    observations, actions, running = jax.tree.map(np.asarray, outcomes)
    lengths = running.sum(axis=0)

    def episode(lane: int) -> ObservedEpisode:
        last = int(lengths[lane])
        observed = jax.tree.map(lambda leaf: leaf[: last + 1, lane], observations)
        return ObservedEpisode(observed, actions[:last, lane])

    nominal = [episode(lane) for lane in range(episodes)]
    for row in range(1, rows):
        these = tuple(episode(row * episodes + number) for number in range(episodes))
        yield Recorded(these, any(map(_differ, these, nominal)))


def _differ(a: ObservedEpisode, b: ObservedEpisode) -> bool:
    if len(a.actions) != len(b.actions):
        return True
    leaves = zip(jax.tree.leaves(a.observations), jax.tree.leaves(b.observations), strict=True)
    return any(bool(np.abs(x.astype(float) - y).max() > RESOLUTION) for x, y in leaves)


def row_of(entry: ListedNovelty, record: Recorded, showing: Sequence[str]) -> JsonObject:
    """Identify one sample and compare.

    Args:
      entry: the sample.
      record: its episodes.
      showing: its families that change something when they are played alone.
    """
    start = process_time()
    result = identify(record.episodes)
    return {
        "families": list(entry.novelty.families),
        "named": list(result.families),
        "held_out": entry.held_out,
        "showing": sorted(showing),
        "differs": record.differs,
        "none_of_these": result.none_of_these,
        "errors": errors_of(entry.novelty, result),
        "seconds": round(process_time() - start, 2),
    }


def errors_of(true: Novelty, result: Identification) -> JsonObject:
    """Relative error of the first parameter of each family that is named right, by family."""
    values = dict(true.parameters)
    errors: JsonObject = {}
    for name in set(true.families) & set(result.families):
        for one in FAMILIES[name].ranges[:1]:
            size = abs(values[one.path])
            off = abs(result.values[one.path].value - values[one.path])
            errors[name] = round(off / size, 7) if size else round(off, 7)
    return errors


def alone(novelty: Novelty) -> dict[str, Novelty]:
    """Each family of a novelty alone, by name."""
    return {
        name: Novelty.of(
            [name], {path: v for path, v in novelty.parameters if path in FAMILIES[name].paths}
        )
        for name in novelty.families
    }


def measured(entries: Sequence[ListedNovelty], episodes: int, seed: int) -> list[JsonObject]:
    """Identify samples, in their order."""
    members = [
        (place, name, one)
        for place, entry in enumerate(entries)
        for name, one in alone(entry.novelty).items()
    ]
    size = len(entries)
    records: dict[int, Recorded] = {}
    for group in groups([*(e.novelty for e in entries), *(one for *_, one in members)]):
        places = (int(place) for place in group.places)
        records |= dict(zip(places, recorded(group, episodes, seed), strict=True))
    rows = []
    for place, entry in enumerate(entries):
        showing = [
            name
            for index, (owner, name, _) in enumerate(members, size)
            if owner == place and records[index].differs
        ]
        rows.append(row_of(entry, records[place], showing))
        named = "+".join(rows[-1]["named"]) or "nothing"
        print(f"{entry.novelty.name}: {named}", flush=True)
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Identify the samples of a list of novelties.")
    add_list(parser, USED, 200)
    parser.add_argument("--episodes", type=int, default=3, metavar="N", help="of each (3)")
    parser.add_argument("--seed", type=int, default=32, metavar="N", help="of the episodes (32)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON, a row a sample")
    a = parser.parse_args()
    entries = listed(parser, a)
    jaxsim.configure_cpu()
    settings = {name: getattr(a, name) for name in ("novelties", "first", "episodes", "seed")}
    result: JsonObject = {"settings": settings, "rows": measured(entries, a.episodes, a.seed)}
    if a.out:
        write_json(a.out, result)


if __name__ == "__main__":
    main()
