"""Checkpoints on disk: whole or not at all, and never taken for what they are not."""

import errno
import json
import shutil
from collections import namedtuple

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from ml_dtypes import bfloat16

from evaluation.checkpoints import store
from evaluation.checkpoints.configuration import digest
from evaluation.checkpoints.store import CheckpointError
from evaluation.scanner import Snapshot

LIFETIMES = 3
Pair = namedtuple("Pair", ["first", "second"])
RNG = np.random.default_rng(0)


def memory():
    return {
        "double": RNG.normal(size=(LIFETIMES, 4)),
        "half": RNG.normal(size=(LIFETIMES, 2)).astype(bfloat16),
        "key": RNG.integers(0, 2**32, (LIFETIMES, 2), np.uint32),
        "flags": Pair(np.array([True, False, True]), ()),
        "odd": [np.array([np.nan, -0.0, np.inf], np.float32), np.zeros((LIFETIMES, 0), np.int8)],
        "large": np.arange(LIFETIMES * 5000, dtype=np.float32).reshape(LIFETIMES, -1),
        "whole": np.array([-(2**63), 0, 2**63 - 1]),
    }


def snapshot(rounds=16, known=None):
    outcome = {
        "reward": RNG.normal(size=(LIFETIMES, rounds)).astype(np.float32),
        "length": RNG.integers(0, 200, (LIFETIMES, rounds), np.int32),
    }
    return Snapshot(rounds, memory() if known is None else known, outcome)


def save(folder, taken):
    about = {"configuration": {"lifetimes": LIFETIMES}, "versions": {}, "episodes": taken.rounds}
    return store.save(folder, taken, about)


def loaded(step, like):
    return store.load(step, store.read_manifest(step), like)


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


@pytest.mark.parametrize("known", [None, (), {"a": ()}, np.zeros((LIFETIMES, 0))])
@pytest.mark.parametrize("rounds", [0, 16])
def test_what_is_loaded_is_what_was_saved(folder, known, rounds):
    taken = snapshot(rounds, known)
    back = loaded(save(folder, taken), snapshot(0, taken.memory))
    assert back.rounds == rounds
    assert_same(back.memory, taken.memory)
    assert_same(back.outcome, taken.outcome)


def test_memories_are_loaded_alone(folder):
    taken = snapshot()
    step = save(folder, taken)
    like = jax.tree.map(lambda leaf: leaf[:1], taken.memory)
    assert_same(store.load_memories(step, store.read_manifest(step), like), taken.memory)


def test_the_newest_two_stay(folder):
    for rounds in (16, 32, 48):
        save(folder, snapshot(rounds))
    assert [step.name for step in store.steps(folder)] == ["0000000032", "0000000048"]
    assert store.newest(folder).name == "0000000048"
    assert {path.name for path in folder.iterdir()} == {"0000000032", "0000000048"}


def test_what_killed_saves_left_is_no_checkpoint_and_is_swept(folder):
    step = save(folder, snapshot())
    shutil.copytree(step, folder / ".0000000032-00c0ffee.partial")
    (folder / ".mine.partial").mkdir()
    assert store.steps(folder) == [step]
    store.sweep(folder)
    assert {path.name for path in folder.iterdir()} == {step.name, ".mine.partial"}


def test_no_finished_checkpoint(folder):
    folder.mkdir()
    (folder / ".0000000032-00c0ffee.partial").mkdir()
    with pytest.raises(CheckpointError, match="has no finished checkpoint: nothing of this run"):
        store.newest(folder)


# Damage -------------------------------------------------------------------------------------------


def files(step):
    return sorted(path for path in step.rglob("*") if path.is_file())


def damages():
    def cut(path):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])

    def change(path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    return {"cut": cut, "changed": change, "missing": lambda path: path.unlink()}


@pytest.mark.parametrize("kind", damages())
def test_damage_of_any_file_is_found_and_named(folder, kind):
    taken = snapshot()
    step = save(folder, taken)
    like, kept = snapshot(0, taken.memory), folder.parent / "kept"
    shutil.copytree(step, kept)
    assert len(files(step)) > 5
    for path in files(step):
        damages()[kind](path)
        with pytest.raises(CheckpointError, match=r"checkpoint .*0000000016 is damaged: ") as error:
            loaded(step, like)
        assert path.name in str(error.value)
        shutil.rmtree(step)
        shutil.copytree(kept, step)
    assert_same(loaded(step, like).memory, taken.memory)


def test_the_step_before_is_named_where_there_is_one(folder):
    save(folder, snapshot(16))
    step = save(folder, snapshot(32))
    (step / store.MANIFEST).write_text("{")
    with pytest.raises(CheckpointError, match="remove it to resume from 0000000016"):
        store.read_manifest(step)


def test_another_format_is_refused(folder):
    step = save(folder, snapshot())
    content = store.read_manifest(step) | {"format": "jaxsim-checkpoint-1"}
    sealed = {"content": content, "sha256": store.digest(content)}
    (step / store.MANIFEST).write_text(json.dumps(sealed))
    with pytest.raises(CheckpointError, match="has format jaxsim-checkpoint-1; this version reads"):
        store.read_manifest(step)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda known: {**known, "double": known["double"][:, :3]},
            r"memory\['double'\] is float64 \(3, 4\) in it and float64 \(3, 3\) now",
        ),
        (
            lambda known: {**known, "half": known["half"].astype(np.float16)},
            r"memory\['half'\] is bfloat16 \(3, 2\) in it and float16 \(3, 2\) now",
        ),
        (
            lambda known: {**known, "new": np.zeros(LIFETIMES)},
            r"memory\['new'\] is missing in it and float64 \(3,\) now",
        ),
    ],
)
def test_memories_of_another_agent_are_refused(folder, change, words):
    taken = snapshot()
    step = save(folder, taken)
    with pytest.raises(CheckpointError, match=f"of another agent: {words}"):
        loaded(step, snapshot(0, change(taken.memory)))


# A full disk --------------------------------------------------------------------------------------


def orbax_fails(monkeypatch):
    def fail(*arguments, **options):
        raise ValueError('RESOURCE_EXHAUSTED: Error writing "x": No space left on device [28]')

    monkeypatch.setattr(ocp.Checkpointer, "save", fail)


def manifest_fails(monkeypatch):
    def fail(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "write_whole", fail)


def no_room(monkeypatch):
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)


@pytest.mark.parametrize("fill", [orbax_fails, manifest_fails, no_room])
def test_a_full_disk_leaves_what_was_there(folder, monkeypatch, fill):
    first = save(folder, snapshot(16))
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(OSError, match=r"(?i)no space left") as error:
            save(folder, snapshot(32))
    assert error.value.errno == errno.ENOSPC
    assert {path.name for path in folder.iterdir()} == {first.name}
    taken = snapshot(32)
    assert_same(loaded(save(folder, taken), snapshot(0, taken.memory)).memory, taken.memory)


def test_a_checkpoint_needs_room_for_all_of_its_arrays(folder, monkeypatch):
    taken = snapshot(16)
    rounds = 8  # bytes of their number
    size = rounds + sum(leaf.nbytes for leaf in jax.tree.leaves((taken.memory, taken.outcome)))
    assert store.bytes_of(taken) == size
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=size - 1))
    with pytest.raises(OSError, match=rf"a checkpoint of {size:,} bytes in .*: {size - 1:,} are"):
        save(folder, taken)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=size))
    assert save(folder, taken).is_dir()


def test_a_full_disk_leaves_nothing_where_nothing_was(folder, monkeypatch):
    manifest_fails(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        save(folder, snapshot())
    assert list(folder.parent.iterdir()) == []


# Sealed by somebody else ------------------------------------------------------------------------


def reseal(step, change):
    """Change what a manifest says, and seal it as if it had been written so."""
    path = step / store.MANIFEST
    content = json.loads(path.read_text())["content"]
    change(content)
    path.write_text(json.dumps({"content": content, "sha256": digest(content)}))


def forget(name):
    return lambda content: content.pop(name)


def say(value, *place):
    def change(content):
        for key in place[:-1]:
            content = content[key]
        content[place[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(forget(name) for name in ("rounds", "memory", "outcome", "files", "configuration")),
        say("many", "rounds"),
        say(-1, "rounds"),
        say(True, "episodes"),
        say(2**80, "episodes"),
        say("soon", "seconds"),
        say([], "configuration"),
        say("70", "configuration", "lifetimes"),
        say(0, "configuration", "lifetimes"),
        say(None, "versions"),
        say({}, "memory"),
        say([1], "outcome"),
        say([], "outcome", 0, "shape"),
        say([3], "outcome", 0, "shape"),
        say(["many"], "memory", 0, "shape"),
        say(3, "memory", 0, "dtype"),
        say({"bytes": 1, "sha256": ""}, "files", "../../secret"),
        say({"bytes": 1, "sha256": ""}, "files", "/etc/passwd"),
        say("none", "files", "arrays/x"),
    ],
)
def test_a_manifest_of_nonsense_is_damaged(folder, change):
    step = save(folder, snapshot())
    reseal(step, change)
    with pytest.raises(CheckpointError, match="does not say what this package writes there"):
        store.read_manifest(step)


def test_a_false_number_of_lifetimes_is_refused(folder):
    step = save(folder, snapshot())
    reseal(step, say(2 * LIFETIMES, "configuration", "lifetimes"))
    manifest = store.read_manifest(step)
    like = jax.tree.map(lambda leaf: leaf[:1], memory())
    with pytest.raises(CheckpointError, match="is of another agent: memory"):
        store.load_memories(step, manifest, like)

    def more(content):
        for leaf in content["memory"]:
            leaf["shape"][0] *= 2

    reseal(step, more)
    with pytest.raises(CheckpointError, match="its arrays are not of the shapes"):
        store.load_memories(step, store.read_manifest(step), like)


def test_sizes_that_nobody_has_take_no_memory(folder):
    taken = snapshot()
    step = save(folder, taken)

    def more(content):
        for leaf in content["outcome"]:
            leaf["shape"][1] = 10**15

    reseal(step, more)
    with pytest.raises(CheckpointError, match="its arrays are not of the shapes"):
        loaded(step, taken)


def test_arrays_of_other_content_are_damaged(folder):
    """Files that orbax cannot read, whatever it raises, with digests that fit."""
    taken = snapshot()
    step = save(folder, taken)
    for path in sorted((step / store.ARRAYS).rglob("*")):
        if path.is_file():
            path.write_bytes(b"\x00nonsense")

    def seal(content):
        for name in content["files"]:
            content["files"][name] = store._size_and_digest(step / name)

    reseal(step, seal)
    with pytest.raises(CheckpointError, match="is damaged"):
        loaded(step, taken)
