"""Beside the real l2logger 1.8.2 and l2metrics 3.1.0.

The golden log was written by l2logger 1.8.2 (MIT) from `RECORDS`. The tests marked `peer` run the
real tools in an environment of their own, whose interpreter JAXSIM_L2LOGGER_PYTHON names::

    python3.11 -m venv peer
    peer/bin/pip install l2logger==1.8.2 l2metrics==3.1.0 'numpy<2' 'pandas<2' 'pyarrow<18'
    JAXSIM_L2LOGGER_PYTHON=peer/bin/python python -m pytest tests/evaluation/logs/test_peer.py
"""

import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest

from evaluation import cli
from evaluation.logs import DataLogger, read_columns, read_log, validate_log, write_log
from tests.conftest import TEST_DATA
from tests.evaluation import toy
from tests.evaluation.toy import repeat

GOLDEN = TEST_DATA / "l2logger" / "golden"
PEER = os.environ.get("JAXSIM_L2LOGGER_PYTHON", "")
LOGGER_INFO = {"metrics_columns": ["zeta", "Alpha"], "note": "é"}
SCENARIO = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
RECORDS = [
    {
        "block_num": number // 4,
        "exp_num": number,
        "worker_id": f"w-{number % 2}.a",
        "block_type": "test" if number // 4 % 2 else "train",
        "block_subtype": "sleep" if number == 9 else "wake",
        "task_name": ("Pole_1", "two words")[number % 2],
        "task_params": ({}, {"pole/length": 1.5, "text": 'a "b"\té', "none": None, "l": [1]})[
            number // 2 % 2
        ],
        "exp_status": "incomplete" if number == 5 else "complete",
        "zeta": number,
        "Alpha": (-1) ** number * number * 10.0 ** (3 * number - 15),
        "mid": ("plain", 'quoted "x"', "tab\there", "two\nlines", "", "é")[number % 6],
        "Z": [number, 4],
        "empty": None,
    }
    for number in range(12)
]

peer = [
    pytest.mark.peer,
    pytest.mark.skipif(not PEER, reason="JAXSIM_L2LOGGER_PYTHON names no interpreter"),
]


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in Path(directory).rglob("*")
        if path.is_file()
    }


def untimed(directory):
    """Files without the moments in them, which stand in the ninth field of every row."""
    files = contents(directory)
    for row in read_log(directory).rows:
        when = f"{row.timestamp:%Y%m%dT%H%M%S.%f}".encode()
        files = {name: content.replace(when, b"<time>") for name, content in files.items()}
    return files


def log_with_ours(base):
    with DataLogger(str(base), "golden", LOGGER_INFO, SCENARIO) as logger:
        for record in RECORDS:
            logger.log_record(record)
    return logger.scenario_dir


def odd_log(base):
    """Tasks without a variant, blocks of one type in a row, no scenario: valid, and warned of."""
    changes = {"task_params": {}, "exp_status": "complete", "block_subtype": "wake"}
    with DataLogger(str(base), "odd", LOGGER_INFO, {}) as logger:
        for record in RECORDS:
            number = record["exp_num"]
            kind = "test" if number > 7 else "train"
            task = f"Task{number // 2 % 2}"
            logger.log_record(record | changes | {"block_type": kind, "task_name": task})
    return logger.scenario_dir


# The golden log -----------------------------------------------------------------------------------


def test_our_logger_gives_the_bytes_of_the_golden_log(tmp_path):
    ours = untimed(log_with_ours(tmp_path))
    assert len(ours) == 2 + 6
    assert ours == untimed(GOLDEN)


def test_rewriting_the_golden_log_gives_its_bytes(tmp_path):
    log = read_log(GOLDEN)
    copy = write_log(tmp_path, "copy", log.rows, log.metrics_columns, log.scenario_info)
    golden = contents(GOLDEN)
    del golden["logger_info.json"]  # holds a note that a log of ours has no place for
    assert {name: text for name, text in contents(copy).items() if name in golden} == golden


def test_the_golden_log_holds_the_records():
    columns = read_columns(GOLDEN)
    assert columns.exp_num.tolist() == list(range(12))
    assert [json.loads(text) for text in columns.task_params.array()] == [
        record["task_params"] for record in RECORDS
    ]
    for name in ("zeta", "Alpha"):
        assert columns.metrics[name].tolist() == [record[name] for record in RECORDS]
    assert list(columns.extras["mid"].array()) == [record["mid"] for record in RECORDS]
    assert columns.complete.tolist() == [number != 5 for number in range(12)]


# The real tools -----------------------------------------------------------------------------------


def run_peer(arguments, home, text=None):
    """Run the other interpreter without this package on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [str(Path(PEER).absolute()), *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env=environment | {"L2DATA": str(home)},
    )


def warnings(done):
    """Lines of both streams: l2metrics logs to its standard output."""
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines if "WARNING" in line or "Warning" in line]


def peer_log(records, base):
    job = {
        "base": str(base),
        "logger_info": LOGGER_INFO,
        "scenario_info": SCENARIO,
        "records": records,
    }
    program = Path(__file__).with_name("peer_program.py")
    done = run_peer([program], base, json.dumps(job))
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A log that `jaxsim run` has written."""
    folder = tmp_path_factory.mktemp("run")
    train, test = [repeat(20, wheel=5)], [repeat(6, wheel=5), repeat(6)]
    text = toy.syllabus(("1.train", train), ("1.test", test), ("2.train", [repeat(20)]))
    (folder / "toy.json").write_text(text)
    with toy.registered():
        words = ["--agent", "random", "--lifetimes", "2", "--log-lifetime", "1", "--quiet"]
        out = str(folder / "out")
        assert cli.main(["run", str(folder / "toy.json"), *words, "--out", out]) == 0
    return next((folder / "out" / "logs").iterdir())


class TestPeer:
    pytestmark = peer

    def test_the_golden_log_is_the_one_that_l2logger_writes(self, tmp_path):
        assert untimed(peer_log(RECORDS, tmp_path)) == untimed(GOLDEN)

    @pytest.mark.parametrize("value", [0.1, 1e22, 1e16, 123456789012345680.0, 1e-5, 5e-324, 3])
    def test_numbers_are_written_alike(self, value, tmp_path):
        record = {**RECORDS[0], "zeta": value, "Alpha": -value}
        theirs = peer_log([record], tmp_path / "theirs")
        with DataLogger(str(tmp_path / "ours"), "golden", LOGGER_INFO, SCENARIO) as logger:
            logger.log_record(record)
        assert untimed(theirs) == untimed(logger.scenario_dir)

    def test_l2logger_finds_a_run_of_ours_valid_without_a_warning(self, run, tmp_path, capsys):
        done = run_peer(["-m", "l2logger.validate", run], tmp_path)
        assert (done.returncode, warnings(done)) == (0, [])
        assert "Log format validation passed!" in done.stdout
        assert validate_log(run) == []
        assert cli.main(["l2m", "validate", str(run)]) == 0
        lengths = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[3:]]
        rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
        assert [row[-2].strip() for row in rows[1:]] == lengths

    def test_aggregates_agree(self, run, tmp_path):
        """l2logger reads numbers with a parser that may be off in the last digits."""
        theirs = ["-m", "l2logger.aggregate", run, "-o", tmp_path / "theirs"]
        assert run_peer(theirs, tmp_path).returncode == 0
        assert cli.main(["l2m", "aggregate", str(run), "-o", str(tmp_path / "ours")]) == 0
        tables = [
            [line.split("\t") for line in (tmp_path / name).read_text().splitlines()]
            for name in ("theirs.tsv", "ours.tsv")
        ]
        assert tables[0][0] == tables[1][0]
        assert len(tables[0]) == len(tables[1]) == 53
        for expected, ours in zip(tables[0][1:], tables[1][1:], strict=True):
            assert ours[:10] == expected[:10]
            for cell, other in zip(ours[10:], expected[10:], strict=True):
                assert math.isclose(float(cell), float(other), rel_tol=1e-14)

    @pytest.mark.parametrize("content", ["run", "odd"])
    def test_our_l2metrics_warns_of_what_the_real_one_warns_of(
        self, content, run, tmp_path, monkeypatch, capsys
    ):
        log, measure = (run, "performance") if content == "run" else (odd_log(tmp_path), "zeta")
        words = ["-l", str(log), "-p", measure, "--no-plot"]
        # It cannot save whole numbers: they are of a type that its JSON does not take.
        unsaved = ["--no-save", "--no-save-settings"]
        done = run_peer(["-m", "l2metrics", *words, *unsaved], tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Lifetime Metrics:" in done.stdout
        theirs = [line.split(" | ")[-1] for line in warnings(done)]
        assert theirs
        monkeypatch.setenv("L2DATA", str(tmp_path))
        ours = ["--compat", "l2metrics-3.1", "-O", str(tmp_path / "ours"), "-o", "ours"]
        assert cli.main(["l2metrics", *words, *ours]) == 0
        text = capsys.readouterr().err
        why = json.loads((tmp_path / "ours" / "ours_metrics.json").read_text())["why"]
        assert [line for line in theirs if not is_reported(line, text, why)] == []


REASONED = {
    "Recovery Time": "perf_recovery",
    "Performance Recovery": "perf_recovery",
    "Forward Transfer": "forward_transfer_ratio",
    "Backward Transfer": "backward_transfer_ratio",
    "Performance relative to STE": "ste_rel_perf",
    "Sample Efficiency": "sample_efficiency",
}
"""Key of the metric that l2metrics calls by another name."""

OUR_WORDING = {
    "Block types are not alternating": "block types do not alternate",
    "Task names do not follow expected format": "is not of the form <task>_<variant>",
    "Complexity not defined": "'complexity' is missing",
    "Difficulty not defined": "'difficulty' is missing",
    "Scenario type not defined": "'scenario_type' is missing",
}
"""Beginning of a warning of l2metrics, and what ours says."""


def is_reported(line, text, why):
    """Whether a warning of the real l2metrics stands in our standard error or in our JSON."""
    missing = re.match(r"Cannot compute (.+?)(?: for task (\S+))? - ", line)
    if missing is None:
        return any(line.startswith(begin) and words in text for begin, words in OUR_WORDING.items())
    metric, task = missing.groups()
    reasons = why["task_metrics"][task] if task else why
    return bool(reasons.get(REASONED[metric]))
