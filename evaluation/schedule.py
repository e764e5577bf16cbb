"""One plan for every protocol: which episodes of which tasks are played, learning or not.

A front door (a syllabus, an experiment, a trial set) parses its own notation into a `Schedule`;
the engines, the metrics and the logs see nothing else.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from evaluation.json_types import JsonMapping, JsonObject

Mode = Literal["train", "test"]
Value = float | int | str
Parameters = tuple[tuple[str, Value], ...]
"""(path, value) pairs, sorted by path."""
Variant = tuple[str, Parameters]
"""Task with its parameters."""

FIRST_3D = 100
"""Levels of the novelty catalogue with smaller numbers have two dimensions."""


@dataclass(frozen=True)
class Block:
    """A maximal run of episodes of one task with one set of parameters inside a phase.

    Attributes:
      index: position in the schedule, from 0.
      phase: number of the phase it belongs to, from 1.
      mode: "train" or "test", as the author annotated the phase.
      task: name of the task, for example "CartPole3D".
      parameters: (path, value) pairs that differ from the task's defaults, sorted by path.
      count: times that the task is reset and played to its end: episodes times sub-episodes. To
        the engines each of them is an episode.
      learning: whether the agent may learn from these episodes.
      sub_episodes: of each episode; a sub-episode is a reset and the steps that follow.
    """

    index: int
    phase: int
    mode: Mode
    task: str
    parameters: Parameters
    count: int
    learning: bool
    sub_episodes: int = 1

    @property
    def episodes(self) -> int:
        """Number of whole episodes."""
        return self.count // self.sub_episodes

    @property
    def variant(self) -> Variant:
        """What is played: the task with its parameters."""
        return self.task, self.parameters


def level_variant(level: int, difficulty: str) -> Variant:
    """Task and parameters of a level of the novelty catalogue."""
    task = "CartPole2D" if level < FIRST_3D else "CartPole3D"
    return task, (("novelty/difficulty", difficulty), ("novelty/level", level))


def _block_json(block: Block) -> JsonObject:
    """Plain JSON values; without sub-episodes where an episode has just one."""
    values = {**asdict(block), "parameters": dict(block.parameters)}
    return {k: v for k, v in values.items() if k != "sub_episodes" or v > 1}


@dataclass(frozen=True)
class Schedule:
    """A whole lifetime of episodes.

    Attributes:
      name: short name, used for log directories.
      blocks: the blocks in the order in which they are played.
      source: where it came from, for people: a file name or a protocol.
      author: who wrote it, "" if unknown.
    """

    name: str
    blocks: tuple[Block, ...]
    source: str = ""
    author: str = ""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Distinct (task, parameters) pairs in order of first appearance; P of them."""
        return tuple(dict.fromkeys(block.variant for block in self.blocks))

    @property
    def num_episodes(self) -> int:
        """Episodes of one lifetime, E; sub-episodes where episodes have several."""
        return sum(block.count for block in self.blocks)

    def block_variants(self) -> np.ndarray:
        """Index into `variants` of each block, (B,) int32."""
        position = {variant: index for index, variant in enumerate(self.variants)}
        return np.array([position[block.variant] for block in self.blocks], np.int32)

    def block_counts(self) -> np.ndarray:
        """Episodes of each block, (B,) int32."""
        return np.array([block.count for block in self.blocks], np.int32)

    def episode_blocks(self) -> np.ndarray:
        """Index of the block each episode belongs to, (E,) int32."""
        return np.repeat(np.arange(len(self.blocks), dtype=np.int32), self.block_counts())

    def episode_numbers(self) -> np.ndarray:
        """Number of the whole episode each (sub-)episode belongs to, (E,) int32."""
        first = np.concatenate(
            [np.arange(block.count) % block.sub_episodes == 0 for block in self.blocks]
        )
        return np.cumsum(first, dtype=np.int32) - 1

    def by_episode(self) -> "Schedule":
        """The schedule with whole episodes in place of their sub-episodes."""
        whole = (replace(b, count=b.episodes, sub_episodes=1) for b in self.blocks)
        return replace(self, blocks=tuple(whole))

    @classmethod
    def joined(cls, parts: Sequence["Schedule"]) -> "Schedule":
        """Concatenate schedules to one lifetime; a learning lifetime may span several.

        Numbers of blocks and phases continue; blocks are not merged where two schedules meet.
        """
        if len(parts) == 1:
            return parts[0]
        blocks: list[Block] = []
        for part in parts:
            phase = blocks[-1].phase if blocks else 0
            blocks += [
                replace(block, index=len(blocks) + block.index, phase=phase + block.phase)
                for block in part.blocks
            ]
        authors = dict.fromkeys(part.author for part in parts if part.author)
        name, source = (
            "+".join(getattr(part, field) for part in parts) for field in ("name", "source")
        )
        return cls(name, tuple(blocks), source, ", ".join(authors))

    def to_json(self) -> JsonObject:
        """Return plain JSON values; `from_json` is the inverse."""
        return {
            "name": self.name,
            "source": self.source,
            "author": self.author,
            "blocks": [_block_json(block) for block in self.blocks],
        }

    @classmethod
    def from_json(cls, values: JsonMapping) -> "Schedule":
        """Rebuild a schedule written by `to_json`."""
        blocks = tuple(
            Block(**{**b, "parameters": tuple(sorted(b["parameters"].items()))})
            for b in values["blocks"]
        )
        return cls(values["name"], blocks, values["source"], values["author"])

    def dumps(self) -> str:
        """Return the schedule as indented strict JSON text."""
        return json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"
