"""Logs of 2019: a real one read and written back byte by byte, errors with lines, live logging."""

import csv
import dataclasses
import json
import threading
from datetime import datetime

import numpy as np
import pytest

from evaluation.logs import LogError, home
from evaluation.logs.learnkit import (
    LearnkitRow,
    RunLogger,
    check_log,
    episodes,
    read_log,
    write_log,
)
from tests.conftest import SHARED

FOLDER = SHARED / "l2m" / "learnkit_2020"
REAL = FOLDER / "syllabus_ANT_harder-1582671493-285338"
needs_real_log = pytest.mark.skipif(not REAL.is_dir(), reason=f"no recorded log at {REAL}")
START = datetime(2019, 12, 4, 10, 30, 25, 723_000)


def row(number=0, **changes):
    """A sub-episode; four a block, two an episode, the second block a test of another worker."""
    block = number // 4
    fields = {
        "phase": f"{block // 2 + 1}.{'test' if block % 2 else 'train'}",
        "class_name": f"kit_pole{block % 2}",
        "params": {"pole/length": 1.5, "note": 'two "words"'},
        "block": block,
        "task": number // 2,
        "measures": {"reward": number / 7},
        "sub_task": number % 2,
        "worker": f"env-{number // 2 % 2}",
        "seed": 10 + number,
        "steps": number,
        "timestamp": datetime(2019, 12, 4, 10, 31, number),
        "extras": {"agent_pos": f"[{number} 1]", "action_space": "Discrete(5)"},
    }
    return LearnkitRow(**(fields | changes))


def rows(count=12, **changes):
    return [row(number, **changes) for number in range(count)]


def write(base, log_rows=None, **changes):
    arguments = {
        "name": "syllabus_CL",
        "rows": rows() if log_rows is None else log_rows,
        "start": START,
    }
    return write_log(base, **(arguments | changes))


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# A real log ---------------------------------------------------------------------------------------


@needs_real_log
def test_the_blocks_of_a_real_log_are_those_that_its_tools_found():
    log = read_log(REAL)
    with (FOLDER / "out" / "v030_CL" / "phase_info.tsv").open(newline="") as stream:
        expected = list(csv.DictReader(stream, delimiter="\t"))
    assert len(log.blocks) == len(expected) == 12
    for block, line in zip(log.blocks, expected, strict=True):
        assert (block.phase, block.phase_type) == (line["phase"], line["phase_type"])
        assert (block.phase_number, block.block) == (int(line["phase_number"]), int(line["block"]))
        assert block.class_name == line["task_name"]
        assert block.params == json.loads(line["param_set"])


@needs_real_log
def test_the_episodes_of_a_real_log_give_the_recorded_numbers():
    """Sub-episodes averaged, then a moving average of 11 and its maximum."""
    averaged = episodes(read_log(REAL))
    expected = json.loads((FOLDER / "out" / "seed_formula.json").read_text())
    assert len(expected) == 12
    for block, numbers in expected.items():
        value = averaged.value[averaged.block == int(block)]
        assert len(value) == numbers["n_episodes"]
        smooth = np.convolve(value, np.full(11, 1 / 11), "valid")
        assert smooth.max() == pytest.approx(numbers["saturation_value"], rel=1e-12)


@pytest.mark.requirement(103)
@needs_real_log
def test_rewriting_a_real_log_gives_its_bytes(tmp_path):
    log = read_log(REAL)
    syllabus = (REAL / "syllabus_ANT_harder.json").read_text()
    copy = write_log(tmp_path, "syllabus_ANT_harder", log.rows, syllabus=syllabus)
    assert contents(copy) == contents(REAL)
    assert log.warnings == ()
    assert len(log.rows) == 3994 and len(contents(copy)) == 49


@needs_real_log
def test_a_real_log_without_the_sub_episodes_that_were_cut_off():
    log = read_log(REAL)
    cut = [r for r in log.rows if r.termination_status == "NOT_DONE"]
    everything, done = episodes(log), episodes(log, not_done="drop")
    assert 0 < len(cut) < 200
    assert everything.sub_episodes.sum() - done.sub_episodes.sum() == len(cut)
    assert done.complete.all() and not everything.complete.all()
    assert everything.steps.sum() == sum(r.steps for r in log.rows)


# Writing ------------------------------------------------------------------------------------------


@pytest.mark.requirement(98, 103)
def test_the_bytes_of_a_small_log(tmp_path):
    path = write(tmp_path, rows(8), syllabus="{}\n")
    assert path == tmp_path / f"syllabus_CL-{round(START.timestamp() * 1000)}"
    files = contents(path)
    assert sorted(files) == sorted(
        [
            "syllabus_CL.json",
            *(
                f"worker-env-{worker}/{phase}/{name}"
                for worker in "01"
                for phase in ("1-1_train/kit_pole0", "2-1_test/kit_pole1")
                for name in ("block-report.tsv", "data-log.tsv")
            ),
        ]
    )
    assert files["worker-env-1/2-1_test/kit_pole1/block-report.tsv"].decode() == (
        "phase\tworker\tclass_name\tblock\tparams\n"
        '1.test\tenv-1\tkit_pole1\t1\t"{""pole/length"": 1.5, ""note"": '
        '""two \\""words\\""""}"\n'
    )
    lines = files["worker-env-1/2-1_test/kit_pole1/data-log.tsv"].decode().split("\n")
    assert lines == [
        "timestamp\tphase\tworker\tclass_name\tblock\tseed\ttask\tsub_task\tsteps"
        "\ttermination_status\tsource\tagent_pos\treward\taction_space",
        "20191204T103106.000000\t1.test\tenv-1\tkit_pole1\t1\t16\t3\t0\t6\tDONE\tNEXT"
        "\t[6 1]\t0.8571428571428571\tDiscrete(5)",
        "20191204T103107.000000\t1.test\tenv-1\tkit_pole1\t1\t17\t3\t1\t7\tDONE\tNEXT"
        "\t[7 1]\t1.0\tDiscrete(5)",
        "",
    ]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    assert contents(write(tmp_path / "a")) == contents(write(tmp_path / "b"))


def test_what_is_written_is_read_back(tmp_path):
    log_rows = rows()
    log_rows[3] = dataclasses.replace(
        log_rows[3], termination_status="NOT_DONE", source="RESET", seed=None, steps=None
    )
    log = read_log(write(tmp_path, log_rows))
    assert list(log.rows) == log_rows
    assert (log.warnings, log.measures) == ((), ("reward",))
    assert [(b.block, b.phase_number, b.phase_type) for b in log.blocks] == [
        (0, 1, "train"),
        (1, 1, "test"),
        (2, 2, "train"),
    ]


def test_scores_of_classification(tmp_path):
    log_rows = [
        row(
            number,
            measures={"score_error": score, "score_top5": score / 2},
            source="GET_LABELS" if number % 2 else "NEXT",
        )
        for number, score in enumerate([float("nan"), 0.5, float("nan"), 0.25])
    ]
    log = read_log(write(tmp_path, log_rows))
    assert (log.measures, log.warnings) == (("score_error", "score_top5"), ())
    averaged = episodes(log, "score_top5")
    np.testing.assert_array_equal(averaged.value, [0.25, 0.125])
    np.testing.assert_array_equal(averaged.sub_episodes, [2, 2])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"phase": "1.Train"}, "row 5, column 'phase': must be <number from 1>.train"),
        ({"phase": "0.test"}, "row 5, column 'phase': must be"),
        ({"worker": "../x"}, "row 5, column 'worker': must be letters"),
        ({"worker": ".."}, "row 5, column 'worker': must be letters"),
        ({"class_name": "a/b"}, "row 5, column 'class_name': must be letters"),
        ({"class_name": "other"}, "row 5, column 'block': is 1, which is 1.test kit_pole1"),
        ({"params": {}}, "row 5, column 'block': is 1, which is"),
        ({"params": []}, "row 5, column 'params': must be a mapping"),
        ({"params": {"x": float("nan")}}, "row 5, column 'params': must be strict JSON"),
        ({"block": 0}, "row 5, column 'block': must not fall from 1 to 0"),
        ({"block": -1}, "row 5, column 'block': must be 0 or more"),
        ({"task": True}, "row 5, column 'task': must be an integer"),
        ({"task": 1}, "row 5, column 'task': must not fall from 2 to 1"),
        ({"steps": 1.5}, "row 5, column 'steps': must be an integer"),
        ({"termination_status": "done"}, "row 5, column 'termination_status': must be one of"),
        ({"source": "?"}, "row 5, column 'source': must be one of NEXT, RESET, GET_LABELS"),
        ({"timestamp": "now"}, "row 5, column 'timestamp': must be a datetime"),
        ({"measures": {}}, "row 5, column 'reward': is missing"),
        ({"measures": {"speed": 1}}, "row 5, column 'speed': a measure is 'reward' or starts"),
        ({"measures": {"reward": "1"}}, "row 5, column 'reward': must be a number"),
        ({"measures": {"reward": float("inf")}}, "row 5, column 'reward': must be finite"),
        ({"extras": {}}, "row 5, column 'action_space, agent_pos': every row must have"),
        ({"extras": {"seed": 1}}, "row 5, column 'seed': an extra column needs"),
        (
            {"extras": {"agent_pos": [1], "action_space": ""}},
            "row 5, column 'agent_pos': must be text or a number",
        ),
    ],
)
def test_a_bad_row_is_refused_and_nothing_is_left(changes, words, tmp_path):
    log_rows = rows()
    log_rows[5] = dataclasses.replace(log_rows[5], **changes)
    with pytest.raises(ValueError, match=words):
        write(tmp_path, log_rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": []}, "at least one sub-episode"),
        ({"name": "a/b"}, "name of a run"),
        ({"name": ".a"}, "not begin with"),
        ({"name": ""}, "name of a run"),
    ],
)
def test_bad_arguments_say_what_to_change(changes, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        write(tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_never_overwritten(tmp_path):
    before = contents(write(tmp_path))
    with pytest.raises(FileExistsError, match="another start time"):
        write(tmp_path, rows(1))
    assert contents(next(tmp_path.iterdir())) == before


# Reading what others wrote ------------------------------------------------------------------------

TABLE = "worker-env-0/1-1_train/kit_pole0/data-log.tsv"
REPORT = "worker-env-0/1-1_train/kit_pole0/block-report.tsv"


def damage(path, file, old, new):
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "words"),
    [
        (TABLE, "\tkit_pole0\t0\t", "\tkit_pole0\t-1\t", 2, "block must be an integer from 0"),
        (TABLE, "\t11\t0\t1\t", "\t11\tx\t1\t", 3, "task must be an integer from 0, not 'x'"),
        (TABLE, "\t11\t0\t1\t", "\t11\t0\t\t", 3, "sub_task must be an integer from 0, not ''"),
        (TABLE, "\t11\t0\t1\t", "\t1.5\t0\t1\t", 3, "seed must be an integer"),
        (TABLE, "1.train", "1.Train", 2, "phase must be <number from 1>.train"),
        (TABLE, "\tenv-0\t", "\tenv-1\t", 2, "worker is 'env-1' in the directory 'worker-env-0'"),
        (TABLE, "\tenv-0\t", "\te/0\t", 2, "worker must be letters"),
        (TABLE, "DONE", "FINISHED", 2, "termination_status must be DONE or NOT_DONE"),
        (TABLE, "20191204T1031", "20191304T1031", 2, "timestamp must look like"),
        (TABLE, "\t0.0\tDiscrete", "\tmuch\tDiscrete", 2, "reward must be a number, not 'much'"),
        (TABLE, "\tDiscrete(5)", "", 2, "has 13 fields under 14 columns"),
        (TABLE, "reward", "return", 1, "no column 'reward' and none that starts with 'score'"),
        (TABLE, "class_name", "class", 1, "the column 'class_name' is missing"),
        (TABLE, "agent_pos", "seed", 1, "the column 'seed' is there twice"),
        (TABLE, "\tkit_pole0\t0\t10", "\tkit_pole0\t7\t10", 2, "no block-report.tsv of worker"),
        (REPORT, '"{', '"[', 2, "params must be JSON"),
        (REPORT, "params", "parameters", 1, "the column 'params' is missing"),
        (REPORT, "\t0\t", "\tzero\t", 2, "block must be an integer from 0, not 'zero'"),
    ],
)
def test_every_error_has_file_and_line(file, old, new, line, words, tmp_path):
    path = damage(write(tmp_path), file, old, new)
    problems = [p for p in check_log(path) if words in p.message]
    assert [(p.path, p.line, p.severity) for p in problems] == [(path / file, line, "error")]
    with pytest.raises(LogError, match=f"{file.rpartition('/')[2]}:{line}: error"):
        read_log(path)


def test_all_problems_are_reported_at_once(tmp_path):
    path = damage(write(tmp_path), TABLE, "1.train", "first")
    damage(path, TABLE, "20191204T103101", "yesterday")
    damage(path, REPORT.replace("env-0", "env-1"), '"{', '"[')
    errors = [p for p in check_log(path) if p.severity == "error"]
    assert len({(p.path, p.line) for p in errors}) == 3


def test_a_block_that_no_report_names_is_an_error_once(tmp_path):
    path = write(tmp_path)
    for report in path.rglob("block-report.tsv"):
        report.write_text(report.read_text().splitlines(keepends=True)[0])
    errors = [p for p in check_log(path) if "no block-report.tsv of worker" in p.message]
    assert len(errors) == len({p.message for p in errors}) == 6  # three blocks of two workers


def test_a_report_that_contradicts_another_worker_is_an_error(tmp_path):
    path = damage(write(tmp_path), REPORT, "1.5", "2.5")
    errors = [p for p in check_log(path) if p.severity == "error"]
    assert len(errors) == 1  # told once, though workers take turns
    assert "the params of block 0 is" in errors[0].message
    assert (errors[0].path.parents[2].name, errors[0].line) == ("worker-env-1", 2)


def test_a_report_with_two_lines_for_one_block_is_an_error(tmp_path):
    path = write(tmp_path)
    line = (path / REPORT).read_text().splitlines()[1]
    with (path / REPORT).open("a") as stream:
        stream.write(f"{line}\n{line.replace('1.5', '2.5')}\n")
    errors = [p for p in check_log(path) if p.severity == "error"]
    assert [(p.path, p.line) for p in errors] == [(path / REPORT, 4)]


def test_block_numbers_that_fall_are_an_error(tmp_path):
    path = write(tmp_path)
    table = path / TABLE.replace("1-1", "3-2")
    table.write_text(table.read_text().replace("\t18\t4\t", "\t18\t0\t"))
    assert any("block falls from 2 to 0 at episode 0" in p.message for p in check_log(path))


def test_a_sub_episode_that_is_there_twice_is_a_warning(tmp_path):
    path = damage(write(tmp_path), TABLE, "\t11\t0\t1\t", "\t11\t0\t0\t")
    assert [p.message for p in check_log(path)] == ["sub-episode 0 of episode 0 is there twice"]


def test_columns_that_may_be_left_out(tmp_path):
    path = tmp_path / "run" / "env-0" / "1_train" / "pole"
    path.mkdir(parents=True)
    (path / "block-report.tsv").write_text(
        "params\tblock\tclass_name\tworker\tphase\n\t0\tpole\tenv-0\t1.train\n"
    )
    (path / "data-log.tsv").write_text(
        "reward\ttask\tblock\tclass_name\tworker\tphase\n2\t5\t0\tpole\tenv-0\t1.train\n"
    )
    log = read_log(tmp_path / "run")
    assert log.rows == (LearnkitRow("1.train", "pole", {}, 0, 5, {"reward": 2}),)
    assert [p.message[:31] for p in log.warnings] == [
        "the column 'sub_task' is missin",
        "the column 'termination_status'",
        "the column 'source' is missing ",
    ]


def test_directories_that_hold_no_log(tmp_path):
    assert "no such directory" in check_log(tmp_path / "x")[0].message
    (tmp_path / "worker-env-0").mkdir()
    messages = [p.message for p in check_log(tmp_path)]
    assert messages == ["holds no block-report.tsv", "holds no data-log.tsv"]


def test_files_that_cannot_be_read(tmp_path):
    path = write(tmp_path)
    (path / TABLE).write_bytes(b"")
    assert any("is empty" in p.message for p in check_log(path))
    (path / TABLE).write_bytes(b"phase\n\xff\n")
    assert any((p.line, p.message[:12]) == (2, "is not UTF-8") for p in check_log(path))
    (path / TABLE).write_text("phase\t" + "x" * 200_000)
    assert any("field larger than field limit" in p.message for p in check_log(path))
    (path / TABLE).unlink()
    (path / TABLE).symlink_to(path / "nowhere")
    assert any("is missing" in p.message for p in check_log(path))


# Episodes -----------------------------------------------------------------------------------------


@pytest.mark.requirement(99)
def test_sub_episodes_are_averaged_and_policies_differ(tmp_path):
    log_rows = rows(6)
    log_rows[1] = dataclasses.replace(log_rows[1], termination_status="NOT_DONE")
    log_rows[4] = dataclasses.replace(log_rows[4], termination_status="NOT_DONE")
    log_rows[5] = dataclasses.replace(log_rows[5], termination_status="NOT_DONE")
    log = read_log(write(tmp_path, log_rows))
    keep, drop = episodes(log), episodes(log, not_done="drop")
    np.testing.assert_allclose(keep.value, np.array([0.5, 2.5, 4.5]) / 7, rtol=1e-15)
    assert list(keep.complete) == [False, True, False]
    assert list(keep.block) == [0, 0, 1]
    assert list(keep.steps) == [1, 5, 9]
    np.testing.assert_allclose(drop.value, np.array([0, 2.5]) / 7, rtol=1e-15)
    assert list(drop.episode) == [0, 1]
    assert list(drop.sub_episodes) == [1, 2]


def test_what_is_not_measured_is_left_out_of_the_mean(tmp_path):
    log_rows = rows(4)
    for number in (0, 2, 3):
        log_rows[number] = dataclasses.replace(log_rows[number], measures={"reward": float("nan")})
    averaged = episodes(read_log(write(tmp_path, log_rows)))
    np.testing.assert_array_equal(averaged.value, [1 / 7, np.nan])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"measure": "score"}, "measure is 'score'; .* has reward"),
        ({"not_done": "ignore"}, "must be keep or drop"),
    ],
)
def test_bad_requests_for_episodes(arguments, words, tmp_path):
    log = read_log(write(tmp_path))
    with pytest.raises(ValueError, match=words):
        episodes(log, **arguments)


# Logging while playing ----------------------------------------------------------------------------


def test_a_run_is_logged_while_it_is_played(tmp_path, monkeypatch):
    monkeypatch.setenv("L2DATA", str(tmp_path))
    with RunLogger("pole", start=START) as logger:
        assert logger.directory.parent == home.logs_folder()
        logger.log("1.train", "Pole", {"width": 1}, reward=1.0, steps=3)
        logger.log("1.train", "Pole", {"width": 1}, reward=2.0, termination_status="NOT_DONE")
        assert len(read_log(logger.directory).rows) == 2  # on disk already
        logger.log("1.train", "Pole", {"width": 2}, reward=3.0)
        logger.log("1.test", "Pole", {"width": 2}, reward=4.0, worker="b")
        logger.log("1.test", "Pole", {"width": 2}, reward=5.0, task=3, sub_task=1)
    log = read_log(home.find_log(logger.directory.name))
    assert [(r.block, r.task, r.sub_task) for r in log.rows] == [
        (0, 0, 0),
        (0, 1, 0),
        (1, 2, 0),
        (2, 3, 0),
        (2, 3, 1),
    ]
    assert [r.measures["reward"] for r in log.rows] == [1, 2, 3, 4, 5]
    assert log.warnings == ()
    with pytest.raises(ValueError, match="the log is closed"):
        logger.log("1.test", "Pole", reward=1.0)


def test_a_block_goes_on_while_its_parameters_are_the_same(tmp_path):
    """Their order does not matter, and a dict that its caller changes is not that of the row."""
    changing = {"a": 1}
    with RunLogger("pole", tmp_path) as logger:
        for params in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, {"a": 1.0}, changing):
            logger.log("1.train", "Pole", params, reward=1.0)
        changing["a"] = 2
        logger.log("1.train", "Pole", changing, reward=1.0)
    log_rows = read_log(logger.directory).rows
    assert [(r.block, r.params["a"]) for r in log_rows] == [
        (0, 1),
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 2),
    ]


def test_a_refused_row_leaves_the_log_as_it_was(tmp_path):
    with RunLogger("pole", tmp_path) as logger:
        logger.log("1.train", "Pole", reward=1.0)
        for words, arguments in (
            ("must not fall", {"phase": "1.train", "reward": 1.0, "task": 0, "block": -1}),
            ("column 'reward'", {"phase": "1.train"}),
            ("column 'phase'", {"phase": "x", "reward": 1.0}),
        ):
            arguments = {"class_name": "Pole", **arguments}
            with pytest.raises(ValueError, match=words if "fall" not in words else "0 or more"):
                logger.log(**arguments)
        logger.log("1.train", "Pole", reward=2.0)
    assert [r.task for r in read_log(logger.directory).rows] == [0, 1]


def test_threads_may_share_a_logger(tmp_path):
    with RunLogger("pole", tmp_path) as logger:

        def play(worker):
            for _ in range(25):
                logger.log("1.train", "Pole", reward=1.0, worker=f"env-{worker}")

        threads = [threading.Thread(target=play, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    log = read_log(logger.directory)
    assert [r.task for r in log.rows] == list(range(100))
    assert log.warnings == ()
