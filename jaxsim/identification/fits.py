"""Robust fits of the simulator's parameters to transitions, many hypotheses at once.

Gauss-Newton steps with the weights of a Cauchy distribution, whose scale is the error of an exact
prediction. With exact sensors the likelihood then has a sharp optimum, even if a few ticks have
hits that no report predicts. Derivatives are differences of simulated ticks.

Source: P. J. Huber and E. M. Ronchetti, Robust Statistics, 2nd edition, 2009, chapter 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxsim.identification.ticks import HIDDEN, NUMBERS, Ticks, errors
from jaxsim.worlds.cartpole3d.types import Params

STEP = 1e-3  # of a knob's range, in differences
WIDTH = (2 * np.pi) ** 0.5  # of a Gaussian that is as high and as large as a rectangle
ROUGH, FINE = (1e3, 1e2, 10.0, 1.0), (1.0,) * 9
"""Factors of the scale in the rounds of a fit: from any start, and where another has ended."""
SHORTER = 0.3  # factor of a step that did not help
NOMINAL = vars(Params()) | dict.fromkeys(HIDDEN, 0.0)


class Knob(NamedTuple):
    """A number that a fit changes.

    Attributes:
      name: field of `Params`, or one of `ticks.HIDDEN`.
      low: least value.
      high: greatest value.
      log: whether the logarithm is fitted.
    """

    name: str
    low: float
    high: float
    log: bool = False

    def coordinate(self, value: np.ndarray | float) -> np.ndarray:
        """The fitted number, from 0 at the least value to 1 at the greatest."""
        low, high, x = (np.log(v) if self.log else v for v in (self.low, self.high, value))
        return np.asarray((x - low) / (high - low))

    def value(self, coordinate: np.ndarray | float) -> np.ndarray:
        """Inverse of `coordinate`."""
        low, high = (np.log(v) if self.log else v for v in (self.low, self.high))
        x = low + (high - low) * np.asarray(coordinate)
        return np.exp(x) if self.log else x

    def slope(self, value: float) -> float:
        """Change of the value by its coordinate."""
        return value * np.log(self.high / self.low) if self.log else self.high - self.low


class Data(NamedTuple):
    """What hypotheses are fitted to.

    Attributes:
      ticks: transitions, T.
      scale: (T, 34) size of the error of an exact prediction.
      fixed: numbers of every hypothesis that are known already.
    """

    ticks: Ticks
    scale: np.ndarray
    fixed: dict[str, float]

    def at(self, places: np.ndarray) -> "Data":
        """Some of the transitions."""
        return self._replace(ticks=self.ticks.at(places), scale=self.scale[places])

    def knowing(self, numbers: Mapping[str, float]) -> "Data":
        """The same data where more numbers are known."""
        return self._replace(fixed=self.fixed | dict(numbers))


class Hypothesis(NamedTuple):
    """Numbers to fit, with one start.

    Attributes:
      knobs: P numbers that are fitted.
      start: (P,) their first values.
      fixed: numbers that are not fitted.
      places: (K,) transitions of the data that are used.
    """

    knobs: tuple[Knob, ...]
    start: tuple[float, ...]
    fixed: dict[str, float]
    places: np.ndarray


@dataclass(frozen=True)
class ParameterFit:
    """A fitted hypothesis.

    Attributes:
      values: (P,) of the knobs.
      deviations: (P,) standard errors.
      likelihood: its logarithm, 0 for perfect predictions.
      evidence: logarithm of the likelihood's mean over the knobs' ranges, as a Gaussian of
        independent knobs around the optimum has it.
    """

    values: np.ndarray
    deviations: np.ndarray
    likelihood: float
    evidence: float


def likelihood(off: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Logarithm of the likelihood of errors (..., K, 34), less that of perfect predictions."""
    return -np.log1p((off / scale) ** 2).sum(axis=(-2, -1))


def nominal(data: Data, index: np.ndarray) -> np.ndarray:
    """Errors without any change, (K, 34)."""
    columns = {name: np.array([value]) for name, value in data.fixed.items()}
    return errors(columns, data.ticks, index[None])[0]


def fit(
    hypotheses: Sequence[Hypothesis], data: Data, blurs: tuple[float, ...]
) -> list[ParameterFit]:
    """Fit hypotheses of any numbers of knobs and transitions.

    Args:
      hypotheses: H of them.
      data: to fit to.
      blurs: factor of the scale in each Gauss-Newton step, `ROUGH` or `FINE`.

    Returns:
      H fits, in the same order.
    """
    fits: dict[int, ParameterFit] = {}
    groups: dict[tuple[int, int], list[int]] = {}
    for place, one in enumerate(hypotheses):
        groups.setdefault((len(one.knobs), len(one.places)), []).append(place)
    for places in groups.values():
        together = _fit_alike([hypotheses[place] for place in places], data, blurs)
        for place, fitted in zip(places, together, strict=True):
            fits[place] = fitted
    return [fits[place] for place in range(len(hypotheses))]


def _fit_alike(
    hypotheses: Sequence[Hypothesis], data: Data, blurs: tuple[float, ...]
) -> list[ParameterFit]:
    """Fit hypotheses with equally many knobs and transitions."""
    index = np.stack([one.places for one in hypotheses])
    size, number = len(hypotheses), len(hypotheses[0].knobs)
    unit, scale = np.eye(number), data.scale[index]

    def errors_at(points: np.ndarray) -> np.ndarray:
        """(C, H, K, 34) errors at coordinates (C, H, P)."""
        columns = _columns(hypotheses, data, points)
        tiled = np.tile(index, (len(points), 1))
        off = errors(columns, data.ticks, tiled)
        return off.reshape(len(points), size, -1, NUMBERS)

    pairs = (zip(one.knobs, one.start, strict=True) for one in hypotheses)
    point = np.array([[knob.coordinate(value) for knob, value in pair] for pair in pairs])
    best, best_point = np.full(size, -np.inf), point
    factor = np.ones(size)
    step, normal = np.zeros((size, number)), np.zeros((size, number, number))
    for blur in blurs:
        nudge = np.where(point + STEP > 1, -STEP, STEP)
        off = errors_at(np.stack([point, *(point + nudge * row for row in unit)]))
        value = likelihood(off[0], scale)
        better = value > best
        best = np.where(better, value, best)
        best_point = np.where(better[:, None], point, best_point)
        factor = np.where(better, 1.0, SHORTER * factor)
        new_step, new_normal = _gauss_newton(off, nudge, scale)
        step = np.where(better[:, None], new_step, step)
        normal = np.where(better[:, None, None], new_normal, normal)
        if blur > 1:
            wide_step, _ = _gauss_newton(off, nudge, blur * scale)
            point = np.clip(point + wide_step, 0, 1)
        else:
            point = np.clip(best_point + factor[:, None] * step, 0, 1)
    spread = np.sqrt(np.diagonal(np.linalg.inv(normal), axis1=1, axis2=2))
    return [
        _result(one.knobs, *row)
        for one, *row in zip(hypotheses, best_point, spread, best, strict=True)
    ]


def _columns(
    hypotheses: Sequence[Hypothesis], data: Data, points: np.ndarray
) -> dict[str, np.ndarray]:
    """Numbers of the hypotheses at coordinates (C, H, P), each (C H,)."""
    names = {name for one in hypotheses for name in one.fixed}
    names |= {knob.name for one in hypotheses for knob in one.knobs} | set(data.fixed)
    known = NOMINAL | data.fixed
    rows = {
        name: np.array([one.fixed.get(name, known[name]) for one in hypotheses]) for name in names
    }
    columns = {name: np.tile(row, (len(points), 1)).astype(float) for name, row in rows.items()}
    for h, one in enumerate(hypotheses):
        for p, knob in enumerate(one.knobs):
            columns[knob.name][:, h] = knob.value(points[:, h, p])
    return {name: column.reshape(-1) for name, column in columns.items()}


def _gauss_newton(
    off: np.ndarray, nudge: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Step of each hypothesis, (H, P), and the matrix of its normal equations."""
    slopes = (off[1:] - off[0]) / nudge.T[:, :, None, None]
    weight = 1 / (scale**2 + off[0] ** 2)
    normal = np.einsum("phkn,qhkn,hkn->hpq", slopes, slopes, weight, optimize=True)
    moment = np.einsum("phkn,hkn,hkn->hp", slopes, off[0], weight, optimize=True)
    # A number without any effect stays where it is.
    ridge = 1e-9 * np.trace(normal, axis1=1, axis2=2) + 1e-9
    normal = normal + ridge[:, None, None] * np.eye(normal.shape[-1])
    return -np.linalg.solve(normal, moment[..., None])[..., 0], normal


def _result(
    knobs: tuple[Knob, ...], point: np.ndarray, spread: np.ndarray, value: np.ndarray
) -> ParameterFit:
    values = np.array([knob.value(x) for knob, x in zip(knobs, point, strict=True)])
    slopes = [knob.slope(v) for knob, v in zip(knobs, values, strict=True)]
    share = np.minimum(WIDTH * spread, 1.0)
    return ParameterFit(
        values, np.abs(slopes) * spread, float(value), float(value + np.log(share).sum())
    )
