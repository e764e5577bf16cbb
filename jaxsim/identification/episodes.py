"""What changed in a world, from episodes in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from jaxsim.agents.sight import Sighting
from jaxsim.identification import fits, physics, readings, starts
from jaxsim.identification.estimates import Estimate
from jaxsim.identification.fits import Data
from jaxsim.identification.kinematics import FROM_PLACES, repaired, sizes_after
from jaxsim.identification.physics import Explanation
from jaxsim.identification.readings import KINDS, SensorErrors
from jaxsim.identification.starts import Named, ReportedEpisode
from jaxsim.identification.ticks import (
    CARTPOLE,
    ObservedEpisode,
    Ticks,
    reports_of,
    ticks_of,
    without_offsets,
    without_pole,
)
from jaxsim.inputs import action_codes
from jaxsim.novelty import FAMILIES, Novelty
from jaxsim.novelty.families import MOST
from jaxsim.worlds.cartpole3d.parameter_table import FIELDS, PARAMETERS
from jaxsim.worlds.cartpole3d.types import ACTIONS, Params

TICKS = 96  # transitions that are fitted to
UNEXPLAINED = 0.25  # share of ticks from which something else has changed, too
SLACK = 2.5  # ticks that change a block's first speed, with a margin


@dataclass(frozen=True)
class Identification:
    """What changed in a world.

    Attributes:
      families: names of the families that explain the episodes, sorted; none in the nominal world.
      values: estimates of their parameters, by path.
      unexplained: share of the fitted ticks in which numbers of cart and pole, or of blocks, still
        differ; the larger of the two.
    """

    families: tuple[str, ...]
    values: dict[str, Estimate]
    unexplained: float

    @property
    def none_of_these(self) -> bool:
        """Whether something changed that no family, and no two, explain."""
        return self.unexplained > UNEXPLAINED

    @property
    def words(self) -> tuple[tuple[str, str, str], ...]:
        """Entity, attribute and change of each family."""
        values = {path: one.value for path, one in self.values.items()}
        return tuple(FAMILIES[name].words(values) for name in self.families)

    @property
    def novelty(self) -> Novelty | None:
        """The novelty with these values, None if nothing is identified."""
        if not 1 <= len(self.families) <= MOST:
            return None
        values = {path: _inside(path, one.value) for path, one in self.values.items()}
        return Novelty.of(self.families, values)


def _inside(path: str, value: float) -> float | int:
    """The nearest value that a parameter may have."""
    row = PARAMETERS[path]
    if row.low is not None and row.high is not None:
        value = float(np.clip(value, row.low, row.high))
    return round(value) if isinstance(row.default, int) else value


def identify(episodes: Sequence[ObservedEpisode]) -> Identification:
    """Identify what changed in the world of some episodes.

    Args:
      episodes: episodes in one world, of any agent. Three of `pd` suffice for most families.

    Raises:
      ValueError: no episode, one without an action, observations that do not fit the actions, or
        numbers that are not finite or no actions.
    """
    _check(episodes)
    reports = tuple(reports_of(one) for one in episodes)
    record = _Record(reports, tuple(np.asarray(one.actions) for one in episodes))
    every = record.ticks
    sensors = readings.rounded_or_dropped(every)
    named = _by_family(sensors)
    tells_delay = not sensors.is_dropped("velocity") and "step_velocity" not in sensors.values
    delay = readings.delayed(every) if tells_delay else 0
    if delay:
        named["sensor_delay"] = {"sensor_delay": Estimate(float(delay), 0.0)}
    fitted = _explained(record, sensors, delay)
    if fitted.unexplained > UNEXPLAINED:
        sensors, fitted = _through_noise(record, sensors, delay, fitted)
        named |= _by_family(sensors)
    params = Params()
    if fitted.explanation is not None:
        values = fitted.explanation.values
        for family in fitted.explanation.families:
            fields = {FIELDS[path] for path in FAMILIES[family].paths}
            named[family] = {field: one for field, one in values.items() if field in fields}
        params = Params(**{field: one.value for field, one in values.items()})
    reported = [
        ReportedEpisode(_host(without_offsets(params, reports)), one.to_its_end)
        for one, reports in zip(episodes, fitted.record.reports, strict=True)
    ]
    if not delay and not sensors.lacks("velocity"):
        named |= starts.of_starts(reported, fitted.sizes, fitted.slack, params)
        if sensors.lacks("position"):  # a wind, which is not fitted then, looks alike
            named.pop("start_push", None)
        if not sensors.sizes[2] and not sensors.is_dropped("angle"):
            named |= starts.of_ends(reported)
    if not sensors.is_dropped("velocity"):
        named |= starts.of_supply(reported)
    return _identification(named, fitted.unexplained)


def _check(episodes: Sequence[ObservedEpisode]) -> None:
    """Check observations and actions, and that they fit together; see `identify`."""
    if not isinstance(episodes, Sequence) or isinstance(episodes, ObservedEpisode):
        raise ValueError("episodes must be a list of ObservedEpisode, also for one")
    if not episodes or any(len(one.actions) == 0 for one in episodes):
        raise ValueError("episodes must hold one episode or more, each with an action")
    for number, one in enumerate(episodes):
        observed = len(np.asarray(one.observations.cart_position.x))
        if observed != len(one.actions) + 1:
            raise ValueError(
                f"episode {number} has {observed} observations and {len(one.actions)} actions; "
                "it needs one observation more than actions"
            )
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(one.observations)):
            raise ValueError(f"episode {number} has a number that is not finite")
        action_codes(np.unique(one.actions), len(ACTIONS), ACTIONS)


def _through_noise(
    record: "_Record", sensors: SensorErrors, delay: int, exact: "_Fitted"
) -> tuple[SensorErrors, "_Fitted"]:
    """Errors of the sensors with their noise, and the explanation of what remains.

    Args:
      record: of the episodes.
      sensors: errors without noise.
      delay: of the sensors, ticks.
      exact: the fit without noise.
    """
    fitted, kinds = exact, None
    for _ in range(2):
        # Wrong angles look like noise of rates, so the noise is computed again without an offset.
        noise = readings.noisy(exact.data.ticks, exact.errors_with(fitted.offsets))
        if set(noise.values) == kinds:
            break
        kinds = set(noise.values)
        sizes = np.hypot(sensors.sizes, noise.sizes)
        both = SensorErrors(sensors.values | noise.values, sizes)
        fitted = _explained(record, both, delay) if kinds else exact
    return both, fitted


class _Record(NamedTuple):
    """Reports and actions of episodes."""

    reports: tuple[Sighting, ...]
    actions: tuple[np.ndarray, ...]

    @property
    def ticks(self) -> Ticks:
        """Transitions of all episodes."""
        return ticks_of(self.reports, self.actions)

    @property
    def still(self) -> bool:
        """Whether blocks report no velocity."""
        speeds = np.concatenate([np.ravel(c) for one in self.reports for c in one.block.v])
        return not speeds.any() and any(one.count.any() for one in self.reports)


class _Fitted(NamedTuple):
    """Result of fits to the ticks of some episodes."""

    record: _Record  # without errors that exact readings correct
    sizes: np.ndarray  # (4,) of the errors that are left
    explanation: Explanation | None
    unexplained: float
    data: Data

    @property
    def offsets(self) -> dict[str, float]:
        """Estimated offsets of the sensors, by field."""
        values = self.explanation.values if self.explanation else {}
        return {field: one.value for field, one in values.items() if field.startswith("offset_")}

    def errors_with(self, offsets: dict[str, float]) -> np.ndarray:
        """Errors of predictions that are nominal but for some offsets, (T, 34)."""
        return fits.nominal(self.data.knowing(offsets), np.arange(len(self.data.ticks.episode)))

    @property
    def slack(self) -> float:
        """Largest unusual change of a block's speed in the first ticks of the episodes, m/s."""
        ticks = self.data.ticks
        if not len(ticks.tick):
            return 0.0
        early = np.flatnonzero(ticks.tick < 3 + ticks.tick.min())
        off = np.abs(fits.nominal(self.data, early))[:, CARTPOLE:]
        speeds = off.reshape(len(off), -1, 6)[:, :, 3:]
        # A first speed that follows from places is that of the next tick.
        late_ticks = SLACK + (self.sizes[KINDS.index("velocity")] == FROM_PLACES)
        return late_ticks * float(np.quantile(speeds, 0.9)) if speeds.size else 0.0


def _explained(record: _Record, sensors: SensorErrors, delay: int) -> _Fitted:
    """Explain the ticks of some episodes."""
    still = record.still and not sensors.is_dropped("velocity")
    reports = tuple(_host(repaired(one, sensors.sizes, still)) for one in record.reports)
    record = record._replace(reports=reports)
    sizes = sizes_after(sensors.sizes)
    ticks = record.ticks
    # The last report of an episode cannot be repaired.
    ends = np.append(ticks.tick[1:] == 0, True) if (sizes != sensors.sizes).any() else False
    ticks = ticks.at(np.flatnonzero((ticks.tick >= delay) & ~np.asarray(ends)))
    if still:
        ticks.counts[:, CARTPOLE:] = False
    if sensors.lacks("angle", "rate"):
        ticks = without_pole(ticks)
    fixed = {"delay": float(delay)} if delay else {}
    every = Data(ticks, readings.error_scale(ticks, sizes), fixed)
    if sensors.lacks("position", "velocity") or not len(ticks.tick):  # of short episodes
        return _Fitted(record, sizes, None, 0.0, every)
    return _Fitted(record, sizes, *physics.explain(every.at(_chosen(every)), every), every)


def _host(report: Sighting) -> Sighting:
    """The same report with NumPy leaves, which are faster to index."""
    arrays: Sighting = jax.tree.map(np.asarray, report)
    return arrays


def _chosen(data: Data) -> np.ndarray:
    """Transitions to fit to: those with large nominal errors, then evenly spread ones."""
    ticks = data.ticks
    places = np.arange(len(ticks.episode))
    off = np.abs(fits.nominal(data, places) / data.scale).max(axis=1)
    odd, whole = places[off > physics.EXPLAINED], places[ticks.counts[:, 0]]
    chosen = np.union1d(_some(odd, TICKS // 2), _some(whole, TICKS // 3))
    rest = np.setdiff1d(places, chosen)
    return np.union1d(chosen, _some(rest, TICKS - len(chosen)))


def _some(places: np.ndarray, number: int) -> np.ndarray:
    """Some of the places, evenly."""
    if len(places) <= number:
        return places
    return places[np.linspace(0, len(places) - 1, number).astype(int)]


def _by_family(sensors: SensorErrors) -> Named:
    fields = {FIELDS[path]: family.name for family in FAMILIES.values() for path in family.paths}
    named: Named = {}
    for field, value in sensors.values.items():
        named.setdefault(fields[field], {})[field] = value
    return named


def _identification(named: Named, unexplained: float) -> Identification:
    """Complete the estimates: linked, fixed and unknown parameters."""
    paths = {field: path for path, field in FIELDS.items()}
    values: dict[str, Estimate] = {}
    for name, estimates in named.items():
        values |= {paths[field]: estimate for field, estimate in estimates.items()}
        family = FAMILIES[name]
        for one in family.ranges:
            if one.path not in values:
                values[one.path] = _unknown(one.spans)
            for path, factor, summand in one.linked:
                value, deviation = values[one.path]
                values[path] = Estimate(factor * value + summand, abs(factor) * deviation)
        values |= {path: Estimate(value, 0.0) for path, value in family.fixed}
    return Identification(tuple(sorted(named)), values, unexplained)


def _unknown(spans: Sequence[tuple[float, float]]) -> Estimate:
    """A parameter that the episodes do not show: the middle of its range."""
    low, high = spans[-1]
    return Estimate(0.5 * (low + high), abs(high - low) / 12**0.5)
