"""Files that are written whole or not at all, and directories that are not overwritten."""

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file through a temporary neighbour, so that no reader ever sees half of it.

    Args:
      path: where; its directory is made if it is missing.
      content: bytes, or text that is encoded as UTF-8.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_directory(final: Path) -> Iterator[Path]:
    """Fill a directory that appears under its name when all of it is there, or not at all.

    Args:
      final: where; its parent is made if it is missing.

    Yields:
      A hidden neighbour to write to, which is renamed at the end.

    Raises:
      FileExistsError: something is already there.
    """
    if os.path.lexists(final):
        raise FileExistsError(f"{final} already exists: give another start time or base directory")
    partial = final.with_name(f".{final.name}-{secrets.token_hex(4)}.partial")
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, values: Any) -> None:
    """Write strict JSON: no NaN, no Infinity.

    Raises:
      ValueError: a number that JSON cannot hold.
    """
    write_whole(path, json.dumps(values, indent=2, allow_nan=False) + "\n")


def check_output_directory(path: Path, overwrite: bool) -> None:
    """Refuse a directory whose contents could be mixed up with new ones.

    Args:
      path: the directory to write to; it may be missing.
      overwrite: whether files in it may be replaced.

    Raises:
      ValueError: it is or lies below a file, cannot be written, or is not empty and `overwrite` is
        not set.
    """
    if os.path.lexists(path) and not path.is_dir():
        raise ValueError(f"output {path} is a file; name a directory")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise ValueError(
            f"output directory {path} is not empty; choose another or pass --overwrite"
        )
    parent = path
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir():
        raise ValueError(f"output directory {path} cannot be made: {parent} is a file")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"output directory {path} cannot be written: {parent} does not allow it")
