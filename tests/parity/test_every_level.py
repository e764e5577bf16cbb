"""Every level of the catalogue against recordings of the original, as docs/parity.md shows it.

The recordings of the other levels are read where they lie beside the checkout; without them these
tests are skipped and level 200 is covered by its own excerpt.
"""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import parity
from tests.conftest import SHARED, double_precision
from tests.parity.bounds import HIT, PAIR, SLIDING_HIT

FOLDER = SHARED / "oracle"
pytestmark = [
    pytest.mark.optimised,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recordings of all levels in {FOLDER}"),
]

EXACT = 1e-5  # float32 recordings of blocks at up to 100 m/s: one unit in the last place is 8e-6


@pytest.fixture(scope="module")
def cases() -> list[parity.Case]:
    with double_precision():
        return list(parity.cases(FOLDER))


@pytest.fixture(scope="module")
def errors(cases: list[parity.Case]) -> dict[tuple[int, str], dict[str, parity.TickErrors]]:
    with double_precision():
        return {(c.level, c.difficulty): parity.tick_errors(c) for c in cases}


def test_first_observations_equal_the_recordings(cases):
    with double_precision():
        worst = {(c.level, c.difficulty): parity.reset_error(c) for c in cases}
    assert len(worst) == 66  # 22 levels at three difficulties
    # Blocks on lines are first seen up to 400 m away, where a unit in the last place is 3e-5.
    bound = {case: 2e-5 if case[0] == 202 else 1e-6 for case in worst}
    assert {case: error for case, error in worst.items() if error > bound[case]} == {}


@pytest.mark.parametrize("kind", ["free", "wall", "pair"])
def test_ticks_that_touch_neither_cart_nor_pole_are_exact(errors, kind):
    by_case = {case: e[kind] for case, e in errors.items() if kind in e}
    assert len(by_case) >= 20
    assert sum(e.ticks for e in by_case.values()) >= 100
    for case, e in by_case.items():
        assert max(e.cart_velocity, e.pole_rate) < 5e-6, case
        assert e.block_velocity < (PAIR if kind == "pair" else 3 * EXACT), case


def test_hits_of_cart_and_pole_are_as_exact_as_the_original_repeats_itself(errors):
    by_case = {case: e["structure"] for case, e in errors.items() if "structure" in e}
    ticks = np.array([e.ticks for e in by_case.values()])
    large = np.array([e.large for e in by_case.values()])
    assert ticks.sum() >= 400
    assert (ticks * large).sum() / ticks.sum() < 0.06
    for case, e in by_case.items():
        bound = SLIDING_HIT if case[0] == 202 else HIT
        assert np.all(np.array([e.cart_velocity, e.pole_rate, e.block_velocity]) < bound), case


def test_whole_episodes_have_the_recorded_length(cases):
    same = parity.same_lengths(cases)
    level = np.repeat([c.level for c in cases], [len(c.recording.seeds) for c in cases])
    assert same.size == 396
    assert same[~np.isin(level, (108, 208))].mean() >= 0.95
    for spawning in (108, 208):
        assert same[level == spawning].mean() >= 0.9


def test_the_page_is_that_of_these_recordings(cases):
    page = (Path(__file__).parents[2] / "docs" / "parity.md").read_text()
    for case in cases:
        assert f"| {case.level} {case.difficulty} |" in page
