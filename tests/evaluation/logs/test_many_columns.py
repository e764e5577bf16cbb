"""Logs of many columns are read in linear time: work is counted, seconds are not."""

import sys
from pathlib import Path

import pytest

from evaluation.l2m.l2metrics.reading import read_log_columns
from evaluation.logs import read_log
from evaluation.logs.problems import Problems
from evaluation.logs.tables import check_header
from tests.evaluation.l2m.log_files import COLUMNS, good_rows, write_log

FEW, MANY = 200, 800
LINEAR = 1.1 * MANY / FEW


def log_of(path, extras, rest=""):
    names = [f"further{number}" for number in range(extras)]
    content = [row | dict.fromkeys(names, "1.5") for row in good_rows()]
    folder = write_log(path, content, (*COLUMNS, *names))
    if rest:
        table = next(folder.rglob("data-log.tsv"))
        table.write_bytes(table.read_bytes().replace(b"\n", rest.encode()))
    return folder


def calls_of(function, *arguments):
    """Functions of Python and of C that are called on the way."""
    number = 0

    def count(frame, event, argument):
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.parametrize("ends", ["", "\r\n"], ids=["columns", "rows"])
@pytest.mark.parametrize("read", [read_log_columns, read_log])
def test_the_number_of_calls_grows_with_the_number_of_columns(tmp_path, read, ends):
    few, many = (log_of(tmp_path / str(n), n, ends) for n in (FEW, MANY))
    read(few)  # what is found out once
    assert calls_of(read, many) <= LINEAR * calls_of(read, few)


class Counted(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("twice", [False, True])
def test_headers_are_compared_in_linear_time(twice):
    def comparisons(extras):
        header = [Counted(f"further{number}") for number in range(extras)]
        header += [Counted(name) for name in COLUMNS]
        header += [Counted("further0")] * twice
        problems = Problems()
        Counted.compared = 0
        assert check_header(Path("t"), header, tuple(COLUMNS), problems) == (not twice)
        if twice:
            assert [p.message for p in problems.problems] == [
                "the column 'further0' is there twice"
            ]
        return Counted.compared

    assert comparisons(MANY) <= LINEAR * comparisons(FEW)
