"""Environments by name, and what a user may set: everything wrong is refused in words."""

import dataclasses
import math

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import parameters, registry
from jaxsim.parameters import Parameter
from jaxsim.worlds.cartpole3d import Config, Params
from jaxsim.worlds.cartpole3d.parameter_table import FIELDS, PARAMETERS


@pytest.fixture
def registered(monkeypatch):
    """A registry of its own, to be changed freely."""
    monkeypatch.setattr(registry, "_SPECS", dict(registry._SPECS))
    return registry


# --- the registry -----------------------------------------------------------------------------


def test_make_returns_an_environment_and_its_parameters():
    env, params = jaxsim.make("CartPole3D-v0")
    assert (env.name, env.num_actions, env.max_steps) == ("CartPole3D", 5, 200)
    assert hash(env) == hash(jaxsim.make("CartPole3D")[0])
    for field in dataclasses.fields(Params):
        leaf = getattr(params, field.name)
        assert (leaf.shape, leaf.dtype) == ((), np.float32)
        assert float(leaf) == pytest.approx(field.default, rel=1e-7)  # float32 rounding


def test_scalars_of_numpy_are_numbers():
    of_numpy = {
        "blocks/count_max": np.int64(2),
        "blocks/count_min": np.int32(1),
        "gravity": np.float32(5.5),
    }
    usual = {"blocks/count_max": 2, "blocks/count_min": 1, "gravity": 5.5}
    assert jaxsim.make("CartPole3D", of_numpy) == jaxsim.make("CartPole3D", usual)
    for wrong in (np.True_, np.float32(np.nan), np.float64(2.5)):
        with pytest.raises(ValueError, match="it must be a whole number from 0 to"):
            jaxsim.make("CartPole3D", {"blocks/count_max": wrong})


@pytest.mark.parametrize("name", ["CartPole-v1", "CartPole2D-v0", "CartPole3D-v0"])
def test_a_value_is_checked_once(monkeypatch, name):
    looks = []
    problem = Parameter.problem
    monkeypatch.setattr(
        Parameter, "problem", lambda row, value: looks.append(row.path) or problem(row, value)
    )
    jaxsim.make(name, {"gravity": 5.0})
    assert looks == ["gravity"]


def test_a_task_name_means_its_newest_version(registered):
    for version in (9, 10, 2):
        registered.register(f"Toy-v{version}", dict, {})
    assert registered.spec("Toy").env_id == "Toy-v10"
    assert registered.spec("Toy-v2").task == "Toy"
    assert "Toy" in registered.task_names()
    assert registered.registered_envs()[-3:] == ("Toy-v9", "Toy-v10", "Toy-v2")


@pytest.mark.parametrize("name", ["Toy", "Toy-0", "-v0", "Toy-v", "Toy v0", "Toy-v0.1", "3D-v0"])
def test_names_without_a_version_are_not_registered(name, registered):
    with pytest.raises(ValueError, match="must look like 'Name-v0'"):
        registered.register(name, lambda values: None, {})


def test_a_name_is_registered_once(registered):
    with pytest.raises(ValueError, match="'CartPole3D-v0' is taken; raise its version"):
        registered.register("CartPole3D-v0", lambda values: None, {})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CartPole3d", "; did you mean 'CartPole3D'?"),
        ("CartPole3D-v1", "; did you mean 'CartPole3D-v0'?"),
        ("Chess", " (allowed: CartPole, CartPole2D, CartPole3D, CartPole3DLeans, CartPole-v1, "),
    ],
)
def test_an_unknown_task_is_an_error_with_a_suggestion(name, hint):
    with pytest.raises(ValueError) as error:
        jaxsim.make(name)
    assert str(error.value).startswith(f"unknown task {name!r}{hint}")


def test_an_unknown_parameter_or_option_is_an_error_with_a_suggestion():
    with pytest.raises(ValueError, match="parameter 'pole/lenght'; did you mean 'pole/length'"):
        jaxsim.make("CartPole3D-v0", {"pole/lenght": 1.0})
    with pytest.raises(
        ValueError, match=r"unknown option 'levels' .*level, difficulty, max_blocks"
    ):
        jaxsim.make("CartPole3D-v0", levels=200)


def test_of_many_names_the_nearest_are_shown():
    with pytest.raises(ValueError, match=r"\(\d+ are allowed, the nearest: gravity, ") as error:
        jaxsim.make("CartPole3D-v0", {"gravty": 1.0})
    assert len(str(error.value)) < 240


# --- bounds -----------------------------------------------------------------------------------

NUMBERS = [row for row in PARAMETERS.values() if not row.choices]


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.path)
def test_bounds_are_inclusive_and_hold(row):
    for value in (row.low, row.high, row.default):
        assert row.problem(type(row.default)(value)) is None
    for value in (row.low - 1, row.high + 1):
        value = type(row.default)(value)
        assert (
            row.problem(value) == f"parameter {row.path!r} is {value!r}; it must be {row.allowed}"
        )


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.path)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, True, False, "1", None, [1.0], 10**400, -(10**400), 1j],
    ids=lambda value: str(value)[:8],
)
def test_what_is_no_number_within_bounds_is_refused(row, value):
    assert "it must be" in row.problem(value)
    with pytest.raises(ValueError, match=row.path):
        jaxsim.make("CartPole3D-v0", {row.path: value})


class Unprintable:
    def __repr__(self):
        raise RuntimeError("never mind")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (10**5000, "a whole number of 16610 bits"),
        (-(10**30), "-1000000000000000000000000000000"),
        ("a" * 10**6, "'aaa"),
        ([[1.0] * 100] * 100, "[["),
        (np.zeros((100, 100)), "array"),
        (Unprintable(), "<Unprintable instance"),
    ],
    ids=["digits", "number", "text", "list", "array", "unprintable"],
)
def test_refused_values_are_shown_in_a_few_words(value, words):
    problem = PARAMETERS["pole/length"].problem(value)
    assert problem.startswith(f"parameter 'pole/length' is {words}")
    assert len(problem) < 300


def test_unknown_names_are_shown_in_a_few_words():
    text = parameters.unknown("parameter", "pole/lenght" + "h" * 10**6, ["pole/length"])
    assert len(text) < 150
    assert parameters.unknown("parameter", "pole/lenght", ["pole/length"]).startswith(
        "unknown parameter 'pole/lenght'; did you mean 'pole/length'?"
    )


def test_whole_numbers_are_accepted_for_numbers_but_not_the_other_way_round():
    assert PARAMETERS["pole/length"].problem(3) is None
    assert "a whole number from 0 to 205" in PARAMETERS["blocks/count_max"].problem(3.0)


@pytest.mark.parametrize(
    "value", [199, "200", True, 200.5, None, np.array(200), np.array([200, 203])], ids=str
)
def test_levels_are_chosen_from_a_list(value):
    with pytest.raises(ValueError, match=r"'novelty/level' is .*; it must be one of 101, 102, "):
        jaxsim.make("CartPole3D-v0", level=value)


@pytest.mark.parametrize("value", ["EASY", 1, None, "", np.array(["easy"])], ids=str)
def test_difficulties_are_chosen_from_a_list(value):
    with pytest.raises(ValueError, match="it must be one of 'easy', 'medium', 'hard'"):
        jaxsim.make("CartPole3D-v0", difficulty=value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"blocks/count_min": 4, "blocks/count_max": 3}, "'blocks/count_min' is 4, above"),
        ({"blocks/count_max": 1}, "'blocks/count_min' is 2, above 'blocks/count_max', which is 1"),
        ({"blocks/speed_min": 11.0}, "'blocks/speed_min' is 11.0, above"),
    ],
)
def test_values_that_contradict_one_another_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        jaxsim.make("CartPole3D-v0", values)


def test_more_blocks_than_fit_are_refused():
    with pytest.raises(ValueError, match=r"may hold 4 blocks .*max_blocks is 3: .* raise it to 4"):
        jaxsim.make("CartPole3D-v0", max_blocks=3)
    with pytest.raises(ValueError, match=r"may hold 205 blocks .*every 1 ticks.* raise it to 205"):
        jaxsim.make("CartPole3D-v0", level=208, difficulty="hard", max_blocks=104)
    env, _ = jaxsim.make("CartPole3D-v0", {"blocks/count_max": 3}, max_blocks=3)
    assert env.config.max_blocks == 3


@pytest.mark.parametrize(
    "options",
    [
        {"max_blocks": 0},
        {"max_steps": 0},
        {"max_steps": -5},
        {"dtype": "float16"},
        {"dtype": "int32"},
    ],
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        jaxsim.make("CartPole3D-v0", **options)


def test_a_table_names_the_first_problem():
    table = {"a": Parameter("a", 1.0, "m", 0.0, 2.0)}
    assert parameters.check(table, {"a": 2}) is None
    with pytest.raises(ValueError, match="parameter 'a' is 3; it must be a number from 0 to 2 m"):
        parameters.check(table, {"a": 3})


# --- what is set arrives ----------------------------------------------------------------------


def changed_value(row):
    """An accepted value other than the default."""
    if row.choices:
        return next(choice for choice in row.choices if choice != row.default)
    step = 1 if isinstance(row.default, int) else 0.25 * min(1.0, row.high - row.low)
    return row.default + step if row.default + step <= row.high else row.default - step


@pytest.mark.parametrize("path", list(FIELDS))
def test_every_parameter_reaches_its_field_and_no_other(path):
    row = PARAMETERS[path]
    value = changed_value(row)
    # A least speed needs a greatest that is above it.
    room = {path.replace("_min", "_max"): PARAMETERS[path.replace("_min", "_max")].high}
    beside = room if path.endswith("speed_min") else {}
    _, nominal = jaxsim.make("CartPole3D-v0", beside)
    _, params = jaxsim.make("CartPole3D-v0", {**beside, path: value})
    changed = {
        field.name: float(getattr(params, field.name))
        for field in dataclasses.fields(Params)
        if getattr(params, field.name) != getattr(nominal, field.name)
    }
    assert changed == {FIELDS[path]: pytest.approx(value, rel=1e-6)}


def test_every_field_can_be_set():
    fields = {field.name for field in dataclasses.fields(Params)}
    assert set(FIELDS.values()) == fields - {"novelty_level"}
    for row in PARAMETERS.values():
        assert row.description
        assert row.problem(row.default) is None


def test_shorthands_and_precision(x64):
    env, params = jaxsim.make("CartPole3D-v0", level=200, difficulty="hard", dtype="float64")
    assert float(params.novelty_level) == 200
    assert env.config == Config(dtype="float64")
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype("float64")}
    assert float(params.drag) == float(np.float32(0.04))  # as the original rounds it
    state = jax.eval_shape(env.start, jax.random.key(0), params)
    assert state.pose.x.dtype == np.float64


def test_counts_speeds_and_spreads_reach_the_start(lanes32):
    values = {
        "blocks/count_min": 1,
        "blocks/count_max": 1,
        "blocks/speed_min": 2.0,
        "blocks/speed_max": 3.0,
        "start/spread": 0.5,
        "start/push": 0.0,
        "start/lean": 0.0,
    }
    env, params = jaxsim.make("CartPole3D-v0", values)
    assert env == lanes32.env
    state = lanes32.start(1, params)
    alive = np.stack([b.alive for b in state.blocks])
    np.testing.assert_array_equal(alive.sum(axis=0), 1)
    speed = np.abs(np.array(state.blocks[0].v))
    assert 2 <= speed.min() < 2.1 < 2.9 < speed.max() <= 3
    assert 0.4 < np.abs(state.pose.x).max() <= 0.5
    np.testing.assert_array_equal(np.array(state.push), 0)
    np.testing.assert_array_equal(state.pose.qw, 1)


def test_physics_reach_the_tick(lanes32):
    """One step after another parameter: each of these leads somewhere else."""
    changes = [
        {},
        {"gravity": 1.0},
        {"force": 20.0},
        {"cart/mass": 2.0},
        {"pole/mass": 0.5},
        {"pole/com": 0.5},
        {"pole/length": 3.0},
        {"drag": 1.0},
        {"blocks/buoyancy": 0.0},
    ]
    rows = [jaxsim.make("CartPole3D-v0", change)[1] for change in changes]
    params = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    start = jax.tree.map(
        lambda leaf: np.repeat(np.asarray(leaf)[:1], len(rows), 0), lanes32.start(3)
    )
    state = start
    for _ in range(5):
        _, state, *_ = lanes32.step(state, 1, params)
    ends = np.stack([state.pose.x, state.pose.qy, state.blocks[0].p.z], axis=1)
    assert len(np.unique(ends, axis=0)) == len(rows)
