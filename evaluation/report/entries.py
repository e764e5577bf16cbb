"""Summaries as plain JSON values; a number that is missing is null with its reason beside it."""

from typing import Any

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics import Numbers, Reason, Summary
from evaluation.metrics.reasons import sentence_of

Index = int | tuple[int, ...]
"""Place of one number in an array."""


def entry_of(summary: Summary, index: Index) -> JsonObject:
    """Return the numbers of a summary at one index as JSON, each missing one with its reason."""
    entry: JsonObject = {
        name: number(getattr(summary, name)[index]) for name in ("mean", "low", "high", "std")
    }
    count = int(summary.count[index])
    entry |= {"lifetimes": count}
    reason, missing = summary.reasons[index], summary.missing[index]
    if reason != Reason.NONE:
        # The lifetimes' own reason says more than "no lifetime has a value".
        entry["reason"] = sentence_of(missing if count == 0 and missing else reason)
    if 0 < count < summary.lifetimes:
        entry["missing"] = {"lifetimes": summary.lifetimes - count, "reason": sentence_of(missing)}
    entry["statistics"] = {
        name: _statistic(estimate, index)
        for name, estimate in summary.estimates.items()
        if name != "mean"  # it is a field of its own
    }
    return entry


def _statistic(estimate: Numbers, index: Index) -> JsonObject:
    """One statistic with its interval as JSON values."""
    parts = {"value": estimate.values, "low": estimate.low, "high": estimate.high}
    entry: JsonObject = {name: number(np.asarray(part)[index]) for name, part in parts.items()}
    reason = sentence_of(np.asarray(estimate.reasons)[index])
    return entry | ({"reason": reason} if reason else {})


def number(value: Any) -> float | None:
    """Return a JSON number, or None for one that is not finite."""
    return float(value) if np.isfinite(value) else None
