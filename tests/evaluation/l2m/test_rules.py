"""Subtypes: the rules of each, where their violations stand, and what files are told about."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation import cli, l2m, positions
from evaluation.l2m import document, rules
from evaluation.l2m.rules import SUBTYPES

EXAMPLES = Path(__file__).parents[3] / "examples" / "syllabi"
WIDTH = "bot/paddle/width"


def phase(name, *items):
    """Lines of a phase; `played` are tasks or (task, width), in the manner of the framework."""
    lines = [{"$phase": name}]
    for item in items:
        task, *width = (item,) if isinstance(item, str) else item
        values = {WIDTH: width[0]} if width else {}
        lines.append({"$repeat": {"$episode": task, **values}, "count": 100})
    return lines


def syllabus(*phases):
    """Text with an instruction a line, from line 2."""
    lines = [json.dumps(line) for phase in phases for line in phase]
    return '{"instructions": [\n' + ",\n".join(lines) + "\n]}"


def pong(*widths):
    return [("Pong", width) for width in widths]


def breakout(*widths):
    return [("Breakout", width) for width in widths]


# The four examples of the framework document, with its own tasks.
CL = syllabus(
    phase("1.train", *pong(0.15)),
    phase("1.test", *pong(0.20, 0.15)),
    phase("2.train", *pong(0.20, 0.25)),
    phase("2.test", *pong(0.15, 0.20, 0.25)),
)
ANT_A = syllabus(
    phase("1.train", "Pong"),
    phase("1.test", "Pong", "Freeway"),
    phase("2.train", "Freeway", "Breakout"),
    phase("2.test", "Pong", "Breakout", "Freeway"),
)
ANT_B = syllabus(
    phase("1.train", "Pong"),
    phase("1.test", "Pong", "Breakout"),
    phase("2.train", "Breakout"),
    phase("2.test", "Pong", "Breakout"),
)
WIDTHS = (0.15, 0.20, 0.25)
ANT_C = syllabus(
    phase("1.train", *pong(*WIDTHS)),
    phase("1.test", *pong(*WIDTHS), *breakout(*WIDTHS)),
    phase("2.train", *breakout(*WIDTHS)),
    phase("2.test", *pong(*WIDTHS), *breakout(*WIDTHS)),
)
DOCUMENT = dict(zip(SUBTYPES, (CL, ANT_A, ANT_B, ANT_C), strict=True))


def check(text, subtype=None):
    return l2m.check_text(text, "s.json", subtype=subtype, foreign=True)


def outline(verdict):
    return [(f.line, f.column, f.severity, f.rule) for f in verdict.findings]


def reasons(verdict):
    return [finding.reason for finding in verdict.findings]


@pytest.mark.requirement(125)
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_the_examples_of_the_document_are_what_they_say(subtype):
    verdict = check(DOCUMENT[subtype], subtype)
    assert (verdict.findings, verdict.subtype, verdict.stated) == ((), subtype, True)
    assert subtype in verdict.satisfied


def test_the_subtype_that_fits_best_is_inferred():
    inferred = {name: check(text) for name, text in DOCUMENT.items()}
    assert {name: v.subtype for name, v in inferred.items()} == {
        "CL": "CL",
        "ANT_A": "ANT_A",
        "ANT_B": "ANT_A",  # nothing in the text tells B from A
        "ANT_C": "ANT_C",
    }
    assert not any(v.stated or v.findings for v in inferred.values())
    assert inferred["CL"].satisfied == ("CL",)
    assert inferred["ANT_B"].satisfied == ("ANT_A", "ANT_B", "ANT_C")
    assert inferred["ANT_C"].satisfied == ("ANT_C",)


@pytest.mark.requirement(123)
def test_continual_learning_has_one_task():
    verdict = check(ANT_A, "CL")
    errors = [f for f in verdict.findings if f.severity == "error"]
    places = [(6, 26, "Freeway"), (8, 26, "Freeway"), (9, 26, "Breakout")]
    places += [(12, 26, "Breakout"), (13, 26, "Freeway")]
    assert [(f.line, f.column) for f in errors] == [place[:2] for place in places]
    for error, (_, _, task) in zip(errors, places, strict=True):
        assert error.rule == "disallowed"
        assert (
            error.reason == f"CL may have one task only: this is {task!r} and the first is 'Pong'"
        )
    # None of its parameters vary, which would be said as well.
    (warning,) = [f for f in verdict.findings if f.severity == "warning"]
    assert "expected to vary parameters" in warning.reason


@pytest.mark.requirement(124)
@pytest.mark.parametrize("subtype", ["ANT_A", "ANT_B"])
def test_no_parameter_varies_in_ant_a_and_ant_b(subtype):
    verdict = check(ANT_C, subtype)
    # Every block but the first of each task, and those that are equal to it.
    lines = [4, 5, 8, 9, 11, 12, 15, 16, 19, 20, 22, 23]
    assert outline(verdict) == [(line, 13, "error", "disallowed") for line in lines]
    assert reasons(verdict)[0] == (
        f"{subtype} may not vary parameters: 'bot/paddle/width' of 'Pong' is not as it was first; "
        "make it equal, or choose ANT_C"
    )


@pytest.mark.requirement(124)
@pytest.mark.parametrize("subtype", ["ANT_A", "ANT_B", "ANT_C"])
def test_ant_needs_test_phases(subtype):
    text = syllabus(phase("1.train", "Pong", ("Pong", 1)), phase("2.train", "Breakout"))
    verdict = check(text, subtype)
    assert (1, 18, "error", "disallowed") in outline(verdict)
    assert f"{subtype} must have test phases; add one after each train phase" in reasons(verdict)


@pytest.mark.parametrize("subtype", ["ANT_A", "ANT_B", "ANT_C"])
def test_ant_needs_two_tasks(subtype):
    text = syllabus(phase("1.train", "Pong"), phase("1.test", "Pong"))
    verdict = check(text, subtype)
    assert outline(verdict)[0] == (1, 18, "error", "disallowed")
    assert reasons(verdict)[0] == (
        f"{subtype} needs at least two tasks, and this syllabus has only 'Pong'"
    )


@pytest.mark.parametrize("text", [ANT_A, ANT_B])
def test_ant_c_is_expected_to_vary(text):
    assert check(text, "ANT_C").errors == 0
    assert any("none varies here" in reason for reason in reasons(check(text, "ANT_C")))


@pytest.mark.requirement(122)
def test_phases_are_expected_to_alternate():
    text = syllabus(
        phase("1.train", *pong(1)),
        phase("2.train", *pong(2)),
        phase("2.test", *pong(1, 2)),
        phase("3.test", *pong(1, 2)),
        phase("4.train", *pong(1)),
    )
    verdict = check(text, "CL")
    assert outline(verdict) == [(line, 12, "warning", "expected") for line in (4, 9, 12)]
    assert reasons(verdict) == [
        "2.train follows 1.train; a test phase is expected between",
        "3.test follows 2.test; a train phase is expected between",
        "no test phase follows 4.train; one is expected at the end",
    ]


@pytest.mark.requirement(123)
def test_test_phases_of_continual_learning_are_only_recommended():
    verdict = check(syllabus(phase("1.train", *pong(1, 2))))
    assert (verdict.subtype, verdict.errors, verdict.warnings) == ("CL", 0, 1)
    assert verdict.satisfied == ("CL",)


def test_what_is_measured_must_be_tested():
    text = syllabus(
        phase("1.train", "Pong", "Freeway"),
        phase("1.test", "Pong"),
        phase("2.train", "Breakout"),
        phase("2.test", "Pong", "Breakout"),
    )
    never = "'Freeway' is never tested after this training; add it to a later test phase"
    before = "'Breakout' is never tested before this training, so that no transfer to it can be "
    before += "measured; add it to an earlier test phase"
    assert reasons(check(text, "ANT_A")) == [never]
    assert reasons(check(text, "ANT_B")) == [never, before]
    assert outline(check(text, "ANT_B")) == [
        (4, 13, "warning", "expected"),
        (8, 13, "warning", "expected"),
    ]


def test_values_that_are_trained_are_tested_in_continual_learning():
    text = syllabus(phase("1.train", *pong(1, 2)), phase("1.test", *pong(1)))
    verdict = check(text)
    assert outline(verdict) == [(4, 13, "warning", "expected")]
    assert "with these parameters is never tested" in reasons(verdict)[0]


# The required rule, and grammar, all at once ------------------------------------------------------


@pytest.mark.requirement(121)
def test_the_first_block_is_a_train_block():
    text = syllabus(phase("1.test", "Pong"), phase("2.train", "Pong"), phase("2.test", "Pong"))
    verdict = check(text, "CL")
    assert outline(verdict)[:2] == [(1, 18, "warning", "expected"), (2, 12, "error", "required")]
    assert "here it must be '1.train' (the first is a train phase)" in reasons(verdict)[1]
    assert verdict.satisfied == ()


def test_episodes_before_the_first_phase():
    lines = [{"$episode": "Pong"}, *phase("1.train", *pong(1, 2)), *phase("1.test", *pong(1, 2))]
    verdict = check(syllabus(lines))
    assert outline(verdict) == [(2, 1, "error", "required")]
    assert verdict.counts["blocks"] == 4


BROKEN = """{"nam": "x", "author": 5, "contains": "pictures", "instructions": [
{"$phase": "2.train", "enable_update": false},
{"$repeat": {"$episode": "CartPole3D"}, "count": 0},
{"$repeat": {"$episode": "CartPole4D"}, "count": 3},
{"$repeat": {"$episode": "CartPole3D", "pole/lenght": 1}, "count": 3},
"$info",
{"$episode": "CartPole3D"},
{"$phase": "2.test", "enable_updates": true}, {"$info": {"disable_updates": 1}},
{"$phase": "5.exam"}, {"$episode": "CartPole3D"},
{"$phase": "3.test"}, {"$episode": "CartPole3D", "pole/length": 1e9}, {}
]}"""


@pytest.mark.requirement(120)
def test_every_error_of_the_grammar_is_reported():
    verdict = l2m.check_text(BROKEN, "s.json")
    assert [(f.line, f.column) for f in verdict.findings] == [
        (1, 2),
        (1, 24),
        (1, 39),
        (2, 12),
        (2, 23),
        (3, 50),
        (4, 26),
        (5, 40),
        (6, 1),
        (8, 40),
        (8, 77),
        (9, 12),
        (10, 65),
        (10, 71),
    ]
    assert {f.rule for f in verdict.findings} == {"grammar"}
    assert verdict.satisfied == ()
    # The first of them is what `loads` stops at.
    with pytest.raises(l2m.SyllabusError) as caught:
        l2m.loads(BROKEN, "s.json")
    assert str(caught.value) == verdict.lines()[0].replace("error: ", "")


def test_errors_end_somewhere():
    text = syllabus([{"$phase": "1.train"}, *[{"$episode": "Nobody"}] * 10_000])
    verdict = l2m.check_text(text, "s.json")
    assert verdict.errors == document.MAX_PROBLEMS
    assert verdict.findings[-1].line == document.MAX_PROBLEMS + 2


@pytest.mark.parametrize("text", ["", "[", "[]", '{"instructions": {}}', "{}"])
def test_nothing_to_read(text):
    verdict = l2m.check_text(text, "s.json")
    assert (verdict.errors, verdict.subtype, verdict.tasks) == (1, None, ())
    assert set(verdict.counts.values()) == {0}
    assert json.dumps(verdict.to_json(), allow_nan=False)


def test_places_are_found_in_one_walk():
    paths = {("instructions", 3), ("instructions", 9, "$repeat", "$episode"), ("nowhere",), ()}
    places = positions.locate_all(ANT_A, paths)
    assert set(places) == paths - {("nowhere",)}
    for path, place in places.items():
        assert place == positions.locate(ANT_A, path)


def test_the_table_of_the_module_names_every_subtype():
    for subtype in SUBTYPES:
        assert f"| {subtype} |" in rules.__doc__


# The shipped examples and the command -------------------------------------------------------------


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_shipped_examples_keep_the_rules_of_their_subtype(subtype):
    verdict = l2m.check_file(EXAMPLES / f"{subtype.lower()}.json", subtype)
    assert verdict.lines() == []
    assert subtype in verdict.satisfied


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_shipped_examples_have_the_form_of_the_document(subtype):
    """Phases and blocks are the document's: tasks and values go by the order they appear in."""

    def form(blocks):
        codes = {}
        names = [
            tuple(
                codes.setdefault((kind, value), len(codes))
                for kind, value in (("task", b.task), ("values", b.parameters))
            )
            for b in blocks
        ]
        return [(b.phase, b.mode, b.learning, name) for b, name in zip(blocks, names, strict=True)]

    ours = l2m.load(EXAMPLES / f"{subtype.lower()}.json").blocks
    theirs = l2m.loads(DOCUMENT[subtype], foreign=True).blocks
    assert form(ours) == form(theirs)
    assert {b.task for b in ours} <= {"CartPole3D", "CartPole2D", "CartPole"}


def test_a_syllabus_of_learnkit_is_understood(recorded_data):
    """As it was logged in 2020: tasks of a package, lists as values, notes beside the phases."""
    (path,) = recorded_data("l2m/learnkit_2020").glob("syllabus_*/*.json")
    verdict = l2m.check_file(path, "ANT_A", foreign=True)
    assert verdict.lines() == []
    assert verdict.counts == {"phases": 6, "blocks": 12, "episodes": 3900, "variants": 3}
    assert verdict.tasks[0] == "$minigridkit:Minigrid6x6"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {**DOCUMENT, "BROKEN": BROKEN}.items():
        Path(f"{name}.json").write_text(text)
    return tmp_path


def validate(capsys, *arguments):
    code = cli.main(["validate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def test_the_command_prints_a_row_a_file(files, capsys):
    code, lines, err = validate(capsys, "--foreign", "CL.json", "ANT_C.json")
    assert (code, err) == (0, "")
    rows = [re.split(" {2,}", line) for line in lines]
    assert rows == [
        ["file", "phases", "blocks", "episodes", "tasks", "subtype", "satisfies", "verdict"],
        ["CL.json", "4", "8", "800", "Pong", "CL?", "CL", "valid"],
        ["ANT_C.json", "4", "18", "1800", "Pong, Breakout", "ANT_C?", "ANT_C", "valid"],
    ]


def test_the_command_prints_every_finding_with_its_place(files, capsys):
    code, lines, _ = validate(capsys, "--foreign", "--subtype", "ANT_B", "ANT_C.json", "ANT_B.json")
    assert code == 1
    findings = [line for line in lines if ": error: " in line]
    assert len(findings) == 12
    assert findings[0].startswith("ANT_C.json:4:13: error: ANT_B may not vary parameters: ")
    assert lines[-2].endswith("12 errors") and lines[-1].endswith("valid")
    assert re.search(r"\sANT_B\s", lines[-1])


def test_without_foreign_unknown_tasks_are_errors(files, capsys):
    code, lines, _ = validate(capsys, "CL.json")
    assert code == 1
    assert lines[0].startswith("CL.json:3:26: error: unknown task 'Pong'")


def test_warnings_are_no_failure(capsys):
    code, lines, _ = validate(capsys, str(EXAMPLES / "composed_novelty.json"))
    assert code == 0
    assert lines[0].split(": ")[1] == "warning"
    assert lines[-1].endswith("1 warning")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_is_valid(path):
    assert l2m.check_file(path).errors == 0


def test_a_syllabus_of_classification_is_understood(capsys):
    code, lines, _ = validate(capsys, str(EXAMPLES / "moved_digits.json"))
    row = re.split(" {2,}", lines[-1])[1:]
    assert (code, row) == (0, ["6", "13", "462", "Digits", "CL?", "CL", "valid"])
    assert l2m.check_file(EXAMPLES / "moved_digits.json").to_json()["contains"] == "datasets"


def test_all_errors_of_a_syllabus_of_classification_are_found():
    wrong = {
        "contains": "datasets",
        "instructions": [
            {"$phase": "1.test"},
            {"$dataset": "Digit", "batches": 1},
            {"$dataset": "Digits", "batches": 0},
            {"$repeat": {"$dataset": "Digits", "labels/shift": 11, "batches": 1}, "count": 2},
            {"$episode": "CartPole"},
        ],
    }
    verdict = l2m.check_text(json.dumps(wrong, indent=1))
    assert [(finding.line, finding.rule) for finding in verdict.findings] == [
        (5, "required"), (8, "grammar"), (13, "grammar"), (18, "grammar"), (23, "grammar"),
    ]  # fmt: skip
    reasons = [finding.reason for finding in verdict.findings]
    words = ("must be '1.train'", "unknown data set", "from 1 to", "labels/shift", "$dataset; add")
    assert all(word in text for word, text in zip(words, reasons, strict=True)), reasons


def test_a_violation_of_a_classification_subtype_stands_at_its_data_set():
    data = [{"$phase": "1.train"}, {"$dataset": "Digits", "batches": 1}]
    verdict = l2m.check_text(
        json.dumps({"contains": "datasets", "instructions": data}), subtype="ANT_A"
    )
    assert [finding.rule for finding in verdict.findings] == ["disallowed"] * 2 + ["expected"]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(files, capsys):
    code, lines, _ = validate(capsys, "absent.json", "BROKEN.json")
    assert code == 2
    assert lines[0].startswith("absent.json:1:1: error: cannot read the syllabus (No such file")
    assert sum(line.startswith("BROKEN.json:") for line in lines) == 14
    Path("latin.json").write_bytes(b'{"name": "\xe9"}')
    code, lines, _ = validate(capsys, "latin.json")
    assert code == 1
    assert "this byte is not UTF-8 text" in lines[0]


def test_json_of_the_command(files, capsys):
    code, lines, _ = validate(capsys, "--json", "--foreign", "ANT_A.json", "absent.json")
    assert code == 2
    first, second = json.loads("\n".join(lines))
    assert first == {
        "file": "ANT_A.json",
        "name": "ANT_A",
        "author": "",
        "valid": True,
        "contains": "episodes",
        "phases": 4,
        "blocks": 8,
        "episodes": 800,
        "variants": 3,
        "tasks": ["Pong", "Freeway", "Breakout"],
        "subtype": "ANT_A",
        "stated": False,
        "satisfied": ["ANT_A", "ANT_B", "ANT_C"],
        "findings": [],
    }
    (finding,) = second["findings"]
    assert (second["valid"], finding["rule"], finding["line"]) == (False, "file", 1)


def test_an_unknown_subtype_is_a_wrong_command(files, capsys):
    code, lines, err = validate(capsys, "--subtype", "ANT_D", "CL.json")
    assert (code, lines) == (2, [])
    assert err == "jaxsim: subtype is 'ANT_D'; it must be one of CL, ANT_A, ANT_B, ANT_C\n"


def test_the_parser_does_not_wait_for_jax():
    code = "import sys; from evaluation import cli; cli.build_parser(); print('jax' in sys.modules)"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=EXAMPLES.parents[1], capture_output=True, text=True)
    assert process.stdout == "False\n", process.stderr


def test_the_package_has_the_names_that_it_lists():
    assert all(getattr(l2m, name) for name in l2m.__all__)
    assert set(l2m.__all__) <= set(dir(l2m))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        l2m.lode  # noqa: B018


def test_many_findings_are_cut(files, capsys):
    blocks = [("Pong", n) for n in range(300)]
    Path("many.json").write_text(syllabus(phase("1.train", *blocks, "Breakout")))
    code, lines, _ = validate(capsys, "--foreign", "--subtype", "ANT_A", "many.json")
    assert code == 1
    assert len([line for line in lines if ": error: " in line]) <= 100
    assert re.fullmatch(r"many.json: \d+ more", lines[100])
