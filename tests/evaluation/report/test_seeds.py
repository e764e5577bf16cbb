"""The seed of the bootstrap reaches every part of every report, and changes no mean."""

from collections import defaultdict

import pytest

from evaluation.report import summarise_records
from evaluation.report.capabilities import capability_scores, lifetime_scores
from evaluation.report.compare import compare_records
from evaluation.report.novelty import summarise_novelty
from evaluation.sailon.analysis import analyse
from evaluation.train.curve import LearningCurve
from tests.evaluation import made_up

ONE, OTHER = made_up.run(0, 9, 7), made_up.run(1, 9, 7)
TRIALS, BASELINE = made_up.trials(0, (0,)), made_up.trials(1, (0,))


def scores(seed):
    scores = capability_scores([lifetime_scores(one) for one in (ONE, OTHER)], (), seed)
    return {name: of.to_json() for name, of in scores.items()}


REPORTS = {
    "run": lambda seed: summarise_records(ONE, seed=seed).to_json(),
    "novelty": lambda seed: summarise_novelty(ONE, seed).to_json(),
    "compare": lambda seed: compare_records(ONE, OTHER, seed=seed).to_json(),
    "score": scores,
    "trials": lambda seed: analyse(TRIALS, BASELINE, seed=seed, resamples=200).to_json(),
    "curve": lambda seed: LearningCurve.of(ONE, seed).rows(),
}


NESTED = ("lifelong", "novelty", "capabilities")
"""Parts of a report that have parts."""


def numbers(value, path=()):
    """Every number of a report with where it stands."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from numbers(inside, (*path, key))
    elif isinstance(value, list):
        for inside in value:
            yield from numbers(inside, (*path, "*"))
    elif isinstance(value, float):
        yield path, value


def is_end(path):
    """Whether a number is an end of an interval."""
    return path[-1] in ("low", "high") or "intervals" in path


@pytest.mark.parametrize("name", REPORTS)
def test_another_seed_gives_every_part_other_intervals(name):
    one, other = (list(numbers(REPORTS[name](seed))) for seed in (3, 4))
    moved = defaultdict(bool)
    for (path, a), (again, b) in zip(one, other, strict=True):
        assert path == again
        if is_end(path):
            moved[path[:2] if path[0] in NESTED else path[:1]] |= a != b
        else:
            assert a == b, path
    assert moved and all(moved.values()), dict(moved)
