"""Metrics straight from records: the same as from the log of each lifetime."""

from dataclasses import replace
from datetime import datetime

import jax
import numpy as np
import pytest

from evaluation.l2m.l2metrics import run
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.logs.export import write_l2logger
from evaluation.logs.texts import shortest
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS, TASK_METRICS
from evaluation.records import COLUMNS, Records
from evaluation.report.recorded import record_metrics
from evaluation.schedule import Block, Schedule

FLOATS = [name for name, kind in COLUMNS.items() if kind is np.float32]
LIFETIMES = 80  # more than one chunk, and not a multiple of it


def make_records(lifetimes, cut=()):
    """Records of a schedule of two variants; `cut` names (lifetime, episode) that were cut off."""
    plan = [("test", 0, 4), ("test", 1, 4), ("train", 0, 25), ("test", 0, 4), ("test", 1, 4)]
    plan += [("train", 1, 25), ("test", 0, 4), ("test", 1, 4), ("train", 0, 25), ("test", 0, 4)]
    plan += [("test", 1, 4), ("train", 1, 20), ("train", 0, 20), ("test", 1, 4)]
    parameters = ((), (("pole/length", 2.0),))
    blocks = tuple(
        Block(index, 1 + index, mode, "CartPole3D", parameters[variant], count, mode == "train")
        for index, (mode, variant, count) in enumerate(plan)
    )
    schedule = Schedule("random", blocks)
    rng = np.random.default_rng(5)
    shape = (lifetimes, schedule.num_episodes)
    rising = np.linspace(0.1, 0.8, shape[1])
    columns = {name: np.zeros(shape, kind) for name, kind in COLUMNS.items()}
    columns["performance"] = (rising + 0.1 * rng.random(shape)).astype(np.float32)
    columns["complete"] = np.ones(shape, bool)
    for lifetime, episode in cut:
        columns["complete"][lifetime, episode] = False
    return Records(schedule, columns, np.zeros(2, np.int32))


@pytest.fixture(scope="module")
def records():
    return make_records(LIFETIMES, cut=[(3, 20), (3, 21), (7, 0)])


@pytest.fixture(scope="module")
def metrics(records):
    return record_metrics(records)


@pytest.mark.parametrize("lifetime", [0, 3, 7, LIFETIMES - 1])
def test_the_same_as_from_a_log(records, lifetime, tmp_path):
    """Of the numbers as a log holds them: the shortest decimals of the records' float32."""
    written = {
        name: shortest(column.ravel()).reshape(column.shape) if name in FLOATS else column
        for name, column in records.columns.items()
    }
    metrics = record_metrics(replace(records, columns=written))
    log = write_l2logger(records, lifetime, tmp_path, datetime(2026, 1, 1))
    (analysis,) = run(log, LogSettings(perf_measure="performance"), tmp_path).analyses
    assert analysis.run.tasks == metrics.tasks
    results = metrics.results
    for name in LIFETIME_METRICS:
        ours, theirs = results.lifetime[name], analysis.results.lifetime[name]
        np.testing.assert_allclose(ours.values[lifetime], theirs.values[0], rtol=1e-12)
        assert ours.reasons[lifetime] == theirs.reasons[0]
    for name in TASK_METRICS:
        ours, theirs = results.tasks[name], analysis.results.tasks[name]
        np.testing.assert_allclose(ours.values[lifetime], theirs.values[0], rtol=1e-12)
        np.testing.assert_array_equal(ours.reasons[lifetime], theirs.reasons[0])
    for ours, theirs in zip(results.regimes, analysis.results.regimes, strict=True):
        np.testing.assert_allclose(ours.values[lifetime], theirs.values[0], rtol=1e-12)


@pytest.mark.parametrize("lifetime", [0, 3, LIFETIMES - 1])
def test_a_lifetime_alone_has_the_bits_that_it_has_among_others(records, metrics, lifetime):
    columns = {name: column[lifetime : lifetime + 1] for name, column in records.columns.items()}
    alone = record_metrics(Records(records.schedule, columns, records.novelty_levels))
    jax.tree.map(
        lambda one, all_: np.testing.assert_array_equal(one[0], all_[lifetime]),
        alone.results,
        metrics.results,
    )


def test_variants_may_be_joined():
    # Every lifetime has lost an episode, so nothing needs to be compiled.
    records = make_records(2, cut=[(0, 0), (1, 0)])
    metrics = record_metrics(records, aware=False)
    assert metrics.tasks == ("cartpole3d",)
    assert metrics.results.tasks["avg_train_perf"].values.shape == (2, 1)


def test_unknown_precisions_are_refused(records):
    with pytest.raises(ValueError, match="must be float64 or float32"):
        record_metrics(records, precision="float16")
