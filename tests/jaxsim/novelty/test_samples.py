"""Samples of the space of novelties: seeded, checked, and parameters of CartPole3D."""

import json

import jax
import pytest

import jaxsim
from jaxsim import novelty
from jaxsim.novelty import FAMILIES, Novelty

KEY = jax.random.key(3)
HEAVY = {"families": ["gravity"], "parameters": {"gravity": 15.0}}
TWO = {
    "families": ["push_turn", "wind"],
    "parameters": {"actions/turn": 26.35, "wind/speed": 7.105},
}
ON_POLE = {"wind/speed": 3.0, "wind/pole_drag": 0.5}


def of(family, values):
    return {"families": [family], "parameters": values}


def test_samples_of_every_family_can_be_played():
    drawn = novelty.sample(KEY, list(FAMILIES), 2 * len(FAMILIES))
    assert [one.name for one in drawn] == [*FAMILIES, *FAMILIES]
    for one in drawn:
        env, params = jaxsim.make("CartPole3D-v0", {"novelty": one})
        assert env.name == "CartPole3D"
        assert {path for path, _ in one.parameters} <= FAMILIES[one.name].paths
        again = jaxsim.make("CartPole3D-v0", dict(one.parameters))
        assert (env, jax.tree.leaves(params)) == (again[0], jax.tree.leaves(again[1]))
        assert one.describe().count(" in place of ") == len(one.parameters)


def test_samples_are_seeded_and_more_begin_with_the_same():
    names = ["gravity", "wind+push_turn", "block_number"]
    few, many = novelty.sample(KEY, names, 5), novelty.sample(KEY, names, 50)
    assert many[:5] == few
    assert len({one for one in many if one.name != "block_number"}) == 34
    assert set(novelty.sample(jax.random.key(4), names, 50)).isdisjoint(
        one for one in many if one.name != "block_number"
    )
    # A sample depends on its own entry alone.
    assert novelty.sample(KEY, ["gravity", "drag", "pole_mass"], 4)[3] == many[3]
    assert many[1].families == ("push_turn", "wind")


def test_names_of_a_composition_may_be_apart():
    assert novelty.sample(KEY, ["gravity + wind"], 2) == novelty.sample(KEY, ["gravity+wind"], 2)


def test_each_range_of_a_sample_has_a_draw_of_its_own():
    drawn = novelty.sample(KEY, ["block_friction"], 50)
    rows = [tuple(value for _, value in one.parameters) for one in drawn]
    assert all(len(set(row)) == 3 for row in rows)


def test_a_novelty_is_a_small_json():
    for one in novelty.sample(KEY, ["gravity", "wind+push_turn", "sensor_dropped"], 6):
        text = json.dumps(one.to_json())
        assert len(text) < 150
        assert Novelty.from_json(json.loads(text)) == one
    assert Novelty.from_json(TWO).words == (
        ("push", "direction", "left"),
        ("world", "wind", "increase"),
    )


@pytest.mark.parametrize(
    ("family", "given", "completed"),
    [
        ("wind_on_pole", ON_POLE, {"repairs/wind_on_pole": 1}),
        ("block_number", {"blocks/count_min": 6}, {"blocks/count_max": 6}),
        ("block_speed", {"blocks/speed_max": 2.0}, {"blocks/speed_min": 1.2}),
        ("block_speed", {"blocks/speed_max": 2.0, "blocks/speed_min": 0.5}, {}),
        ("sensor_dropped", {"sensors/gain_angle": 0.0}, {}),
    ],
)
def test_fixed_and_linked_parameters_are_completed(family, given, completed):
    assert dict(Novelty.of([family], given).parameters) == given | completed


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (3, "must be an object with the keys 'families' and 'parameters'"),
        ({"families": ["gravity"]}, "must be an object with the keys"),
        ({**HEAVY, "families": "gravity"}, "'families' of a novelty must be a list of names"),
        ({**HEAVY, "families": [3]}, "'families' of a novelty must be a list of names"),
        ({**HEAVY, "parameters": []}, "'parameters' of a novelty must be an object"),
        ({**HEAVY, "families": ["gravty"]}, "did you mean 'gravity'"),
        ({**HEAVY, "parameters": {"gravity": 1000.0}}, "must be a number from 0 to 100"),
        ({**HEAVY, "parameters": {"gravity": "much"}}, "must be a number from 0 to 100"),
        ({**HEAVY, "parameters": {"gravitas": 1.0}}, "unknown parameter 'gravitas'"),
        ({**HEAVY, "parameters": {"wind/speed": 1.0}}, "belongs to no family of this novelty"),
        ({**HEAVY, "parameters": {}}, "family 'gravity' needs a value of gravity"),
        ({**TWO, "families": ["wind", "wind_on_pole"]}, "both set 'wind/speed'"),
        (
            {**HEAVY, "parameters": {"gravity": 9.8}},
            "'gravity' changes nothing: gravity is 9.8, as without it; change",
        ),
        (
            of("wind_on_pole", {**ON_POLE, "wind/speed": 0.0}),
            "'wind_on_pole' changes nothing: wind/speed is 0, as without it",
        ),
        (
            of("block_flood", {"spawn/period": 0, "spawn/speed_max": 5.0}),
            "'block_flood' changes nothing: spawn/period is 0",
        ),
        (
            of("block_number", {"blocks/count_min": 2, "blocks/count_max": 4}),
            "changes nothing: blocks/count_min is 2, blocks/count_max is 4",
        ),
        (of("wind_on_pole", {"wind/speed": 3.0}), "needs a value of wind/pole_drag"),
        (
            of("wind_on_pole", {**ON_POLE, "repairs/wind_on_pole": 0}),
            "repairs/wind_on_pole is 0; .* needs repairs/wind_on_pole=1; leave it out",
        ),
        (
            of("block_lines", {"blocks/line_near": 4.5, "blocks/friction": 0.5}),
            "'blocks/line_far' is 5.5; it must be a number from 0 to 5",
        ),
        (of("block_number", {"blocks/count_max": 8}), "needs a value of blocks/count_min"),
        (
            of("sensor_dropped", {"sensors/gain_angle": 0.5}),
            "needs sensors/gain_position=0 or sensors/gain_velocity=0 or",
        ),
        (
            of("sensor_dropped", {"sensors/gain_angle": 0.0, "sensors/gain_rate": 0.5}),
            "sensors/gain_rate is 0.5; .* needs no value of it beside this choice; leave it out",
        ),
    ],
)
def test_what_is_no_novelty_is_refused(value, reason):
    with pytest.raises(ValueError, match=reason):
        jaxsim.make("CartPole3D-v0", {"novelty": value})


def test_a_parameter_of_the_novelty_may_not_stand_beside_it():
    with pytest.raises(ValueError, match="'gravity' is set beside the novelty that sets it"):
        jaxsim.make("CartPole3D-v0", {"novelty": HEAVY, "gravity": 3.0})
    _, params = jaxsim.make("CartPole3D-v0", {"novelty": HEAVY, "pole/length": 2.0})
    assert (float(params.gravity), float(params.pole_length)) == (15, 2)


@pytest.mark.parametrize(
    ("families", "size", "reason"),
    [
        (["gravity"], 0, "size is 0; it must be from 1"),
        (["gravity"], 10_000_000, "it must be from 1 to"),
        ([], 3, "families is empty"),
        ("gravity", 3, r"families is 'gravity'; it must be a list, as \['gravity'\]"),
        (["gravity+wnd"], 3, "did you mean 'wind'"),
    ],
)
def test_bad_samples_are_refused(families, size, reason):
    with pytest.raises(ValueError, match=reason):
        novelty.sample(KEY, families, size)
