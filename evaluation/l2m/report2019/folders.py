"""The file with the saturation values of single-task experts."""

import json
import math
from pathlib import Path

from evaluation.logs.home import data_folder


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
