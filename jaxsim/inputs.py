"""Checks of values that callers pass; of traced values only the type can be checked."""

from collections.abc import Sequence

import jax
import numpy as np

from jaxsim.pytrees import Leaf


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
