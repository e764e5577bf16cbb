r"""Syllabi: a lifetime of episodes written as JSON.

Source: L2M Metrics Framework, Johns Hopkins University Applied Physics Laboratory,
4 December 2019, chapters 1 to 3.

An example:

```json
{
  "name": "longer pole",
  "author": "A. Author",
  "contains": "episodes",
  "default_params": {"cart/mass": 2.0},
  "instructions": [
    {"$phase": "1.train"},
    {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 30},

    {"$phase": "1.test"},
    {"$info": {"disable_updates": true}},
    {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 15},
    {"$repeat": {"$episode": "CartPole3D"}, "count": 15},
    {"$info": {}}
  ]
}
```

The outermost object:

* ``instructions`` (required): a list of at least one instruction, played in order.
* ``name``: a short name; the default is the name of the file without its suffix.
* ``author``: who wrote it.
* ``contains``: ``"episodes"``; syllabi of ``"datasets"`` are read by
  `evaluation.l2m.classification.syllabus`.
* ``default_params``: parameters of every episode that does not set them itself. Every task of the
  syllabus must have them.

The instructions:

* ``{"$phase": "<k>.train"}`` or ``{"$phase": "<k>.test"}`` opens a phase, which needs at least one
  episode. The first phase is ``1.train``. After ``<k>.train`` comes ``<k>.test`` or a phase with
  the next number; after ``<k>.test`` a phase with the next number. With ``"enable_updates": false``
  in the same object the agent does not learn in the phase. Other keys are notes of the author.
* ``{"$repeat": {"$episode": TASK, PATH: VALUE, ...}, "count": N}`` plays N episodes of a task.
  PATH is a parameter of the task ("pole/length") and VALUE a number or a word. The key
  ``"novelty": {...}`` is a sample of `jaxsim.novelty` and stands for the parameters that it sets.
* ``{"$episode": TASK, PATH: VALUE, ...}`` plays one episode.
* ``"sub_episodes": n`` in the object of ``"$episode"`` gives each of its episodes n sub-episodes;
  the default is 1. A sub-episode is a reset and the steps that follow; no state of the task carries
  over. Logs have a row for each sub-episode, and metrics use the mean of an episode.
* ``{"$info": {"disable_updates": true}}`` stops learning until the next ``$info``;
  ``{"$info": {}}`` and ``{"$info": {"disable_updates": false}}`` resume it. Other keys of the
  inner object are notes of the author; agents do not get them.

Learning: the agent may learn from the episodes of a train phase, unless its ``enable_updates`` is
false or an ``$info`` has disabled updates. It never learns from a test phase, with or without
``$info``; ``"enable_updates": true`` on a test phase is an error. A train phase that begins while
an ``$info`` of a test phase disables updates is an error too, because that ``$info`` was left open
by mistake. An ``$info`` in a train phase or before the first phase also holds in the phases after
it.

Blocks: neighbouring episodes of a phase with the same task, the same parameters, the same number of
sub-episodes and the same permission to learn are one block, even if several instructions play them.
Parameters that equal the task's default are left out and numbers have the type of the default, so
equal physics is the same block. ``"CartPole3D"`` means the newest version of a task. The id of the
newest version ("CartPole3D-v0") means the same and is stored without its version; older ids are
stored as written. ``"$jaxsim:CartPole3D"``, of the form ``"$package:Task"``, means the same too. A
task of another package, or an unknown one, is an error, unless `loads` accepts `foreign` tasks: a
foreign task keeps its parameters, unchecked, and cannot be played.

All other deviations are errors: other unknown keys, notes that look like a misspelt key or begin
with "$", a key twice in an object, NaN and Infinity, a count that is not a whole number from 1,
files over `MAX_BYTES`, lifetimes over `MAX_EPISODES`. `evaluation.l2m.rules` checks the rules of
the subtypes CL, ANT_A, ANT_B and ANT_C.
"""

import os
from dataclasses import replace
from pathlib import Path

from evaluation.l2m import instructions
from evaluation.l2m.document import MAX_BYTES, Document, SyllabusError, read_text
from evaluation.l2m.instructions import MAX_EPISODES
from evaluation.l2m.writer import dumps
from evaluation.schedule import Schedule

__all__ = ["MAX_BYTES", "MAX_EPISODES", "SyllabusError", "dumps", "load", "loads"]

_MARK = "\ufeff"  # a byte order mark, which some editors write


def load(path: str | os.PathLike[str], *, foreign: bool = False) -> Schedule:
    """Read a syllabus file.

    Args:
      path: a UTF-8 JSON file; the module's docstring has the grammar.
      foreign: whether unknown tasks are accepted, with any parameters.

    Returns:
      The schedule; its `source` is the file's name without its folder.

    Raises:
      SyllabusError: the file cannot be read or is not a valid syllabus.
    """
    source, file = os.fspath(path), Path(path)
    document = Document(read_text(source).removeprefix(_MARK), source)
    schedule = instructions.read(document, file.stem, foreign=foreign).schedule
    return replace(schedule, source=file.name)


def loads(text: str, source: str = "<string>", *, foreign: bool = False) -> Schedule:
    """Read a syllabus from text.

    Args:
      text: JSON text; the module's docstring has the grammar.
      source: name of the text in errors and in the schedule.
      foreign: whether unknown tasks are accepted, with any parameters.

    Raises:
      SyllabusError: the text is not a valid syllabus.
    """
    document = Document(text.removeprefix(_MARK), source)
    return instructions.read(document, "syllabus", foreign=foreign).schedule
