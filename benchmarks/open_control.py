"""How much of the control that novelties take away an agent gets back.

    python -m benchmarks.open_control --out docs/open-control.json

Samples of a list are played by `pd`, which ignores novelties, by `mpc`, and by the planner that
gets state and parameters (`benchmarks.clairvoyant`), all in the same episodes. Rows have their
mean performances. Samples 0 to 299 of open-world-1 were used, with other seeds, while
`mpc` was developed; the default are the samples after them.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import jaxsim
from benchmarks.clairvoyant import clairvoyant
from benchmarks.novelty_space import add_list, groups, listed, performance, say
from benchmarks.output import put_json
from evaluation.json_types import JsonObject
from evaluation.sailon.novelties import ListedNovelty
from jaxsim import agents

USED = 300  # samples of the list that `mpc` was developed with
AGENTS = (agents.get("pd"), agents.get("mpc"), clairvoyant)


def measured(entries: Sequence[ListedNovelty], episodes: int, seed: int) -> list[JsonObject]:
    """Play samples, in their order."""
    rows: list[JsonObject] = [
        {
            "families": list(entry.novelty.families),
            "held_out": entry.held_out,
            "difficulty": entry.difficulty,
        }
        for entry in entries
    ]
    for group in groups([entry.novelty for entry in entries]):
        for agent in AGENTS:
            start = process_time()
            means = performance(group, agent, episodes, seed)[1:]
            say(f"{len(group.places)} samples, {agent.name}", start)
            for place, mean in zip(group.places, means, strict=True):
                rows[place][agent.name] = round(float(mean), 4)
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Play samples of a list with three controllers.")
    add_list(parser, USED, 1000 - USED)
    parser.add_argument("--episodes", type=int, default=4, metavar="N", help="of each (4)")
    parser.add_argument("--seed", type=int, default=34, metavar="N", help="of the episodes (34)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="JSON, a row a sample"
    )
    a = parser.parse_args()
    entries = listed(parser, a)
    jaxsim.configure_cpu()
    names = ("novelties", "first", "episodes", "seed")
    settings = {name: getattr(a, name) for name in names}
    result: JsonObject = {"settings": settings, "rows": measured(entries, a.episodes, a.seed)}
    put_json(result, a.out)


if __name__ == "__main__":
    main()
