"""The seed of the bootstrap reaches every part of every report, and changes no mean."""

from collections import defaultdict

import numpy as np
import pytest

from evaluation.records import COLUMNS, Records
from evaluation.report import summarise_records
from evaluation.report.capabilities import capability_scores, lifetime_scores
from evaluation.report.compare import compare_records
from evaluation.report.novelty import summarise_novelty
from evaluation.report.transfer import between_tasks
from evaluation.sailon import experiment
from evaluation.sailon.analysis import analyse
from evaluation.sailon.results import Results, planned
from evaluation.sailon.settings import Settings
from evaluation.schedule import Block, Schedule
from evaluation.train.curve import Curve

LEVEL = (("novelty/difficulty", "hard"), ("novelty/level", 203))
LIFETIMES = 9
SCHEDULE = Schedule(
    "seeds",
    tuple(
        Block(index, 1 + index // 2, mode, "CartPole3D", parameters, 12, mode == "train")
        for index, (mode, parameters) in enumerate(
            [
                ("test", ()),
                ("train", ()),
                ("test", ()),
                ("train", LEVEL),
                ("test", ()),
                ("test", LEVEL),
                ("train", ()),
                ("test", ()),
                ("test", LEVEL),
            ]
        )
    ),
)


def run(seed):
    """Records of lifetimes that learn and say something of novelty, each by itself."""
    random = np.random.default_rng(seed)
    shape = LIFETIMES, SCHEDULE.num_episodes
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    rise = 0.4 * (1 - np.exp(-np.arange(shape[1]) / 30))
    noise = random.uniform(0, 0.15, shape) + random.uniform(0.1, 0.4, (LIFETIMES, 1))
    columns["performance"][:] = rise + noise
    columns["reward"][:] = columns["length"][:] = 200 * columns["performance"]
    columns["complete"][:] = True
    columns["predicted_probability"][:] = random.uniform(0, 1, shape)
    columns["threshold"][:] = 0.6
    columns["predicted_level"][:] = random.integers(0, 4, shape)
    return Records(
        SCHEDULE, columns, np.array([0, 3], np.int32), metadata={"agent": "made up", "seed": 0}
    )


def trials(seed):
    """Results of trials that an agent plays well or badly."""
    random = np.random.default_rng(seed)
    drawn = experiment.generate(
        Settings(
            novelty=(200, 203),
            difficulty=("hard",),
            novelty_visibility=(0,),
            trials=8,
            testing_episodes=20,
            pre_novel_episodes=8,
            testing_novelty_p2=1.0,
        )
    )
    rows = planned(drawn)
    count = len(rows["performance"])
    rows["performance"][:] = random.uniform(0.2, 1, count)
    rows["novelty_probability"][:] = random.uniform(0, 1, count)
    rows["novelty_threshold"][:] = 0.9
    rows["complete"][:] = True
    return Results(rows, drawn, {"agent": "made up"})


ONE, OTHER = run(0), run(1)
TRIALS, BASELINE = trials(0), trials(1)


def scores(seed):
    found = capability_scores([lifetime_scores(one) for one in (ONE, OTHER)], (), seed)
    return {name: of.to_json() for name, of in found.items()}


REPORTS = {
    "run": lambda seed: summarise_records(ONE, seed=seed).to_json(),
    "novelty": lambda seed: summarise_novelty(ONE, seed).to_json(),
    "compare": lambda seed: compare_records(ONE, OTHER, seed=seed).to_json(),
    "compare paired": lambda seed: compare_records(ONE, OTHER, seed=seed, paired=True).to_json(),
    "score": scores,
    "transfer": lambda seed: [one.to_json() for one in between_tasks([ONE, OTHER], seed=seed)],
    "trials": lambda seed: analyse(TRIALS, BASELINE, seed=seed, resamples=200).to_json(),
    "curve": lambda seed: Curve.of(ONE, seed).rows(),
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
