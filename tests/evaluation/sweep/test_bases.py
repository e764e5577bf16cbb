"""Bases other than `evaluate`: a cell is what the command of that name plays."""

import json

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation import cli, records, sweep
from evaluation.sweep import playing
from evaluation.sweep.bases import base, learning
from evaluation.sweep.bases.base import SweepFiles
from evaluation.sweep.grid import SweepCell
from evaluation.train.course import TrainingCourse
from tests.evaluation.sweep import small

SYLLABUS = """{"instructions": [
  {"$phase": "1.train"}, {"$repeat": {"$episode": "CartPole"}, "count": 6},
  {"$phase": "1.test"}, {"$repeat": {"$episode": "CartPole", "pole/length": 0.7}, "count": 4}
]}"""


@pytest.fixture
def syllabus(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(SYLLABUS)
    return path


def run_plan(values, folder, near=None):
    plan = sweep.plan(values, folder, minutes=small.A_PACK)
    out = sweep.run(plan)
    assert not out.failed, out.failed
    return plan, sweep.merge(plan)


def cell(results, number):
    table = pq.read_table(results.folder / "rows.parquet")
    return table.filter(np.asarray(table["cell"]) == number)


def test_a_number_that_is_missing_has_its_reason_in_the_table():
    whole = {"mean": 0.5, "low": 0.25, "high": 0.75, "lifetimes": 8}
    nothing = {"mean": None, "low": None, "high": None, "lifetimes": 0, "reason": "a reason"}
    cells = [SweepCell(number, {}) for number in (3, 4)]
    table = learning.metrics(cells, [{"mean": whole}, {"mean": whole, "recovery": nothing}])
    assert table.schema == base.METRICS
    assert table.select(["cell", "metric", "count", "reason"]).to_pylist() == [
        {"cell": 3, "metric": "mean", "count": 8, "reason": None},
        {"cell": 4, "metric": "mean", "count": 8, "reason": None},
        {"cell": 4, "metric": "recovery", "count": 0, "reason": "a reason"},
    ]


def metric(results, number, name):
    (entry,) = (
        row for row in results.cells().to_pylist() if (row["cell"], row["metric"]) == (number, name)
    )
    return entry


def test_a_cell_of_run_is_jaxsim_run(tmp_path, syllabus):
    values = {
        "base": "run",
        "fixed": {"syllabus": str(syllabus), "agent": "random", "lifetimes": 8},
        "axes": {"seed": [4, 5], "gravity": [9.8, 5.0]},
    }
    plan, results = run_plan(values, tmp_path / "plan")
    assert (plan.grid.cells, plan.grid.packs, plan.grid.programs) == (4, 4, 1)
    numbers = {(v["seed"], v["gravity"]): n for n in range(4) for v in [plan.grid.cell(n).values]}
    run = ["run", str(syllabus), "--agent", "random", "--lifetimes", "8", "--seed", "5"]
    assert cli.main([*run, "--out", str(tmp_path / "run"), "--quiet"]) == 0
    expected = records.read_run(tmp_path / "run")
    rows = cell(results, numbers[5, 9.8])
    for name in ("length", "performance", "seconds"):
        assert rows[name].to_pylist() == expected.columns[name].ravel().tolist()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    wanted = report["blocks"][0]["metrics"]["mean"]
    entry = metric(results, numbers[5, 9.8], "block 0/mean")
    assert (entry["value"], entry["low"], entry["high"]) == (
        wanted["mean"],
        wanted["low"],
        wanted["high"],
    )
    # The other gravity is set in both blocks.
    low = cell(results, numbers[5, 5.0])
    assert low["length"].to_pylist() != cell(results, numbers[5, 9.8])["length"].to_pylist()
    assert not list((plan.folder / "checkpoints").glob("*/*"))


def test_cells_of_one_call_have_the_same_lifetimes(monkeypatch):
    """The long test below plays them; here the engine is replaced by one that says what it got."""
    calls = []

    def play(schedule, agent, *, lifetimes, randomness, **arguments):
        calls.append((lifetimes, [*randomness]))
        column = np.arange(lifetimes, dtype=np.int32)[:, None]
        return records.Records(schedule, {"length": column}, np.zeros(1, np.int32))

    monkeypatch.setattr(learning.scanner, "play", play)
    values = {"agent": "a2c", "seed": 0, "settings/learning_rate": 0.05}
    cells = [SweepCell(n, {**values, "settings/discount": 0.9 + n / 100}) for n in range(3)]
    schedule = TrainingCourse("CartPole").schedule(1)
    place = base.SweepFiles({}, None)
    parts = learning.play(cells, schedule, 2, 4, place)
    assert calls == [(6, [0, 1, 0, 1, 0, 1])]
    assert [part.columns["length"].ravel().tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert all(part.first_lifetime == 0 for part in parts)


@pytest.mark.long
def test_hyper_parameters_are_lanes_of_one_call(tmp_path):
    values = {
        "base": "train",
        "fixed": {
            "task": "CartPole",
            "agent": "a2c",
            "episodes": 8,
            "eval-every": 8,
            "eval-episodes": 2,
            "lifetimes": 8,
            "width": 4,
        },
        "axes": {"settings/learning_rate": [0.0, 0.05], "settings/discount": [0.9, 0.99]},
    }
    plan, results = run_plan(values, tmp_path / "plan")
    assert (plan.grid.cells, plan.grid.packs, plan.grid.programs) == (4, 1, 1)
    cells = results.cells().to_pylist()
    assert {row["metric"] for row in cells} == {
        "performance",
        "performance after 0",
        "performance after 8",
    }
    lengths = [cell(results, n)["length"].to_numpy().reshape(8, 12) for n in range(4)]
    train = ["train", "CartPole", "--agent", "a2c", "--episodes", "8", "--eval-every", "8"]
    train += ["--eval-episodes", "2", "--lifetimes", "8", "--width", "4"]
    assert lengths[0].shape == (8, 12)
    assert (lengths[2] != lengths[0]).any()
    # The default is the second of two values, whose lifetimes are lanes behind those of the first.
    pair = {**values, "axes": {"settings/learning_rate": [0.05, 0.005]}}
    _, results = run_plan(pair, tmp_path / "pair")
    assert cli.main([*train, "--out", str(tmp_path / "train"), "--quiet"]) == 0
    expected = records.read_run(tmp_path / "train")
    assert cell(results, 1)["length"].to_pylist() == expected.columns["length"].ravel().tolist()
    assert cell(results, 0)["length"].to_pylist() != expected.columns["length"].ravel().tolist()


def test_a_long_unit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    """A training that is asked to end saves itself, and the next run goes on from there."""
    from evaluation.checkpoints.stopping import Stop

    values = {
        "base": "train",
        "fixed": {
            "task": "CartPole",
            "agent": "random",
            "episodes": 320,
            "eval-every": 80,
            "eval-episodes": 2,
            "lifetimes": 8,
            "width": 1,
        },
        "axes": {"seed": [0]},
    }
    _, whole = run_plan(values, tmp_path / "whole")
    plan = sweep.plan(values, tmp_path / "plan")
    stop = Stop()
    real = learning.Checkpoints.between

    ends = []

    def between(self, episodes, take):
        ends.append(episodes)
        stop.by = "SIGTERM" if episodes >= 80 else None
        real(self, episodes, take)

    def interrupted():
        stop.by = None
        with monkeypatch.context() as patch:
            patch.setattr(learning.Checkpoints, "between", between)
            out = playing.run(plan, stop=stop)
        assert (out.stopped, out.played, out.failed) == ("SIGTERM", 0, [])
        (saved,) = (plan.folder / "checkpoints").glob("*/checkpoints/*")
        return saved

    interrupted()
    # Those of a plan that is replaced are not continued.
    other = sweep.plan({**values, "axes": {"seed": [1]}}, plan.folder, force=True)
    assert sweep.run(other, retries=0).played == 1
    plan = sweep.plan(values, plan.folder, force=True)
    ends_after = []
    with monkeypatch.context() as patch:
        patch.setattr(
            learning.Checkpoints,
            "between",
            lambda self, episodes, take: ends_after.append(episodes),
        )
        assert playing.run(plan, retries=0).played == 1
    assert min(ends_after) > max(ends)
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole.folder.parent)
    assert not list((plan.folder / "checkpoints").iterdir())
    # Damaged ones are left, and the pack begins at its start.
    plan = sweep.plan(values, tmp_path / "damaged")
    next(path for path in interrupted().rglob("*") if path.is_file()).write_bytes(b"")
    assert playing.run(plan, retries=0).played == 1
    sweep.merge(plan)
    assert small.merged(plan.folder) == small.merged(whole.folder.parent)


@pytest.mark.long
def test_levels_of_sailon_are_trials_of_one_experiment(tmp_path):
    values = {
        "base": "sailon evaluate",
        "fixed": {"agent": "random", "baseline": "pd", "trials": 3, "episodes": 4},
        "axes": {"level": [200, 203], "difficulty": ["easy", "hard"]},
    }
    plan, results = run_plan(values, tmp_path / "plan")
    assert (plan.grid.cells, plan.grid.packs, plan.grid.programs) == (4, 1, 1)
    out = tmp_path / "evaluation"
    words = ["sailon", "evaluate", "--agent", "random", "--levels", "200,203", "--trials", "3"]
    words += ["--difficulties", "easy,hard", "--visibilities", "0", "--episodes", "4"]
    assert cli.main([*words, "--out", str(out), "--quiet"]) == 0
    report = json.loads((out / "report.json").read_text())
    for number in range(4):
        level, difficulty = (plan.grid.cell(number).values[k] for k in ("level", "difficulty"))
        (row,) = (
            r for r in report["cells"] if (r["level"], r["difficulty"]) == (level, difficulty)
        )
        entry = metric(results, number, "performance_post")
        assert entry["value"] == row["performance_post"]
        assert (entry["value"] is None) == (level == 200)  # which has no novelty
        assert cell(results, number).num_rows == 3 * 4
    # The first measure is that of the protocol, not of the alphabet.
    assert sweep.results(plan).table("level").metric == "cdt"


@pytest.mark.parametrize(
    ("base", "fixed", "axes", "words"),
    [
        ("run", {}, {"seed": [1]}, "syllabus is not set; write syllabus"),
        ("run", {"syllabus": "none.json"}, {"seed": [1]}, "none.json cannot be read"),
        ("run", {"syllabus": "S"}, {"pole/lenght": [1.0]}, "did you mean 'pole/length'"),
        ("run", {"syllabus": "S"}, {"pole/length": ["a"]}, "'pole/length' is 'a'"),
        ("run", {"syllabus": "S"}, {"lifetimes": [1, 2]}, "lifetimes cannot be an axis"),
        ("run", {"syllabus": "S"}, {"settings/clip": [0.1]}, "are of learners (ppo, a2c"),
        (
            "run",
            {"syllabus": "S", "agent": "a2c"},
            {"settings/clop": [0.1]},
            "settings are clop; allowed: hidden",
        ),
        (
            "train",
            {"task": "CartPole", "agent": "a2c"},
            {"settings/discount": [2.0]},
            "discount is 2.0; it must be from 0 to",
        ),
        (
            "train",
            {"task": "CartPole", "agent": "a2c", "settings/hidden": "a"},
            {"seed": [0]},
            "it must be text, as",
        ),
        ("train", {}, {"level": [999]}, "999"),
        *(
            (base, given | {name: value}, {"pole/length": [1.0]}, f"{name} is {value}; it must be")
            for base, given in (("train", {"task": "CartPole"}), ("run", {"syllabus": "S"}))
            for name, value in (("width", 0), ("lifetimes", 0), ("seed", -1))
        ),
        *(
            ("train", {"task": "CartPole", name: 0}, {"seed": [1]}, f"{name} is 0; it must be from")
            for name in ("episodes", "eval-every", "eval-episodes")
        ),
        ("evaluate", {"seed": -1}, {"pole/length": [1.0]}, "seed is -1; it must be"),
        ("sailon evaluate", {}, {"levels": [200]}, "did you mean 'level'"),
        ("sailon evaluate", {}, {"level": [999]}, "999"),
        ("sailon evaluate", {}, {"level": {"integers": [108, 111]}}, "109"),
        ("sailon evaluate", {}, {"level": {"randint": [108, 110], "draws": 2}}, "109"),
        (
            "evaluate",
            {"novelty/level": 203},
            {"difficulty": ["easy", "hard"]},
            "difficulty is that of the field level, which is not set",
        ),
        (
            "evaluate",
            {"novelty/level": 203},
            {"level": [203]},
            "level and novelty/level are both set; leave one of them out",
        ),
        (
            "train",
            {"level": 203, "difficulty": "easy", "novelty/difficulty": "hard"},
            {"seed": [0]},
            "difficulty and novelty/difficulty are both set",
        ),
        ("train", {"level": 203}, {"task": ["CartPole"]}, "level chooses the task; leave task out"),
        (
            "train",
            {"task": "CartPole", "agent": "a2c"},
            {"settings/updates": [1, 4]},
            "settings/updates has no effect on a2c; leave it out",
        ),
        (
            "train",
            {"task": "CartPole", "agent": "ppo+replay"},
            {"settings/consolidation": [1.0]},
            "settings/consolidation has no effect on ppo+replay",
        ),
        (
            "train",
            {"task": "CartPole", "eval-every": ""},
            {"seed": [0]},
            "eval-every is ''; it must",
        ),
        ("run", {"syllabus": "S", "window": ""}, {"seed": [0]}, "window is ''; it must be a whole"),
        ("train", {"task": "CartPole3DLeans", "agent": "ppo"}, {"seed": [0]}, "agent ppo cannot"),
        (
            "evaluate",
            {},
            {"agent": ["random", "pd"], "task": ["CartPole3D", "CartPole"]},
            "agent pd cannot play",
        ),
    ],
)
def test_bad_cells(tmp_path, syllabus, base, fixed, axes, words):
    fixed = {k: str(syllabus) if v == "S" else v for k, v in fixed.items()}
    with pytest.raises(ValueError) as error:
        sweep.plan({"base": base, "fixed": fixed, "axes": axes}, tmp_path / "plan")
    assert words in str(error.value)
    assert not (tmp_path / "plan").exists()


def test_whole_numbers_are_checked_as_they_are_taken(tmp_path):
    """Of 103 to 109, 109 is no level, but a step of five does not reach it."""
    axes = {"level": {"integers": [103, 109], "step": 5}}
    fixed = {"agent": "random", "episodes": 2}
    plan = sweep.plan({"base": "evaluate", "fixed": fixed, "axes": axes}, tmp_path / "plan")
    assert [plan.grid.cell(number).values["level"] for number in range(2)] == [103, 108]


def test_learners_fit_the_tasks_of_their_cells(tmp_path):
    """Also with hyper-parameters: environments of gymnax have other observations."""
    pytest.importorskip("gymnax")
    from jaxsim import training

    fixed = {"task": "gymnax/CartPole-v1", "agent": "ppo", "episodes": 16, "eval-every": 16}
    axes = {"settings/learning_rate": [0.001, 0.01], "settings/hidden": ["8"]}
    values = {"base": "train", "fixed": {**fixed, "lifetimes": 2}, "axes": axes}
    plan = sweep.plan(values, tmp_path / "plan")
    assert plan.grid.packs == 1
    course = TrainingCourse("gymnax/CartPole-v1", (), 16)
    cells = [plan.grid.cell(number).values for number in range(2)]
    agent = learning.agent_with(cells, course.schedule(16), 2, SweepFiles({}))
    shapes = jax.eval_shape(agent.init, jax.random.key(0))
    assert shapes.parameters.trunk[0].weight.shape == (4, 8)
    settings = training.Settings(hidden=(8,), learning_rate=(0.001, 0.001, 0.01, 0.01))
    assert agent.assign.args == (settings,)


def test_an_agent_of_a_checkpoint_is_part_of_the_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "train CartPole --agent random --lifetimes 1 --episodes 8 --eval-every 8"
    train = [*words.split(), "--eval-episodes", "2", "--out", "trained", "--quiet"]
    assert cli.main(train) == 0
    fixed = {"task": "CartPole", "agent": "checkpoint:trained", "lifetimes": 2, "episodes": 8}
    fixed |= {"eval-every": 8, "eval-episodes": 2}
    values = {"base": "train", "fixed": fixed, "axes": {"seed": [0, 1]}}
    plan = sweep.plan(values, "plan")
    (manifest,) = plan.inputs.values()
    assert manifest.name.endswith("checkpoint.json")
    with pytest.raises(ValueError, match="are those of the checkpoint; leave them out"):
        sweep.plan({**values, "axes": {"settings/learning_rate": [0.1]}}, "other")
    # Trained further, it is another agent.
    assert cli.main([*train, "--overwrite", "--seed", "1"]) == 0
    outcome = sweep.run(plan, retries=0)
    assert outcome.played == 0
    assert "has another checkpoint than when the sweep was planned" in outcome.failed[0].error
    assert sweep.plan(values, "again").digest != plan.digest
    assert sweep.run(sweep.load("again")).played == 1
    (step,) = (tmp_path / "trained" / "checkpoints").iterdir()
    step.rename(step.with_name("0000000099"))
    again = sweep.plan({**values, "axes": {"seed": [2]}}, "third")
    step.with_name("0000000099").rename(step)
    (failure,) = sweep.run(again, retries=0).failed
    assert "has another checkpoint than when the sweep was planned" in failure.error
