"""The attacks of `make siege`, for a moment and with a seed."""

import itertools
import random

import pytest

from benchmarks.siege import Blow, __main__
from benchmarks.siege.tampered import _spoilt, tampered


def test_changed_files_of_every_kind_are_refused_or_read():
    found = list(itertools.islice(tampered(7), 140))
    assert [blow.failure for blow in found if blow.failure] == []
    kinds = {blow.what for blow in found}
    assert len(kinds) == 7
    for kind in kinds:
        assert any(b.came == "refused in one line" for b in found if b.what == kind), kind


def test_a_try_follows_from_the_seed():
    content = bytes(range(256)) * 4

    def spoilt(seed):
        return [_spoilt(content, random.Random(f"{seed} {number}")) for number in range(20)]

    assert spoilt(1) == spoilt(1)
    assert spoilt(1) != spoilt(2)


@pytest.mark.parametrize("failure", ["", "try 3: something"])
def test_the_page_and_the_exit_code_tell_of_failures(monkeypatch, capsys, failure):
    def attack(seed):
        while True:
            yield Blow("a thing", 5, "failed" if failure else "held", failure)

    monkeypatch.setattr(__main__, "ATTACKS", {"kills": attack})
    assert __main__.main(["--minutes", "0"]) == bool(failure)
    text = capsys.readouterr().out
    assert ("**0 failures.**" in text) != bool(failure)
    assert "| a thing | 5 |" in text
    assert ("* a thing: try 3: something" in text) == bool(failure)
