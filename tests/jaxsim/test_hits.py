"""What the nominal simulator makes of a tick with a hit, from an observation."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import hits, residual
from jaxsim.agents.sight import see
from jaxsim.worlds.cartpole3d.levels import params_of
from jaxsim.worlds.cartpole3d.types import Vector

TICKS = 6


@pytest.fixture(scope="module")
def foretold():
    """Compiled: observations of many lanes to what is foretold of them."""
    one = jax.jit(jax.vmap(hits.after, in_axes=(0, 0, None)))
    return lambda report, needed=True: one(jnp.full(report.vx.shape, needed), report, jnp.int32(0))


def flown(lanes32, values, pair=False):
    """Observations (T, L, ...) of blocks that fly at the pole, or at one another.

    They come from another side in each lane.
    """
    params = params_of(200, "easy", jnp.float32)
    params = replace(params, **{name: jnp.float32(value) for name, value in values.items()})
    start = lanes32.start(3, params)
    angle = 2 * np.pi * np.arange(lanes32.width, dtype=np.float32) / lanes32.width
    x, y, none = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    first, second, *rest = start.blocks
    if pair:
        first = replace(first, p=Vector(none, none, 6 + none), v=Vector(3 * x, 3 * y, none))
        place = Vector(1.1 * x, 1.1 * y, 6.2 + none)
        second = replace(second, p=place, v=Vector(-3 * x, -3 * y, none), alive=first.alive)
    else:
        place = Vector(start.pose.x + 0.85 * x, start.pose.y + 0.85 * y, 0.9 + none)
        first = replace(first, p=place, v=Vector(-8 * x, -8 * y, none))
        rest = [second, *rest]
    gone = [replace(block, alive=jnp.zeros_like(block.alive)) for block in rest]
    blocks = (first, second, *gone) if pair else (first, *gone)
    state = replace(start, blocks=blocks)
    rows = []
    for _ in range(TICKS):
        observation, state, *_ = lanes32.step(state, 0, params)
        rows.append(jax.vmap(see)(observation))
    return rows


def first_errors(rows, foretold):
    """Error of what is foretold of the tick of the first hit of each lane, (L,)."""
    errors, changes = [], []
    for before, after in pairwise(rows):
        of_both = jax.vmap(hits.errors)(foretold(before), after)
        errors.append(np.maximum(*of_both))
        change = np.stack([a - b for a, b in zip(after.block.v, before.block.v, strict=True)])
        changes.append(np.abs(change).max(axis=(0, 2)))
    # A free tick slows a block by less than this.
    first = np.argmax(np.stack(changes) > 0.3, axis=0)
    assert (np.max(changes, axis=0) > 0.3).all()
    return np.take_along_axis(np.stack(errors), first[None], axis=0)[0]


@pytest.mark.parametrize("pair", [False, True], ids=["pole", "pair"])
def test_hits_of_the_nominal_world_are_foretold(lanes32, foretold, pair):
    # Rounding of float32, of which a contact makes more: 2.9e-4 at the pole, 5e-7 of pairs.
    assert first_errors(flown(lanes32, {}, pair), foretold).max() < 1e-3


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        ({"block_mass": 3.0}, False),
        ({"restitution_pole": 0.6}, False),
        ({"restitution_block": 0.8}, True),
    ],
    ids=["mass", "pole", "pair"],
)
def test_a_hit_of_another_world_is_not(lanes32, foretold, values, pair):
    assert first_errors(flown(lanes32, values, pair), foretold).min() > residual.HIT_LIMIT


def test_nothing_is_foretold_where_it_is_not_needed(lanes32, foretold):
    (report, *_) = flown(lanes32, {})
    for kept, given in zip(
        jax.tree.leaves(foretold(report, False)), jax.tree.leaves(report), strict=True
    ):
        np.testing.assert_array_equal(kept, given)
