"""Lists of what may touch against plain searches."""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d.contact import candidates
from jaxsim.worlds.cartpole3d.types import Sphere, Vector

LANES = 40
SQUARE = 1.0  # m^2
ONE = jnp.float32(1.0)


def crowd(number: int, spread: float, seed: int = 0) -> Sphere:
    """Blocks at random places, a tenth of them missing; leaves (N, L)."""
    draws = np.random.default_rng(seed)
    p = draws.uniform(-spread, spread, (3, number, LANES)).astype(np.float32)
    alive = draws.random((number, LANES)) < 0.9
    return Sphere(Vector(*map(jnp.asarray, p)), Vector(*map(jnp.asarray, p)), jnp.asarray(alive))


def near_pairs(block: Sphere, lane: int) -> list[tuple[int, int]]:
    p = np.stack([np.asarray(c)[:, lane] for c in block.p])
    alive = np.asarray(block.alive)[:, lane]
    return [
        (i, j)
        for i, j in combinations(range(len(alive)), 2)
        if alive[i] and alive[j] and np.sum((p[:, i] - p[:, j]) ** 2) <= SQUARE
    ]


@pytest.mark.parametrize(("number", "spread"), [(5, 0.5), (17, 2.0), (60, 5.0)])
def test_the_list_holds_every_near_pair_in_order(number, spread):
    block = crowd(number, spread)
    first, second, counts = jax.jit(candidates.pairs_within)(block, SQUARE, ONE)
    expected = [near_pairs(block, lane) for lane in range(LANES)]
    assert sum(map(len, expected)) > LANES
    for lane, pairs in enumerate(expected):
        assert int(counts[lane]) == len(pairs)
        listed = zip(first[: len(pairs), lane], second[: len(pairs), lane], strict=True)
        assert [(int(i), int(j)) for i, j in listed] == pairs


@pytest.mark.parametrize(("number", "spread"), [(5, 0.5), (18, 2.0), (60, 5.0)])
def test_the_short_list_holds_every_near_pair(number, spread):
    block = crowd(number, spread)

    @jax.jit
    def short(block: Sphere) -> candidates.Pairs:
        return candidates.in_order(candidates.few_pairs_within(block, SQUARE, ONE, 12), ONE)

    first, second, counts = (np.asarray(a) for a in short(block))
    expected = [near_pairs(block, lane) for lane in range(LANES)]
    listed = [len(pairs) <= 12 for pairs in expected]
    assert sum(listed) > LANES / 4
    assert (counts <= 12).tolist() == listed
    for lane in np.flatnonzero(listed):
        assert int(counts[lane]) == len(expected[lane])
        pairs = zip(first[: counts[lane], lane], second[: counts[lane], lane], strict=True)
        assert [(int(i), int(j)) for i, j in pairs] == expected[lane]


@pytest.mark.parametrize("used", [3, 40, 97])
def test_the_search_ends_with_the_last_block_of_any_lane(used):
    block = crowd(120, 4.0)
    here = (np.arange(120) < used)[:, None] & np.asarray(block.alive)
    block = Sphere(block.p, block.v, jnp.asarray(here))
    counts = jax.jit(candidates.few_pairs_within, static_argnums=3)(block, SQUARE, ONE, 100).number
    assert np.asarray(counts).tolist() == [len(near_pairs(block, i)) for i in range(LANES)]


def test_pairs_beyond_the_list_are_left_out():
    block = crowd(30, 0.1)
    first, second, counts = candidates.pairs_within(block, SQUARE, ONE)
    assert np.all(np.asarray(counts) == candidates.MAX_PAIRS)
    for lane in range(LANES):
        pairs = near_pairs(block, lane)[: candidates.MAX_PAIRS]
        listed = zip(first[:, lane], second[:, lane], strict=True)
        assert [(int(i), int(j)) for i, j in listed] == pairs


def test_flagged_slots_are_listed_in_order():
    flags = np.random.default_rng(1).random((50, LANES)) < 0.2
    listed, counts = jax.jit(candidates.flagged, static_argnums=1)(jnp.asarray(flags), 8, ONE)
    for lane in range(LANES):
        expected = np.flatnonzero(flags[:, lane])[:8]
        assert int(counts[lane]) == flags[:, lane].sum()
        assert np.asarray(listed)[: len(expected), lane].tolist() == expected.tolist()
    assert np.any(flags.sum(axis=0) > 8)


def test_one_lane_needs_no_axis():
    block = crowd(12, 1.5)
    lane: Any = jax.tree.map(lambda leaf: leaf[:, 3], block)
    first, second, count = candidates.pairs_within(lane, SQUARE, ONE)
    pairs = near_pairs(block, 3)
    assert int(count) == len(pairs) > 0
    assert (int(first[0]), int(second[0])) == pairs[0]
    chosen = candidates.take(jnp.stack(lane.p), second[:1], axis=1)
    np.testing.assert_array_equal(chosen[:, 0], jnp.stack(lane.p)[:, pairs[0][1]])
