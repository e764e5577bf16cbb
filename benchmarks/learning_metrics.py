"""Numbers on what learners learned, from the records of their lifetimes."""

import argparse

import numpy as np
from scipy import stats

from benchmarks import experts
from evaluation.json_types import JsonObject
from evaluation.metrics.statistics import DEFAULT_LEVEL, wilson
from evaluation.records import Records
from evaluation.report import summarise_records


def mean_of(values: np.ndarray) -> dict[str, float]:
    """Mean over lifetimes with half its interval, Student's; half is 0 for a single lifetime."""
    half = 0.0
    if len(values) > 1:
        half = stats.t.ppf((1 + DEFAULT_LEVEL) / 2, len(values) - 1) * stats.sem(values)
    return {"mean": float(values.mean()), "half": float(half)}


def rate_of(called: np.ndarray) -> dict[str, float]:
    """Share of episodes (L, E) that end with an alarm, and its interval.

    Episodes are taken as independent, which those of one lifetime may not be: the interval over
    lifetimes is given too, and the wider of both is shown.
    """
    low, high = wilson(int(called.sum()), called.size)
    each = called.mean(axis=1)
    half = mean_of(each)["half"]
    mean = float(each.mean())
    low, high = min(low, max(0.0, mean - half)), max(high, min(1.0, mean + half))
    return {"mean": mean, "low": low, "high": high, "episodes": called.size}


def alarms(records: Records) -> np.ndarray:
    """Whether each episode ended with a detection, (L, E)."""
    columns = records.columns
    return columns["predicted_probability"] >= columns["threshold"]


def lifelong(
    records: Records, expert_records: experts.Experts, options: argparse.Namespace
) -> JsonObject:
    """Every metric of a syllabus, beside its experts."""
    schedule = records.schedule
    report = summarise_records(records, window=options.window).to_json()
    metrics = {
        **report["metrics"],
        **report["lifelong"]["metrics"],
        **experts.compare(records, expert_records, options.window, options.seed),
    }
    keys = ("mean", "low", "high", "lifetimes", "reason")
    return {
        "kind": "syllabus",
        "syllabus": schedule.name,
        "times": options.times,
        "window": options.window,
        "metrics": {
            metric: {key: entry[key] for key in keys if key in entry}
            for metric, entry in metrics.items()
        },
        "forgetting": forgetting(records).tolist(),
        "blocks": [
            {
                "phase": f"{b.phase}.{b.mode}",
                "task": b.task,
                "parameters": dict(b.parameters),
                **mean_of(values),
                "alarms": alarms(records)[:, schedule.episode_blocks() == b.index].mean().item(),
            }
            for b, values in zip(schedule.blocks, block_means(records).T, strict=True)
        ],
    }


def block_means(records: Records) -> np.ndarray:
    """Mean performance of each block, (L, B)."""
    values, counts = records.by_block("performance")
    return np.asarray(values.sum(axis=2) / counts)


def forgetting(records: Records) -> np.ndarray:
    """Mean loss of performance by the last test, over tasks with their parameters, (L,).

    The loss is the first test after the first training, less the last test.
    """
    blocks, means = records.schedule.blocks, block_means(records)
    lost = []
    for variant in records.schedule.variants:
        trained = [b.index for b in blocks if b.variant == variant and b.mode == "train"]
        if not trained:
            continue
        tests = [
            b.index
            for b in blocks
            if b.variant == variant and b.mode == "test" and b.index > trained[0]
        ]
        if len(tests) > 1:
            lost.append(means[:, tests[0]] - means[:, tests[-1]])
    return np.mean(lost, axis=0) if lost else np.zeros(len(means))
