"""The attacks of `make siege`, for a moment and with a seed."""

import itertools
import json
import os
import random

import pytest

from benchmarks.siege import Blow, __main__, calls, disks, runs
from benchmarks.siege.tampered import _corrupted, _is_same_content, tampered
from tools import siege_page


def test_changed_files_of_every_kind_are_refused_or_read():
    blows = list(itertools.islice(tampered(7), 140))
    assert [blow.failure for blow in blows if blow.failure] == []
    kinds = {blow.what for blow in blows}
    assert len(kinds) == 7
    for kind in kinds:
        assert any(b.outcome == "refused in one line" for b in blows if b.what == kind), kind


def test_a_try_follows_from_the_seed():
    content = bytes(range(256)) * 4

    def corrupted(seed):
        return [_corrupted(content, random.Random(f"{seed} {number}")) for number in range(20)]

    assert corrupted(1) == corrupted(1)
    assert corrupted(1) != corrupted(2)


def test_another_layout_of_json_is_no_change():
    good = b'{"a": [1, 2]}'
    assert _is_same_content(good, b'{ "a": [1,2]}')
    assert not _is_same_content(good, b'{"a": [1, 3]}')
    assert not _is_same_content(good, b'{"a": [true, 2]}')
    assert not _is_same_content(good, good[:-1])
    assert _is_same_content(b"\x00", b"\x00")
    assert not _is_same_content(b"\x00", b"\x01")


@pytest.mark.parametrize("failure", ["", "try 3: something"])
def test_results_and_the_exit_code_tell_of_failures(monkeypatch, capsys, failure):
    def attack(seed, first):
        while True:
            yield Blow("a thing", 5, "failed" if failure else "held", failure)

    monkeypatch.setattr(__main__, "ATTACKS", {"kills": attack})
    assert __main__.main(["--minutes", "0"]) == bool(failure)
    results = json.loads(capsys.readouterr().out)
    outcome = "failed" if failure else "held"
    assert results["rows"] == [{"what": "a thing", "times": 5, "outcomes": {outcome: 1}}]
    islands = siege_page.islands_of(results)
    assert islands["failures"] == f"**{int(bool(failure))} failures**"
    assert f"| a thing | 5 | {outcome} (1) |" in islands["attacks"]
    assert list(islands["list"]) == (["* a thing: try 3: something"] if failure else [])


def test_a_try_is_repeated_by_its_number():
    later = list(itertools.islice(tampered(3, 2), 3))
    assert later == list(itertools.islice(tampered(3), 5))[2:]


def test_a_siege_goes_on_from_its_state_to_the_number_asked_for(monkeypatch, capsys, tmp_path):
    tried = []

    def attack(seed, first):
        for number in itertools.count(first):
            tried.append(number)
            yield Blow("a thing", 5, "held")

    monkeypatch.setattr(__main__, "ATTACKS", {"kills": attack})
    words = ["--minutes", "0", "--state", str(tmp_path / "state"), "--kills"]
    for kills, numbers, total in (("12", [0, 1, 2], 15), ("22", [3, 4], 25), ("22", [], 25)):
        tried.clear()
        assert __main__.main([*words, kills]) == 0
        assert tried == numbers
        assert json.loads(capsys.readouterr().out)["rows"][0]["times"] == total
    with pytest.raises(SystemExit) as ended:
        __main__.main([*words, "30", "--seed", "1"])
    assert ended.value.code == 2
    assert "is of seed 0, not 1; name another file" in capsys.readouterr().err
    (tmp_path / "state").write_text("[]\n")
    with pytest.raises(SystemExit):
        __main__.main([*words, "30"])
    assert "is not the state of a siege; name another file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["kills", "calls"])
def test_an_interrupted_siege_lasts_its_minutes_in_all(name, monkeypatch, capsys, tmp_path):
    now, tried, stop = [0.0], [], [3]

    def attack(seed, first):
        for number in itertools.count(first):
            if number == stop[0]:
                raise KeyboardInterrupt
            now[0] += 60.0
            tried.append(number)
            yield Blow("a thing", 1, "held")

    monkeypatch.setattr(__main__, "ATTACKS", {name: attack})
    monkeypatch.setattr(__main__.time, "monotonic", lambda: now[0])
    words = ["--minutes", "5", "--state", str(tmp_path / "state")]
    with pytest.raises(KeyboardInterrupt):
        __main__.main(words)
    stop[0] = 100
    for total in (5, 5):
        assert __main__.main(words) == 0
        assert json.loads(capsys.readouterr().out)["rows"][0]["times"] == total
    assert tried == [0, 1, 2, 3, 4]


def test_what_cannot_be_attacked_is_a_failure(monkeypatch, capsys):
    def attack(seed, first):
        raise ValueError("not attacked, it ends with 2")
        yield

    monkeypatch.setattr(__main__, "ATTACKS", {"kills": attack})
    assert __main__.main(["--minutes", "0"]) == 1
    failures = json.loads(capsys.readouterr().out)["failures"]
    assert failures == ["what is attacked: not attacked, it ends with 2"]


# Runs that write one file, so that they take a second ---------------------------------------------

CHEAP = ("sailon generate",)


@pytest.mark.skipif(not calls.can_trace(), reason="there is no strace that may trace")
def test_runs_are_killed_inside_system_calls():
    attack = calls.calls(1, 0, CHEAP)
    blow = next(attack)
    attack.close()
    assert (blow.failure, blow.outcome) == ("", "the same files in the end")
    assert blow.count > 0


def test_without_strace_a_word_says_so(monkeypatch):
    monkeypatch.setattr(calls.shutil, "which", lambda name: None)
    assert [b.outcome for b in calls.calls(0)] == ["left out, there is no `strace` that may trace"]


def test_runs_meet_a_full_disk():
    attack = disks.full(0, 0, CHEAP, mounted=False)
    blow = next(attack)
    attack.close()
    assert (blow.failure, blow.outcome) == ("", "said so, and the same files with room")


def test_folders_become_read_only():
    attack = disks.read_only(0, 0, CHEAP)
    blow = next(attack)
    attack.close()
    assert blow.failure == ""
    mounted = disks.can_mount() or os.geteuid()
    assert blow.outcome.startswith("said so" if mounted else "left out")


@pytest.mark.parametrize(
    ("code", "stderr", "wrong"),
    [
        (0, "", ""),
        (2, "jaxsim: no space left\n", ""),
        (2, "", "exit code 2 without a word"),
        (-9, "", "exit code -9"),
        (1, "Traceback (most recent call last):\n  ...\nKeyError: 3\n", "a traceback: KeyError: 3"),
    ],
)
def test_how_an_attacked_run_may_end(code, stderr, wrong):
    assert runs.complaint(runs.ProcessExit(code, stderr, 1.0)) == wrong


def test_files_that_differ_are_named():
    assert runs.difference({"a": b"1"}, {"a": b"1"}) == ""
    assert runs.difference({"a": b"1", "c": b""}, {"a": b"2", "b": b""}) == "a, b, c differ"
