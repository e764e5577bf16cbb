"""The folder of compiled programs: where it is, what is kept, and what is no reason to fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation import cli
from evaluation.cache import folder

pytestmark = pytest.mark.optimised

RUN = """
import sys
from evaluation import cli
sys.exit(cli.main(sys.argv[1:]))
"""
TASK = ["evaluate", "random", "--task", "CartPole", "--episodes", "64"]


def command(*words, **variables):
    environment = {k: v for k, v in os.environ.items() if k != folder.JAX_FOLDER} | variables
    return subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({folder.VARIABLE: "off"}, None),
        ({folder.VARIABLE: " OFF "}, None),
        ({folder.VARIABLE: "/a"}, Path("/a")),
        ({folder.VARIABLE: "/a", folder.JAX_FOLDER: "/b"}, Path("/a")),
        ({folder.JAX_FOLDER: "/b"}, Path("/b")),
        ({folder.JAX_FOLDER: "~/b"}, Path.home() / "b"),
        ({folder.JAX_FOLDER: "gs://bucket/b"}, "gs://bucket/b"),
    ],
)
def test_which_folder(environment, expected):
    assert folder.folder(environment) == expected


def test_the_usual_folder_is_the_users():
    assert folder.folder({}).parent.name == "jaxsim-novelty"


def test_a_process_that_has_imported_jax_keeps_its_options():
    environment = {folder.VARIABLE: "/nowhere"}
    assert folder.use(environment) is None
    assert environment == {folder.VARIABLE: "/nowhere"}


@pytest.mark.parametrize("of_jax", [False, True])
def test_programs_are_kept_as_they_were_traced_too(of_jax, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "jax")
    variable = folder.JAX_FOLDER if of_jax else folder.VARIABLE
    environment = {variable: str(tmp_path)}
    assert folder.use(environment) is None
    assert environment[folder.TRACED_FOLDER] == environment[folder.JAX_FOLDER] == str(tmp_path)
    # If the folder is the user's, so are the options of JAX.
    assert ("JAX_COMPILATION_CACHE_MAX_SIZE" in environment) is not of_jax


@pytest.mark.parametrize("variables", [{folder.VARIABLE: "off"}, {}])
def test_where_nothing_shall_be_kept_jax_keeps_nothing_either(variables, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    environment = {folder.JAX_FOLDER: "/b", folder.TRACED_FOLDER: "/b", **variables}
    if variables:
        assert folder.use(environment) is None
    else:
        folder.keep_nothing(environment)
    assert environment == variables


@pytest.mark.parametrize("variable", [folder.VARIABLE, folder.JAX_FOLDER])
def test_at_an_address_jax_keeps_what_it_compiles_and_nothing_is_local(variable, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    environment = {variable: "gs://bucket/b", folder.TRACED_FOLDER: "/b"}
    assert folder.use(environment) is None
    assert environment == {variable: "gs://bucket/b", folder.JAX_FOLDER: "gs://bucket/b"}
    shown = command("cache", JAXSIM_CACHE="gs://bucket/b")
    assert shown.returncode == 2 and "gs://bucket/b is not on this machine" in shown.stderr


def test_a_folder_of_jax_below_the_home_leaves_its_options(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    environment = {folder.JAX_FOLDER: "~/nowhere"}
    assert folder.use(environment) is None
    place = str(Path.home() / "nowhere")
    assert environment == {folder.JAX_FOLDER: place, folder.TRACED_FOLDER: place}


def test_a_second_run_finds_what_the_first_compiled_and_rubbish_is_no_error(tmp_path):
    place = tmp_path / "compiled"
    results = [tmp_path / f"{name}.json" for name in ("first", "second", "third")]
    first = command(*TASK, "--json", str(results[0]), JAXSIM_CACHE=str(place))
    assert first.returncode == 0, first.stderr

    def written():
        """When each was; a small program may join late, if it takes long on a busy machine."""
        return {path.name: path.stat().st_mtime_ns for path in place.glob("*-cache")}

    kept = written()
    assert kept
    second = command(*TASK, "--json", str(results[1]), JAXSIM_CACHE=str(place))
    assert second.returncode == 0, second.stderr
    assert results[1].read_bytes() == results[0].read_bytes()
    assert kept.items() <= written().items()
    for path in place.glob("*-cache"):
        path.write_bytes(b"rubbish")
    third = command(*TASK, "--json", str(results[2]), JAXSIM_CACHE=str(place))
    assert third.returncode == 0, third.stderr
    assert results[2].read_bytes() == results[0].read_bytes()
    shown = command("cache", JAXSIM_CACHE=str(place))
    compiled = [name for name in written() if not name.startswith(folder.TRACED)]
    assert compiled
    assert shown.stdout.startswith(f"{len(compiled)} programs, ")
    cleared = command("cache", "--clear", JAXSIM_CACHE=str(place))
    assert "removed from" in cleared.stdout
    assert not list(place.glob("*-cache"))


def test_nothing_is_kept_where_nothing_shall_be(tmp_path):
    places = {folder.VARIABLE: tmp_path / "compiled", folder.JAX_FOLDER: tmp_path / "of jax"}
    process = command("--no-cache", *TASK, **{name: str(path) for name, path in places.items()})
    assert process.returncode == 0, process.stderr
    assert list(tmp_path.iterdir()) == []
    assert command("cache", JAXSIM_CACHE="off").stdout == "nothing is kept: $JAXSIM_CACHE is off\n"


def test_a_folder_that_is_a_file_is_a_warning(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    process = command(*TASK, JAXSIM_CACHE=str(file / "compiled"))
    assert process.returncode == 0, process.stderr
    assert "warning: compiled programs are not kept: " in process.stderr
    assert str(file) in process.stderr


def test_halves_of_entries_are_removed_once_they_are_old(tmp_path):
    names = ("a-cache", "b-atime", "c-cache", "c-atime", ".traced-d-cache-1-2", "other")
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    assert folder.mend(tmp_path) == 0
    for name in names:
        os.utime(tmp_path / name, (1, 1))
    assert folder.mend(tmp_path) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"c-cache", "c-atime", "other"}


def test_only_programs_are_cleared(tmp_path):
    for name in ("a-cache", "a-atime", "traced-b-cache", "traced-b-atime", "mine.txt"):
        (tmp_path / name).write_bytes(b"12")
    assert folder.clear(tmp_path) == (1, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_in_process(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path))
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out == f"0 programs, 0.0 MiB, in {tmp_path}\n"
