"""Keeps traced programs in a folder, so that later processes need not trace them again.

Tracing and lowering the program of level 200 takes as long as all else that a process with a filled
compilation cache does. JAX's cache cannot save it: its key is the lowered program. The key here is
what a program is made from: its description (`fingerprint`), the source of this package, the
versions of its dependencies, and the options of JAX.

The entries lie beside those of JAX's cache under names of the same form, so that JAX removes the
least recently used of both. Programs with functions of a user's files are traced anew, and so is
everything in a process during which a source file was changed.
"""

import functools
import hashlib
import importlib.metadata
import os
import platform
import threading
import time
import warnings
import zlib
from pathlib import Path

import jax

from jaxsim.fingerprint import DEPENDENCIES, Undescribable, fingerprint

VARIABLE = "JAXSIM_PROGRAMS"
"""Environment variable with the folder, so that processes which this one starts use it too."""
PREFIX, ENTRY, USED = "traced-", "-cache", "-atime"
"""Of the names of files; JAX's cache knows the last two."""
MAX_BYTES = 256 << 20
ROOT = Path(__file__).parent
STARTED = time.time()
IMPORT_SECONDS = 30.0
"""A file that was changed this long before `STARTED`, or later, may have been imported before."""


def load(key: str) -> bytes | None:
    """Return the program that was kept under a key; None if there is none."""
    path = _path(key)
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = path.read_bytes()
        _write(path.with_name(path.name.removesuffix(ENTRY) + USED), _now())
    except OSError:
        return None
    check, packed = content[:32], content[32:]
    if hashlib.sha256(packed).digest() != check:
        return None
    unpacking = zlib.decompressobj()
    program = unpacking.decompress(packed, MAX_BYTES)
    return program if unpacking.eof else None


def store(key: str, program: bytes) -> None:
    """Keep a program under a key; if that fails, warn."""
    path, packed = _path(key), zlib.compress(program)
    try:
        if _is_changed():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # JAX's cache reads the time of use of every entry.
        _write(path.with_name(path.name.removesuffix(ENTRY) + USED), _now())
        _write(path, hashlib.sha256(packed).digest() + packed)
    except OSError as error:
        warnings.warn(f"a traced program is not kept: {error}", stacklevel=2)


def key_of(*parts: object) -> str | None:
    """Return the key of what determines a program; None if it is to be traced without the store.

    That is so without a folder, after a change of the source, and for functions of other packages.
    """
    try:
        if not os.environ.get(VARIABLE) or _is_changed():
            return None
        return fingerprint((_source_digest(), _versions(), _options(), parts))
    except (Undescribable, OSError, importlib.metadata.PackageNotFoundError):
        return None


def _path(key: str) -> Path:
    return Path(os.environ[VARIABLE]) / f"{PREFIX}{key}{ENTRY}"


def _now() -> bytes:
    """Time of use as JAX's cache writes it."""
    return time.time_ns().to_bytes(8, "little")


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _is_changed() -> bool:
    """Whether the source on the disk may differ from what this process runs."""
    return any(_time_of_change(path) > STARTED - IMPORT_SECONDS for path in _source_files())


def _time_of_change(path: Path) -> float:
    """Time at which a file's content or place was last changed."""
    status = path.stat()
    return max(status.st_mtime, status.st_ctime)


@functools.cache
def _source_digest() -> str:
    """Digest of the source of this package."""
    digest = hashlib.sha256()
    for path in _source_files():
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _source_files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@functools.cache
def _versions() -> tuple[str, ...]:
    """Versions of Python and of the dependencies."""
    return (platform.python_version(), *map(importlib.metadata.version, DEPENDENCIES))


def _options() -> tuple[tuple[str, str], ...]:
    """Platform and options of JAX, which tracing depends on."""
    names = sorted(name for name in jax.config.values if "cache" not in name)
    # The attribute is the value of this thread, where it may differ.
    options = ((name, getattr(jax.config, name, jax.config.values[name])) for name in names)
    return ("platform", jax.default_backend()), *((name, repr(value)) for name, value in options)
