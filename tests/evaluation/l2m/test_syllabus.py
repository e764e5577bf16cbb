import json
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation import l2m, positions
from evaluation.l2m import document, syllabus
from evaluation.schedule import Block, Schedule
from jaxsim import registry
from jaxsim.parameters import Parameter

EXAMPLE = Path(__file__).parents[3] / "examples" / "syllabi" / "cl_pole_length.json"

TOYS = {
    row.path: row
    for row in (
        Parameter("width", 0.5, "m", low=0.0, high=2.0),
        Parameter("balls", 2, low=1, high=9),
        Parameter("level", 200, choices=(200, 201)),
        Parameter("room/colour", "red", choices=("red", "blue")),
    )
}


@pytest.fixture(autouse=True, scope="module")
def toys():
    """Two small tasks beside the real ones; Toy has two versions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_SPECS", dict(registry._SPECS))
        registry.register("Toy-v0", lambda values: (None, None), TOYS)
        registry.register("Toy-v1", lambda values: (None, None), TOYS)
        registry.register("Dull-v0", lambda values: (None, None), {"width": TOYS["width"]})
        yield


TRAIN, TEST = {"$phase": "1.train"}, {"$phase": "1.test"}
OFF, ON = {"$info": {"disable_updates": True}}, {"$info": {}}


def episodes(count=1, task="Toy", **values):
    """One $repeat; a keyword `room_colour` stands for the path "room/colour"."""
    by_path = {name.replace("_", "/"): value for name, value in values.items()}
    return {"$repeat": {"$episode": task, **by_path}, "count": count}


def play(*instructions, **top):
    return l2m.loads(json.dumps({**top, "instructions": instructions})).blocks


def outline(blocks):
    return [(b.phase, b.mode, dict(b.parameters), b.count, b.learning) for b in blocks]


# What syllabi mean ------------------------------------------------------------------------------

CONTINUAL = """{"instructions": [
  {"$phase": "1.train"},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 5000},

  {"$phase": "1.test"},
  {"$info": {"disable_updates": true}},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 2.0}, "count": 100},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 100},
  {"$info": {}},

  {"$phase": "2.train"},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 2.0}, "count": 5000},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 2.5}, "count": 5000},

  {"$phase": "2.test"},
  {"$info": {"disable_updates": true}},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 100},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 2.0}, "count": 100},
  {"$repeat": {"$episode": "CartPole3D", "pole/length": 2.5}, "count": 100},
  {"$info": {}}
]}"""


def test_continual_learning_in_the_manner_of_the_framework_document():
    schedule = l2m.loads(CONTINUAL, "cl.json")
    assert outline(schedule.blocks) == [
        (1, "train", {"pole/length": 1.5}, 5000, True),
        (1, "test", {"pole/length": 2.0}, 100, False),
        (1, "test", {"pole/length": 1.5}, 100, False),
        (2, "train", {"pole/length": 2.0}, 5000, True),
        (2, "train", {"pole/length": 2.5}, 5000, True),
        (2, "test", {"pole/length": 1.5}, 100, False),
        (2, "test", {"pole/length": 2.0}, 100, False),
        (2, "test", {"pole/length": 2.5}, 100, False),
    ]
    assert [block.index for block in schedule.blocks] == list(range(8))
    assert {block.task for block in schedule.blocks} == {"CartPole3D"}
    assert (schedule.name, schedule.source, schedule.author) == ("syllabus", "cl.json", "")
    assert schedule.block_variants().tolist() == [0, 1, 0, 1, 2, 0, 1, 2]


def test_shipped_example_is_a_continual_learning_syllabus():
    schedule = l2m.load(EXAMPLE)
    assert schedule.name == EXAMPLE.stem
    assert schedule.source == EXAMPLE.name
    assert schedule.author == "The jaxsim-novelty developers"
    assert 200 <= schedule.num_episodes <= 300
    assert min(block.count for block in schedule.blocks) >= 11
    assert {block.task for block in schedule.blocks} == {"CartPole3D"}
    assert {(b.phase, b.mode) for b in schedule.blocks} == {
        (phase, mode) for phase in (1, 2, 3) for mode in ("train", "test")
    }
    assert all(block.learning == (block.mode == "train") for block in schedule.blocks)
    for phase in (1, 2, 3):
        trained = {b.variant for b in schedule.blocks if b.mode == "train" and b.phase <= phase}
        tested = {b.variant for b in schedule.blocks if b.mode == "test" and b.phase == phase}
        assert trained <= tested
    assert l2m.loads(l2m.dumps(schedule)).blocks == schedule.blocks


def test_example_of_the_reference():
    text = syllabus.__doc__.partition("```json")[2].partition("```")[0]
    schedule = l2m.loads(text)
    assert outline(schedule.blocks) == [
        (1, "train", {"cart/mass": 2.0, "pole/length": 1.5}, 30, True),
        (1, "test", {"cart/mass": 2.0, "pole/length": 1.5}, 15, False),
        (1, "test", {"cart/mass": 2.0}, 15, False),
    ]


def test_name_and_author():
    text = json.dumps({"name": "n", "author": "a", "instructions": [TRAIN, episodes()]})
    schedule = l2m.loads(text)
    assert (schedule.name, schedule.author) == ("n", "a")


@pytest.mark.requirement(104)
def test_neighbouring_equal_instructions_are_one_block():
    blocks = play(
        TRAIN,
        episodes(2, width=1),
        ON,
        {"$episode": "Toy", "width": 1.0},
        episodes(3, balls=3),
        episodes(4, width=1.0),
        TEST,
        episodes(5, width=1.0),
    )
    assert outline(blocks) == [
        (1, "train", {"width": 1.0}, 3, True),
        (1, "train", {"balls": 3}, 3, True),
        (1, "train", {"width": 1.0}, 4, True),
        (1, "test", {"width": 1.0}, 5, False),
    ]


def test_values_take_the_type_of_the_default_and_defaults_are_dropped():
    (block,) = play(TRAIN, episodes(width=1, level=201.0), episodes(level=201, width=1, balls=2))
    assert block.parameters == (("level", 201), ("width", 1.0))
    assert [type(value) for _, value in block.parameters] == [int, float]


def test_notes_of_the_author_change_nothing():
    phase = {**TRAIN, "curriculum": "b", "difficulty": [1, 2]}
    info = {"$info": {"hint": {"deep": True}, "disable_updates": True}}
    noted = play(phase, info, episodes(), {"$info": {"hint": 1}}, episodes())
    assert noted == play(TRAIN, OFF, episodes(), ON, episodes())


def test_a_task_of_our_package_is_the_task():
    assert play(TRAIN, episodes(task="$jaxsim:Toy", width=1)) == play(TRAIN, episodes(width=1))
    assert play(TRAIN, episodes(task="$jaxsim:Toy-v0")) == play(TRAIN, episodes(task="Toy-v0"))


FOREIGN = """{"default_params": {"seed": 1}, "instructions": [
  {"$phase": "1.train", "enable_updates" : true},
  {"$repeat": {"$episode": "$minigridkit:Minigrid6x6", "agent_pos": [1,1]}, "count": 1000},
  {"$repeat": {"$episode": "$minigridkit:Minigrid6x6", "agent_pos": [1, 1]}, "count": 1},
  {"$phase": "1.test", "enable_updates" : false},
  {"$repeat": {"$episode": "Pong", "bot/paddle/width": 0.15, "seed": 2, "on": true}, "count": 10}
]}"""


def test_foreign_tasks_are_read_when_asked_for():
    first, second = l2m.loads(FOREIGN, foreign=True).blocks
    assert first.variant == ("$minigridkit:Minigrid6x6", (("agent_pos", "[1, 1]"), ("seed", 1)))
    assert (first.count, first.learning) == (1001, True)
    assert second.variant == ("Pong", (("bot/paddle/width", 0.15), ("on", "true"), ("seed", 2)))
    assert not second.learning
    with pytest.raises(l2m.SyllabusError, match=r":3:28: task '.minigridkit"):
        l2m.loads(FOREIGN)


def test_tasks_known_here_are_checked_beside_foreign_ones():
    text = within('{"$episode": "Pong", "a": 1}, {"$episode": "Toy", "balls": 99}')
    with pytest.raises(l2m.SyllabusError, match=r":3:60: parameter 'balls' is 99"):
        l2m.loads(text, foreign=True)


def test_default_params_come_first():
    blocks = play(
        TRAIN,
        episodes(balls=3),
        episodes(balls=2),
        episodes(width=0.5),
        default_params={"balls": 4, "width": 2},
    )
    assert [dict(block.parameters) for block in blocks] == [
        {"balls": 3, "width": 2.0},
        {"width": 2.0},
        {"balls": 4},
    ]


def test_the_newest_version_is_the_task_and_older_ones_stay_apart():
    blocks = play(TRAIN, episodes(), episodes(task="Toy-v1"), episodes(task="Toy-v0"))
    assert [(block.task, block.count) for block in blocks] == [("Toy", 2), ("Toy-v0", 1)]


def flags(*instructions):
    return [block.learning for block in play(*instructions)]


def test_who_learns():
    assert flags(TRAIN, episodes(), TEST, episodes()) == [True, False]
    assert flags(TRAIN, OFF, episodes()) == [False]
    assert flags(TRAIN, episodes(), OFF, episodes(), ON, episodes()) == [True, False, True]
    assert flags(OFF, TRAIN, episodes(), {"$phase": "2.train"}, episodes()) == [False, False]
    assert flags({**TRAIN, "enable_updates": False}, episodes()) == [False]
    assert flags({**TRAIN, "enable_updates": False}, ON, episodes()) == [False]
    assert flags({**TRAIN, "enable_updates": True}, OFF, episodes()) == [False]
    assert flags({"$info": {"disable_updates": False}}, TRAIN, episodes()) == [True]
    off = {**TEST, "enable_updates": False}
    later = {"$phase": "2.train"}
    assert flags(TRAIN, episodes(), off, episodes(), later, episodes()) == [True, False, True]


def test_a_test_phase_is_optional_and_may_come_alone():
    phases = ["1.train", "2.train", "3.test", "4.train", "4.test"]
    blocks = play(*(item for name in phases for item in ({"$phase": name}, episodes())))
    assert [f"{block.phase}.{block.mode}" for block in blocks] == phases


# Errors -----------------------------------------------------------------------------------------


def phases(*names):
    """A syllabus with a phase and an episode a line, from line 2."""
    lines = (f'{{"$phase": {json.dumps(n)}}},{{"$episode": "Toy"}}' for n in names)
    return '{"instructions": [\n' + ",\n".join(lines) + "\n]}"


def within(instruction):
    """A syllabus whose third line is `instruction`, in phase 1.train."""
    return f'{{"instructions": [\n{{"$phase": "1.train"}},\n{instruction}\n]}}'


def counted(count):
    return within(f'{{"$repeat": {{"$episode": "Toy"}}, "count": {count}}}')


def with_parameter(pair):
    return within(f'{{"$episode": "Toy", {pair}}}')


def with_key(pair):
    return f'{{"instructions": [{{"$phase": "1.train"}}, {{"$episode": "Toy"}}],\n {pair}}}'


COUNT = "must be a whole number from 1"

ERRORS = {
    # Text that is no JSON, or JSON that nobody means.
    "empty": ("", (1, 1), "the text is empty"),
    "blank": (" \n ", (1, 1), "the text is empty"),
    "cut off": ('{"instructions": [', (1, 19), "the text ends too early"),
    "no comma": ('{"name": "a"\n "author": "b"}', (2, 2), 'expected "," or a closing bracket'),
    "spare comma in list": (within('{"$episode": "Toy"} ,'), (3, 21), "remove the comma"),
    "spare comma in object": ('{"name": "a",\n}', (1, 13), "remove the comma"),
    "no colon": ('{"name" 5}', (1, 9), 'expected ":" after the key'),
    "no value": ('{"name": }', (1, 10), "expected a value"),
    "brace forgotten": (
        '{"instructions": [\n{"$phase": "1.train",\n{"$episode": "Toy"}]}',
        (3, 1),
        'is a "}" missing before it?',
    ),
    "open string": ('{\n"name: 1}', (2, 1), "no closing double quote"),
    "control character": ('{"name": "a\nb"}', (1, 12), "a line break or control character"),
    "escape": (r'{"name": "\q"}', (1, 11), "unknown escape"),
    "two values": (counted(1) + "\n}", (5, 1), "the syllabus has ended before this"),
    "key twice": ('{"name": "a",\n "name": "b"}', (2, 2), "key 'name' stands twice"),
    "parameter twice": (
        with_parameter('"width": 1, "balls": 2, "width": 1'),
        (3, 45),
        "key 'width' stands twice",
    ),
    "nan": (with_parameter('"width": NaN'), (3, 30), "NaN is not JSON"),
    "nan and more": (with_parameter('"width": NaN000'), (3, 30), "NaN is not JSON"),
    "too large and more": (with_parameter('"width": 1e999x'), (3, 30), "1e999 is too large"),
    "infinity": (with_parameter('"width": -Infinity'), (3, 30), "-Infinity is not JSON"),
    "overflow": (with_parameter('"width": 1e999'), (3, 30), "the number 1e999 is too large"),
    "many digits": (counted("9" * 5000), (3, 43), "is too large"),
    "deep": ('{"a":\n' + "[" * 10**5, (2, 4), "nested deeper than 4 levels"),
    "deep and valid": (with_key('"name": ' + "[" * 500 + "]" * 500), (2, 10), "is a list"),
    # The outermost object.
    "no object": ("\n [1]", (2, 2), "the syllabus is a list; it must be an object"),
    "no instructions": ('{"name": "a"}', (1, 1), 'no "instructions"'),
    "empty instructions": ('{"instructions": []}', (1, 18), "'instructions' is empty"),
    "instructions object": ('{"instructions": {}}', (1, 18), "'instructions' is an object"),
    "only notes": ('{"instructions": [{"$info": {}}]}', (1, 18), "no episodes"),
    "unknown key": (with_key('"autor": "a"'), (2, 2), "did you mean 'author'?"),
    "name number": (with_key('"name": 5'), (2, 10), "'name' is 5; it must be printable text"),
    "name empty": (with_key('"name": ""'), (2, 10), "'name' is empty"),
    "name surrogate": (with_key('"name": "\\ud800"'), (2, 10), "must be printable text"),
    "author list": (with_key('"author": ["a"]'), (2, 12), "'author' is a list"),
    "contains": (with_key('"contains": "datasets"'), (2, 14), 'it must be "episodes"'),
    "defaults list": (with_key('"default_params": []'), (2, 20), "it must be an object"),
    "default unknown": (
        with_key('"default_params": {"wide": 1}'),
        (2, 21),
        "Toy: unknown parameter 'wide'; did you mean 'width'?",
    ),
    "default refused": (
        with_key('"default_params": {"width": "1"}'),
        (2, 30),
        "parameter 'width' is '1'; it must be a number from 0 to 2 m",
    ),
    # Phases and notes.
    "test first": (phases("1.test"), (2, 12), "it must be '1.train' (the first is a train"),
    "second first": (phases("2.train"), (2, 12), "it must be '1.train'"),
    "phase again": (phases("1.train", "1.train"), (3, 12), "'1.test', '2.test' or '2.train'"),
    "phase skipped": (phases("1.train", "1.test", "3.train"), (4, 12), "'2.test' or '2.train'"),
    "train after test": (phases("1.train", "2.test", "2.train"), (4, 12), "'3.test' or '3.train'"),
    "phase word": (
        phases("1.Train"),
        (2, 12),
        "'$phase' is '1.Train'; here it must be '1.train' (the first",
    ),
    "phase number": (phases(1.5), (2, 12), "'$phase' is 1.5; here it must be '1.train' (the first"),
    "phase list": (phases([]), (2, 12), "'$phase' is a list; here it must be '1.train' (the first"),
    "phase key": (
        within('{"$phase": "2.train", "enable_update": false}'),
        (3, 23),
        "unknown key 'enable_update'; did you mean 'enable_updates'?",
    ),
    "phase dollar key": (within('{"$phase": "1.test", "$x": 1}'), (3, 22), "unknown key '$x'"),
    "updates word": (
        '{"instructions": [{"$phase": "1.train", "enable_updates": 1}]}',
        (1, 59),
        "'enable_updates' is 1; it must be true or false",
    ),
    "learning test": (
        within('{"$episode": "Toy"}, {"$phase": "1.test", "enable_updates": true}'),
        (3, 61),
        "a test phase is never learned from",
    ),
    "phase empty": (phases("1.train")[:-2] + ',\n{"$phase": "1.test"}]}', (4, 12), "no episodes"),
    "phase empty between": (
        within('{"$phase": "1.test"}, {"$episode": "Toy"}'),
        (2, 12),
        'no episodes; add a "$repeat"',
    ),
    "note open": (
        within(
            '{"$episode": "Toy"}, {"$phase": "1.test"}, {"$info": {"disable_updates": true}},\n'
            '{"$episode": "Toy"}, {"$phase": "2.train"}, {"$episode": "Toy"}'
        ),
        (4, 33),
        'write {"$info": {}} at its end',
    ),
    "note list": (within('{"$info": []}'), (3, 11), "'$info' is a list"),
    "note key": (
        within('{"$info": {"disable_update": true}}'),
        (3, 12),
        "did you mean 'disable_updates'?",
    ),
    "note dollar key": (within('{"$info": {"$x": 1}}'), (3, 12), "allowed: disable_updates"),
    "note word": (within('{"$info": {"disable_updates": "yes"}}'), (3, 31), "must be true or"),
    # Episodes.
    "instruction word": (within('"$phase"'), (3, 1), "an instruction is '$phase'"),
    "instruction kind": (within("{}"), (3, 1), "none of the keys $phase, $repeat, $info, $epi"),
    "before phase": ('{"instructions": [\n{"$episode": "Toy"}]}', (2, 1), "before the first phase"),
    "no count": (within('{"$repeat": {"$episode": "Toy"}}'), (3, 1), 'has no "count"'),
    "no episode": (within('{"$repeat": {}, "count": 1}'), (3, 13), 'has no "$episode"'),
    "repeat list": (within('{"$repeat": [], "count": 1}'), (3, 13), "'$repeat' is a list"),
    "repeat key": (
        within('{"$repeat": {"$episode": "Toy"}, "count": 1, "n": 1}'),
        (3, 46),
        "unknown key 'n' (allowed: $repeat, count)",
    ),
    "count zero": (counted(0), (3, 43), f"'count' is 0; it {COUNT}"),
    "count negative": (counted(-1), (3, 43), f"'count' is -1; it {COUNT}"),
    "count fraction": (counted(1.5), (3, 43), f"'count' is 1.5; it {COUNT}"),
    "count real": (counted(1.0), (3, 43), f"'count' is 1.0; it {COUNT}"),
    "count true": (counted("true"), (3, 43), f"'count' is true; it {COUNT}"),
    "count null": (counted("null"), (3, 43), f"'count' is null; it {COUNT}"),
    "count word": (counted('"5"'), (3, 43), f"'count' is '5'; it {COUNT}"),
    "too long": (counted(10**7 + 1), (3, 43), "a lifetime may have 10000000 episodes"),
    "too long together": (
        within(
            '{"$repeat": {"$episode": "Toy"}, "count": 9999999},\n'
            '{"$episode": "Toy"},\n{"$episode": "Toy"}'
        ),
        (5, 1),
        "a lifetime may have 10000000 episodes",
    ),
    "task": (within('{"$episode": "Toi"}'), (3, 14), "unknown task 'Toi'; did you mean 'Toy'?"),
    "task version": (within('{"$episode": "Toy-v7"}'), (3, 14), "unknown task 'Toy-v7'"),
    "task of a package": (
        within('{"$episode": "$minigridkit:Minigrid6x6"}'),
        (3, 14),
        "is of the package 'minigridkit', which is not played here; write one of CartPole",
    ),
    "task of our package": (
        within('{"$episode": "$jaxsim:Toi"}'),
        (3, 14),
        "unknown task 'Toi'; did you mean 'Toy'?",
    ),
    "package without task": (
        within('{"$episode": "$jaxsim"}'),
        (3, 14),
        "'$episode' is '$jaxsim'; a task of a package is \"$package:Task\"",
    ),
    "task number": (within('{"$episode": 3}'), (3, 14), "'$episode' is 3; it must be printable"),
    "parameter": (with_parameter('"ball": 1'), (3, 21), "did you mean 'balls'?"),
    "parameter low": (with_parameter('"width": -1'), (3, 30), "a number from 0 to 2 m"),
    "parameter whole": (with_parameter('"balls": 2.0'), (3, 30), "a whole number from 1 to 9"),
    "parameter true": (with_parameter('"balls": true'), (3, 30), "'balls' is true; it must be a"),
    "parameter null": (with_parameter('"width": null'), (3, 30), "'width' is null; it must be"),
    "parameter object": (with_parameter('"width": {}'), (3, 30), "'width' is an object; it must"),
    "parameter choice": (with_parameter('"level": 202'), (3, 30), "must be one of 200, 201"),
    "parameter word": (
        with_parameter('"room/colour":\n"green"'),
        (4, 1),
        "parameter 'room/colour' is 'green'; it must be one of 'red', 'blue'",
    ),
    "other task": (
        within('{"$episode": "Dull", "balls": 3}'),
        (3, 22),
        "Dull: unknown parameter 'balls' (allowed: width)",
    ),
    "byte order mark": ("\ufeff" + counted(0), (3, 43), COUNT),
    "windows lines": (counted(0).replace("\n", "\r\n"), (3, 43), COUNT),
}


@pytest.mark.parametrize(("text", "place", "words"), ERRORS.values(), ids=ERRORS)
def test_error_points_at_the_place(text, place, words):
    with pytest.raises(l2m.SyllabusError) as caught:
        l2m.loads(text, "s.json")
    error = caught.value
    assert (str(error).splitlines()[0], error.line, error.column) == (str(error), *place)
    assert str(error) == f"s.json:{error.line}:{error.column}: {error.reason}"
    assert words in error.reason
    assert len(error.reason) < 500


def test_a_comma_too_many_is_pointed_at_by_every_python():
    text = '{"a": [1,\n ]}'
    reports = [("Expecting value", 11), ("Illegal trailing comma before end of array", 8)]
    for report, offset in reports:
        place, reason = document._broken(text, json.JSONDecodeError(report, text, offset))
        assert (place, reason.split(": ")[1]) == (8, "remove the comma before the closing bracket")


def write(tmp_path, data):
    path = tmp_path / "s.json"
    path.write_bytes(data)
    return path


def message(path):
    with pytest.raises(l2m.SyllabusError) as caught:
        l2m.load(path)
    return str(caught.value)


def test_file_errors(tmp_path, monkeypatch):
    missing = tmp_path / "missing.json"
    assert message(missing) == (
        f"{missing}:1:1: cannot read the syllabus (No such file or directory); "
        "give the path of a JSON file"
    )
    assert f"{tmp_path}:1:1: cannot read the syllabus (Is a directory)" in message(tmp_path)
    assert "embedded null" in message("a\0b")
    path = write(tmp_path, b'{"name":\n "\xc3\xa9\xff"}')
    assert message(path) == f"{path}:2:4: this byte is not UTF-8 text; save the file as UTF-8"
    monkeypatch.setattr(document, "MAX_BYTES", 100)
    path = write(tmp_path, b" " * 101)
    assert message(path).startswith(f"{path}:1:1: the file is larger than 100 bytes")


def test_a_file_is_named_by_its_path_in_errors_and_by_its_name_in_the_schedule(tmp_path):
    path = write(tmp_path, counted(0).encode())
    assert message(str(path)).startswith(f"{path}:3:43: ")
    schedule = l2m.load(write(tmp_path, b"\xef\xbb\xbf" + counted(3).encode()))
    assert (schedule.name, schedule.source, schedule.num_episodes) == ("s", "s.json", 3)


def test_an_error_is_one_line_and_survives_pickling():
    with pytest.raises(ValueError, match="must be printable text") as caught:
        l2m.loads(with_key(r'"name": "a\nb"'), "two\nlines")
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_long_text_is_cut_in_errors():
    long = "x" * 10**5
    for text in (within(f'{{"$episode": "{long}"}}'), with_parameter(f'"room/colour": "{long}"')):
        with pytest.raises(l2m.SyllabusError) as caught:
            l2m.loads(text)
        assert len(str(caught.value)) < 500


# Writing ----------------------------------------------------------------------------------------


def test_dumps_brackets_evaluation():
    schedule = l2m.loads(within('{"$episode": "Toy"}, {"$phase": "1.test"}, {"$episode": "Toy"}'))
    written = json.loads(l2m.dumps(replace(schedule, name="n", author="a")))
    assert written == {
        "name": "n",
        "author": "a",
        "contains": "episodes",
        "default_params": {},
        "instructions": [TRAIN, episodes(), TEST, OFF, episodes(), ON],
    }


BLOCK = Block(0, 1, "train", "Toy", (), 5, True)


@pytest.mark.parametrize(
    "blocks",
    [
        (BLOCK, Block(1, 1, "test", "Toy", (), 5, True)),
        (BLOCK, replace(BLOCK, index=1)),
        (replace(BLOCK, parameters=(("balls", 2),)),),
        (replace(BLOCK, parameters=(("balls", 99),)),),
        (replace(BLOCK, parameters=(("width", float("nan")),)),),
        (replace(BLOCK, task="Nobody"),),
        (replace(BLOCK, count=0),),
        (),
    ],
)
def test_dumps_refuses_what_a_syllabus_cannot_say(blocks):
    with pytest.raises(ValueError):
        l2m.dumps(Schedule("n", blocks))


VALUES = {
    "width": st.floats(0.0, 2.0),
    "balls": st.integers(1, 9),
    "level": st.sampled_from((200, 201)),
    "room/colour": st.sampled_from(("red", "blue")),
}
EPISODES = st.builds(
    lambda task, values, count: {"$repeat": {"$episode": task, **values}, "count": count},
    st.sampled_from(("Toy", "Toy-v0", "Toy-v1")),
    st.fixed_dictionaries({}, optional=VALUES),
    st.integers(1, 50),
)
LISTS = st.lists(EPISODES | st.just(ON), max_size=4)


@st.composite
def syllabi(draw):
    instructions = []
    for phase in range(1, draw(st.integers(1, 4)) + 1):
        name = {"$phase": f"{phase}.train"}
        updates = draw(st.sampled_from(({}, {"enable_updates": True}, {"enable_updates": False})))
        instructions += [name | updates, *draw(LISTS), draw(st.sampled_from((ON, OFF)))]
        instructions += [draw(EPISODES), ON]
        if draw(st.booleans()):
            instructions += [{"$phase": f"{phase}.test"}, OFF, draw(EPISODES), *draw(LISTS), ON]
    defaults = draw(st.fixed_dictionaries({}, optional=VALUES))
    return {"default_params": defaults, "instructions": instructions}


@settings(max_examples=100, deadline=None)
@given(syllabi())
def test_round_trip(document):
    schedule = l2m.loads(json.dumps(document))
    repeats = [item for item in document["instructions"] if "$repeat" in item]
    assert schedule.num_episodes == sum(item["count"] for item in repeats)
    assert [block.index for block in schedule.blocks] == list(range(len(schedule.blocks)))
    kinds = [(b.phase, b.mode, b.variant, b.learning) for b in schedule.blocks]
    assert all(first != second for first, second in pairwise(kinds))
    again = l2m.loads(l2m.dumps(schedule))
    assert again.blocks == schedule.blocks
    assert repr(again.blocks) == repr(schedule.blocks)  # the types as well


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_text_is_read_or_refused_in_one_line(data):
    text = data.draw(st.sampled_from((phases("1.train", "1.test"), counted(3), CONTINUAL)))
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 3, len(text))))
    middle = data.draw(st.text('{}[]",:-.0129eE\\$nul tNaIify\n', max_size=3) | st.text(max_size=2))
    try:
        l2m.loads(text[:start] + middle + text[stop:])
    except l2m.SyllabusError as error:
        assert len(str(error).splitlines()) == 1
        assert error.line >= 1 <= error.column


# Positions --------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def leaves(value, path=()):
    yield path, value
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield from leaves(inner, (*path, key))


@settings(max_examples=100, deadline=None)
@given(JSON, st.sampled_from((None, 0, 1)), st.booleans())
def test_every_value_and_key_is_found(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    lines = text.split("\n")
    decoder = json.JSONDecoder()
    for path, expected in leaves(value):
        line, column = positions.locate(text, path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert decoder.raw_decode(rest)[0] == expected
        line, column = positions.locate(text, path, key=True)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        keyed = bool(path) and isinstance(path[-1], str)
        assert decoder.raw_decode(rest)[0] == (path[-1] if keyed else expected)


def test_a_path_that_is_not_there():
    with pytest.raises(KeyError):
        positions.locate('{"a": 1}', ("b",))
