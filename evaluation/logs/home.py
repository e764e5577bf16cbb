"""Where lifelong-learning logs lie: $L2DATA, and the directories in its folder of logs."""

import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

VARIABLE: Final = "L2DATA"
_STAMP: Final = re.compile(r"-(\d{9,10})(?:(\d{3})|-(\d{1,9}))$")


class LogFolder(NamedTuple):
    """A directory of the folder of logs.

    Attributes:
      path: the directory.
      created: local time, from its name ``<name>-<time>`` where that holds one, or else when it was
        last changed.
    """

    path: Path
    created: datetime


def data_folder() -> Path:
    """The folder of lifelong-learning data: $L2DATA, or the platform's place for it.

    That is l2data in the home directory, where it is there already or on Linux; else l2data in
    Library/Application Support (macOS) or in %LOCALAPPDATA% (Windows).
    """
    named = os.environ.get(VARIABLE)
    at_home = Path.home() / "l2data"
    if named or at_home.is_dir():
        return Path(named) if named else at_home
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "l2data"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "l2data"
    return at_home


def chosen_folder(given: Path | None) -> Path | None:
    """Where a run leaves logs by itself: what is given, or $L2DATA; None where neither is."""
    if given is not None:
        return given
    return Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def logs_folder() -> Path:
    """The folder in which every run has a directory of its own."""
    return data_folder() / "logs"


def find_log(name: str | os.PathLike[str]) -> Path:
    """Find the log directory that a user means.

    Args:
      name: a path, or the bare name of a directory in the folder of logs.

    Returns:
      A path that exists is taken as it is, before a directory of that name in the folder of logs.

    Raises:
      NotADirectoryError: there is neither, or it is a file; the message says where was looked.
    """
    given = Path(name)
    if given.is_dir():
        return given
    if given.exists():
        raise NotADirectoryError(f"{given} is a file; name the log directory")
    inside = logs_folder() / given
    bare = given.name == str(given) and str(given) not in ("", ".", "..")
    if bare and inside.is_dir():
        return inside
    places = f"{given} or {inside}" if bare else str(given)
    raise NotADirectoryError(f"no log directory {places}; name one, or set ${VARIABLE}")


def log_folders() -> list[LogFolder]:
    """Every directory in the folder of logs, the most recent one first."""
    return sorted(_log_folders(), key=lambda log: (log.created, log.path), reverse=True)


def newest_log() -> LogFolder | None:
    """The most recent directory in the folder of logs, None if there is none."""
    return next(iter(log_folders()), None)


def _log_folders() -> Iterator[LogFolder]:
    folder = logs_folder()
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            yield LogFolder(path, _created(path))


def _created(path: Path) -> datetime:
    """Time in the name: milliseconds, or seconds and their fraction behind a hyphen."""
    match = _STAMP.search(path.name)
    if match is None:
        return datetime.fromtimestamp(path.stat().st_mtime)
    seconds, milliseconds, fraction = match.groups()
    return datetime.fromtimestamp(float(f"{seconds}.{milliseconds or fraction}"))


def milliseconds_name(name: str, start: datetime) -> str:
    """Name of the directory of a run, ``<name>-<milliseconds since 1970>``."""
    return f"{name}-{round(start.timestamp() * 1000)}"
