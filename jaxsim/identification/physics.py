"""Families of novelties as explanations of transitions, one or two at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from jaxsim.identification import fits
from jaxsim.identification.estimates import Estimate, greatest
from jaxsim.identification.fits import Data, Hypothesis, Knob, ParameterFit
from jaxsim.identification.ticks import CARTPOLE, NUMBERS
from jaxsim.novelty.families import FAMILIES, Family, Range
from jaxsim.worlds.cartpole3d.parameter_table import FIELDS
from jaxsim.worlds.cartpole3d.types import Params

Per = Literal["all", "episode", "tick"]

STARTS, STARTS_OF_TWO = 6, 2  # of a fit, in each span of a parameter
ANGLES = 8  # first values of a wind's angle, two in each quadrant
NEAREST = 0.003  # distance of the first start from the nominal value, as a share of the span
LEADERS, FINALISTS = 8, 6  # single families that are composed; pairs fitted to the end
SHORT = 32  # transitions of the first fit of pairs
KEPT = 5  # rough fits of a model that are continued
GAIN = 20.0  # of the logarithm of the evidence, that a family must add
INSIDE = 0.5  # share of a range's distance from the nominal value, from which a value differs
SURE = 0.1  # of a knob's range, standard error of a draw that counts
EXPLAINED = 10.0  # scales, up to which a prediction is right

FITTED = frozenset(
    {
        "gravity",
        "drag",
        "room_half_width",
        "room_ceiling",
        "room_floor",
        "restitution_wall",
        "restitution_block",
        "restitution_cart",
        "restitution_pole",
        "wind_speed",
        "pole_drag",
        "cart_mass",
        "pole_mass",
        "pole_length",
        "pole_com",
        "force",
        "action_sign",
        "action_scale_x",
        "action_scale_y",
        "action_turn",
        "block_mass",
        "block_radius",
        "block_buoyancy",
        "pull_centroid",
        "pull_cart",
        "pull_origin",
        "offset_position",
        "offset_velocity",
        "offset_angle",
        "offset_rate",
    }
)
"""Parameters that a tick depends on."""
DRAWN: dict[str, tuple[str, Per]] = {
    "bounce_spread": ("extra_bounce", "episode"),
    "pull_centroid_random": ("pull_centroid", "tick"),
}
"""Parameters that bound a random number, with that number and how often it is drawn."""
DELAY = "action_delay"
WIND_ANGLE = Knob("wind_angle", -1.0, 7.5)


class FamilyModel(NamedTuple):
    """Families that may explain transitions, as numbers to fit.

    Attributes:
      families: one or two.
      knobs: P numbers.
      starts: first values of fits, (P,) each.
      fixed: numbers that are not fitted, by field.
      per: which transitions share fitted numbers.
      known: estimates of fixed numbers, from other fits.
    """

    families: tuple[Family, ...]
    knobs: tuple[Knob, ...]
    starts: tuple[tuple[float, ...], ...]
    fixed: dict[str, float]
    per: Per
    known: Mapping[str, Estimate] = MappingProxyType({})


@dataclass(frozen=True)
class Explanation:
    """Families that explain transitions.

    Attributes:
      families: names.
      values: estimates by field.
      score: logarithm of the evidence.
      model: that was fitted.
      fits: of each group of transitions.
    """

    families: tuple[str, ...]
    values: dict[str, Estimate]
    score: float
    model: FamilyModel
    fits: tuple[ParameterFit, ...]


def explain(data: Data, every: Data) -> tuple[Explanation | None, float]:
    """Find the families that explain transitions best.

    Args:
      data: some transitions, that families are fitted to.
      every: all of them, which decide between families that explain these equally well.

    Returns:
      The explanation, None if the nominal world needs none, and the share of ticks that it (or the
      nominal world) leaves unexplained.
    """
    plain = fits.nominal(data, np.arange(len(data.ticks.episode)))
    base = float(fits.likelihood(plain, data.scale))
    ranked = singles(data)
    if ranked[0].score < base + GAIN:
        return None, _unexplained(plain, data)
    if _unexplained(_errors(ranked[0], data), data) > 0:
        two = pairs(data, ranked)
        if two and two[0].score > ranked[0].score + GAIN:
            ranked = two
    # Of many episodes, some have no transition among those that are fitted to.
    covered = np.isin(every.ticks.episode, data.ticks.episode)
    best = _decided(ranked, every.at(np.flatnonzero(covered)))
    return best, _unexplained(_errors(best, data), data)


def _decided(ranked: Sequence[Explanation], every: Data) -> Explanation:
    """The explanation that is best for all transitions, of those that are nearly as good."""
    rivals = [one for one in ranked if one.score > ranked[0].score - GAIN]
    if len(rivals) == 1 or "tick" in {one.model.per for one in rivals}:
        return ranked[0]

    def value(one: Explanation) -> float:
        spread = one.score - sum(fit.likelihood for fit in one.fits)
        return spread + float(fits.likelihood(_errors(one, every), every.scale))

    return max(rivals, key=value)


def _unexplained(off: np.ndarray, data: Data) -> float:
    """Share of ticks with an error, of cart and pole or of blocks, the larger one."""
    missed = (np.abs(off) > EXPLAINED * data.scale) & data.ticks.counts

    def share(columns: slice) -> float:
        counted = data.ticks.counts[:, columns].any(axis=1)
        return float(missed[:, columns].any(axis=1).sum() / max(counted.sum(), 1))

    return max(share(slice(None, CARTPOLE)), share(slice(CARTPOLE, None)))


# Single families --------------------------------------------------------------------------------


def singles(data: Data) -> list[Explanation]:
    """Every single family, the best first."""
    models = [model for family in FAMILIES.values() if (model := _model(family, STARTS))]
    return _refined(_ranked(models, data), data)


def _refined(ranked: list[Explanation], data: Data) -> list[Explanation]:
    """Continue the fits of the best explanations."""
    again = _ranked([_again(one) for one in ranked[:FINALISTS]], data)
    better = {one.families: one for one in again}
    kept = (max(one, better.get(one.families, one), key=lambda x: x.score) for one in ranked)
    return sorted(kept, key=lambda one: -one.score)


def _again(one: Explanation) -> FamilyModel:
    """The same model, to start where its fits have ended."""
    return one.model._replace(starts=tuple(tuple(fit.values.tolist()) for fit in one.fits))


def _model(family: Family, starts: int) -> FamilyModel | None:
    """Numbers to fit for a family; None if a tick does not depend on it."""
    fields = [FIELDS[one.path] for one in family.ranges]
    fixed = {FIELDS[path]: value for path, value in family.fixed}
    if fields == [DELAY]:
        low, high = family.ranges[0].spans[0]
        delays = tuple((float(d),) for d in range(int(low), int(high) + 1))
        return FamilyModel((family,), (Knob("delay", low, high),), delays, fixed, "all")
    if len(fields) == 1 and fields[0] in DRAWN:
        number, per = DRAWN[fields[0]]
        _, high = family.ranges[0].spans[-1]
        return FamilyModel((family,), (Knob(number, 0.0, high),), ((0.3 * high,),), fixed, per)
    if not fields or not FITTED.issuperset(fields):
        return None
    knobs = [_knob(one) for one in family.ranges]
    points = [_starts(one, starts if len(fields) == 1 else 2) for one in family.ranges]
    per = "all"
    if "wind_speed" in fields:
        knobs.append(WIND_ANGLE)
        points.append([2 * np.pi * (k + 0.5) / ANGLES for k in range(ANGLES)])
        per = "episode"
    return FamilyModel((family,), tuple(knobs), tuple(product(*points)), fixed, per)


def _knob(one: Range) -> Knob:
    low, high = min(min(s) for s in one.spans), max(max(s) for s in one.spans)
    return Knob(FIELDS[one.path], low, high, one.scale == "log" and low > 0)


def _starts(one: Range, number: int) -> list[float]:
    """First values of a fit, denser towards the nominal value."""
    nominal = getattr(Params(), FIELDS[one.path])
    values = []
    for low, high in one.spans:
        far = max((low, high), key=lambda end: abs(end - nominal))
        near = NEAREST ** (1 - (np.arange(number) + 0.5) / number)
        shares = [*near, *(np.arange(1, number) / number)]
        if one.scale == "log" and low > 0 and nominal > 0:
            values += [nominal * (far / nominal) ** share for share in shares]
        else:
            values += [nominal + (far - nominal) * share for share in shares]
    return values


# Fits -------------------------------------------------------------------------------------------


def _ranked(
    models: Sequence[FamilyModel], data: Data, blurs: tuple[float, ...] = fits.FINE
) -> list[Explanation]:
    """Fit models and sort them, the best first.

    With `fits.FINE`, only the best of rough fits are continued.
    """
    hypotheses: list[Hypothesis] = []
    owner: list[tuple[int, int]] = []  # model and group
    for place, model in enumerate(models):
        for number, index in enumerate(_groups(model.per, data)):
            for start in model.starts:
                hypotheses.append(Hypothesis(model.knobs, start, model.fixed, index))
                owner.append((place, number))
    results = fits.fit(hypotheses, data, fits.ROUGH)
    if blurs == fits.FINE:
        chosen = _best(owner, results, KEPT)
        owner = [owner[place] for place in chosen]
        hypotheses = [
            hypotheses[place]._replace(start=tuple(results[place].values)) for place in chosen
        ]
        results = fits.fit(hypotheses, data, fits.FINE)
    best = {owner[place]: results[place] for place in _best(owner, results, 1)}
    explanations = [
        _explanation(model, [one for (owned, _), one in best.items() if owned == place])
        for place, model in enumerate(models)
    ]
    return sorted(explanations, key=lambda one: -one.score)


def _best(
    owner: Sequence[tuple[int, int]], results: Sequence[ParameterFit], number: int
) -> list[int]:
    """Places of the likeliest results of each owner, in the order of their owners."""
    order = sorted(range(len(owner)), key=lambda place: -results[place].likelihood)
    taken: dict[tuple[int, int], list[int]] = {key: [] for key in owner}
    for place in order:
        if len(taken[owner[place]]) < number:
            taken[owner[place]].append(place)
    return [place for places in taken.values() for place in places]


def _groups(per: Per, data: Data) -> list[np.ndarray]:
    """Transitions that share fitted numbers; equally many in each group."""
    number = len(data.ticks.episode)
    if per == "all":
        return [np.arange(number)]
    if per == "tick":
        return [np.array([place]) for place in range(number)]
    return [np.flatnonzero(data.ticks.episode == e) for e in np.unique(data.ticks.episode)]


def _explanation(model: FamilyModel, results: list[ParameterFit]) -> Explanation:
    values = np.array([one.values for one in results])
    deviations = np.maximum(np.array([one.deviations for one in results]), 1e-12)
    shared = dict(model.known)
    drawn = {number: field for field, (number, _) in DRAWN.items()}
    fields = {FIELDS[one.path] for family in model.families for one in family.ranges}
    for place, knob in enumerate(model.knobs):
        of_knob, weight = values[:, place], deviations[:, place] ** -2.0
        bound = drawn.get(knob.name)
        if bound in fields:
            # A number without any effect in its transitions stays at its start.
            sure = deviations[:, place] < SURE * (knob.high - knob.low)
            shared[bound] = greatest(of_knob[sure] if sure.any() else of_knob)
        elif knob.name == "delay":
            shared[DELAY] = Estimate(float(np.round(of_knob[0])), 0.0)
        elif knob != WIND_ANGLE:
            mean = float((of_knob * weight).sum() / weight.sum())
            shared[knob.name] = Estimate(mean, float(weight.sum() ** -0.5))
    score = sum(one.evidence for one in results)
    if not all(_differs(family, shared) for family in model.families):
        score = -np.inf
    names = tuple(sorted(family.name for family in model.families))
    return Explanation(names, shared, score, model, tuple(results))


def _differs(family: Family, values: dict[str, Estimate]) -> bool:
    """Whether estimates lie outside of the gap that the ranges leave about nominal values."""
    for one in family.ranges:
        field = FIELDS[one.path]
        nominal = getattr(Params(), field)
        if any(low <= nominal <= high for low, high in one.spans):
            continue
        gap = min(abs(end - nominal) for span in one.spans for end in span)
        if abs(values[field].value - nominal) < INSIDE * gap:
            return False
    return True


def _errors(one: Explanation, data: Data) -> np.ndarray:
    """Errors of an explanation, (T, 34)."""
    off = np.zeros((len(data.ticks.episode), NUMBERS))
    for index, fit in zip(_groups(one.model.per, data), one.fits, strict=True):
        numbers = {knob.name: v for knob, v in zip(one.model.knobs, fit.values, strict=True)}
        off[index] = fits.nominal(data.knowing(one.model.fixed | numbers), index)
    return off


# Two families -----------------------------------------------------------------------------------


def pairs(data: Data, ranked: Sequence[Explanation]) -> list[Explanation]:
    """Compositions of two families, the best first.

    Each of the best single families is composed with every other one, and fitted briefly to some of
    the transitions; the best are then fitted to all.
    """
    models = [
        model
        for first in ranked[:LEADERS]
        for second in ranked
        if (model := _composed(first, second)) is not None
    ]
    unique = {tuple(sorted(f.name for f in model.families)): model for model in reversed(models)}
    number = len(data.ticks.episode)
    some = np.unique(np.linspace(0, number - 1, SHORT).astype(int))
    early = _ranked(list(unique.values()), data.at(some), fits.ROUGH)
    return _ranked([_again(one) for one in early[:FINALISTS]], data)


def _composed(first: Explanation, second: Explanation) -> FamilyModel | None:
    """Model of two families that do not set the same parameter."""
    one, other = first.model, second.model
    (a,), (b,) = one.families, other.families
    if a.paths & b.paths:
        return None
    if "tick" in (one.per, other.per):
        return _fixing(first, second)
    per: Per = "episode" if "episode" in (one.per, other.per) else "all"
    of_second = [tuple(fit.values.tolist()) for fit in second.fits]
    again = _model(b, STARTS_OF_TWO)
    assert again is not None
    of_second += again.starts[:4]
    starts = tuple((*fit.values, *y) for fit in first.fits for y in of_second)
    return FamilyModel((a, b), one.knobs + other.knobs, starts, one.fixed | other.fixed, per)


def _fixing(first: Explanation, second: Explanation) -> FamilyModel | None:
    """Model of a number that is drawn each tick beside a family whose numbers are fitted already.

    One tick does not determine both.
    """
    drawn, other = sorted((first, second), key=lambda one: one.model.per != "tick")
    if other.model.per != "all":
        return None
    (fit,) = other.fits
    numbers = {knob.name: v for knob, v in zip(other.model.knobs, fit.values, strict=True)}
    return drawn.model._replace(
        families=drawn.model.families + other.model.families,
        fixed=drawn.model.fixed | other.model.fixed | numbers,
        known=other.values,
    )
