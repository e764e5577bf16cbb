"""Names of the pytrees whose structure each environment or agent chooses for itself.

They are `Any` to a type checker: fields of `state` and `params` differ from world to world.
"""

from typing import Any

import jax

Tree = Any
"""Any pytree of arrays."""

Leaf = Any
"""One leaf: an array of JAX or NumPy, or a number; None where its field says so."""

Params = Any
"""Physics of an environment; leaves () or (L,)."""

State = Any
"""State of an environment; leaves () or (L,)."""

Observation = Any
"""What the sensors report; leaves () or (L,)."""

Step = tuple[Observation, State, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]
"""Observation, state, reward, terminated, truncated and info after a step."""
