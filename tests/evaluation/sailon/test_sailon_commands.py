"""The commands below `jaxsim sailon`, and agent files run as they are."""

import json
import sys
from pathlib import Path

import pytest

from evaluation import cli, scanner
from evaluation.checkpoints.stopping import Stop, Stopped
from evaluation.sailon import TA2Logic, commands, evaluate, host, plots, ta2, transcript
from evaluation.sailon.experiment import load
from evaluation.sailon.interactive import PlayOptions
from evaluation.sailon.reading import load_results
from tests.evaluation.report.test_html import check_page

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "sailon"

AGENT = """
import sys
from objects.TA2_logic import TA2Logic

class TA2Agent(TA2Logic):
    def _add_ta2_command_line_options(self, parser):
        parser.add_argument("--answer", default="give_up")
        return parser

    def testing_instance(self, feature_vector, novelty_indicator):
        return {"action": self.arguments.answer}

    def testing_episode_end(self, performance, feedback):
        return 0.0, 0.5, 0, {}
"""
STARTED = AGENT + '\nif __name__ == "__main__":\n    TA2Agent().run()\n'


@pytest.fixture
def agent_file(tmp_path):
    def write(text, name="TA2.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def experiment_file(draw, tmp_path):
    path = tmp_path / "experiment.json"
    draw(trials=1, training_episodes=0).write(path)
    return path


def run(*arguments):
    return cli.main(["sailon", *map(str, arguments)])


# The shape of the generator's own sample: a worker thread, a queue of answers, options of its own,
# and a constructor that reads them.
THREADED = """
import queue
import threading
from optparse import OptionParser
from pathlib import Path

from objects.TA2_logic import TA2Logic


class TA2Agent(TA2Logic):
    def __init__(self):
        super().__init__()
        options = self._get_command_line_options()
        self.custom, self.share, self.folder = options.custom, options.share, options.folder
        self.possible_answers = [{"action": "nothing"}, {"action": "left"}]
        self.end_training_early = True
        self.asked, self.answers = queue.Queue(), queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def _add_ta2_command_line_options(self, parser: OptionParser) -> OptionParser:
        parser.add_option("--custom-value", dest="custom", default="42", help="of the sample")
        parser.add_option("--share", type="float", default=0.5)
        parser.add_argument("--folder", type=Path, default=Path("here"))
        parser.add_argument("--loud", action="store_true")
        return parser

    def work(self):
        while True:
            vector = self.asked.get()
            self.answers.put({"action": "left" if vector["pole"]["x_quaternion"] else "nothing"})

    def _answer(self, vector):
        self.asked.put(vector)
        while True:
            try:
                return self.answers.get(timeout=0.01)
            except queue.Empty:
                self.process_amqp_events()

    def training_instance(self, feature_vector, feature_label):
        return self._answer(feature_vector)

    def testing_instance(self, feature_vector, novelty_indicator=None):
        return self._answer(feature_vector)

    def testing_episode_end(self, performance, feedback=None):
        return self.share, 0.5, int(self.custom), {"folder": str(self.folder)}


if __name__ == "__main__":
    TA2Agent().run()
"""


def test_an_agent_with_threads_and_options_of_its_own(agent_file, experiment_file, tmp_path):
    path, out = agent_file(THREADED), tmp_path / "out"
    options = "--custom-value 7 --share=0.25 --folder there --loud --printout"
    arguments = ("--agent", path, experiment_file, "--out", out, "--quiet")
    assert run("run", *arguments, f"--arguments={options}") == 0
    rows = load_results(out / "results.parquet").rows
    assert set(rows["problem"]) == {""}
    assert set(rows["novelty_probability"][rows["trial_id"] >= 0]) == {0.25}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--custom-valeu 7", "no such option: --custom-valeu"),
        ("--share many", "option --share: invalid floating-point value: 'many'"),
        ("--loud 3", "no such option or argument: 3"),
    ],
)
def test_a_wrong_command_line_of_an_agent(
    options, words, agent_file, experiment_file, tmp_path, capsys
):
    out = tmp_path / "out"
    arguments = ("--agent", agent_file(THREADED), experiment_file, "--out", out, "--quiet")
    assert run("run", *arguments, f"--arguments={options}") == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1
    assert not out.exists()


def test_an_agent_that_is_not_hosted_leaves_the_command_line_to_others(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebook", "-f", "kernel.json", "--debug"])
    assert TA2Logic().arguments.debug


def test_an_agent_must_return_its_parser():
    class Forgetful(TA2Logic):
        def _add_ta2_command_line_options(self, parser):
            parser.add_option("--x")

    with pytest.raises(ValueError, match="must return the parser"):
        Forgetful()


def test_an_agent_has_no_positional_arguments():
    class Positional(TA2Logic):
        def _add_ta2_command_line_options(self, parser):
            parser.add_argument("model")
            return parser

    with pytest.raises(ValueError, match="'model' does not begin with a dash"):
        Positional()


# Generating ---------------------------------------------------------------------------------------


def test_generate(tmp_path, capsys):
    out = tmp_path / "some" / "drawn.json"
    assert run("generate", EXAMPLES / "experiment.json", "--seed", 7, "--out", out) == 0
    assert load(out).settings.seed == 7
    output = capsys.readouterr().out
    assert output.startswith("2 trials of 2 cells, 6 episodes each; experiment ")


def test_a_malformed_file_writes_nothing(tmp_path, capsys):
    wrong, out = tmp_path / "wrong.json", tmp_path / "out"
    wrong.write_text('{\n  "trials": "many"\n}')
    for part in (("generate", wrong, "--out", out), ("run", wrong, "--agent", "pd", "--out", out)):
        assert run(*part) == 2
        assert capsys.readouterr().err == (
            f"jaxsim: {wrong}:2:13: 'trials' is 'many'; it must be whole, from 1 to 100000\n"
        )
    assert not out.exists()


# Agent files --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", [AGENT, STARTED], ids=["defined", "started"])
def test_an_agent_file_is_run_as_it_is(
    agent_file, experiment_file, tmp_path, text, capsys, monkeypatch
):
    for name in [name for name in sys.modules if name.partition(".")[0] == "objects"]:
        monkeypatch.delitem(sys.modules, name)  # of an earlier test
    out = tmp_path / "out"
    argv, search = sys.argv, list(sys.path)
    arguments = ("--agent", agent_file(text), experiment_file, "--out", out, "--quiet")
    assert run("run", *arguments, "--transcripts", "--arguments=--answer give_up") == 0
    results = load_results(out / "results.parquet")
    assert results.rows["performance"].tolist() == [0.0] * 3
    assert results.rows["problem"].tolist() == [""] * 3
    assert results.experiment == load(experiment_file)
    assert len(list((out / "transcripts").rglob("*.jsonl"))) == 3
    assert "objects" not in sys.modules
    assert (sys.argv, sys.path) == (argv, search)
    assert run("replay", *(out / "transcripts").rglob("*.jsonl")) == 0
    assert capsys.readouterr().out.count("the same") == 3
    # Who gives up at once shows nothing of the world.
    assert run("identify", *(out / "transcripts").rglob("*.jsonl")) == 2
    assert "the episode has no two observations" in capsys.readouterr().err


def test_only_transcripts_of_one_world_are_identified(tmp_path, capsys):
    assert run("identify", tmp_path / "none.jsonl") == 2
    assert "none.jsonl" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text('{"cart": 1}\n')
    assert run("identify", tmp_path / "other.jsonl") == 2
    assert "not a transcript" in capsys.readouterr().err
    assert run("identify", *[tmp_path / "other.jsonl"] * 65) == 2
    assert "name at most 64 of one world" in capsys.readouterr().err


@pytest.mark.slow
def test_what_agents_do_wrong_is_in_the_results(agent_file, experiment_file, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("--agent", agent_file(STARTED), experiment_file, "--out", out)
    assert run("run", *arguments, "--arguments=--answer up") == 0
    assert f"jaxsim sailon analyze {out / 'results.parquet'}\n" in capsys.readouterr().out
    problems = load_results(out / "results.csv").rows["problem"].tolist()
    assert all("the action 'up'" in text for text in problems)
    assert run("run", *arguments) == 2
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named"),
        ("x = 1", "defines 0 classes derived from TA2Logic; call run() of one, or name a pure"),
        (AGENT + "\nclass Other(TA2Logic):\n    pass\n", "defines 2 classes"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (AGENT.replace("return parser", "return None"), "must return the parser"),
    ],
)
def test_agent_files_that_cannot_be_started(agent_file, experiment_file, tmp_path, text, words):
    with pytest.raises(ValueError, match=r"TA2\.py cannot be started: ") as caught:
        host.run(agent_file(text), load(experiment_file), PlayOptions())
    assert words in str(caught.value)


@pytest.mark.slow
def test_an_agent_that_goes_to_another_folder(
    agent_file, experiment_file, tmp_path, monkeypatch, capsys
):
    """Results lie where they were asked for."""
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path)
    agent = agent_file("import os\nos.chdir('away')\n" + STARTED)
    arguments = ("--agent", agent, experiment_file, "--out", "out", "--transcripts")
    assert run("run", *arguments) == 0
    assert Path.cwd() == tmp_path
    assert (tmp_path / "out" / "results.parquet").is_file()
    assert (tmp_path / "out" / "transcripts").is_dir()
    assert not list((tmp_path / "away").iterdir())


@pytest.mark.slow
def test_overwriting_replaces_earlier_transcripts(agent_file, draw, tmp_path, monkeypatch, capsys):
    agent, out = agent_file(STARTED), tmp_path / "out"
    draw(trials=2, training_episodes=1).write(tmp_path / "large.json")
    draw(trials=1, training_episodes=0).write(tmp_path / "small.json")
    options = ("--out", out, "--overwrite", "--quiet")
    assert run("run", "--agent", agent, tmp_path / "large.json", *options, "--transcripts") == 0
    earlier = set(out.rglob("*"))
    assert run("run", "--agent", tmp_path / "no.py", tmp_path / "small.json", *options) == 2
    with monkeypatch.context() as patch:
        patch.setattr("evaluation.sailon.results.Results.to_csv", full)
        assert run("run", "--agent", agent, tmp_path / "small.json", *options) == 1
    assert "no space left" in capsys.readouterr().err
    assert set(out.rglob("*")) == earlier
    assert load(out / "experiment.json") == load(tmp_path / "large.json")
    assert run("run", "--agent", agent, tmp_path / "small.json", *options, "--transcripts") == 0
    assert {path.name for path in (out / "transcripts").iterdir()} == {"trial-00000"}
    assert run("run", "--agent", agent, tmp_path / "small.json", *options) == 0
    assert not (out / "transcripts").exists()


def full(*arguments):
    raise OSError(28, "No space left on device")


@pytest.mark.slow
def test_an_interrupted_run_keeps_the_trials_that_are_over(agent_file, draw, tmp_path, capsys):
    experiment = draw(trials=2, training_episodes=1)
    experiment.write(tmp_path / "experiment.json")
    text = (
        AGENT
        + """
    def trial_start(self, trial_number, novelty_description):
        self.trials = getattr(self, "trials", 0) + 1
        if self.trials == 2:
            raise KeyboardInterrupt

TA2Agent().run()
"""
    )
    out = tmp_path / "out"
    words = ("run", "--agent", agent_file(text), tmp_path / "experiment.json", "--out", out)
    assert run(*words, "--quiet") == 130
    assert f"1 of {len(experiment.trials)} trials are in {out}\n" in capsys.readouterr().err
    results = load_results(out / "results.parquet")
    problems, trial = (results.rows[name] for name in ("problem", "trial_id"))
    assert set(problems[trial <= 0]) == {""}
    assert set(problems[trial > 0]) == {"not played: the run was interrupted"}
    assert run("analyze", out, "--quiet", "--out", tmp_path / "metrics") == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("raise KeyError('late')", "after its agent has played: KeyError: 'late'"),
        ("TA2Agent().run()", "it has a second agent, which is not played"),
    ],
)
@pytest.mark.slow
def test_what_comes_after_an_agent_is_no_silence(agent_file, experiment_file, more, words):
    results = host.run(agent_file(STARTED + more), load(experiment_file), PlayOptions())
    (problem,) = results.metadata["problems"]
    assert words in problem


def test_what_cannot_be_written_is_not_the_agents_fault(agent_file, experiment_file, monkeypatch):
    monkeypatch.setattr("evaluation.sailon.host.interactive.play", full)
    with pytest.raises(OSError, match="No space left"):
        host.run(agent_file(STARTED), load(experiment_file), PlayOptions())


def test_what_generate_cannot_do_is_refused_by_option(tmp_path, capsys):
    (tmp_path / "settings.json").write_text("{}")
    words = ("generate", tmp_path / "settings.json", "--out")
    assert run(*words, tmp_path) == 2
    assert f"--out {tmp_path} is a folder; name a file" in capsys.readouterr().err
    options = ("--novelties", "open-world-1", "--split", "other")
    assert run(*words, tmp_path / "experiment.json", *options) == 2
    assert "--split is 'other'; it must be known or held-out" in capsys.readouterr().err


def test_the_class_of_a_file_is_not_a_pure_agent(agent_file, experiment_file, tmp_path, capsys):
    path = agent_file(STARTED)
    assert run("run", "--agent", f"{path}:TA2Agent", experiment_file, "--out", tmp_path / "o") == 2
    assert f"in the generator's form, name it by {path}\n" in capsys.readouterr().err


def test_an_agent_that_is_not_there(experiment_file, tmp_path, capsys):
    for agent, words in (("no.py", "agent no.py is not a file"), ("best", "unknown agent 'best'")):
        arguments = ("--agent", agent, experiment_file, "--out", tmp_path / "out", "--quiet")
        assert run("run", *arguments) == 2
        assert words in capsys.readouterr().err
    arguments = ("--agent", "pd", experiment_file, "--out", tmp_path / "out", "--quiet")
    assert run("run", *arguments, "--transcripts") == 2
    assert "a pure agent writes no transcripts" in capsys.readouterr().err
    assert run("run", *arguments, "--image", "64") == 2
    assert "a pure agent gets no feature vectors" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_base_class_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["agent", "--no-testing", "--debug"])
    agent = TA2Logic()
    assert agent.arguments.no_testing
    assert agent.testing_instance({}, None) == {"action": "nothing"}
    with pytest.raises(RuntimeError, match="jaxsim sailon run"):
        agent.run()
    experiments = []
    with ta2.hosted(experiments.append):
        agent.run()
    assert experiments == [agent]
    ini = tmp_path / "TA2.ini"
    ini.write_text("[aiq]\nkey = value\n")
    monkeypatch.setattr(sys, "argv", ["agent", "--config", str(ini)])
    assert TA2Logic().config["aiq"]["key"] == "value"
    monkeypatch.setattr(sys, "argv", ["agent", "--config", str(tmp_path / "missing")])
    with pytest.raises(ValueError, match="--config"):
        TA2Logic()


@pytest.mark.slow
def test_the_example_finds_blocks_that_are_pulled(tmp_path):
    out = tmp_path / "out"
    example = (EXAMPLES / "TA2.py", EXAMPLES / "experiment.json")
    assert run("run", "--agent", *example, "--out", out, "--quiet") == 0
    assert run("analyze", out, "--out", tmp_path / "metrics", "--quiet") == 0
    report = json.loads((tmp_path / "metrics" / "report.json").read_text())
    cells = {cell["level"]: cell for cell in report["cells"]}
    assert (cells[207]["cdt"], cells[207]["median_delay"]) == (1.0, 0.0)
    assert cells[200]["false_alarms"] == 0.0


# Pure agents --------------------------------------------------------------------------------------


@pytest.mark.long
def test_run_and_evaluate_pure_agents(draw, tmp_path, capsys):
    experiment = tmp_path / "experiment.json"
    draw(trials=2, training_episodes=0, starts="counter").write(experiment)
    for name in ("pd", "greedy"):
        arguments = ("--agent", name, experiment, "--out", tmp_path / name, "--threads", 1)
        assert run("run", *arguments, "--quiet") == 0
    arguments = (tmp_path / "greedy", "--baseline", tmp_path / "pd", "--window", 1)
    assert run("analyze", *arguments) == 0
    assert "greedy, baseline pd" in capsys.readouterr().out
    out = tmp_path / "evaluation"
    small = ("--levels", "200,203", "--difficulties", "hard", "--trials", 2, "--episodes", 4)
    arguments = ("--agent", "greedy", *small, "--out", out, "--threads", 1)
    assert run("evaluate", *arguments) == 0
    command = (
        "jaxsim sailon evaluate --agent greedy --levels 200,203 --difficulties hard --trials 2"
    )
    check_page(out / "report.html", f"{command} --episodes 4 --seed 0 --out evaluation")
    report = json.loads((out / "report.json").read_text())
    assert [(c["level"], c["visibility"], c["trials"]) for c in report["cells"]] == [
        (200, 0, 2),
        (203, 0, 2),
        (200, 1, 2),
        (203, 1, 2),
    ]
    assert report["baseline"]["agent"] == "pd"
    assert report["timing"]["steps"] > 0
    assert report["timing"]["seconds"].keys() == {"greedy", "pd"}
    assert all(used > 0 for used in report["timing"]["processor_seconds"].values())
    pictures = {
        f"{name}_{visibility}.png" for name in ("detection", "performance") for visibility in (0, 1)
    }
    assert {p.name for p in out.iterdir()} - pictures == {
        "agent.parquet",
        "baseline.parquet",
        "experiment.json",
        "metrics.csv",
        "report.html",
        "report.json",
        "trials.csv",
    }
    assert all(((out / name).exists()) == plots.available() for name in pictures)
    # Asked to end after the agent's trials, it goes on with the baseline's.
    again = tmp_path / "again"
    job = evaluate.EvaluationPlan(
        *("greedy", again),
        levels=(200, 203),
        difficulties=("hard",),
        trials=2,
        episodes=4,
        options=scanner.MachineOptions(threads=1),
    )
    with pytest.raises(Stopped, match="--resume"):
        evaluate.run(job, job.checked(), stop=Stop("SIGTERM"))
    assert [path.name for path in again.iterdir()] == ["checkpoints"]
    arguments = ("--agent", "greedy", *small, "--out", again, "--threads", 1, "--quiet")
    assert run("evaluate", *arguments) == 2
    assert "pass --resume to continue" in capsys.readouterr().err
    assert run("evaluate", *arguments, "--resume", "--seed", 1) == 2
    assert "is of another run: " in capsys.readouterr().err
    assert run("evaluate", *arguments, "--resume") == 0
    assert "resuming after episode 32 of 64" in capsys.readouterr().err
    for name in ("agent.parquet", "baseline.parquet", "metrics.csv", "trials.csv"):
        assert (again / name).read_bytes() == (out / name).read_bytes(), name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--levels", "200,x"), "levels is '200,x'; it must be whole numbers"),
        (("--levels", "299"), "299 in it must be one of"),
        (("--difficulties", "easy,soft"), "soft"),
        (("--trials", "0"), "'trials' is 0"),
        (("--button", "50"), "button is 50; it must be from 0 to 45"),
        (("--episodes", "-1"), "episodes is -1; it must be at least 1"),
        (("--baseline", "worst"), "unknown agent 'worst'"),
        (("--chunk", "3"), "chunk is 3"),
        (("--starts", "here"), "'starts' is 'here'"),
        (("--hint-level", "7"), "7 in it must be one of -1"),
    ],
)
def test_evaluations_that_are_refused(tmp_path, capsys, arguments, words):
    out = tmp_path / "out"
    assert run("evaluate", "--agent", "pd", "--out", out, "--quiet", *arguments) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


# Metrics ------------------------------------------------------------------------------------------


def test_analyze_the_generator_s_own_files(recorded_data, tmp_path, capsys):
    agent, baseline = (recorded_data(f"sailon/{name}.csv") for name in ("agent", "baseline"))
    out = tmp_path / "metrics"
    assert run("analyze", agent, "--baseline", baseline, "--out", out) == 0
    output = capsys.readouterr().out
    assert "0.50 (0.15–0.85)" in output
    names = ["metrics.csv", "report.html", "report.json", "trials.csv"]
    assert sorted(p.name for p in out.iterdir()) == names
    (hidden, visible) = json.loads((out / "report.json").read_text())["cells"]
    assert (hidden["cdt"], hidden["mean_delay"], hidden["false_alarms"]) == (0.5, 1.5, 0.25)
    assert visible["cdt"] is None
    assert run("analyze", agent, "--out", tmp_path / "alone") == 0
    title = capsys.readouterr().out
    assert ", no baseline, with 95 % intervals" in title and "unnamed, baseline unnamed" in output
    assert run("analyze", agent, "--baseline", baseline, "--out", out) == 2
    assert "is not empty" in capsys.readouterr().err


def test_analyze_what_is_not_there(tmp_path, capsys):
    assert run("analyze", tmp_path) == 2
    assert "results.parquet does not exist" in capsys.readouterr().err
    for name in ("agent", "baseline"):  # of `jaxsim sailon evaluate`
        (tmp_path / f"{name}.parquet").write_text("")
    assert run("analyze", tmp_path) == 2
    files = " or ".join(str(tmp_path / f"{name}.parquet") for name in ("agent", "baseline"))
    assert f"name a file of the directory: {files}" in capsys.readouterr().err


@pytest.mark.parametrize("order", [("same", "other"), ("other", "same"), ("same", "same")])
def test_one_transcript_that_differs_is_in_the_exit_code(monkeypatch, capsys, order):
    results = {
        "same": transcript.Replay(12, differences=()),
        "other": transcript.Replay(12, differences=("3: this", "4: that")),
    }
    monkeypatch.setattr(transcript, "replay", lambda path: results[path.name])
    code = cli.main(["sailon", "replay", *order])
    assert code == (0 if "other" not in order else commands.DIFFERENT) and commands.DIFFERENT == 1
    lines = {"same": "same: 12 steps, the same", "other": "other:3: this (2 lines differ)"}
    assert capsys.readouterr().out.splitlines() == [lines[name] for name in order]
