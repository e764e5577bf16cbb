"""Every cell is in one pack of one unit, and is found from its number alone."""

import time
import tracemalloc
from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.sweep.document import sweep_from
from evaluation.sweep.grid import MOST_PROBED, GroupKeys, Units, grid


def made(axes, *, zips=(), program=(), call=(), lanes=1, each=1, sizes=None):
    """A grid of axes, of which some change the program and some need calls of their own."""
    written = {"base": "evaluate", "lanes": lanes, "axes": axes, "zip": list(zips)}

    def keys(values):
        return GroupKeys(tuple(values[n] for n in program), tuple(values[n] for n in call))

    sweep_grid = grid(sweep_from(written), keys, each)
    return sweep_grid, Units(sweep_grid, tuple(sizes or [1] * len(sweep_grid.groups)))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 4)] * 4),
    lanes=st.integers(1, 9),
    unit=st.integers(1, 5),
)
def test_every_cell_is_played_once(sizes, lanes, unit):
    names = ("agent", "seed", "gravity", "length")
    axes = {n: [f"{n}{i}" for i in range(s)] for n, s in zip(names, sizes, strict=True)}
    sweep_grid, _ = made(axes, program=["agent"], call=["seed"], lanes=lanes)
    units = Units(sweep_grid, (unit,) * len(sweep_grid.groups))
    all_cells = []
    for number in range(len(units)):
        one = units[number]
        assert one.number == number
        for first, end in zip(one.packs, one.packs[1:], strict=False):
            cells = [sweep_grid.cell(i) for i in range(first, end)]
            assert 1 <= len(cells) <= lanes
            # One pack, one program and one call.
            assert len({(c.values["agent"], c.values["seed"]) for c in cells}) == 1
            all_cells += cells
    assert [cell.number for cell in all_cells] == list(range(sweep_grid.cells))
    points = {tuple(sorted(cell.values.items())) for cell in all_cells}
    assert len(points) == sweep_grid.cells == sizes[0] * sizes[1] * sizes[2] * sizes[3]


def test_values_of_one_program_are_one_group():
    axes = {"level": [200, 201, 203, 204], "gravity": [1.0, 2.0]}
    written = {"base": "evaluate", "axes": axes}
    sweep_grid = grid(sweep_from(written), lambda v: GroupKeys(v["level"] in (201, 204), 0), 1)
    assert (sweep_grid.programs, len(sweep_grid.groups)) == (2, 2)
    levels = [sweep_grid.cell(i).values["level"] for i in range(sweep_grid.cells)]
    assert levels == [200, 200, 203, 203, 201, 201, 204, 204]


def test_values_of_one_program_and_one_call_are_lanes_of_it():
    """Each program needs a call of its own anyway; that alone separates none of its cells."""

    def keys(values):
        return GroupKeys(values["level"] > 202, values["level"] > 202)

    sweep_grid = grid(sweep_from({"base": "evaluate", "axes": {"level": [200, 201, 203]}}), keys, 1)
    assert [group.call_cells for group in sweep_grid.groups] == [2, 1]
    sweep_grid, _ = made({"level": [200, 201, 203]}, call=["level"])
    assert [group.call_cells for group in sweep_grid.groups] == [1]


def test_of_a_long_axis_some_values_are_asked_for_the_first_and_the_last_among_them():
    asked = []

    def keys(values):
        asked.append(values["seed"])
        return GroupKeys(0, 0)

    size = 5 * MOST_PROBED
    axes = {"seed": {"integers": [0, size - 1]}}
    grid(sweep_from({"base": "evaluate", "axes": axes}), keys, 1)
    probed = sorted(set(asked))
    assert (probed[0], probed[-1], len(probed)) == (0, size - 1, MOST_PROBED)
    assert {b - a for a, b in pairwise(probed)} == {5, 6}


@pytest.mark.parametrize(
    "axis", [{"choice": ["a", "b", "c"]}, {"randint": [0, 2]}, {"choice": [0.0, 0.5, 1.0]}]
)
def test_every_value_of_a_long_axis_is_probed_if_it_takes_few(axis):
    """Cells of two programs are never in one pack, however seldom the second is."""
    size = 3 * MOST_PROBED
    zips = [{"a": axis, "b": {"choice": [1, 2]}, "gravity": {"uniform": [1, 9]}}]
    zips = [{name: {**values, "draws": size} for name, values in zips[0].items()}]
    sweep_grid, units = made({}, zips=zips, program=["a"], lanes=512)
    assert (sweep_grid.programs, len(sweep_grid.groups)) == (3, 3)
    packs = [pair for unit in units for pair in pairwise(unit.packs)]
    for first, end in packs:
        assert len({sweep_grid.cell(number).values["a"] for number in range(first, end)}) == 1
    points = [tuple(sweep_grid.cell(n).values.values()) for n in range(sweep_grid.cells)]
    bundle = sweep_grid.sweep.bundles[0]
    steps = [tuple(bundle.values(n).values()) for n in range(size)]
    assert sorted(points) == sorted(steps)
    # Within a program they have the order of the file.
    assert points[: sweep_grid.groups[0].cells] == [s for s in steps if s[0] == points[0][0]]


def test_words_are_probed_however_many_there_are():
    """One agent in a thousand has another program."""
    names = [f"agent{number}" for number in range(2 * MOST_PROBED)]
    axes = {"agent": names}

    def keys(values):
        return GroupKeys(values["agent"] == "agent777", 0)

    sweep_grid = grid(sweep_from({"base": "evaluate", "axes": axes}), keys, 1)
    assert [group.cells for group in sweep_grid.groups] == [2 * MOST_PROBED - 1, 1]
    assert [sweep_grid.cell(n).values["agent"] for n in (776, 777)] == ["agent776", "agent778"]
    assert sweep_grid.cell(sweep_grid.cells - 1).values["agent"] == "agent777"


def test_zipped_axes_go_together():
    sweep_grid, _ = made({"seed": [0, 1]}, zips=[{"a": [1, 2, 3], "b": [4, 5, 6]}])
    cells = [sweep_grid.cell(i).values for i in range(sweep_grid.cells)]
    assert sorted((v["seed"], v["a"], v["b"]) for v in cells) == [
        (seed, a, a + 3) for seed in (0, 1) for a in (1, 2, 3)
    ]


def test_an_axis_of_a_zip_may_have_a_value_twice():
    zips = [{"level": [200, 200, 203], "difficulty": ["easy", "hard", "easy"]}]
    sweep_grid, _ = made({}, zips=zips)
    assert [tuple(sweep_grid.cell(n).values.values()) for n in range(3)] == [
        (200, "easy"),
        (200, "hard"),
        (203, "easy"),
    ]


def test_a_million_cells_take_no_memory():
    axes = {"gravity": {"linear": [1, 20], "count": 1000}, "seed": {"integers": [0, 999]}}
    tracemalloc.start()
    began = time.process_time()
    sweep_grid, _ = made(axes, call=["seed"], lanes=512)
    units = Units(sweep_grid, (7,))
    last = units[len(units) - 1]
    values = sweep_grid.cell(last.packs[-1] - 1).values
    assert time.process_time() - began < 5
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert values["gravity"] == 20.0
    assert values["seed"] == 999


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"axes": {"a": [1]}}, "no base is named"),
        ({"base": "evaluate"}, "there are no axes"),
        ({"base": "evaluate", "axis": {}}, "unknown key 'axis'"),
        ({"base": "evaluate", "axes": {"a": [1]}, "fixed": {"a": 2}}, "'a' is set twice"),
        ({"base": "evaluate", "axes": {"a": [1]}, "zip": [{"a": [2]}]}, "'a' is set twice"),
        ({"base": "evaluate", "zip": [{"a": [1], "b": [1, 2]}]}, "a has 1, b has 2"),
        (
            {"base": "evaluate", "zip": [{"a": [1, 2, 1], "b": ["x", "y", "x"]}]},
            "a [[zip]] has the values (1, 'x') twice; leave one of them out",
        ),
        ({"base": "evaluate", "zip": [{"a": [1, 1]}]}, "axis 'a' has a value twice"),
        ({"base": "evaluate", "axes": {"a": [1]}, "fixed": {"pole": {"x": 1}}}, "put quotes"),
        ({"base": "evaluate", "axes": {"a": [1]}, "fixed": {"b": [1]}}, "a number or text"),
        ({"base": "evaluate", "axes": {"a": [1]}, "fixed": {"b": -inf}}, "it must be finite"),
        ({"base": "evaluate", "axes": {"a": [1]}, "fixed": {"b": nan}}, "it must be finite"),
        ({"base": "evaluate", "axes": {"a": [1]}, "lanes": 0}, "lanes is 0"),
        ({"base": "evaluate", "axes": [1]}, "axes must be a table"),
        (
            {"base": "e", "axes": {n: {"integers": [1, 2000]} for n in "abc"}},
            "2,000 x 2,000 x 2,000 are 8,000,000,000 cells; at most 10,000,000",
        ),
    ],
)
def test_bad_sweeps(written, words):
    with pytest.raises(ValueError) as error:
        sweep_from(written)
    assert words in str(error.value)


def test_too_many_programs_are_refused():
    axes = {"a": [str(i) for i in range(100)], "b": [str(i) for i in range(100)]}
    with pytest.raises(ValueError, match="10,000 programs; at most 4,096"):
        made(axes, program=["a", "b"])
