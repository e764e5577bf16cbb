"""Levels as CartPole3D episodes, and what can be seen of them."""

from types import SimpleNamespace

import pytest

from evaluation import session
from evaluation.sciencebirds import document_order
from evaluation.sciencebirds.codec import NO_PICTURE
from evaluation.sciencebirds.codes import LOST, PLAYING, WON
from evaluation.sciencebirds.game import CartPoleGame
from evaluation.sciencebirds.levels import LevelPath
from jaxsim.worlds.cartpole3d.original.messages import parse_feature_vector
from tests.evaluation.sciencebirds.support import evaluation, level_set, trial

WHAT = evaluation(trial(level_set(3), [level_set(2, novelty=3)]))
PLAIN, AGAIN = WHAT.trials[0].training.levels[0], WHAT.trials[0].tests[0].levels[0]


# --- episodes --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def game():
    return CartPoleGame(document_order.schedule(WHAT), seed=5)


@pytest.mark.slow
def test_a_level_is_the_same_each_time(game):
    traces = []
    for level in (PLAIN, WHAT.trials[0].training.levels[1], PLAIN):
        game.load(level)
        first = game.first_picture()
        vectors = [game.feature_vector()]
        status = PLAYING
        while status == PLAYING:
            status = game.shoot(1)
            vectors.append(game.feature_vector())
        traces.append((vectors, first))
        assert status == LOST
        assert game.score == len(vectors) - 1
        assert game.counts.birds_remaining == 200 - game.score
        assert (game.counts.pigs_remaining, game.counts.birds_at_start) == (1, 200)
        assert game.picture() != first == game.first_picture()
    assert traces[0] == traces[2] != traces[1]


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
    assert {hint["level"] for hint in game.hint()} == {3}
    game.load(PLAIN)
    assert float(game._episode.params.novelty_level) == 200
    assert game.hint() == []


@pytest.mark.slow
def test_a_shot_may_last_several_steps(game):
    held = CartPoleGame(document_order.schedule(WHAT), seed=5, steps_per_shot=4)
    held.load(PLAIN)
    status, vectors = held.record(2, 2)
    assert (status, len(vectors), held.score) == (PLAYING, 2, 4)
    game.load(PLAIN)
    for _ in range(4):
        game.shoot(2)
    assert game.feature_vector() == held.feature_vector() == vectors[-1]


class Lifetime:
    """A session that notes what is asked of it; its episodes last seven steps and are won."""

    def __init__(self, schedule, **given):
        self.schedule, self.given, self.started, self.actions = schedule, given, [], []
        self.compile = lambda: self.started.append("compiled")

    def start(self, variant, number):
        self.started.append((variant, number))
        episode = SimpleNamespace(env=SimpleNamespace(max_steps=7), length=0, over=False)
        episode.observation = f"first of {number}"

        def step(action):
            self.actions.append(action)
            episode.length += 1
            episode.over = episode.length == 7

        episode.step = step
        episode.result = lambda: SimpleNamespace(complete=episode.over, terminated=False)
        return episode


def test_a_game_asks_its_session_for_each_level_and_step(monkeypatch):
    monkeypatch.setattr(session, "Session", Lifetime)
    game = CartPoleGame(document_order.schedule(WHAT), seed=5, steps_per_shot=3)
    lifetime = game._session
    assert (lifetime.schedule, lifetime.given) == (document_order.schedule(WHAT), {"seed": 5})
    monkeypatch.setattr(CartPoleGame, "feature_vector", lambda self: self.score)
    monkeypatch.setattr(CartPoleGame, "_draw", lambda self, observation: observation)
    game.warm()
    game.load(PLAIN)
    assert (game.score, tuple(game.counts)) == (0, (7, 1, 7, 1))
    assert game.shoot(2) == PLAYING and lifetime.actions == [2, 2, 2]
    assert game.record(1, 2) == (PLAYING, [5])
    assert game.record(0, 1) == (WON, [7])  # it is over after the first step
    assert lifetime.actions == [2, 2, 2, 1, 1, 1, 0]
    assert (game.score, tuple(game.counts)) == (7, (0, 0, 7, 1))
    assert game.level_result()[:2] == (lifetime, 0)
    game.load(AGAIN)
    assert (game.score, tuple(game.counts)) == (0, (7, 1, 7, 1))
    assert game.level_result()[1] == 1
    assert game.first_picture() == f"first of {AGAIN.number}"
    assert lifetime.started == ["compiled", (0, PLAIN.number), (1, AGAIN.number)]


def test_without_a_level_there_is_nothing_to_see():
    empty = CartPoleGame(document_order.schedule(evaluation()))
    empty.warm()
    assert (empty.picture(), empty.first_picture()) == (NO_PICTURE, NO_PICTURE)
    assert (empty.feature_vector(), empty.score, empty.hint()) == ({}, 0, [])


def test_an_unknown_level_is_no_variant():
    assert LevelPath.of(0, 1, 0).variant == LevelPath.of(0, 4, 9).variant
    assert LevelPath.of(5, 1, 0, "unseen").variant == LevelPath.of(0, 1, 0).variant
