"""Numbers of one run as plain JSON values, in the schema of l2metrics 3.1."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.json_types import JsonObject
from evaluation.l2m.l2metrics.analysis import Analysis
from evaluation.l2m.l2metrics.runs import Regimes, shown_params
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS, LifetimeMetrics
from evaluation.metrics.l2m.regimes import ROUNDING, RegimeNumbers
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.reasons import Reason, sentence_of

DIFFERENCE: Final = "differs_from_l2metrics_3.1"
"""Key of the metrics whose numbers differ from l2metrics 3.1."""

TOLERANCE: Final = 1e-9
"""Relative difference up to which two numbers count as equal."""

_CENTRED: Final = (
    "a smoothing window of odd length is centred; in l2metrics 3.1 it lags by one episode"
)
_TRANSFER: Final = (
    "transfer is attributed to every task trained between two tests, but not if the tested task "
    "was trained itself, and all values of a pair count; l2metrics 3.1 attributes it to the task "
    "that appeared last in the lifetime, includes training of the tested task, and uses only the "
    "first value of each pair"
)
_FLAT: Final = (
    "values of a task that differ by rounding alone count as constant; l2metrics 3.1 stretches the "
    "rounding over the whole range"
)
_SPLIT: Final = (
    "other task parameters begin a regime; in l2metrics 3.1 they are an error of the run"
)
_BECAUSE: Final = {
    "forward_transfer": _TRANSFER,
    "backward_transfer": _TRANSFER,
    "sample_efficiency": "saturation is that of the curve; l2metrics 3.1 smooths the curve again",
}


def selected_metrics(settings: LogSettings) -> list[str]:
    """Names of the lifetime metrics of the settings, in the order of the files."""
    excluded = {
        "mrlep": "mrtlp",
        "mrtlp": "mrlep",
        "ratio": "contrast",
        "contrast": "ratio",
    }
    endings = [
        excluded[method]
        for method in (settings.maintenance_method, settings.transfer_method)
        if method != "both"
    ]
    return [name for name in LIFETIME_METRICS if not name.endswith(tuple(endings))]


def lifetime_values(analysis: Analysis) -> dict[str, float | None]:
    """Name -> lifetime number, None if missing; custom metrics are last."""
    results, row = analysis.results, analysis.row
    values = {
        name: json_number(results.lifetime[name].values[row])
        for name in selected_metrics(analysis.settings)
    }
    average = np.median if analysis.settings.aggregation_method == "median" else np.mean
    for name, numbers in analysis.extra_tasks.items():
        finite = numbers.values[np.isfinite(numbers.values)]
        values[name] = json_number(average(finite)) if len(finite) else None
    values |= {name: json_number(n.values) for name, n in analysis.extra_lifetime.items()}
    return values


def run_json(analysis: Analysis) -> JsonObject:
    """All values of one run, with the reasons of nulls and the differences from l2metrics 3.1."""
    run = analysis.run
    regimes = run.regimes
    train_rows = int(regimes.counts[regimes.train].sum())
    extremes = [
        np.asarray(end[analysis.row, : len(run.tasks)]) for end in analysis.results.extremes
    ]
    tasks = {task: _task_json(analysis, index) for index, task in enumerate(run.tasks)}
    lifetime = lifetime_values(analysis)
    content: JsonObject = {
        **lifetime,
        "run_id": run.name,
        **run.scenario,
        "metrics_column": analysis.settings.perf_measure,
        "min": json_number(np.fmin.reduce(extremes[0])),
        "max": json_number(np.fmax.reduce(extremes[1])),
        "num_lx": train_rows,
        "num_ex": int(regimes.counts.sum()) - train_rows,
        "runtime": run.runtime,
        "normalization_data_range": _range_json(analysis),
        "task_metrics": tasks,
        "why": _why(analysis, lifetime, tasks),
        "warnings": list(run.warnings),
    }
    if not analysis.settings.is_compat:
        content[DIFFERENCE] = _differences(analysis)
    return content


def json_number(value: float) -> float | None:
    """A number for strict JSON; None if it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None


def _range_json(analysis: Analysis) -> dict[str, dict[str, float | None]] | None:
    if analysis.settings.normalization_method == "none":
        return None
    low, high = _ends(analysis)
    return {
        task: {"min": json_number(low[index]), "max": json_number(high[index])}
        for index, task in enumerate(analysis.run.tasks)
    }


def _ends(analysis: Analysis) -> tuple[np.ndarray, np.ndarray]:
    """(K,) lowest and highest value of each task, the range of normalisation."""
    low, high = (
        np.broadcast_to(end, (len(analysis.raw), end.shape[-1]))[analysis.row]
        for end in analysis.processed.ranges
    )
    return low, high


def _task_json(analysis: Analysis, task: int) -> JsonObject:
    results, row, settings = analysis.results, analysis.row, analysis.settings
    regimes = analysis.run.regimes
    places = np.flatnonzero(regimes.tasks == task)
    train, counted = regimes.train[places], analysis.structure.counted[row, places]

    def listed(numbers: Numbers, mask: np.ndarray | slice = slice(None)) -> list[float]:
        values = numbers.values[row, places[mask]]
        return [value for value in values.tolist() if math.isfinite(value)]

    content: JsonObject = {}
    for name in selected_metrics(settings):
        direction, _, kind = name.partition("_transfer_")
        if kind:
            content[name] = _transfers(analysis, task, direction, kind)
        else:
            content[name] = json_number(results.tasks[name].values[row, task])
    content |= {name: json_number(n.values[task]) for name, n in analysis.extra_tasks.items()}
    content["recovery_times"] = _recoveries(analysis, listed(results.recovery))
    content["avg_train_perf_vals"] = listed(results.regimes.avg_perf, train)
    content["avg_eval_perf_vals"] = listed(results.regimes.avg_perf, ~train & counted)
    for kind, numbers in (("mrlep", results.mrlep), ("mrtlp", results.mrtlp)):
        if settings.maintenance_method in (kind, "both"):
            content[f"maintenance_val_{kind}"] = _sequences(numbers.values[row, places])
    content |= _expert_lists(analysis, task)
    low, high = (end[row, task] for end in results.extremes)
    content |= {
        "min": json_number(low),
        "max": json_number(high),
        "num_lx": int(regimes.counts[places][train].sum()),
        "num_ex": int(regimes.counts[places][~train].sum()),
    }
    return content


def _recoveries(analysis: Analysis, times: list[float]) -> list[float]:
    """Recovery times of a task; l2metrics 3.1 lists none if the whole lifetime has only one."""
    row = analysis.results.recovery.values[analysis.row]
    too_few = int(np.isfinite(row).sum()) < 2
    return [] if too_few and analysis.settings.is_compat else times


def _sequences(values: Any) -> list[list[float]]:
    """Numbers of the task's regimes, one list per sequence without a missing number."""
    sequences: list[list[float]] = []
    missing = True
    for value in values.tolist():
        if math.isnan(value):
            missing = True
            continue
        if missing:
            sequences.append([])
        sequences[-1].append(value)
        missing = False
    return sequences


def _transfers(
    analysis: Analysis, task: int, direction: str, kind: str
) -> dict[str, list[float | None]]:
    """Task -> transfer to it from training `task`, in the order of its tests."""
    transfer = analysis.results.transfer
    values = getattr(transfer, kind).values[analysis.row]
    attributed = getattr(transfer, direction)
    attributed = np.broadcast_to(attributed, (len(analysis.raw), *attributed.shape[1:]))[
        analysis.row, :, task
    ]
    listed = np.isfinite(values)
    if analysis.settings.is_compat:
        # l2metrics 3.1 also lists the NaN of a test without a number.
        reasons = getattr(transfer, kind).reasons[analysis.row]
        listed = listed | (reasons == Reason.NON_FINITE_VALUE)
    transfers: dict[str, list[float | None]] = {}
    for place in np.flatnonzero(attributed & listed).tolist():
        other = analysis.run.tasks[analysis.run.regimes.tasks[place]]
        transfers.setdefault(other, []).append(json_number(values[place]))
    return transfers


def _expert_lists(analysis: Analysis, task: int) -> JsonObject:
    results, row = analysis.results, analysis.row
    parts = results.efficiency

    def listed(numbers: Numbers) -> list[float]:
        values = numbers.values[row, task].tolist()
        return [value for value in values if math.isfinite(value)]

    return {
        "ste_rel_perf_vals": listed(results.relative),
        "ste_saturation_vals": listed(parts.expert_saturation),
        "ste_exp_to_sat_vals": [int(value) for value in listed(parts.expert_exp_to_sat)],
        "se_saturation_vals": listed(parts.saturations),
        "se_exp_to_sat_vals": listed(parts.speeds),
        "sample_efficiency_vals": listed(parts.efficiency),
        "se_task_saturation": json_number(parts.saturation.values[row, task]),
        "se_task_exp_to_sat": json_number(parts.exp_to_sat.values[row, task]),
    }


def _why(
    analysis: Analysis, lifetime: dict[str, float | None], tasks: dict[str, JsonObject]
) -> JsonObject:
    """The reasons of all nulls of the lifetime and of its tasks."""
    results, row = analysis.results, analysis.row
    whole = {
        name: _sentence(results.lifetime[name].reasons[row], bool(analysis.saturation_only))
        if name in results.lifetime
        else sentence_of(
            analysis.extra_lifetime[name].reasons
            if name in analysis.extra_lifetime
            else Reason.NO_TASK_HAS_VALUE
        )
        for name, value in lifetime.items()
        if value is None
    }
    parts = analysis.results.efficiency
    reasons = {name: numbers.reasons for name, numbers in results.tasks.items()}
    reasons |= {
        "se_task_saturation": parts.saturation.reasons,
        "se_task_exp_to_sat": parts.exp_to_sat.reasons,
    }
    by_task: dict[str, dict[str, str]] = {}
    for index, (task, content) in enumerate(tasks.items()):
        missing = {
            name: _sentence(reasons[name][row, index], task in analysis.saturation_only)
            for name, value in content.items()
            if value is None and name in reasons
        }
        missing |= {
            name: sentence_of(n.reasons[index])
            for name, n in analysis.extra_tasks.items()
            if content[name] is None
        }
        missing |= {
            name: _no_transfer(analysis).sentence for name, value in content.items() if value == {}
        }
        by_task |= {task: missing} if missing else {}
    return {**whole, **({"task_metrics": by_task} if by_task else {})}


def _sentence(code: int, saturation_only: bool) -> str:
    """A reason in words; without an expert's curve it depends on the saturation value."""
    reason = Reason(int(code))
    if reason is Reason.NO_STE and saturation_only:
        reason = Reason.NO_STE_CURVE
    return reason.sentence


def _no_transfer(analysis: Analysis) -> Reason:
    size = len(analysis.run.regimes.counts)
    own_training = analysis.structure.own_training[analysis.row, :size].any()
    is_compat = analysis.settings.is_compat
    return Reason.OWN_TRAINING if own_training and not is_compat else Reason.NO_TRANSFER


def _differences(analysis: Analysis) -> JsonObject:
    """The metrics that differ from l2metrics 3.1, with both numbers and the reason."""
    metrics: JsonObject = {}
    for name in selected_metrics(analysis.settings):
        ours, theirs = (
            json_number(results.lifetime[name].values[analysis.row])
            for results in (analysis.results, analysis.reference)
            if results is not None
        )
        if not _same(ours, theirs):
            metrics[name] = {"here": ours, "there": theirs, "because": _because(name, analysis)}
            if "_transfer_" in name:
                metrics[name] |= _own_training(analysis)
    columns = _regime_differences(analysis, analysis.reference)
    if _split_by_params(analysis.run.regimes):
        columns["regime_num"] = {"because": _SPLIT}
    return {**metrics, **({"regimes": columns} if columns else {})}


def _split_by_params(regimes: Regimes) -> bool:
    """Whether two neighbouring regimes differ only in the task's parameters."""
    same = np.ones(len(regimes.counts) - 1, bool)
    for column in (regimes.block_num, regimes.train, regimes.sleep, regimes.tasks):
        same &= column[1:] == column[:-1]
    return bool(same.any())


def _regime_differences(analysis: Analysis, reference: LifetimeMetrics | None) -> JsonObject:
    """Column -> number of regimes that differ, and the reason."""
    size, columns = len(analysis.run.regimes.counts), {}
    if reference is None:
        return {}
    for name in RegimeNumbers._fields:
        ours, theirs = (
            getattr(results.regimes, name).values[analysis.row, :size]
            for results in (analysis.results, reference)
        )
        with np.errstate(invalid="ignore"):
            same = np.isclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        if not same.all():
            columns[name] = {
                "regimes_that_differ": int((~same).sum()),
                "because": _BECAUSE["sample_efficiency"]
                if "sat" in name
                else _because(name, analysis),
            }
    return columns


def _own_training(analysis: Analysis) -> dict[str, list[int]]:
    """The test regimes whose task itself was trained since its last test."""
    size = len(analysis.run.regimes.counts)
    mask = analysis.structure.own_training & ~analysis.structure.train
    places = np.flatnonzero(mask[analysis.row, :size])
    return {"own_training_before_regimes": places.tolist()} if len(places) else {}


def _because(name: str, analysis: Analysis) -> str:
    reasons = [text for start, text in _BECAUSE.items() if name.startswith(start)]
    if _lags(analysis):
        reasons.append(_CENTRED)
    if _has_flat_task(analysis):
        reasons.append(_FLAT)
    if any(analysis.settings.noise):
        reasons.append(
            "noise is added before the curves are processed; l2metrics 3.1 adds it after"
        )
    return "; ".join(reasons or ["values that differ by rounding alone count as equal"])


def _lags(analysis: Analysis) -> bool:
    """Whether a curve of the run or of its experts is smoothed by a window of odd length."""
    theirs = analysis.reference_curves
    if theirs is None or any(analysis.settings.noise):
        window = analysis.settings.window_length
        lengths = analysis.run.regimes.counts // 5 if window is None else np.array([window])
        return analysis.settings.smoothing_method != "none" and bool((lengths % 2 == 1).any())
    ours, row = analysis.processed, analysis.row
    if not _all_close(analysis.rows(ours.smoothed), analysis.rows(theirs.smoothed)):
        return True
    # Only normalised experts are available; a task without spread changes them too.
    same = _all_close(ours.experts.values[row], theirs.experts.values[row])
    return not same and not _has_flat_task(analysis)


def _all_close(one: npt.ArrayLike, other: npt.ArrayLike) -> bool:
    return bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


def _has_flat_task(analysis: Analysis) -> bool:
    """Whether the values of a task differ by rounding alone."""
    if analysis.settings.normalization_method == "none":
        return False
    low, high = _ends(analysis)
    scale = np.maximum(np.abs(low), np.abs(high))
    return bool(((high > low) & (high - low <= ROUNDING * np.finfo(np.float64).eps * scale)).any())


def _same(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def regime_rows(analysis: Analysis) -> Iterator[JsonObject]:
    """Yield one mapping per regime, the columns of the regime table; None for an empty cell."""
    run, regimes = analysis.run, analysis.run.regimes
    params = shown_params(regimes) if analysis.settings.variant_mode == "aware" else None
    numbers = {
        name: getattr(analysis.results.regimes, name).values[analysis.row].tolist()
        for name in RegimeNumbers._fields
    }
    extra = {name: n.values.tolist() for name, n in analysis.extra_regimes.items()}
    for place in range(len(regimes.counts)):
        row: JsonObject = {
            "block_num": int(regimes.block_num[place]),
            "block_type": "train" if regimes.train[place] else "test",
            "block_subtype": "sleep" if regimes.sleep[place] else "wake",
            "task_name": run.tasks[regimes.tasks[place]],
            "regime_num": place,
        }
        if params is not None:
            row["task_params"] = params[place]
        for name, values in (numbers | extra).items():
            value = json_number(values[place])
            whole = name.startswith("exp_to") and value is not None
            row[name] = int(value) if whole and value is not None else value
        row["run_id"] = run.name
        yield row
