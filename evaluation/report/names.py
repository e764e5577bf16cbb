"""Short names for the variants that blocks play."""

from collections.abc import Mapping

from evaluation.logs.export import task_labels
from evaluation.schedule import Schedule, Value

_LEVEL, _DIFFICULTY = "novelty/level", "novelty/difficulty"


def variant_names(schedule: Schedule) -> tuple[str, ...]:
    """Name each variant of a schedule by its task and the parameters that differ.

    The task is left out if all variants have the same one. Parameters that all variants share are
    left out. A variant without other parameters is named by its task.

    Returns:
      P different names, in the order of `schedule.variants`.
    """
    variants = schedule.variants
    tasks = {task for task, _ in variants}
    shared = set.intersection(*(set(parameters) for _, parameters in variants))
    names = []
    for task, parameters in variants:
        different = {path: value for path, value in parameters if (path, value) not in shared}
        words = _in_words(different if len(variants) > 1 else dict(parameters))
        names.append(" ".join(filter(None, [task if len(tasks) > 1 or not words else "", words])))
    return tuple(names)


def block_names(schedule: Schedule) -> tuple[str, ...]:
    """Name the variant of each of the B blocks; see `variant_names`."""
    names = variant_names(schedule)
    return tuple(names[index] for index in schedule.block_variants())


def logged_names(schedule: Schedule) -> dict[str, str]:
    """Task name in logs, such as cartpole3d_v3 -> name of the variant."""
    labels = (label.lower() for label in task_labels(schedule))
    return dict(zip(labels, variant_names(schedule), strict=True))


def _in_words(parameters: Mapping[str, Value]) -> str:
    """Parameters as text; a level with its difficulty, such as "level 203 hard"."""
    rest = dict(parameters)
    parts = []
    if _LEVEL in rest:
        level = f"level {rest.pop(_LEVEL)}"
        parts.append(f"{level} {rest.pop(_DIFFICULTY)}" if _DIFFICULTY in rest else level)
    parts += [f"{path} {value}" for path, value in rest.items()]
    return ", ".join(parts)
