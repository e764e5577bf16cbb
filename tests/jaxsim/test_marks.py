"""The lanes that are found among marked ones are those that NumPy finds."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.marks import marked


@pytest.mark.parametrize("lanes", [1, 31, 32, 96, 4096, 5000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_marks_are_found_in_order(lanes: int, share: float) -> None:
    flags = np.random.default_rng(lanes).random(lanes) < share
    expected = np.flatnonzero(flags)
    marks = marked(jnp.asarray(flags))
    places = np.asarray(marks.places(jnp.arange(lanes + 3, dtype=jnp.int32)))
    assert int(marks.number) == expected.size
    np.testing.assert_array_equal(places[: expected.size], expected)
    assert (places[expected.size :] >= lanes).all()


def test_a_rank_finds_its_mark_alone() -> None:
    flags = np.zeros(256, bool)
    flags[[5, 31, 32, 200]] = True
    marks = marked(jnp.asarray(flags))
    assert int(marks.places(jnp.asarray([3]))[0]) == 200
    assert int(marks.places(jnp.asarray([1]))[0]) == 31
