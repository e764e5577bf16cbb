"""Samples of the space of novelties in live PyBullet: one tick of ours beside each of its ticks.

    python -m tests.parity.bullet_novelties --samples 1000

plays an episode of each sample in PyBullet, with `pd`, from the start of another seed of the
original's level 200, and prints the largest errors by class of contact and by family.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from benchmarks import parity
from jaxsim import novelty
from jaxsim.novelty import Novelty
from tests.conftest import double_precision
from tests.oracles.recordings import KINDS
from tests.parity import bullet_episodes

FAMILIES = (
    "gravity",
    "drag",
    "fall_angle",
    "room_width",
    "room_ceiling",
    "room_floor",
    "wall_bounce",
    "wind",
    "cart_mass",
    "cart_bounce",
    "pole_mass",
    "pole_length",
    "pole_com",
    "pole_bounce",
    "push_size",
    "push_sign",
    "block_mass",
    "block_size",
    "block_weight",
    "block_bounce",
    "pull_blocks",
    "pull_cart",
    "pull_origin",
)
"""Families that the scene can express. The others change what sensors report, what pushes do on
their way, or what starts, new blocks and forces are drawn from; and free blocks with friction spin
in PyBullet, which ours do not."""
COMPOSED = ("gravity+wall_bounce", "drag+block_mass", "pole_length+push_size", "wind+cart_mass")
FIELDS = ("cart_vel", "pole_tilt_rate", "block_vel")
FIRST_SEED = 5000

Errors = dict[str, np.ndarray]


def drawn(number: int, seed: int) -> tuple[Novelty, ...]:
    """Samples, equally many of each family and composition."""
    return novelty.sample(jax.random.key(seed), (*FAMILIES, *COMPOSED), number)


def compared(samples: Sequence[Novelty], folder: Path) -> Iterator[tuple[np.ndarray, Errors]]:
    """Play an episode of each sample; yield the class of each tick and its errors by field."""
    for place, one in enumerate(samples):
        changes = dict(one.parameters)
        with double_precision():
            seeds = [FIRST_SEED + place]
            case = bullet_episodes.play(200, "easy", seeds, folder, changes=changes)
            errors = parity.field_errors(case)
        yield case.recording.kind[case.recording.steps], errors


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="Compare samples with live PyBullet.")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="(1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the samples (0)")
    a = parser.parse_args()
    samples = drawn(a.samples, a.seed)
    worst: dict[tuple[str, str], np.ndarray] = {}
    ticks: dict[str, int] = dict.fromkeys(KINDS, 0)
    with tempfile.TemporaryDirectory() as folder:
        for one, (kinds, errors) in zip(samples, compared(samples, Path(folder)), strict=True):
            for kind in set(kinds):
                ticks[kind] += int((kinds == kind).sum())
                largest = np.array([errors[field][kinds == kind].max() for field in FIELDS])
                known = worst.get((one.name, kind), np.zeros(len(FIELDS)))
                worst[one.name, kind] = np.maximum(known, largest)
    print(f"{a.samples} samples; largest errors of {', '.join(FIELDS)}")
    for kind in KINDS:
        rows = [numbers for (_, other), numbers in worst.items() if other == kind]
        text = " ".join(f"{number:.1e}" for number in np.max(rows, axis=0)) if rows else "-"
        print(f"{kind}: {ticks[kind]} ticks, {text}")
    for (name, kind), numbers in sorted(worst.items()):
        print(f"  {name}, {kind}: " + " ".join(f"{number:.1e}" for number in numbers))


if __name__ == "__main__":
    main()
