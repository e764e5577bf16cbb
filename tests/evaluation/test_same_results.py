"""The same seed gives the same records, bit for bit, however a run is spread over the machine."""

from dataclasses import dataclass

import numpy as np
import pytest

from evaluation import l2m, scanner
from evaluation.records import COLUMNS
from jaxsim import agents
from tests.evaluation import toy
from tests.evaluation.toy import repeat

pytestmark = [pytest.mark.optimised, pytest.mark.nightly, pytest.mark.long]


@dataclass(frozen=True)
class Run:
    """One run of the syllabus."""

    agent: str
    lifetimes: int
    chunk: int
    threads: int = 1
    segment: int = 16
    seed: int = 1

    def play(self, schedule):
        options = scanner.MachineOptions(self.chunk, self.threads, self.segment)
        agent = agents.get(self.agent)
        return scanner.play(
            schedule, agent, lifetimes=self.lifetimes, seed=self.seed, options=options
        )


PD = Run("pd", 200, 64)
RANDOM = Run("random", 200, 64)
SAME_AS_PD = [
    Run("pd", 64, 64),
    Run("pd", 200, 256, segment=4),
    Run("pd", 200, 128, threads=3),
    Run("pd", 200, 64, threads=2, segment=4),
]
SAME_AS_RANDOM = [
    Run("random", 64, 64),
    Run("random", 200, 128, threads=2),
]
OTHER_SEED = [Run("pd", 64, 64, seed=2), Run("random", 64, 64, seed=2)]
ALL = [PD, RANDOM, *SAME_AS_PD, *SAME_AS_RANDOM, *OTHER_SEED]


def syllabus():
    """Level 200, a short pole, four heavy blocks in a hurry, and other worlds in between.

    Heavy blocks make many and hard contacts; the worlds of two dimensions are other programs.
    """
    cartpole = {"task": "CartPole3D"}
    heavy = {"blocks/mass": 20.0, "blocks/count_min": 4, "blocks/speed_min": 9.0}
    crowded = repeat(13, **cartpole)
    crowded["$repeat"] |= heavy
    return toy.syllabus(
        ("1.train", [repeat(26, **cartpole)]),
        ("1.test", [repeat(13, pole_length=0.5, **cartpole), crowded]),
        (
            "2.train",
            [repeat(3, task="CartPole2D"), repeat(3, task="CartPole"), repeat(2, **cartpole)],
        ),
    )


@pytest.fixture(scope="module")
def records():
    """Records of every run."""
    schedule = l2m.loads(syllabus())
    return {run: run.play(schedule) for run in ALL}


def assert_same_bits(one, other):
    """The lifetimes that two runs share are equal in every column, bit for bit."""
    shared = min(one.num_lifetimes, other.num_lifetimes)
    assert shared >= 64
    for name in COLUMNS:
        a, b = (np.ascontiguousarray(r.columns[name][:shared]) for r in (one, other))
        different = np.argwhere((a != b) & ~((a != a) & (b != b)))
        assert a.tobytes() == b.tobytes(), (
            f"{name}: {len(different)} of {a.size} episodes differ, first (lifetime, episode) "
            f"{different[:3].tolist()}"
        )


@pytest.mark.parametrize("run", SAME_AS_PD, ids=str)
def test_pd_is_the_same_bit_for_bit(records, run):
    assert_same_bits(records[run], records[PD])


@pytest.mark.parametrize("run", SAME_AS_RANDOM, ids=str)
def test_random_is_the_same_bit_for_bit(records, run):
    assert_same_bits(records[run], records[RANDOM])


def test_the_comparison_means_something(records):
    """Enough episodes, most of them different, many ended by what blocks do."""
    pd, random = (records[run].columns for run in (PD, RANDOM))
    compared = [*SAME_AS_PD, *SAME_AS_RANDOM]
    assert sum(records[run].columns["length"].size for run in compared) >= 20_000
    # Undisturbed, `pd` never falls: an episode that ends early was hit.
    falls = (pd["length"] < 200).mean(axis=0)
    for block in (slice(0, 26), slice(26, 39), slice(39, 52)):
        assert 0.05 < falls[block].mean() < 0.6
    # The other worlds were played: CartPole lasts 500 steps, CartPole2D ends by its track.
    assert (pd["length"][:, 55:58] == 500).all()
    assert 10 < pd["length"][:, 52:55].mean() < 200
    assert len(np.unique(random["length"])) > 60
    assert pd["complete"].all() and random["complete"].all()


@pytest.mark.parametrize("run", OTHER_SEED, ids=str)
def test_another_seed_differs(records, run):
    other = records[run].columns["length"]
    mine = records[PD if run.agent == "pd" else RANDOM].columns["length"][:64]
    assert (other != mine).mean() > 0.1
    # Lifetimes differ from one another as well: nobody has another's luck.
    both = np.concatenate([mine, other])
    assert len(np.unique(both, axis=0)) == 128
