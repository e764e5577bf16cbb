"""Traced programs in a folder: they are used, change no result, and are of the same source."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lru_cache import LRUCache

import jaxsim
from evaluation.cache import folder
from jaxsim import agents, program_store, rng
from jaxsim.agents import Agent
from jaxsim.agents.base import NoveltyPrediction
from jaxsim.lanes import crew, kept
from jaxsim.lanes.lists import Rounds, Rows
from jaxsim.lanes.program import Program

PLAY = """
import sys
import jaxsim
from jaxsim import agents, program_store
from jaxsim.lanes.program import Program

program_store.STARTED += 3600  # although its source may have been edited a moment ago

def refuse(program, batch):
    raise SystemExit("traced")

if sys.argv[1] == "refuse":
    Program.__call__ = refuse
world = jaxsim.make(sys.argv[2], {sys.argv[3]: 0.2} if sys.argv[3:] else {})
spread = jaxsim.Spread(threads=1)
print(jaxsim.rollout(*world, agents.get("random"), 64, spread=spread).length.tolist())
"""


def output_of(place: Path, *words: str) -> str:
    """Output of a process with a store: lengths of episodes, or that it would have traced."""
    process = subprocess.run(
        [sys.executable, "-c", PLAY, *words],
        env=os.environ | {program_store.VARIABLE: str(place)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return process.stdout + process.stderr


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A store, for a process whose source is old enough."""
    monkeypatch.setenv(program_store.VARIABLE, str(tmp_path))
    monkeypatch.setattr(program_store, "STARTED", time.time() + 3600)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Forget the compiled programs of this process."""
    crew.executable.cache_clear()


def of_package(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as if it were defined in the package."""
    function.__module__ = "jaxsim.made_up"
    return function


def push(action: int) -> Agent:
    """An agent that always pushes in one direction."""

    def act(memory: Any, observation: Any, key: Any) -> Any:
        return jnp.int32(action), NoveltyPrediction.none(), memory

    return Agent("push", of_package(act))


def play(agent: Agent, name: str = "CartPole-v1", numbers: int = 64, **options: bool) -> Rows:
    """Rows of two rounds of lifetimes."""
    env, params = jaxsim.make(name)
    lifetimes = crew.Crew(
        agent,
        [env],
        [params],
        jaxsim.counters.root(3),
        np.arange(numbers),
        spread=jaxsim.Spread(threads=1),
        **options,
    )
    first = np.arange(2, dtype=np.int32)[:, None]
    return lifetimes.play(Rounds(first, first * 0 + 1, first * 0, first * 0))


@pytest.fixture
def traced(monkeypatch) -> list[Program]:
    """Programs that are traced."""
    calls = []
    trace = Program.__call__

    def noted(program, batch):
        calls.append(program)
        return trace(program, batch)

    monkeypatch.setattr(Program, "__call__", noted)
    return calls


def leaves(rows: Rows) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(rows)]


def same(one: Rows, other: Rows) -> bool:
    """Whether rows have the same structure and the same bits."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    return all(map(np.array_equal, leaves(one), leaves(other)))


def test_a_second_process_does_not_trace(tmp_path):
    first = output_of(tmp_path, "trace", "CartPole-v1")
    assert first.startswith("[")
    assert output_of(tmp_path, "refuse", "CartPole-v1") == first
    # Numbers are data; another environment is another program.
    longer = output_of(tmp_path, "refuse", "CartPole-v1", "pole/length")
    assert longer.startswith("[") and longer != first
    assert output_of(tmp_path, "refuse", "CartPole2D-v0") == "traced\n"


KEEP = """
import os, sys
import jax, jaxsim
from jaxsim import program_store
jaxsim.keep_compiled(sys.argv[1])
print(os.environ[program_store.VARIABLE], jax.config.jax_compilation_cache_dir)
"""


def test_one_call_keeps_compiled_and_traced_programs(tmp_path):
    command = [sys.executable, "-c", KEEP, str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [str(tmp_path)] * 2


@pytest.mark.parametrize(
    ("agent", "options"),
    [(agents.get("random"), {}), (push(1), {"names": True}), (push(1), {"predicts": False})],
)
def test_results_are_the_same_with_and_without_a_store(agent, options, place, traced, monkeypatch):
    fresh = play(agent, **options)
    assert len(traced) == 1 and len(list(place.glob("traced-*-cache"))) == 1
    forget()
    loaded = play(agent, **options)
    assert len(traced) == 1
    assert same(loaded, fresh)
    monkeypatch.delenv(program_store.VARIABLE)
    forget()
    assert same(play(agent, **options), fresh)
    assert len(traced) == 2


def with_keys() -> Agent:
    """An agent of the package whose memory has typed keys and a fault."""
    init = of_package(lambda key: {"key": key, "number": 3})
    fault = of_package(lambda memory: memory["number"] - 3)

    def act(memory: Any, observation: Any, key: Any) -> Any:
        word = rng.words(memory["key"]).b  # refuses what is no typed key
        return (word & 1).astype(jnp.int32), NoveltyPrediction.none(), memory

    return Agent("keyed", of_package(act), init=init, fault=fault, faults=("never",))


def test_keys_and_faults_are_kept_too(place, traced):
    fresh = play(with_keys())
    forget()
    assert same(play(with_keys()), fresh)
    assert fresh.fault is not None
    assert len(traced) == 1


@pytest.mark.parametrize(
    "changed",
    [
        lambda: play(agents.get("random")),
        lambda: play(push(0)),
        lambda: play(push(1), "CartPole2D-v0"),
        lambda: play(push(1), names=True),
        lambda: play(push(1), numbers=200),
    ],
)
def test_what_differs_is_another_program(changed: Callable[[], Rows], place, traced):
    play(push(1))
    changed()
    assert len(traced) == 2


def test_the_options_of_jax_are_part_of_the_key(place, monkeypatch):
    key = program_store.key_of(1)
    assert key and key == program_store.key_of(1) != program_store.key_of(2)
    with jax.numpy_rank_promotion("raise"):
        assert program_store.key_of(1) != key
    monkeypatch.setattr(program_store, "_versions", lambda: ("another",))
    assert program_store.key_of(1) != key


def test_the_source_is_part_of_the_key(place, monkeypatch):
    key = program_store.key_of(1)
    files = {"a.py": b"1", "b.py": b"2"}
    source = place / "source"
    source.mkdir()
    monkeypatch.setattr(program_store, "ROOT", source)

    def keyed() -> str | None:
        program_store._source_digest.cache_clear()
        return program_store.key_of(1)

    keys = [key]
    for name, content in [*files.items(), ("a.py", b"3"), ("a.py", b"1")]:
        (source / name).write_bytes(content)
        keys.append(keyed())
    (source / "b.py").rename(source / "c.py")
    keys.append(keyed())
    program_store._source_digest.cache_clear()
    assert keys[2] == keys[4]
    assert len(set(keys)) == 5 and None not in keys


def test_source_that_changed_since_the_start_is_neither_loaded_nor_kept(place, monkeypatch):
    program_store.store("a", b"text")
    source = place / "source"
    source.mkdir()
    (source / "module.py").touch()
    monkeypatch.setattr(program_store, "ROOT", source)
    assert program_store.key_of(1)
    monkeypatch.setattr(program_store, "STARTED", time.time())
    assert program_store.key_of(1) is None
    program_store.store("b", b"text")
    assert program_store.load("a") == b"text"
    assert program_store.load("b") is None


def test_a_function_of_a_user_is_traced(place, traced):
    play(replace(push(1), init=lambda key: ()))
    assert len(traced) == 1
    assert not list(place.iterdir())


def test_nothing_is_kept_without_a_folder(place, monkeypatch):
    monkeypatch.delenv(program_store.VARIABLE)
    assert program_store.key_of(1) is None
    monkeypatch.setenv(program_store.VARIABLE, "")
    assert program_store.key_of(1) is None


def rubbish(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[40] ^= 1
    return [b"", b"x", content[:-1], bytes(flipped), content + b"x"]


def test_an_entry_that_was_changed_is_traced_anew(place, traced):
    fresh = play(push(1))
    (path,) = place.glob("traced-*-cache")
    content = path.read_bytes()
    for number, changed in enumerate(rubbish(content)):
        path.write_bytes(changed)
        forget()
        assert same(play(push(1)), fresh)
        assert len(traced) == number + 2
        forget()
        assert same(play(push(1)), fresh)
        assert len(traced) == number + 2


def test_an_entry_that_is_too_large_is_not_read(place, monkeypatch):
    program_store.store("a", b"text")
    assert program_store.load("a") == b"text"
    monkeypatch.setattr(program_store, "MAX_BYTES", 10)
    assert program_store.load("a") is None


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(place, monkeypatch):
    monkeypatch.setattr(program_store, "MAX_BYTES", 1000)
    program_store.store("a", b"0" * 5000)
    assert (place / "traced-a-cache").stat().st_size < 1000
    assert program_store.load("a") is None


def test_a_folder_that_cannot_be_written_is_a_warning(place, monkeypatch):
    file = place / "file"
    file.touch()
    monkeypatch.setenv(program_store.VARIABLE, str(file / "folder"))
    with pytest.warns(UserWarning, match=r"a traced program is not kept: .*file"):
        program_store.store("a", b"text")
    assert program_store.load("a") is None
    assert [path.name for path in place.iterdir()] == ["file"]


def test_entries_have_the_form_of_the_cache_of_jax(place):
    """So that the cache removes the least recently used ones."""
    program_store.store("a", b"text")
    assert sorted(path.name for path in place.iterdir()) == ["traced-a-atime", "traced-a-cache"]
    kept = int.from_bytes((place / "traced-a-atime").read_bytes(), "little")
    assert program_store.load("a") == b"text"
    used = int.from_bytes((place / "traced-a-atime").read_bytes(), "little")
    assert kept < used <= time.time_ns()
    entry = place / "traced-a-cache"
    assert hashlib.sha256(entry.read_bytes()[32:]).digest() == entry.read_bytes()[:32]
    cache = LRUCache(str(place), max_size=100)
    cache.put("b", b"1" * 90)
    assert not entry.exists()
    assert cache.get("b") == b"1" * 90


def test_the_command_knows_the_variable():
    assert folder.TRACED_FOLDER == program_store.VARIABLE
    assert folder.TRACED == program_store.PREFIX
    assert (folder.ENTRY, folder.USED) == (program_store.ENTRY, program_store.USED)


def test_typed_keys_come_back_with_their_generator():
    tree = {"usual": jax.random.key(3), "other": jax.random.key(4, impl="rbg"), "x": jnp.ones(2)}
    kinds = kept._key_kinds(tree)
    after = kept._with_keys(tree, kinds, kept._words(tree))
    for name, leaf in tree.items():
        assert after[name].dtype == leaf.dtype, name
        np.testing.assert_array_equal(rng.words_of(after[name]), rng.words_of(leaf))
