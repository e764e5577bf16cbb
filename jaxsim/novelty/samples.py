"""Samples of the space of novelties: their form, how to draw them, and how values name one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import parameters, rng
from jaxsim.inputs import check_whole
from jaxsim.json_types import JsonMapping, JsonObject
from jaxsim.novelty.families import FAMILIES, Family, check_together
from jaxsim.parameters import Values
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS, check_values

KEY = "novelty"
"""Key of a novelty among values by path: ``{"novelty": {...}}``."""

MOST_SAMPLES = 1_000_000
_JOINT = "+"  # between families of one novelty, in a name
_FIELDS = ("families", "parameters")


@dataclass(frozen=True)
class Novelty:
    """One novelty: parameters of CartPole3D that differ from level 200.

    Attributes:
      families: names of the families that it is composed of, sorted.
      parameters: (path, value) pairs, sorted by path.
    """

    families: tuple[str, ...]
    parameters: tuple[tuple[str, float | int], ...]

    @classmethod
    def of(cls, families: Iterable[str], values: JsonMapping) -> "Novelty":
        """Check a novelty.

        Args:
          families: names, in any order.
          values: by path, a value of each range of the families and one of their choices, some of
            which differ from the nominal ones, and nothing beside. Parameters that are fixed or
            linked to a range may be left out, and are completed.

        Raises:
          ValueError: an unknown family or parameter, a value out of bounds, a parameter that
            belongs to none of the families or to two, values that contradict one another, or what
            `Family.completed` raises.
        """
        members = check_together(families)
        parameters.check(PARAMETERS, values)
        paths = frozenset().union(*(member.paths for member in members))
        for path in values:
            if path not in paths:
                names = ", ".join(member.name for member in members)
                raise ValueError(
                    f"parameter {path!r} belongs to no family of this novelty ({names})"
                )
        completed: dict[str, float | int] = {}
        for member in members:
            completed |= member.completed(values)
        parameters.check(PARAMETERS, completed)
        check_values(completed)
        return cls(tuple(sorted(m.name for m in members)), tuple(sorted(completed.items())))

    @classmethod
    def from_json(cls, value: object) -> "Novelty":
        """Read ``{"families": [NAME, ...], "parameters": {PATH: VALUE, ...}}``.

        Raises:
          ValueError: another form, or what `of` raises.
        """
        if not isinstance(value, Mapping) or set(value) != set(_FIELDS):
            raise ValueError(
                f"{KEY!r} is {parameters.shown(value)}; it must be an object with the keys "
                "'families' and 'parameters'"
            )
        families, values = (value[field] for field in _FIELDS)
        if not isinstance(families, list | tuple) or not all(isinstance(f, str) for f in families):
            raise ValueError("'families' of a novelty must be a list of names")
        if not isinstance(values, Mapping) or not all(isinstance(path, str) for path in values):
            raise ValueError("'parameters' of a novelty must be an object of values by path")
        return cls.of(families, values)

    def to_json(self) -> JsonObject:
        """Return plain JSON values, which `from_json` reads."""
        return {"families": list(self.families), "parameters": dict(self.parameters)}

    @property
    def name(self) -> str:
        """Names of its families, joined."""
        return _JOINT.join(self.families)

    @property
    def words(self) -> tuple[tuple[str, str, str], ...]:
        """Entity, attribute and change by family."""
        values = dict(self.parameters)
        return tuple(FAMILIES[name].words(values) for name in self.families)

    def describe(self) -> str:
        """Describe the differences from level 200 in words."""
        parts = []
        for path, value in self.parameters:
            row = PARAMETERS[path]
            unit = f" {row.unit}" if row.unit else ""
            parts.append(f"{path} is {value:g}{unit} in place of {row.default:g}")
        return "; ".join(parts)


def split(name: str) -> tuple[str, ...]:
    """Names of the families in a name such as "gravity+wind"."""
    return tuple(part.strip() for part in name.split(_JOINT))


def sample(key: jax.Array, families: Sequence[str], size: int) -> tuple[Novelty, ...]:
    """Draw novelties.

    Sample i is of entry i modulo the number of entries, and depends on the key, i and that entry
    alone: a longer draw begins with the same samples.

    Args:
      key: typed key.
      families: names of families, or several joined as in "gravity+wind"; up to three.
      size: number of novelties.

    Returns:
      (size,) novelties.

    Raises:
      ValueError: no families, an unknown one, two that contradict each other, or a bad size.
    """
    check_whole("size", size, 1, MOST_SAMPLES)
    if not families:
        raise ValueError("families is empty; name one or more")
    if isinstance(families, str):
        raise ValueError(f"families is {families!r}; it must be a list, as [{families!r}]")
    entries = [check_together(split(name)) for name in families]
    most = max(sum(member.draws for member in members) for members in entries)
    words = rng.fold(rng.words(key), jnp.arange(size))
    shares = np.asarray(rng.uniform(jax.tree.map(lambda w: w[:, None], words), jnp.arange(most)))
    return tuple(_drawn(entries[i % len(entries)], shares[i]) for i in range(size))


def _drawn(members: Sequence[Family], shares: np.ndarray) -> Novelty:
    values: dict[str, float | int] = {}
    first = 0
    for member in members:
        values |= member.sample(shares[first : first + member.draws].tolist())
        first += member.draws
    return Novelty.of((member.name for member in members), values)


def expand(values: Values) -> dict[str, Any]:
    """Replace a novelty among values by the parameters that it sets.

    Args:
      values: by path; under "novelty", the JSON of a novelty or a `Novelty`.

    Raises:
      ValueError: no novelty, or a parameter that is set beside it as well.
    """
    if KEY not in values:
        return dict(values)
    entry = values[KEY]
    novelty = entry if isinstance(entry, Novelty) else Novelty.from_json(entry)
    plain_values = {path: value for path, value in values.items() if path != KEY}
    for path, _ in novelty.parameters:
        if path in plain_values:
            raise ValueError(f"parameter {path!r} is set beside the novelty that sets it")
    return {**plain_values, **dict(novelty.parameters)}
