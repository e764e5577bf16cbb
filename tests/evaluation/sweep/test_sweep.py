"""A sweep from the file to the table: the same bytes whoever plays which unit when."""

import errno
import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jaxsim
from evaluation import agents, cli, evaluate, sweep
from evaluation.checkpoints.stopping import STOPPED, Stop
from evaluation.sweep import (
    handlers,
    interface,
    notes,
    planning,
    plans,
    playing,
    progress,
    store,
)
from evaluation.sweep.bases import evaluate as base
from tests.evaluation.sweep import small

assert evaluate  # the package whose numbers are compared


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The sweep as one unit a program, played in one process."""
    folder = tmp_path_factory.mktemp("whole")
    file = folder / "small.toml"
    file.write_text(small.TOML)
    assert small.sweep("plan", file, "--out", folder / "plan") == 0
    assert small.sweep("run", folder / "plan", "--quiet", "--threads", 1) == 0
    assert small.sweep("merge", folder / "plan", "--quiet") == 0
    return folder / "plan"


def units_of_a_pack(folder):
    return sweep.plan(small.VALUES, folder, minutes=small.A_PACK)


def test_packs_of_two_programs(whole, capsys):
    plan = plans.load(whole)
    assert (plan.grid.cells, plan.grid.packs, plan.grid.programs, len(plan.units)) == (36, 12, 2, 2)
    table = pq.read_table(whole / "merged" / "rows.parquet")
    assert table.column_names[:4] == ["cell", "pole/length", "agent", "seed"]
    assert table.num_rows == 36 * 16
    assert table["cell"].to_pylist() == [c for c in range(36) for _ in range(16)]
    for number in (0, 17, 35):
        values = plan.grid.cell(number).values
        row = table.filter(np.asarray(table["cell"]) == number).slice(0, 1).to_pylist()[0]
        assert {name: row[name] for name in ("pole/length", "agent", "seed")} == {
            name: values[name] for name in ("pole/length", "agent", "seed")
        }
    assert small.sweep("status", whole) == 0
    assert "2 of 2 units done (100.0%)" in capsys.readouterr().out


@pytest.mark.parametrize("packs", [1, 2])
def test_a_cell_is_that_of_evaluate(packs, tmp_path):
    """Whatever is beside it in its pack."""
    lanes = {1: 32, 2: 1}[packs]
    values = {**small.VALUES, "lanes": lanes, "axes": {"pole/length": [0.5, 1.5]}}
    values["fixed"] = {**values["fixed"], "agent": "random", "seed": 3}
    plan = sweep.plan(values, tmp_path / "plan")
    assert plan.grid.packs == packs
    sweep.run(plan)
    rows = pq.read_table(sweep.merge(plan).folder / "rows.parquet")
    for cell, length in enumerate((0.5, 1.5)):
        env, params = jaxsim.make("CartPole", {"pole/length": length})
        expected = jaxsim.rollout(env, params, agents.get("random"), 16, seed=3)
        cell_rows = rows.filter(np.asarray(rows["cell"]) == cell)
        assert cell_rows["length"].to_pylist() == expected.length.tolist()
    from evaluation.evaluate.job import AgentComparison, run

    job = AgentComparison(("random",), "CartPole", values={"pole/length": 0.5}, episodes=16, seed=3)
    mean = run(job)[0].performance
    first = sweep.results(plan).cells().to_pylist()[0]
    assert (first["metric"], first["value"]) == ("performance", pytest.approx(mean.mean))
    assert (first["low"], first["high"]) == (mean.low, mean.high)


def test_a_program_is_compiled_once_for_all_gravities_and_seeds(tmp_path):
    """Numbers are data: behind the first pack of each program nothing is compiled."""
    axes = {"gravity": {"linear": [2, 20], "count": 20}, "agent": ["nothing", "random"]}
    axes["seed"] = {"integers": [0, 4]}
    plan = sweep.plan({**small.VALUES, "axes": axes}, tmp_path / "plan", minutes=small.A_PACK)
    assert (plan.grid.cells, plan.grid.programs) == (200, 2)
    first = {plan.units[n].group: n for n in reversed(range(len(plan.units)))}
    playing.run(plan, first.values())
    compiled = []

    def listen(event, seconds, **about):
        if "backend_compile" in event:
            compiled.append((event, about))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        assert playing.run(plan).played == len(plan.units) - 2
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled == []


def test_agents_play_the_same_starts(whole):
    """Cells that differ in the agent alone are paired."""
    table = pq.read_table(whole / "merged" / "rows.parquet").to_pandas()
    by_agent = [part.reset_index(drop=True) for _, part in table.groupby("agent", sort=False)]
    for name in ("pole/length", "seed", "episode"):
        assert (by_agent[0][name] == by_agent[1][name]).all()


def test_units_of_other_sizes_in_another_order_are_the_same_bytes(whole, tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    assert len(plan.units) == 12
    for number in (7, 3, 11):
        assert playing.run(plan, [number]).played == 1
    out = playing.run(plan, reversed(range(12)))
    assert (out.played, out.skipped, out.failed) == (9, 3, [])
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole)


def test_an_executor_plays_the_same_bytes(whole, tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    calls = []
    with ThreadPoolExecutor(2) as executor:
        out = sweep.run(plan, executor=executor, progress=lambda *at: calls.append(at))
    assert out.played == 12
    assert calls[-1] == (12, 12)
    assert sweep.results(plan).cells().num_rows == 36 * 5
    assert small.merged(plan.folder) == small.merged(whole)
    again = sweep.run(plan, executor=ThreadPoolExecutor(1))
    assert (again.played, again.skipped) == (0, 12)


def test_tasks_need_no_callbacks(tmp_path, monkeypatch):
    """As submitit's jobs: they can be asked whether they are over, and for their result."""
    plan = units_of_a_pack(tmp_path / "plan")

    class Job:
        def __init__(self, call):
            self.call, self.looks = call, 0

        def done(self):
            self.looks += 1
            return self.looks > 2

        def result(self):
            assert self.looks > 2
            return self.call()

    class Jobs:
        def submit(self, fn, /, *args):
            return Job(lambda: fn(*args))

    naps = []
    monkeypatch.setattr(interface.time, "sleep", naps.append)
    out = sweep.run(plan, executor=Jobs())
    assert (out.played, out.failed, naps) == (12, [], [interface.LOOK] * 2)


def test_a_worker_that_dies_is_replaced(tmp_path):
    """As Dask's and submitit's: the task ends in an exception that is none of the unit's."""
    plan = units_of_a_pack(tmp_path / "plan")

    class Dying(ThreadPoolExecutor):
        calls = 0

        def submit(self, fn, /, *args):
            Dying.calls += 1
            if Dying.calls in (2, 5, 6):
                return super().submit(self.die)
            return super().submit(fn, *args)

        @staticmethod
        def die():
            raise RuntimeError("worker is gone")

    with Dying(2) as executor:
        out = sweep.run(plan, executor=executor)
    assert (out.played, out.failed) == (12, [])


def test_a_damaged_unit_is_played_again(whole, tmp_path, capsys):
    plan = units_of_a_pack(tmp_path / "plan")
    playing.run(plan)
    files = store.finished_one(plan, 4)[0]
    good = files.rows.read_bytes()
    files.rows.write_bytes(good[:-9] + b"123456789")
    with pytest.raises(ValueError, match="unit 4 is damaged"):
        sweep.merge(plan)
    assert small.sweep("run", plan.folder, "--quiet", "--units", "4") == 0
    assert "is damaged; it is played again" in capsys.readouterr().err
    assert files.rows.read_bytes() == good
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole)


def test_halves_that_a_killed_process_left_are_nothing(tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    playing.run(plan, [0])
    files = store.finished_one(plan, 0)[0]
    half = files.rows.with_name(f".{files.rows.name}.abc")
    half.write_bytes(b"half")
    files.rows.unlink()  # killed between the two files
    assert not small.finished(plan)
    assert playing.run(plan, [0]).played == 1
    assert list(small.finished(plan)) == [0]
    os.utime(half, (0, 0))
    playing.run(plan, [0])
    assert not half.exists()


def failing(monkeypatch, cells, times=10**6, error=None):
    """Have packs fail that begin with some cells."""
    real, count = base.BASE.play, {}

    def play(cells_, place):
        first = cells_[0].number
        if first in cells and count.get(first, 0) < times:
            count[first] = count.get(first, 0) + 1
            raise error or ArithmeticError("no\nnumber")
        return real(cells_, place)

    monkeypatch.setattr(base.BASE, "play", play)
    return count


def test_a_unit_that_fails_is_tried_again_and_stops_no_other(whole, tmp_path, monkeypatch, capsys):
    plan = units_of_a_pack(tmp_path / "plan")
    first = [plan.units[number].first for number in (2, 5)]
    with monkeypatch.context() as patch:
        count = failing(patch, first[:1], times=2) | failing(patch, first[1:])
        assert small.sweep("run", plan.folder, "--quiet", "--threads", 1) == 1
    assert count is not None
    output = capsys.readouterr().err
    assert "unit 2, attempt 2: ArithmeticError: no number; trying again" in output
    assert "unit 5 failed, attempts: 3: ArithmeticError: no number" in output
    assert [one.unit for one in notes.failed(plan)] == [5]
    status = sweep.status(plan)
    assert (status.done, len(status.failed)) == (11, 1)
    with pytest.raises(ValueError, match=r"1 of 12 units are missing \(units 5\); play them with"):
        sweep.merge(plan)
    assert small.sweep("run", plan.folder, "--quiet") == 0
    assert not notes.failed(plan)
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole)


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_a_unit_is_tried_as_often_as_asked(tmp_path, monkeypatch, retries):
    """By a process, by Python, and by a task of an executor."""
    plan = units_of_a_pack(tmp_path / "plan")
    count = failing(monkeypatch, [unit.first for unit in plan.units])
    lines = []
    out = playing.run(plan, [2], retries=retries, threads=1, say=lines.append)
    assert [(one.unit, one.attempts) for one in out.failed] == [(2, retries + 1)]
    assert len(lines) == retries + 1
    assert interface.play_unit(str(plan.folder), 3, retries, False)[0] == "failed"
    assert set(count.values()) == {retries + 1}
    assert len(sweep.run(plan, retries=retries).failed) == len(plan.units)
    assert set(count.values()) == {retries + 1, 2 * (retries + 1)}


def test_results_of_units_of_another_size_are_no_results(tmp_path):
    """Where the same folder is planned again with other minutes, units have other cells."""
    packs = units_of_a_pack(tmp_path / "packs")
    larger = sweep.plan(small.VALUES, tmp_path / "units", minutes=60)
    same = units_of_a_pack(tmp_path / "again")
    assert packs.digest == larger.digest and len(packs.units) != len(larger.units)
    assert packs.unit_hash == same.unit_hash != larger.unit_hash
    store.write(packs, packs.units[0], pa.table({"a": [1]}), pa.table({"a": [1]}))
    assert list(small.finished(packs)) == [0]
    assert not small.finished(replace(larger, folder=packs.folder))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_folder_that_takes_nothing_ends_the_run(tmp_path, monkeypatch, capsys, number):
    plan = units_of_a_pack(tmp_path / "plan")
    assert playing.run(plan, [0, 1]).played == 2

    def full(*given):
        raise OSError(number, os.strerror(number), "x")

    monkeypatch.setattr(store, "write_whole", full)
    assert small.sweep("run", plan.folder, "--quiet") in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert sorted(small.finished(plan)) == [0, 1]
    assert not notes.failed(plan)


def test_a_run_that_is_asked_to_end_leaves_whole_units(whole, tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    stop = Stop()

    def progress(done, total):
        stop.by = "SIGUSR2" if done >= 8 else None

    out = playing.run(plan, threads=2, stop=stop, progress=progress)
    assert out.stopped == "SIGUSR2"
    assert 2 <= out.played < 12
    assert len(small.finished(plan)) == out.played
    playing.run(plan)
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole)


def test_signals_end_the_command_between_packs(tmp_path, monkeypatch, capsys):
    plan = units_of_a_pack(tmp_path / "plan")
    real = base.BASE.play

    def play(cells, place):
        if threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGUSR2)
        return real(cells, place)

    monkeypatch.setattr(base.BASE, "play", play)
    assert small.sweep("run", plan.folder, "--quiet", "--threads", 1) == STOPPED
    output = capsys.readouterr().err
    assert "SIGUSR2: ending when the packs at play are over" in output
    assert "11 units are left; the same command plays them" in output
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL
    assert not list((plan.folder / notes.RUNNING).iterdir())


def test_units_that_failed_are_not_among_those_that_are_left(tmp_path, monkeypatch, capsys):
    plan = units_of_a_pack(tmp_path / "plan")  # twelve
    failure = notes.Failure(3, 1, "a reason", "host 1", "2026-01-01T00:00:00")
    outcome = playing.SweepOutcome(4, 5, [failure, failure], "SIGTERM")
    monkeypatch.setattr(playing, "run", lambda *given, **named: outcome)
    assert small.sweep("run", plan.folder, "--quiet") == STOPPED
    assert "SIGTERM: 1 units are left" in capsys.readouterr().err


def test_status_counts_processes_that_are_alive(tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    with notes.Sign(plan) as sign:
        sign.playing(3)
        status = sweep.status(plan)
        assert [(one.pid, one.units) for one in status.running] == [(os.getpid(), (3,))]
        (note,) = (plan.folder / notes.RUNNING).iterdir()
        os.utime(note, (0, 0))
        assert not sweep.status(plan).running
    assert small.sweep("status", plan.folder, "--json") == 0


def test_the_rate_is_that_of_the_newest_units(tmp_path, monkeypatch):
    """Three units have two times between them; while processes play, time without a unit counts."""
    plan = units_of_a_pack(tmp_path / "plan")
    for number, at in ((5, 1000), (0, 1030), (7, 1060)):
        store.write(plan, plan.units[number], pa.table({"a": [1]}), pa.table({"a": [1]}))
        os.utime(small.finished(plan)[number][0].rows, (0, at))

    def at(now):
        state = progress.status(plan, lambda: now)
        assert state.seconds_left == pytest.approx(9 * 60 / state.rate)
        return state.rate

    assert at(1090.0) == at(1000.0) == 2
    monkeypatch.setattr(notes, "running", lambda plan, clock: [None])
    assert (at(1090.0), at(1000.0)) == (pytest.approx(60 * 2 / 90), 2)
    monkeypatch.setattr(progress, "RECENT", 2)
    assert at(1070.0) == pytest.approx(60 / 40)
    assert progress.status(units_of_a_pack(tmp_path / "new")).rate is None
    for number, moment in ((5, 1000.0), (0, 1000.5), (7, 1000.9)):  # written at once
        os.utime(small.finished(plan)[number][0].rows, (0, moment))
    assert progress.status(plan, lambda: 1000.9).rate is None


def test_a_unit_that_was_played_since_has_not_failed(tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    for number in (2, 3):
        notes.note_failure(plan, number, 4, ArithmeticError("no number"))
    store.write(plan, plan.units[3], pa.table({"a": [1]}), pa.table({"a": [1]}))
    state = progress.status(plan)
    assert (state.units, state.done, [one.unit for one in state.failed]) == (12, 1, [2])
    # Nor has one of a plan that takes the place of this one.
    other = sweep.plan(small.VALUES, tmp_path / "plan", force=True)
    assert progress.status(other).failed == ()


def test_every_number_of_a_status_is_printed():
    processes = (notes.RunningProcess("here", 7, (3, 4), 2.0),) * 3
    failures = tuple(notes.Failure(k, 9, f"error {k}", "host 8", "at noon") for k in range(11, 17))
    state = progress.SweepStatus("s", 2000, 1500, 2, processes, failures, 12.34, 3725.0)
    first, doubled, *failed = handlers.status_lines(state)
    assert first == (
        "s: 1,500 of 2,000 units done (75.0%), 6 running in 3 processes, 6 failed, "
        "12.3 units a minute, 1 h 02 min left"
    )
    assert doubled == "2 units have two results; merge names them"
    assert failed == [
        f"unit {k} failed, attempts: 9 (host 8, at noon): error {k}" for k in range(11, 16)
    ]
    early = replace(state, doubled=0, failed=(), rate=None, seconds_left=None)
    (line,) = handlers.status_lines(early)
    assert line.endswith("6 running in 3 processes, 0 failed")
    (line,) = handlers.status_lines(replace(early, seconds_left=59.6))
    assert line.endswith("0 failed, 1 min 00 s left")


def test_every_number_of_a_plan_is_printed():
    about = {
        **{"name": "s", "cells": 1001, "packs": 1002, "units": 1003, "programs": 1004},
        **{"minutes": 2.5, "most_steps": 1005, "most_seconds": 5400, "rows": 1006},
        "bytes": 3 * 2**29,
    }
    assert handlers.summary(SimpleNamespace(manifest=about, folder="sweep")) == [
        "s: 1,001 cells in 1,002 packs, 1,003 units of about 2.5 min, 1,004 programs",
        "at most 1,005 environment steps, 1.50 hours of one process without compiling; 1,006 rows; "
        "1.5 GiB of memory a process",
        "to play it: jaxsim sweep run sweep",
    ]


def test_status_is_printed_until_the_sweep_is_over(tmp_path, monkeypatch, capsys):
    plan = units_of_a_pack(tmp_path / "plan")
    state = progress.status(plan)
    states = [replace(state, done=done) for done in (3, 12)]
    naps = []
    monkeypatch.setattr(progress, "status", lambda plan: states[len(naps)])
    monkeypatch.setattr(handlers.time, "sleep", naps.append)
    assert small.sweep("status", plan.folder, "--watch") == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"small: {done} of 12 units done ({share})"
        for done, share in ((3, "25.0%"), (12, "100.0%"))
    ]
    assert naps == [handlers.AGAIN]


def test_processes_of_this_machine_are_given_all_options(tmp_path, monkeypatch):
    """But for `--units`, which deals the units out among them."""
    plan = units_of_a_pack(tmp_path / "plan")
    started = []

    def start(words, process_group):
        assert process_group == 0  # a terminal's Ctrl-C is passed on, and only once
        code = {"0::3": 0, "1::3": -signal.SIGTERM, "2::3": 1}[words[-1]]
        started.append(words)
        return SimpleNamespace(poll=lambda: code, wait=lambda: code)

    monkeypatch.setattr(handlers.subprocess, "Popen", start)
    command = ["sweep", "run", str(plan.folder)]
    for options in ([], ["--force", "--retries", "5", "--threads", "2"]):
        assert cli.main([*command, "--local", "3", *options]) == 128 + signal.SIGTERM
        same = cli.build_parser().parse_args([*command, "--threads", "1", *options])
        for k, (python, _, program, *words) in enumerate(started):
            assert python == sys.executable and "evaluation.cli" in program
            arguments = vars(cli.build_parser().parse_args(words))
            assert arguments == vars(same) | {"units": f"{k}::3", "quiet": True}
        started.clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3::4", [3, 7, 11]), ("2:5", [2, 3, 4]), ("7", [7]), ("10:", [10, 11]), (":2", [0, 1])],
)
def test_shares(text, expected):
    assert list(playing.share(text, 12)) == expected


@pytest.mark.parametrize("text", ["", "a", "1:2:0", "-1:", "12", "1:2:3:4", "0::-1"])
def test_bad_shares(text):
    with pytest.raises(ValueError, match="units is"):
        playing.share(text, 12)


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("pole/length", "pole/lenght"), "unknown parameter 'pole/lenght'; did you mean"),
        (("pole/length", "difficlty"), "did you mean 'difficulty'"),
        (('"random"', '"pd"'), "agent pd cannot play CartPole: "),
        (("[0.3, 2.0]", "[-1.0, 2.0]"), "'pole/length' is -1.0; it must be"),
        (('"random"', '"rndom"'), "unknown agent 'rndom'; did you mean 'random'"),
        (('["nothing", "random"]', "[]"), "axis 'agent' is empty"),
        (('["nothing", "random"]', "[1, 2]"), "agent is 1; it must be text"),
        (('"evaluate"', '"evaluates"'), "unknown base 'evaluates'; did you mean 'evaluate'"),
        (("CartPole", "CartPol"), "unknown task 'CartPol'"),
        (("= 16", "= 1"), "episodes is 1; it must be from 2"),
        (("[0, 2]", "[-1, 2]"), "seed is -1; it must be from 0"),
        (("[fixed]", "[fixed"), "is not a TOML file"),
        (("count = 6", "count = 9000000"), "are 54,000,000 cells; at most 10,000,000"),
        (('"nothing"', '"missing.py"'), "missing.py cannot be read: No such file"),
    ],
)
def test_bad_files_are_one_line_and_nothing_is_written(tmp_path, capsys, change, words):
    file = tmp_path / "bad.toml"
    file.write_text(small.TOML.replace(*change))
    assert small.sweep("plan", file, "--out", tmp_path / "plan") == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"axes": dict(reversed(small.VALUES["axes"].items()))},
        {"axes": {**small.VALUES["axes"], "pole/length": {"linear": [0.4, 2.0], "count": 6}}},
    ],
)
def test_results_of_a_plan_that_was_replaced_are_none(tmp_path, change):
    """Also those of a plan with the same axes in another order, whose cells have other numbers."""
    plan = sweep.plan(small.VALUES, tmp_path / "plan")
    sweep.run(plan)
    before = sweep.results(plan).cells()
    assert sweep.results(plan).cells().equals(before)
    changed = {**small.VALUES, **change}
    with pytest.raises(ValueError, match="holds another plan"):
        sweep.plan(changed, tmp_path / "plan")
    other = sweep.plan(changed, tmp_path / "plan", force=True)
    assert other.unit_hash != plan.unit_hash
    with pytest.raises(ValueError, match="2 of 2 units are missing"):
        sweep.results(other)
    assert sweep.run(other).played == 2
    after = sweep.results(other).cells()
    assert after.column_names[1] == next(iter(changed["axes"]))
    assert not after.equals(before)


def test_results_of_another_version_are_none(tmp_path, monkeypatch):
    """A plan that is made anew after an upgrade plays its units anew."""
    plan = sweep.plan(small.VALUES, tmp_path / "plan")
    sweep.run(plan)
    sweep.merge(plan)
    monkeypatch.setattr(planning, "versions", lambda: {"jaxsim-novelty": "99"})
    again = sweep.plan(small.VALUES, tmp_path / "plan", force=True)
    assert again.digest == plan.digest
    with pytest.raises(ValueError, match="2 of 2 units are missing"):
        sweep.results(again)
    assert len(store.unfinished(again)) == 2


def test_a_folder_of_another_plan_is_refused(tmp_path, capsys):
    file = tmp_path / "small.toml"
    file.write_text(small.TOML)
    assert small.sweep("plan", file, "--out", tmp_path / "plan") == 0
    assert small.sweep("plan", file, "--out", tmp_path / "plan", "--minutes", 1) == 0
    file.write_text(small.TOML.replace("count = 6", "count = 5"))
    assert small.sweep("plan", file, "--out", tmp_path / "plan") == 2
    assert "holds another plan, 'small' of 36 cells" in capsys.readouterr().err
    assert small.sweep("plan", file, "--out", tmp_path / "plan", "--force") == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert small.sweep("plan", file, "--out", tmp_path / "other") == 2
    assert "is not empty and holds no plan" in capsys.readouterr().err


def test_another_version_is_refused(tmp_path, capsys):
    plan = units_of_a_pack(tmp_path / "plan")
    path = plan.folder / plans.FILE
    manifest = json.loads(path.read_text())
    manifest["versions"]["jax"] = "0.0.1"
    path.write_text(json.dumps(manifest))
    assert small.sweep("run", plan.folder, "--quiet", "--units", "0") == 2
    error = capsys.readouterr().err
    assert "jax 0.0.1 there and" in error
    assert "--force" in error
    assert small.sweep("run", plan.folder, "--quiet", "--units", "0", "--force") == 0


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"format": 1}'])
def test_a_damaged_plan_is_one_line(tmp_path, capsys, damage):
    (tmp_path / plans.FILE).write_text(damage)
    for command in ("run", "status", "merge"):
        assert small.sweep(command, tmp_path) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all("plan again elsewhere" in line for line in lines)


def test_a_plan_that_was_changed_is_refused(tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    path = plan.folder / plans.FILE
    path.write_text(path.read_text().replace("2.0", "2.5"))
    with pytest.raises(ValueError, match="was changed after it was written"):
        sweep.load(plan.folder)
    with pytest.raises(ValueError, match="holds no plan; make one with"):
        sweep.load(tmp_path)
    with pytest.raises(ValueError, match="is a file; name the folder of a plan"):
        sweep.load(path)


def test_units_are_played_as_commands_play(tmp_path, monkeypatch):
    plan = units_of_a_pack(tmp_path / "plan")
    finished = []  # units that are finished when JAX is configured
    configure = lambda: finished.append(len(store.finished_one(plan, 0)))  # noqa: E731
    monkeypatch.setattr("jaxsim.configure_cpu", configure)
    playing.run(plan)
    assert finished == [0]


def test_two_results_of_one_unit_are_named(tmp_path):
    plan = units_of_a_pack(tmp_path / "plan")
    playing.run(plan)
    unit = plan.units[6]
    rows = pq.read_table(store.finished_one(plan, 6)[0].rows)
    store.write(plan, unit, rows.slice(1), pq.read_table(store.finished_one(plan, 6)[0].cells))
    assert sweep.status(plan).doubled == 1
    with pytest.raises(ValueError, match="unit 6 has two results, as of different"):
        sweep.merge(plan)
