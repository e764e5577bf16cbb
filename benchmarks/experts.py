"""Single-task experts of a syllabus, and learners beside them.

An expert is `ste`, trained on one task of the syllabus with its parameters for as many episodes as
the syllabus trains these. Every lifetime of the learner is compared with every lifetime of the
expert; intervals come from a bootstrap that draws both, since both are samples.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from evaluation.l2m import ste_sources
from evaluation.l2m.l2metrics.experts import training_curves
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.metrics.editions2019 import saturation
from evaluation.metrics.l2m.experts import ExpertCurve
from evaluation.metrics.transfer2019 import pair_transfer
from evaluation.records import Records
from evaluation.report.lifelong import common_ranges
from evaluation.report.recorded import record_metrics
from evaluation.schedule import Schedule

RESAMPLES = 2000
LEVEL = 0.95

_saturation = jax.jit(saturation, static_argnums=2)

Variant = tuple[str, tuple[tuple[str, Any], ...]]
Entry = dict[str, float | int | str | None]
Experts = Mapping[Variant, Records]


class ExpertPairs(NamedTuple):
    """A metric of each lifetime beside each expert.

    Attributes:
      values: (L, K, S), NaN where there is none.
      reason: why there is none, if there is none at all.
    """

    values: np.ndarray
    reason: str


def schedules(syllabus: Schedule) -> dict[Variant, Schedule]:
    """Schedule of the expert of each trained task and parameters: all of its training at once."""
    by_variant: dict[Variant, Schedule] = {}
    for block in syllabus.blocks:
        if block.mode == "train" and block.variant not in by_variant:
            same = (b for b in syllabus.blocks if b.mode == "train" and b.variant == block.variant)
            alone = replace(block, index=0, phase=1, count=sum(b.count for b in same))
            by_variant[block.variant] = Schedule(f"expert of {block.task}", (alone,))
    return by_variant


def train(syllabus: Schedule, play: Callable[[Schedule], Records]) -> dict[Variant, Records]:
    """Records of the experts; `play` plays a schedule with `ste`."""
    return {variant: play(schedule) for variant, schedule in schedules(syllabus).items()}


def compare(records: Records, experts: Experts, window: int, seed: int) -> dict[str, Entry]:
    """Every metric that needs experts, with its interval.

    Args:
      records: of L lifetimes of the syllabus.
      experts: from `train`.
      window: odd smoothing window of 2019, episodes.
      seed: of the bootstrap.
    """
    pairs = {**today(records, experts), **of_2019(records, experts, window)}
    return {name: entry(each, seed) for name, each in pairs.items()}


def today(records: Records, experts: Experts) -> dict[str, ExpertPairs]:
    """Relative performance and sample efficiency of l2metrics 3.1, tasks being the K."""
    curves: dict[str, list[ExpertCurve]] = {}
    for alone in experts.values():
        name, runs = ste_sources.runs_of_records(alone, syllabus=records.schedule)
        curves[name] = training_curves(runs, LogSettings(perf_measure="performance"), compat=False)
    results = record_metrics(
        records, experts=curves, ranges=common_ranges([records], "performance"), compiled=False
    ).results
    return {
        "ste_rel_perf": ExpertPairs(results.relative.values, "no task has an expert"),
        "sample_efficiency": ExpertPairs(
            results.efficiency.efficiency.values, "no task has an expert"
        ),
    }


def of_2019(records: Records, experts: Experts, window: int) -> dict[str, ExpertPairs]:
    """Transfer of the framework of 2019: the saturation value of tests over that of the expert."""
    schedule = records.schedule
    values, counts = records.by_block("performance")
    lifelong = np.asarray(_saturation(values, counts, window).values)  # (L, B)
    alone = {}
    for variant, each in experts.items():
        curves, lengths = each.by_block("performance")
        alone[variant] = np.asarray(_saturation(curves, lengths, window).values)[:, 0]  # (S,)
    directions = pair_transfer(schedule.blocks, "variant")
    pairs = {}
    for name, direction, none in (
        ("forward_transfer", directions.forward, "nothing is tested before it is trained"),
        ("reverse_transfer", directions.reverse, "nothing is tested after another training"),
    ):
        blocks = [
            block
            for block in schedule.blocks
            if direction.reasons[block.index] == 0 and block.variant in alone
        ]
        ratios = [lifelong[:, b.index, None] / alone[b.variant] for b in blocks]
        empty = np.empty((len(lifelong), 0, 1))
        pairs[name] = ExpertPairs(np.stack(ratios, axis=1) if ratios else empty, none)
    return pairs


def entry(pairs: ExpertPairs, seed: int) -> Entry:
    """Mean over lifetimes, experts and tasks with a percentile interval.

    Both lifetimes and experts are drawn anew in each resample. All tasks have the same weight, also
    if some of their pairs have no value.
    """
    lifetimes, _, runs = pairs.values.shape
    mask = np.isfinite(pairs.values)
    if not mask.any():
        return {"mean": None, "low": None, "high": None, "lifetimes": 0, "reason": pairs.reason}
    filled = np.where(mask, pairs.values, 0.0)
    generator = np.random.default_rng(seed)

    def mean(of_lifetimes: np.ndarray, of_runs: np.ndarray) -> float:
        total = np.einsum("l,lks,s->k", of_lifetimes, filled, of_runs)
        weight = np.einsum("l,lks,s->k", of_lifetimes, mask, of_runs)
        ratios = total[weight > 0] / weight[weight > 0]
        return float(ratios.mean()) if ratios.size else np.nan

    def drawn(size: int) -> np.ndarray:
        return generator.multinomial(size, np.full(size, 1 / size)).astype(float)

    means = [mean(drawn(lifetimes), drawn(runs)) for _ in range(RESAMPLES)]
    # A resample may draw none of the pairs that have a value.
    low, high = np.nanquantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    centre = mean(np.ones(lifetimes), np.ones(runs))
    return {"mean": centre, "low": float(low), "high": float(high), "lifetimes": lifetimes}
