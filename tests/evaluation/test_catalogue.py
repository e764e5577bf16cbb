"""`jaxsim levels` and `jaxsim tasks`."""

import pytest

import jaxsim
from evaluation import cli


def said(capsys, *arguments):
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_every_level_is_listed_and_can_be_looked_at(capsys):
    listed = said(capsys, "levels")
    for level in jaxsim.levels():
        assert f"{level.number:4}  {level.task}" in listed
        one = said(capsys, "levels", str(level.number))
        assert level.change in " ".join(one.split()) and "What an agent is told" in one
        assert max(map(len, one.splitlines())) <= 100


def test_a_level_tells_what_it_sets_its_hints_and_its_quirks(capsys):
    one = said(capsys, "levels", "205")
    assert "hard    blocks/pull_centroid -5" in one
    assert " 3  5, pole, direction, toward block" in one
    assert "repairs/pull_to_centroid" in one


def test_what_is_told_several_times_is_counted(capsys):
    assert " 3  6, pole, force, toward walls (3 times)" in said(capsys, "levels", "206")


def test_one_task(capsys):
    one = said(capsys, "tasks", "CartPole-v1")
    assert one.startswith("CartPole-v1") and "CartPole3D" not in one
    assert "CartPole3D-v0" in said(capsys, "tasks")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["levels", "7"], "7 is no level; there are 50, 51"),
        (["tasks", "105"], "jaxsim levels 105"),
        (["tasks", "Chess"], "Chess"),
    ],
)
def test_wrong_input_is_one_line(arguments, words, capsys):
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
