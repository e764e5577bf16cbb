"""Schedules written as syllabi."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from evaluation.l2m import instructions
from evaluation.l2m.document import Document
from evaluation.schedule import Block, Schedule


def dumps(schedule: Schedule) -> str:
    """Write a schedule as a syllabus; `loads` gives the same blocks again.

    Episodes that must not be learned from are bracketed by ``$info``, one instruction a line.

    Raises:
      ValueError: a syllabus cannot say this, for example learning in a test phase, neighbouring
        blocks that are one, or an unknown task.
    """
    head: dict[str, object] = {"name": schedule.name, "author": schedule.author}
    head |= {"contains": "episodes", "default_params": {}}
    fields = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines = (f"    {json.dumps(item, allow_nan=False)}" for item in _written(schedule.blocks))
    fields.append('  "instructions": [\n' + ",\n".join(lines) + "\n  ]")
    text = "{\n" + ",\n".join(fields) + "\n}\n"
    again = instructions.read(Document(text, "<schedule>"), schedule.name).schedule
    if again.blocks != schedule.blocks:
        raise ValueError(
            "a syllabus cannot say what this schedule says: test blocks must not learn, equal "
            "neighbours must be one block, parameters must differ from the task's defaults"
        )
    return text


def _written(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield the instructions that lead to `blocks`."""
    for (phase, mode), members in groupby(blocks, key=lambda block: (block.phase, block.mode)):
        yield {"$phase": f"{phase}.{mode}"}
        for learning, run in groupby(members, key=lambda block: block.learning):
            if not learning:
                yield {"$info": {"disable_updates": True}}
            for block in run:
                episode = {"$episode": block.task, **dict(block.parameters)}
                yield {"$repeat": episode, "count": block.count}
            if not learning:
                yield {"$info": {}}
