"""Shared parts of all statistics: columns of lifetimes, exact integers, checks of arguments."""

from typing import TYPE_CHECKING, Final, TypeAlias, Union

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import jax

DEFAULT_LEVEL: Final = 0.95
DEFAULT_RESAMPLES: Final = 2_000
MAX_RESAMPLES: Final = 1_000_000

EXACT_BITS: Final = 52
"""Bits up to which integers, and sums of them, are exact in float64."""

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
Seed: TypeAlias = Union[int, "jax.Array"]
"""A non-negative integer or a typed key from ``jax.random.key``."""


def as_table(values: npt.ArrayLike) -> tuple[Floats, tuple[int, ...]]:
    """Values as contiguous (columns, lifetimes), and the shape of one lifetime's values.

    Raises:
      ValueError: no lifetimes, or an infinite value.
    """
    array = np.asarray(values, np.float64)
    if array.ndim < 1 or len(array) < 1:
        raise ValueError("values must have the lifetimes as first axis, and at least one of them")
    if np.isinf(array).any():
        raise ValueError("values must be finite, or NaN where a lifetime has none; found infinity")
    return np.ascontiguousarray(array.reshape(len(array), -1).T), array.shape[1:]


def centred(table: Floats, valid: Booleans) -> tuple[Floats, Floats]:
    """The middle of each column's range, and the deviations from it (0 if missing)."""
    least = np.where(valid, table, np.inf).min(axis=1)
    most = np.where(valid, table, -np.inf).max(axis=1)
    has_value = valid.any(axis=1)
    centre = (
        np.where(has_value, np.where(has_value, least, 0) / 2, 0) + np.where(has_value, most, 0) / 2
    )
    return centre, np.where(valid, table - centre[:, None], 0.0)


def whole_numbers(deviations: Floats, bits: int) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Columns scaled by powers of two to integers of at most ``bits`` bits, and the exponents."""
    _, magnitude = np.frexp(np.abs(deviations).max(axis=1))
    exponents = (bits - magnitude).astype(np.int32)
    return np.rint(np.ldexp(deviations, exponents[:, None])), exponents


def entropy(seed: Seed) -> int | list[int]:
    """Seed words for NumPy from an integer or a typed JAX key.

    Raises:
      ValueError: any other type, or a negative integer.
    """
    if not isinstance(seed, int | np.integer) and hasattr(seed, "dtype"):
        import jax  # here, so that statistics of logs do not import it
        import jax.numpy as jnp

        if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
            if seed.shape != ():
                raise ValueError(f"seed must be one key, not an array of keys {seed.shape}")
            return [int(word) for word in np.asarray(jax.random.key_data(seed)).ravel()]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ValueError(f"seed must be an integer or a jax.random.key, not {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, not {seed}")
    return int(seed)


def check_level(level: float) -> None:
    """Check that a coverage is between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, for example 0.95, not {level!r}")


def check_resamples(resamples: int) -> None:
    """Check that a number of resamples is between 1 and `MAX_RESAMPLES`."""
    if isinstance(resamples, bool) or not isinstance(resamples, int):
        raise ValueError(f"resamples must be an integer, not {resamples!r}")
    if not 1 <= resamples <= MAX_RESAMPLES:
        raise ValueError(f"resamples must lie between 1 and {MAX_RESAMPLES:,}, not {resamples:,}")
