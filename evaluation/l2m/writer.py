"""Writer of schedules as syllabi."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NoReturn

from evaluation.json_types import JsonMapping, JsonObject
from evaluation.l2m import instructions
from evaluation.l2m.document import Document
from evaluation.schedule import Block, Schedule, Value


def dumps(schedule: Schedule) -> str:
    """Write a schedule as a syllabus; `loads` gives the same blocks again.

    Episodes without learning are bracketed by ``$info``. Each instruction is one line.

    Raises:
      ValueError: a syllabus cannot express the schedule, for example learning in a test phase,
        equal neighbouring blocks, or an unknown task.
    """
    text = document(schedule.name, schedule.author, {}, _instructions(schedule.blocks))
    again = instructions.read(Document(text, "<schedule>"), schedule.name).schedule
    if again.blocks != schedule.blocks:
        raise ValueError(
            "a syllabus cannot express this schedule: test blocks must not learn, equal "
            "neighbours must be one block, parameters must differ from the task's defaults"
        )
    return text


def document(
    name: str,
    author: str,
    default_params: Mapping[str, Value],
    items: Iterable[JsonMapping],
) -> str:
    """Return the unchecked text of a syllabus, one instruction per line.

    Args:
      name: of the syllabus.
      author: of the syllabus.
      default_params: parameters of every episode.
      items: the instructions.

    Raises:
      ValueError: a value that JSON cannot represent.
    """
    head: dict[str, object] = {"name": name, "author": author}
    head |= {"contains": "episodes", "default_params": dict(default_params)}
    fields = [f'  "{key}": {_strict(value)}' for key, value in head.items()]
    lines = (f"    {_strict(item)}" for item in items)
    fields.append('  "instructions": [\n' + ",\n".join(lines) + "\n  ]")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def episode(
    task: str, parameters: Iterable[tuple[str, Value]], sub_episodes: int = 1
) -> JsonObject:
    """Return an episode as an instruction of a syllabus."""
    several = {instructions.SUB_EPISODES: sub_episodes} if sub_episodes > 1 else {}
    return {"$episode": task, **several, **dict(parameters)}


def _strict(value: object) -> str:
    return json.dumps(value, allow_nan=False, default=_reject)


def _reject(value: object) -> NoReturn:
    kind = type(value).__name__
    raise ValueError(f"{value!r} is of type {kind}; a syllabus holds int, float and str")


def _instructions(blocks: Sequence[Block]) -> Iterator[JsonObject]:
    """Yield instructions that give `blocks`."""
    for (phase, mode), members in groupby(blocks, key=lambda block: (block.phase, block.mode)):
        yield {"$phase": f"{phase}.{mode}"}
        for learning, run in groupby(members, key=lambda block: block.learning):
            if not learning:
                yield {"$info": {"disable_updates": True}}
            for block in run:
                repeated = episode(block.task, block.parameters, block.sub_episodes)
                yield {"$repeat": repeated, "count": block.episodes}
            if not learning:
                yield {"$info": {}}
