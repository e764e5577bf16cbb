"""Syllabi built in Python, and curricula: what they mean, and that they come back the same."""

import json
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from evaluation import cli, l2m, records, scanner
from evaluation.l2m import (
    Curriculum,
    EvalBlock,
    InterleavedEvalCurriculum,
    LearnBlock,
    Syllabus,
    TaskBlock,
    TaskVariant,
    episodes,
)
from evaluation.l2m import curriculum as curricula
from evaluation.schedule import Block, Schedule
from jaxsim import agents
from tests.evaluation.l2m.test_rules import EXAMPLES

LENGTHS = (0.5, 1.0, 2.0)
POLES = [{"pole/length": length} for length in LENGTHS]


def outline(schedule):
    return [(f"{b.phase}.{b.mode}", b.task, dict(b.parameters), b.count) for b in schedule.blocks]


# Builder ------------------------------------------------------------------------------------------


def longer_poles():
    syllabus = Syllabus("longer poles", "A. Author", {"cart/mass": 2.0})
    for pole in POLES:
        syllabus = syllabus.train(episodes("CartPole2D", 30, pole))
        syllabus = syllabus.test(episodes("CartPole2D", 15, pole) for pole in POLES[:2])
    return syllabus


def test_a_loop_builds_a_syllabus():
    schedule = longer_poles().schedule()
    assert (schedule.name, schedule.author) == ("longer poles", "A. Author")
    mass, short = {"cart/mass": 2.0}, {"cart/mass": 2.0, "pole/length": 0.5}
    tested = [short, mass]
    expected = []
    for number, pole in enumerate([short, mass, {**mass, "pole/length": 2.0}], 1):
        expected.append((f"{number}.train", "CartPole2D", pole, 30))
        expected += [(f"{number}.test", "CartPole2D", values, 15) for values in tested]
    assert outline(schedule) == expected
    assert [b.learning for b in schedule.blocks] == [b.mode == "train" for b in schedule.blocks]


def test_what_is_written_is_what_was_built(tmp_path):
    path = tmp_path / "poles.json"
    longer_poles().write(path)
    loaded = l2m.load(path)
    assert replace(loaded, source="") == replace(longer_poles().schedule(), source="")
    written = json.loads(path.read_text())
    assert written["default_params"] == {"cart/mass": 2.0}
    assert written["instructions"][0] == {"$phase": "1.train"}
    assert written["instructions"][2:4] == [
        {"$phase": "1.test"},
        {"$info": {"disable_updates": True}},
    ]
    assert l2m.loads(l2m.dumps(loaded)).blocks == loaded.blocks


def test_the_example_of_the_module():
    from evaluation.l2m import build

    lines = [line[4:] for line in build.__doc__.splitlines() if line.startswith("    ")]
    (*before, write) = lines
    assert "write" in write
    names = {}
    exec("\n".join(before), names)
    assert len(names["syllabus"].schedule().blocks) == 12


def test_the_examples_of_the_page():
    page = (EXAMPLES.parents[1] / "docs" / "syllabi.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert len(l2m.loads(names["text"]).blocks) == 12
    assert len(names["matrix"].schedule().blocks) == 12
    assert names["again"].schedule().blocks == names["schedule"].blocks
    (printed,) = re.findall(r"\nexamples/.*: error: .*", page)
    verdict = l2m.check_file(EXAMPLES / "ant_c.json", "ANT_B")
    assert printed.strip().endswith(verdict.lines()[0].partition("examples/")[2])


def test_counts_of_numpy_are_written_as_numbers():
    counts = np.array([3, 2])
    text, expected = (
        Syllabus("s").train(episodes("CartPole", count, sub_episodes=parts)).dumps()
        for count, parts in (counts, counts.tolist())
    )
    assert text == expected


def test_a_syllabus_never_changes():
    start = Syllabus("s")
    longer = start.train(episodes("CartPole", 1))
    assert start.phases == () and len(longer.phases) == 1
    with pytest.raises(FrozenInstanceError):
        longer.name = "t"


def test_phases_are_numbered_by_themselves():
    one = episodes("CartPole", 1)
    syllabus = Syllabus("s").train(one).test(one).test(one).train(one).train(one).test(one)
    assert [f"{p.number}.{p.mode}" for p in syllabus.phases] == [
        "1.train",
        "1.test",
        "2.test",
        "3.train",
        "4.train",
        "4.test",
    ]
    assert [b.phase for b in syllabus.schedule().blocks] == [1, 1, 2, 3, 4, 4]


def test_training_without_learning():
    one = episodes("CartPole", 2)
    schedule = Syllabus("s").train(one, learning=False).train([one], one).schedule()
    assert [(b.count, b.learning) for b in schedule.blocks] == [(2, False), (4, True)]


GENERATED = {
    "CL": l2m.continual("cl", "CartPole2D", POLES, train=4, test=2),
    "ANT_A": l2m.interference(
        "a", ["CartPole3D", ("CartPole2D", {"novelty/level": 51}), "CartPole"], train=4, test=2
    ),
    "ANT_B": l2m.transfer("b", ["CartPole", "CartPole2D", "CartPole3D"], train=4, test=2),
    "ANT_C": l2m.parametric_transfer("c", ["CartPole", "CartPole2D"], POLES, train=4, test=2),
}


@pytest.mark.parametrize("subtype", GENERATED)
def test_generated_syllabi_keep_the_rules_of_their_subtype(subtype):
    verdict = l2m.check_text(GENERATED[subtype].dumps(), subtype, subtype=subtype)
    assert verdict.lines() == []
    assert subtype in verdict.satisfied


def test_generated_syllabi_by_hand():
    assert outline(GENERATED["CL"].schedule())[:5] == [
        ("1.train", "CartPole2D", {"pole/length": 0.5}, 4),
        ("1.test", "CartPole2D", {"pole/length": 0.5}, 2),
        ("2.train", "CartPole2D", {}, 4),
        ("2.test", "CartPole2D", {"pole/length": 0.5}, 2),
        ("2.test", "CartPole2D", {}, 2),
    ]
    tested = [b.task for b in GENERATED["ANT_A"].schedule().blocks if b.mode == "test"]
    solid, flat, classic = "CartPole3D", "CartPole2D", "CartPole"
    assert tested == [solid, solid, flat, solid, flat, classic]
    assert [len(phase.episodes) for phase in GENERATED["ANT_B"].phases] == [1, 3, 1, 3, 1, 3]
    assert [len(phase.episodes) for phase in GENERATED["ANT_C"].phases] == [3, 6, 3, 6]


ONE = episodes("CartPole", 1)
BAD = {
    "no phases": (lambda: Syllabus("s").schedule(), "'instructions' is empty"),
    "no episodes": (lambda: Syllabus("s").train(), "a train phase needs episodes; pass some"),
    "no tests": (lambda: Syllabus("s").train(ONE).test([]), "a test phase needs episodes"),
    "test first": (lambda: Syllabus("s").test(ONE), r"call train\(\) before test\(\)"),
    "not episodes": (lambda: Syllabus("s").train(["CartPole"]), "'CartPole' is not what episodes"),
    "count": (lambda: episodes("CartPole", 0), "count is 0; it must be from 1"),
    "count real": (lambda: episodes("CartPole", 1.0), "count is 1.0; it must be a whole number"),
    "count true": (lambda: episodes("CartPole", True), "count is True; it must be"),
    "task": (
        lambda: Syllabus("s").train(episodes("Pong", 1)).schedule(),
        "syllabus 's': unknown task 'Pong'",
    ),
    "value": (
        lambda: Syllabus("s").train(episodes("CartPole", 1, {"tau": 9.0})).dumps(),
        "parameter 'tau' is 9.0; it must be a number from 0.0001 to 0.1 s",
    ),
    "default": (
        lambda: Syllabus("s", default_params={"tua": 1}).train(ONE).schedule(),
        "did you mean 'tau'",
    ),
    "nan": (
        lambda: Syllabus("s").train(episodes("CartPole", 1, {"tau": float("nan")})).dumps(),
        "JSON",
    ),
    "numpy": (
        lambda: Syllabus("s").train(episodes("CartPole", 1, {"tau": np.float32(0.01)})).dumps(),
        "is of type float32; a syllabus holds int, float and str",
    ),
    "name": (lambda: Syllabus("").train(ONE).schedule(), "'name' is empty"),
    "one variant": (
        lambda: l2m.continual("s", "CartPole", POLES[:1], train=1, test=1),
        "variants has 1 entries; it must have at least 2",
    ),
    "one task": (
        lambda: l2m.transfer("s", ["CartPole"], train=1, test=1),
        "tasks has 1 entries; it must have at least 2",
    ),
}


@pytest.mark.parametrize(("build", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_built(build, words):
    with pytest.raises(ValueError, match=words):
        build()


# Curricula ----------------------------------------------------------------------------------------


def variants(*lengths, count=3, task="CartPole2D"):
    return TaskBlock([TaskVariant(task, count, {"pole/length": n}, f"{n} m") for n in lengths])


def interleaved(**options):
    learn = [LearnBlock([variants(length)]) for length in (0.5, 2.0)]
    return InterleavedEvalCurriculum(learn, EvalBlock([variants(0.5, 2.0)]), "c", **options)


def test_interleaved_evaluation_comes_first_and_after_each_learning_block():
    schedule = interleaved().schedule()
    test = [("CartPole2D", {"pole/length": n}, 3) for n in (0.5, 2.0)]
    assert outline(schedule) == [
        *[("1.test", *block) for block in test],
        ("2.train", *test[0]),
        *[("2.test", *block) for block in test],
        ("3.train", *test[1]),
        *[("3.test", *block) for block in test],
    ]
    assert [b.index for b in schedule.blocks] == list(range(8))
    assert [b.learning for b in schedule.blocks] == [b.mode == "train" for b in schedule.blocks]


def test_a_curriculum_is_played(tmp_path):
    records = scanner.play(
        interleaved().schedule(),
        agents.get("random"),
        lifetimes=2,
        options=scanner.MachineOptions(threads=1),
    )
    assert records.columns["length"].shape == (2, 24)
    assert (records.columns["length"] > 1).all()


def test_a_curriculum_that_begins_with_learning_is_a_syllabus():
    curriculum = interleaved(first=False)
    syllabus = curriculum.syllabus()
    assert syllabus.schedule().blocks == curriculum.schedule().blocks
    verdict = l2m.check_text(syllabus.dumps())
    assert (verdict.findings, verdict.subtype) == ((), "CL")
    with pytest.raises(ValueError, match="begins with evaluation, and a syllabus with training"):
        interleaved().syllabus()


@pytest.mark.parametrize("subtype", ["cl", "ant_a", "ant_b", "ant_c"])
def test_shipped_syllabi_become_curricula_and_come_back(subtype):
    schedule = l2m.load(EXAMPLES / f"{subtype}.json")
    curriculum = Curriculum.of(schedule)
    assert curriculum.schedule().blocks == schedule.blocks
    assert curriculum.syllabus().schedule().blocks == schedule.blocks
    kinds = [type(block) for block in curriculum.blocks]
    assert kinds == [LearnBlock, EvalBlock] * 2


def test_a_curriculum_that_begins_with_evaluation_comes_back():
    schedule = interleaved().schedule()
    again = Curriculum.of(schedule)
    assert again.schedule().blocks == schedule.blocks
    (first, *_) = again.blocks
    assert isinstance(first, EvalBlock)
    assert [v.label for v in first.tasks[0].variants] == ["pole/length 0.5", "pole/length 2.0"]


def test_neighbours_that_are_equal_are_one_block():
    one = variants(0.5, 0.5)
    (block,) = Curriculum([LearnBlock([one, one])]).schedule().blocks
    assert block.count == 12


def test_a_block_has_tasks_of_several_worlds():
    learn = LearnBlock([variants(0.5), TaskBlock([TaskVariant("CartPole", 2)])])
    again = Curriculum.of(Curriculum([learn, learn]).schedule())
    assert [b.phase for b in again.schedule().blocks] == [1, 1, 2, 2]
    assert [task.variants[0].task for task in again.blocks[0].tasks] == ["CartPole2D", "CartPole"]


def test_everything_wrong_with_a_curriculum_is_said_with_its_place():
    wrong = Curriculum(
        [
            LearnBlock([]),
            EvalBlock([TaskBlock([]), variants(0.5)]),
            LearnBlock([TaskBlock([TaskVariant("CartPole", 0), TaskVariant("CartPole2D", 1)])]),
            EvalBlock([variants(0.5, 99.0), TaskBlock([TaskVariant("Pong", 1)])]),
        ]
    )
    problems = curricula.validate(wrong)
    beginnings = [
        "block 0 (LearnBlock) is empty; add a TaskBlock",
        "block 1 (EvalBlock), task 0 is empty; add a TaskVariant",
        "block 2 (LearnBlock), task 0 has the tasks CartPole, CartPole2D; make a TaskBlock of each",
        "block 2 (LearnBlock), task 0, variant 0: count is 0; it must be from 1",
        "block 3 (EvalBlock), task 0, variant 1: parameter 'pole/length' is 99.0; it must be",
        "block 3 (EvalBlock), task 1, variant 0: unknown task 'Pong'",
    ]
    assert len(problems) == len(beginnings)
    for problem, beginning in zip(problems, beginnings, strict=True):
        assert problem.startswith(beginning)
    with pytest.raises(ValueError, match=r"block 0 .* block 3"):
        wrong.schedule()
    assert curricula.validate(Curriculum([])) == ["the curriculum is empty; add a LearnBlock"]


def test_a_schedule_that_learns_in_parts_is_no_curriculum():
    block = Block(0, 1, "train", "CartPole", (), 1, True)
    for wrong in (replace(block, learning=False), replace(block, mode="test")):
        with pytest.raises(ValueError, match=r"has a block that (does not learn|learns); a curric"):
            Curriculum.of(Schedule("s", (block, replace(wrong, index=1, phase=2))))


# Playing ------------------------------------------------------------------------------------------


def play(tmp_path, text, lifetimes="3"):
    path = tmp_path / "s.json"
    path.write_text(text)
    return play_files(tmp_path, [path], lifetimes)


def play_files(tmp_path, paths, lifetimes="3"):
    words = ["run", *map(str, paths), "--agent", "pd", "--lifetimes", lifetimes, "--quiet"]
    assert cli.main([*words, "--out", str(tmp_path / "out"), "--log-lifetime", "1"]) == 0
    return records.read(tmp_path / "out" / "records.parquet")


def test_a_syllabus_of_two_worlds_is_run(tmp_path):
    built = l2m.transfer("two worlds", ["CartPole", "CartPole2D"], train=2, test=1)
    records = play(tmp_path, built.dumps())
    lengths = records.columns["length"]
    task = [b.task for b in records.schedule.blocks]
    classic = np.array([task[b] == "CartPole" for b in records.schedule.episode_blocks()])
    assert (lengths[:, classic] == 500).all()
    assert (lengths[:, ~classic] < 500).all()
    seconds = records.columns["seconds"]
    np.testing.assert_allclose(seconds, 0.02 * lengths, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.long
def test_shipped_examples_are_run(tmp_path):
    """In sequence, an episode a block; everything else is as it ships.

    One lifetime plays them all, so that one program is compiled instead of four.
    """
    paths, shipped = [], []
    for subtype in ("cl", "ant_a", "ant_b", "ant_c"):
        text = (EXAMPLES / f"{subtype}.json").read_text()
        small = text.replace('"count": 30', '"count": 1').replace('"count": 15', '"count": 1')
        paths.append(tmp_path / f"{subtype}.json")
        paths[-1].write_text(small)
        shipped.append(l2m.load(EXAMPLES / f"{subtype}.json").blocks)
    results = play_files(tmp_path, paths)
    expected = [block.variant for blocks in shipped for block in blocks]
    assert [b.variant for b in results.schedule.blocks] == expected
    assert results.columns["complete"].all()
    # `pd` knows what it does in every world.
    least = {"CartPole3D": 0.4, "CartPole2D": 0.2, "CartPole": 0.9}
    means = iter(results.columns["performance"].mean(axis=0))
    for blocks in shipped:
        by_task = {}
        for block in blocks:
            by_task.setdefault(block.task, []).append(next(means))
        for task, scores in by_task.items():
            assert np.mean(scores) > least[task]
