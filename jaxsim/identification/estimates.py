"""An estimated number with its uncertainty."""

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A parameter's value and its standard error."""

    value: float
    deviation: float


def greatest(draws: np.ndarray) -> Estimate:
    """Upper end of the range [0, a] that draws are uniform in, unbiased, and its standard error."""
    number = len(draws)
    end = float(draws.max() * (number + 1) / number)
    return Estimate(end, end / (number * (number + 2)) ** 0.5)


def between(draws: np.ndarray, share: float) -> Estimate:
    """Upper end a of the range [share a, a] that draws are uniform in."""
    number, width = len(draws), 1 - share
    ends = (
        draws.max() / (1 - width / (number + 1)),
        draws.min() / (share + width / (number + 1)),
    )
    end = float(np.clip(np.mean(ends), draws.max(), max(draws.min() / share, draws.max())))
    return Estimate(end, width * end / (number + 1))
