"""Blocks that appear while an episode runs, levels 108 and 208."""

import random
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.blocks import placement, spawn
from jaxsim.worlds.cartpole3d.blocks.slots import inward
from jaxsim.worlds.cartpole3d.env import MOVES
from jaxsim.worlds.cartpole3d.generate import wsu_distances, wsu_spawns
from jaxsim.worlds.cartpole3d.tick import EVERY, Moved
from jaxsim.worlds.cartpole3d.types import Config, Supply, Vector
from jaxsim.worlds.world import FULL

LANES = 256


def number(state):
    return np.asarray(jnp.sum(state.blocks[0].alive, axis=-1))


@pytest.fixture(scope="module")
def flooded():
    """Level 208 hard for twelve steps in which nothing moves: every state, from the start on.

    Contacts among so many blocks take minutes to compile, and blocks appear before anything moves.
    """
    env, params = jaxsim.make(
        "CartPole3D-v0", {"lean_limit": 1.5}, level=208, difficulty="hard", max_steps=20
    )
    keys = jax.random.split(jax.random.key(0), LANES)
    attempt = jax.jit(partial(env.attempt, active=jnp.ones(LANES, bool), effort=FULL))
    states = [jax.jit(env.start)(keys, params)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MOVES, FULL, lambda params, moving, *rest: Moved(moving, rest[1], EVERY))
        for k in range(12):
            tick_keys = jax.random.split(jax.random.key(k + 1), LANES)
            states.append(attempt(tick_keys, states[-1], jnp.zeros(LANES, int), params).state)
    return states


def test_a_block_appears_in_every_tick_of_208_hard_the_hidden_one_too(flooded):
    counts = np.stack([number(state) for state in flooded])
    assert set(counts[0].tolist()) == {2, 3, 4}
    assert np.all(np.diff(counts, axis=0) == 1)


def test_new_blocks_keep_clear_of_the_carts_start_and_move_as_drawn(flooded):
    before, after = flooded[3], flooded[4]
    slot = number(before)
    lanes = np.arange(LANES)
    block = jax.tree.map(lambda leaf: np.asarray(leaf)[lanes, slot], after.blocks[0])
    assert block.alive.all()
    base = after.supply.base
    placed = block.p
    away = np.hypot(placed[0] - np.asarray(base.x), placed[1] - np.asarray(base.y))
    assert away.min() > placement.CLEARANCE - 1e-5
    assert np.abs(placed[0]).max() < 4.1 and 0.9 < placed[2].min() < placed[2].max() < 9.1
    sizes = np.abs(np.stack(block.v))
    assert np.all((sizes >= 3.0) & (sizes < 5.0))


def state_heading(x: float, y: float, base=(0.0, 0.0), blocks=()):
    """A lane whose cart has been heading (x, y)."""
    named = {
        "cart_pos": np.array(base),
        "cart_yaw": np.array(0.0),
        "cart_vel": np.zeros(2),
        "cart_yaw_rate": np.array(0.0),
        "pole_jq": np.array([0.0, 0.0, 0.0, 1.0]),
        "pole_jw": np.zeros(3),
    }
    if blocks:
        named |= {"block_pos": np.array(blocks), "block_vel": np.zeros((len(blocks), 3))}
    state = cartpole3d.state_from_arrays(named, Config(max_blocks=8, terms=("spawn",)))
    heading = Vector(*map(jnp.asarray, (x, y, 0.0)))
    return inward(replace(state, supply=Supply(state.supply.base, heading)))


def place(state, shares):
    table = jnp.asarray(shares + [0.0] * (spawn.AHEAD_DRAWS + 1 - len(shares)))
    p, placed, drawn = spawn.place_ahead(state, lambda attempt: table[attempt])
    return np.array([float(c) for c in p]), bool(placed), int(drawn)


def test_where_a_block_appears_says_nothing_of_how_it_moves(flooded):
    """Nor do the blocks of two ticks resemble each other: all have noise of their own."""
    lanes = np.arange(LANES)

    def new_block(tick):
        slot = number(flooded[tick])
        block = jax.tree.map(
            lambda leaf: np.asarray(leaf)[lanes, slot], flooded[tick + 1].blocks[0]
        )
        v = np.stack(block.v)
        return [*np.stack(block.p), *np.abs(v), *np.sign(v)]

    correlation = np.corrcoef(np.stack([*new_block(3), *new_block(4)]))
    # Of 256 lanes: a standard deviation of 1/16.
    assert np.abs(correlation - np.eye(len(correlation))).max() < 5 / 16


def test_a_block_ahead_appears_on_the_way_from_the_origin():
    p, placed, drawn = place(state_heading(3.0, 4.0, base=(-3.0, 0.0)), [0.4])
    assert placed and drawn == 1
    np.testing.assert_allclose(p, [2.4, 3.2, 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "blocks", "rejected"),
    [
        ((-3.0, 0.0), (), 0.07),  # too near to the origin
        ((2.0, 0.0), (), 0.25),  # to where the cart started
        ((-3.0, 0.0), ((2.5, 0.3, 7.0),), 0.2),  # to a block, however high
        ((-3.0, 0.0), (), 0.46),  # beyond 4.5 m
    ],
)
def test_places_that_are_taken_are_drawn_again(base, blocks, rejected):
    state = state_heading(2.0, 0.0, base, blocks)
    p, placed, drawn = place(state, [rejected, 0.35])
    assert placed and drawn == 2
    np.testing.assert_allclose(p, [3.5, 0.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "blocks", "taken", "free"),
    [
        ((-3.0, 0.0), (), 0.0749, 0.0751),  # 0.75 m from the origin
        ((2.0, 0.0), (), 0.2749, 0.2751),  # from where the cart started
        ((-3.0, 0.0), ((2.0, 0.45, 7.0),), 0.2599, 0.2601),  # from a block: 0.6 along, 0.45 across
        ((-3.0, 0.0), (), 0.4501, 0.4499),  # 4.5 m
    ],
)
def test_bounds_of_places_are_the_originals(base, blocks, taken, free):
    state = state_heading(2.0, 0.0, base, blocks)
    assert place(state, [free, 0.35])[2] == 1
    assert place(state, [taken, 0.35])[2] == 2


def test_after_a_hundred_and_one_taken_places_no_block_appears():
    state = state_heading(2.0, 0.0)
    _, placed, drawn = place(state, [0.0] * spawn.AHEAD_DRAWS + [0.3])
    assert not placed and drawn == spawn.AHEAD_DRAWS
    _, placed, _ = place(state, [0.0] * (spawn.AHEAD_DRAWS - 1) + [0.3])
    assert placed


def test_a_cart_that_has_not_moved_has_no_way():
    assert not place(state_heading(0.0, 0.0), [0.3])[1]


def test_a_full_world_takes_no_more_blocks():
    state = state_heading(1.0, 0.0, blocks=[(i - 3.0, 3.0, 5.0) for i in range(8)])
    p = Vector(*map(jnp.asarray, (1.0, 1.0, 1.0)))
    after = spawn.add_block(state, p, p, jnp.asarray(True))
    np.testing.assert_array_equal(after.blocks[0].p.x, state.blocks[0].p.x)


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_distances_of_108_are_those_of_pythons_own_generator(seed):
    generator = random.Random(seed)
    assert wsu_distances(seed, 5).tolist() == [generator.random() for _ in range(5)]


def test_the_originals_later_blocks_do_not_depend_on_how_many_are_drawn():
    p, v = wsu_spawns(3, "medium", 10)
    q, w = wsu_spawns(3, "medium", 4)
    np.testing.assert_array_equal(p[:4], q)
    np.testing.assert_array_equal(v[:4], w)
    assert np.all((np.abs(v) >= 3) & (np.abs(v) < 5))


@pytest.mark.long
@pytest.mark.parametrize(("difficulty", "period"), [("easy", 3), ("hard", 1)])
def test_from_wsu_seed_has_the_block_of_the_hidden_tick(difficulty, period, x64):
    state = cartpole3d.from_wsu_seed(4, 208, difficulty)
    start = cartpole3d.wsu_start(4, 208, difficulty)
    at_start = sum(bool(block.alive) for block in start.blocks)
    assert int(number(state)) == at_start + (period == 1)
    assert state.blocks[0].alive.shape == ({"easy": 71, "hard": 205}[difficulty],)
