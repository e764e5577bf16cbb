"""What levels change, number for number, and ranges that contradict themselves.

The numbers are those of the original generator as `docs/levels.md` explains them; written down a
second time here, since the tests that play levels against recordings take long.
"""

from dataclasses import fields

import pytest

import jaxsim
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.generate import wsu
from jaxsim.worlds.cartpole3d.levels import (
    CATALOGUE,
    DIFFICULTIES,
    EVALUATED,
    NAMED,
    Level,
)
from jaxsim.worlds.cartpole3d.original.hints import hint
from jaxsim.worlds.cartpole3d.types import Params

INF = float("inf")
STILL = {"block_mass": INF, "block_speed_min": 0.0, "block_speed_max": 0.0}
FAST = {"spawn_speed_min": 3.0, "spawn_speed_max": 5.0}


def each(**values):
    """Values by difficulty, from one for all or three."""
    return [
        {name: v[i] if isinstance(v, tuple) else v for name, v in values.items()} for i in range(3)
    ]


TABLE = {
    101: each(cart_mass=10.0),
    102: each(**STILL),
    103: each(gather_speed_max=10.0),
    104: each(block_radius=1.0),
    105: each(pull_centroid_random=6.0),
    106: each(block_buoyancy=0.0),
    107: each(pull_origin=(15.0, 25.0, 35.0)),
    108: each(spawn_period=(50, 15, 7), spawn_ahead=1),
    111: each(action_sign=-1.0),
    112: each(block_count_min=1.0, block_count_max=1.0),
    113: each(gather_speed_max=(7.5, 10.0, 12.5)),
    114: each(
        aim_share=0.5,
        aim_speed_min=(2.0, 3.0, 4.0),
        aim_speed_max=(2.0, 3.0, 4.0),
        scatter_speed=(2.0, 3.0, 4.0),
    ),
    115: each(force=(50.0, 100.0, 150.0)),
    200: each(),
    201: each(pole_length=(3.0, 5.0, 8.0)),
    202: each(line_near=(3.0, 2.0, 1.5), line_far=(4.0, 3.0, 2.0), friction_block=0.5),
    203: each(aim_share=(0.25, 0.5, 0.75), aim_speed_max=10.0),
    204: each(
        restitution_wall=(1.05, 1.2, 1.35), restitution_block=(1.05, 1.2, 1.35), bounce_spread=0.1
    ),
    205: each(pull_centroid=(-1.0, -3.0, -5.0)),
    206: each(wind_speed=(16.0, 18.0, 20.0)),
    207: each(pull_cart=(10.0, 20.0, 30.0)),
    208: each(spawn_period=(3, 2, 1), **FAST),
}
NOMINAL = {
    "gravity": 9.8,
    "force": 10.0,
    "drag": 0.04,
    "cart_mass": 1.0,
    "pole_mass": 0.1,
    "pole_length": 1.0,
    "pole_com": 1.0,
    "block_radius": 0.5,
    "block_mass": 1.0,
    "block_count_min": 2.0,
    "block_count_max": 4.0,
    "block_speed_min": 6.0,
    "block_speed_max": 10.0,
    "restitution_wall": 1.0,
    "restitution_block": 1.0,
    "restitution_cart": 0.0,
    "restitution_pole": 0.0,
    "room_half_width": 4.95,
    "start_spread": 3.0,
    "start_push": 1.0,
    "start_lean": 0.01,
    "aim_share": 0.0,
    "spawn_period": 0,
    "lean_limit": 0.17453292519943295,
}


def test_the_table_has_every_level():
    assert set(TABLE) == set(CATALOGUE)


@pytest.mark.parametrize("number", TABLE)
def test_a_level_changes_what_the_original_changes(number):
    assert [dict(values) for values in CATALOGUE[number].overrides] == TABLE[number]
    for difficulty, expected in zip(DIFFICULTIES, TABLE[number], strict=True):
        _, params = jaxsim.make("CartPole3D-v0", level=number, difficulty=difficulty)
        for field in fields(Params):
            wanted = expected.get(field.name, getattr(Params(), field.name))
            if field.name != "novelty_level":
                assert float(getattr(params, field.name)) == pytest.approx(wanted, rel=1e-6)
        assert float(params.novelty_level) == number


@pytest.mark.parametrize("name", NOMINAL)
def test_level_200_is_that_of_the_original(name):
    assert getattr(Params(), name) == pytest.approx(NOMINAL[name], rel=1e-6), name


@pytest.mark.parametrize(
    "what", ["blocks/count", "blocks/speed", "blocks/aim_speed", "blocks/line", "spawn/speed"]
)
def test_a_least_value_above_its_greatest_is_refused(what):
    low, high = ("near", "far") if what == "blocks/line" else ("min", "max")
    three, two = (3, 2) if what == "blocks/count" else (3.0, 2.0)
    low, high = f"{what}_{low}", f"{what}_{high}"
    with pytest.raises(ValueError, match=f"{low}' is 3.*, above '{high}', which is 2"):
        jaxsim.make("CartPole3D-v0", {low: three, high: two})
    jaxsim.make("CartPole3D-v0", {low: two, high: two})


def test_every_level_says_what_the_original_draws_in_it():
    assert set(wsu.STREAMS) == set(CATALOGUE)


def test_a_new_level_is_refused_until_its_random_stream_is_known(monkeypatch):
    new = max(CATALOGUE) + 1
    monkeypatch.setitem(CATALOGUE, new, Level(new, "heavier blocks", ({"block_mass": 2.0},) * 3))
    with pytest.raises(ValueError, match=rf"^level is {new}; the original's random stream is kno"):
        cartpole3d.wsu_start(0, new, dtype="float32")


def test_levels_of_an_evaluation_are_those_that_hints_describe():
    described = {number for number in CATALOGUE if any([*hint(number, 3)[0].values()][1:])}
    assert set(NAMED) == described and set(EVALUATED) == {200, *described}
    assert sorted(NAMED) == list(NAMED)
    groups = [number // 100 for number in EVALUATED]
    assert sorted(groups, reverse=True) == groups
    phase_2, phase_3 = range(101, 109), range(200, 209)
    original = {*phase_2, *phase_3}
    assert tuple(n for n in NAMED if n in original) == (*phase_2, *phase_3[1:])
    assert tuple(n for n in EVALUATED if n in original) == (*phase_3, *phase_2)
