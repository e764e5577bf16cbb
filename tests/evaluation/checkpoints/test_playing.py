"""What a run hands to the engine, to its checkpoints and to its files: every setting by name.

The engine is replaced: it returns results that are made up.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation import agents as agents_by_name
from evaluation import records, scanner
from evaluation.checkpoints import playing
from evaluation.checkpoints.configuration import differences
from evaluation.checkpoints.keeper import Pace
from evaluation.checkpoints.loading import SavedAgent
from evaluation.checkpoints.playing import Playing
from evaluation.checkpoints.stopping import Stop
from evaluation.l2m import run as syllabus_run
from evaluation.logs import export
from evaluation.logs.export import Logging, write_lifetimes
from evaluation.report import html
from evaluation.report.custom import load_rows
from evaluation.report.custom_metrics import summarise_custom
from evaluation.report.novelty import summarise_novelty
from evaluation.sailon import evaluate
from evaluation.sailon.evaluate import EvaluationPlan
from evaluation.sailon.settings import ExperimentSettings
from evaluation.train import run as training
from evaluation.train.course import TrainingCourse
from evaluation.train.curve import LearningCurve
from jaxsim import agents
from tests.evaluation import made_up

SNAPSHOTS = Path(__file__).parents[2] / "data" / "snapshots"
PACE, STOP = Pace(7.0, 3), Stop()
SETTINGS = {"agent": "random", "lifetimes": 4, "seed": 5, "first_lifetime": 6, "width": 2}
SPREAD = {"pace": PACE, "resume": True, "options": scanner.MachineOptions(chunk=64, threads=1)}
COURSE = TrainingCourse("CartPole", (("gravity", 5.0),), every=6, evaluation=2)
TRAINED = SavedAgent(agents.get("random"), "pd", {"known": np.zeros(4)}, "hash")
METRIC = """
from evaluation.metrics import metric

@metric(text="last episode of a block")
def last_episode(values, counts):
    return values[range(len(counts)), counts - 1]
"""


def say(line):
    pass


def training_run(out, **changes):
    return training.TrainingRun(course=COURSE, out=out, **SETTINGS | SPREAD | changes)


def syllabus(out, **changes):
    return syllabus_run.SyllabusRun(syllabus=Path("s.json"), out=out, **SETTINGS | SPREAD | changes)


def checkpoints_of(kept):
    """What all runs hand to their checkpoints."""
    assert (kept.pace, kept.resume, kept.stop, kept.say) == (PACE, True, STOP, say)
    return kept.out, list(kept.blocks), kept.keep, set(kept.ends), kept.seconds


def identity(kept):
    """What must be the same where a run is resumed, without the machine."""
    return {n: v for n, v in kept.configuration.items() if n not in ("precision", "platform")}


@pytest.mark.parametrize("keep_memory", [True, False])
def test_checkpoints_of_a_syllabus(tmp_path, keep_memory):
    job, plan = syllabus(tmp_path, keep_memory=keep_memory), made_up.schedule(4)
    kept = job.keeper(plan, TRAINED, STOP, say)
    assert checkpoints_of(kept) == (tmp_path, [12] * 4, keep_memory, set(), None)
    assert kept.files is job.files
    assert identity(kept) == {
        **SETTINGS,
        "agent": "pd",  # of the checkpoint that it continues from
        "knows": "hash",
        "schedule": plan.to_json()["blocks"],
    }
    assert "knows" not in identity(job.keeper(plan, replace(TRAINED, origin=""), STOP, say))


def test_a_changed_file_of_an_agent_is_another_agent(tmp_path):
    path = tmp_path / "mine.py"
    saved, known = replace(TRAINED, built_in=f"{path}:agent", origin=""), []
    for name in ("pd", "random", "pd"):
        path.write_text(f"from jaxsim.agents import get\n\nagent = get({name!r})\n")
        agents_by_name.get(str(path))  # as commands load it
        kept = syllabus(tmp_path / "out").keeper(made_up.schedule(4), saved, STOP, say)
        known.append(identity(kept))
        job = EvaluationPlan(f"{path}:agent", tmp_path / "e", pace=PACE, resume=True, **ASKED)
        kept = job.keeper(evaluate.generate(job.settings(), "evaluation"), STOP, say)
        assert identity(kept)["agent_files"] == known[-1]["agent_files"]
    assert known[0] == known[2] != known[1]
    (difference,) = differences(known[0], known[1])
    assert difference.startswith(f"agent_files.{path} is ") and " in it and " in difference


def test_checkpoints_of_a_training(tmp_path):
    job = training_run(tmp_path, episodes=20, minutes=1.5)
    kept = job.keeper(job.schedule, TRAINED, STOP, say)
    # 2 + 6 + 2 episodes, then stretches of 6 + 2, the last one of 2 + 2.
    blocks = [2, 6, 2, 6, 2, 6, 2, 2, 2]
    assert checkpoints_of(kept) == (tmp_path, blocks, True, {10, 18, 26}, 90.0)
    assert kept.files is job.files
    course = {"task": "CartPole", "parameters": {"gravity": 5.0}, "eval-every": 6}
    assert identity(kept) == {
        **SETTINGS,
        "agent": "pd",
        "knows": "hash",
        "schedule": {**course, "eval-episodes": 2},
    }
    assert training_run(tmp_path).keeper(job.schedule, TRAINED, STOP, say).seconds is None


ASKED = {
    "levels": (203, 101),
    "difficulties": ("hard",),
    "sensors": (("sensors/noise_position", 0.01),),
    "visibilities": (1,),
    "hint_level": 2,
    "trials": 3,
    "episodes": 9,
    "button": 4,
    "training": 7,
    "starts": "wsu",
    "seed": 5,
}


def test_checkpoints_of_an_evaluation(tmp_path):
    job = EvaluationPlan("greedy", tmp_path, pace=PACE, resume=True, **ASKED)
    experiment = evaluate.generate(job.settings(), "evaluation")
    kept = job.keeper(experiment, STOP, say)
    # Two cells of three trials of nine episodes and the training, for the agent and for pd.
    assert checkpoints_of(kept) == (tmp_path, [2 * 3 * 9 + 7] * 2, False, set(), None)
    assert kept.files is evaluate.FILES
    assert identity(kept) == {
        "agent": "greedy and pd",
        "schedule": {"experiment": experiment.digest()},
        "lifetimes": 1 + 2 * 3,
        "first_lifetime": 0,
        "seed": 5,
        "width": 1,
    }


def test_settings_of_the_experiment_of_an_evaluation(tmp_path):
    of_levels = EvaluationPlan("greedy", tmp_path, **ASKED).settings()
    rest = {name: ASKED[name] for name in ("sensors", "trials", "seed", "starts")}
    expected = ExperimentSettings(
        novelty=(203, 101),
        difficulty=("hard",),
        novelty_visibility=(1,),
        hint_level=(2,),
        training_episodes=7,
        testing_episodes=9,
        pre_novel_episodes=4,
        testing_novelty_p2=1.0,
        **rest,
    )
    assert of_levels == expected
    part = {"novelty_list": "open-world-1", "samples": 6, "split": "held out"}
    of_a_list = EvaluationPlan("greedy", tmp_path, **ASKED | part | {"hint_level": -1}).settings()
    assert of_a_list == replace(expected, hint_level=(-1,), **part)


def test_all_settings_reach_the_engine(monkeypatch):
    asked, made = [], made_up.run(0, 5, 4)
    monkeypatch.setattr(
        scanner, "play", lambda *given, **named: asked.append((given, named)) or made
    )
    plan, keeper, progress = made_up.schedule(4), object(), object()
    results = Playing(out=Path("x"), **SETTINGS | SPREAD).play(plan, TRAINED, keeper, progress)
    assert results == made
    named = {name: value for name, value in SETTINGS.items() if name != "agent"}
    named |= {"options": SPREAD["options"], "progress": progress, "keeper": keeper}
    assert asked == [((plan, TRAINED.agent), named | {"memory": TRAINED.memory})]


def test_an_agent_starts_with_the_memories_of_the_lifetimes_of_the_run(monkeypatch):
    asked = []
    monkeypatch.setattr(playing, "player", lambda *given: asked.append(given))
    plan = made_up.schedule(4)
    Playing(out=Path("x"), **SETTINGS).player(plan)
    assert asked == [("random", 4, 6, plan)]


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def results():
    """Records of five lifetimes, from number 6 on, whose report is a snapshot."""
    return replace(made_up.run(0, 5, 4), first_lifetime=6)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(METRIC)
    return load_rows([str(path)])


def logs_of(folder):
    """Sizes of the files of all logs; the times in them have one size."""
    texts = {}
    for path in folder.rglob("*"):
        if path.is_file():
            name = "/".join(path.relative_to(folder).parts[1:])
            texts.setdefault(name, []).append(path.stat().st_size)
    return {name: sorted(sizes) for name, sizes in texts.items()}


def check_logs(folder, results, form, lifetimes, tmp_path):
    write_lifetimes(results, tmp_path / "expected" / form, form, lifetimes)
    assert logs_of(folder) == logs_of(tmp_path / "expected" / form)


def test_what_a_run_of_a_syllabus_writes(monkeypatch, tmp_path, results, rows):
    monkeypatch.setattr(Playing, "play", lambda *given: results)
    expected = json.loads((SNAPSHOTS / "run.json").read_text())
    asked = []

    def summarise(*given):
        asked.append(given)
        return SimpleNamespace(to_json=lambda: expected)

    monkeypatch.setattr(syllabus_run, "summarise_records", summarise)
    logging = Logging(tmp_path / "data", (8,), "l2logger")
    job = syllabus(
        tmp_path / "out",
        resume=False,
        measure="length",
        window=3,
        log_lifetimes=(7, 9),
        log_format="learnkit",
        worker=2,
        rows=rows,
        logging=logging,
    )
    report = syllabus_run.run(job, results.schedule, None, STOP, say)
    of_shard = replace(results, metadata={**results.metadata, "worker": 2})
    assert asked == [(of_shard, "length", 3, 5, rows)]
    out = job.out
    assert report.to_json() == json.loads((out / "report.json").read_text()) == expected
    assert (out / "schedule.json").read_text() == results.schedule.dumps()
    assert records.read(out / "records.parquet").metadata["worker"] == 2
    page = html.of_run(expected, of_shard, job.command, "out")
    assert (out / "report.html").read_text() == page
    check_logs(out / "logs", of_shard, "learnkit", [7, 9], tmp_path)
    check_logs(tmp_path / "data" / "logs", of_shard, "l2logger", [8], tmp_path)
    assert {path.name for path in out.iterdir()} == {*job.files.names, job.files.marker}


def test_what_a_training_writes(monkeypatch, tmp_path, results, rows):
    monkeypatch.setattr(Playing, "play", lambda *given: results)
    drawn = []
    monkeypatch.setattr(training, "plot", lambda *given: drawn.append(given))
    logging = Logging(tmp_path / "data", (7,), "l2logger")
    job = training_run(tmp_path / "out", resume=False, episodes=12, rows=rows, logging=logging)
    result, curve = training.run(job, None, STOP, say)
    assert result is results
    expected = LearningCurve.of(results, 5)
    assert curve.rows() == expected.rows()
    out = job.out
    values = json.loads((out / "curve.json").read_text())
    assert values["novelty"] == summarise_novelty(results, 5).to_json()
    assert values["metrics"] == summarise_custom(rows, results, 5).to_json()
    assert values["curve"] == expected.rows()
    assert (values["task"], values["parameters"]) == ("CartPole", {"gravity": 5.0})
    assert (values["measure"], values["agent"]) == ("performance", "agent 0")
    assert (out / "curve.csv").read_text() == expected.to_csv()
    assert (out / "schedule.json").read_text() == results.schedule.dumps()
    assert [given[1] for given in drawn] == ["made up, random"]
    page = (out / "report.html").read_text()
    assert "made up, learned by random" in page and job.command in page
    for lifetime, episode in html.ends(results, "performance"):
        assert f"jaxsim view out --lifetime {lifetime} --episode {episode}" in page
    check_logs(tmp_path / "data" / "logs", results, "l2logger", [7], tmp_path)


@pytest.mark.parametrize("module", [syllabus_run, training])
@pytest.mark.parametrize("place", ["second log", "results", "end"])
def test_a_run_that_is_killed_as_it_ends_logs_once(monkeypatch, tmp_path, results, module, place):
    """Before its second log, before its results, or when both are there."""
    monkeypatch.setattr(Playing, "play", lambda *given: results)
    monkeypatch.setattr(training, "plot", lambda *given: None)
    logging = Logging(tmp_path / "data", (7, 9), "l2logger")
    make = syllabus if module is syllabus_run else training_run

    def run(**changes):
        job = make(tmp_path / "out", logging=logging, **changes)
        plan = () if module is training else (results.schedule,)
        module.run(job, *plan, None, STOP, say)

    def killed(*given):
        raise SystemExit

    def killed_at_the_second(shown, base, form, lifetimes, start):
        if lifetimes == [9]:
            killed()
        return write_lifetimes(shown, base, form, lifetimes, start)

    target = {
        "second log": (export, "write_lifetimes", killed_at_the_second),
        "results": (module, "_write", killed),
        "end": (module, "remove_note", killed),
    }[place]
    with monkeypatch.context() as patch:
        patch.setattr(*target)
        with pytest.raises(SystemExit):
            run(resume=False)
    start = json.loads((tmp_path / "out" / export.NOTE).read_text())["start"]
    run()
    check_logs(tmp_path / "data" / "logs", results, "l2logger", [7, 9], tmp_path)
    assert not (tmp_path / "out" / export.NOTE).exists()
    # Another run, also one that goes on with more episodes, has other logs.
    (tmp_path / "out" / export.NOTE).write_text(json.dumps({"start": start, "episodes": 1}))
    run()
    assert len(list((tmp_path / "data" / "logs").iterdir())) == 4


@pytest.mark.parametrize("content", ["[]", "{}", '{"start": "today", "episodes": 48}', "{"])
def test_a_damaged_note_on_logs_is_named(tmp_path, results, content):
    note = tmp_path / export.NOTE
    note.write_text(content)
    with pytest.raises(ValueError, match=re.escape(str(note))):
        Logging(tmp_path / "data", (7,)).write(results, tmp_path)


@pytest.mark.parametrize("make", [syllabus, training_run])
@pytest.mark.parametrize("lifetime", [5, 10])
def test_lifetimes_to_log_are_those_of_the_run(monkeypatch, tmp_path, make, lifetime):
    """It has number 6 to 9."""
    monkeypatch.setattr(syllabus_run, "load", lambda path: made_up.schedule(4))
    job = make(tmp_path / "out", resume=False, logging=Logging(tmp_path, (6, 9, lifetime)))
    check = job.check if make is training_run else job.checked_schedule
    with pytest.raises(ValueError, match=f"log-lifetime is {lifetime}; it must be from 6 to 9"):
        check()
    if make is syllabus:
        job = make(tmp_path / "out", resume=False, log_lifetimes=(6, 9, lifetime))
        with pytest.raises(ValueError, match=f"log-lifetime is {lifetime}; it must be from 6 to 9"):
            job.checked_schedule()
