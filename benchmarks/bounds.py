"""Settings at and between the bounds of every parameter, to be played by `benchmarks.fuzz`.

First come settings of which one parameter stands at one of its bounds, then random ones, which
change several parameters at a time, some of them to a bound. What compiles is the set of optional
parts and the number of block slots, not a number: all settings of a world share a program or two.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import jaxsim
from benchmarks.catalogue import CaseGroup, add_to
from evaluation.json_types import JsonObject
from jaxsim.parameters import Parameter

CHANGED = 0.2
"""Share of the parameters that a random setting changes."""
AT_BOUND = 0.3
"""Share of those that it sets to a bound."""

MOST_SLOTS = 205
"""Most blocks of a world that is played; more only take longer."""
PAIRS = (
    ("blocks/count_min", "blocks/count_max"),
    ("blocks/speed_min", "blocks/speed_max"),
    ("blocks/aim_speed_min", "blocks/aim_speed_max"),
    ("blocks/line_near", "blocks/line_far"),
    ("spawn/speed_min", "spawn/speed_max"),
    ("drag/min", "drag/max"),
)
"""Paths of the least and the greatest value of a range."""

Values = JsonObject


def ends(parameter: Parameter) -> tuple[Any, ...]:
    """The bounds of a parameter, or all its choices."""
    if parameter.choices:
        return parameter.choices
    return tuple(_typed(parameter, end) for end in (parameter.low, parameter.high))


def at_bounds(table: Mapping[str, Parameter]) -> Iterator[Values]:
    """Settings of which one parameter is at a bound."""
    for path, parameter in table.items():
        for value in ends(parameter):
            yield in_order(table, {path: value})


def drawn(table: Mapping[str, Parameter], random: np.random.Generator) -> Values:
    """A random setting."""
    rows = [p for p in table.values() if random.random() < CHANGED]
    return in_order(table, {p.path: _draw(p, random) for p in rows})


def in_order(table: Mapping[str, Parameter], values: Values) -> Values:
    """Sort the values of each pair, so that no least one is above its greatest."""
    for low, high in PAIRS:
        if low in values or high in values:
            pair = values.get(low, ends(table[low])[0]), values.get(high, ends(table[high])[1])
            values |= dict(zip((low, high), sorted(pair), strict=True))
    return values


def of_physics(env_id: str) -> dict[str, Parameter]:
    """Parameters of an environment, except those that change nothing in its world."""
    spec = jaxsim.spec(env_id)
    return {path: row for path, row in spec.parameters.items() if path not in spec.limits}


def groups(count: int, seed: int, most_slots: int) -> list[CaseGroup]:
    """Settings sorted by the program they need, as `catalogue.groups` sorts levels.

    Args:
      count: random settings of each world, on top of those at one bound.
      seed: of the random ones.
      most_slots: settings whose episodes may hold more blocks are left out.
    """
    by_program: dict[Any, CaseGroup] = {}
    for index, env_id in enumerate(jaxsim.registered_envs()):
        table = of_physics(env_id)
        if jaxsim.spec(env_id).task == "CartPole3DLeans":
            continue  # CartPole3D with other actions
        randoms = (drawn(table, np.random.default_rng([seed, index, n])) for n in range(count))
        for number, values in enumerate((*at_bounds(table), *randoms)):
            env, params = jaxsim.make(env_id, values)
            if getattr(getattr(env, "config", None), "max_blocks", 0) <= most_slots:
                add_to(by_program, f"{env.name} {number}: {values}", env, params)
    return list(by_program.values())


def combinations(count: int, seed: int, most_slots: int) -> list[CaseGroup]:
    """Random settings of CartPole3D for the property kit, sorted by program.

    Cases that the kit cannot compare are left out: rounded readings, which two programs may round
    to different steps, and level 112, whose episodes start alike.

    Args:
      count: number of settings.
      seed: of their choice.
      most_slots: settings whose episodes may hold more blocks are left out.
    """
    all_parameters = of_physics("CartPole3D-v0")
    table = {path: p for path, p in all_parameters.items() if not path.startswith("sensors/step")}
    by_program: dict[Any, CaseGroup] = {}
    number = 0
    while sum(len(group.params) for group in by_program.values()) < count:
        values = drawn(table, np.random.default_rng([seed, number]))
        number += 1
        env, params = jaxsim.make("CartPole3D-v0", values)
        if env.config.max_blocks <= most_slots and "one_start" not in env.config.terms:
            add_to(by_program, str(values), env, params)
    return list(by_program.values())


def _draw(parameter: Parameter, random: np.random.Generator) -> Any:
    bounds = ends(parameter)
    if parameter.choices or random.random() < AT_BOUND:
        return bounds[random.integers(len(bounds))]
    return _typed(parameter, random.uniform(*bounds))


def _typed(parameter: Parameter, number: Any) -> int | float:
    """A number of the parameter's type."""
    return round(number) if isinstance(parameter.default, int) else float(number)
