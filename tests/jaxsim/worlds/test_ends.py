"""The end of an episode, case by case as `jaxsim.env` words it."""

from itertools import product
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.worlds.cartpole.types import Motion, State
from jaxsim.worlds.world import World

LIMIT = 9


def ended(done, step, fallen, finite, fell_before):
    """(kept, terminated, truncated, nonfinite, done) in plain Python."""
    if not done:
        over = fallen or not finite or step + 1 >= LIMIT
        truncated = step + 1 >= LIMIT or not finite
        return finite, fallen and finite, truncated, not finite, over
    if fell_before:
        return False, True, step >= LIMIT, False, True
    return False, False, True, step < LIMIT, True


CASES = [
    case
    for case in product((False, True), (LIMIT - 5, LIMIT - 1, LIMIT), *[(False, True)] * 3)
    # An episode in play has no past end, and is within its limit.
    if case[0] or not (case[1] == LIMIT or case[4])
]


@pytest.mark.parametrize("lanes", [False, True])
def test_every_case_is_that_of_the_contract(lanes):
    columns = [jnp.array(column) for column in zip(*CASES, strict=True)]
    rows = [columns] if lanes else [[c[i] for c in columns] for i in range(len(CASES))]
    results = []
    for done, step, fallen, finite, fell_before in rows:
        zero = jnp.zeros(done.shape)
        old = State(Motion(zero, zero, zero, zero), step, done)
        new = State(Motion(zero + 1, zero, zero, zero), step + 1, done)
        flags = {"fallen": fallen, "finite": finite, "fell_before": fell_before}
        end = World.ends(SimpleNamespace(max_steps=LIMIT), old, new, **flags)
        kept = end.state.motion.x == 1
        assert (end.state.step == step + kept).all()
        results.append([kept, end.terminated, end.truncated, end.nonfinite, end.state.done])
    results = np.concatenate([np.atleast_2d(np.array(result).T) for result in results])
    assert results.tolist() == [list(ended(*case)) for case in CASES]
