"""Families of novelties: which parameters each one changes, in which ranges, and its words.

A family is one way in which the world, its sensors or its actions may differ from the nominal
world of level 200; its first range does not hold the nominal value. The bounds are choices of this
package: they range from changes that are hard to notice to those with which no agent balances, and
`benchmarks.novelty_space` measures where a sample lies between them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jaxsim import parameters
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS

Scale = Literal["linear", "log", "whole"]
Span = tuple[float, float]

MOST = 3
"""Most families of one novelty."""
DIGITS = 4
"""Significant digits of a sampled number, so that its JSON stays short."""


@dataclass(frozen=True)
class Range:
    """Values that one parameter takes within a family.

    Attributes:
      path: of the parameter.
      spans: intervals of values, none of which holds the nominal one.
      scale: "linear" for uniform values, "log" for sizes whose logarithm is uniform, "whole" for
        uniform whole numbers.
      linked: (path, factor, summand) of parameters that follow this one.
    """

    path: str
    spans: tuple[Span, ...]
    scale: Scale = "linear"
    linked: tuple[tuple[str, float, float], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every parameter that is set."""
        return (self.path, *(path for path, _, _ in self.linked))

    def at(self, share: float) -> dict[str, float | int]:
        """Return values by path, from a number in [0, 1) that is uniform over the spans."""
        sizes = [self._size(span) for span in self.spans]
        rest = share * sum(sizes)
        index = 0
        while index < len(sizes) - 1 and rest >= sizes[index]:
            rest -= sizes[index]
            index += 1
        return self.values(self._inside(self.spans[index], rest))

    def values(self, value: float) -> dict[str, float | int]:
        """Return a value of the parameter by path, with those of the linked ones."""
        linked = {
            path: _tidy(factor * value + summand, PARAMETERS[path].default)
            for path, factor, summand in self.linked
        }
        return {self.path: value, **linked}

    def _size(self, span: Span) -> float:
        low, high = span
        if self.scale == "whole":
            return high - low + 1
        return abs(math.log(high / low)) if self.scale == "log" else high - low

    def _inside(self, span: Span, rest: float) -> float | int:
        low, high = span
        if self.scale == "whole":
            return int(min(low + math.floor(rest), high))
        if self.scale == "log":
            # Of negative values the size grows from `low` to `high` as well.
            value = low * math.exp(math.copysign(rest, math.log(high / low)))
        else:
            value = low + rest
        value = _tidy(value, PARAMETERS[self.path].default)
        return min(max(value, min(span)), max(span))


def _assigned(values: Iterable[tuple[str, float]]) -> str:
    return " and ".join(f"{path}={value:g}" for path, value in values)


def _tidy(value: float, default: float | int | str) -> float | int:
    """Round to few digits, or to a whole number if the parameter is one."""
    if isinstance(default, int):
        return round(value)
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Family:
    """One way in which a world can differ.

    Attributes:
      name: short name, for commands and tables.
      entity: what is changed; a level of the catalogue that sets the same parameters may have other
        words in `hints.HINT_WORDS`.
      attribute: of the entity.
      change: word for the change, if the first range is above its nominal value.
      lower: word for the change below the nominal value; "" if there is none.
      ranges: parameters that are drawn.
      fixed: parameters with one value.
      choices: groups of parameters of which a sample has one.
    """

    name: str
    entity: str
    attribute: str
    change: str
    lower: str = ""
    ranges: tuple[Range, ...] = ()
    fixed: tuple[tuple[str, float], ...] = ()
    choices: tuple[tuple[tuple[str, float], ...], ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Every parameter that a sample may set."""
        ranges = (path for one in self.ranges for path in one.paths)
        choices = (path for group in self.choices for path, _ in group)
        return frozenset((*ranges, *choices, *(path for path, _ in self.fixed)))

    @property
    def draws(self) -> int:
        """Number of random numbers of a sample."""
        return len(self.ranges) + bool(self.choices)

    def sample(self, shares: Iterable[float]) -> dict[str, float | int]:
        """Return values by path.

        Args:
          shares: `draws` numbers in [0, 1).
        """
        numbers = iter(shares)
        values: dict[str, float | int] = dict(self.fixed)
        for one in self.ranges:
            values |= one.at(next(numbers))
        if self.choices:
            values |= dict(self.choices[int(next(numbers) * len(self.choices))])
        return values

    def completed(self, values: Mapping[str, Any]) -> dict[str, float | int]:
        """Return the values of this family, with the fixed and the linked ones that are missing.

        Args:
          values: by path; those of other families are ignored.

        Raises:
          ValueError: a range or a choice without a value, another value of a fixed parameter or of
            a choice, or a nominal value of the first range, without which the rest has no effect.
        """
        given = {path: value for path, value in values.items() if path in self.paths}
        result: dict[str, float | int] = dict(self.fixed)
        for one in self.ranges:
            if one.path not in given:
                raise ValueError(f"family {self.name!r} needs a value of {one.path}")
            linked = [path for path, *_ in one.linked if path in given]
            result |= {**one.values(given[one.path]), **{path: given[path] for path in linked}}
        chosen = [dict(group) for group in self.choices if dict(group).items() <= given.items()]
        if self.choices and not chosen:
            options = " or ".join(_assigned(group) for group in self.choices)
            raise ValueError(f"family {self.name!r} needs {options}")
        for group in chosen:
            result |= group
        for path, value in given.items():
            if result.get(path) != value:
                options = _assigned(self.fixed) or "no value of it beside this choice"
                raise ValueError(
                    f"{path} is {value}; family {self.name!r} needs {options}; leave it out"
                )
        first = self.ranges[0].paths if self.ranges else ()
        if first and all(result[path] == PARAMETERS[path].default for path in first):
            listed = ", ".join(f"{path} is {result[path]:g}" for path in first)
            raise ValueError(
                f"family {self.name!r} changes nothing: {listed}, as without it; change a value"
            )
        return result

    def words(self, values: Mapping[str, float]) -> tuple[str, str, str]:
        """Entity, attribute and change of a sample.

        What is scaled by a negative number changes its direction, not its size.

        Args:
          values: by path.
        """
        if not self.lower:
            return self.entity, self.attribute, self.change
        path = self.ranges[0].path
        nominal = PARAMETERS[path].default
        assert not isinstance(nominal, str)
        if values[path] < 0 < nominal:
            return self.entity, "direction", "opposite"
        below = values[path] < nominal
        return self.entity, self.attribute, self.lower if below else self.change


def _around(nominal: float, low: float, high: float, apart: float = 1.02) -> tuple[Span, ...]:
    """Sizes from `low` to `high`, at least a factor of `apart` from the nominal one."""
    return (low, nominal / apart), (nominal * apart, high)


def _signed(low: float, high: float) -> tuple[Span, ...]:
    return (-low, -high), (low, high)


def _sized(name: str, entity: str, attribute: str, path: str, low: float, high: float) -> Family:
    """A family of one positive number, on a logarithmic scale."""
    nominal = PARAMETERS[path].default
    assert isinstance(nominal, float)
    one = Range(path, _around(nominal, low, high), "log")
    return Family(name, entity, attribute, "increase", "decrease", (one,))


def _sensor_error(
    name: str, attribute: str, change: str, kind: str, low: float, high: float
) -> Family:
    """A family of sensor errors, on a logarithmic scale from a size that is hard to notice."""
    spans = _signed(low, high) if kind.startswith("offset") else ((low, high),)
    one = Range(f"sensors/{kind}", spans, "log")
    lower = "decrease" if kind.startswith("offset") else ""
    return Family(name, "sensor", attribute, change, lower, (one,))


def _pull(name: str, path: str, towards: str, away: str) -> Family:
    one = Range(path, _signed(0.2, 40.0), "log")
    return Family(name, "block", "direction", towards, away, (one,))


def _bounce(name: str, entity: str, path: str, spans: tuple[Span, ...]) -> Family:
    nominal_is_least = PARAMETERS[path].default == 0
    lower = "" if nominal_is_least else "decrease"
    return Family(name, entity, "bounce", "increase", lower, (Range(path, spans),))


_AROUND_ONE: tuple[Span, ...] = ((0.0, 0.98), (1.02, 1.4))

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        # The world.
        _sized("gravity", "world", "gravity", "gravity", 2.45, 39.2),
        _sized("drag", "world", "drag", "drag", 0.004, 0.6),
        _sized("fall_angle", "world", "tolerance", "lean_limit", 0.06, 0.5),
        Family(
            "room_width",
            "room",
            "size",
            "increase",
            "decrease",
            (Range("room/half_width", ((4.5, 4.9), (5.0, 12.0))),),
        ),
        Family(
            "room_ceiling",
            "room",
            "height",
            "increase",
            "decrease",
            (Range("room/ceiling", ((9.5, 9.9), (10.0, 20.0))),),
        ),
        Family(
            "room_floor", "room", "depth", "increase", "", (Range("room/floor", ((-8, -0.1),)),)
        ),
        _bounce("wall_bounce", "wall", "walls/restitution", _AROUND_ONE),
        Family(
            "bounce_spread",
            "block",
            "bounce",
            "random",
            "",
            (Range("walls/bounce_spread", ((0.02, 0.6),), "log"),),
        ),
        Family("wind", "world", "wind", "increase", "", (Range("wind/speed", ((1.0, 24.0),)),)),
        Family(
            "wind_on_pole",
            "pole",
            "force",
            "toward walls",
            "",
            (
                Range("wind/speed", ((1.0, 20.0),)),
                Range("wind/pole_drag", ((0.3, 3.0),), "log"),
            ),
            (("repairs/wind_on_pole", 1),),
        ),
        # Cart and pole.
        _sized("cart_mass", "cart", "mass", "cart/mass", 0.1, 20.0),
        _bounce("cart_bounce", "cart", "cart/restitution", ((0.05, 1.3),)),
        _sized("pole_mass", "pole", "mass", "pole/mass", 0.01, 3.0),
        _sized("pole_length", "pole", "size", "pole/length", 0.3, 9.0),
        _sized("pole_com", "pole", "balance", "pole/com", 0.4, 2.5),
        _bounce("pole_bounce", "pole", "pole/restitution", ((0.05, 1.3),)),
        # Pushes.
        _sized("push_size", "push", "size", "force", 2.0, 150.0),
        Family(
            "push_right",
            "push",
            "size",
            "increase",
            "decrease",
            (Range("actions/scale_x", ((-2.0, 0.95), (1.05, 3.0))),),
        ),
        Family(
            "push_forward",
            "push",
            "size",
            "increase",
            "decrease",
            (Range("actions/scale_y", ((-2.0, 0.95), (1.05, 3.0))),),
        ),
        Family(
            "push_turn",
            "push",
            "direction",
            "left",
            "right",
            (Range("actions/turn", ((-180.0, -2.0), (2.0, 180.0))),),
        ),
        Family(
            "push_sign",
            "push",
            "direction",
            "opposite",
            "",
            (Range("actions/sign", ((-3.0, -0.3),)),),
        ),
        Family(
            "push_delay",
            "push",
            "time",
            "increase",
            "",
            (Range("actions/delay", ((1, 8),), "whole"),),
        ),
        # Blocks.
        _sized("block_mass", "block", "mass", "blocks/mass", 0.01, 100.0),
        _sized("block_size", "block", "size", "blocks/radius", 0.2, 1.2),
        Family(
            "block_weight",
            "block",
            "gravity",
            "decrease",
            "increase",
            (Range("blocks/buoyancy", ((0.0, 0.99), (1.01, 2.0))),),
        ),
        _bounce("block_bounce", "block", "blocks/restitution", _AROUND_ONE),
        Family(
            "block_friction",
            "block",
            "friction",
            "increase",
            "",
            (
                Range("blocks/friction", ((0.05, 1.5),)),
                Range("cart/friction", ((0.05, 1.5),)),
                Range("pole/friction", ((0.05, 1.5),)),
            ),
        ),
        Family(
            "block_number",
            "block",
            "quantity",
            "increase",
            "decrease",
            (
                Range(
                    "blocks/count_min",
                    ((0, 1), (5, 8)),
                    "whole",
                    (("blocks/count_max", 1.0, 0.0),),
                ),
            ),
        ),
        Family(
            "block_speed",
            "block",
            "speed",
            "increase",
            "decrease",
            (
                Range(
                    "blocks/speed_max",
                    _around(10.0, 0.5, 25.0),
                    "log",
                    (("blocks/speed_min", 0.6, 0.0),),
                ),
            ),
        ),
        Family(
            "block_aim",
            "block",
            "direction",
            "toward cart",
            "",
            (
                Range("blocks/aim_share", ((0.1, 1.0),)),
                Range("blocks/aim_speed_max", ((3.0, 14.0),)),
            ),
        ),
        Family(
            "block_gather",
            "block",
            "direction",
            "toward location",
            "",
            (Range("blocks/gather_speed_max", ((2.0, 15.0),)),),
        ),
        Family(
            "block_scatter",
            "block",
            "speed",
            "random",
            "",
            (Range("blocks/scatter_speed", ((0.5, 12.0),)),),
        ),
        Family(
            "block_lines",
            "block",
            "path",
            "straight",
            "",
            (
                Range(
                    "blocks/line_near", ((0.5, 3.5),), "linear", (("blocks/line_far", 1.0, 1.0),)
                ),
                Range("blocks/friction", ((0.05, 1.0),)),
            ),
        ),
        Family(
            "block_supply",
            "block",
            "quantity",
            "increasing",
            "",
            (Range("spawn/period", ((16, 120),), "whole"),),
            (("spawn/ahead", 1),),
        ),
        Family(
            "block_flood",
            "block",
            "quantity",
            "increasing",
            "",
            (
                Range("spawn/period", ((16, 120),), "whole"),
                Range(
                    "spawn/speed_max", ((3.0, 10.0),), "linear", (("spawn/speed_min", 0.6, 0.0),)
                ),
            ),
        ),
        _pull("pull_blocks", "blocks/pull_centroid", "toward block", "away from block"),
        _pull("pull_cart", "blocks/pull_cart", "toward cart", "away from cart"),
        _pull("pull_origin", "blocks/pull_origin", "toward location", "away from location"),
        Family(
            "pull_random",
            "block",
            "direction",
            "random",
            "",
            (Range("blocks/pull_centroid_random", ((0.5, 40.0),), "log"),),
        ),
        # Starts.
        Family(
            "start_push",
            "cart",
            "speed",
            "increase",
            "",
            (Range("start/push", ((2.0, 60.0),), "log"),),
        ),
        Family(
            "start_lean",
            "pole",
            "angle",
            "increase",
            "",
            (Range("start/lean", ((0.012, 0.1),), "log"),),
        ),
        # Sensors.
        _sensor_error("noise_position", "position", "random", "noise_position", 0.002, 0.5),
        _sensor_error("noise_velocity", "velocity", "random", "noise_velocity", 0.004, 2.0),
        _sensor_error("noise_angle", "angle", "random", "noise_angle", 0.0005, 0.1),
        _sensor_error("noise_rate", "rate", "random", "noise_rate", 0.004, 2.0),
        _sensor_error("step_position", "position", "rounded", "step_position", 0.005, 1.0),
        _sensor_error("step_velocity", "velocity", "rounded", "step_velocity", 0.01, 4.0),
        _sensor_error("step_angle", "angle", "rounded", "step_angle", 0.001, 0.15),
        _sensor_error("step_rate", "rate", "rounded", "step_rate", 0.01, 2.0),
        _sensor_error("offset_position", "position", "increase", "offset_position", 0.01, 2.0),
        _sensor_error("offset_velocity", "velocity", "increase", "offset_velocity", 0.01, 2.0),
        _sensor_error("offset_angle", "angle", "increase", "offset_angle", 0.001, 0.1),
        _sensor_error("offset_rate", "rate", "increase", "offset_rate", 0.005, 1.0),
        Family(
            "sensor_delay",
            "sensor",
            "time",
            "increase",
            "",
            (Range("sensors/delay", ((1, 3),), "whole"),),
        ),
        Family(
            "sensor_dropped",
            "sensor",
            "quantity",
            "decrease",
            choices=tuple(
                ((f"sensors/gain_{kind}", 0.0),)
                for kind in ("position", "velocity", "angle", "rate")
            ),
        ),
    )
}
"""Every family by its name."""


def family(name: str) -> Family:
    """Look a family up.

    Raises:
      ValueError: no family has that name; the message names the nearest one.
    """
    if name not in FAMILIES:
        raise ValueError(parameters.unknown("family", name, FAMILIES))
    return FAMILIES[name]


def check_together(names: Iterable[str]) -> tuple[Family, ...]:
    """Return families that one novelty is composed of.

    Raises:
      ValueError: an unknown family, one twice, more than `MOST`, or two that set one parameter.
    """
    members = tuple(family(name) for name in names)
    if not 1 <= len(members) <= MOST:
        raise ValueError(f"a novelty has {len(members)} families; it must have 1 to {MOST}")
    owner: dict[str, str] = {}
    for member in members:
        for path in sorted(member.paths):
            if path in owner:
                raise ValueError(
                    f"families {owner[path]!r} and {member.name!r} both set {path!r}; "
                    "leave one of them out"
                )
            owner[path] = member.name
    return members
