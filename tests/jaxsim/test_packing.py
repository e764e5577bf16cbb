"""Trees as vectors of words: nothing is lost, and structure and dtypes come back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.packing import Packed, Packing

TREE = {
    "float": np.array([[0.1, -0.0, np.inf], [1e-42, np.nan, -3.5]], np.float32),
    "flag": np.array([True, False]),
    "count": np.int32(-7),
    "words": (np.array([0, 2**32 - 1], np.uint32),),
    "empty": np.zeros((0, 3), np.float32),
    "bytes": np.array([[0], [255]], np.uint8),
    "byte": np.uint8(7),
}


def assert_same(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_words_hold_the_tree_bit_for_bit():
    packing = Packing.of(TREE)
    words = packing.pack(TREE)
    assert words.shape == (packing.size,) == (14,) and words.dtype == np.uint32
    assert_same(packing.read(words), TREE)
    assert_same(jax.jit(packing.unpack)(words), TREE)


def test_leaves_of_other_dtypes_take_those_of_the_packing():
    """A number of Python, or one of another dtype, is not packed by its own bits."""
    typed = {"a": np.float32(3), "b": np.array([1, -2], np.int32), "c": np.bool_(True)}
    given = {"a": 3, "b": np.array([1.0, -2.0], np.float32), "c": 1}
    packing = Packing.of(typed)
    np.testing.assert_array_equal(packing.pack(given), packing.pack(typed))


def test_what_is_read_is_a_copy():
    packed = Packed.of(TREE)
    packed.read()["float"][:] = 0.0
    assert_same(packed.read(), TREE)


def test_numbers_of_64_bits_take_two_words():
    tree = {"a": np.array([0.1, -1e300]), "b": np.int64(-(2**40))}
    with jax.enable_x64(True):
        packed = Packed.of(tree)
        assert packed.words.shape == (6,)
        assert_same(packed.read(), tree)
        assert_same(jax.jit(lambda p: p.unpack())(packed), tree)


def test_a_jitted_function_takes_and_returns_packed_trees_with_one_trace():
    traces = []

    @jax.jit
    def again(packed):
        traces.append(1)
        return Packed.of(packed.unpack())

    first = again(Packed.of(TREE))
    second = again(Packed.of(first.read()))
    assert_same(second.read(), TREE)
    assert len(traces) == 1


def test_packings_are_equal_where_structure_shapes_and_dtypes_are():
    packing = Packing.of(TREE)
    assert (
        packing
        == Packing.of(jax.eval_shape(lambda: TREE))
        != Packing.of({**TREE, "count": 1.0 * jnp.ones(())})
    )
    assert hash(packing) == hash(Packing.of(TREE))
    assert packing != "packing"


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "float16", "bfloat16", "complex64"])
def test_other_dtypes_are_refused(dtype):
    """Two of 16 bits would be taken for one word."""
    with pytest.raises(TypeError, match=f"dtype {dtype}; only bool, uint8 and 32 or 64 bits"):
        Packing.of({"a": jax.ShapeDtypeStruct((2, 2), dtype)})
