"""How large the programs of lanes are before they are compiled, from which that time follows.

Each kind of work stands in a program once. The bounds are a twentieth above what was measured.
"""

from functools import reduce

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import agents, counters
from jaxsim.lanes.crew import Crew, Spread
from jaxsim.lanes.lists import Rounds

ROUNDS = 16
DIFFICULTIES = ("easy", "medium", "hard")
MIX = tuple((level, word) for level in range(200, 208) for word in DIFFICULTIES)


@pytest.mark.parametrize(
    ("cells", "most"),
    [
        pytest.param(((200, "easy"),), 1.86e6, id="200"),  # 1.77; rollouts had 5.6
        # 3.26; 6.21 with unrolled friction
        pytest.param(MIX, 3.4e6, id="mix", marks=pytest.mark.long),
        pytest.param(((208, "hard"),), 2.66e6, id="208", marks=pytest.mark.long),  # 2.53
    ],
)
def test_programs_are_small(cells, most):
    """Characters of StableHLO of the program that plays some levels."""
    made = [jaxsim.make("CartPole3D-v0", level=level, difficulty=word) for level, word in cells]
    env = reduce(lambda one, other: one.covering(other), (env for env, _ in made))
    table = jax.tree.map(lambda *leaves: np.stack(leaves), *(params for _, params in made))
    root, numbers = counters.root(0), np.arange(512)
    crew = Crew(agents.get("pd"), [env], [table], root, numbers, spread=Spread(threads=1))
    one = np.ones((ROUNDS, 1), np.int32)
    rounds = Rounds(episode=0 * one, count=one, world=0 * one, row=0 * one)
    text = jax.jit(crew.program(ROUNDS)).lower(crew.batch(rounds, 0)).as_text()
    assert 0.9 * most < len(text) <= most
    assert "tensor<8x8xf32>" in text  # of `backend.in_parts`
