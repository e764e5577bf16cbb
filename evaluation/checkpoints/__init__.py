"""Checkpoints of long runs: what is saved, when, and how a run resumes from it.

A run with results in DIR has its checkpoints in DIR/checkpoints, one folder a step:

    checkpoints/0000000320/checkpoint.json    what was played, with a digest of every file
    checkpoints/0000000320/arrays/            memories and results so far, written by orbax

A step is there under its name when all of it is on the disk, or not at all.
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.checkpoints.keeper import Checkpoints as Checkpoints
    from evaluation.checkpoints.keeper import Pace as Pace
    from evaluation.checkpoints.loading import load_memory as load_memory
    from evaluation.checkpoints.store import CheckpointError as CheckpointError

__getattr__, __dir__ = exports(__name__)
