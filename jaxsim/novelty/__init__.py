"""A space of novelties of CartPole3D: families of changes, seeded samples, compositions.

>>> import jax
>>> from jaxsim import novelty
>>> one, two = novelty.sample(jax.random.key(0), ["gravity", "push_turn+wind"], 2)
>>> env, params = jaxsim.make("CartPole3D-v0", {"novelty": two})
"""

from jaxsim.novelty.families import FAMILIES, Family, Range, family
from jaxsim.novelty.samples import KEY, Novelty, expand, sample, split

__all__ = ["FAMILIES", "KEY", "Family", "Novelty", "Range", "expand", "family", "sample", "split"]
