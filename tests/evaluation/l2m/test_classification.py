"""Classification learning: syllabi of data sets, courses that keep the truth, learners, logs."""

import csv
import json
import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from evaluation import cli, records
from evaluation.l2m.classification import data, folders, learners
from evaluation.l2m.classification import run as classification
from evaluation.l2m.classification.course import Course
from evaluation.l2m.classification.log import write_log
from evaluation.l2m.classification.run import as_records, play
from evaluation.l2m.classification.syllabus import DatasetSyllabus, load, loads
from evaluation.l2m.report2019 import ClassificationMetricsReport
from evaluation.l2m.syllabus import SyllabusError
from evaluation.report import summarise_records

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "syllabi" / "moved_digits.json"
CLASSES, SIZE, EACH = 4, 6, 40


def bars() -> data.ImageData:
    """Noisy pictures of one bright row, whose number is the class; in shuffled order."""
    generator = np.random.default_rng(5)
    labels = generator.permutation(np.repeat(np.arange(CLASSES), EACH)).astype(np.int32)
    images = 0.2 * generator.random((len(labels), SIZE, SIZE)).astype(np.float32)
    images[np.arange(len(labels)), labels] = 1.0
    return data.ImageData(images, labels, CLASSES)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Make the small data set known, under the name Bars."""
    spec = data.DataSpec("Bars", CLASSES, SIZE, bars, "one bright row")
    monkeypatch.setitem(data.DATA_SETS, "Bars", spec)


def text(*instructions, **top):
    return json.dumps({"name": "bars", **top, "instructions": list(instructions)})


def train(k=1):
    return {"$phase": f"{k}.train"}


def bars_of(**values):
    return {"$dataset": "Bars", "batches": 3, "batch_size": 8} | {
        name.replace("__", "/"): value for name, value in values.items()
    }


OFF, ON = {"$info": {"disable_updates": True}}, {"$info": {}}
TESTED = [{"$phase": "1.test"}, OFF, bars_of(), ON]


def course(*instructions, **options) -> Course:
    return Course(loads(text(*(instructions or (train(), bars_of())))), **options)


def first(*instructions):
    dataset = next(course(*instructions).datasets())
    dataset.reset()
    return dataset


# ------------------------------------------------------------------ syllabi


def test_a_syllabus_gives_data_sets_and_blocks():
    moved = bars_of(features__shift_x=1)
    twice = {"$repeat": bars_of(), "count": 2}
    syllabus = loads(text(train(), bars_of(), twice, moved, *TESTED, train(2), moved))
    blocks = [
        (b.phase, b.mode, b.task, dict(b.parameters), b.count, b.learning)
        for b in syllabus.schedule.blocks
    ]
    assert blocks == [
        (1, "train", "Bars", {}, 9, True),
        (1, "train", "Bars", {"features/shift_x": 1}, 3, True),
        (1, "test", "Bars", {}, 3, False),
        (2, "train", "Bars", {"features/shift_x": 1}, 3, True),
    ]
    assert [(plan.block, plan.batches) for plan in syllabus.plans] == [
        (0, 3),
        (0, 3),
        (0, 3),
        (1, 3),
        (2, 3),
        (3, 3),
    ]


def test_defaults_of_the_syllabus_and_the_number_of_batches_that_the_examples_fill():
    syllabus = loads(
        text(train(), {"$dataset": "Bars", "batch_size": 30}, default_params={"labels/shift": 1})
    )
    (plan,) = syllabus.plans
    assert plan.values["labels/shift"] == 1
    assert plan.batches == 120 // 30  # three quarters of the examples are for training


def test_the_shipped_syllabus_is_one():
    blocks = load(EXAMPLE).schedule.blocks
    assert len(blocks) == 13
    assert {b.task for b in blocks} == {"Digits"}
    assert [b.mode for b in blocks].count("train") == 4


@pytest.mark.parametrize(
    ("instructions", "words"),
    [
        ([bars_of()], "before the first phase"),
        ([train(), {"$dataset": "Bar"}], "did you mean 'Bars'"),
        ([train(), bars_of(feature__turns=1)], "did you mean 'features/turns'"),
        ([train(), bars_of(features__shift_x=9)], "a whole number from -5 to 5"),
        ([train(), bars_of(features__noise="a")], "must be a number from 0 to 1"),
        ([train(), bars_of(classes__first=3, classes__last=1)], "'classes/first' is above"),
        ([train(), bars_of(batches=0)], "'batches' is 0; it must be a whole number from 1"),
        ([train(), bars_of(batch_size=5000)], "from 1 to 4096"),
        ([train(), {"$repeat": bars_of()}], 'has no "count"'),
        ([train(), {"$repeat": {}, "count": 2}], 'has no "\\$dataset"'),
        ([train(), {"$episode": "Pong"}], "none of the keys .*\\$dataset"),
        ([train()], "this phase has no episodes"),
        ([], "at least one instruction"),
        ([{"$phase": "1.test"}], "the first is a train phase"),
    ],
)
def test_a_wrong_syllabus_is_refused_with_its_place(instructions, words):
    with pytest.raises(SyllabusError, match=words) as caught:
        loads(text(*instructions), "mine.json")
    assert str(caught.value).startswith("mine.json:1:")


def test_a_syllabus_of_episodes_is_refused():
    with pytest.raises(SyllabusError, match='must be "datasets"'):
        loads(text(train(), bars_of(), contains="episodes"))


# ------------------------------------------------------------------ variation


def test_features_move_turn_invert_and_get_noisy():
    image = np.zeros((1, 3, 3), np.float32)
    image[0, 0, 0] = 1.0
    label = np.array([3], np.int32)
    spec = data.DataSpec("x", 4, 3, bars, "")

    def varied(**changes):
        values = spec.fill({name.replace("__", "/"): v for name, v in changes.items()})
        generator = np.random.default_rng(0)
        images, labels = data.vary(image, label, 4, values, generator)
        return images[0], int(labels[0])

    assert np.argwhere(varied(features__shift_x=2)[0] == 1).tolist() == [[0, 2]]
    assert np.argwhere(varied(features__shift_y=1)[0] == 1).tolist() == [[1, 0]]
    assert varied(features__shift_x=-1)[0].sum() == 0
    assert np.argwhere(varied(features__turns=1)[0] == 1).tolist() == [[2, 0]]
    assert varied(features__contrast=-1.0)[0].sum() == 8
    assert varied()[0].tolist() == image[0].tolist()
    assert 0 < np.std(varied(features__noise=0.1)[0] - image[0]) < 0.3
    assert varied(labels__shift=2)[1] == 1


def test_training_and_test_examples_are_different_ones():
    examples = bars()
    training = set(examples.rows("train", 0, CLASSES - 1))
    testing = set(examples.rows("test", 0, CLASSES - 1))
    assert not training & testing
    assert len(training) == 3 * len(testing)
    assert set(examples.labels[examples.rows("train", 1, 2)]) == {1, 2}


def test_arrays_that_are_no_data_set_are_refused():
    with pytest.raises(ValueError, match=r"must be \(N, H, W\)"):
        data.ImageData(np.zeros((2, 3), np.float32), np.zeros(2, np.int32), 2)
    with pytest.raises(ValueError, match="labels must be from 0 to 1"):
        data.ImageData(np.zeros((1, 3, 3), np.float32), np.full(1, 2, np.int32), 2)


# ------------------------------------------------------------------ the course


@pytest.mark.requirement(108)
def test_the_loop_of_the_document():
    """As the document has it, with labels only where updates are enabled."""
    lifetime = course(train(), bars_of(), *TESTED)
    answers = []
    for dataset in lifetime.datasets():
        dataset.reset()
        done = False
        while not done:
            batch, done, info = dataset.next_batch()
            y_hat = batch["inputs"].mean(axis=2).argmax(axis=1)
            y = dataset.get_labels(batch["id"], y_hat)
            answers.append((bool(y), info["disable_updates"]))
            if y:
                assert list(y) == y_hat.tolist()
    assert answers == [(True, False)] * 3 + [(False, True)] * 3
    assert [score.accuracy for score in lifetime.scores] == [1.0] * 6
    assert [score.batch for score in lifetime.scores] == list(range(6))


@pytest.mark.requirement(109)
def test_the_error_is_the_course_s_own():
    lifetime = course()
    dataset = next(lifetime.datasets())
    dataset.reset()
    batch, _, _ = dataset.next_batch()
    truth = batch["inputs"].mean(axis=2).argmax(axis=1)
    batch["inputs"][:] = 0  # what an agent does to its copy changes nothing
    wrong = (truth + (np.arange(8) < 3)) % CLASSES
    labels = dataset.get_labels(batch["id"], wrong)
    assert labels == tuple(truth.tolist())
    (score,) = lifetime.scores
    assert (score.correct, score.examples, score.error) == (5, 8, 0.375)


@pytest.mark.requirement(110)
def test_labels_are_given_once_and_for_the_right_batch():
    dataset = first()
    batch, _, _ = dataset.next_batch()
    answer = np.zeros(8, int)
    with pytest.raises(ValueError, match="batch id is 'Bars-7'; it must be 'Bars-0'"):
        dataset.get_labels("Bars-7", answer)
    dataset.get_labels(batch["id"], answer)
    with pytest.raises(ValueError, match="has been answered; labels are given once"):
        dataset.get_labels(batch["id"], answer)
    with pytest.raises(ValueError, match=r"call next_batch\(\) first"):
        dataset.get_labels("Bars-1", answer)


def test_batches_come_one_by_one():
    lifetime = course()
    (dataset,) = [next(lifetime.datasets())]
    with pytest.raises(ValueError, match=r"call reset\(\) first"):
        dataset.next_batch()
    dataset.reset()
    with pytest.raises(ValueError, match="has been reset before"):
        dataset.reset()
    dataset.next_batch()
    with pytest.raises(ValueError, match="'Bars-0' has no answer"):
        dataset.next_batch()


def test_no_batch_comes_after_the_last_and_none_may_be_left_out():
    lifetime = course()
    sets = lifetime.datasets()
    dataset = next(sets)
    dataset.reset()
    with pytest.raises(ValueError, match="has batches without an answer"):
        next(sets)
    for _ in range(3):
        batch, done, _ = dataset.next_batch()
        dataset.get_labels(batch["id"], np.zeros(8, int))
    assert done
    assert dataset.finished
    with pytest.raises(ValueError, match="has only 3 batches"):
        dataset.next_batch()
    with pytest.raises(ValueError, match="the course has begun; make another one"):
        next(lifetime.datasets())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.zeros(7, int), r"\(7,\); it must be one class per example, \(8,\)"),
        (np.zeros((8, CLASSES)), "one class per example"),
        (np.zeros(8), "whole numbers"),
        (np.full(8, CLASSES), "from 0 to 3"),
        (np.full(8, -1), "from 0 to 3"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_not_scored(answer, words):
    lifetime = course()
    dataset = next(lifetime.datasets())
    dataset.reset()
    batch, _, _ = dataset.next_batch()
    with pytest.raises(ValueError, match=words):
        dataset.get_labels(batch["id"], answer)
    assert lifetime.scores == []
    dataset.get_labels(batch["id"], np.zeros(8, int))
    assert len(lifetime.scores) == 1


def inputs(**options):
    collected = []
    lifetime = course(train(), bars_of(features__noise=0.1), bars_of(labels__shift=1), **options)
    for dataset in lifetime.datasets():
        dataset.reset()
        done = False
        while not done:
            batch, done, _ = dataset.next_batch()
            collected.append(batch["inputs"])
            dataset.get_labels(batch["id"], np.zeros(8, int))
    return np.stack(collected)


def test_a_seed_and_a_lifetime_give_the_same_batches_again_and_others_do_not():
    once = inputs(seed=3, lifetime=1)
    np.testing.assert_array_equal(once, inputs(seed=3, lifetime=1))
    assert not np.array_equal(once, inputs(seed=3, lifetime=2))
    assert not np.array_equal(once, inputs(seed=4, lifetime=1))
    with pytest.raises(ValueError, match="0 or more"):
        course(seed=-1)


def test_few_examples_are_shown_again_each_as_often():
    syllabus = loads(text(train(), bars_of(batches=6, batch_size=40)))
    lifetime = Course(syllabus)
    dataset = next(lifetime.datasets())
    dataset.reset()
    images = []
    for _ in range(6):
        batch, _, _ = dataset.next_batch()
        images += [image.tobytes() for image in batch["inputs"]]
        dataset.get_labels(batch["id"], np.zeros(40, int))
    assert {images.count(image) for image in set(images)} == {2}
    assert len(set(images)) == 120


def test_classes_without_examples_say_so():
    few = data.ImageData(np.zeros((4, 3, 3), np.float32), np.zeros(4, np.int32), 4)
    syllabus = loads(text(train(), bars_of(classes__first=2)))
    dataset = next(Course(syllabus, examples={"Bars": few}).datasets())
    dataset.reset()
    with pytest.raises(ValueError, match="Bars has no train examples of classes 2 to 3"):
        dataset.next_batch()


# ------------------------------------------------------------------ learners


LESSON = (
    train(),
    bars_of(batches=40),
    {"$phase": "1.test"},
    bars_of(batches=12),
    train(2),
    bars_of(batches=40, labels__shift=1),
    {"$phase": "2.test"},
    bars_of(batches=12),
)


@pytest.fixture(scope="module")
def lives():
    """Two lifetimes of a learner that is taught the labels anew."""
    with pytest.MonkeyPatch.context() as patch:
        spec = data.DataSpec("Bars", CLASSES, SIZE, bars, "one bright row")
        patch.setitem(data.DATA_SETS, "Bars", spec)
        syllabus = loads(text(*LESSON))
        return syllabus, play(syllabus, learners.get("mlp"), 2)


def means(life, syllabus):
    return [
        np.mean([score.accuracy for score in life if score.block == block.index][-6:])
        for block in syllabus.schedule.blocks
    ]


def test_a_network_learns_and_forgets(lives):
    syllabus, scores = lives
    for life in scores:
        learned, tested, relearned, forgotten = means(life, syllabus)
        assert min(learned, tested, relearned) > 0.9
        assert forgotten < 0.2


def test_softmax_learns_and_chance_does_not():
    syllabus = loads(text(*LESSON[:4]))
    assert means(play(syllabus, learners.get("softmax"), 1)[0], syllabus)[1] > 0.9
    guessed = play(syllabus, learners.get("chance"), 1)[0]
    share = np.mean([score.accuracy for score in guessed])
    assert abs(share - 1 / CLASSES) < 0.1


def test_a_lifetime_is_the_same_alone_and_among_others(lives):
    syllabus, scores = lives
    alone = Course(syllabus, 0, 1)
    key = jax.random.fold_in(jax.random.key(0), 1)
    learners.play(alone, learners.get("mlp"), key)
    assert alone.scores == scores[1]
    assert alone.scores != scores[0]


def test_an_unknown_learner_or_a_bad_setting_says_what_to_change():
    with pytest.raises(ValueError, match="one of chance, softmax, mlp"):
        learners.get("resnet")
    with pytest.raises(ValueError, match="hidden must be 0 or more"):
        learners.network(hidden=-1)


# ------------------------------------------------------------------ records, logs and metrics


def test_scores_are_records_and_a_report(lives, tmp_path):
    syllabus, scores = lives
    table = as_records(syllabus, scores, {"agent": "mlp", "seed": 0})
    report = summarise_records(table, window=11)
    maintained = report.blocks["performance_maintenance_saturation_value"].mean
    assert abs(maintained[1]) < 0.05
    assert maintained[3] > 0.7
    table.write(tmp_path / "r.parquet")
    again = records.read(tmp_path / "r.parquet")
    np.testing.assert_array_equal(again.columns["reward"], table.columns["reward"])
    assert again.schedule == syllabus.schedule


def test_the_log_has_one_row_a_batch_in_the_columns_of_2019(lives, tmp_path):
    syllabus, scores = lives
    start = datetime(2019, 12, 4, 10, 30, 25)
    folder = write_log(syllabus, scores[0], tmp_path, 9, 0, start)
    assert folder.name.startswith("bars-lifetime-0-15754")
    file = folder / "worker-env-0" / "4-2_test" / "test_bars" / "data-log.tsv"
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len(rows) == 12
    assert list(rows[0])[:5] == ["timestamp", "phase", "worker", "class_name", "block"]
    assert {row["source"] for row in rows} == {"GET_LABELS"}
    assert rows[0]["task"] == "92"
    assert rows[0]["timestamp"] == "20191204T103025.000092"
    assert float(rows[0]["score"]) == 1 - float(rows[0]["score_error"])
    report = (folder / "worker-env-0" / "3-2_train" / "train_bars" / "block-report.tsv").read_text()
    assert report.splitlines()[1] == '2.train\tenv-0\ttrain_bars\t2\t"{""labels/shift"": 1}"'


def test_metrics_of_the_log_show_the_forgetting(lives, tmp_path, monkeypatch):
    monkeypatch.setenv("L2DATA", str(tmp_path))
    syllabus, scores = lives
    log = write_log(syllabus, scores[0], tmp_path, 0, 0)
    report = ClassificationMetricsReport(log_dir=log, syllabus_subtype="CL")
    report.calculate()
    assert report.table.counts.tolist() == [40, 12, 40, 12]
    values = report.to_json()["metrics"]["Performance Maintenance on Test Sets"]
    fall = values["saturation_difference"]
    assert fall["3"] > 0.7 > 0.05 > abs(fall["1"])


# ------------------------------------------------------------------ the command


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "bars.json"
    path.write_text(text(*LESSON[:4]))
    return path


def test_the_command_writes_everything(file, tmp_path):
    out = tmp_path / "out"
    arguments = ["classify", str(file), "--learner", "softmax", "--lifetimes", "2", "--quiet"]
    assert cli.main([*arguments, "--out", str(out), "--log-lifetime", "1"]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "logs",
        "records.parquet",
        "report.json",
        "schedule.json",
    ]
    report = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)
    assert report["blocks"][1]["metrics"]["saturation_value"]["lifetimes"] == 2
    (log,) = (out / "logs").iterdir()
    assert log.name.startswith("bars-lifetime-1-")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--learner", "gpt"], "learner is 'gpt'"),
        (["--lifetimes", "0"], "lifetimes is 0"),
        (["--window", "4"], "window is 4"),
        (["--seed", "-1"], "seed is -1"),
        (["--log-lifetime", "9"], "log-lifetime is 9; it must be from 0 to 7"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(file, tmp_path, capsys, arguments, words):
    out = tmp_path / "out"
    assert cli.main(["classify", str(file), "--out", str(out), *arguments]) == 2
    line = capsys.readouterr().err.strip()
    assert words in line
    assert "\n" not in line
    assert not out.exists()


def test_the_help_of_the_command_has_examples(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["classify", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for words in ("--learner NAME", "--log-lifetime K", "examples:", "records.parquet"):
        assert words in shown


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r"jaxsim-novelty\[classification\]"):
        data.digits()


@pytest.mark.slow
def test_digits_are_learned_forgotten_and_moved():
    pytest.importorskip("sklearn")
    examples = {"Digits": data.digits()}
    assert examples["Digits"].images.shape == (1797, 8, 8)
    assert examples["Digits"].images.max() == 1.0
    syllabus: DatasetSyllabus = load(EXAMPLE)
    (life,) = play(syllabus, learners.get("mlp"), 1, examples=examples)
    ends = means(life, syllabus)
    assert ends[1] > 0.9  # learned
    assert ends[5] < 0.6  # and forgotten for the moved ones
    assert ends[6] > 0.9
    assert ends[10] > 0.85


def test_the_performer_of_the_page_can_be_run(file):
    page = (ROOT / "docs" / "metrics-2019.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]
    batch_sizes = []
    names = {
        "syllabus": file,
        "infer": lambda images: images.mean(axis=2).argmax(axis=1),
        "learn": lambda images, labels: batch_sizes.append(len(labels)),
    }
    exec(compile(code, "page", "exec"), names)
    assert batch_sizes == [8] * 40
    assert len(names["course"].scores) == 52
    shown = json.loads(re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0])
    assert len(loads(json.dumps(shown)).schedule.blocks) == 3
    table = page.split("| parameter |")[1]
    assert set(re.findall(r"`(\w+/\w+)`", table)) == set(data.DATA_SETS["Bars"].parameters)


# Randomness and settings --------------------------------------------------------------------------


def keys_of(seed, lifetime):
    """The keys that a learner is given in a lifetime: one to begin with, and one a batch."""
    keys, shapes = [], []

    def init(key, features, classes):
        keys.append(key)
        shapes.append((features, classes))
        return 0

    def predict(state, inputs, key):
        keys.append(key)
        assert state == sum(learned)
        return np.zeros(len(inputs), int)

    def learn(state, inputs, labels):
        learned.append(1)
        assert len(inputs) == len(labels) == 8
        return state + 1

    learned = []
    root = jax.random.fold_in(jax.random.key(seed), lifetime)
    taken = course(train(), bars_of(), bars_of(features__shift_x=1), *TESTED)
    assert learners.play(taken, learners.PureLearner(init, predict, learn), root) == 6
    assert shapes == [(SIZE * SIZE, CLASSES)]
    return [tuple(jax.random.key_data(key).tolist()) for key in keys]


def test_every_batch_is_answered_with_a_key_of_its_own():
    first, again, other = keys_of(5, 2), keys_of(5, 2), keys_of(5, 3)
    assert first == again and len(first) == 1 + 9
    assert len({*first, *other}) == 2 * 10


def test_lifetimes_have_keys_and_batches_of_the_seed(monkeypatch):
    asked = []

    def note(taken, learner, key):
        asked.append((taken._root, jax.random.key_data(key).tolist()))

    monkeypatch.setattr(learners, "play", note)
    play(loads(text(*LESSON)), "learner", 3, 5)
    root = jax.random.key(5)
    assert asked == [
        ((5, k), jax.random.key_data(jax.random.fold_in(root, k)).tolist()) for k in range(3)
    ]


def test_what_a_run_writes_follows_from_its_settings(tmp_path, monkeypatch):
    file = tmp_path / "bars.json"
    file.write_text(text(train(), bars_of(), *TESTED))
    asked, made = [], {}

    def summarise(*given):
        asked.append(given)
        return SimpleNamespace(to_json=lambda: {"report": "made up"})

    monkeypatch.setattr(classification, "summarise_records", summarise)
    job = classification.ClassificationRun(
        file, tmp_path / "out", "chance", lifetimes=3, seed=5, window=3, log_lifetimes=(0, 2)
    )
    syllabus = job.checked_syllabus()
    classification.run(job, syllabus)
    scores = play(syllabus, learners.get("chance"), 3, 5)
    ((given, *rest),) = asked
    assert rest == ["performance", 3, 5]
    about = {"agent": "chance", "seed": 5, "version": given.metadata["version"]}
    expected = as_records(syllabus, scores, about)
    written = records.read(job.out / "records.parquet")
    for name, column in expected.columns.items():
        np.testing.assert_array_equal(given.columns[name], column)
        np.testing.assert_array_equal(written.columns[name], column)
    assert given.metadata == about and written.metadata["agent"] == "chance"
    assert (job.out / "schedule.json").read_text() == syllabus.schedule.dumps()
    assert json.loads((job.out / "report.json").read_text()) == {"report": "made up"}
    for log in (job.out / "logs").iterdir():
        (lifetime,) = (k for k in (0, 2) if f"-lifetime-{k}-" in log.name)
        rows = []
        for table in sorted(log.rglob("data-log.tsv")):
            with table.open() as lines:
                rows += csv.DictReader(lines, delimiter="\t")
        made[lifetime] = [(int(row["task"]), float(row["score"])) for row in rows]
        assert {row["seed"] for row in rows} == {"5"}
    assert made == {k: [(s.batch, s.accuracy) for s in scores[k]] for k in (0, 2)}


# Data sets of arrays -----------------------------------------------------------------------------


def write_arrays(folder, **other):
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for mode, number in (("train", 40), ("test", 12)):
        images = random.integers(0, 255, (number, 6, 6, 3), dtype=np.uint8)
        np.save(folder / f"{mode}_images.npy", images)
        np.save(folder / f"{mode}_labels.npy", np.arange(number) % 4)
    for name, array in other.items():
        np.save(folder / f"{name}.npy", array)


ARRAYS = """{"name": "arrays", "contains": "datasets", "instructions": [
 {"$phase": "1.train"}, {"$dataset": "Tiny", "batches": 3},
 {"$phase": "1.test"}, {"$dataset": "Tiny", "features/turns": 1, "batches": 2}]}"""


def test_a_syllabus_of_data_sets_of_a_folder_is_checked(tmp_path, monkeypatch, capsys):
    data_sets = dict(data.DATA_SETS)
    monkeypatch.setattr(data, "DATA_SETS", data_sets)
    monkeypatch.setattr(folders, "DATA_SETS", data_sets)
    write_arrays(tmp_path / "sets" / "Tiny")
    (tmp_path / "arrays.json").write_text(ARRAYS)
    assert cli.main(["validate", str(tmp_path / "arrays.json")]) == 1
    assert "unknown data set 'Tiny'" in capsys.readouterr().out
    options = ["--data", str(tmp_path / "sets")]
    assert cli.main(["validate", str(tmp_path / "arrays.json"), *options]) == 0


def test_colour_images_of_a_folder_are_a_data_set(tmp_path, monkeypatch):
    data_sets = dict(data.DATA_SETS)
    monkeypatch.setattr(data, "DATA_SETS", data_sets)
    monkeypatch.setattr(folders, "DATA_SETS", data_sets)
    write_arrays(tmp_path / "sets" / "Tiny")
    assert folders.register(tmp_path / "sets") == ["Tiny"]
    examples = data.spec("Tiny").load()
    assert examples.images.shape == (52, 6, 6, 3) and examples.classes == 4
    assert examples.images.max() <= 1
    assert examples.rows("train", 0, 3).tolist() == list(range(40))
    assert examples.rows("test", 1, 1).tolist() == [41, 45, 49]
    course = Course(loads(ARRAYS), seed=0)
    for dataset in course.datasets():
        dataset.reset()
        done = False
        while not done:
            batch, done, _ = dataset.next_batch()
            assert batch["inputs"].shape[1:] == (6, 6, 3)
            dataset.get_labels(batch["id"], np.zeros(len(batch["inputs"]), int))
    assert len(course.scores) == 5
    with pytest.raises(ValueError, match=r"the name 'Tiny' of .* is taken"):
        folders.register(tmp_path / "sets")
    for name, words in (("tiny", "is taken"), ("my set", "must be letters, digits")):
        write_arrays(tmp_path / name / name)
        with pytest.raises(ValueError, match=f"the name '{name}' of .* {words}"):
            folders.register(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test_labels": np.zeros(3, int)}, "images .* and labels"),
        ({"test_labels": np.zeros(12)}, "test_labels.npy must hold one whole number per image"),
        ({"train_images": np.zeros((40, 6, 5))}, r"train_images.npy is \(40, 6, 5\); it must be"),
        ({"train_images": np.full((40, 6, 6, 3), 2.0)}, "must hold bytes, or numbers from 0 to 1"),
        ({"test_images": np.zeros((12, 4, 4))}, "they must be of one shape"),
        ({"train_images": np.zeros((40, 0, 0))}, r"is \(40, 0, 0\); it must be"),
        ({"test_labels": np.full(12, 2**33 + 1)}, "must hold classes from 0 to 65535"),
        ({"test_labels": np.full(12, -1)}, "must hold classes from 0 to 65535"),
    ],
)
def test_a_folder_that_is_no_data_set_is_refused(tmp_path, change, words):
    write_arrays(tmp_path / "Tiny", **change)
    with pytest.raises(ValueError, match=words):
        folders.read(tmp_path / "Tiny")
    (tmp_path / "Tiny" / "test_labels.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match="is not an array of numbers"):
        folders.read(tmp_path / "Tiny")
    with pytest.raises(ValueError, match="has no data set"):
        folders.register(tmp_path / "Tiny")


def test_an_array_larger_than_its_file_is_refused(tmp_path):
    write_arrays(tmp_path / "Tiny")
    header = {"descr": "|u1", "fortran_order": False, "shape": (2**40, 6, 6)}
    with (tmp_path / "Tiny" / "test_images.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ValueError, match=r"test_images\.npy is not an array of numbers"):
        folders.read(tmp_path / "Tiny")


TWO = """{"name": "two", "contains": "datasets", "instructions": [
 {"$phase": "1.train"}, {"$dataset": "A", "batches": 40}, {"$dataset": "B", "batches": 40},
 {"$phase": "1.test"}, {"$dataset": "A", "batches": 4}, {"$dataset": "B", "batches": 4}]}"""


def striped(classes, first, size=6):
    """Images with one bright row, `first` and the class after it."""
    labels = np.repeat(np.arange(classes, dtype=np.int32), 24)
    images = np.zeros((len(labels), size, size), np.float32)
    images[np.arange(len(labels)), (first + labels) % size] = 1
    return data.ImageData(images, labels, classes)


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_data_sets_with_fewer_and_more_classes_share_a_learner(order, monkeypatch):
    sets = {"A": striped(2, 0), "B": striped(4, 2)}
    specs = {n: data.DataSpec(n, s.classes, 6, lambda s=s: s, n) for n, s in sets.items()}
    monkeypatch.setattr(data, "DATA_SETS", specs)
    text = TWO if order == "AB" else TWO.translate(str.maketrans("AB", "BA"))
    lives = {name: play(loads(text), learners.get(name), 4) for name in ("mlp", "chance")}
    shares = {
        name: np.array([[score.accuracy for score in life[-8:]] for life in scores])
        for name, scores in lives.items()
    }
    assert shares["mlp"][:, 4:].min() > 0.99  # of the data set that was learned last
    # One of four classes is guessed also where two appear; +- 4 standard errors of 1,024 images.
    assert abs(shares["chance"].mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 1024)


def test_images_of_two_sizes_are_refused_by_a_learner(monkeypatch):
    sets = {"A": striped(2, 0), "B": striped(2, 0, size=5)}
    specs = {n: data.DataSpec(n, s.classes, 6, lambda s=s: s, n) for n, s in sets.items()}
    monkeypatch.setattr(data, "DATA_SETS", specs)
    with pytest.raises(ValueError, match=r"one size for a learner; here A \(6, 6\), B \(5, 5\)"):
        play(loads(TWO), learners.get("softmax"), 1)
