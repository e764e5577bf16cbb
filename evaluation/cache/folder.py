"""The folder in which commands keep programs: JAX's persistent compilation cache.

JAX reads its options from the environment as it is imported, so `use` comes before that. Two
processes may share the folder: JAX locks it. Entries that a killed process left behind are removed
by `mend`, which JAX does not do.
"""

import os
import sys
import time
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import NamedTuple

import platformdirs

VARIABLE = "JAXSIM_CACHE"
OFF = "off"
TRACED_FOLDER = "JAXSIM_PROGRAMS"
"""The variable of `jaxsim.program_store`, which would import JAX."""
JAX_FOLDER = "JAX_COMPILATION_CACHE_DIR"
MOST_BYTES = 2 << 30
"""Size from which JAX removes the least recently used programs."""
LEAST_SECONDS = 0.3
"""Programs that compile faster are not kept."""
ENTRY, USED, TRACED = "-cache", "-atime", "traced-"
"""Suffixes of JAX's files, a program and the time of its last use; prefix of traced programs."""
UNFINISHED_SECONDS = 600.0
"""Age from which half an entry counts as left by a killed process."""


class Contents(NamedTuple):
    """Number of the compiled programs in a folder, and size with the traced ones."""

    programs: int
    bytes: int


def folder(environment: Mapping[str, str]) -> Path | str | None:
    """Folder that the environment variables name; None if nothing is kept.

    It is $JAXSIM_CACHE, which may be "off", or else JAX's own $JAX_COMPILATION_CACHE_DIR, or else
    the user's cache folder on this platform. An address such as "gs://bucket/x" is a text.
    """
    value = environment.get(VARIABLE, "")
    if value.strip().lower() == OFF:
        return None
    value = value or environment.get(JAX_FOLDER, "")
    if not value:
        return platformdirs.user_cache_path("jaxsim-novelty", appauthor=False) / "compiled"
    return value if "://" in value else Path(value).expanduser()


def use(environment: MutableMapping[str, str]) -> str | None:
    """Keep compiled and traced programs, in this process and in those that it starts.

    Nothing changes once JAX has been imported. If the user has set JAX's own variable, JAX's
    options stay as they are. At an address JAX keeps compiled programs alone.

    Returns:
      Why nothing is kept although it should be; None if all is well.
    """
    if "jax" in sys.modules:
        return None
    place, of_jax = folder(environment), environment.get(JAX_FOLDER)
    if not isinstance(place, Path):
        keep_nothing(environment)
        if place is not None:
            environment[JAX_FOLDER] = place
        return None
    if of_jax and place == Path(of_jax).expanduser():
        # JAX itself does not expand "~".
        environment[JAX_FOLDER] = environment[TRACED_FOLDER] = str(place)
        return None
    try:
        _check_writable(place)
        mend(place)
    except OSError as error:
        return f"compiled programs are not kept: {error}; set ${VARIABLE} to another folder or off"
    environment[JAX_FOLDER] = environment[TRACED_FOLDER] = str(place)
    environment["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(MOST_BYTES)
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = str(LEAST_SECONDS)
    return None


def keep_nothing(environment: MutableMapping[str, str]) -> None:
    """Keep no programs, in this process and in those that it starts.

    Nothing changes once JAX has been imported.
    """
    if "jax" not in sys.modules:
        for name in (JAX_FOLDER, TRACED_FOLDER):
            environment.pop(name, None)


def contents(place: Path) -> Contents:
    """Count the programs in a folder; 0 if it is missing."""
    sizes = {path: size for path in place.glob(f"*{ENTRY}") if (size := _size(path)) is not None}
    compiled = [path for path in sizes if not path.name.startswith(TRACED)]
    return Contents(len(compiled), sum(sizes.values()))


def clear(place: Path) -> Contents:
    """Remove all programs of a folder, and no other file; return their number and size."""
    removed = contents(place)
    for suffix in (ENTRY, USED):
        for path in place.glob(f"*{suffix}"):
            path.unlink(missing_ok=True)
    return removed


def mend(place: Path) -> int:
    """Remove incomplete entries, which keep JAX from using the folder; return their number."""
    removed, now = 0, time.time()
    for suffix, other in ((ENTRY, USED), (USED, ENTRY)):
        for path in place.glob(f"*{suffix}"):
            half = not path.with_name(path.name.removesuffix(suffix) + other).exists()
            age = now - _changed(path)
            if half and age > UNFINISHED_SECONDS:
                path.unlink(missing_ok=True)
                removed += 1
    for path in place.glob(f".{TRACED}*"):  # half written
        if now - _changed(path) > UNFINISHED_SECONDS:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _size(path: Path) -> int | None:
    """Bytes of a file; None if another process has removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _changed(path: Path) -> float:
    """Time of a file's last change; now, if another process has removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _check_writable(place: Path) -> None:
    """Check that a folder can be written, or made.

    Raises:
      OSError: it cannot, or something else has its name.
    """
    existing = place
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"{existing} cannot be written")
