"""Lists of novelties, and experiments whose cells are their entries."""

import ast
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import jaxsim.agents
from evaluation import sailon
from evaluation.cli import main
from evaluation.metrics.statistics import wilson
from evaluation.sailon import experiment, interactive, novelties, plots
from evaluation.sailon.analysis import analyse
from evaluation.sailon.evaluate import EvaluationPlan
from evaluation.sailon.novelties import ListedNovelty, NoveltyList
from evaluation.sailon.reading import load_results
from evaluation.sailon.settings import ExperimentSettings
from evaluation.sailon.text import ExperimentError
from evaluation.sailon.transcript import replay
from jaxsim import agents
from jaxsim.novelty import FAMILIES, Novelty

SWAPPED = Novelty.of(["push_sign"], {"actions/sign": -1.0})
TWO = Novelty.of(["gravity", "push_turn"], {"gravity": 12.0, "actions/turn": 90.0})
LIGHT = Novelty.of(["gravity"], {"gravity": 5.0})
LIST = NoveltyList(
    "some-1",
    (
        ListedNovelty(0, SWAPPED, False, 0.9, 0.005),
        ListedNovelty(1, TWO, True, 0.3, 0.0),
        ListedNovelty(2, LIGHT, True, 0.0, 0.02),
    ),
    {"seed": 3},
)

DIGEST = "f19a2814c5885fd09942b157675965fd7f63c92cfec9c28cd3117780fab02765"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("novelties") / "some.jsonl"
    LIST.write(file)
    return str(file)


def settings(path, **changes):
    usual = {
        "novelty_list": path,
        "novelty_visibility": (0, 1),
        "hint_level": (3,),
        "trials": 2,
        "training_episodes": 1,
        "testing_episodes": 4,
        "pre_novel_episodes": 2,
        "testing_novelty_p2": 1.0,
        "starts": "counter",
    }
    return ExperimentSettings(**usual | changes)


@pytest.fixture(scope="module")
def drawn(path):
    return sailon.generate(settings(path), "open")


# Lists ------------------------------------------------------------------------------------------


def test_a_list_is_what_was_written(path):
    assert novelties.load(path) == LIST
    assert novelties.loads(LIST.dumps()) == LIST


def test_parts_are_beginnings_of_a_split():
    assert [one.number for one in LIST.part()] == [0, 1, 2]
    assert [one.number for one in LIST.part(2)] == [0, 1]
    assert [one.number for one in LIST.part(split="held out")] == [1, 2]
    assert [one.number for one in LIST.part(1, "known")] == [0]
    with pytest.raises(ValueError, match="2 novelties are asked for; some-1 has 1 to 1 that are"):
        LIST.part(2, "known")
    with pytest.raises(ValueError, match="split is 'other'"):
        LIST.part(split="other")


def test_classes_and_bins_follow_the_difficulty():
    assert [one.difficulty for one in LIST.entries] == ["hard", "medium", "easy"]
    assert [novelties.bin_of(d) for d in (0.0, 0.0099, 0.01, 0.5, 1.0)] == [
        "0 to 0.01",
        "0 to 0.01",
        "0.01 to 0.05",
        "0.5 to 0.75",
        "0.75 to 1",
    ]


def line(**changes):
    return json.dumps({**LIST.entries[0].to_json(), **changes})


NOMINAL = line(families=["gravity", "push_sign"], parameters={"gravity": 9.8, "actions/sign": -1})


@pytest.mark.parametrize(
    ("lines", "where", "reason"),
    [
        ([], 1, "the list is empty"),
        (['{"format": "jaxsim-novelties-0", "name": "a"}'], 1, "lists of this version have"),
        (["[]"], 1, "lists of this version have"),
        (['{"format": "jaxsim-novelties-1"}'], 1, "'name' must be printable text"),
        (["HEAD"], 1, "the list has no entry"),
        (["HEAD", "{}"], 2, "it must be an object with number"),
        (["HEAD", "{"], 2, "broken JSON"),
        (["HEAD", line(number=1)], 2, "entries are numbered from 0"),
        (["HEAD", line(number=-1)], 2, "'number' is -1"),
        (["HEAD", line(held_out=1)], 2, "'held_out' must be true or false"),
        (["HEAD", line(control=2)], 2, "'control' is 2; it must be a number from 0 to 1"),
        (["HEAD", line(detection=None)], 2, "'detection' is None"),
        (["HEAD", line(families=["push_sgn"])], 2, "did you mean 'push_sign'"),
        (["HEAD", line(parameters={"actions/sign": 99.0})], 2, "must be a number from -10 to 10"),
        (["HEAD", NOMINAL], 2, "'gravity' changes nothing: gravity is 9.8, as without it"),
        (["HOLDS gravity"], 1, r"'held_out' is 'gravity'; it must be a list of names"),
        (["HOLDS [[]]"], 1, r"it must be a list of names of families"),
        (['HOLDS ["gravty"]'], 1, r"it must be a list of names of families"),
        (['HOLDS ["push_sign"]', line()], 2, "must be true: the list holds out push_sign"),
        (["HOLDS []", line(held_out=True)], 2, "must be false: the list holds out none of its"),
    ],
)
def test_what_is_no_list_is_refused_with_its_place(lines, where, reason):
    head = '{"format": "jaxsim-novelties-1", "name": "some-1"}'
    text = "\n".join(lines).replace("HEAD", head)
    if text.startswith("HOLDS"):
        value, newline, rest = text.removeprefix("HOLDS ").partition("\n")
        value = value if value.startswith("[") else json.dumps(value)
        text = f'{head[:-1]}, "held_out": {value}}}{newline}{rest}'
    with pytest.raises(ExperimentError, match=reason) as caught:
        novelties.loads(text, "file")
    assert (caught.value.source, caught.value.line) == ("file", where)


def test_a_list_that_is_not_shipped_is_refused():
    with pytest.raises(ValueError, match="did you mean 'open-world-1'"):
        novelties.load("open-world-2")


# Experiments ------------------------------------------------------------------------------------


def test_every_entry_is_a_cell(drawn):
    cells = [(c.visibility, c.entry.number, c.level, c.hint_level) for c in drawn.cells]
    expected = [(v, n, 200, h) for v, h in ((0, -1), (1, 3)) for n in range(3)]
    assert cells == expected
    assert all(trial.button == 2 for trial in drawn.trials)
    plans = drawn.episodes(drawn.trials[0])
    assert [plan.variant.novelty for plan in plans] == [None, None, SWAPPED, SWAPPED]
    assert [plan.novel for plan in plans] == [False, False, True, True]
    schedule = drawn.schedule(drawn.trials[0])
    assert [
        (block.count, dict(block.parameters).get("actions/sign")) for block in schedule.blocks
    ] == [
        (2, None),
        (2, -1.0),
    ]


def test_hints_are_words_of_the_families(drawn):
    trial = next(t for t in drawn.trials if t.cell.visibility == 1 and t.cell.entry.number == 1)
    first, novel = (drawn.episodes(trial)[place].hint for place in (0, 2))
    assert [set(one.values()) for one in first] == [{None}]
    assert novel == [
        {"level": None, "entity": "world", "attribute": "gravity", "change": "increase"},
        {"level": None, "entity": "push", "attribute": "direction", "change": "left"},
    ]


def test_an_experiment_holds_its_novelties(drawn, path):
    again = experiment.loads(drawn.dumps())
    assert again == drawn
    assert again.entries == dict(enumerate(LIST.entries))
    part = sailon.generate(settings(path, samples=1, split="held out"), "open")
    assert list(part.entries) == [1]
    assert part.digest() != drawn.digest()
    # A file is enough: the list that it was drawn from is not read again.
    text = drawn.dumps().replace('"actions/sign": -1.0', '"actions/sign": -2.0')
    assert dict(experiment.loads(text).entries[0].novelty.parameters) == {"actions/sign": -2.0}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"actions/sign": -1.0', '"actions/sgn": -1.0', "did you mean 'actions/sign'"),
        ('"level": 200', '"level": 203', "a novelty of a list changes level 200, easy"),
        ('"novelty": {', '"novelti": {', "unknown key 'novelti'"),
    ],
)
def test_an_experiment_with_a_wrong_novelty_is_refused(drawn, old, new, reason):
    with pytest.raises(ExperimentError, match=reason):
        experiment.loads(drawn.dumps().replace(old, new, 1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"novelty_list": None, "samples": 3}, "'samples' is 3; it needs 'novelty_list'"),
        ({"novelty_list": None, "split": "known"}, "'split' is 'known'; it needs 'novelty_list'"),
        ({"samples": 0}, "'samples' is 0"),
        ({"split": "other"}, "'split' is 'other'"),
        ({"novelty_list": 3}, "'novelty_list' is 3"),
    ],
)
def test_wrong_settings_are_refused(path, changes, reason):
    with pytest.raises(ValueError, match=reason):
        settings(path, **changes)


def test_settings_without_a_list_are_as_they_were():
    assert not {"novelty_list", "samples", "split"} & set(ExperimentSettings().to_json())
    values = ExperimentSettings(novelty_list="open-world-1", samples=3).to_json()
    assert (values["novelty_list"], values["samples"], values["split"]) == ("open-world-1", 3, None)


# Play -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(drawn):
    return sailon.play_batch(drawn, agents.get("pd"))


def test_novel_episodes_play_the_novelty(results):
    rows = results.tested()
    swapped = rows["sample"] == 0
    assert set(rows["sample"]) == {0, 1, 2}
    assert set(results.rows["sample"][results.rows["trial_index"] < 0]) == {-1}
    novel = rows["novelty_initiated"]
    # Pushes the wrong way let the pole fall faster than none do.
    assert rows["length"][swapped & novel].max() < 40
    assert rows["length"][swapped & ~novel].mean() > 100
    assert rows["length"][(rows["sample"] == 2) & novel].mean() > 100


def test_an_agent_on_the_host_plays_the_same_novelties(drawn, results, tmp_path):
    class Right(sailon.TA2Logic):
        def testing_instance(self, feature_vector, novelty_indicator=None):
            return "right"

    few = replace(drawn, trials=drawn.trials[:1], training=())
    options = interactive.PlayOptions(transcripts=tmp_path)
    results = sailon.play(few, Right(), options)
    lengths = results.tested()["length"]
    assert lengths[2:].max() < 20
    files = sorted(tmp_path.rglob("*.jsonl"))
    assert len(files) == 4
    header = json.loads(files[-1].read_text().splitlines()[0])["episode"]
    assert header["played"] == [[200, "easy"], [200, "easy", SWAPPED.to_json()]]
    assert header["plan"]["novelty"] == SWAPPED.to_json()
    for file in files:
        assert not replay(file).differences


def test_results_are_reported_by_family_difficulty_and_split(results, tmp_path):
    report = analyse(results, results.silenced("pd"), resamples=50)
    values = report.to_json()
    names = {row["level"] for row in values["levels"]}
    assert names == {"push_sign", "gravity+push_turn", "gravity"}
    assert {row["difficulty"] for row in values["splits"]} == {"known", "held out"}
    trials = {row["difficulty"]: row["trials"] for row in values["splits"] if not row["visibility"]}
    assert trials == {"known": 2, "held out": 4}
    bins = [row["difficulty"] for row in values["control_difficulties"] if not row["visibility"]]
    assert bins == ["0 to 0.01", "0.2 to 0.35", "0.75 to 1"]
    assert {row["difficulty"] for row in values["detection_difficulties"]} == {
        "0 to 0.01",
        "0.01 to 0.05",
    }
    (whole,) = (row for row in values["overall"] if not row["visibility"])
    assert (whole["trials"], whole["cdt"]) == (6, 0.0)
    # Of six trials of three novelties, all without a detection: three are what counts.
    assert whole["intervals"]["cdt"] == pytest.approx(wilson(0, 3))
    results.write(tmp_path / "results.parquet")
    again = load_results(tmp_path / "results.parquet")
    assert (
        analyse(again, again.silenced("pd"), resamples=50).to_json()["splits"] == values["splits"]
    )


def test_a_list_is_drawn_over_difficulty(results, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra jaxsim-novelty[plots]")
    report = analyse(results, None, resamples=50)
    names = {path.name for path in plots.write(report.rows, tmp_path)}
    assert names == {f"{name}_{number}.png" for name in plots.FIGURES for number in (0, 1)}
    plain = [row for row in report.rows if row.kind not in plots.DIFFICULTIES]
    names = {path.name for path in plots.write(plain, tmp_path / "plain")}
    assert names == {f"{name}_{number}.png" for name in plots.PANELS for number in (0, 1)}
    shown = plots.over_difficulty([row for row in report.rows if row.visibility == 0])
    assert [[label for label, _ in [panel[2] for panel in line]] for line in shown] == [
        ["share of trials"] * 2,
        ["from the first novel episode"] * 2,
    ]
    assert shown[0][0][1] == ["control 0 to 0.01", "control 0.2 to 0.35", "control 0.75 to 1"]


def test_what_an_agent_names_is_held_against_the_nearest_family(results):
    rows = {name: column.copy() for name, column in results.rows.items()}
    last = (rows["sample"] == 1) & (rows["episode_index"] == 3)
    rows["entity"][last], rows["attribute"][last] = "push", "direction"
    rows["change"][last] = "right"
    report = analyse(replace(results, rows=rows), None, resamples=50).to_json()
    (row,) = (
        r for r in report["levels"] if r["level"] == "gravity+push_turn" and not r["visibility"]
    )
    assert (row["entity_accuracy"], row["attribute_accuracy"], row["change_accuracy"]) == (1, 1, 0)
    assert row["level_accuracy"] is None


def test_results_of_earlier_versions_have_no_samples(results, tmp_path):
    table = results.table()
    pq.write_table(table.drop_columns(["sample"]), tmp_path / "old.parquet")
    assert set(load_results(tmp_path / "old.parquet").rows["sample"]) == {-1}


# Commands ---------------------------------------------------------------------------------------


def test_generate_takes_a_list(path, tmp_path, capsys):
    (tmp_path / "settings.json").write_text('{"trials": 1, "novelty_visibility": [0]}')
    base = ["sailon", "generate", str(tmp_path / "settings.json"), "--novelties", path]
    out = tmp_path / "open.json"
    assert main([*base, "--split", "held-out", "--samples", "1", "--out", str(out)]) == 0
    assert "1 trials of 1 cells" in capsys.readouterr().out
    assert list(experiment.load(out).entries) == [1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--novelties", "open-world-9"], "did you mean 'open-world-1'"),
        (["--samples", "3"], "'samples' is 3; it needs 'novelty_list'"),
        (["--novelties", "open-world-1", "--split", "mine"], "--split is 'mine'"),
        (["--novelties", "open-world-1", "--samples", "100000"], "open-world-1 has 1 to 1000"),
    ],
)
def test_evaluate_refuses_wrong_lists_before_it_plays(words, reason, tmp_path, capsys):
    command = ["sailon", "evaluate", "--agent", "pd", "--out", str(tmp_path / "out"), *words]
    assert main(command) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_of_a_report_makes_it_again(path):
    job = EvaluationPlan("pd", Path("runs/open"), novelty_list=path, samples=2, split="held out")
    assert f"--novelties {path} --samples 2 --split held-out" in job.command


# The shipped list -------------------------------------------------------------------------------


def test_the_shipped_list_is_never_edited():
    text = (Path(novelties.__file__).parent / "open-world-1.jsonl").read_bytes()
    assert hashlib.sha256(text).hexdigest() == DIGEST
    shipped = novelties.load("open-world-1")
    assert len(shipped.entries) == 1000
    assert shipped.dumps().encode() == text


def test_the_shipped_list_is_split_by_family_and_balanced():
    shipped = novelties.load("open-world-1")
    apart = set(shipped.about["held_out"])
    for one in shipped.entries:
        assert one.held_out == bool(apart & set(one.novelty.families))
    composed = [len(one.novelty.families) > 1 for one in shipped.entries]
    assert sum(composed) == 200
    assert sum(composed[:100]) == 20
    names = {one.novelty.name for one in shipped.entries[:100]}
    assert len(names & set(FAMILIES)) >= len(FAMILIES) - 1  # nothing of cart_bounce was of use
    assert {one.difficulty for one in shipped.entries[:50]} == {"easy", "medium", "hard"}


def test_no_agent_knows_the_names_of_families_that_are_held_out():
    shipped = novelties.load("open-world-1")
    held_out = set(shipped.about["held_out"])
    assert len(held_out) > 10
    for file in Path(jaxsim.agents.__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert held_out.isdisjoint(w for w in words if isinstance(w, str)), file
        assert not any((name or "").startswith("jaxsim.novelty") for name in modules), file
