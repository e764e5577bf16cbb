"""Metrics as rows of one table: those of this package and custom ones.

A custom metric is a function of padded arrays of one lifetime, with a row:

```python
from evaluation.metrics import metric


@metric(text="mean of the last tenth of a block", direction="higher")
def last_tenth(values, counts):
    start = counts - np.maximum(counts // 10, 1)
    inside = np.arange(values.shape[-1]) >= start[:, None]
    return np.nanmean(np.where(inside, values, np.nan), axis=-1)
```

Its parameters are names of fields of `Lifetime`. With the scope "block" it returns (B,) numbers,
with "task" (K,), with "lifetime" one number. NaN needs a reason: return a pair (numbers, sentence)
or a `Numbers`, or set ``missing`` in the row.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from evaluation.metrics.numerics import Numbers, masked_mean
from evaluation.metrics.reasons import Reason, code_of

Scope: TypeAlias = Literal["block", "task", "lifetime", "trial"]
Direction: TypeAlias = Literal["higher", "lower", "none"]
Floats: TypeAlias = npt.NDArray[np.float64]
ArrayFunction: TypeAlias = Callable[..., Any]
"""A metric as a function over padded arrays."""
F = TypeVar("F", bound=ArrayFunction)

SCOPES: Final = get_args(Scope)
USERS_SCOPES: Final = ("block", "task", "lifetime")
"""Scopes of custom metrics; they see a trial as a lifetime of two blocks."""


class MetricError(ValueError):
    """A custom metric cannot be computed; the message names it."""


@dataclass(frozen=True)
class MetricRow:
    """One metric.

    Attributes:
      name: key in JSON and tables.
      kernel: the function that computes it, or its place, "module:name" below
        `evaluation.metrics`.
      scope: what has one number: a block, a task, a lifetime or a trial.
      text: description in one line.
      needs: inputs beside performance: blocks, tasks, experts, predictions, baseline.
      direction: whether higher or lower values are better.
      unit: of its numbers; "performance" for the unit of the measure, "" for a pure number.
      source: where it is defined.
      heading: in tables; the name if empty.
      capability: core capability of the 2019 document that it measures, "" for none.
      family: group of metrics that are computed and reported together: 2019, 3.1, predictions,
        experiment, own.
      missing: why a number that is NaN is missing, for custom metrics.
      bounds: limits of its numbers by definition; for the unit "performance" they hold if
        performance is between 0 and 1, for the family 3.1 if it lies within the range that is
        normalised.
    """

    name: str
    kernel: str | ArrayFunction
    scope: Scope
    text: str
    needs: tuple[str, ...] = ()
    direction: Direction = "higher"
    unit: str = ""
    source: str = ""
    heading: str = ""
    capability: str = ""
    family: str = "own"
    missing: str = ""
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @property
    def title(self) -> str:
        """Heading in tables."""
        return self.heading or self.name


class Lifetime(NamedTuple):
    """Fields that a custom metric may take: one lifetime of B blocks of at most T episodes.

    Attributes:
      values: (B, T) performance, NaN behind each block's end.
      counts: (B,) episodes of each block.
      train: (B,) whether a block is a training block.
      tasks: (B,) position of each block's task in ``task_names``.
      task_names: K names.
      probability: (B, T) predicted probability of novelty; None if the agent does not predict.
      threshold: (B, T) probability from which the agent reports novelty.
      level: (B, T) predicted level.
      novel: (B,) whether the world of a block differs from the unchanged one.
      baseline: (B, T) performance of the baseline of an experiment.
      processed: (B, T) performance after smoothing, clamping and normalising; only for logs.
      experiences: (B, T) number of each row's experience; only for logs.
      sleep: (B,) whether a block has the subtype sleep; only for logs.
      block_num: (B,) number of the block in its log; only for logs.
      columns: name -> (B,) numbers computed before, earlier custom metrics included; only for logs.
    """

    values: Floats
    counts: npt.NDArray[np.int64]
    train: npt.NDArray[np.bool_]
    tasks: npt.NDArray[np.int64]
    task_names: tuple[str, ...]
    probability: Floats | None = None
    threshold: Floats | None = None
    level: Floats | None = None
    novel: npt.NDArray[np.bool_] | None = None
    baseline: Floats | None = None
    processed: Floats | None = None
    experiences: npt.NDArray[np.int64] | None = None
    sleep: npt.NDArray[np.bool_] | None = None
    block_num: npt.NDArray[np.int64] | None = None
    columns: Mapping[str, Floats] | None = None


def metric(
    text: str = "",
    scope: str = "block",
    direction: str = "higher",
    unit: str = "",
    source: str = "",
    name: str = "",
    missing: str = "",
    capability: str = "",
    bounds: tuple[float | None, float | None] = MetricRow.bounds,
) -> Callable[[F], F]:
    """Give a function a `MetricRow` of these fields, so that ``--metric FILE.py`` finds it.

    In ``bounds``, None stands for no limit.

    Raises:
      ValueError: an unknown scope or direction, or bounds that are no range.
    """
    _check_word("scope", scope, USERS_SCOPES)
    _check_word("direction", direction, get_args(Direction))
    limits = _limits(bounds)

    def decorate(function: F) -> F:
        row = MetricRow(
            name or function.__name__,
            function,
            scope,  # type: ignore[arg-type]  # checked above
            text or _first_line(function),
            needs=tuple(inspect.signature(function).parameters),
            direction=direction,  # type: ignore[arg-type]  # checked above
            unit=unit,
            source=source,
            capability=capability,
            missing=missing,
            bounds=limits,
        )
        function.metric_row = row  # type: ignore[attr-defined]
        return function

    return decorate


def _check_word(field: str, word: str, options: Sequence[str]) -> None:
    if word not in options:
        raise ValueError(f"{field} is {word!r}; it must be one of {', '.join(options)}")


def _limits(bounds: tuple[float | None, float | None]) -> tuple[float, float]:
    """Return bounds as numbers."""
    try:
        least, largest = (
            limit if bound is None else float(bound)
            for bound, limit in zip(bounds, MetricRow.bounds, strict=True)
        )
    except (TypeError, ValueError, OverflowError):
        least, largest = np.nan, np.nan
    if not least <= largest:
        raise ValueError(
            f"bounds is {bounds!r}; it must be the least and the greatest number, as (0, 1), with "
            "None for no limit"
        )
    return least, largest


def _first_line(function: ArrayFunction) -> str:
    return (inspect.getdoc(function) or function.__name__).split("\n")[0]


def row_of(function: object) -> MetricRow | None:
    """The row of a custom metric; None for an object that is not a metric.

    A plain function of two fields of `Lifetime`, or of two other names that then stand for values
    and counts, gives one number per block.
    """
    row = getattr(function, "metric_row", None)
    if isinstance(row, MetricRow):
        return row
    if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 2:
        return None
    fields = set(inspect.signature(function).parameters) & set(Lifetime._fields)
    if len(fields) == 1:  # the other name may be a slip
        return None
    # Another object, so that the user's function stays without a row.
    same = functools.update_wrapper(functools.partial(function), function)
    call: ArrayFunction = same if fields else _with_names(function)
    metric(_first_line(function), name=function.__name__)(call)
    return call.metric_row  # type: ignore[attr-defined]


def _with_names(function: ArrayFunction) -> ArrayFunction:
    def call(values: Floats, counts: npt.NDArray[np.int64]) -> Any:
        return function(values, counts)

    return call


def check_names(rows: Sequence[MetricRow], reserved: Iterable[str] = ()) -> None:
    """Check that no two metrics have one name.

    Args:
      rows: custom metrics.
      reserved: names of other metrics.

    Raises:
      MetricError: names the metric.
    """
    names = set(reserved)
    for row in rows:
        if row.name in names:
            raise MetricError(
                f"there are two metrics of the name {row.name!r}; give the function another one"
            )
        names.add(row.name)


def compute(row: MetricRow, lifetime: Lifetime, plain: bool = False) -> Numbers:
    """Compute a custom metric for one lifetime.

    Args:
      row: of the metric.
      lifetime: its possible arguments.
      plain: whether a single number for all blocks is accepted too.

    Returns:
      (B,), (K,) or () numbers, by its scope.

    Raises:
      MetricError: it needs a field that is missing, raises, or returns a wrong shape or NaN without
        a reason.
    """
    function = row.kernel
    assert callable(function)
    parameters = inspect.signature(function).parameters
    fields = {name: value for name, value in lifetime._asdict().items() if value is not None}
    if absent := [name for name in parameters if name not in fields]:
        raise MetricError(
            f"metric {row.name!r} asks for {', '.join(absent)}; here it can have "
            f"{', '.join(fields)}"
        )
    try:
        with warnings.catch_warnings():
            if not lifetime.counts.all():  # means of nothing, in a block that does not count
                warnings.simplefilter("ignore", RuntimeWarning)
            result = function(**{name: fields[name] for name in parameters})
        codes = None
        if isinstance(result, Numbers):
            raw, why, codes = result.values, row.missing, np.asarray(result.reasons, np.int32)
        else:
            raw, why = result if isinstance(result, tuple) else (result, row.missing)
        if np.iscomplexobj(raw):
            raise TypeError("complex numbers; return real ones")
        values = np.asarray(raw, np.float64)
    except (Exception, SystemExit) as error:  # any error of a user's function is about that metric
        raise MetricError(f"metric {row.name!r} failed: {type(error).__name__}: {error}") from error
    shape = _shape(row, lifetime)
    if values.shape != shape and not (plain and values.shape == ()):
        raise MetricError(
            f"metric {row.name!r} returned the shape {values.shape}; it must be {shape}, one "
            f"number per {row.scope}"
        )
    # A trial without novelty has no episodes in its second block, so nothing counts there.
    empty = np.zeros(values.shape, bool)
    if row.scope == "block" and values.shape == shape:
        empty = lifetime.counts == 0
        values = np.where(empty, 0.0, values)
    finite = np.isfinite(values)
    least, largest = row.bounds
    outside = (values < least) | (values > largest)
    if row.unit != "performance" and outside[finite & ~empty].any():
        raise MetricError(
            f"metric {row.name!r} returned {values[finite].tolist()}; by its row, numbers lie "
            f"between {least:g} and {largest:g}"
        )
    if codes is None or (codes[~finite] == Reason.NONE).any():
        codes = _reasons(row, values, why)
    codes = np.where(empty, np.int32(Reason.EMPTY), codes).astype(np.int32)
    return Numbers(np.where(finite & ~empty, values, np.nan), codes)


def _shape(row: MetricRow, lifetime: Lifetime) -> tuple[int, ...]:
    sizes = {"block": (len(lifetime.counts),), "task": (len(lifetime.task_names),)}
    return sizes.get(row.scope, ())


def _reasons(row: MetricRow, values: Floats, why: object) -> npt.NDArray[np.int32]:
    absent = ~np.isfinite(values)
    texts = np.broadcast_to(np.asarray(why, object), values.shape)
    if any(not isinstance(text, str) or not text for text in texts[absent].ravel()):
        raise MetricError(
            f"metric {row.name!r} returned a number that is not finite, without a reason: return "
            "(numbers, reason), or put missing='...' into its row"
        )
    codes = [
        code_of(text) if missing else 0
        for text, missing in zip(texts.flat, absent.flat, strict=True)
    ]
    return np.array(codes, np.int32).reshape(values.shape)


def over_lifetimes(rows: Sequence[MetricRow], lifetimes: Iterable[Lifetime]) -> dict[str, Numbers]:
    """Compute custom metrics for many lifetimes of one shape.

    Returns:
      (L, B), (L, K) or (L,) numbers by name.

    Raises:
      MetricError: as `compute`.
    """
    parts: dict[str, list[Numbers]] = {row.name: [] for row in rows}
    for lifetime in lifetimes:
        for row in rows:
            parts[row.name].append(compute(row, lifetime))
    return {
        name: Numbers(np.stack([n.values for n in part]), np.stack([n.reasons for n in part]))
        for name, part in parts.items()
        if part
    }


def by_task(blocks: Numbers, tasks: npt.NDArray[np.int64], number: int) -> Numbers:
    """Mean over each task's blocks, (K,) from (B,); the first block's reason if there is none."""
    member = tasks == np.arange(number)[:, None]
    mask = member & (blocks.reasons == Reason.NONE)
    mean, count = masked_mean(np.broadcast_to(np.nan_to_num(blocks.values), member.shape), mask)
    first = np.where(member.any(axis=1), blocks.reasons[member.argmax(axis=1)], Reason.EMPTY)
    codes = np.where(count > 0, Reason.NONE, first).astype(np.int32)
    return Numbers(np.where(count > 0, mean, np.nan), codes)


def over_all(parts: Numbers) -> Numbers:
    """Mean over the values of the last axis; the first reason if all are missing."""
    mask = parts.reasons == Reason.NONE
    mean, count = masked_mean(np.nan_to_num(parts.values), mask)
    codes = np.where(count > 0, Reason.NONE, parts.reasons[..., 0]).astype(np.int32)
    return Numbers(np.where(count > 0, mean, np.nan), codes)
