"""Checks of what callers pass."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import inputs


@pytest.mark.parametrize("number", [2, 5, np.uint8(5), np.int64(2), jnp.int32(3)])
def test_whole_numbers_within_bounds_pass(number):
    inputs.check_whole("lanes", number, 2, 5)
    inputs.check_whole("lanes", number, 2)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "lanes is 1; it must be from 2 to 5"),
        (6, "lanes is 6; it must be from 2 to 5"),
        (np.int64(6), "lanes is 6; it must be from 2 to 5"),
        (3.0, "lanes is 3.0; it must be a whole number, from 2 to 5"),
        (float("nan"), "lanes is nan; it must be a whole number"),
        ("3", "lanes is '3'; it must be a whole number"),
        (None, "lanes is None; it must be a whole number"),
        (True, "lanes is True; it must be a whole number"),
        ([3], r"lanes is \[3\]; it must be a whole number"),
    ],
)
def test_refused_numbers_say_what_is_allowed(number, words):
    with pytest.raises(ValueError, match=words):
        inputs.check_whole("lanes", number, 2, 5)


def test_lowest_number_alone():
    inputs.check_whole("lanes", 10**30, 2)
    with pytest.raises(ValueError, match="lanes is 1; it must be at least 2"):
        inputs.check_whole("lanes", 1, 2)
