"""Which tasks share a program."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds.sharing import shared


def made(*levels, task="CartPole3D", **options):
    return [
        jaxsim.make(task, level=level, difficulty=difficulty, **options)
        for level, difficulty in levels
    ]


def test_rooms_of_few_and_of_many_blocks_have_a_program_each():
    levels = ((200, "easy"), (108, "easy"), (206, "hard"), (208, "medium"), (202, "easy"))
    tasks = made(*levels)
    few, many = shared(tasks)
    assert few.places.tolist() == [0, 2, 4]
    assert many.places.tolist() == [1, 3]
    assert few.env.config.terms == ("lines", "wind")
    assert few.env.config.max_blocks == 4
    assert many.env.config.terms == ("spawn",)
    assert many.env.config.max_blocks == 104
    for part in (few, many):
        for row, place in enumerate(part.places):
            for leaf, own in zip(
                jax.tree.leaves(part.params), jax.tree.leaves(tasks[place][1]), strict=True
            ):
                assert leaf[row] == own


def test_lines_slow_down_no_room_of_many_blocks():
    lines = jaxsim.make("CartPole3D", {"blocks/count_max": 8}, level=202)
    tasks = [*made((208, "easy")), lines, *made((108, "hard"))]
    assert [part.places.tolist() for part in shared(tasks)] == [[0, 2], [1]]


def test_levels_of_two_dimensions_share_a_program():
    (task,) = shared(made((51, "easy"), (53, "hard"), task="CartPole2D"))
    assert task.places.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("one", "other", "programs"),
    [
        ({}, {}, 1),
        ({}, {"max_steps": 100}, 2),
        ({"image": {"height": 16}}, {"image": {"height": 16}}, 1),
        ({"image": {"height": 16}}, {"image": {"height": 8}}, 2),
        ({"image": {"height": 16}}, {"image": {"height": 16, "grey": True}}, 2),
        ({"image": {"height": 16}}, {}, 2),
    ],
)
def test_only_the_same_episodes_and_pictures_share_a_program(one, other, programs):
    tasks = made((200, "easy"), **one) + made((206, "easy"), **other)
    parts = list(shared(tasks))
    assert len(parts) == programs
    assert sorted(np.concatenate([part.places for part in parts])) == [0, 1]
