"""Leaves of many lanes packed into few arrays, so that moving lanes is one operation.

A program that gathers and scatters lanes leaf by leaf holds a loop for each leaf and place, and
compiling them takes longer than compiling the step. In a bank the leaves of one type are rows, and
lanes are columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import DTypeLike

from jaxsim.pytrees import Leaf, Tree

T = TypeVar("T")

MOST_ROWS = 32
"""A leaf with more numbers per lane stays a separate array."""


class LeafBanks(NamedTuple):
    """Leaves of lanes that all change in steps, or all do not."""

    banks: dict[str, jax.Array]  # by type, (K, L): a row for each number of a lane
    large: list[jax.Array]  # leaves with many numbers a lane, (L, ...)


class Banked(NamedTuple):
    """A tree of lanes in banks."""

    still: LeafBanks  # leaves that steps do not change
    moving: LeafBanks  # leaves that steps change


class _Place(NamedTuple):
    """Position of a leaf."""

    bank: str  # type of its bank; "" for a separate array
    moves: bool
    first: int  # first row, or index among the large leaves
    rows: int
    shape: tuple[int, ...]  # behind the axis of lanes
    dtype: np.dtype
    keys: Any = None  # generator of typed keys, which are stored as their words


@dataclass(frozen=True)
class Banks:
    """Layout of the leaves of a tree in banks."""

    structure: PyTreeDef
    places: tuple[_Place, ...]

    @classmethod
    def of(cls, tree: Tree, moves: Sequence[bool] | None = None) -> "Banks":
        """Return the layout of a tree.

        Args:
          tree: arrays or their shapes, leaves (L, ...).
          moves: for each leaf whether steps change it; None for all.
        """
        leaves, structure = jax.tree.flatten(tree)
        free: dict[tuple[str, bool], int] = {}
        places = []
        for leaf, moving in zip(leaves, moves or [True] * len(leaves), strict=True):
            keys = jax.random.key_impl(leaf) if _is_keys(leaf) else None
            leaf = jax.eval_shape(_words, leaf)
            rows = math.prod(leaf.shape[1:])
            bank = _bank(leaf.dtype) if rows <= MOST_ROWS else ""
            first = free.get((bank, moving), 0)
            places.append(_Place(bank, moving, first, rows, leaf.shape[1:], leaf.dtype, keys))
            free[bank, moving] = first + (rows if bank else 1)
        return cls(structure, tuple(places))

    def banked(self, tree: Tree) -> Banked:
        """Put the leaves of a tree, (L, ...), in banks."""
        leaves = jax.tree.leaves(tree)
        return Banked(self._kind(leaves, moves=False), self._kind(leaves, moves=True))

    def _kind(self, leaves: list[jax.Array], moves: bool) -> LeafBanks:
        rows: dict[str, list[jax.Array]] = {}
        large = []
        for place, leaf in zip(self.places, leaves, strict=True):
            if place.moves is not moves:
                continue
            leaf = jnp.asarray(_words(leaf), place.dtype)
            if place.bank:
                rows.setdefault(place.bank, []).append(_rows(leaf, place))
            else:
                large.append(leaf)
        return LeafBanks({bank: jnp.concatenate(of) for bank, of in rows.items()}, large)

    def widths(self) -> dict[str, int]:
        """Number of rows of each bank of a tree whose leaves are not large and all change."""
        rows: dict[str, int] = {}
        for place in self.places:
            rows[place.bank] = rows.get(place.bank, 0) + place.rows
        return rows

    def tree(self, banked: Banked) -> Tree:
        """Inverse of `banked`."""

        def leaf(place: _Place) -> jax.Array:
            kind = banked.moving if place.moves else banked.still
            if place.bank:
                rows = kind.banks[place.bank][place.first : place.first + place.rows]
                words = _leaf(rows, place)
            else:
                words = kind.large[place.first]
            return words if place.keys is None else jax.random.wrap_key_data(words, impl=place.keys)

        return jax.tree.unflatten(self.structure, [leaf(place) for place in self.places])


def gather(lanes: T, index: jax.Array) -> T:
    """Gather lanes of `Banked` or a `LeafBanks`; an index past the end takes the last lane."""
    return _each(
        lanes,
        lambda bank: bank.at[:, index].get(mode="clip"),
        lambda leaf: leaf.at[index].get(mode="clip"),
    )


def cut(lanes: T, first: jax.Array | int, size: int) -> T:
    """Slice consecutive lanes of `Banked` or a `LeafBanks`."""
    part = jax.lax.dynamic_slice_in_dim
    return _each(
        lanes, lambda bank: part(bank, first, size, 1), lambda leaf: part(leaf, first, size)
    )


def pasted(lanes: T, part: T, first: jax.Array | int) -> T:
    """Inverse of `cut`."""
    update = jax.lax.dynamic_update_slice_in_dim
    return _each(
        lanes,
        lambda bank, new: update(bank, new, first, 1),
        lambda leaf, new: update(leaf, new, first, 0),
        part,
    )


def scatter(lanes: T, part: T, index: jax.Array) -> T:
    """Inverse of `gather`, for distinct indices; an index past the end is dropped."""
    return _each(
        lanes,
        lambda bank, new: bank.at[:, index].set(new, mode="drop", unique_indices=True),
        lambda leaf, new: leaf.at[index].set(new, mode="drop", unique_indices=True),
        part,
    )


def _each(
    lanes: Tree, bank: Callable[..., jax.Array], leaf: Callable[..., jax.Array], *parts: Tree
) -> Tree:
    if isinstance(lanes, Banked):
        pairs = zip(lanes, *parts, strict=True)
        return Banked(*(_each(kind, bank, leaf, *rest) for kind, *rest in pairs))
    return LeafBanks(
        jax.tree.map(bank, lanes.banks, *(part.banks for part in parts)),
        jax.tree.map(leaf, lanes.large, *(part.large for part in parts)),
    )


def _bank(dtype: DTypeLike) -> str:
    return "int32" if dtype in (jnp.bool_, jnp.uint32) else str(jnp.dtype(dtype))


def _is_keys(leaf: Leaf) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _words(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_keys(leaf) else leaf


def _rows(leaf: jax.Array, place: _Place) -> jax.Array:
    lanes = leaf.shape[: leaf.ndim - len(place.shape)]
    flat = leaf.reshape(*lanes, place.rows)
    rows = jnp.moveaxis(flat, -1, 0)
    if place.dtype == jnp.uint32:
        return jax.lax.bitcast_convert_type(rows, jnp.int32)
    return rows.astype(place.bank)


def _leaf(rows: jax.Array, place: _Place) -> jax.Array:
    if place.dtype == jnp.uint32:
        rows = jax.lax.bitcast_convert_type(rows, jnp.uint32)
    leaf = jnp.moveaxis(rows, 0, -1).reshape(*rows.shape[1:], *place.shape)
    return leaf != 0 if place.dtype == jnp.bool_ else leaf.astype(place.dtype)
