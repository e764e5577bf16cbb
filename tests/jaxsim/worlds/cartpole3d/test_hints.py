import json

import pytest

from jaxsim.worlds.cartpole3d.levels import LEVELS
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.original.hints import hint

# Level, the digit that is told, how many objects, and what they say; typed in from the original's
# behaviour on its own, so as not to be the table under test.
FULL = """
101 1 1 cart mass increase
102 2 1 block speed decrease
103 3 1 block direction toward location
104 4 1 block size increase
105 5 1 block direction toward block
106 6 1 block gravity increase
107 7 1 block direction toward location
108 8 1 block quantity increasing
111 11 1
112 12 1
113 13 1
114 14 1
115 15 1
200 0 1
201 1 1 pole size increase
202 2 1 block direction toward location
203 3 1 block direction toward location
204 4 1 block bounce increase
205 5 1 pole direction toward block
206 6 3 pole force toward walls
207 7 1 block direction toward pole
208 8 1 block quantity increasing
50 0 1
51 1 1
52 2 1
53 3 1
""".strip().splitlines()
ORIGINAL = (*range(50, 54), *range(101, 109), *range(111, 116), *range(200, 209))


def hint_values(objects):
    return [tuple(one.values()) for one in objects]


@pytest.mark.parametrize("line", FULL, ids=lambda line: line.split()[0])
def test_each_hint_level_tells_one_thing_more(line):
    number, digit, count, *words = line.split(maxsplit=5)
    full = (int(digit), *(words or [None] * 3))
    for hint_level in (-1, 0, 1, 2, 3):
        expected = full[: hint_level + 1] + (None,) * (3 - hint_level)
        objects = hint(int(number), hint_level)
        assert hint_values(objects) == [expected] * int(count)
        assert all(list(one) == ["level", "entity", "attribute", "change"] for one in objects)


def test_the_table_above_is_complete():
    assert {int(line.split()[0]) for line in FULL} == set(hints.HINT_WORDS)
    assert set(LEVELS) <= set(hints.HINT_WORDS)


def test_every_hint_of_the_original_is_the_same(recorded_data):
    table = json.loads(recorded_data("cartpole3d/hints_table.json").read_text(encoding="utf-8"))
    assert set(table) == set(map(str, ORIGINAL))
    for level in ORIGINAL:
        assert {str(k): hint(level, k) for k in hints.HINT_LEVELS} == table[str(level)]


def test_three_entities_at_level_206_on_request():
    assert hint_values(hint(206, 3, distinct_entities=True)) == [
        (6, name, "force", "toward walls") for name in ("block", "cart", "pole")
    ]
    assert hint_values(hint(206, 0, distinct_entities=True)) == [(6, None, None, None)] * 3
    assert all(
        hint(level, k, distinct_entities=True) == hint(level, k)
        for level in hints.HINT_WORDS
        for k in hints.HINT_LEVELS
        if level != 206
    )


def test_a_hint_is_the_callers_own():
    hint(206, 3)[0]["entity"] = "wall"
    assert [one["entity"] for one in hint(206, 3)] == ["pole"] * 3


@pytest.mark.parametrize("level", [0, 7, max(hints.HINT_WORDS) + 1, True, "200", None])
def test_an_unknown_level_is_refused(level):
    listed = ", ".join(map(str, hints.HINT_WORDS))
    with pytest.raises(ValueError, match=rf"^level is .*; it must be one of {listed}$"):
        hint(level, 0)


@pytest.mark.parametrize("hint_level", [-2, 4, True, 0.5, None])
def test_an_unknown_hint_level_is_refused(hint_level):
    with pytest.raises(ValueError, match=r"^hint_level is .*; it must be one of -1, 0, 1, 2, 3$"):
        hint(201, hint_level)
