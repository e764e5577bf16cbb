"""One tick of ours against one tick of PyBullet, in double precision, with PyBullet running beside.

PyBullet plays whole episodes from the original's seeds; each of its ticks is repeated from the
state before it. Recordings are not needed, so this covers physics that was never recorded.
"""

from collections.abc import Collection

import numpy as np
import pytest

pytest.importorskip(
    "pybullet",
    reason="needs the extra jaxsim-novelty[parity]; PyBullet has wheels for Python 3.11 on Linux "
    "x86-64 only, elsewhere `pip install pybullet` builds it with a C++ compiler",
)

from benchmarks import parity
from jaxsim.worlds.cartpole3d.levels import CATALOGUE
from tests.conftest import double_precision
from tests.oracles.recordings import KINDS, Recording
from tests.parity import bullet_episodes
from tests.parity.bounds import CHAIN, HIT, PAIR, SLIDING_HIT

pytestmark = pytest.mark.optimised

MORE = {
    **dict.fromkeys((201, 202), parity.DIFFICULTIES),
    **dict.fromkeys((108, 208), ("easy", "hard")),
}
LEVELS = [
    (number, difficulty)
    for number, level in CATALOGUE.items()
    for difficulty in MORE.get(number, ("hard",) if level.varies else ("easy",))
]
SEEDS = range(100, 106)  # none of them was recorded

# Physics of no level, on top of level 203 hard, where blocks are aimed at the cart, or of 202.
OTHER_PHYSICS = {
    "another cart and pole": {
        "gravity": 6.0,
        "drag": 0.2,
        "cart/mass": 2.5,
        "pole/mass": 0.3,
        "pole/length": 2.0,
        "pole/com": 0.7,
    },
    "everything bounces": {
        "blocks/radius": 0.8,
        "blocks/mass": 3.0,
        "blocks/restitution": 0.6,
        "walls/restitution": 0.9,
        "cart/restitution": 0.7,
        "pole/restitution": 0.5,
    },
    "a larger room": {
        "room/half_width": 6.0,
        "room/floor": -0.3,
        "room/ceiling": 12.0,
        "blocks/radius": 0.25,
        "blocks/buoyancy": 0.8,
    },
    "forces on light blocks": {
        "force": 20.0,
        "blocks/mass": 0.5,
        "blocks/pull_cart": 15.0,
        "blocks/pull_origin": 3.0,
        "blocks/pull_centroid": -2.0,
    },
    "other friction on lines": {
        "cart/friction": 1.0,
        "pole/friction": 0.2,
        "blocks/friction": 0.8,
        "blocks/mass": 2.0,
        "blocks/restitution": 0.7,
    },
}
ON_LINES = {*(f"202 {d}" for d in parity.DIFFICULTIES), "other friction on lines"}

# Rounding of the few operations of a tick on numbers of up to 100 m/s and some 100 m.
EXACT = 1e-12
# The same through four times the depth of a block at 100 m/s that Bullet finds by iteration.
WALL = 1e-10
# One unit in the last place of a float32 of 16 rad/s, grown by an unstable pole.
RECORDED = 5e-6

Errors = dict[str, np.ndarray]
"""Error of every field in some ticks."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, parity.Case]:
    """Live episodes of every level, of other physics and under random actions."""
    folder, play = tmp_path_factory.mktemp("bullet"), bullet_episodes.play
    with double_precision():
        episodes = {f"{level} {d}": play(level, d, SEEDS, folder) for level, d in LEVELS}
        for name, changes in OTHER_PHYSICS.items():
            level = 202 if name in ON_LINES else 203
            episodes[name] = play(level, "hard", SEEDS, folder, changes=changes)
        random = bullet_episodes.at_random
        episodes["random actions"] = play(203, "hard", SEEDS, folder, policy=random)
    return episodes


@pytest.fixture(scope="module")
def errors(cases: dict[str, parity.Case]) -> dict[str, dict[str, Errors]]:
    """Errors of the ticks of each class that occurs, by class and case."""
    by_kind: dict[str, dict[str, Errors]] = {kind: {} for kind in KINDS}
    for name, case in cases.items():
        with double_precision():
            all_ticks = parity.field_errors(case)
        kinds = case.recording.kind[case.recording.steps]
        for kind in set(kinds):
            by_kind[kind][name] = {f: error[kinds == kind] for f, error in all_ticks.items()}
    return by_kind


def ticks(errors: dict[str, Errors]) -> int:
    return sum(e["cart_vel"].size for e in errors.values())


def above(errors: dict[str, Errors], bound: float) -> dict[tuple[str, str], float]:
    """Largest error of each case and field that exceeds a bound."""
    worst = {(name, f): float(error.max()) for name, e in errors.items() for f, error in e.items()}
    return {place: error for place, error in worst.items() if not error <= bound}


def large_share(hits: dict[str, Errors], without: Collection[str]) -> float:
    """Share of ticks with a velocity error above 1e-3 m/s."""
    counted = [e for name, e in hits.items() if name not in without]
    large = [np.maximum(e["cart_vel"], e["block_vel"]) > 1e-3 for e in counted]
    return float(np.concatenate(large).mean())


def check_recorded(live: Recording, recorded: Recording, exempt: str = "") -> None:
    """Live episodes are the recorded ones, apart from fields that have `exempt` in their name."""
    np.testing.assert_array_equal(live.lengths, recorded.lengths)
    rows = np.flatnonzero(recorded.covered)
    for column in ("action", "done"):
        np.testing.assert_array_equal(getattr(live, column)[rows], getattr(recorded, column)[rows])
    assert np.mean((live.kind == recorded.kind)[rows]) >= (0.99 if exempt else 1)
    np.testing.assert_allclose(live.reward, recorded.reward, rtol=1e-7)
    errors = live.errors(np.arange(len(live.tick)), recorded.state, recorded.reported)
    checked = {f: e[rows] for f, e in errors.items() if not exempt or exempt not in f}
    assert above({"live": checked}, RECORDED) == {}


def test_the_scene_plays_the_recorded_episodes(recording, tmp_path):
    """From the seed alone the same hits and ends: the scene is that of the original."""
    recorded = recording("L200_easy_pd")
    assert set(recorded.kind) == {"free", "wall", "structure"}
    with double_precision():
        live = bullet_episodes.play(200, "easy", recorded.seeds, tmp_path).recording
    check_recorded(live, recorded)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("level", sorted({level for level, _ in LEVELS}))
def test_the_scene_plays_the_recorded_episodes_of_every_level(level, recording, tmp_path):
    # This skips where only the excerpt is at hand.
    recorded = recording(f"L{level}_hard_pd", parity.most_slots(level, "hard"))
    with double_precision():
        live = bullet_episodes.play(level, "hard", recorded.seeds, tmp_path).recording
    # A block in the wind that is a rounding away from a cell of the profile feels another force.
    # Where many blocks touch, it matters in which order: that depends on how they were made.
    check_recorded(live, recorded, exempt="block" if level in (108, 206, 208) else "")


@pytest.mark.slow
@pytest.mark.long
def test_first_observations_are_exact(cases):
    with double_precision():
        worst = {name: parity.reset_error(case) for name, case in cases.items()}
    assert {name: error for name, error in worst.items() if error > EXACT} == {}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "bound", "least"), [("free", EXACT, 20_000), ("wall", WALL, 1_000)]
)
def test_ticks_of_free_motion_and_of_walls_are_exact(errors, kind, bound, least):
    assert ticks(errors[kind]) >= least
    assert above(errors[kind], bound) == {}


@pytest.mark.slow
@pytest.mark.long
def test_blocks_that_hit_one_another_are_exact_unless_in_a_chain(errors):
    assert ticks(errors["pair"]) >= 900
    for name, e in errors["pair"].items():
        many = name.startswith(("108", "208"))
        assert above({name: e}, CHAIN if many else PAIR) == {}
        assert (e["block_vel"] <= WALL).mean() >= (0.9 if many else 0.95), name


@pytest.mark.slow
@pytest.mark.long
def test_blocks_on_lines_that_hit_one_another_are_exact(errors):
    pairs = {name: e for name, e in errors["pair"].items() if name in ON_LINES}
    assert ticks(pairs) >= 25
    assert above(pairs, WALL) == {}


@pytest.mark.slow
@pytest.mark.long
def test_hits_of_cart_and_pole_are_within_the_tolerance_of_the_original(errors):
    hits = errors["structure"]
    assert ticks(hits) >= 300
    for name, e in hits.items():
        room = 2 if name in OTHER_PHYSICS else 1  # lighter bodies take more from the same error
        bounds = SLIDING_HIT if name in ON_LINES else HIT
        fields = zip(("cart_vel", "pole_tilt_rate", "block_vel"), bounds, strict=True)
        assert {f: e[f].max() for f, bound in fields if e[f].max() > room * bound} == {}, name
    assert large_share(hits, {*OTHER_PHYSICS, *ON_LINES, "random actions"}) < 0.06
    # Friction makes more of an error in the normal.
    assert large_share(hits, hits.keys() - ON_LINES) < 0.25


@pytest.mark.slow
@pytest.mark.long
def test_poses_reported_after_a_hit_are_those_before_it(errors):
    """The sensors are a tick late, so no error of the hit can be in them yet."""
    late = ("reported cart_position", "reported pole_quaternion")
    hits = {name: {f: e[f] for f in late} for name, e in errors["structure"].items()}
    assert above(hits, EXACT) == {}
