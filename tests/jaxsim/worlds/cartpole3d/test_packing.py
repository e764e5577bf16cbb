"""Lanes of a batch taken in groups."""

import jax
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import packing


@pytest.mark.parametrize(("lanes", "parts"), [(64, 64), (192, 64), (100, 100), (32, 32)])
def test_parts_of_a_batch_are_computed_like_the_whole(lanes, parts):
    """Equal parts if they fit, else one; numbers that all lanes share stay single."""
    numbers = np.random.default_rng(0).normal(size=(3, lanes))
    needed = np.arange(lanes) % 3 == 0
    sizes = []

    def compute(factor, numbers, needed):
        sizes.append((numbers.shape[-1], factor.ndim))
        return factor * numbers, needed & (numbers[0] > 0)

    arguments = [np.float32(2.0), numbers.astype(np.float32), needed]
    scaled, chosen = jax.jit(lambda *a: packing.in_parts(compute, 64, a))(*arguments)
    np.testing.assert_array_equal(scaled, 2 * arguments[1])
    np.testing.assert_array_equal(chosen, needed & (numbers[0] > 0))
    assert set(sizes) == {(parts, 0)}
