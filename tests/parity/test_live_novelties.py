"""Samples of the space of novelties beside live PyBullet, one tick from each of its states."""

import numpy as np
import pytest

pytest.importorskip("pybullet", reason="needs the extra jaxsim-novelty[parity]")

from tests.parity import bullet_novelties
from tests.parity.bounds import HIT, PAIR

pytestmark = pytest.mark.optimised

SAMPLES = 108  # four of each entry
# What wind makes of a block's speed, some 1e5 m/s^2, is rounded to that much at a wall.
EXACT, WALL = 1e-12, 1e-9


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """(name, classes of the ticks, errors by field) of each sample."""
    samples = bullet_novelties.drawn(SAMPLES, seed=1)
    errors = bullet_novelties.compared(samples, tmp_path_factory.mktemp("bullet"))
    return [(one.name, *rest) for one, rest in zip(samples, errors, strict=True)]


def worst(compared, kind):
    """Largest error of each field by sample, in ticks of a class, and their number."""
    numbers, ticks = {}, 0
    for place, (name, kinds, errors) in enumerate(compared):
        inside = kinds == kind
        if inside.any():
            ticks += int(inside.sum())
            numbers[place, name] = {f: errors[f][inside].max() for f in bullet_novelties.FIELDS}
    return numbers, ticks


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "bound", "least"), [("free", EXACT, 8000), ("wall", WALL, 500), ("pair", PAIR, 40)]
)
def test_ticks_without_a_hit_are_exact(compared, kind, bound, least):
    numbers, ticks = worst(compared, kind)
    assert ticks >= least
    assert {k: e for k, e in numbers.items() if not max(e.values()) <= bound} == {}


@pytest.mark.slow
@pytest.mark.long
def test_hits_are_as_near_as_those_of_levels(compared):
    numbers, ticks = worst(compared, "structure")
    assert ticks >= 50
    # Most hits are within the bounds of the catalogue; lighter bodies take more from one error.
    within = [
        all(e[f] <= bound for f, bound in zip(bullet_novelties.FIELDS, HIT, strict=True))
        for e in numbers.values()
    ]
    assert np.mean(within) >= 0.9
    assert max(max(e.values()) for e in numbers.values()) < 0.2
