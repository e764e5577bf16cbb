"""Where logs and the saturation values of single-task experts lie."""

import json
import math
import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "L2DATA"


def data_folder() -> Path:
    """Return the folder that $L2DATA names, or ``l2data`` in the user's home."""
    return Path(os.environ.get(VARIABLE) or Path.home() / "l2data")


def log_folder(name: str | os.PathLike[str]) -> Path:
    """Find a log directory.

    Args:
      name: a path, or the bare name of a directory in ``$L2DATA/logs``.

    Raises:
      ValueError: there is no such directory.
    """
    for path in (Path(name), data_folder() / "logs" / name):
        if path.is_dir():
            return path
    raise ValueError(
        f"no log directory {os.fspath(name)!r}, neither as a path nor in {data_folder() / 'logs'}"
    )


def experts_file() -> Path:
    """Return where the saturation values of single-task experts are looked for."""
    return data_folder() / "taskinfo" / "info.json"


def read_experts(path: Path) -> dict[str, float]:
    """Read saturation values of single-task experts.

    Args:
      path: strict JSON, ``{"<task name as logged>": <saturation value>, ...}``.

    Raises:
      ValueError: the file cannot be read or holds something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON text: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f'{path} must hold one object, {{"<task name>": <saturation value>}}')
    for task, value in values.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise ValueError(f"{path}: the value of {task!r} must be a finite number")
    return {task: float(value) for task, value in values.items()}
