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
