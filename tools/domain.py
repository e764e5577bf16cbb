"""Write cartpole.json: a specification of CartPole3D with the range of each sensor by level.

python -m tools.domain --out jaxsim/worlds/cartpole3d/original/cartpole.json

Bounds hold for every value. Ranges were observed in every level and difficulty: half of the
episodes are played by `pd`, which holds the pole long, and half by `random`, which moves everything
about.
"""

import argparse
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.output import add_out, put
from evaluation.json_types import JsonMapping, JsonObject
from jaxsim import agents
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.env import CartPole3D
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, Level, levels
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.original.hints import FIELDS, HINT_LEVELS
from jaxsim.worlds.cartpole3d.types import ACTIONS, Observation, Params

EPISODES = 256
"""Of each level at each difficulty."""
SEED = 0
DIGITS = 3
"""Significant digits of a range, rounded outwards."""
PLAYERS = ("pd", "random")
DIRECTIONS = {
    "nothing": [0, 0],
    "right": [1, 0],
    "left": [-1, 0],
    "forward": [0, 1],
    "backward": [0, -1],
}
SENSORS: dict[str, Sequence[str]] = {
    "cart": messages.CART,
    "pole": messages.POLE,
    "blocks": messages.CART,
}

Range = tuple[float, float]
Ranges = dict[str, dict[str, Range]]  # by part and sensor


class _Extremes(NamedTuple):
    """Lowest and highest reading of each sensor so far; leaves (L,)."""

    cart: Any
    pole: Any
    blocks: Any


def domain(chosen: Iterable[Level] = ()) -> JsonObject:
    """The specification as JSON values.

    Args:
      chosen: levels to play; empty for all of the catalogue.
    """
    catalogue = list(chosen) or list(levels())
    by_level = {level.number: dict(_by_difficulty(level)) for level in catalogue}
    changes = {level.number: level.change for level in catalogue}
    everywhere = [ranges for by in by_level.values() for ranges in by.values()]
    env, _ = jaxsim.make("CartPole3D-v0")
    return {
        "domain": env.name,
        "generated_by": "python -m tools.domain",
        "units": {
            "length": "m",
            "velocity": "m/s",
            "angular_velocity": "rad/s, about world axes",
            "time": "s",
            "force": "N",
        },
        "axes": "x to the right, y forward, z up; quaternions are (x, y, z, w)",
        "episode": _episode(env),
        "actions": _actions(),
        "feature_vector": {
            "schema": "feature_vector.schema.json",
            "decimals": messages.DIGITS,
            "sensors": _sensors(_union(everywhere)),
            "walls": [list(corner) for corner in messages.WALLS],
            "hint": {"fields": list(FIELDS), "levels": list(HINT_LEVELS)},
        },
        "observed": {
            "episodes": EPISODES,
            "players": list(PLAYERS),
            "seed": SEED,
            "levels": {
                str(number): {
                    "change": changes[number],
                    "difficulties": {name: _listed(ranges) for name, ranges in by.items()},
                }
                for number, by in by_level.items()
            },
        },
    }


def _episode(env: CartPole3D) -> JsonObject:
    limit = float(Params().lean_limit)
    return {
        "tick": float(np.round(env.dt(Params()), 6)),
        "most_ticks": env.max_steps,
        "failure": f"roll or pitch of the pole beyond {math.degrees(limit):g} degrees",
        "angle_limit": round(limit, messages.DIGITS),
        "performance": "ticks played / most_ticks",
    }


def _actions() -> list[JsonObject]:
    force = float(Params().force)
    return [
        {"name": name, "force": [force * part for part in DIRECTIONS[name]]} for name in ACTIONS
    ]


def _sensors(ranges: Ranges) -> JsonObject:
    return {
        part: {
            name: {"bounds": _bounds(part, name), "observed": list(ranges[part][name])}
            for name in of
        }
        for part, of in SENSORS.items()
    }


def _bounds(part: str, name: str) -> list[float] | None:
    """Bounds of a reading; None if it has none."""
    if name.endswith("_quaternion"):
        return [-1.0, 1.0]
    if part == "cart" and name.startswith("z_"):
        return [0.0, 0.0]
    return None


# Observed ranges -------------------------------------------------------------------------------


def _by_difficulty(level: Level) -> Iterator[tuple[str, Ranges]]:
    for difficulty in DIFFICULTIES:
        env, params = jaxsim.make("CartPole3D-v0", level=level.number, difficulty=difficulty)
        low, high = jax.device_get(_extremes(env, params))
        yield difficulty, _ranges(low, high)


@partial(jax.jit, static_argnames="env")
def _extremes(env: CartPole3D, params: Params) -> tuple[_Extremes, _Extremes]:
    """Lowest and highest reading of each sensor, in rows (sensors of a part,)."""
    key = jax.random.key(SEED)
    pairs = [_play(env, params, agents.get(player), key) for player in PLAYERS]
    lows, highs = zip(*pairs, strict=True)
    return (
        jax.tree.map(lambda *rows: jnp.min(jnp.stack(rows), axis=0), *lows),
        jax.tree.map(lambda *rows: jnp.max(jnp.stack(rows), axis=0), *highs),
    )


def _play(
    env: CartPole3D, params: Params, agent: Any, key: jax.Array
) -> tuple[_Extremes, _Extremes]:
    """Play episodes in parallel; return the extremes over all of them."""
    lanes = EPISODES // len(PLAYERS)
    starts, steps, begins, acts = jax.random.split(key, 4)
    keys = jax.random.split(starts, lanes)
    observation, state = env.reset(keys, params)
    memory = jax.vmap(agent.begin)(
        jax.vmap(agent.init)(jax.random.split(begins, lanes)), jax.random.split(begins, lanes)
    )

    def tick(carry: Tree, number: jax.Array) -> tuple[Any, None]:
        observation, state, memory, low, high = carry
        act_keys = jax.random.split(jax.random.fold_in(acts, number), lanes)
        action, _, memory = jax.vmap(agent.act)(memory, observation, act_keys)
        step_keys = jax.random.split(jax.random.fold_in(steps, number), lanes)
        observation, state, *_ = env.step(step_keys, state, action, params)
        return (observation, state, memory, *_wider(low, high, observation)), None

    none = _Extremes(jnp.full(6, jnp.inf), jnp.full(7, jnp.inf), jnp.full(6, jnp.inf))
    low, high = _wider(none, jax.tree.map(jnp.negative, none), observation)
    carry = (observation, state, memory, low, high)
    _, _, _, low, high = jax.lax.scan(tick, carry, jnp.arange(env.max_steps))[0]
    return low, high


def _wider(
    low: _Extremes, high: _Extremes, observation: Observation
) -> tuple[_Extremes, _Extremes]:
    """Extend the extremes by one more reading of each sensor."""
    zero = jnp.zeros_like(observation.cart_position.x)
    cart = [observation.cart_position.x, observation.cart_position.y, zero]
    cart += [observation.cart_velocity.x, observation.cart_velocity.y, zero]
    pole = [*observation.pole_quaternion, *observation.pole_velocity]
    slots = [
        (*p, *v)
        for p, v in zip(observation.block_position, observation.block_velocity, strict=True)
    ]
    blocks = [jnp.stack(same) for same in zip(*slots, strict=True)]
    alive = jnp.stack(list(observation.block_alive))

    def extremes(best: Any, away: float) -> _Extremes:
        of_blocks = [jnp.where(alive, leaf, away) for leaf in blocks]
        return _Extremes(
            *(jnp.stack([best(leaf) for leaf in of]) for of in (cart, pole, of_blocks))
        )

    return (
        jax.tree.map(jnp.minimum, low, extremes(jnp.min, jnp.inf)),
        jax.tree.map(jnp.maximum, high, extremes(jnp.max, -jnp.inf)),
    )


def _ranges(low: _Extremes, high: _Extremes) -> Ranges:
    rows = zip(SENSORS.items(), low, high, strict=True)
    return {
        part: {
            name: _within(_bounds(part, name), outward(float(a), -1), outward(float(b), 1))
            for name, a, b in zip(names, lows, highs, strict=True)
        }
        for (part, names), lows, highs in rows
    }


def _within(bounds: list[float] | None, low: float, high: float) -> Range:
    """Clip a rounded range to the bounds."""
    return (max(low, bounds[0]), min(high, bounds[1])) if bounds else (low, high)


def outward(number: float, way: int) -> float:
    """Round down (way -1) or up (way 1) to `DIGITS` significant digits."""
    if number == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(number))) - DIGITS + 1)
    rounded = math.floor(number / step) if way < 0 else math.ceil(number / step)
    return float(f"{rounded * step:.{DIGITS}g}")


def _union(all_ranges: Sequence[Ranges]) -> Ranges:
    """The smallest ranges that contain all given ones."""
    return {
        part: {
            name: (
                min(ranges[part][name][0] for ranges in all_ranges),
                max(ranges[part][name][1] for ranges in all_ranges),
            )
            for name in names
        }
        for part, names in SENSORS.items()
    }


def _listed(ranges: Ranges) -> dict[str, dict[str, list[float]]]:
    return {part: {name: list(ends) for name, ends in of.items()} for part, of in ranges.items()}


def dumps(specification: JsonMapping) -> str:
    """The specification as text; a list of numbers is on one line."""
    text = json.dumps(specification, indent=2, allow_nan=False)
    return re.sub(r"\[[-+.e\d,\s]+\]", lambda pair: " ".join(pair[0].split()), text) + "\n"


def main() -> None:
    """Play everything and write the specification."""
    parser = argparse.ArgumentParser(description="Write the domain specification.")
    add_out(parser)
    out = parser.parse_args().out
    put(dumps(domain()), out)


if __name__ == "__main__":
    main()
