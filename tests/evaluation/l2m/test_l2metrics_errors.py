"""The 22 kinds of bad input: each has a name and a non-zero exit, and none stops a batch."""

import json
from pathlib import Path

import pytest

from evaluation import cli
from evaluation.l2m.l2metrics.errors import ErrorKind
from tests.evaluation.l2m.log_files import COLUMNS, LOGGER, SCENARIO, good_rows, rows, write_log

SHORT = [(0, "train", "a_1", [1.0, 2.0, 3.0]), (1, "test", "a_1", [1.0, 2.0])]


def changed(place, **values):
    content = rows(SHORT)
    content[place] |= values
    return content


def one_row(path):
    write_log(path, rows([(0, "train", "a_1", [1.0])]))


def all_nan(path):
    write_log(path, [row | {"reward": "nan"} for row in rows(SHORT)])


def no_datalog(path):
    write_log(path, [])


def no_logger_info(path):
    write_log(path, rows(SHORT), logger=None)


def no_scenario_info(path):
    write_log(path, rows(SHORT), scenario=None)


def bad_block_type(path):
    write_log(path, changed(1, block_type="learn"))


def bad_exp_status(path):
    write_log(path, changed(1, exp_status="finished"))


def bad_task_params(path):
    write_log(path, changed(1, task_params="{oops"))


def bad_timestamp(path):
    write_log(path, changed(1, timestamp="20261301T000000.000000"))


def missing_column(path):
    write_log(path, rows(SHORT), [name for name in COLUMNS if name != "exp_status"])


def decreasing_block_num(path):
    write_log(path, changed(1, block_num=9))


def inf_reward(path):
    write_log(path, changed(1, reward="inf"))


def noname(path):
    write_log(path, [row | {"task_name": "plain"} for row in rows(SHORT)])


def right(path):
    write_log(path, good_rows())


def missing_dir(path):
    pass


def partial_range(path):
    right(path)
    (path.parent / "range.json").write_text('{"taska_1": {"min": 0, "max": 1}}')


def nokey_range(path):
    right(path)
    (path.parent / "range.json").write_text('{"taska_1": {"min": 0}, "taskb_1": {"max": 1}}')


CASES = {
    one_row: (ErrorKind.ONE_ROW, []),
    all_nan: (ErrorKind.ALL_NAN, []),
    no_datalog: (ErrorKind.NO_DATA_LOG, []),
    no_logger_info: (ErrorKind.NO_LOGGER_INFO, []),
    no_scenario_info: (ErrorKind.NO_SCENARIO_INFO, []),
    bad_block_type: (ErrorKind.BAD_BLOCK_TYPE, []),
    bad_exp_status: (ErrorKind.BAD_EXP_STATUS, []),
    bad_task_params: (ErrorKind.BAD_TASK_PARAMS, []),
    bad_timestamp: (ErrorKind.BAD_TIMESTAMP, []),
    missing_column: (ErrorKind.MISSING_COLUMN, []),
    decreasing_block_num: (ErrorKind.BLOCK_ORDER, []),
    inf_reward: (ErrorKind.NOT_FINITE, []),
    noname: (ErrorKind.NO_VARIANT, []),
    missing_dir: (ErrorKind.NO_DIRECTORY, []),
    partial_range: (ErrorKind.RANGE_INCOMPLETE, ["-d", "logs/range.json"]),
    nokey_range: (ErrorKind.RANGE_KEYS, ["-d", "logs/range.json"]),
}
ARGUMENTS = {
    "wrong_perf_measure": (right, ErrorKind.UNKNOWN_MEASURE, ["-p", "nope"]),
    "window_1": (right, ErrorKind.WINDOW, ["-w", "1"]),
    "window_0": (right, ErrorKind.WINDOW, ["-w", "0"]),
    "window_neg": (right, ErrorKind.WINDOW, ["-w", "-3"]),
    "ste_one_row": (one_row, ErrorKind.STE_ONE_ROW, ["-s", "w"]),
    "ste_store_multitask": (right, ErrorKind.STE_TASKS, ["-s", "w"]),
}
ALL = {make.__name__: (make, *expected) for make, expected in CASES.items()} | ARGUMENTS
# Found in the table of one log, so the message says where.
WITH_LINE = {
    "bad_block_type",
    "bad_exp_status",
    "bad_task_params",
    "bad_timestamp",
    "missing_column",
    "decreasing_block_num",
}


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("L2DATA", str(tmp_path / "l2data"))


def test_there_are_22_kinds():
    assert len(ALL) == 22


def test_values_whose_sums_overflow_are_refused(capsys):
    write_log(Path("logs/run").absolute(), changed(1, reward="-1.5e300"))
    assert cli.main(["l2metrics", "-l", "logs/run", "-O", "out"]) == 2
    assert "has a too large (> 1e+300) 'reward', one of 1 such rows" in capsys.readouterr().err


@pytest.mark.parametrize("case", ALL)
def test_every_bad_input_has_a_name_and_a_nonzero_exit(case, capsys):
    make, kind, flags = ALL[case]
    make(Path("logs/run").absolute())
    assert cli.main(["l2metrics", "-l", "logs/run", "-O", "out", *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"jaxsim: {kind}: ") and error.count("\n") == 1
    assert not list(Path().glob("out/*_metrics.json"))
    assert ("data-log.tsv:" in error) == (case in WITH_LINE)


PER_RUN = [make for make in CASES if make not in (missing_dir, partial_range, nokey_range)]


def test_bad_runs_never_stop_the_others(capsys):
    """Every kind of bad run at once, between two right ones: the right ones are as if alone."""
    for make in PER_RUN:
        make(Path("logs").absolute() / make.__name__)
    for name, seed in (("aaa", 0), ("zzz", 1)):
        write_log(Path("logs").absolute() / name, good_rows(seed))
        write_log(Path("alone").absolute() / name, good_rows(seed))
    assert cli.main(["l2metrics", "-l", "logs", "-R", "-O", "out"]) == 2
    errors = json.loads(Path("out/ll_metrics_errors.json").read_text())
    kinds = {Path(path).name: entry["error"] for path, entry in errors.items()}
    assert kinds == {make.__name__: CASES[make][0].value for make in PER_RUN}
    printed = capsys.readouterr().err
    assert all(f"jaxsim: {kind}: " in printed for kind in kinds.values())
    assert cli.main(["l2metrics", "-l", "alone", "-R", "-O", "out-alone"]) == 0
    assert (
        Path("out/ll_metrics.json").read_bytes() == Path("out-alone/ll_metrics.json").read_bytes()
    )
    assert [run["run_id"] for run in json.loads(Path("out/ll_metrics.json").read_text())] == [
        "aaa",
        "zzz",
    ]


def test_a_bad_expert_does_not_keep_others_from_the_store(capsys):
    write_log(Path("logs/expert").absolute(), rows([(0, "train", "a_1", [1.0, 2.0])]))
    one_row(Path("logs/short").absolute())
    right(Path("logs/two_tasks").absolute())
    assert cli.main(["l2metrics", "-l", "logs", "-R", "-s", "w"]) == 2
    printed = capsys.readouterr()
    assert "single-task expert of a_1" in printed.out
    assert f"{ErrorKind.STE_ONE_ROW}: " in printed.err and f"{ErrorKind.STE_TASKS}: " in printed.err


def test_a_batch_without_logs_is_an_error(capsys):
    right(Path("logs/run").absolute())
    assert cli.main(["l2metrics", "-l", "logs/run", "-R"]) == 2
    assert "leave out -R" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({**LOGGER, "metrics_columns": []}, ErrorKind.BAD_INFO),
        ({"metrics_columns": "x"}, ErrorKind.BAD_INFO),
    ],
)
def test_a_bad_info_file_is_named(info, kind, capsys):
    write_log(Path("run").absolute(), rows(SHORT), logger=info)
    assert cli.main(["l2metrics", "-l", "run"]) == 2
    assert f"{kind}: " in capsys.readouterr().err


def test_a_damaged_expert_file_is_named(capsys):
    right(Path("run").absolute())
    Path("l2data/taskinfo").mkdir(parents=True)
    Path("l2data/taskinfo/taska_1.npz").write_bytes(b"not a zip file")
    assert cli.main(["l2metrics", "-l", "run"]) == 2
    assert f"{ErrorKind.STE_FILE}: " in capsys.readouterr().err


def test_unusual_scenarios_only_warn(capsys):
    write_log(Path("run").absolute(), good_rows(), scenario={**SCENARIO, "difficulty": "9-odd"})
    assert cli.main(["l2metrics", "-l", "run", "-O", "out"]) == 0
    assert "warning: scenario_info.json: 'difficulty' is '9-odd'" in capsys.readouterr().err
    assert json.loads(Path("out/run_metrics.json").read_text())["difficulty"] == "9-odd"
