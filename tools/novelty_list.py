"""Choose a list of novelties from calibrated samples, balanced over families and difficulties.

    python -m benchmarks.novelty_space --samples 10000 --out runs/novelty_space.parquet
    python -m tools.novelty_list runs/novelty_space.parquet --name open-world-1 \\
      --out evaluation/sailon/open-world-1.jsonl

Degenerate samples are left out. Of each family, samples are taken at equal steps of rank by their
difficulty for control, and so are compositions. In the list, rounds of one sample a family follow
one another, so that every prefix is balanced. Families are split by a seed: a third is held out,
none of which a level of the catalogue changes, and with them all compositions that contain one.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from evaluation.sailon.novelties import ListedNovelty, NoveltyList
from jaxsim.novelty import FAMILIES, Novelty
from jaxsim.worlds.cartpole3d.levels import CATALOGUE
from jaxsim.worlds.cartpole3d.parameter_table import FIELDS

SIZE = 1000
COMPOSED = 0.2
"""Share of compositions in the list."""
HELD_OUT = 1 / 3
"""Share of the families that are held out."""
DIGITS = 3


def in_catalogue() -> frozenset[str]:
    """Families that set a parameter of a level of the catalogue: agents may know them."""
    levels = [level for level in CATALOGUE.values() if level.task == "CartPole3D"]
    fields = {field for level in levels for overrides in level.overrides for field in overrides}
    paths = {path for path, field in FIELDS.items() if field in fields}
    return frozenset(name for name, one in FAMILIES.items() if not paths.isdisjoint(one.paths))


def held_out(seed: int) -> frozenset[str]:
    """Families that are held out, none of them of the catalogue."""
    order = np.random.default_rng(seed).permutation(sorted(set(FAMILIES) - in_catalogue()))
    return frozenset(order[: round(HELD_OUT * len(FAMILIES))].tolist())


def spread(rows: Sequence[int], number: int) -> list[int]:
    """Select rows at equal steps of rank; rows are in the order of difficulty."""
    if len(rows) <= number:
        return list(rows)
    return [rows[place] for place in np.linspace(0, len(rows) - 1, number).round().astype(int)]


def chosen(names: Sequence[str], control: np.ndarray, useful: np.ndarray, seed: int) -> list[int]:
    """Indices of the samples of the list, in its order.

    Args:
      names: of each sample, families joined.
      control: difficulty for control of each.
      useful: whether each may be taken.
      seed: of the order.
    """
    random = np.random.default_rng(seed)
    members: dict[str, list[int]] = defaultdict(list)
    for place in np.argsort(control, kind="stable"):
        if useful[place]:
            members["+" if "+" in names[place] else names[place]].append(int(place))
    composed = spread(members.pop("+", []), round(COMPOSED * SIZE))
    number_of_singles = SIZE - len(composed)
    counts = {
        name: min(len(rows), number_of_singles // len(members)) for name, rows in members.items()
    }
    # Families with more samples make up for those with fewer, in turn.
    for name in sorted(members, key=lambda name: -len(members[name])) * SIZE:
        if sum(counts.values()) == number_of_singles:
            break
        counts[name] += counts[name] < len(members[name])
    queues = {name: spread(rows, counts[name]) for name, rows in members.items()}
    for rows in queues.values():
        random.shuffle(rows)
    random.shuffle(composed)
    singles: list[int] = []
    while any(queues.values()):
        for name in random.permutation(sorted(queues)):
            if queues[name]:
                singles.append(queues[name].pop())
    # Compositions stand at equal distances among the others.
    places = np.linspace(0, len(singles), len(composed), endpoint=False)
    keyed = [(float(place), 0, row) for place, row in zip(places, composed, strict=True)]
    keyed += [(float(place), 1, row) for place, row in enumerate(singles)]
    return [row for *_, row in sorted(keyed)]


def build(table: dict[str, list[Any]], name: str, seed: int) -> NoveltyList:
    """Build the list from a table of calibrated samples."""
    useful = np.array(table["degenerate"]) == ""
    held_out_families = held_out(seed)
    entries = []
    for row in chosen(table["name"], np.array(table["control"]), useful, seed):
        novelty = Novelty.from_json(json.loads(table["novelty"][row]))
        difficulties = (round(float(table[kind][row]), DIGITS) for kind in ("control", "detection"))
        split = not held_out_families.isdisjoint(novelty.families)
        entries.append(ListedNovelty(len(entries), novelty, split, *difficulties))
    return NoveltyList(name, tuple(entries), {"seed": seed, "held_out": sorted(held_out_families)})


def main() -> None:
    """Choose and write."""
    parser = argparse.ArgumentParser(description="Choose a list of novelties.")
    parser.add_argument("samples", type=Path, metavar="FILE", help="of benchmarks.novelty_space")
    parser.add_argument("--name", required=True, help="of the list, with its version")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of split and order (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    a = parser.parse_args()
    novelty_list = build(pq.read_table(a.samples).to_pydict(), a.name, a.seed)
    if a.out.exists():
        parser.error(f"{a.out} exists; a list is never edited: give it another name")
    novelty_list.write(a.out)
    entries, held = novelty_list.entries, novelty_list.part(split="held out")
    print(f"{len(entries)} novelties, {len(held)} held out")


if __name__ == "__main__":
    main()
