"""`jaxsim evaluate`: against rollouts, and what it says to wrong input."""

import contextlib
import json
import sys

import numpy as np
import pytest

import jaxsim
from evaluation import cli, processor, scanner
from evaluation.evaluate import job as evaluate_job
from evaluation.evaluate.job import AgentComparison, run
from evaluation.report import terminal
from jaxsim import agents, backend
from jaxsim.worlds.sharing import shared

# With weak pushes and no gravity some poles fall and others do not. CartPole compiles in a moment,
# and everything here plays 200 episodes, with two programs in all.
VALUES = {"gravity": 0.0, "force": 0.02, "lean_limit": 0.7}
SETS = [part for path, value in VALUES.items() for part in ("--set", f"{path}={value}")]
AGENTS = ("random", "nothing")


def job(*names, seed=3):
    return AgentComparison(names, task="CartPole", values=VALUES, episodes=200, seed=seed)


@pytest.fixture(scope="module")
def rows():
    return run(job(*AGENTS))


def test_rows_are_those_of_rollouts(rows):
    env, params = jaxsim.make("CartPole", VALUES)
    rollouts = [jaxsim.rollout(env, params, agents.get(n), 200, seed=3) for n in AGENTS]
    for row, totals in zip(rows, rollouts, strict=True):
        performance = np.asarray(totals.performance, np.float64)
        assert row.performance.mean == pytest.approx(performance.mean())
        assert row.performance.low < row.performance.mean < row.performance.high
        # A studentised interval follows the skew of the episodes: wider than the normal one by at
        # most a quarter here (1.21 times measured), and hardly narrower.
        normal = 2 * 1.96 * performance.std() / 200**0.5
        assert 0.95 * normal < row.performance.high - row.performance.low < 1.25 * normal
        assert row.length.mean == pytest.approx(np.asarray(totals.length).mean())
        assert row.fallen == pytest.approx(np.asarray(totals.terminated).mean())
        assert row.fallen + row.survived + row.nonfinite == pytest.approx(1)
    assert 0.5 < rows[0].fallen < 0.9
    less = np.asarray(rollouts[1].performance, np.float64) - np.asarray(rollouts[0].performance)
    assert rows[0].difference is None
    assert rows[1].difference.mean == pytest.approx(less.mean())


def test_a_seed_is_honoured_and_intervals_do_not_depend_on_who_else_plays(rows):
    (alone,) = run(job("nothing"))
    assert (alone.performance, alone.length) == (rows[1].performance, rows[1].length)
    (other,) = run(job("nothing", seed=4))
    assert other.performance != alone.performance


def test_the_command(tmp_path, capsys):
    path = tmp_path / "out.json"
    words = ["--task", "CartPole", "--episodes", "200", "--seed", "3", *SETS, "--json", str(path)]
    assert cli.main(["evaluate", *AGENTS, *words]) == 0
    output = capsys.readouterr().out
    assert "performance" in output and "less random" in output and "200 episodes each" in output
    values = json.loads(path.read_text())
    assert [row["agent"] for row in values["rows"]] == list(AGENTS)
    assert values["settings"]["values"] == VALUES
    assert values["rows"][0]["difference"] is None


def test_the_command_compiles_for_the_processor_before_anything_is_made(monkeypatch):
    calls = []
    monkeypatch.setattr(processor, "configure", calls.append)
    monkeypatch.setattr(
        AgentComparison, "check", lambda self: calls.append(self.agents) or sys.exit(7)
    )
    with pytest.raises(SystemExit, match="7"):
        cli.main(["evaluate", "pd"])
    assert calls == [scanner.MachineOptions(), ("pd",)]


def test_levels_and_difficulties_are_played_in_turn():
    job = AgentComparison(("pd",), levels=(200, 203), difficulties=("easy", "hard"))
    assert [cell.label for cell in job.cells()] == ["200 easy", "200 hard", "203 easy", "203 hard"]
    assert job.cells()[3].options == {"level": 203, "difficulty": "hard"}
    job.check()


def test_levels_are_played_together_as_each_by_itself(monkeypatch):
    # Calls of two levels with a dozen episodes each.
    monkeypatch.setattr(evaluate_job, "ROUNDS_OF_CALL", 24 / backend.layout().lanes)
    job = AgentComparison(
        ("random", "nothing"), "CartPole2D", (51, 53), ("hard",), episodes=36, seed=5
    )
    moves = []
    rows = run(job, lambda *move: moves.append(move))
    assert moves == [(done, 144) for done in range(24, 145, 24)]
    assert [(row.cell, row.agent) for row in rows] == [
        (cell, agent) for cell in ("51 hard", "53 hard") for agent in ("random", "nothing")
    ]
    for number, row in enumerate(rows):
        env, params = jaxsim.make("CartPole2D", level=(51, 53)[number // 2], difficulty="hard")
        alone = jaxsim.rollout(env, params, agents.get(row.agent), 36, seed=5)
        assert row.length.mean == pytest.approx(alone.length.mean())
        assert row.performance.mean == pytest.approx(alone.performance.mean())


def test_calls_are_short_and_those_of_different_programs_come_first():
    job = AgentComparison(("pd", "mpc"), levels=(200, 203, 208), episodes=6000)
    tasks = list(shared([jaxsim.make(job.task, **cell.options) for cell in job.cells()]))
    calls = evaluate_job._calls(job, tasks)
    programs = [(call.agent, id(call.task)) for call in calls]
    assert len(set(programs[:4])) == len(set(programs)) == 4
    for call in calls:
        number = len(call.task.places) * len(call.numbers)
        most = 1024 if call.agent == "mpc" else 4 * call.task.env.layout.lanes
        assert 0.9 * min(most, 6000 * len(call.task.places)) <= number <= most
    for program in set(programs):
        numbers = [c.numbers for c, p in zip(calls, programs, strict=True) if p == program]
        np.testing.assert_array_equal(np.concatenate(numbers), np.arange(6000))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pd", "--level", "999"], "novelty/level"),
        (["pd", "--level", "two"], "whole numbers with commas"),
        (["pd", "--difficulty", "lethal", "--level", "203"], "easy"),
        (["pd", "--difficulty", "hard"], "difficulty is that of a level; name one with --level"),
        (["nobody"], "unknown agent 'nobody'"),
        (["absent.py"], "there is no file absent.py"),
        (["pd", "--episodes", "1"], "it must be from 2"),
        (["pd", "--set", "gravity"], "has no value"),
        (["pd", "--set", "gravty=3"], "gravity"),
        (["pd", "--seed", "-1"], "seed is -1"),
        (["pd", "--task", "Chess"], "Chess"),
        (["pd", "--task", "CartPole3DLeans"], "play one with jaxsim run"),
        (["pd", "--quiet"], "--quiet shows nothing"),
        (["pd", "--json", "."], "is a folder"),
        (["pd", "--json", "/proc/x.json"], "json /proc/x.json cannot be written"),
        (["pd", "--level", "51"], "level 51 is of CartPole2D; pass --task CartPole2D"),
        (["pd", "--task", "CartPole", "--level", "203"], "pass --task CartPole3D"),
    ],
)
def test_wrong_input_is_one_line(arguments, words, capsys):
    assert cli.main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_an_agent_that_cannot_play_the_task_is_one_line(capsys):
    assert cli.main(["evaluate", "pd", "--task", "CartPole", "--episodes", "64"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("jaxsim: agent pd cannot play CartPole: ") and error.count("\n") == 1


def test_numbers_are_written_before_a_reader_can_close_the_pipe(tmp_path, monkeypatch):
    """The bar's last line and the table meet the closed pipe of `| head`."""

    def closed(*_, **__):
        raise BrokenPipeError

    class Closed:
        print = closed

    @contextlib.contextmanager
    def bar(*_):
        yield lambda done, total: None
        closed()

    monkeypatch.setattr(terminal, "unless_quiet", lambda _: Closed())
    monkeypatch.setattr(terminal, "progress_bar", bar)
    monkeypatch.setattr(evaluate_job, "run", lambda *_: [])
    file = tmp_path / "e.json"
    words = ["nothing", "--task", "CartPole2D", "--episodes", "4", "--json", str(file)]
    arguments = cli.build_parser().parse_args(["evaluate", *words])
    with pytest.raises(BrokenPipeError):
        arguments.handler(arguments)
    assert json.loads(file.read_text())["rows"] == []
