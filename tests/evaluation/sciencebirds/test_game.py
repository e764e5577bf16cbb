"""Levels as CartPole3D episodes, and what can be seen of them."""

import numpy as np
import pytest

from evaluation.sciencebirds import levels
from evaluation.sciencebirds.codec import NO_PICTURE
from evaluation.sciencebirds.codes import LOST, PLAYING
from evaluation.sciencebirds.game import CartPoleGame
from evaluation.sciencebirds.levels import Level
from evaluation.sciencebirds.picture import (
    BLOCK_COLOUR,
    CART_COLOUR,
    HALF,
    PAPER,
    POLE_COLOUR,
    SIZE,
    draw,
)
from jaxsim.worlds.cartpole3d.messages import parse_feature_vector
from jaxsim.worlds.cartpole3d.types import Observation, Vector
from tests.evaluation.sciencebirds.support import evaluation, level_set, trial

WHAT = evaluation(trial(level_set(3), [level_set(2, novelty=3)]))
PLAIN, AGAIN = WHAT.trials[0].training.levels[0], WHAT.trials[0].tests[0].levels[0]


def observation(x=0.0, y=0.0, quaternion=(0.0, 0.0, 0.0, 1.0), blocks=(), stacked=False):
    zero = np.float32(0)
    points = [Vector(*map(np.float32, point)) for point in blocks]
    alive = [np.bool_(True)] * len(points)
    if stacked:
        points = [Vector(*(np.array([*part, 9.0]) for part in zip(*blocks, strict=True)))]
        alive = [np.array([True] * len(blocks) + [False])]
    still = Vector(zero, zero, zero)
    return Observation(
        Vector(np.float32(x), np.float32(y), zero),
        still,
        quaternion,
        still,
        tuple(points),
        tuple(still for _ in points),
        tuple(alive),
    )


def pixels(picture) -> np.ndarray:
    assert (picture.width, picture.height) == (2 * SIZE, SIZE)
    return np.frombuffer(picture.pixels, np.uint8).reshape(SIZE, 2 * SIZE, 3)


def centre(image, colour) -> tuple[float, float]:
    """Middle of everything of a colour in one view, pixels from the left and from the top."""
    rows, columns = np.nonzero((image == colour).all(axis=-1))
    return float(columns.mean()), float(rows.mean())


def at(metres) -> float:
    return (metres + HALF) / (2 * HALF) * SIZE - 0.5


# --- pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize("stacked", [False, True])
def test_a_picture_shows_where_things_are(stacked):
    image = pixels(draw(observation(2.0, -3.0, blocks=[(-2.0, 4.0, 6.0)], stacked=stacked)))
    side, top = image[:, :SIZE], image[:, SIZE:]
    assert centre(side, BLOCK_COLOUR) == pytest.approx((at(-2.0), SIZE - 1 - at(6.0 - 5.0)), abs=1)
    assert centre(top, BLOCK_COLOUR) == pytest.approx((at(-2.0), SIZE - 1 - at(4.0)), abs=1)
    assert centre(top, CART_COLOUR)[0] == pytest.approx(at(2.0), abs=1)
    assert centre(top, CART_COLOUR)[1] == pytest.approx(SIZE - 1 - at(-3.0), abs=1)
    assert centre(side, POLE_COLOUR) == pytest.approx((at(2.0), SIZE - 1 - at(0.7 - 5.0)), abs=1.5)
    assert (image[0, 0] == PAPER).all()


def test_a_pole_that_leans_is_seen_to_lean():
    half = np.deg2rad(30) / 2
    turned = (0.0, float(np.sin(half)), 0.0, float(np.cos(half)))  # about y: towards +x
    image = pixels(draw(observation(quaternion=turned)))
    assert centre(image[:, :SIZE], POLE_COLOUR)[0] == pytest.approx(at(0.25), abs=1.5)
    upright = pixels(draw(observation()))
    assert (image != upright).any()


def test_blocks_that_are_nowhere_are_not_drawn():
    with_nothing = draw(observation())
    assert draw(observation(blocks=[(np.nan, 0.0, 0.0), (np.inf, 1.0, 1.0)])) == with_nothing


def test_nearer_blocks_hide_those_behind():
    image = pixels(draw(observation(blocks=[(0.0, 0.0, 9.0)])))
    assert not (image[:, SIZE:] == CART_COLOUR).all(axis=-1).any()  # the block is above the cart


# --- episodes --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def game():
    return CartPoleGame(levels.schedule(WHAT), seed=5)


@pytest.mark.slow
def test_a_level_is_the_same_each_time(game):
    seen = []
    for level in (PLAIN, WHAT.trials[0].training.levels[1], PLAIN):
        game.load(level)
        first = game.first_picture()
        vectors = [game.feature_vector()]
        status = PLAYING
        while status == PLAYING:
            status = game.shoot(1)
            vectors.append(game.feature_vector())
        seen.append((vectors, first))
        assert status == LOST
        assert game.score == len(vectors) - 1
        assert game.counts.birds_remaining == 200 - game.score
        assert (game.counts.pigs_remaining, game.counts.birds_at_start) == (1, 200)
        assert game.picture() != first == game.first_picture()
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.slow
def test_vectors_are_those_of_the_original(game):
    game.load(PLAIN)
    observed, extras = parse_feature_vector(game.feature_vector())
    assert extras.time_stamp == 0.0
    assert float(observed.cart_position.x) == pytest.approx(
        float(game._episode.observation.cart_position.x), abs=1e-6
    )
    game.shoot(0)
    assert game.feature_vector()["time_stamp"] == 0.02


@pytest.mark.slow
def test_levels_of_a_novelty_are_played_with_it(game):
    game.load(AGAIN)
    assert float(game._episode.params.novelty_level) == 203
    assert {told["level"] for told in game.hint()} == {3}
    game.load(PLAIN)
    assert float(game._episode.params.novelty_level) == 200
    assert game.hint() == []


@pytest.mark.slow
def test_a_shot_may_last_several_steps(game):
    held = CartPoleGame(levels.schedule(WHAT), seed=5, steps_per_shot=4)
    held.load(PLAIN)
    status, vectors = held.recorded(2, 2)
    assert (status, len(vectors), held.score) == (PLAYING, 2, 4)
    game.load(PLAIN)
    for _ in range(4):
        game.shoot(2)
    assert game.feature_vector() == held.feature_vector() == vectors[-1]


def test_without_a_level_there_is_nothing_to_see():
    empty = CartPoleGame(levels.schedule(evaluation()))
    empty.warm()
    assert (empty.picture(), empty.first_picture()) == (NO_PICTURE, NO_PICTURE)
    assert (empty.feature_vector(), empty.score, empty.hint()) == ({}, 0, [])


def test_an_unknown_level_is_no_variant():
    assert Level.of(0, 1, 0).variant == Level.of(0, 4, 9).variant
    assert Level.of(5, 1, 0, "unseen").variant == Level.of(0, 1, 0).variant
