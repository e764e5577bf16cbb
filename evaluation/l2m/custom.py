"""Custom metrics from files of users."""

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load_metric(text: str, is_metric: Callable[[Any], bool]) -> Any:
    """Load a metric from a Python file.

    Args:
      text: ``FILE.py`` or ``FILE.py:NAME``.
      is_metric: whether something that the file defines is a metric.

    Returns:
      What the file calls so; without a name, the only metric that it defines.

    Raises:
      ValueError: there is no such file or name, or the file has not exactly one metric.
    """
    file, _, name = text.partition(".py:")
    path = Path(f"{file}.py" if name else text)
    spec = importlib.util.spec_from_file_location(f"custom_metric_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ValueError(f"metric {text!r} is not a Python file; write FILE.py or FILE.py:NAME")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file raises is about that file
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    own = {
        key: value
        for key, value in vars(module).items()
        if _is_defined_in(value, module.__name__) and not key.startswith("_") and is_metric(value)
    }
    if name and name not in own:
        raise ValueError(f"{path} has no metric {name!r}; it has {', '.join(own) or 'none'}")
    if not name and not own:
        raise ValueError(
            f"{path} has no metric; define a function of (values, counts), see docs/metrics-2019.md"
        )
    if not name and len(own) > 1:
        raise ValueError(
            f"{path} has {len(own)} metrics; name one of {', '.join(own)}: FILE.py:NAME"
        )
    return own[name] if name else next(iter(own.values()))


def takes(value: Any, count: int) -> bool:
    """Whether something is a plain function of so many arguments."""
    return inspect.isfunction(value) and len(inspect.signature(value).parameters) == count


def _is_defined_in(value: Any, module: str) -> bool:
    """Whether a class or function is of a module; any other object may be."""
    return getattr(value, "__qualname__", None) is None or value.__module__ == module
