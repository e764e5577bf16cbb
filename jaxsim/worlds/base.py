"""What the environments of all worlds have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp

from jaxsim import inputs

C = TypeVar("C")


class World(ABC):
    """Base of the environments: what follows from their names, actions and configuration.

    A world adds `start`, `observe`, `step` and `dt`; see `jaxsim.env` for the contract.

    Attributes:
      name: task name, without a version.
      actions: names of the action codes from 0 on.
      config: static configuration, hashable.
    """

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]]
    config: Any

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return int(self.config.max_steps)

    def checked(self, action: Any) -> jax.Array:
        """Return an action that `step` was given.

        Raises:
          ValueError: it is no integer; or, where its value is known, it is out of range.
        """
        return jnp.asarray(inputs.action_codes(action, self.num_actions, self.actions))

    def reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        return self.restart(key, self.start(key, params), params)

    def restart(self, key: jax.Array, start: Any, params: Any) -> tuple[Any, Any]:
        """Begin an episode at a given state before the hidden first step."""
        observation, state, *_ = self.step(key, start, jnp.zeros_like(start.step), params)
        return observation, state

    @abstractmethod
    def start(self, key: jax.Array, params: Any) -> Any:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""

    @abstractmethod
    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> Any:
        """Advance one step; see `jaxsim.env.Env.step`."""

    def step_free(
        self, key: jax.Array, state: Any, action: jax.Array, params: Any
    ) -> tuple[Any, jax.Array]:
        """Advance one step in a cheaper way that may be wrong.

        Returns:
          What `step` returns, and for which lanes it is right, () or (L,) bool.
        """
        result = self.step(key, state, action, params)
        return result, jnp.ones(jnp.shape(result[2]), bool)

    def step_full(
        self, key: jax.Array, state: Any, action: jax.Array, params: Any
    ) -> tuple[Any, jax.Array]:
        """Advance one step for lanes of which most are not right after `step_free`."""
        return self.step_free(key, state, action, params)


def all_finite(tree: Any, ndim: int) -> jax.Array:
    """Whether every floating-point number of each lane is finite: any that is not spoils the sum.

    Args:
      tree: leaves whose first `ndim` axes are the lanes; fewer axes broadcast.
      ndim: 0 for a single lane, 1 for a batch.

    Returns:
      () or (L,) bool.
    """
    spoilt = [
        _over_slots(leaf * 0.0, ndim)
        for leaf in jax.tree.leaves(tree)
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]
    return jnp.isfinite(sum(spoilt[1:], spoilt[0]))


def _over_slots(number: jax.Array, ndim: int) -> jax.Array:
    """Sum what stands behind the lanes; a reduction over nothing would cost a pass of its own."""
    slots = tuple(range(ndim, jnp.ndim(number)))
    return jnp.sum(number, axis=slots) if slots else number


def configure(kind: type[C], options: Mapping[str, Any], shorthands: Iterable[str] = ()) -> C:
    """Build a world's configuration from the options that a caller of `jaxsim.make` wrote.

    Args:
      kind: the world's `Config`.
      options: its fields by name; what is missing takes its default.
      shorthands: other options that the world accepts, for the error message.

    Raises:
      ValueError: an option that does not exist or does not fit, or float64 without x64.
    """
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    for option in options:
        if option not in known:
            allowed = ", ".join([*shorthands, *known])
            raise ValueError(f"unknown option {option!r} (allowed: {allowed})")
    config: Any = kind(**options)
    if config.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')
    return config
