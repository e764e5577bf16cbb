"""Custom metrics, loaded from Python files."""

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluation import errors
from evaluation.metrics.registry import MetricRow, check_names, row_of
from evaluation.metrics.table import BY_NAME


def load_rows(texts: Iterable[str]) -> tuple[MetricRow, ...]:
    """Load metrics from Python files.

    Args:
      texts: each ``FILE.py`` or ``FILE.py:NAME``. All functions with a row are loaded from a file;
        without any, its only function of (values, counts).

    Raises:
      ValueError: there is no such file or name, a file has no metric, or two metrics have one name.
    """
    rows: list[MetricRow] = []
    for text in texts:
        candidates = defined(text, lambda value: row_of(value) is not None)
        with_row = [value for value in candidates.values() if hasattr(value, "metric_row")]
        functions = with_row or [_only(text, candidates)]
        rows += [row for row in map(row_of, functions) if row is not None]
    check_names(rows, BY_NAME)
    return tuple(rows)


def load_metric(text: str, is_metric: Callable[[object], bool]) -> Any:
    """Load the one metric of a Python file that `is_metric` accepts.

    Raises:
      ValueError: there is no such file or name, or the file does not have exactly one metric.
    """
    return _only(text, defined(text, is_metric))


def defined(text: str, is_metric: Callable[[object], bool]) -> dict[str, Any]:
    """The metrics that a file defines, by name; with ``FILE.py:NAME`` only that one.

    Raises:
      ValueError: there is no such file or name, or the file has none.
    """
    file, _, name = text.partition(".py:")
    path = Path(f"{file}.py" if name else text)
    spec = importlib.util.spec_from_file_location(f"custom_metric_{path.stem}", path)
    if path.suffix == ".py" and not path.exists():
        raise ValueError(f"metric {text!r}: there is no file {path}")
    if not path.is_file() or spec is None or spec.loader is None:
        raise ValueError(f"metric {text!r} is not a Python file; write FILE.py or FILE.py:NAME")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # any error of a user's file is about that file
        raise ValueError(f"{path} cannot be loaded: {errors.one_line(error)}") from error
    metrics = {
        key: value
        for key, value in vars(module).items()
        if _is_defined_in(value, module.__name__) and not key.startswith("_") and is_metric(value)
    }
    if name and name not in metrics:
        raise ValueError(f"{path} has no metric {name!r}; it has {', '.join(metrics) or 'none'}")
    if not metrics:
        hint = "; classes of 2019 are for calc_metrics" if _has_class(module) else ""
        raise ValueError(
            f"{path} has no metric; define a function of (values, counts) or of two other fields, "
            f"see docs/metrics.md{hint}"
        )
    return {name: metrics[name]} if name else metrics


def _has_class(module: ModuleType) -> bool:
    return any(
        inspect.isclass(value) and hasattr(value, "calculate") for value in vars(module).values()
    )


def _only(text: str, metrics: Mapping[str, Any]) -> Any:
    if len(metrics) > 1:
        raise ValueError(
            f"{text} has {len(metrics)} metrics; name one of {', '.join(metrics)}: FILE.py:NAME"
        )
    return next(iter(metrics.values()))


def _is_defined_in(value: object, module: str) -> bool:
    """Whether a class or function is defined in a module; true for any other object."""
    return getattr(value, "__qualname__", None) is None or value.__module__ == module
