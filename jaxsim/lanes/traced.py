"""Functions of lanes that are traced once, with the leaves that they change."""

from collections.abc import Callable

import jax
import jax.extend.core

from jaxsim.lanes.state import Lanes
from jaxsim.pytrees import Tree


class TracedStep:
    """A function (lanes, ...) -> (lanes, extra), traced once; a program may hold it many times.

    Attributes:
      changes: for each leaf of the lanes whether the function changes it.
      extra: shapes of the function's other result.
    """

    def __init__(self, function: Callable[..., tuple[Lanes, Tree]], lanes: Lanes, *more: Tree):
        leaves, self._structure = jax.tree.flatten(lanes)

        def flat(leaves: list[jax.Array], *more: Tree) -> tuple[list[jax.Array], Tree]:
            after, extra = function(jax.tree.unflatten(self._structure, leaves), *more)
            return jax.tree.leaves(after), extra

        self._jaxpr, shapes = jax.make_jaxpr(flat, return_shape=True)(leaves, *more)
        self._returned, self.extra = jax.tree.structure(shapes), shapes[1]
        inner = self._jaxpr.jaxpr
        before, after = inner.invars[: len(leaves)], inner.outvars[: len(leaves)]
        self.changes = tuple(a is not b for a, b in zip(after, before, strict=True))

    def __call__(self, lanes: Lanes, *more: Tree) -> tuple[Lanes, Tree]:
        """Call the function."""
        leaves = jax.tree.leaves((jax.tree.leaves(lanes), *more))
        result = jax.extend.core.jaxpr_as_fun(self._jaxpr)(*leaves)
        after, extra = jax.tree.unflatten(self._returned, result)
        return jax.tree.unflatten(self._structure, after), extra

    def moving(self, lanes: Lanes) -> list[jax.Array]:
        """Leaves that change, for loops that carry nothing else."""
        leaves = jax.tree.leaves(lanes)
        return [leaf for changes, leaf in zip(self.changes, leaves, strict=True) if changes]

    def merged(self, moving: list[jax.Array], lanes: Lanes) -> Lanes:
        """Put changed leaves into lanes."""
        new, leaves = iter(moving), jax.tree.leaves(lanes)
        pairs = zip(self.changes, leaves, strict=True)
        merged = [next(new) if changes else leaf for changes, leaf in pairs]
        lanes_after: Lanes = jax.tree.unflatten(self._structure, merged)
        return lanes_after
