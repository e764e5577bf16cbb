"""Rollouts of CartPole3D are the same, bit for bit, in any layout.

Compiled in a hurry, lanes would be rounded by the layout.
"""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import Spread, agents
from tests.jaxsim.test_rollouts import same

pytestmark = [pytest.mark.optimised, pytest.mark.long]


def test_the_layout_changes_nothing_among_contacts():
    """Every tick takes the least effort that is right for it, wherever a round ends."""
    two = {"blocks/count_max": 2}
    made = jaxsim.make("CartPole3D-v0", two, level=203, difficulty="hard", max_blocks=2)
    one, other = (
        jaxsim.rollout(*made, agents.get("pd"), 16384, seed=5, spread=spread)
        for spread in (Spread(chunk=512, threads=1), Spread(chunk=64, threads=2))
    )
    assert same(one, other)


@pytest.mark.nightly
def test_the_layout_changes_nothing_in_a_mixture():
    """Episodes without wind or attraction are played without either."""
    made = [
        jaxsim.make("CartPole3D-v0", level=level, difficulty="hard") for level in (203, 205, 206)
    ]
    env = made[0][0].covering(made[1][0]).covering(made[2][0])
    table = jax.tree.map(lambda *leaves: np.stack(leaves), *(params for _, params in made))
    variant = np.arange(6000) % 3
    one, other = (
        jaxsim.rollout(env, table, agents.get("pd"), 6000, seed=5, variant=variant, spread=spread)
        for spread in (Spread(chunk=64, threads=1), Spread(chunk=2048, threads=2))
    )
    assert same(one, other)
