"""Files that somebody has changed: they are refused in one line, or read as they are now."""

import itertools
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.siege import Blow

Read = Callable[[Path], Any]
ALLOWED = (ValueError, OSError)
DEPTH = 100_000
SEALED = "checkpoint"
"""The kind that must be refused after any change."""


def tampered(seed: int, first: int = 0) -> Iterator[Blow]:
    """Change files of every kind and read them, from try `first` on; one blow for each file."""
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place:
        folder = Path(place)
        kinds = list(_kinds(folder))
        for number in itertools.count(first):
            name, (path, read) = kinds[number % len(kinds)]
            yield _change_and_read(name, path, read, folder / "changed", seed, number)


def _kinds(folder: Path) -> Iterator[tuple[str, tuple[Path, Read]]]:
    """A valid file or folder of each kind, and the function that reads it."""
    from evaluation import l2m, records, sailon, scanner
    from evaluation.checkpoints import load_memory, store
    from evaluation.gvgai import track
    from evaluation.l2m.l2metrics.reading import read_log_columns
    from evaluation.logs.export import write_lifetimes
    from evaluation.sciencebirds import document
    from jaxsim import agents

    syllabus = folder / "syllabus.json"
    repeat = '{"$repeat": {"$episode": "CartPole"}, "count": 3}'
    syllabus.write_text(f'{{"instructions": [{{"$phase": "1.train"}}, {repeat}]}}')
    yield "syllabus", (syllabus, l2m.load)
    plan = folder / "experiment.json"
    settings = sailon.ExperimentSettings(novelty=(200, 203), trials=1, testing_episodes=3)
    experiment = sailon.generate(settings)
    experiment.write(plan)
    yield "SAIL-ON experiment", (plan, sailon.load)
    results = scanner.play(l2m.load(syllabus), agents.get("random"), lifetimes=2, seed=0)
    table = folder / "records.parquet"
    results.write(table)
    yield "records.parquet", (table, records.read)
    (log,) = write_lifetimes(results, folder / "logs", lifetimes=[0])
    yield "l2logger log", (log, read_log_columns)
    tracks = folder / "track.json"
    tracks.write_text(track.default_track().dumps())
    yield "GVGAI track", (tracks, track.load)
    sample = Path(__file__).parents[2] / "examples" / "sciencebirds" / "sequences.xml"
    meta = folder / "meta.xml"
    shutil.copy(sample, meta)
    yield "Science Birds configuration", (meta, document.load_meta)
    import jax
    import numpy as np

    from evaluation.checkpoints.configuration import configuration, versions
    from evaluation.scanner import Snapshot
    from jaxsim.rng import words_of

    agent = agents.get("ppo")
    memory = jax.device_get(
        jax.tree.map(words_of, jax.vmap(agent.init)(jax.random.split(jax.random.key(0), 2)))
    )
    settings_of_run = configuration(l2m.load(syllabus), agent="ppo", lifetimes=2)
    about = {
        "episodes": 3,
        "seconds": 1.0,
        "configuration": settings_of_run,
        "versions": versions(),
    }
    snapshot = Snapshot(3, memory, {"reward": np.zeros((2, 3), np.float32)})
    store.save(folder / "run" / "checkpoints", snapshot, about)
    yield "checkpoint", (folder / "run", load_memory)


def _change_and_read(name: str, path: Path, read: Read, copy: Path, seed: int, number: int) -> Blow:
    """Change a copy, read it, and return the outcome."""
    draw = random.Random(f"{seed} {number}")
    if copy.exists():
        shutil.rmtree(copy)
    copy.mkdir()
    target = copy / path.name
    if path.is_dir():
        shutil.copytree(path, target)
        inside = sorted(p for p in target.rglob("*") if p.is_file())
        file = draw.choice(inside)
    else:
        shutil.copy(path, target)
        file = target
    good = file.read_bytes()
    while _is_same_content(good, corrupted := _corrupted(good, draw)):
        pass
    file.write_bytes(corrupted)
    label = f"changed {name}"
    try:
        read(target)
    except ALLOWED as error:
        lines = str(error).splitlines()
        if len(lines) == 1:
            return Blow(label, 1, "refused in one line")
        return Blow(label, 1, "failed", f"try {number}: {len(lines)} lines: {lines[:2]}")
    except BaseException as error:
        return Blow(label, 1, "failed", f"try {number}: {type(error).__name__}: {error}"[:200])
    if name == SEALED:
        return Blow(label, 1, "failed", f"try {number}: {file.name} was taken for what was written")
    return Blow(label, 1, "read as what it says now")


def _is_same_content(good: bytes, spoilt: bytes) -> bool:
    """Whether the content is the same: the same bytes, or the same JSON in another layout."""
    if good == spoilt:
        return True
    try:
        # As text, in which 1, 1.0 and true differ.
        return json.dumps(json.loads(good)) == json.dumps(json.loads(spoilt))
    except (ValueError, RecursionError):
        return False


def _corrupted(content: bytes, draw: random.Random) -> bytes:
    """A copy of `content` with one of many kinds of changes; it may happen to be equal."""
    place = draw.randrange(len(content) + 1)
    if draw.random() < 0.4:
        flipped = bytearray(content)
        for _ in range(draw.randint(1, 8)):
            if flipped:
                flipped[draw.randrange(len(flipped))] = draw.randrange(256)
        return bytes(flipped)
    ways = (
        content[:place],
        content[:place] + draw.randbytes(draw.randint(1, 64)) + content[place:],
        content[:place] + content[place + draw.randint(1, 64) :],
        content + content,
        b"",
        b"[" * DEPTH + b"]" * DEPTH,
        content.replace(b"1", b"9" * draw.choice((2, 30, 400)), 1),
        content.replace(b'"', b"", 1),
        b"\xff\xfe" + content,
    )
    return draw.choice(ways)
