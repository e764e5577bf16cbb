"""Summaries as plain JSON values; a number that is missing is null with its reason beside it."""

from typing import Any

import numpy as np

from evaluation.metrics import Numbers, Reason, Summary


def entry_of(summary: Summary, index: Any) -> dict[str, Any]:
    """Return one place of a summary as JSON values, each missing number with its reason."""
    entry: dict[str, Any] = {
        name: number(getattr(summary, name)[index]) for name in ("mean", "low", "high", "std")
    }
    count = int(summary.count[index])
    entry |= {"lifetimes": count}
    reason, missing = (Reason(int(r[index])) for r in (summary.reasons, summary.missing))
    if reason is not Reason.NONE:
        # The lifetimes' own reason says more than "no lifetime has a value".
        entry["reason"] = (
            missing if count == 0 and missing is not Reason.NONE else reason
        ).sentence
    if 0 < count < summary.lifetimes:
        entry["missing"] = {"lifetimes": summary.lifetimes - count, "reason": missing.sentence}
    entry["statistics"] = {
        name: _statistic(estimate, index)
        for name, estimate in summary.estimates.items()
        if name != "mean"  # which stands above
    }
    return entry


def _statistic(estimate: Numbers, index: Any) -> dict[str, Any]:
    """One statistic with its interval as JSON values."""
    parts = {"value": estimate.values, "low": estimate.low, "high": estimate.high}
    entry: dict[str, Any] = {name: number(np.asarray(part)[index]) for name, part in parts.items()}
    reason = Reason(int(estimate.reasons[index]))
    return entry if reason is Reason.NONE else entry | {"reason": reason.sentence}


def number(value: Any) -> float | None:
    """Return a JSON number, or None for what is missing."""
    return float(value) if np.isfinite(value) else None
