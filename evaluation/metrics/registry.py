"""Metrics as rows of one table: those of this package and those of users.

A metric of a user is a function over padded arrays of one lifetime, with a row:

```python
from evaluation.metrics import metric


@metric(text="mean of the last tenth of a block", direction="higher")
def last_tenth(values, counts):
    start = counts - np.maximum(counts // 10, 1)
    inside = np.arange(values.shape[-1]) >= start[:, None]
    return np.nanmean(np.where(inside, values, np.nan), axis=-1)
```

It takes any fields of `Lifetime` by their names. With the scope "block" it returns (B,) numbers,
with "task" (K,), with "lifetime" one number. NaN needs a reason: a pair (numbers, sentence) or a
`Numbers` gives it, or ``missing`` in the row.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from evaluation.metrics.numerics import Numbers, masked_mean
from evaluation.metrics.reasons import Reason, code_of

Scope: TypeAlias = Literal["block", "task", "lifetime", "trial"]
Direction: TypeAlias = Literal["higher", "lower", "none"]
Floats: TypeAlias = npt.NDArray[np.float64]

SCOPES: Final = get_args(Scope)
USERS_SCOPES: Final = ("block", "task", "lifetime")
"""Scopes that a metric of a user may have; a trial is a lifetime of two blocks."""


class MetricError(ValueError):
    """A metric of a user cannot be computed; the message names it."""


@dataclass(frozen=True)
class Row:
    """One metric.

    Attributes:
      name: key in JSON and tables.
      kernel: the function that computes it, or where it is, "module:name" below
        `evaluation.metrics`.
      scope: what has one number of it.
      text: one line for people.
      needs: what it is computed from beside performance: blocks, tasks, experts, predictions,
        baseline.
      direction: whether an agent does better with more or less of it.
      unit: of its numbers; "performance" for that of the measure, "" for a pure number.
      source: where it is defined.
      heading: in tables; the name if empty.
      capability: core capability of the 2019 document that it speaks of, "" for none.
      family: what computes and reports it together: 2019, 3.1, predictions, experiment, own.
      missing: why a number that is NaN is missing, for metrics of users.
      bounds: between which its numbers lie by definition; of numbers whose unit is "performance",
        where that lies between 0 and 1.
    """

    name: str
    kernel: str | Callable[..., Any]
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
        """What tables call it."""
        return self.heading or self.name


class Lifetime(NamedTuple):
    """What a metric of a user may take, by name: one lifetime of B blocks of at most T episodes.

    Attributes:
      values: (B, T) performance, NaN behind each block's end.
      counts: (B,) episodes of each block.
      train: (B,) whether a block is a training block.
      tasks: (B,) position of its task in ``task_names``.
      task_names: K names.
      probability: (B, T) predicted probability of novelty; None where nobody predicts.
      threshold: (B, T) probability from which the agent reports it.
      level: (B, T) predicted level.
      novel: (B,) whether the block plays another world than the unchanged one.
      baseline: (B, T) performance of the baseline of an experiment.
      processed: (B, T) performance after smoothing, clamping and normalising, of logs.
      experiences: (B, T) number of each row's experience, of logs.
      sleep: (B,) whether a block is of subtype sleep, of logs.
      block_num: (B,) number of the block in its log.
      columns: name -> (B,) numbers that are there already, earlier metrics of users too, of logs.
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
    bounds: tuple[float, float] = Row.bounds,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function a row, so that ``--metric FILE.py`` finds it; the fields are those of `Row`.

    Raises:
      ValueError: an unknown scope or direction.
    """
    _check_word("scope", scope, USERS_SCOPES)
    _check_word("direction", direction, get_args(Direction))

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        row = Row(
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
            bounds=bounds,
        )
        function.metric_row = row  # type: ignore[attr-defined]
        return function

    return decorate


def _check_word(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise ValueError(f"{what} is {word!r}; it must be one of {', '.join(known)}")


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or function.__name__).split("\n")[0]


def row_of(function: Any) -> Row | None:
    """The row of a metric of a user; None if something is none.

    A plain function of (values, counts), whatever it calls them, has one number a block.
    """
    row = getattr(function, "metric_row", None)
    if isinstance(row, Row):
        return row
    if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 2:
        return None
    decorated = metric()(_with_names(function))
    return replace(decorated.metric_row, name=function.__name__)  # type: ignore[attr-defined]


def _with_names(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(values: Floats, counts: npt.NDArray[np.int64]) -> Any:
        return function(values, counts)

    call.__doc__ = function.__doc__
    return call


def check_names(rows: Sequence[Row], taken: Iterable[str] = ()) -> None:
    """Refuse two metrics of one name.

    Args:
      rows: metrics of users.
      taken: names that others have.

    Raises:
      MetricError: names the metric.
    """
    seen = set(taken)
    for row in rows:
        if row.name in seen:
            raise MetricError(
                f"there are two metrics of the name {row.name!r}; give the function another one"
            )
        seen.add(row.name)


def compute(row: Row, lifetime: Lifetime, plain: bool = False) -> Numbers:
    """Compute a metric of a user for one lifetime.

    Args:
      row: of the metric.
      lifetime: what it may take.
      plain: whether one number for all blocks will do as well.

    Returns:
      (B,), (K,) or () numbers, by its scope.

    Raises:
      MetricError: it asks for what is not there, raises, or returns another shape or NaN without a
        reason.
    """
    function = row.kernel
    assert callable(function)
    asked = inspect.signature(function).parameters
    there = {name: value for name, value in lifetime._asdict().items() if value is not None}
    if absent := [name for name in asked if name not in there]:
        raise MetricError(
            f"metric {row.name!r} asks for {', '.join(absent)}; here it can have {', '.join(there)}"
        )
    try:
        found = function(**{name: there[name] for name in asked})
        codes = None
        if isinstance(found, Numbers):
            given, why, codes = found.values, row.missing, np.asarray(found.reasons, np.int32)
        else:
            given, why = found if isinstance(found, tuple) else (found, row.missing)
        values = np.asarray(given, np.float64)
    except Exception as error:  # whatever a user's function raises is about that metric
        raise MetricError(f"metric {row.name!r} failed: {type(error).__name__}: {error}") from error
    shape = _shape(row, lifetime)
    if values.shape != shape and not (plain and values.shape == ()):
        raise MetricError(
            f"metric {row.name!r} returned the shape {values.shape}; it must be {shape}, one "
            f"number a {row.scope}"
        )
    finite = np.isfinite(values)
    least, largest = row.bounds
    if row.unit != "performance" and ((values < least) | (values > largest))[finite].any():
        raise MetricError(
            f"metric {row.name!r} returned {values[finite].tolist()}; by its row, numbers lie "
            f"between {least:g} and {largest:g}"
        )
    if codes is None or (codes[~finite] == Reason.NONE).any():
        codes = _reasons(row, values, why)
    return Numbers(np.where(finite, values, np.nan), codes)


def _shape(row: Row, lifetime: Lifetime) -> tuple[int, ...]:
    sizes = {"block": (len(lifetime.counts),), "task": (len(lifetime.task_names),)}
    return sizes.get(row.scope, ())


def _reasons(row: Row, values: Floats, why: Any) -> npt.NDArray[np.int32]:
    absent = ~np.isfinite(values)
    texts = np.broadcast_to(np.asarray(why, object), values.shape)
    if any(not isinstance(text, str) or not text for text in texts[absent].ravel()):
        raise MetricError(
            f"metric {row.name!r} returned a number that is not finite, without a reason: return "
            "(numbers, reason), or put missing='...' into its row"
        )
    codes = [
        code_of(text) if gone else 0 for text, gone in zip(texts.flat, absent.flat, strict=True)
    ]
    return np.array(codes, np.int32).reshape(values.shape)


def over_lifetimes(rows: Sequence[Row], lifetimes: Iterable[Lifetime]) -> dict[str, Numbers]:
    """Compute metrics of users for many lifetimes of one shape.

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
        name: Numbers(np.stack([n.values for n in of]), np.stack([n.reasons for n in of]))
        for name, of in parts.items()
        if of
    }


def by_task(blocks: Numbers, tasks: npt.NDArray[np.int64], number: int) -> Numbers:
    """Mean of the blocks of each task, (K,) from (B,); the first block's reason where none has."""
    own = tasks == np.arange(number)[:, None]
    known = own & (blocks.reasons == Reason.NONE)
    mean, count = masked_mean(np.broadcast_to(np.nan_to_num(blocks.values), own.shape), known)
    first = np.where(own.any(axis=1), blocks.reasons[own.argmax(axis=1)], Reason.EMPTY)
    codes = np.where(count > 0, Reason.NONE, first).astype(np.int32)
    return Numbers(np.where(count > 0, mean, np.nan), codes)


def over_all(parts: Numbers) -> Numbers:
    """Mean over the last axis of what has a value; the first reason where nothing has."""
    known = parts.reasons == Reason.NONE
    mean, count = masked_mean(np.nan_to_num(parts.values), known)
    codes = np.where(count > 0, Reason.NONE, parts.reasons[..., 0]).astype(np.int32)
    return Numbers(np.where(count > 0, mean, np.nan), codes)
