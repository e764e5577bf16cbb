import json
import math
import re
from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsim.worlds.cartpole3d import sensors
from jaxsim.worlds.cartpole3d.arrays import state_from_arrays
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.original.hints import hint
from jaxsim.worlds.cartpole3d.original.messages import (
    WALLS,
    Extras,
    feature_vector,
    feature_vector_schema,
    feature_vectors,
    loads_feature_vector,
    parse_feature_vector,
    parse_feature_vectors,
)
from jaxsim.worlds.cartpole3d.types import Config, Observation, Vector

DOUBLE = Config(dtype="float64")

# The example of the generator's older cartpole document, word for word: a comma is missing before
# "time_stamp".
DOCUMENTED = """\
{
    "cart": {
        "x_position": -0.885514,
        "y_position": -1.605059,
        "z_position": 0.1,
        "x_velocity": -11.970514,
        "y_velocity": 1.005748,
        "z_velocity": 0.0
    },
    "pole": {
        "x_quaternion": 0.064607,
        "y_quaternion": -0.065981,
        "z_quaternion": 0.67565,
        "w_quaternion": 0.731416,
        "x_velocity": 2.085099,
        "y_velocity": -0.892353,
        "z_velocity": 11.80254
    },
    "block_0": {
        "x_position": 4.051929,
        "y_position": -3.224569,
        "z_position": 2.41116,
        "x_velocity": 7.785026,
        "y_velocity": 9.065675,
        "z_velocity": 6.467906
    },
    "block_1": {
        "x_position": -0.057339,
        "y_position": -3.611403,
        "z_position": 5.08273,
        "x_velocity": 8.733008,
        "y_velocity": -7.7752,
        "z_velocity": 7.471741
    }
    "time_stamp": 1627668897.4486113,
    "image": null

}
"""
REPAIRED = DOCUMENTED.replace('    }\n    "time_stamp"', '    },\n    "time_stamp"')


def an_observation(blocks=((0.5, -1.25, 3.0, 6.5, -7.5, 8.5), (-2.0, 2.0, 9.0, -6, -7, -8)), cap=4):
    """Numbers that are easy to tell apart; float64."""
    rows = np.zeros((cap, 6))
    rows[: len(blocks)] = np.reshape(blocks, (-1, 6))
    return Observation(
        Vector(1.5, -2.25, 0.0),
        Vector(0.125, -0.25, 0.0),
        (0.0, 0.6, 0.0, 0.8),
        Vector(0.1, 0.2, 0.3),
        tuple(Vector(*row[:3]) for row in rows),
        tuple(Vector(*row[3:]) for row in rows),
        tuple(np.bool_(i < len(blocks)) for i in range(cap)),
    )


def batch(*observations):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *observations)


def leaves_equal(a, b):
    a, b = jax.tree.leaves(a), jax.tree.leaves(b)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def a_vector(first=True, flat_blocks=False, **options):
    return feature_vector(
        an_observation(), first=first, time_stamp=12.5, flat_blocks=flat_blocks, **options
    )


# Emitting ---------------------------------------------------------------------------------------

MOVING = ["x_position", "y_position", "z_position", "x_velocity", "y_velocity", "z_velocity"]


@pytest.mark.requirement(131)
def test_first_vector_to_the_letter():
    vector = a_vector(hint=hint(203, 3))
    entity = '"entity": "block", "attribute": "direction", "change": "toward location"'
    assert json.dumps(vector) == (
        '{"cart": {"x_position": 1.5, "y_position": -2.25, "z_position": 0.0, '
        '"x_velocity": 0.125, "y_velocity": -0.25, "z_velocity": 0.0}, '
        '"pole": {"x_quaternion": 0.0, "y_quaternion": 0.6, "z_quaternion": 0.0, '
        '"w_quaternion": 0.8, "x_velocity": 0.1, "y_velocity": 0.2, "z_velocity": 0.3}, '
        '"blocks": [{"id": 3, "x_position": 0.5, "y_position": -1.25, "z_position": 3.0, '
        '"x_velocity": 6.5, "y_velocity": -7.5, "z_velocity": 8.5}, '
        '{"id": 4, "x_position": -2.0, "y_position": 2.0, "z_position": 9.0, '
        '"x_velocity": -6.0, "y_velocity": -7.0, "z_velocity": -8.0}], '
        '"time_stamp": 12.5, "image": null, '
        '"walls": [[-5, -5, 0], [5, -5, 0], [5, 5, 0], [-5, 5, 0], '
        "[-5, -5, 10], [5, -5, 10], [5, 5, 10], [-5, 5, 10]], "
        f'"hint": [{{"level": 3, {entity}}}]}}'
    )


@pytest.mark.requirement(130)
def test_later_vectors_have_neither_walls_nor_hint():
    vector = a_vector(first=False, hint=hint(203, 3), image="abcd")
    assert list(vector) == ["cart", "pole", "blocks", "time_stamp", "image"]
    assert vector["image"] == "abcd"


def test_flat_form():
    vector = a_vector(flat_blocks=True)
    names = ["cart", "pole", "block_0", "block_1", "time_stamp", "image", "walls"]
    assert list(vector) == names
    assert list(vector["block_1"]) == MOVING
    listed = a_vector()["blocks"]
    assert [{"id": 3 + i, **vector[f"block_{i}"]} for i in range(2)] == listed
    assert list(a_vector(flat_blocks=True, hint=hint(203, 0))) == [*names, "hint"]


def test_no_hint_is_sent_as_nulls():
    assert a_vector()["hint"] == hint(200, -1)


def test_ids_number_the_blocks_that_are_there():
    observation = an_observation()
    gap = (np.True_, np.False_, np.True_, np.True_)
    observation = Observation(**{**vars(observation), "block_alive": gap})

    def ids(**options):
        vector = feature_vector(observation, first=False, time_stamp=0.0, **options)
        return [block["id"] for block in vector["blocks"]]

    assert ids() == [3, 4, 5]
    assert ids(block_ids=[7, 3, 9]) == [7, 3, 9]


def test_values_of_the_sensors_are_rounded_as_python_rounds():
    rng = np.random.default_rng(0)
    q = rng.normal(size=4)
    arrays = {
        "cart_pos": rng.normal(size=2),
        "cart_yaw": np.array(0.3),
        "cart_vel": rng.normal(size=2),
        "cart_yaw_rate": np.array(0.1),
        "pole_jq": q / np.linalg.norm(q),
        "pole_jw": rng.normal(size=3),
        "block_pos": rng.normal(size=(3, 3)),
        "block_vel": rng.normal(size=(3, 3)),
    }
    o = jax.jit(lambda state: sensors.observe(state))(state_from_arrays(arrays))
    vector = feature_vector(o, first=False, time_stamp=0.0)

    def rounded(*values):
        return [round(float(value), 6) for value in values]

    assert list(vector["cart"].values()) == rounded(*o.cart_position, *o.cart_velocity)
    assert list(vector["pole"].values()) == rounded(*o.pole_quaternion, *o.pole_velocity)
    assert len(vector["blocks"]) == 3
    for block, p, v in zip(vector["blocks"], o.block_position, o.block_velocity, strict=False):
        assert list(block.values())[1:] == rounded(*p, *v)


def test_float64_leaves_keep_their_digits_outside_64_bit_mode():
    observation = an_observation()
    exact = Vector(1.2345678912345, 123.456789, 0.0)
    mixed = Observation(
        **{**vars(observation), "cart_position": exact, "pole_velocity": Vector(*jnp.ones(3))}
    )
    vector = feature_vector(mixed, first=False, time_stamp=0.0)
    assert vector["cart"]["x_position"] == 1.234568
    assert vector["cart"]["y_position"] == 123.456789  # float32: 123.456787


def test_a_batch_is_its_lanes():
    lanes = [an_observation(), an_observation(blocks=[[1, 2, 3, 4, 5, 6]])]
    hints = [hint(204, 2), None]
    for leaf in (np.asarray, jnp.asarray):
        rows = feature_vectors(
            jax.tree.map(leaf, batch(*lanes)),
            first=[True, False],
            hint=hints,
            time_stamp=np.array([0.02, 0.5]),
            block_ids=[None, [12]],
            image=[None, "x"],
        )
        assert rows[0] == feature_vector(lanes[0], first=True, hint=hints[0], time_stamp=0.02)
        assert rows[1] == feature_vector(
            lanes[1], first=False, time_stamp=0.5, block_ids=[12], image="x"
        )
    assert feature_vectors(batch(*lanes), first=False, time_stamp=0.0, flat_blocks=True)[
        1
    ] == feature_vector(lanes[1], first=False, time_stamp=0.0, flat_blocks=True)


BAD_OPTIONS = [
    ({"block_ids": [3]}, "'blocks': 1 block_ids for 2 blocks"),
    ({"block_ids": [3, 3]}, "'blocks[1].id' is 3, as 'blocks[0].id'"),
    ({"block_ids": [3, -1]}, "'blocks[1].id' is -1; it must be a whole number from 0"),
    ({"time_stamp": math.nan}, "'time_stamp' is nan; it must be a finite number"),
    ({"image": 5}, "'image' is 5; it must be null or a string"),
    ({"hint": []}, "'hint' is []; it must be a list of one or more objects"),
    ({"hint": {"level": 1}}, "'hint' is {'level': 1}; it must be a list"),
    ({"hint": [{"level": 1}]}, "field 'hint[0].entity' is missing (needed: level, entity"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        feature_vector(an_observation(), **{"first": True, "time_stamp": 0.0, **options})


def test_an_observation_that_is_not_finite_is_refused():
    bad = an_observation(blocks=[[1, 2, 3, 4, math.inf, 6]])
    with pytest.raises(ValueError, match=r"^'blocks\[0\].y_velocity' is inf;"):
        feature_vector(bad, first=False, time_stamp=0.0)
    with pytest.raises(ValueError, match=r"^'\[1\].block_0.y_velocity' is inf;"):
        feature_vectors(batch(an_observation(), bad), first=False, time_stamp=0.0, flat_blocks=True)


def test_shapes_that_do_not_fit_are_refused():
    one, two = an_observation(), batch(an_observation(), an_observation())
    with pytest.raises(ValueError, match=r"batch shape \(2,\); feature_vector takes one lane"):
        feature_vector(two, first=False, time_stamp=0.0)
    with pytest.raises(ValueError, match=r"batch shape \(\); it must be one leading axis"):
        feature_vectors(one, first=False, time_stamp=0.0)
    with pytest.raises(ValueError, match=r"first has shape \(3,\); it must be \(\) or \(2,\)"):
        feature_vectors(two, first=[True] * 3, time_stamp=0.0)
    with pytest.raises(ValueError, match="hint has 1 entries; it must be None or have 2"):
        feature_vectors(two, first=True, time_stamp=0.0, hint=[None])


@pytest.mark.parametrize("first", [False, True])
def test_rooms_without_blocks_are_said_in_the_flat_form(first):
    empty = an_observation(blocks=[])
    vector = feature_vector(empty, first=first, time_stamp=0.0, flat_blocks=True)
    assert list(vector) == ["cart", "pole", "time_stamp", "image", *(["walls"] if first else [])]
    observation, extras = parse_feature_vector(vector)
    assert extras.flat_blocks and extras.first == first
    assert not any(bool(alive) for alive in observation.block_alive)


def test_emitted_values_equal_a_recording_of_the_original(recorded_data):
    with np.load(recorded_data("oracle/L200_easy_pd.npz")) as recording:
        rec = dict(recording)
    count, rows = rec["n_blocks"], len(rec["n_blocks"])
    starts = np.concatenate([[0], np.cumsum(count)])
    blocks = np.zeros((rows, 4, 6), np.float32)
    for k in range(rows):
        blocks[k, : count[k]] = rec["blk"][starts[k] : starts[k + 1], :6]
    reported = (rec["obs_cart_pos"], rec["obs_cart_vel"], rec["obs_pole_quat"])
    p, v, q = (tuple(jnp.asarray(column) for column in values.T) for values in reported)
    observation = Observation(
        Vector(*p),
        Vector(*v),
        q,
        Vector(*(jnp.asarray(column) for column in rec["obs_pole_omega"].T)),
        tuple(Vector(*blocks[:, i, :3].T) for i in range(4)),
        tuple(Vector(*blocks[:, i, 3:].T) for i in range(4)),
        tuple(i < count for i in range(4)),
    )
    first = rec["action"] == -1
    vectors = feature_vectors(observation, first=first, time_stamp=0.0)

    def rounded(*parts):
        return [round(float(number), 6) for part in parts for number in part]

    for k, vector in enumerate(vectors):
        cart, pole = vector["cart"], vector["pole"]
        assert list(cart.values()) == rounded(rec["obs_cart_pos"][k], rec["obs_cart_vel"][k])
        assert list(pole.values()) == rounded(rec["obs_pole_quat"][k], rec["obs_pole_omega"][k])
        assert [list(block.values()) for block in vector["blocks"]] == [
            [3 + i, *rounded(blocks[k, i])] for i in range(count[k])
        ]
        assert ("walls" in vector) == ("hint" in vector) == first[k]
    assert int(first.sum()) == len(rec["seeds"])
    assert len(vectors) == rows


# Parsing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flat_blocks", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_parsed_is_what_was_said(dtype, flat_blocks):
    vector = a_vector(flat_blocks=flat_blocks, hint=hint(206, 3), image="abcd")
    observation, extras = parse_feature_vector(vector, Config(dtype=dtype))
    assert leaves_equal(observation, jax.tree.map(np.dtype(dtype).type, an_observation()))
    for leaf in jax.tree.leaves(observation):
        assert isinstance(leaf, np.ndarray)
        assert leaf.shape == ()
        assert leaf.dtype in (np.dtype(dtype), np.dtype(bool))
    assert extras == Extras(
        12.5, "abcd", None if flat_blocks else (3, 4), WALLS, tuple(hint(206, 3))
    )
    assert extras.first
    assert extras.flat_blocks == flat_blocks


def test_a_parsed_observation_traces_like_that_of_the_sensors():
    arrays = {
        "cart_pos": np.zeros(2),
        "cart_yaw": np.zeros(()),
        "cart_vel": np.zeros(2),
        "cart_yaw_rate": np.zeros(()),
        "pole_jq": np.array([0.0, 0.0, 0.0, 1.0]),
        "pole_jw": np.zeros(3),
    }
    expected = jax.eval_shape(sensors.observe, state_from_arrays(arrays))
    parsed, _ = parse_feature_vector(a_vector())
    assert jax.tree.structure(parsed) == jax.tree.structure(expected)
    assert jax.tree.map(jax.typeof, parsed) == jax.tree.map(
        lambda leaf: jax.typeof(np.zeros(leaf.shape, leaf.dtype)), expected
    )


def test_field_order_does_not_matter_when_parsing():
    vector = a_vector()
    turned = {name: vector[name] for name in reversed(vector)}
    assert leaves_equal(parse_feature_vector(turned)[0], parse_feature_vector(vector)[0])


def test_a_parsed_batch_is_its_lanes():
    vectors = [a_vector(), a_vector(first=False, flat_blocks=True)]
    observation, extras = parse_feature_vectors(vectors)
    alone = [parse_feature_vector(vector) for vector in vectors]
    assert leaves_equal(observation, batch(*(o for o, _ in alone)))
    assert extras == tuple(e for _, e in alone)
    nobody, none = parse_feature_vectors([])
    assert nobody.cart_position.x.shape == (0,)
    assert none == ()
    with pytest.raises(ValueError, match=r"^field '\[1\].pole' is missing \(needed: cart, pole"):
        parse_feature_vectors([a_vector(), {"cart": {}}])


def without(*path):
    def change(vector):
        for name in path[:-1]:
            vector = vector[name]
        del vector[path[-1]]

    return change


def setting(*path_and_value):
    *path, last, value = path_and_value

    def change(vector):
        for name in path:
            vector = vector[name]
        vector[last] = value

    return change


NUMBER = "it must be a finite number in the range of float32"
BAD_VECTORS = [
    (without("pole"), "field 'pole' is missing (needed: cart, pole, blocks, time_stamp, image, wa"),
    (without("time_stamp"), "field 'time_stamp' is missing (needed: cart, pole, blocks,"),
    (without("image"), "field 'image' is missing"),
    (without("blocks"), "field 'blocks' is missing"),
    (without("walls"), "field 'walls' is missing"),
    (without("cart", "z_velocity"), "field 'cart.z_velocity' is missing (needed: x_position, y_"),
    (without("blocks", 1, "id"), "field 'blocks[1].id' is missing (needed: id, x_position"),
    (without("hint", 0, "change"), "field 'hint[0].change' is missing"),
    (setting("ground", {}), "unknown field 'ground' (allowed: cart, pole, blocks, time_stamp, im"),
    (setting("pole", "x_quat", 0.0), "unknown field 'pole.x_quat'; did you mean 'pole.x_quaterni"),
    (setting("blocks", 0, "mass", 1.0), "unknown field 'blocks[0].mass'"),
    (setting("cart", []), "'cart' is []; it must be an object with named fields"),
    (setting("blocks", {}), "'blocks' is {}; it must be a list"),
    (setting("blocks", 0, 7), "'blocks[0]' is 7; it must be an object"),
    (setting("cart", "x_position", "1.0"), f"'cart.x_position' is '1.0'; {NUMBER}"),
    (setting("cart", "x_position", True), f"'cart.x_position' is True; {NUMBER}"),
    (setting("cart", "x_position", None), f"'cart.x_position' is None; {NUMBER}"),
    (setting("time_stamp", None), "'time_stamp' is None"),
    (setting("image", [1]), "'image' is [1]; it must be null or a string"),
    (setting("blocks", 1, "id", True), "'blocks[1].id' is True; it must be a whole number"),
    (setting("walls", [[0, 0, 0]] * 7), "it must be 8 corners of 3 numbers each"),
    (setting("walls", 3, [0, 0]), "it must be 8 corners of 3 numbers each"),
    (setting("walls", 3, 2, "0"), "'walls[3][2]' is '0'"),
    (setting("hint", hint(201, 3)[0]), "'hint' is {'attribute'"),
    (setting("hint", 0, "level", "1"), "'hint[0].level' is '1'; it must be null or a whole numb"),
    (setting("hint", 0, "entity", 1), "'hint[0].entity' is 1; it must be null or a string"),
    (setting("block_0", {}), "'blocks' stands beside fields block_0, block_1, ..."),
]
# JSON or a schema of it has no word for these.
BEYOND_A_SCHEMA = [
    (setting(5, {}), "unknown field '5'"),
    (setting("cart", "x_position", math.nan), f"'cart.x_position' is nan; {NUMBER}"),
    (setting("pole", "z_velocity", -math.inf), f"'pole.z_velocity' is -inf; {NUMBER}"),
    (setting("pole", "z_velocity", 10**400), "'pole.z_velocity' is 1000"),
    (setting("pole", "z_velocity", 1e39), f"'pole.z_velocity' is 1e+39; {NUMBER}"),
    (setting("blocks", 1, "y_position", math.nan), "'blocks[1].y_position' is nan"),
    (setting("blocks", 1, "id", 3), "'blocks[1].id' is 3, as 'blocks[0].id'"),
    (setting("blocks", 1, "id", 4.0), "'blocks[1].id' is 4.0; it must be a whole number from 0"),
    (setting("pole", "w_quaternion", 0.81), "the quaternion of 'pole' has length 1.008"),
]


@pytest.mark.parametrize(("change", "message"), BAD_VECTORS + BEYOND_A_SCHEMA)
def test_a_bad_vector_is_refused_by_the_name_of_its_field(change, message):
    vector = deepcopy(a_vector())
    change(vector)
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_feature_vector(vector)


def test_flat_blocks_leave_no_gap():
    vector = a_vector(flat_blocks=True)
    vector["block_2"] = vector.pop("block_1")
    with pytest.raises(ValueError, match=r"^unknown field 'block_2'.*allowed: .*block_0, block_1"):
        parse_feature_vector(vector)
    vector["block_01"] = vector.pop("block_2")
    with pytest.raises(ValueError, match=r"^unknown field 'block_01'"):
        parse_feature_vector(vector)


def test_ten_flat_blocks_come_in_the_order_of_their_numbers():
    blocks = [[i, 0, 0, 0, 0, 0] for i in range(11)]
    vector = feature_vector(
        an_observation(blocks, cap=11), first=False, time_stamp=0.0, flat_blocks=True
    )
    parsed, _ = parse_feature_vector(dict(sorted(vector.items())), Config(max_blocks=11))
    assert parsed.block_position[0].x.tolist() == list(range(11))
    again = feature_vector(parsed, first=False, time_stamp=0.0, flat_blocks=True)
    assert again == vector


@pytest.mark.parametrize("flat_blocks", [False, True])
def test_more_blocks_than_slots_are_refused(flat_blocks):
    with pytest.raises(ValueError, match=r"holds 2 blocks; Config.max_blocks is 1"):
        parse_feature_vector(a_vector(flat_blocks=flat_blocks), Config(max_blocks=1))


@pytest.mark.parametrize("value", [None, [], "cart", 3])
def test_what_is_no_object_is_refused(value):
    with pytest.raises(ValueError, match=r"^'the feature vector' is .*an object with named"):
        parse_feature_vector(value)


# JSON text --------------------------------------------------------------------------------------


def test_the_documented_example_is_refused_where_it_breaks():
    line = next(i for i, text in enumerate(DOCUMENTED.splitlines(), 1) if "time_stamp" in text)
    place = re.escape(f"line {line}, column 5: not JSON: Expecting ',' delimiter")
    with pytest.raises(ValueError, match=place) as caught:
        loads_feature_vector(DOCUMENTED)
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)


@pytest.mark.requirement(130)
def test_the_documented_example_is_read_once_repaired():
    observation, extras = loads_feature_vector(REPAIRED, DOUBLE)
    assert extras == Extras(1627668897.4486113)
    assert extras.flat_blocks
    assert not extras.first
    assert observation.cart_position == Vector(-0.885514, -1.605059, 0.0)
    assert observation.pole_quaternion == (0.064607, -0.065981, 0.67565, 0.731416)
    assert observation.block_velocity[1] == Vector(8.733008, -7.7752, 7.471741)
    assert [bool(alive) for alive in observation.block_alive] == [True, True, False, False]
    again = feature_vector(observation, first=False, time_stamp=extras.time_stamp, flat_blocks=True)
    expected = json.loads(REPAIRED)
    assert again == expected
    assert list(again) == list(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: not JSON"),
        # Newer Pythons point at the comma, older ones at the bracket after it.
        ('{"cart": {},\n "walls": [[0, 0, 0],\n]}', r"line (3, column 1|2, column 21): not JSON"),
        ('{"cart": 1, "cart": 2}', "field 'cart' stands twice in one object"),
        ("[" * 100_000, "not nested that deeply"),
        (REPAIRED.replace("1.005748", "NaN"), "'cart.y_velocity' is nan"),
        (REPAIRED.replace("1.005748", "1e999"), "'cart.y_velocity' is inf"),
        ("[]", "must be an object"),
    ],
    ids=["empty", "trailing comma", "twice", "deep", "NaN", "overflow", "list"],
)
def test_broken_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        loads_feature_vector(text)


# Schema -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = feature_vector_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def through_json(vector):
    return json.loads(json.dumps(vector, allow_nan=False))


@pytest.mark.requirement(132)
@pytest.mark.parametrize("flat_blocks", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_emitted_vectors_fit_the_schema(validator, first, flat_blocks):
    for hint_objects in (None, hint(206, 3), hint(201, -1)):
        vector = a_vector(first, flat_blocks, hint=hint_objects)
        validator.validate(through_json(vector))
    assert validator.is_valid(through_json(a_vector(first, flat_blocks, image="abcd")))


def test_the_repaired_example_fits_the_schema(validator):
    validator.validate(json.loads(REPAIRED))


@pytest.mark.parametrize(("change", "message"), BAD_VECTORS)
def test_what_parsing_refuses_does_not_fit_the_schema(validator, change, message):
    vector = deepcopy(a_vector())
    change(vector)
    assert not validator.is_valid(through_json(vector)), message


def test_flat_blocks_have_no_ids(validator):
    vector = a_vector(flat_blocks=True)
    vector["block_0"]["id"] = 3
    assert not validator.is_valid(through_json(vector))
    with pytest.raises(ValueError, match=r"^unknown field 'block_0.id'"):
        parse_feature_vector(vector)


# Round trips ------------------------------------------------------------------------------------

places = st.floats(-20, 20)


@st.composite
def observations(draw, least=0):
    q = np.array(draw(st.lists(st.floats(-1, 1), min_size=4, max_size=4)))
    length = np.linalg.norm(q)
    q = q / length if length > 1e-3 else np.array([0.0, 0.0, 0.0, 1.0])
    count = draw(st.integers(least, 4))
    blocks = [[draw(places) for _ in range(6)] for _ in range(count)]
    whole = an_observation(blocks)
    numbers = [draw(places) for _ in range(7)]
    return Observation(
        **{
            **vars(whole),
            "cart_position": Vector(*numbers[:2], 0.0),
            "cart_velocity": Vector(*numbers[2:4], 0.0),
            "pole_quaternion": tuple(q),
            "pole_velocity": Vector(*numbers[4:]),
        }
    )


@settings(deadline=None, max_examples=60)
@given(st.data(), st.booleans(), st.booleans(), st.floats(0, 2e9))
def test_round_trip(data, first, flat_blocks, time_stamp):
    observation = data.draw(observations(least=int(flat_blocks)))
    options = {"first": first, "time_stamp": time_stamp, "flat_blocks": flat_blocks}
    vector = feature_vector(observation, **options)
    text = json.dumps(vector, allow_nan=False)
    parsed, extras = loads_feature_vector(text, DOUBLE)
    for sent, read in zip(jax.tree.leaves(observation), jax.tree.leaves(parsed), strict=True):
        assert abs(float(sent) - float(read)) <= 5.1e-7  # half of the last decimal
    # What was rounded once stays: in double precision text and observation map one to one.
    assert json.dumps(feature_vector(parsed, **options)) == text
    assert (extras.first, extras.flat_blocks) == (first, flat_blocks)
    assert extras.time_stamp == time_stamp


@settings(deadline=None, max_examples=30)
@given(st.lists(observations(), min_size=1, max_size=4))
def test_batched_round_trip_in_single_precision(lanes):
    single = jax.tree.map(
        lambda leaf: leaf if leaf.dtype == bool else leaf.astype(np.float32), batch(*lanes)
    )
    vectors = feature_vectors(single, first=True, time_stamp=1.0)
    parsed, _ = parse_feature_vectors(vectors)
    for sent, read in zip(jax.tree.leaves(single), jax.tree.leaves(parsed), strict=True):
        assert sent.dtype == read.dtype
        # Half of the last decimal and half a step of float32 near 20.
        np.testing.assert_allclose(read.astype(float), sent.astype(float), rtol=0, atol=1.5e-6)


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet='{}[]",: 01.eE-+truefalsn\\ublock_cartpoleids\n', max_size=80))
def test_any_text_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"."):
        loads_feature_vector(text)


def test_all_numbers_at_once_are_rounded_as_python_rounds_each():
    random = np.random.default_rng(0)
    drawn = random.normal(size=20_000) * 10.0 ** random.integers(-8, 6, 20_000)
    halves = (2 * np.arange(2000) + 1) / 128  # many of them lie between two numbers of six decimals
    numbers = np.concatenate([drawn, -halves, halves, [0.0, -0.0]]).astype(np.float32)
    expected = [round(float(number), 6) for number in numbers]
    assert list(map(repr, messages._rounded(numbers))) == list(map(repr, expected))
    wide = numbers.astype(np.float64) * 1.1
    expected = [round(float(number), 6) for number in wide]
    assert list(map(repr, messages._rounded(wide))) == list(map(repr, expected))
