"""A pytree as one array of 32-bit words, so that a call into compiled code passes few arrays.

A state of CartPole3D has some sixty leaves. A call pays for each of them on the way in and out,
which for a single environment takes far longer than the physics.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

from jaxsim.pytrees import Leaf, Tree

_WIDE = 8  # bytes of a leaf's element that takes two words
_WORD = np.dtype(np.uint32)
_NARROW = (np.dtype(bool), np.dtype(np.uint8))
"""Types whose numbers take one word each."""


Leaves = tuple[tuple[tuple[int, ...], np.dtype], ...]


class Packing:
    """How the leaves of a pytree lie in a vector of words; hashable, so a static argument.

    Args:
      treedef: structure of the tree.
      leaves: shape and dtype of each leaf, in the order of the structure.
    """

    def __init__(self, treedef: PyTreeDef, leaves: Leaves) -> None:
        self.treedef, self.leaves = treedef, leaves
        self._hash = hash((treedef, leaves))  # once: a jitted function asks for it in every call

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Packing):
            return self is other
        return (self.treedef, self.leaves) == (other.treedef, other.leaves)

    @staticmethod
    def of(tree: Tree) -> "Packing":
        """Return the packing of a tree of arrays, or of their shapes and dtypes.

        Raises:
          TypeError: a leaf that is neither a bool, a byte, nor a number of 32 or 64 bits.
        """
        leaves, treedef = jax.tree.flatten(tree)
        kinds = tuple((tuple(leaf.shape), np.dtype(leaf.dtype)) for leaf in leaves)
        for _, dtype in kinds:
            if dtype in _NARROW or (dtype.kind in "fiu" and dtype.itemsize in (4, _WIDE)):
                continue
            raise TypeError(
                f"a leaf has dtype {dtype}; only bool, uint8 and 32 or 64 bits are packed"
            )
        return _interned(treedef, kinds)

    @property
    def size(self) -> int:
        """Number of words, W."""
        return sum(_words(shape, dtype) for shape, dtype in self.leaves)

    def pack(self, tree: Tree) -> jax.Array:
        """Return the leaves as (W,) uint32 words, bit for bit; for traced code and outside of it.

        Args:
          tree: of the structure, shapes and dtypes of this packing.
        """
        leaves = jax.tree.leaves(tree)
        parts = []
        for leaf, (_, dtype) in zip(leaves, self.leaves, strict=True):
            leaf = jnp.asarray(leaf, dtype)
            bits = (
                leaf.astype(_WORD)
                if dtype in _NARROW
                else jax.lax.bitcast_convert_type(leaf, _WORD)
            )
            parts.append(bits.reshape(-1))
        return jnp.concatenate(parts)

    def unpack(self, words: jax.Array) -> Tree:
        """Inverse of `pack`, for traced code.

        Args:
          words: (W,) uint32.
        """
        leaves = []
        for first, last, shape, dtype, _ in self._places:
            part = words[first:last]
            if dtype in _NARROW:
                leaf = part.reshape(shape).astype(dtype)
            else:
                pair = (2,) if dtype.itemsize == _WIDE else ()
                leaf = jax.lax.bitcast_convert_type(part.reshape(*shape, *pair), dtype)
            leaves.append(leaf)
        return jax.tree.unflatten(self.treedef, leaves)

    def read(self, words: Leaf) -> Tree:
        """Inverse of `pack` on the host: NumPy arrays, copies of what was packed.

        Leaves without axes are NumPy scalars.

        Args:
          words: (W,) uint32 array of NumPy or JAX.
        """
        host = np.array(words)
        views = {
            dtype: host.astype(dtype) if dtype in _NARROW else host.view(dtype)
            for dtype in self._scalar_types
        }
        leaves = [
            _read(host[first:last], shape, dtype) if index is None else views[dtype][index]
            for first, last, shape, dtype, index in self._places
        ]
        return jax.tree.unflatten(self.treedef, leaves)

    @cached_property
    def _places(self) -> list[tuple[int, int, tuple[int, ...], np.dtype, int | None]]:
        """First and last word of each leaf, its shape and dtype, and its index as a word.

        The index is None unless the leaf is one word that can be read as a number in its place.
        """
        places, first = [], 0
        for shape, dtype in self.leaves:
            last = first + _words(shape, dtype)
            alone = shape == () and last == first + 1
            places.append((first, last, shape, dtype, first if alone else None))
            first = last
        return places

    @cached_property
    def _scalar_types(self) -> tuple[np.dtype, ...]:
        """Types of the leaves that are one word."""
        return tuple({dtype for _, _, _, dtype, index in self._places if index is not None})


@lru_cache(maxsize=256)
def _interned(treedef: PyTreeDef, leaves: Leaves) -> Packing:
    """Return one object for equal packings, since calls of jitted functions compare them."""
    return Packing(treedef, leaves)


@partial(jax.tree_util.register_dataclass, data_fields=["words"], meta_fields=["packing"])
@dataclass(frozen=True)
class Packed:
    """A packed tree that knows its packing, so a jitted function can return it.

    Attributes:
      words: (W,) uint32.
      packing: where each leaf lies.
    """

    words: Leaf
    packing: Packing

    @classmethod
    def of(cls, tree: Tree) -> "Packed":
        """Pack a tree of arrays."""
        packing = Packing.of(tree)
        return cls(packing.pack(tree), packing)

    def unpack(self) -> Tree:
        """Return the tree, for traced code."""
        return self.packing.unpack(self.words)

    def read(self) -> Tree:
        """Return the tree with NumPy arrays for leaves."""
        return self.packing.read(self.words)


def _words(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return math.prod(shape) * (2 if dtype.itemsize == _WIDE else 1)


def _read(part: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> Leaf:
    """A leaf from its words."""
    leaf = part.astype(dtype) if dtype in _NARROW else part.view(dtype)
    return leaf.reshape(shape)[()]
