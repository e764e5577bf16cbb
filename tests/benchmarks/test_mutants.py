"""`make mutants`: its sample, its tests and its report, on a toy project of one module."""

import random
import subprocess

import pytest

pytest.importorskip("cosmic_ray")

from benchmarks import mutants

MODULE = '''"""A toy."""


def larger(a: int | None, b: int = 0) -> int | None:
    if a is None or a > b:
        return a
    return b


def unseen(a: int) -> int:
    return a + 1
'''
TEST = """from jaxsim.toy import larger


def test_larger():
    assert [larger(1, 2), larger(2, 1), larger(1, 1)] == [2, 2, 1]
    assert larger(None) is None and larger(1) == 1 and larger(-1) == 0
"""


@pytest.fixture
def toy(tmp_path):
    """A project of one module, in git."""
    root = tmp_path / "toy"
    for name, text in (
        ("jaxsim/__init__.py", ""),
        ("jaxsim/toy.py", MODULE),
        ("tests/jaxsim/test_toy.py", TEST),
        (".gitignore", "__pycache__\nbroken.py\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "toy")
    return root


def git(root, *words):
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(("git", *who, *words), cwd=root, check=True, capture_output=True)


def test_a_sample_is_played(toy, capsys):
    """What a test sees is killed, what none sees survives and is shown, the files are left."""
    assert mutants.main(["jaxsim", "--number", "4", "--seed", "1"], toy) == 0
    output = capsys.readouterr()
    candidates = mutants.mutants(["jaxsim/toy.py"], toy)
    chosen = sorted(random.Random(1).sample(candidates, 4))
    for mutant in chosen:
        word = "SURVIVED" if mutant.line > 8 else "killed"
        assert f"jaxsim/toy.py:{mutant.line} {word}" in output.err
    assert len(output.err.splitlines()) == 4
    assert {mutant.line > 8 for mutant in chosen} == {True, False}
    assert "\n    -    return a + 1\n" in output.out
    assert f"{len(candidates):,} there are" in output.out and "| jaxsim/toy.py | 4 | " in output.out
    assert (toy / "jaxsim" / "toy.py").read_text() == MODULE


def test_annotations_are_not_mutated(toy):
    candidates = mutants.mutants(["jaxsim/toy.py"], toy)
    assert {mutant.line for mutant in candidates} == {4, 5, 11}
    assert not any("_BitOr_" in mutant.operator for mutant in candidates)
    assert any("NumberReplacer" in m.operator for m in candidates if m.line == 4)


def test_changed_modules_are_found_committed_or_not(toy, capsys):
    assert mutants.main([], toy) == 2
    assert "no module has changed since main" in capsys.readouterr().err
    git(toy, "checkout", "--quiet", "-b", "mine")
    (toy / "jaxsim" / "other.py").write_text("X = 1\n")
    git(toy, "add", ".")
    git(toy, "commit", "--quiet", "--message", "other")
    (toy / "jaxsim" / "toy.py").write_text(MODULE + "\n")
    (toy / "tests" / "more.py").write_text("")
    assert mutants.changed("main", toy) == ["jaxsim/other.py", "jaxsim/toy.py"]


def test_tests_are_those_that_import_a_module_or_the_folder_like_its_own(toy):
    assert mutants.tests_of("jaxsim/toy.py", toy) == ["tests/jaxsim/test_toy.py"]
    assert mutants.tests_of("jaxsim/far/away.py", toy) == ["tests/jaxsim"]
    importers = mutants.tests_of("benchmarks/mutants.py", mutants.ROOT)
    assert importers == ["tests/benchmarks/test_mutants.py"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.py"], "missing.py is not a module or folder"),
        (["../.."], "is not a module or folder"),
        ([".gitignore"], ".gitignore is not a module or folder"),
        (["jaxsim", "--number", "0"], "number is 0"),
        (["--since", "nowhere"], "git merge-base: "),
        (["jaxsim/__init__.py"], "nothing to mutate"),
        (["jaxsim", "--tests", "tests/none"], "without a mutant"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(toy, capsys, words, message):
    assert mutants.main(words, toy) == 2
    error = capsys.readouterr().err
    assert error.startswith("mutants: ") and error.count("\n") == 1 and message in error


def test_tests_that_fail_anyway_are_no_killers(toy, capsys):
    (toy / "tests" / "jaxsim" / "test_toy.py").write_text(TEST + "    assert False\n")
    assert mutants.main(["jaxsim", "--number", "1"], toy) == 2
    assert "1 failed" in capsys.readouterr().err
