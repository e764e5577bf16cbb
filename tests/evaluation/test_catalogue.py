"""`jaxsim levels`, `jaxsim tasks` and `jaxsim novelties`."""

import json
from dataclasses import replace

import jax
import pytest

import jaxsim
from evaluation import cli, difficulties
from evaluation.sailon import novelties
from evaluation.schedule import level_variant
from jaxsim.novelty import FAMILIES, Novelty, sample
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES


def output(capsys, *arguments):
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_every_level_is_listed_and_can_be_looked_at(capsys):
    listed = output(capsys, "levels")
    for level in jaxsim.levels():
        assert f"{level.number:4}  {level.task}" in listed
        one = output(capsys, "levels", str(level.number))
        assert level.change in " ".join(one.split()) and "What an agent is told" in one
        assert max(map(len, one.splitlines())) <= 100


def test_difficulties_without_jax_are_those_of_the_catalogue():
    assert difficulties.DIFFICULTIES == DIFFICULTIES


def test_a_level_tells_what_it_sets_its_hints_and_its_quirks(capsys):
    one = output(capsys, "levels", "205")
    assert "hard    blocks/pull_centroid -5" in one
    assert " 3  5, pole, direction, toward block" in one
    assert "repairs/pull_to_centroid" in one


def test_what_is_told_several_times_is_counted(capsys):
    assert " 3  6, pole, force, toward walls (3 times)" in output(capsys, "levels", "206")


def test_one_task(capsys):
    one = output(capsys, "tasks", "CartPole-v1")
    assert one.startswith("CartPole-v1") and "CartPole3D" not in one
    assert "CartPole3D-v0" in output(capsys, "tasks")


def test_every_family_is_listed_and_can_be_looked_at(capsys):
    listed = output(capsys, "novelties")
    for name, family in FAMILIES.items():
        assert f"{name:16}{family.entity}, {family.attribute}" in listed
        one = output(capsys, "novelties", name)
        for path in family.paths:
            assert f" {path}" in one
        assert max(map(len, one.splitlines())) <= 100
    lines = output(capsys, "novelties", "block_lines").splitlines()
    assert "  blocks/line_far: 1 times it plus 1" in lines
    assert "  blocks/line_near: 0.5 to 3.5 m (linear), in place of 0" in lines


def test_samples_are_lines_of_json(capsys):
    lines = output(capsys, "novelties", "gravity+wind", "--sample", "3", "--seed", "5").splitlines()
    samples = [Novelty.from_json(json.loads(line)) for line in lines]
    assert samples == list(sample(jax.random.key(5), ["gravity+wind"], 3))
    reseeded = output(capsys, "novelties", "gravity+wind", "--sample", "3").splitlines()
    assert not set(reseeded) & set(lines)


def test_a_list_and_its_entries_can_be_looked_at(capsys):
    whole = output(capsys, "novelties", "open-world-1")
    assert whole.startswith("open-world-1: 1000 novelties")
    counts = [
        int(line.split()[0]) for line in whole.splitlines()[1:] if line[2:6].strip().isdigit()
    ]
    assert sum(counts) == 1000
    entries = novelties.load("open-world-1").entries
    for number in (0, 17, 999):
        entry = entries[number]
        one = output(capsys, "novelties", f"open-world-1/{number}")
        assert json.dumps(entry.novelty.to_json()) in one
        assert entry.control != entry.detection
        difficulties = f"{entry.control:g} for control, {entry.detection:g} for detection"
        assert f"  {entry.split}; difficulty {difficulties} ({entry.difficulty})\n" in one


@pytest.mark.parametrize("about", [{}, {"held_out": ["wind"]}])
def test_a_list_of_ones_own_can_be_looked_at(about, capsys, tmp_path):
    shipped = novelties.load("open-world-1")
    known = [one for one in shipped.entries if one.novelty.families == ("step_position",)]
    entries = [replace(one, number=place) for place, one in enumerate(known)]
    path = tmp_path / "mine.jsonl"
    novelties.NoveltyList("mine-1", tuple(entries), about).write(path)
    whole = output(capsys, "novelties", str(path))
    assert whole.startswith(f"{path}: {len(entries)} novelties\n")
    assert ("held out: wind" in whole) == bool(about)
    assert json.dumps(entries[1].novelty.to_json()) in output(capsys, "novelties", f"{path}/1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["novelties", "gravty"], "did you mean 'gravity'"),
        (["novelties", "open-world-1/1000"], "there are 0 to 999"),
        (["novelties", "open-world-1/x"], "there are 0 to 999"),
        (["novelties", "--sample", "3"], "--sample needs a family"),
        (["novelties", "wind+wind_on_pole", "--sample", "3"], "both set 'wind/speed'"),
        (["novelties", "gravity", "--sample", "0"], "--sample is 0; it must be from 1"),
        (["novelties", "gravity", "--sample", "1", "--seed", "-1"], "seed is -1"),
        (["levels", "7"], "7 is not a level; there are 50, 51"),
        (["tasks", "105"], "jaxsim levels 105"),
        (["tasks", "Chess"], "Chess"),
    ],
)
def test_wrong_input_is_one_line(arguments, words, capsys):
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_schedules_play_each_level_in_its_world():
    for level in jaxsim.levels():
        assert level_variant(level.number, "easy")[0] == level.task
