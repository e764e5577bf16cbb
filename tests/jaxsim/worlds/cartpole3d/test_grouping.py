"""Lanes of a batch taken in groups."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import grouping


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("lanes", "parts"), [(64, 64), (192, 64), (100, 100), (32, 32)])
def test_parts_of_a_batch_are_computed_like_the_whole(lanes, parts, apart):
    """Equal parts if they fit, else one; numbers that all lanes share stay single."""
    numbers = np.random.default_rng(0).normal(size=(3, lanes))
    needed = np.arange(lanes) % 3 == 0
    sizes = []

    def compute(factor, numbers, needed):
        sizes.append((numbers.shape[-1], factor.ndim))
        return factor * numbers, needed & (numbers[0] > 0)

    arguments = [np.float32(2.0), numbers.astype(np.float32), needed]
    in_parts = partial(grouping.in_parts, compute, 64, apart=apart)
    scaled, chosen = jax.jit(lambda *a: in_parts(a))(*arguments)
    np.testing.assert_array_equal(scaled, 2 * arguments[1])
    np.testing.assert_array_equal(chosen, needed & (numbers[0] > 0))
    assert set(sizes) == {(parts, 0)}


@pytest.mark.parametrize("lanes", [128, 192, 256])
def test_a_part_apart_has_the_bits_that_it_has_among_others(lanes):
    """Sums of two products, of which a compiler may round either one by itself."""
    random = np.random.default_rng(0)
    a, b, c, d = random.normal(size=(4, 8, lanes)).astype(np.float32)
    needed = np.ones(lanes, bool)

    def compute(a, b, c, d, needed):
        return np.float32(0.1) * (a * b + c * d) * (c * b - a * d)

    def outer(*arrays):
        *four, needed = arrays
        moved = [2.1 * array * array + array for array in four]
        result = grouping.in_parts(compute, 64, [*moved, needed], apart=True)
        return result * moved[0] + moved[1]

    whole = jax.jit(outer)(a, b, c, d, needed)
    cut = [array[..., 64:128] for array in (a, b, c, d, needed)]
    np.testing.assert_allclose(whole[:, 64:128], jax.jit(outer)(*cut), rtol=1e-6)
    inner = jax.jit(lambda *x: grouping.in_parts(compute, 64, x, apart=True))
    np.testing.assert_array_equal(inner(a, b, c, d, needed)[:, 64:128], inner(*cut))
