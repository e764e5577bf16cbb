"""The random numbers that a function draws, by key and slot."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from jaxsim import rng

bits = rng.bits


def drawn(function: Callable[[], Any], change: int | None = None) -> tuple[Any, list[np.ndarray]]:
    """What a function returns, op by op, and the draws in it, (N, 3): a key's words and a slot.

    Args:
      function: of no argument.
      change: place of a call of `rng.bits` that returns other bits.
    """
    draws: list[np.ndarray] = []

    def recorded(key: rng.Words, slot: Any) -> jax.Array:
        arrays = np.broadcast_arrays(*(np.asarray(part) for part in (key.a, key.b, slot)))
        draws.append(np.stack([np.ravel(array) for array in arrays], axis=1))
        return bits(key, slot) ^ np.uint32(0xFFFFFFFF if change == len(draws) - 1 else 0)

    with pytest.MonkeyPatch.context() as patch, jax.disable_jit():
        patch.setattr(rng, "bits", recorded)
        result = function()
    return result, draws


def assert_each_once(draws: list[np.ndarray], least: int) -> None:
    """No number is drawn twice, and at least so many are drawn."""
    counts = Counter(map(tuple, np.concatenate(draws).tolist()))
    assert len(counts) >= least
    assert counts.most_common(1)[0][1] == 1
