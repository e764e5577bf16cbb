"""Checkpoints on disk: written whole or not at all, and refused if they have changed.

Orbax writes the arrays. Its formats detect most truncated files, but not a changed bit in an array.
So the manifest has the size and the digest of every file, and its own digest. A step's folder gets
its name when the manifest is on disk. Orbax's `CheckpointManager`, which also removes old steps,
renames the folder itself, before anybody can know the digests.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import jax
import numpy as np
import numpy.typing as npt

from evaluation.checkpoints.configuration import MOST_CHARACTERS, differences, digest, named
from evaluation.files import check_room, sync, whole_directory, write_whole
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.scanner import Snapshot
from jaxsim.agents.base import Memory
from jaxsim.pytrees import Tree

FORMAT = "jaxsim-checkpoint-5"
FOLDER = "checkpoints"
MANIFEST, ARRAYS = "checkpoint.json", "arrays"
MOST_STEPS = 2
"""Number of steps that stay on the disk, the newest."""

_WORDS = ("place", "dtype")
STEP = re.compile(r"\d{10}")
LEFTOVER = re.compile(r"\.(checkpoints|results|\d{10})-[0-9a-f]{8}\.partial")


class CheckpointError(ValueError):
    """A checkpoint that cannot be resumed; the message says what to do."""


# Existing steps -----------------------------------------------------------------------------------


def steps(folder: Path) -> list[Path]:
    """Finished steps in a folder of checkpoints, the oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if STEP.fullmatch(path.name))


def newest(folder: Path) -> Path:
    """Return the newest finished step.

    Raises:
      CheckpointError: there is none.
    """
    finished = steps(folder)
    if not finished:
        raise CheckpointError(
            f"{folder} has no finished checkpoint: nothing of this run was saved; start it again "
            "without --resume, with --overwrite"
        )
    return finished[-1]


def read_manifest(step: Path) -> JsonObject:
    """Read the manifest of a step.

    Raises:
      CheckpointError: it is not whole, or of another format.
    """
    try:
        manifest = json.loads((step / MANIFEST).read_bytes())
        content, checksum = manifest["content"], manifest["sha256"]
        intact = isinstance(content, dict) and digest(content) == checksum
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(step, f"{MANIFEST} is missing or cut off") from error
    if not intact:
        raise _damaged(step, f"{MANIFEST} is not what was written")
    if content.get("format") != FORMAT:
        name = str(content.get("format"))[:MOST_CHARACTERS]
        raise CheckpointError(f"{step} has format {name}; this version reads {FORMAT}")
    if not _is_manifest(content):
        raise _damaged(step, f"{MANIFEST} does not say what this package writes there")
    return dict(content)


def _is_manifest(content: JsonMapping) -> bool:
    """Whether all entries that are read later exist and have their types."""

    def whole(value: JsonValue, least: int = 0) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63

    def leaf(entry: JsonValue) -> bool:
        words = isinstance(entry, dict) and all(isinstance(entry.get(k), str) for k in _WORDS)
        return words and isinstance(entry.get("shape"), list) and all(map(whole, entry["shape"]))

    def file(name: str, entry: JsonValue) -> bool:
        place = PurePosixPath(name)
        inside = not place.is_absolute() and ".." not in place.parts
        sealed = isinstance(entry, dict) and isinstance(entry.get("sha256"), str)
        return inside and sealed and whole(entry.get("bytes"))

    configuration, seconds = content.get("configuration"), content.get("seconds", 0)
    leaves = [content.get("memory"), content.get("outcome")]
    return (
        isinstance(configuration, dict)
        and whole(configuration.get("lifetimes"), 1)
        and isinstance(content.get("versions"), dict)
        and isinstance(content.get("files"), dict)
        and isinstance(seconds, int | float)
        and all(whole(content.get(name)) for name in ("episodes", "rounds"))
        and all(isinstance(tree, list) and all(map(leaf, tree)) for tree in leaves)
        and all(len(entry["shape"]) > 1 for entry in content["outcome"])
        and all(file(name, entry) for name, entry in content["files"].items())
    )


def _damaged(step: Path, what: str) -> CheckpointError:
    names = [path.name for path in steps(step.parent) if path != step]
    advice = f"remove it to resume from {names[-1]}" if names else "no other is there"
    return CheckpointError(f"checkpoint {step} is damaged: {what}; {advice}")


# Saving -------------------------------------------------------------------------------------------


def save(folder: Path, snapshot: Snapshot, about: JsonMapping) -> Path:
    """Save a step, then remove all but the newest two.

    Args:
      folder: of the checkpoints; it appears together with the first one in it.
      snapshot: memories and results so far.
      about: other entries of the manifest, plain JSON values.

    Returns:
      The step's folder.

    Raises:
      OSError: it could not be written, with the errno ENOSPC if the disk is full. Earlier steps
        stay.
    """
    step = folder / f"{snapshot.rounds:010d}"
    if step.exists():
        return step
    arrays = _arrays(snapshot)
    check_room(folder, sum(array.nbytes for array in _leaves(arrays)), "a checkpoint")
    first = not folder.exists()
    with whole_directory(folder if first else step) as partial:
        inside = partial / step.name if first else partial
        inside.mkdir(exist_ok=True)
        _write_arrays(inside / ARRAYS, arrays)
        content = {
            "format": FORMAT,
            **about,
            "rounds": snapshot.rounds,
            "memory": _shapes(snapshot.memory),
            "outcome": _shapes(snapshot.outcome),
            "files": {
                str(path.relative_to(inside)): _size_and_digest(path) for path in _files(inside)
            },
        }
        manifest = {"content": content, "sha256": digest(content)}
        write_whole(inside / MANIFEST, json.dumps(manifest, indent=1, allow_nan=False) + "\n")
        for path in [*(p for p in partial.rglob("*") if p.is_dir()), partial]:
            sync(path)
    sync(step.parent)
    for old in steps(folder)[:-MOST_STEPS]:
        remove(old)
    return step


def bytes_of(snapshot: Snapshot) -> int:
    """Size of a snapshot's arrays before they are compressed, bytes."""
    return sum(array.nbytes for array in _leaves(_arrays(snapshot)))


def remove(path: Path) -> None:
    """Remove a folder; it is renamed first, so that its name never shows a part of it."""
    if path.exists():
        hidden = path.with_name(f".{path.name}-{secrets.token_hex(4)}.partial")
        path.rename(hidden)
        shutil.rmtree(hidden)


def sweep(folder: Path) -> None:
    """Remove the partial folders of killed processes in a folder."""
    if folder.is_dir():
        for path in folder.iterdir():
            if LEFTOVER.fullmatch(path.name) and path.is_dir():
                shutil.rmtree(path)


def _arrays(snapshot: Snapshot) -> dict[str, Tree]:
    """The arrays to save, by index; orbax takes neither empty arrays nor an empty tree."""
    arrays: dict[str, Tree] = {"rounds": np.array([snapshot.rounds], np.int64)}
    for name in ("memory", "outcome"):
        leaves = jax.tree.leaves(getattr(snapshot, name))
        arrays[name] = {str(i): leaf for i, leaf in enumerate(leaves) if leaf.size}
    return {name: part for name, part in arrays.items() if len(part)}


def _leaves(arrays: Tree) -> list[np.ndarray]:
    leaves: list[np.ndarray] = jax.tree.leaves(arrays)
    return leaves


def _shapes(tree: Tree) -> list[JsonObject]:
    """Place, shape and type of every leaf, as JSON values."""
    return [
        {"place": jax.tree_util.keystr(path), "shape": list(leaf.shape), "dtype": str(leaf.dtype)}
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]


def _write_arrays(path: Path, arrays: dict[str, Tree]) -> None:
    """Write arrays with orbax.

    Raises:
      OSError: they could not be written.
    """
    import orbax.checkpoint as ocp

    with _without_traceback(), ocp.Checkpointer(ocp.StandardCheckpointHandler()) as writer:
        try:
            writer.save(path.absolute(), args=ocp.args.StandardSave(arrays))
        except (ValueError, RuntimeError) as error:
            # The library below orbax reports the system's errors as text.
            full = "No space left" in str(error) or "quota exceeded" in str(error).lower()
            words = "no space left on the disk" if full else str(error).splitlines()[0]
            code = errno.ENOSPC if full else errno.EIO
            raise OSError(code, f"{path.parent.parent} could not be written: {words}") from error


@contextlib.contextmanager
def _without_traceback() -> Iterator[None]:
    """Silence orbax's log of an error: the error itself is reported."""
    logger = logging.getLogger("absl")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _size_and_digest(path: Path) -> JsonObject:
    """Flush a file to the disk; return its size and digest."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": sha256}


# Loading ------------------------------------------------------------------------------------------


def load(step: Path, manifest: JsonMapping, like: Snapshot) -> Snapshot:
    """Load what `save` saved.

    Args:
      step: its folder.
      manifest: from `read_manifest`.
      like: a snapshot of the same run at any round: structure, shapes and types.

    Raises:
      CheckpointError: it is damaged, or its arrays have other shapes or types.
    """
    shapes = manifest["outcome"]
    episodes = shapes[0]["shape"][1] if shapes else 0
    outcome = jax.tree.map(lambda leaf: _blank((len(leaf), episodes), leaf.dtype), like.outcome)
    expected = Snapshot(manifest["rounds"], like.memory, outcome)
    check_shapes(step, manifest, expected)
    arrays = _read_arrays(step, manifest)
    if np.asarray(arrays.get("rounds", [])).tolist() != [manifest["rounds"]]:
        raise _damaged(step, "its arrays are of another round")
    return Snapshot(
        manifest["rounds"],
        _filled(step, expected.memory, arrays.get("memory", {})),
        _filled(step, expected.outcome, arrays.get("outcome", {})),
    )


def _blank(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """An array of zeros that takes no memory, for any size in a manifest."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def load_memories(step: Path, manifest: JsonMapping, like: Memory) -> Memory:
    """Load the memories alone.

    Args:
      step: its folder.
      manifest: from `read_manifest`.
      like: memories of any number of lifetimes, leaves with a shape and a dtype.

    Returns:
      Leaves (L, ...) of NumPy; of typed keys, their data.

    Raises:
      CheckpointError: as `load`.
    """
    lifetimes = manifest["configuration"]["lifetimes"]
    expected = jax.tree.map(lambda leaf: _blank((lifetimes, *leaf.shape[1:]), leaf.dtype), like)
    _check_leaves(step, manifest["memory"], _shapes(expected))
    return _filled(step, expected, _read_arrays(step, manifest).get("memory", {}))


def check_shapes(step: Path, manifest: JsonMapping, expected: Snapshot) -> None:
    """Refuse arrays that are not as expected before they are read.

    Raises:
      CheckpointError: names the leaf that differs.
    """
    for name in ("memory", "outcome"):
        _check_leaves(step, manifest[name], _shapes(getattr(expected, name)))


def _check_leaves(step: Path, saved: list[JsonObject], now: list[JsonObject]) -> None:
    def by_place(leaves: list[JsonObject]) -> dict[str, str]:
        return {
            f"memory{leaf['place']}": f"{leaf['dtype']} {tuple(leaf['shape'])}" for leaf in leaves
        }

    changes = differences(by_place(saved), by_place(now))
    if changes:
        raise CheckpointError(f"checkpoint {step} is of another agent: {named(changes)}")


def _read_arrays(step: Path, manifest: JsonMapping) -> dict[str, Tree]:
    """Read the arrays with orbax, after a check of every file."""
    import orbax.checkpoint as ocp

    for name, entry in manifest["files"].items():
        _check_file(step, name, entry)
    with _without_traceback(), ocp.Checkpointer(ocp.StandardCheckpointHandler()) as reader:
        try:
            arrays: dict[str, Tree] = reader.restore((step / ARRAYS).absolute())
        except Exception as error:  # the files may have any content
            reason = " ".join(str(error).split())[: 5 * MOST_CHARACTERS]
            raise _damaged(step, reason or type(error).__name__) from error
    if not isinstance(arrays, dict):
        raise _damaged(step, "its arrays are not those of a run")
    return arrays


def _check_file(step: Path, name: str, entry: JsonMapping) -> None:
    path = step / name
    if not path.is_file():
        raise _damaged(step, f"{name} is missing")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise _damaged(step, f"{name} has {size:,} bytes instead of {entry['bytes']:,}")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
            raise _damaged(step, f"{name} is not what was written")


def _filled(step: Path, expected: Tree, arrays: Mapping[str, np.ndarray]) -> Tree:
    """Fill a tree with the saved leaves; empty leaves are not saved."""
    leaves, structure = jax.tree.flatten(expected)
    filled = []
    for index, leaf in enumerate(leaves):
        array = np.asarray(arrays[str(index)]) if str(index) in arrays else np.array(leaf[:0])
        if (array.shape, array.dtype) != (leaf.shape, leaf.dtype) and leaf.size + array.size:
            raise _damaged(step, f"its arrays are not of the shapes that {MANIFEST} says")
        filled.append(array if leaf.size else np.array(leaf))
    return jax.tree.unflatten(structure, filled)
