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
