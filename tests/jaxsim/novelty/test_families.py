"""Families of novelties: their ranges, words and what they may be composed of."""

import numpy as np
import pytest

from jaxsim.novelty import FAMILIES, Range, family
from jaxsim.novelty.families import check_together
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS, PULL

NOT_NOVEL = {
    "novelty/level": "a level is a novelty of its own",
    "novelty/difficulty": "of a level",
    "repairs/closed_room": "mends what the original does at levels 204 and 206",
    PULL: "mends what the original does at level 205",
    "start/spread": "where the cart starts is within the nominal world anyway",
    "actions/scale_x": "",
}
"""Parameters that no family sets, and why."""


RANGES = [
    ("gravity", "gravity", "log", ((2.45, 9.61), (10.0, 39.2)), ()),
    ("drag", "drag", "log", ((0.004, 0.0392), (0.0408, 0.6)), ()),
    ("fall_angle", "lean_limit", "log", ((0.06, 0.171), (0.178, 0.5)), ()),
    ("room_width", "room/half_width", "linear", ((4.5, 4.9), (5.0, 12.0)), ()),
    ("room_ceiling", "room/ceiling", "linear", ((9.5, 9.9), (10.0, 20.0)), ()),
    ("room_floor", "room/floor", "linear", ((-8.0, -0.1),), ()),
    ("wall_bounce", "walls/restitution", "linear", ((0.0, 0.98), (1.02, 1.4)), ()),
    ("bounce_spread", "walls/bounce_spread", "log", ((0.02, 0.6),), ()),
    ("wind", "wind/speed", "linear", ((1.0, 24.0),), ()),
    ("wind_on_pole", "wind/speed", "linear", ((1.0, 20.0),), ()),
    ("wind_on_pole", "wind/pole_drag", "log", ((0.3, 3.0),), ()),
    ("cart_mass", "cart/mass", "log", ((0.1, 0.98), (1.02, 20.0)), ()),
    ("cart_bounce", "cart/restitution", "linear", ((0.05, 1.3),), ()),
    ("pole_mass", "pole/mass", "log", ((0.01, 0.098), (0.102, 3.0)), ()),
    ("pole_length", "pole/length", "log", ((0.3, 0.98), (1.02, 9.0)), ()),
    ("pole_com", "pole/com", "log", ((0.4, 0.98), (1.02, 2.5)), ()),
    ("pole_bounce", "pole/restitution", "linear", ((0.05, 1.3),), ()),
    ("push_size", "force", "log", ((2.0, 9.8), (10.2, 150.0)), ()),
    ("push_right", "actions/scale_x", "linear", ((-2.0, 0.95), (1.05, 3.0)), ()),
    ("push_forward", "actions/scale_y", "linear", ((-2.0, 0.95), (1.05, 3.0)), ()),
    ("push_turn", "actions/turn", "linear", ((-180.0, -2.0), (2.0, 180.0)), ()),
    ("push_sign", "actions/sign", "linear", ((-3.0, -0.3),), ()),
    ("push_delay", "actions/delay", "whole", ((1.0, 8.0),), ()),
    ("block_mass", "blocks/mass", "log", ((0.01, 0.98), (1.02, 100.0)), ()),
    ("block_size", "blocks/radius", "log", ((0.2, 0.49), (0.51, 1.2)), ()),
    ("block_weight", "blocks/buoyancy", "linear", ((0.0, 0.99), (1.01, 2.0)), ()),
    ("block_bounce", "blocks/restitution", "linear", ((0.0, 0.98), (1.02, 1.4)), ()),
    ("block_friction", "blocks/friction", "linear", ((0.05, 1.5),), ()),
    ("block_friction", "cart/friction", "linear", ((0.05, 1.5),), ()),
    ("block_friction", "pole/friction", "linear", ((0.05, 1.5),), ()),
    (
        "block_number",
        "blocks/count_min",
        "whole",
        ((0.0, 1.0), (5.0, 8.0)),
        (("blocks/count_max", 1.0, 0.0),),
    ),
    (
        "block_speed",
        "blocks/speed_max",
        "log",
        ((0.5, 9.8), (10.2, 25.0)),
        (("blocks/speed_min", 0.6, 0.0),),
    ),
    ("block_aim", "blocks/aim_share", "linear", ((0.1, 1.0),), ()),
    ("block_aim", "blocks/aim_speed_max", "linear", ((3.0, 14.0),), ()),
    ("block_gather", "blocks/gather_speed_max", "linear", ((2.0, 15.0),), ()),
    ("block_scatter", "blocks/scatter_speed", "linear", ((0.5, 12.0),), ()),
    ("block_lines", "blocks/line_near", "linear", ((0.5, 3.5),), (("blocks/line_far", 1.0, 1.0),)),
    ("block_lines", "blocks/friction", "linear", ((0.05, 1.0),), ()),
    ("block_supply", "spawn/period", "whole", ((16.0, 120.0),), ()),
    ("block_flood", "spawn/period", "whole", ((16.0, 120.0),), ()),
    ("block_flood", "spawn/speed_max", "linear", ((3.0, 10.0),), (("spawn/speed_min", 0.6, 0.0),)),
    ("pull_blocks", "blocks/pull_centroid", "log", ((-0.2, -40.0), (0.2, 40.0)), ()),
    ("pull_cart", "blocks/pull_cart", "log", ((-0.2, -40.0), (0.2, 40.0)), ()),
    ("pull_origin", "blocks/pull_origin", "log", ((-0.2, -40.0), (0.2, 40.0)), ()),
    ("pull_random", "blocks/pull_centroid_random", "log", ((0.5, 40.0),), ()),
    ("start_push", "start/push", "log", ((2.0, 60.0),), ()),
    ("start_lean", "start/lean", "log", ((0.012, 0.1),), ()),
    ("noise_position", "sensors/noise_position", "log", ((0.002, 0.5),), ()),
    ("noise_velocity", "sensors/noise_velocity", "log", ((0.004, 2.0),), ()),
    ("noise_angle", "sensors/noise_angle", "log", ((0.0005, 0.1),), ()),
    ("noise_rate", "sensors/noise_rate", "log", ((0.004, 2.0),), ()),
    ("step_position", "sensors/step_position", "log", ((0.005, 1.0),), ()),
    ("step_velocity", "sensors/step_velocity", "log", ((0.01, 4.0),), ()),
    ("step_angle", "sensors/step_angle", "log", ((0.001, 0.15),), ()),
    ("step_rate", "sensors/step_rate", "log", ((0.01, 2.0),), ()),
    ("offset_position", "sensors/offset_position", "log", ((-0.01, -2.0), (0.01, 2.0)), ()),
    ("offset_velocity", "sensors/offset_velocity", "log", ((-0.01, -2.0), (0.01, 2.0)), ()),
    ("offset_angle", "sensors/offset_angle", "log", ((-0.001, -0.1), (0.001, 0.1)), ()),
    ("offset_rate", "sensors/offset_rate", "log", ((-0.005, -1.0), (0.005, 1.0)), ()),
    ("sensor_delay", "sensors/delay", "whole", ((1.0, 3.0),), ()),
]
"""Family, parameter, scale, spans to three digits, and parameters that follow, once more, to notice
a change by mistake."""
SET = {
    "wind_on_pole": (("repairs/wind_on_pole", 1),),
    "block_supply": (("spawn/ahead", 1),),
}
"""Values that families set besides."""


def test_ranges_are_these():
    assert [
        (name, row.path, row.scale, tuple(map(to_three_digits, row.spans)), row.linked)
        for name, one in FAMILIES.items()
        for row in one.ranges
    ] == RANGES
    fixed = {name: one.fixed for name, one in FAMILIES.items() if one.fixed}
    assert fixed == SET
    dropped = [f"sensors/gain_{kind}" for kind in ("position", "velocity", "angle", "rate")]
    assert {name: one.choices for name, one in FAMILIES.items() if one.choices} == {
        "sensor_dropped": tuple(((path, 0.0),) for path in dropped)
    }


def to_three_digits(span):
    return tuple(float(f"{end:.3g}") for end in span)


def test_every_parameter_belongs_to_a_family_or_is_left_out_for_a_reason():
    owned = frozenset().union(*(one.paths for one in FAMILIES.values()))
    left_out = {path for path, why in NOT_NOVEL.items() if why}
    # What a kind of sensor reads is dropped by its factor, and aimed blocks have speeds from 0.
    assert set(PARAMETERS) - owned == left_out | {"blocks/aim_speed_min"}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_range_holds_the_nominal_value_and_all_are_within_bounds(name):
    for one in family(name).ranges:
        row = PARAMETERS[one.path]
        shares = np.linspace(0, 1, 401, endpoint=False)
        drawn = [one.at(share) for share in shares]
        if one.path not in ("cart/friction", "pole/friction", "wind/pole_drag"):
            assert all(values[one.path] != row.default for values in drawn)
        for values in drawn:
            assert set(values) == set(one.paths)
            assert not [
                PARAMETERS[path].problem(value)
                for path, value in values.items()
                if PARAMETERS[path].problem(value)
            ]
        inside = [values[one.path] for values in drawn]
        for low, high in one.spans:
            assert any(min(low, high) <= value <= max(low, high) for value in inside)
        assert all(any(min(span) <= value <= max(span) for span in one.spans) for value in inside)


def test_shares_are_uniform_over_all_spans():
    linear = Range("walls/restitution", ((0.0, 0.5), (1.5, 2.0)))
    values = np.array([linear.at(share)["walls/restitution"] for share in np.arange(1000) / 1000])
    assert np.mean(values < 0.5) == pytest.approx(0.5, abs=0.01)
    assert np.quantile(values, 0.25) == pytest.approx(0.25, abs=0.01)
    sized = Range("gravity", ((1.0, 10.0), (10.0, 100.0)), "log")
    values = np.array([sized.at(share)["gravity"] for share in np.arange(1000) / 1000])
    assert np.median(values) == pytest.approx(10, rel=0.01)
    assert np.quantile(values, 0.75) == pytest.approx(10**1.5, rel=0.01)
    whole = Range("blocks/count_min", ((0, 1), (5, 6)), "whole", (("blocks/count_max", 1.0, 0.0),))
    drawn = [whole.at(share) for share in np.arange(1000) / 1000]
    assert {n: sum(v["blocks/count_min"] == n for v in drawn) for n in (0, 1, 5, 6)} == {
        0: 250,
        1: 250,
        5: 250,
        6: 250,
    }
    assert all(v["blocks/count_max"] == v["blocks/count_min"] for v in drawn)


def test_sizes_of_either_sign_begin_small():
    pull = family("pull_cart").ranges[0]
    assert pull.at(0.0) == {"blocks/pull_cart": -0.2}
    assert pull.at(0.4999)["blocks/pull_cart"] == pytest.approx(-40, rel=0.01)
    assert pull.at(0.5) == {"blocks/pull_cart": 0.2}
    assert pull.at(0.9999)["blocks/pull_cart"] == pytest.approx(40, rel=0.01)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("gravity", {"gravity": 12.0}, ("world", "gravity", "increase")),
        ("gravity", {"gravity": 5.0}, ("world", "gravity", "decrease")),
        ("block_weight", {"blocks/buoyancy": 0.0}, ("block", "gravity", "increase")),
        ("pull_blocks", {"blocks/pull_centroid": -5.0}, ("block", "direction", "away from block")),
        ("wind", {"wind/speed": 3.0}, ("world", "wind", "increase")),
        ("offset_rate", {"sensors/offset_rate": -0.1}, ("sensor", "rate", "decrease")),
        ("push_right", {"actions/scale_x": 0.5}, ("push", "size", "decrease")),
        ("push_right", {"actions/scale_x": -2.0}, ("push", "direction", "opposite")),
        ("push_forward", {"actions/scale_y": -0.1}, ("push", "direction", "opposite")),
    ],
)
def test_words_follow_the_direction_of_the_change(name, values, words):
    assert family(name).words(values) == words


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["gravty"], "unknown family 'gravty'; did you mean 'gravity'"),
        ([], "it must have 1 to 3"),
        (["gravity", "wind", "drag", "pole_mass"], "it must have 1 to 3"),
        (["wind", "wind_on_pole"], "both set 'wind/speed'; leave one of them out"),
        (["gravity", "gravity"], "both set 'gravity'"),
        (["block_supply", "block_flood"], "both set 'spawn/period'"),
    ],
)
def test_compositions_that_contradict_are_refused(names, reason):
    with pytest.raises(ValueError, match=reason):
        check_together(names)
