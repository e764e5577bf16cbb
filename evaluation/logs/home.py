"""Location of lifelong-learning logs: $L2DATA and the directories in its folder of logs."""

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
    """One run's directory in the folder of logs.

    Attributes:
      path: the directory.
      created: local time from its name ``<name>-<time>``, or of its last change if the name has
        none.
    """

    path: Path
    created: datetime


def data_folder() -> Path:
    """The folder of lifelong-learning data: $L2DATA, or the default of the platform.

    The default is l2data in the home directory on Linux, or if it exists there. Otherwise it is
    l2data in Library/Application Support (macOS) or in %LOCALAPPDATA% (Windows).
    """
    variable = os.environ.get(VARIABLE)
    at_home = Path.home() / "l2data"
    if variable or at_home.is_dir():
        return Path(variable) if variable else at_home
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "l2data"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "l2data"
    return at_home


def chosen_folder(option: Path | None) -> Path | None:
    """Where a run writes logs: the value of the option, or $L2DATA, or None."""
    if option is not None:
        return option
    return Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def logs_folder() -> Path:
    """The folder of logs, with a directory for every run."""
    return data_folder() / "logs"


def find_log(name: str | os.PathLike[str]) -> Path:
    """Find a log directory by its path or name.

    Args:
      name: a path, or the bare name of a directory in the folder of logs.

    Returns:
      The path if it exists, else the directory of that name in the folder of logs.

    Raises:
      NotADirectoryError: there is neither, or it is a file; the message names the places.
    """
    path = Path(name)
    if path.is_dir():
        return path
    if path.exists():
        raise NotADirectoryError(f"{path} is a file; name the log directory")
    inside = logs_folder() / path
    bare = path.name == str(path) and str(path) not in ("", ".", "..")
    if bare and inside.is_dir():
        return inside
    places = f"{path} or {inside}" if bare else str(path)
    raise NotADirectoryError(f"no log directory {places}; name one, or set ${VARIABLE}")


def log_folders() -> list[LogFolder]:
    """Every directory in the folder of logs, the most recent one first."""
    return sorted(_log_folders(), key=lambda log: (log.created, log.path), reverse=True)


def newest_log() -> LogFolder | None:
    """The most recent directory in the folder of logs; None if there is none."""
    return next(iter(log_folders()), None)


def _log_folders() -> Iterator[LogFolder]:
    folder = logs_folder()
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            yield LogFolder(path, _created(path))


def _created(path: Path) -> datetime:
    """Time in the name: milliseconds, or seconds with the fraction after a hyphen."""
    match = _STAMP.search(path.name)
    if match is None:
        return datetime.fromtimestamp(path.stat().st_mtime)
    seconds, milliseconds, fraction = match.groups()
    return datetime.fromtimestamp(float(f"{seconds}.{milliseconds or fraction}"))


def milliseconds_name(name: str, start: datetime) -> str:
    """Name of the directory of a run, ``<name>-<milliseconds since 1970>``."""
    return f"{name}-{round(start.timestamp() * 1000)}"
