"""Many lanes at once against one after the other, and how their clocks are charged."""

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.gvgai import harness
from evaluation.gvgai.batch import SharedClock, play_batch
from evaluation.gvgai.observation import ACTIONS, ESCAPE, LEFT, RIGHT
from evaluation.gvgai.results import Announcer
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.track import Track, TrackLevel
from tests.evaluation.gvgai.scripted import LEVELS, track

# Two worlds, and levels whose episodes end early.
MIXED = Track(
    "mixed",
    (
        *LEVELS[:2],
        TrackLevel("CartPole2D"),
        LEVELS[3],
        TrackLevel("CartPole", (("gravity", 12.0),)),
    ),
    Rules(learning_seconds=2.5, validation_times=2),
)


def draw(lane, play, tick, slot, sides):
    """Throw a die for each lane; nothing but its place decides."""
    seeds = np.asarray(97 * slot + 31 * tick + 1009 * play + 40_009 * lane, np.uint32)
    with np.errstate(over="ignore"):
        for shift in (16, 15, 16):
            seeds = (seeds ^ (seeds >> np.uint32(shift))) * np.uint32(0x7FEB352D)
    return (seeds % np.uint32(sides)).astype(np.int32)


def action(lane, play, tick):
    die = draw(lane, play, tick, 0, 12)
    return np.where(die == 0, ESCAPE, np.where(die < 7, LEFT, RIGHT)).astype(np.int32)


def act_seconds(lane, play, tick):
    """In time, mostly; some actions are late, some overspent."""
    return np.choose(draw(lane, play, tick, 1, 20), [0.045, 0.06, *[0.01] * 18])


def level(lane, play):
    return draw(lane, play, 0, 2, 6) - 1


def result_seconds(lane, play):
    return draw(lane, play, 0, 3, 13) / 10


def init_seconds(lane, play):
    return np.where(draw(lane, play, 0, 4, 40) == 0, 1.0, 0.1)


class LaneClocks:
    """A scripted clock for each lane."""

    def __init__(self, lanes):
        self.times = np.zeros(lanes)

    def now(self):
        return self.times.copy()


class Together:
    """The random policies of all lanes."""

    def __init__(self, clocks, first=0):
        self.clocks, self.lanes = clocks, first + np.arange(len(clocks.times), dtype=np.uint32)

    def init(self, sight, due):
        self.clocks.times[due] += init_seconds(self.lanes, sight.play)[due]

    def act(self, sight, due):
        self.clocks.times[due] += act_seconds(self.lanes, sight.play, sight.tick)[due]
        return action(self.lanes, sight.play, sight.tick)

    def result(self, sight, due):
        self.clocks.times[due] += result_seconds(self.lanes, sight.play)[due]
        return level(self.lanes, sight.play)


def alone(lane):
    """The policy of one lane, as an agent of its own, with its clock."""
    clock, plays = ScriptedClock(), [-1]

    class Agent:
        def init(self, sso, timer):
            plays[0] += 1
            clock.advance(float(init_seconds(lane, plays[0])))

        def act(self, sso, timer):
            clock.advance(float(act_seconds(lane, plays[0], sso.gameTick)))
            return ACTIONS[int(action(lane, plays[0], sso.gameTick))]

        def result(self, sso, timer):
            clock.advance(float(result_seconds(lane, plays[0])))
            return int(level(lane, plays[0]))

    return Agent, clock


def both(track, lanes, seed, first=0):
    """Results of all lanes, played together and one by one."""
    clocks = LaneClocks(lanes)
    agents = Together(clocks, first)
    together = play_batch(track, agents, clocks, lanes=lanes, seed=seed, first_lifetime=first)
    single = []
    for lane in range(first, first + lanes):
        results = []
        agent, clock = alone(np.uint32(lane))
        announcer = Announcer(None, results.append)
        harness.run(track, agent, clock, announcer, seed=seed, lifetime=lane)
        single.append(results)
    return together, single


@pytest.mark.slow
@pytest.mark.requirement(96)
def test_64_lanes_are_64_single_trials():
    together, single = both(MIXED, lanes=64, seed=3)
    assert together == single
    results = [result for lane in together for result in lane]
    # All that can happen did, at different times in different lanes.
    assert {result.phase for result in results} == {"first", "second", "validation"}
    assert {result.winner for result in results} == {-100, -1, 0}
    assert {result.level for result in results} == {0, 1, 2, 3, 4}
    assert len({len(lane) for lane in together}) > 3
    assert any(r.overspent for r in results) and any(r.aborted for r in results)


@pytest.mark.requirement(96)
def test_any_number_of_lanes_and_any_lifetimes_give_the_same():
    quick = Track("poles", LEVELS, Rules(learning_seconds=0.5))
    together, single = both(quick, lanes=3, seed=1, first=7)
    assert together == single
    assert [lane[0].lifetime for lane in together] == [7, 8, 9]


class Counting:
    """Agents that break every level off, and count the lanes that are due."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.counts = clock, seconds, []

    def init(self, sight, due):
        self.counts.append(due.sum())

    def act(self, sight, due):
        self.clock.advance(self.seconds)
        return np.full(len(due), ESCAPE)

    def result(self, sight, due):
        return np.full(len(due), 9)


@pytest.mark.requirement(86, 96)
@pytest.mark.parametrize(
    ("charge", "overspent", "millis"), [("whole", True, 60.0), ("share", False, 15.0)]
)
def test_a_call_is_charged_whole_or_shared(charge, overspent, millis):
    clock = ScriptedClock(3.0)
    agents = Counting(clock, 0.06)
    clocks = SharedClock(clock, 4, charge)
    results = play_batch(track(most_plays=1), agents, clocks, lanes=4)
    assert agents.counts == [4, 4, 4]
    for lane in results:
        assert [r.level for r in lane] == [0, 3, 4]
        assert [r.overspent for r in lane] == [overspent] * 3
        assert {r.act_max_ms for r in lane} == {millis}


def test_agents_of_a_batch_that_answer_wrongly_are_told():
    clock = ScriptedClock()
    agents = Counting(clock, 0.0)
    shared = SharedClock(clock, 2)
    agents.act = lambda sight, due: np.zeros(3, int)
    with pytest.raises(ValueError, match=r"act .* int64 of shape \(3,\); .* of shape \(2,\)"):
        play_batch(track(), agents, shared, lanes=2)
    agents.act = lambda sight, due: np.zeros(2)
    with pytest.raises(ValueError, match="float64"):
        play_batch(track(), agents, shared, lanes=2)
    with pytest.raises(ValueError, match="lanes is 0"):
        play_batch(track(), agents, shared, lanes=0)
    with pytest.raises(ValueError, match="first lifetime is -1"):
        play_batch(track(), agents, shared, lanes=2, first_lifetime=-1)
