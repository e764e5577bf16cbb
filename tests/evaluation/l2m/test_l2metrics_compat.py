"""Compat mode against the real l2metrics 3.1: its recorded results, number for number.

Two sets: what it made of the logs of `random_logs` (recorded here), and, where the complete
recordings are found, of a shipped example and of small lifetimes of special shape.
"""

import csv
import gzip
import json
import math
from pathlib import Path

import pyarrow.feather
import pytest

from evaluation import cli
from evaluation.l2m.l2metrics.outputs import write_feather
from evaluation.l2m.l2metrics.pipeline import store_experts
from tests.conftest import SHARED, TEST_DATA
from tests.evaluation.l2m.random_logs import write_case

TOLERANCE = 1e-8
COMPAT = ["--compat", "l2metrics-3.1", "--no-plot"]
TEXT = ("block_type", "block_subtype", "task_name", "task_params", "run_id")
OURS = ("why", "warnings")  # keys that the peer has not
RECORDED = json.loads(gzip.decompress((TEST_DATA / "l2m" / "l2metrics_3_1.json.gz").read_bytes()))
COMMANDS = SHARED / "l2m" / "commands.tsv"


def shared_calls():
    """(case, setting) of every recorded call whose results lie beside the checkout."""
    if not COMMANDS.exists():
        return []
    with COMMANDS.open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [
        (row["case"], row["setting"], row["command"])
        for row in rows
        if (SHARED / "l2m" / "out" / row["case"] / row["setting"] / "out_metrics.json").exists()
    ]


def differences(ours, theirs, path=""):
    """Places where two JSON values differ by more than the tolerance; NaN is null."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        names = (set(ours) | set(theirs)) - set(OURS)
        return [
            difference
            for name in sorted(names)
            for difference in (
                differences(ours[name], theirs[name], f"{path}/{name}")
                if name in ours and name in theirs
                else [f"{path}/{name} is in one only"]
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [
            difference for i, pair in pairs for difference in differences(*pair, f"{path}[{i}]")
        ]
    if isinstance(ours, float | int) and isinstance(theirs, float | int):
        same = math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return [] if same else [f"{path}: {ours} and {theirs}"]
    return [] if ours == theirs else [f"{path}: {ours!r} and {theirs!r}"]


def read_json(path):
    """JSON with the bare NaN of the peer as null; Infinity as null too."""
    return json.loads(path.read_text(), parse_constant=lambda _: None)


def table(path):
    with path.open(newline="") as stream:
        return numbers(csv.DictReader(stream, delimiter="\t"))


def numbers(rows):
    return [
        {
            name: cell if name in TEXT else float(cell) if cell else None
            for name, cell in row.items()
        }
        for row in rows
    ]


@pytest.mark.parametrize("seed", RECORDED)
def test_random_lifetimes(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("L2DATA", str(tmp_path / "l2data"))
    expected = iter(RECORDED[seed])
    for words in write_case(tmp_path, int(seed)):
        assert cli.main(["l2metrics", *words, "-O", "out", "-o", "out", *COMPAT]) == 0
        if "-s" in words:
            continue
        theirs = next(expected)
        assert words == theirs["arguments"]
        ours = read_json(Path("out/out_metrics.json"))
        ours = {name: part for name, part in ours.items() if name in theirs["metrics"]}
        assert differences(ours, theirs["metrics"]) == []
        regimes = table(Path("out/out_regime.tsv"))
        assert list(regimes[0]) == list(theirs["regimes"][0])
        assert differences(regimes, numbers(theirs["regimes"])) == []
    assert next(expected, None) is None


@pytest.mark.skipif(not COMMANDS.exists(), reason=f"no recorded results in {SHARED / 'l2m'}")
@pytest.mark.parametrize(("case", "setting", "command"), shared_calls())
def test_recorded_calls(case, setting, command, tmp_path, monkeypatch, experts):
    monkeypatch.chdir(SHARED / "l2m")
    monkeypatch.setenv("L2DATA", str(experts(case)))
    words = command.split()[3:]
    words[words.index("-O") + 1] = str(tmp_path)
    assert cli.main(["l2metrics", *words, *COMPAT]) == 0
    theirs = SHARED / "l2m" / "out" / case / setting
    ours = read_json(tmp_path / "out_metrics.json")
    expected = read_json(theirs / "out_metrics.json")
    assert differences(ours, expected) == []
    assert differences(table(tmp_path / "out_regime.tsv"), table(theirs / "out_regime.tsv")) == []
    settings = read_json(tmp_path / "out_settings.json")
    recorded = read_json(theirs / "out_settings.json")
    assert differences({name: settings[name] for name in recorded}, recorded) == []
    if (theirs / "out_data.tsv").exists():
        columns = pyarrow.feather.read_table(tmp_path / "out_data.feather")
        rows = table(theirs / "out_data.tsv")
        written = columns.select(list(rows[0])).to_pylist()
        assert differences(written, [{**row} for row in rows]) == []


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    """Store of the experts of a case, filled by the recorded commands."""
    stores = {}

    def fill(case):
        if case not in stores:
            stores[case] = tmp_path_factory.mktemp(case)
            with COMMANDS.open(newline="") as stream:
                rows = list(csv.DictReader(stream, delimiter="\t"))
            for row in rows:
                if row["case"] == case and row["setting"] == "ste-store":
                    log, mode = (row["command"].split()[place] for place in (4, 6))
                    store = stores[case] / "taskinfo"
                    assert not store_experts([SHARED / "l2m" / log], mode == "a", store)[1]
        return stores[case]

    return fill


def test_recorded_calls_are_there():
    """The recordings cover what they are for."""
    words = [word for calls in RECORDED.values() for call in calls for word in call["arguments"]]
    assert {"-G", "-w", "time", "median", "agnostic", "run", "none", "hanning"} <= set(words)
    kinds = {row["block_subtype"] for calls in RECORDED.values() for row in calls[0]["regimes"]}
    assert kinds == {"wake", "sleep"}


def test_feather_is_read_by_arrow(tmp_path):
    columns = pyarrow.table({"a": [1, 2], "b": ["x", "y"]})
    write_feather(tmp_path / "t.feather", columns)
    assert pyarrow.feather.read_table(tmp_path / "t.feather").equals(columns)
