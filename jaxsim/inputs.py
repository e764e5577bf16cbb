"""Checks of values that callers pass; of traced values only the type can be checked."""

import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.parameters import shown
from jaxsim.pytrees import Leaf


def check_whole(name: str, number: Any, low: int, high: int | None = None) -> None:
    """Refuse what is no whole number, or out of bounds.

    Args:
      name: of the number, for the message.
      number: what a caller passed. Integers of NumPy and JAX are accepted, truth values are not.
      low: smallest number allowed.
      high: largest number allowed; None for any.

    Raises:
      ValueError: says what is allowed.
    """
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    try:
        value = None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        value = None
    if value is None:
        raise ValueError(f"{name} is {shown(number)}; it must be a whole number, {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} is {shown(value)}; it must be {allowed}")


def action_codes(action: Leaf, count: int, names: Sequence[str] = ()) -> Leaf:
    """Return actions that a caller passed, after checking them.

    Args:
      action: integer or integer array; of traced arrays only the type can be checked.
      count: number of actions; their codes start from 0.
      names: what they mean, for the error message.

    Returns:
      The action as an array.

    Raises:
      ValueError: not integers, or a number out of range.
    """
    traced = isinstance(action, jax.core.Tracer)
    values = action if traced else np.asarray(action)
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"action has dtype {values.dtype}; {_allowed(count, names)}")
    if not traced and np.any((values < 0) | (values >= count)):
        raise ValueError(f"action is {action}; {_allowed(count, names)}")
    return values


def _allowed(count: int, names: Sequence[str]) -> str:
    meaning = f" ({', '.join(names)})" if names else ""
    return f"it must be an integer from 0 to {count - 1}{meaning}"
