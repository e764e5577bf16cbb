r"""Syllabi of classification: a lifetime of data sets written as JSON.

```json
{
  "name": "moved digits",
  "contains": "datasets",
  "instructions": [
    {"$phase": "1.train"},
    {"$dataset": "Digits", "batches": 60},

    {"$phase": "1.test"},
    {"$info": {"disable_updates": true}},
    {"$dataset": "Digits", "batches": 12},
    {"$info": {}},

    {"$phase": "2.train"},
    {"$repeat": {"$dataset": "Digits", "features/shift_x": 2, "batches": 20}, "count": 3}
  ]
}
```

``{"$dataset": NAME, "batches": N, "batch_size": M, PATH: VALUE, ...}`` is one data set of N batches
(by default as many as its examples fill) of M examples (32); PATH is a parameter of the data set,
for example ``features/shift_x``, ``labels/shift`` or ``classes/last``. ``$repeat`` plays it several
times. A train phase draws from training examples, a test phase from test examples.

All other rules (``name``, ``author``, ``default_params``, ``$phase``, ``$info``, blocks, learning)
are those of syllabi of episodes, with batches in place of episodes.

Source: L2M Metrics Framework, 4 Dec 2019, section 1.1, "Classification Learning". The document says
that such a syllabus is a sequence of data sets, without an example; the keys are ours.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, ClassVar, Final, NoReturn

from evaluation.l2m import instructions
from evaluation.l2m.classification import data
from evaluation.l2m.document import Document, read_text
from evaluation.l2m.instructions import MAX_EPISODES
from evaluation.positions import Path
from evaluation.schedule import Block, Parameters, Schedule, Value

DEFAULT_BATCH_SIZE: Final = 32
MAX_BATCH_SIZE: Final = 4096

_KEYS = ("$dataset", "batches", "batch_size")
"""Keys of a data set that are not parameters."""


@dataclass(frozen=True)
class DataBlock:
    """One data set of a lifetime.

    Attributes:
      block: position of its block in the schedule.
      name: of the data set.
      values: all its parameters.
      batches: number of batches.
      batch_size: examples in a batch.
    """

    block: int
    name: str
    values: Mapping[str, Value]
    batches: int
    batch_size: int


@dataclass(frozen=True)
class DatasetSyllabus:
    """A lifetime of data sets.

    Attributes:
      schedule: the blocks; an episode of the schedule is a batch.
      plans: the data sets in order.
    """

    schedule: Schedule
    plans: tuple[DataBlock, ...]


def load(path: str | os.PathLike[str]) -> DatasetSyllabus:
    """Read a syllabus file.

    Args:
      path: a UTF-8 JSON file; the module's docstring has the grammar.

    Raises:
      SyllabusError: the file cannot be read or is not a valid syllabus of classification.
    """
    source, file = os.fspath(path), FilePath(path)
    return loads(read_text(source), source, file.stem)


def loads(text: str, source: str = "<string>", name: str = "syllabus") -> DatasetSyllabus:
    """Read a syllabus from text.

    Args:
      text: JSON text; the module's docstring has the grammar.
      source: name of the text in errors.
      name: of the syllabus, if it has none.

    Raises:
      SyllabusError: the text is not a valid syllabus of classification.
    """
    document = Document(text.removeprefix("\ufeff"), source)
    reading, player = instructions.play(document, document.decode(), name, DataReader)
    schedule = replace(reading.schedule, source=FilePath(source).name)
    return DatasetSyllabus(schedule, tuple(player.plans))


@dataclass
class DataReader(instructions.Reader):
    """Reader of instructions in order, which collects data sets and blocks."""

    contains: ClassVar[str] = "datasets"
    contains_rule: ClassVar[str] = '"datasets"; play episodes with `jaxsim run`'
    task_key: ClassVar[str] = "$dataset"

    plans: list[DataBlock] = field(default_factory=list)

    def add(self, path: Path, episode: Mapping[str, object], count: int, count_path: Path) -> None:
        """Append a data set ``count`` times, to the last block if it is equal to its data sets."""
        if count > MAX_EPISODES:
            self._too_long(count_path)
        for _ in range(count):
            self._data_set(path, episode, count_path)

    def _too_long(self, path: Path) -> NoReturn:
        reason = f"a lifetime may have {MAX_EPISODES} batches and is longer here; lower counts"
        self.document.fail(path, reason)

    def _data_set(self, path: Path, entry: Mapping[str, object], count_path: Path) -> None:
        """Append one data set, to the last block if it is equal to its data sets."""
        if not self.phase:
            reason = 'a data set before the first phase; put {"$phase": "1.train"} in front of it'
            self.document.fail(path[:2], reason, rule="required")
        name_path = (*path, "$dataset")
        name = self.document.string(name_path, entry["$dataset"])
        try:
            spec = data.spec(name)
        except ValueError as error:
            self.document.fail(name_path, str(error))
        values = self._values(spec, path, entry)
        size = self.whole(path, entry, "batch_size", DEFAULT_BATCH_SIZE, MAX_BATCH_SIZE)
        distinct = _distinct(spec, values)
        batches = self._batches(path, entry, spec, spec.fill(values), size)
        self.episodes += batches
        if self.episodes > MAX_EPISODES:
            self._too_long(count_path)
        block = self._block(path, spec.name, distinct, batches, size)
        self.plans.append(DataBlock(block, spec.name, spec.fill(values), batches, size))

    def _values(
        self, spec: data.DataSpec, path: Path, entry: Mapping[str, object]
    ) -> dict[str, Value]:
        entries = {name: value for name, value in entry.items() if name not in _KEYS}
        shared: Any = spec  # has the name and the parameters that `Variants` uses
        values = self.variants._values(shared, ("default_params",), self.variants.defaults)
        values |= self.variants._values(shared, path, entries)
        try:
            spec.check(values)
        except ValueError as error:
            self.document.fail(path, f"{spec.name}: {error}")
        return values

    def _batches(
        self,
        path: Path,
        entry: Mapping[str, object],
        spec: data.DataSpec,
        values: Mapping[str, Value],
        size: int,
    ) -> int:
        """Return the number of batches; by default as many as the examples fill."""
        if "batches" in entry:
            return self.whole(path, entry, "batches", None, MAX_EPISODES)
        first, last = int(values["classes/first"]), int(values["classes/last"])
        try:
            examples = spec.load()
        except ValueError as error:
            reason = f'without "batches" the examples are counted, and {error}'
            self.document.fail(path, reason)
        return max(len(examples.rows(self.mode, first, last)) // size, 1)

    def _block(
        self,
        path: Path,
        name: str,
        distinct: Parameters,
        batches: int,
        size: int,
    ) -> int:
        learning = self.phase_updates and not self.disabled
        index = len(self.blocks)
        block = Block(index, self.phase, self.mode, name, distinct, batches, learning)
        last = self.blocks[-1] if index > self.phase_start else None
        same_size = bool(self.plans) and self.plans[-1].batch_size == size
        if last and same_size and (last.variant, last.learning) == (block.variant, learning):
            self.blocks[-1] = replace(last, count=last.count + batches)
            return last.index
        self.blocks.append(block)
        self.block_paths.append(path)
        return index


def _distinct(spec: data.DataSpec, values: Mapping[str, Value]) -> Parameters:
    """Parameters that differ from their defaults, sorted by path."""
    rows = spec.parameters
    return tuple(sorted(item for item in values.items() if item[1] != rows[item[0]].default))
