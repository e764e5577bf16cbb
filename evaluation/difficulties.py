"""Names of the difficulties of a level, for modules that do not wait for JAX."""

from typing import Final

DIFFICULTIES: Final = ("easy", "medium", "hard")
"""Those of `jaxsim.worlds.cartpole3d.levels`, which needs JAX."""
