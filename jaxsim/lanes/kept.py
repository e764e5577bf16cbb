"""Programs that are traced once and kept, see `program_store`.

A kept program is what `jax.export` serialises, over lists of arrays. Their structure is that of the
batch, so no class needs a form on disk.
"""

from dataclasses import fields

import jax

from jaxsim import program_store
from jaxsim.agents.base import NoveltyPrediction
from jaxsim.lanes.lists import Batch, ProgramOutput, Rows
from jaxsim.lanes.program import Program
from jaxsim.pytrees import Tree
from jaxsim.rng import is_typed, words_of


class KeptProgram:
    """A program that is loaded if it was kept before, else traced and kept.

    Args:
      program: of lanes.
      key: of `program_store`.
      batch: shapes and types of its argument.
    """

    def __init__(self, program: Program, key: str, batch: Batch) -> None:
        content = program_store.load(key)
        if content is None:
            content = _traced(program, batch)
            program_store.store(key, content)
        self._exported = jax.export.deserialize(bytearray(content))

    def __call__(self, batch: Batch) -> ProgramOutput:
        """Play the lists of all lifetimes of a batch."""
        memory, rows = self._exported.call(_words(batch))
        if rows["prediction"] is not None:
            rows["prediction"] = NoveltyPrediction(*rows["prediction"])
        return ProgramOutput(
            _with_keys(batch.memory, _key_kinds(batch.memory), memory), Rows(**rows)
        )


def _traced(program: Program, batch: Batch) -> bytes:
    """A program, traced, lowered and serialised."""
    kinds: list[str | None] = []

    def words(batch: Batch) -> list[jax.Array]:
        kinds.extend(_key_kinds(batch))
        return _words(batch)

    def play(leaves: list[jax.Array]) -> Tree:
        result = program(_with_keys(batch, kinds, leaves))
        rows = {field.name: getattr(result.rows, field.name) for field in fields(Rows)}
        if rows["prediction"] is not None:
            rows["prediction"] = jax.tree.leaves(rows["prediction"])
        return _words(result.memory), rows

    shapes = jax.eval_shape(words, batch)
    return bytes(jax.export.export(jax.jit(play))(shapes).serialize())


def _words(tree: Tree) -> list[jax.Array]:
    """Leaves of a tree; of typed keys, which have no form on disk, their words."""
    return [words_of(leaf) for leaf in jax.tree.leaves(tree)]


def _key_kinds(tree: Tree) -> list[str | None]:
    """For each leaf of a traced tree the generator of its keys; None for numbers."""
    leaves = jax.tree.leaves(tree)
    return [str(jax.random.key_impl(leaf)) if is_typed(leaf) else None for leaf in leaves]


def _with_keys(tree: Tree, kinds: list[str | None], words: list[jax.Array]) -> Tree:
    """Inverse of `_words`, for a tree of the same structure and kinds of keys."""
    leaves = [
        word if kind is None else jax.random.wrap_key_data(word, impl=kind)
        for kind, word in zip(kinds, words, strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)
