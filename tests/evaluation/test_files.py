import errno
import json
import os
import stat

import pytest

from evaluation import files
from evaluation.files import (
    check_output_directory,
    check_room,
    results,
    write_json,
    write_whole,
)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


# write_whole --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "stored"), [(b"\x00\xff", b"\x00\xff"), ("ä\n", b"\xc3\xa4\n")]
)
def test_bytes_and_text(tmp_path, content, stored):
    write_whole(tmp_path / "a.bin", content)
    assert (tmp_path / "a.bin").read_bytes() == stored
    assert names(tmp_path) == ["a.bin"]


def test_missing_directories_are_made_and_old_content_is_replaced(tmp_path):
    path = tmp_path / "one" / "two" / "file"
    write_whole(path, "a much longer text")
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert names(path.parent) == ["file"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", "x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "error", [OSError("disk full"), KeyboardInterrupt()], ids=["disk", "ctrl-c"]
)
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, step, error
):
    path = tmp_path / "file"
    write_whole(path, "old")

    def fail(*arguments):
        # The new content is under way by now, and never under the final name.
        assert len(names(tmp_path)) == 2
        assert path.read_text() == "old"
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_whole(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "\ud800")
    assert names(tmp_path) == []


# write_json ---------------------------------------------------------------------------------------


def test_json(tmp_path):
    write_json(tmp_path / "a.json", {"b": [1, None, 0.5]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"b": [1, None, 0.5]}
    assert (tmp_path / "a.json").read_text().endswith("}\n")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_is_strict(tmp_path, number):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"a": number})
    assert (tmp_path / "a.json").read_text() == "1\n"
    assert names(tmp_path) == ["a.json"]


# check_output_directory ---------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [False, True])
def test_directories_that_are_fine(tmp_path, overwrite, monkeypatch):
    check_output_directory(tmp_path, overwrite)
    check_output_directory(tmp_path / "a" / "b" / "c", overwrite)
    assert names(tmp_path) == []
    monkeypatch.chdir(tmp_path)
    for relative in (".", "new", "new/deeper"):
        check_output_directory(type(tmp_path)(relative), overwrite)
    assert names(tmp_path) == []


def test_directory_with_something_in_it(tmp_path):
    (tmp_path / ".hidden").touch()
    with pytest.raises(ValueError, match="is not empty; choose another or pass --overwrite"):
        check_output_directory(tmp_path, overwrite=False)
    check_output_directory(tmp_path, overwrite=True)
    assert names(tmp_path) == [".hidden"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_file_instead_of_a_directory(tmp_path, overwrite):
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(ValueError, match=r"output .*file is a file; name a directory"):
        check_output_directory(file, overwrite)
    with pytest.raises(ValueError, match=r"output directory .*below.*file is a file"):
        check_output_directory(file / "below" / "it", overwrite)
    assert file.read_text() == "precious"


def forbid_writing(monkeypatch, directory):
    """Root may write anywhere, so the answer of the system is made up."""
    real = os.access

    def access(path, mode, **options):
        return real(path, mode, **options) and not (mode & os.W_OK and os.fspath(path) == directory)

    monkeypatch.setattr(os, "access", access)


@pytest.mark.parametrize("below", ["", "new", "new/deeper"])
def test_directory_that_cannot_be_written(tmp_path, monkeypatch, below):
    forbid_writing(monkeypatch, str(tmp_path))
    with pytest.raises(ValueError, match="cannot be written"):
        check_output_directory(tmp_path / below, overwrite=False)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_directory_that_really_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ValueError, match="cannot be written"):
            check_output_directory(tmp_path / "new", overwrite=False)
    finally:
        tmp_path.chmod(0o700)


def test_link_that_leads_nowhere(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "absent")
    with pytest.raises(ValueError, match="link"):
        check_output_directory(link, overwrite=True)


# results ------------------------------------------------------------------------------------------


def write_results(out, text, stop=None):
    with results(out, "last.json") as folder:
        write_whole(folder / "a.txt", text)
        write_whole(folder / "logs" / text / "log", text)
        if stop:
            raise stop
        write_whole(folder / "last.json", text)


def test_results_replace_those_that_were_there_and_join_their_folders(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("stays")
    write_results(tmp_path / "out", "one")
    write_results(tmp_path / "out", "two")
    assert names(tmp_path / "out") == ["a.txt", "last.json", "logs", "mine"]
    assert names(tmp_path / "out" / "logs") == ["one", "two"]
    assert (tmp_path / "out" / "last.json").read_text() == "two"


@pytest.mark.parametrize("stop", [ValueError("no"), KeyboardInterrupt()])
def test_results_that_are_not_finished_change_nothing(tmp_path, stop):
    write_results(tmp_path, "one")
    with pytest.raises(type(stop)):
        write_results(tmp_path, "two", stop)
    assert names(tmp_path) == ["a.txt", "last.json", "logs"]
    assert (tmp_path / "a.txt").read_text() == "one"


def test_the_marker_comes_last_and_goes_first(tmp_path, monkeypatch):
    write_results(tmp_path, "one")
    moved = files._move

    def killed(path, place):
        assert not (tmp_path / "last.json").exists()
        if path.name == "logs":
            raise KeyboardInterrupt
        moved(path, place)

    monkeypatch.setattr(files, "_move", killed)
    with pytest.raises(KeyboardInterrupt):
        write_results(tmp_path, "two")
    assert names(tmp_path) == ["a.txt", "logs"]


def test_a_full_disk_names_the_place_and_what_to_do(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="make some, then give the same command again") as caught:
        write_results(tmp_path / "out", "one", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert caught.value.filename == str(tmp_path / "out")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="make some") as caught:
        write_whole(tmp_path / "file", "x")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "file"))
    assert names(tmp_path) == ["out"]


def test_what_cannot_fit_is_refused_before(tmp_path):
    check_room(tmp_path / "not" / "there", 1, "results")
    with pytest.raises(OSError, match="no space left for results of 9,") as caught:
        check_room(tmp_path, 9 * 10**18, "results")
    assert caught.value.errno == errno.ENOSPC
