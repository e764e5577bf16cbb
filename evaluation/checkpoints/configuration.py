"""The configuration of a run, which must be equal for a run to resume another."""

import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.schedule import Schedule
from jaxsim import __version__

MOST_DIFFERENCES = 3
"""Most differences that are named; the others are counted."""
MOST_CHARACTERS = 60
"""Characters of a value that are shown."""


def configuration(
    schedule: Schedule | JsonMapping,
    *,
    agent: str,
    lifetimes: int,
    first_lifetime: int = 0,
    seed: int = 0,
    width: int = 1,
    **settings: JsonValue,
) -> JsonObject:
    """Return everything that changes a result, and nothing else.

    Chunks, threads, segments and the path of the schedule change no result.

    Args:
      schedule: what is played; for a run that may be extended, what its schedule is made of.
      agent: name.
      lifetimes: number of lifetimes.
      first_lifetime: number of the first.
      seed: root of all randomness.
      width: episodes of a lifetime in parallel.
      **settings: of the agent and others, plain JSON values.
    """
    content = schedule.to_json()["blocks"] if isinstance(schedule, Schedule) else dict(schedule)
    return {
        "agent": agent,
        **settings,
        "schedule": content,
        "lifetimes": lifetimes,
        "first_lifetime": first_lifetime,
        "seed": seed,
        "width": width,
        "precision": jnp.result_type(float).name,
        "platform": jax.default_backend(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that compute the results."""
    return {"jaxsim-novelty": __version__, "jax": jax.__version__, "numpy": np.__version__}


def digest(values: JsonValue) -> str:
    """SHA-256 of JSON values, the same for equal ones."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(saved: JsonValue, now: JsonValue, place: str = "") -> list[str]:
    """Name every place at which two JSON values differ, as "seed is 0 in it and 1 now"."""
    if isinstance(saved, dict) and isinstance(now, dict):
        keys = dict.fromkeys([*saved, *now])
        inside = [(f"{place}.{key}" if place else str(key), key) for key in keys]
        return [
            text for name, key in inside for text in differences(saved.get(key), now.get(key), name)
        ]
    if isinstance(saved, list) and isinstance(now, list):
        texts = [
            text
            for index, pair in enumerate(zip(saved, now, strict=False))
            for text in differences(*pair, f"{place}[{index}]")
        ]
        if len(saved) != len(now):
            texts.append(f"{place} has {len(saved)} entries in it and {len(now)} now")
        return texts
    if saved == now and type(saved) is type(now):
        return []
    return [f"{place} is {_in_words(saved)} in it and {_in_words(now)} now"]


def _in_words(value: JsonValue) -> str:
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def named(texts: list[str]) -> str:
    """Join differences to one line."""
    rest = len(texts) - MOST_DIFFERENCES
    return "; ".join(texts[:MOST_DIFFERENCES]) + (f"; and {rest} more" if rest > 0 else "")
