"""Which directory a name means, which log is the newest, and what `evaluation.info` says."""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from evaluation import __version__, info
from evaluation.logs import home

MILLISECONDS, SECONDS = 1_575_473_425_723, 1_582_671_493


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("L2DATA", str(tmp_path / "data"))
    logs = tmp_path / "data" / "logs"
    logs.mkdir(parents=True)
    return logs


@pytest.mark.requirement(101)
def test_without_the_variable_it_is_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("L2DATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert home.logs_folder() == tmp_path / "l2data" / "logs"
    assert not home.data_folder().exists()
    assert home.newest_log() is None


def test_a_bare_name_is_looked_up_and_a_path_is_taken_as_it_is(folder, tmp_path, monkeypatch):
    (folder / "run-1").mkdir()
    (tmp_path / "here" / "run-1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert home.find_log("run-1") == folder / "run-1"
    assert home.find_log("here/run-1") == Path("here/run-1")
    monkeypatch.chdir(tmp_path / "here")
    assert home.find_log("run-1") == Path("run-1")


@pytest.mark.parametrize("name", ["no-such", "logs/run-1", "../logs", "file.txt"])
def test_what_is_no_log_directory_says_where_was_looked(folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").touch()
    with pytest.raises(NotADirectoryError, match=name.replace(".", r"\.")):
        home.find_log(name)


def test_the_newest_log_is_the_one_with_the_latest_time_in_its_name(folder):
    for name in (f"a_CL-{MILLISECONDS}", f"b-{SECONDS}-285338", f"c-{SECONDS}-9", "plain"):
        (folder / name).mkdir()
    (folder / f"file-{SECONDS + 10**6}-0").touch()
    (folder / f".x-{SECONDS + 10**6}-0.partial").mkdir()
    os.utime(folder / "plain", (1e9, 1e9))
    logs = home.log_folders()
    assert [log.path.name[0] for log in logs] == ["c", "b", "a", "p"]
    assert logs[2].created == datetime.fromtimestamp(MILLISECONDS / 1000)
    assert logs[1].created == datetime.fromtimestamp(SECONDS + 0.285338)
    assert logs[3].created == datetime.fromtimestamp(1e9)


@pytest.mark.requirement(102)
def test_info_prints_version_folders_and_the_newest_log(folder, capsys):
    (folder / f"syllabus_CL-{MILLISECONDS}").mkdir()
    assert info.main([]) == 0
    created = datetime.fromtimestamp(MILLISECONDS // 1000).isoformat()
    assert capsys.readouterr().out.splitlines() == [
        f"jaxsim-novelty v{__version__}",
        "L2 data folder:",
        f"  {folder.parent}",
        "L2 logs folder:",
        f"  {folder}",
        "Most recent log folder:",
        f"  {folder}/syllabus_CL-{MILLISECONDS}",
        f"  created on {created}",
    ]


@pytest.mark.requirement(102)
def test_info_gets_one_path(folder, capsys):
    assert info.main(["-get", "lastlog"]) == 1
    assert "no log in" in capsys.readouterr().err
    (folder / "x").mkdir()
    for name, path in (
        ("logdir", folder),
        ("datadir", folder.parent),
        ("lastlog", folder / "x"),
    ):
        for option in ("-get", "--get"):
            assert info.main([option, name]) == 0
            assert capsys.readouterr().out == f"{path}\n"


def test_info_without_logs(folder, capsys):
    folder.rmdir()
    assert info.main([]) == 0
    assert capsys.readouterr().out.endswith("Most recent log folder:\n  none yet\n")


def test_info_is_a_program(folder):
    command = [sys.executable, "-m", "evaluation.info", "-get", "logdir"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{folder}\n", "")
