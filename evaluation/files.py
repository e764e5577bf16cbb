"""Files that are written whole or not at all, and directories that are not overwritten."""

import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.json_types import JsonValue

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a full disk or quota."""
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of a folder or disk that may not be written to."""
MAKE_OPEN = "make it writable, then give the same command again, or name another place"
MAKE_ROOM = "no space left on the disk; make some, then give the same command again"


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file atomically, through a temporary file beside it: readers never see half of it.

    Args:
      path: of the file; its directory is made if it is missing.
      content: bytes, or text that is encoded as UTF-8.
    """
    with _place_named(path):
        _write_whole(path, content.encode() if isinstance(content, str) else content)


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
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


class ResultFiles(NamedTuple):
    """Files that a run writes to its directory.

    Attributes:
      marker: the file that is written last; if it exists, all others are complete.
      names: names of all other files and folders.
      notes: names of files that an unfinished run may leave.
    """

    marker: str
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def results(out: Path, marker: str) -> Iterator[Path]:
    """Fill a directory with results that appear together when all of them are written.

    Args:
      out: the directory; it is made if it is missing. What it holds under other names stays.
      marker: the file that appears last.

    Yields:
      A hidden folder in it to write to. Its contents are moved into the directory at the end; if
      something is raised before, the directory stays as it was.

    Raises:
      OSError: with the errno ENOSPC and the directory's name if the disk is full.
    """
    partial = out / f".results-{secrets.token_hex(4)}.partial"
    with _place_named(out):
        try:
            partial.mkdir(parents=True)
            yield partial
            (out / marker).unlink(missing_ok=True)
            for path in sorted(partial.iterdir()):
                if path.name != marker:
                    _move(path, out / path.name)
            sync(out)
            os.replace(partial / marker, out / marker)
            sync(out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _move(path: Path, place: Path) -> None:
    """Move a file, replacing another, or merge a folder into an existing one."""
    if path.is_dir() and place.is_dir():
        for inside in sorted(path.iterdir()):
            _move(inside, place / inside.name)
    else:
        os.replace(path, place)


def sync(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path, most: int, what: str = "", **decoder: Any) -> JsonValue:
    """The value of a JSON file.

    Args:
      path: of the file.
      most: size of the largest file that is read, bytes.
      what: kind of content, for errors.
      **decoder: arguments of `json.loads`.

    Raises:
      ValueError: it cannot be read, is larger, or is not JSON; the message begins with the path.
    """
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= most else b""
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    if size > most:
        raise ValueError(f"{path}: has {size:,} bytes; at most {most:,} are read")
    try:
        return json.loads(text, **decoder)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{path}: broken or truncated JSON at {place}: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # other encodings, endless numbers or depths
        raise ValueError(f"{path}: is not JSON{what and ' of ' + what}: {error}") from error


def check_room(folder: Path, needed: int, what: str) -> None:
    """Check that the disk has room, before a write fills it up.

    Args:
      folder: to write to; it may be missing.
      needed: bytes.
      what: name of the content, for the error.

    Raises:
      OSError: with the errno ENOSPC if there is less room.
    """
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"no space left for {what} of {needed:,} bytes in {folder}: {free:,} are free",
        )


@contextlib.contextmanager
def _place_named(path: Path) -> Iterator[None]:
    """Add a path and a remedy to the errors of a disk that is full or cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.strerror == os.strerror(error.errno):
            raise OSError(error.errno, MAKE_ROOM, str(path)) from error
        if error.errno in CLOSED and error.strerror == os.strerror(error.errno):
            raise OSError(error.errno, f"{error.strerror}; {MAKE_OPEN}", str(path)) from error
        raise


@contextlib.contextmanager
def whole_directory(final: Path) -> Iterator[Path]:
    """Write a directory that appears under its name when it is complete, or not at all.

    Args:
      final: its path; its parent is made if it is missing.

    Yields:
      A hidden folder beside it to write to, which is renamed at the end.

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


def write_json(path: Path, values: JsonValue) -> None:
    """Write strict JSON: no NaN, no Infinity.

    Raises:
      ValueError: a number that JSON cannot hold.
    """
    write_whole(path, json.dumps(values, indent=2, allow_nan=False) + "\n")


def check_output_file(name: str, path: Path) -> None:
    """Check that a result can be written to a file, before the work for it is done.

    Args:
      name: of the option, for the message.
      path: of the file; its folder may be missing.

    Raises:
      ValueError: it is a folder, or cannot be written.
    """
    if path.is_dir():
        raise ValueError(f"{name} {path} is a folder; name a file")
    folder = path.absolute().parent
    while not os.path.lexists(folder):
        folder = folder.parent
    try:
        # Not all folders that seem to allow it take a file.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{name} {path} cannot be written: {folder} does not allow it") from error


def check_output_directory(path: Path, overwrite: bool) -> None:
    """Check that results can be written to a directory without mixing with older ones.

    Args:
      path: the directory; it may be missing.
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
