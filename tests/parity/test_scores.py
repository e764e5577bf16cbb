"""The order of the scores, which differs from theirs first when a force or a contact is wrong."""

import numpy as np
import pytest

from benchmarks import scores
from benchmarks.scores import Gap

pytestmark = pytest.mark.optimised

EPISODES = 2000
STACKED_EPISODES = 600  # of levels with many blocks, which take longer


def test_a_gap_beyond_its_interval_rises_and_no_other():
    low, high = np.tile([0.2, 0.4], 50), np.tile([0.3, 0.5], 50)
    gap = Gap.between(low, high)
    # Standard errors of 0.1/sqrt(99), twice in quadrature.
    assert gap.mean == pytest.approx(0.1)
    assert gap.half == pytest.approx(1.96 * 0.1 * np.sqrt(2 / 99))
    assert gap.rises
    assert not Gap.between(high, low).rises
    assert not Gap.between(low, low + 0.02).rises
    assert str(gap) == "+0.100 ± 0.028"


def test_gaps_are_those_of_neighbours_that_are_both_there():
    scored = {cell: np.array([0.1, 0.2]) for cell in ((203, "hard"), (203, "easy"), (200, "easy"))}
    assert list(scores.gaps(scored)) == [((203, "easy"), (200, "easy"))]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.nightly
def test_harder_levels_score_lower_as_in_the_original():
    cells = {cell for chain in scores.RISING for cell in chain}
    performances = {
        cell: scores.performances(
            "pd", cell, STACKED_EPISODES if cell[0] == 208 else EPISODES, seed=2
        )
        for cell in cells
    }
    gaps = scores.gaps(performances)
    assert len(gaps) == 9
    assert {pair: str(gap) for pair, gap in gaps.items() if not gap.rises} == {}
