"""Lifetimes side by side are those of sessions one after the other, tick for tick."""

import jax
import numpy as np
import pytest

from evaluation.abreast import Abreast
from evaluation.session import Session
from tests.evaluation import toy
from tests.evaluation.toy import repeat

LANES, FIRST, SEED = 3, 4, 7
ACTIONS = np.array([1, 0, 3, 2, 4, 1])


@pytest.fixture(scope="module")
def plan():
    with toy.registered():
        yield toy.schedule(
            ("1.train", [repeat(1, wheel=5)]), ("1.test", [repeat(1, wheel=4, rules="other")])
        )


def status_of(lanes, lane):
    """What is known of a lane, as an episode of a session says it."""
    status = lanes.status()
    place, step = (int(status.observation[name][lane]) for name in ("place", "step"))
    over, performance = bool(status.over[lane]), float(status.performance[lane])
    return place, step, float(status.score[lane]), int(status.tick[lane]), over, performance


def test_every_lane_is_a_session_and_begins_anew_when_it_is_told(plan):
    lanes = Abreast(plan, lanes=LANES, seed=SEED, first_lifetime=FIRST)
    assert lanes.filled == 64
    everyone = np.ones(lanes.filled, bool)
    numbers, variants = np.zeros(lanes.filled, np.int32), np.zeros(lanes.filled, np.int32)
    lanes.open(variants, numbers, everyone)
    sessions = [Session(plan, seed=SEED, lifetime=FIRST + lane) for lane in range(LANES)]
    episodes = [session.start(0, 0) for session in sessions]
    states = set()

    def compare():
        for lane, episode in enumerate(episodes):
            place, step, score, tick, over, performance = status_of(lanes, lane)
            observed = episode.observation
            assert (place, step) == (int(observed["place"]), int(observed["step"]))
            assert (tick, over) == (episode.length, episode.over)
            assert (score, performance) == (episode.reward, episode.performance)
            states.add((place, score))

    compare()
    for number, action in enumerate(ACTIONS):
        moving = everyone.copy()
        moving[1] = number % 2 == 0  # one waits
        lanes.step(np.full(lanes.filled, action, np.int32), moving)
        for lane in range(LANES):
            if moving[lane]:
                episodes[lane].step(int(action))
        compare()
        if number == 2:  # one goes on with another episode, in the other world
            fresh = np.arange(lanes.filled) == 2
            lanes.open(np.where(fresh, 1, variants), np.where(fresh, 5, numbers), fresh)
            episodes[2] = sessions[2].start(1, 5)
            compare()
            assert lanes.world[:LANES].tolist() == [0, 0, 1]
    assert len(states) > 12


def test_a_status_is_of_the_host(plan):
    lanes = Abreast(plan, lanes=1)
    lanes.open(*np.zeros((2, 64), np.int32), np.ones(64, bool))
    leaves = jax.tree.leaves(lanes.status())
    assert len(leaves) == 8 and all(isinstance(leaf, np.ndarray) for leaf in leaves)
    assert lanes.status(observation=False).observation is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lanes": 0}, "lanes is 0; it must be at least 1"),
        ({"lanes": 2, "first_lifetime": 2**32 - 1}, "first lifetime is 4294967295; it must be"),
        ({"lanes": 2, "first_lifetime": -1}, "first lifetime is -1"),
        ({"lanes": 2, "seed": 2**32}, "seed is 4294967296"),
    ],
)
def test_numbers_out_of_bounds_are_refused(plan, given, words):
    with pytest.raises(ValueError, match=words):
        Abreast(plan, **given)
