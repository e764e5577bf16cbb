"""Hyper-parameters of the learners: those that shape the program, and those that are data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.inputs import check_whole
from jaxsim.pytrees import Leaf

Numbers = float | Sequence[float]
"""One number, or one for each lifetime in turn: lifetime k takes that at k modulo their number."""

LARGEST = 3.0e38  # about the largest float32
MOST_UNITS, MOST_LAYERS, MOST_SAMPLES, MOST_UPDATES = 4096, 8, 1 << 20, 10_000


class Hyper(NamedTuple):
    """The hyper-parameters of one lifetime that are data, () float32 each; see `Settings`."""

    learning_rate: Leaf
    discount: Leaf
    trace_decay: Leaf
    clip: Leaf
    entropy_weight: Leaf
    value_weight: Leaf
    gradient_limit: Leaf
    reward_weight: Leaf
    survival_reward: Leaf
    consolidation: Leaf
    rehearsal: Leaf
    false_alarms: Leaf


BOUNDS: dict[str, tuple[float, float]] = {
    "learning_rate": (0.0, 1.0),
    "discount": (0.0, 0.99999),
    "trace_decay": (0.0, 1.0),
    "clip": (1e-6, LARGEST),
    "entropy_weight": (0.0, 100.0),
    "value_weight": (0.0, 100.0),
    "gradient_limit": (1e-6, LARGEST),
    "reward_weight": (-LARGEST, LARGEST),
    "survival_reward": (-LARGEST, LARGEST),
    "consolidation": (0.0, LARGEST),
    "rehearsal": (0.0, LARGEST),
    "false_alarms": (1e-6, 0.5),
}
"""Smallest and largest value of each number that is data."""


@dataclass(frozen=True)
class Settings:
    """How an actor-critic learns.

    The first fields shape the program. All others are data: one number, or a sequence with one for
    each lifetime in turn, so that a sweep over them is a single program.

    Attributes:
      hidden: units of the layers between observation and heads.
      updates: steps of the optimiser at each call of `learn`.
      samples: decisions of each of these steps, drawn evenly from all.
      rehearsed: decisions of earlier phases that `ppo+replay` remembers.
      learning_rate: of Adam.
      discount: of rewards by step.
      trace_decay: lambda of generalised advantage estimation.
      clip: largest distance from 1 at which the ratio of new to old probability is clipped.
      entropy_weight: of the policy's entropy, nats.
      value_weight: of the squared error of the value.
      gradient_limit: norm that gradients are scaled down to.
      reward_weight: weight of the task's rewards.
      survival_reward: reward added to each step.
      consolidation: strength of elastic weight consolidation, of `ppo+ewc`.
      rehearsal: weight of rehearsal, of `ppo+replay`.
      false_alarms: share of usual episodes that may be called a novelty, by the learned tail.
    """

    hidden: tuple[int, ...] = (64, 64)
    updates: int = 16
    samples: int = 512
    rehearsed: int = 1024
    learning_rate: Numbers = 1e-3
    discount: Numbers = 0.98
    trace_decay: Numbers = 0.95
    clip: Numbers = 0.2
    entropy_weight: Numbers = 0.003
    value_weight: Numbers = 1.0
    gradient_limit: Numbers = 0.5
    reward_weight: Numbers = 0.0
    survival_reward: Numbers = 1.0
    consolidation: Numbers = 100.0
    rehearsal: Numbers = 1.0
    false_alarms: Numbers = 0.001

    def __post_init__(self) -> None:
        """Check all fields.

        Raises:
          ValueError: names the field, its value and the allowed values.
        """
        if not isinstance(self.hidden, tuple):
            raise ValueError(f"hidden is {self.hidden!r}; it must be a tuple, as (64, 64)")
        if not 1 <= len(self.hidden) <= MOST_LAYERS:
            raise ValueError(
                f"hidden is {self.hidden!r}; it must name from 1 to {MOST_LAYERS} layers"
            )
        for units in self.hidden:
            check_whole("hidden", units, 1, MOST_UNITS)
        check_whole("updates", self.updates, 1, MOST_UPDATES)
        check_whole("samples", self.samples, 1, MOST_SAMPLES)
        check_whole("rehearsed", self.rehearsed, 1, MOST_SAMPLES)
        for name, (low, high) in BOUNDS.items():
            values = _checked(name, getattr(self, name), low, high)
            # Settings are hashable, so that equal ones share an agent and its compiled program.
            object.__setattr__(self, name, values[0] if len(values) == 1 else values)

    def of_lifetime(self, number: Leaf) -> Hyper:
        """Hyper-parameters of a lifetime, by its number."""
        return Hyper(*(_chosen(getattr(self, name), number) for name in Hyper._fields))

    def sweeps(self) -> dict[str, tuple[float, ...]]:
        """The fields that differ between lifetimes, with their values in turn."""
        return {name: v for name in BOUNDS if isinstance(v := getattr(self, name), tuple)}


def _checked(name: str, value: object, low: float, high: float) -> tuple[float, ...]:
    """Values of one field, as plain numbers."""
    try:
        values = np.atleast_1d(np.asarray(value, float))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is {value!r}; it must be a number or a list of them") from error
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name} has shape {values.shape}; it must be a number or a list of them")
    for each in values.tolist():
        if not math.isfinite(each) or not low <= each <= high:
            raise ValueError(f"{name} is {each}; it must be from {low:g} to {high:g}")
    return tuple(values.tolist())


def _chosen(value: float | tuple[float, ...], number: Leaf) -> jax.Array:
    values = jnp.atleast_1d(jnp.asarray(value, jnp.float32))
    return values[jnp.asarray(number, jnp.uint32) % jnp.uint32(values.size)]
