"""The interface between a sweep and its base command."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from evaluation import agents
from evaluation.checkpoints.stopping import Stop
from evaluation.sweep.axes import Value
from evaluation.sweep.grid import GroupKeys, SweepCell
from jaxsim.parameters import unknown

Values = Mapping[str, Any]
INPUTS: Final = "inputs"
"""Folder of a plan with copies of the files that it reads."""


class PackResults(NamedTuple):
    """Results of the cells of a pack.

    Attributes:
      rows: one row per episode, in the order of the cells; the first column is `cell`.
      metrics: one row per cell and metric, in the order of the cells; columns are `METRICS`.
    """

    rows: pa.Table
    metrics: pa.Table


METRICS: Final = pa.schema(
    [
        ("cell", pa.int64()),
        ("metric", pa.string()),
        ("value", pa.float64()),  # null where it is missing
        ("low", pa.float64()),  # lower end of the 95 % interval
        ("high", pa.float64()),
        ("count", pa.int64()),  # number of its episodes, lifetimes or trials
        ("reason", pa.string()),  # why a number is missing
    ]
)
"""Columns of the table of metrics."""

ENDINGS: Final = ("fallen", "survived", "nonfinite")
"""Metrics of `jaxsim evaluate` that are shares of a cell's episodes, by how they ended."""


@dataclass(frozen=True)
class SweepFiles:
    """Files and folder of a sweep, and its stop signal.

    Attributes:
      inputs: copies of the files that values name, by value; empty while the sweep is planned.
      folder: folder of the sweep; None while it is planned.
      stop: whether the process has been told to end.
    """

    inputs: Mapping[str, Path]
    folder: Path | None = None
    stop: Stop = field(default_factory=Stop)

    def file(self, value: object) -> Path:
        """The copy of the file that a value names, or the file itself if there is no copy."""
        return self.inputs.get(str(value), Path(str(value)))


class Base(Protocol):
    """A base command; its methods take complete values, from `complete`."""

    name: str
    threads: bool  # whether several packs may be played at once in one process

    def fields(self) -> Mapping[str, Value | None]:
        """Values that are not parameters of a task, with their defaults; None for required ones."""

    def files(self, values: Values) -> list[str]:
        """Values that name files, which are copied into the plan."""

    def check(self, values: Values, place: SweepFiles) -> None:
        """Check a cell before anything is played.

        Raises:
          ValueError: a value is wrong; the message says what to change.
        """

    def keys(self, values: Values, place: SweepFiles) -> GroupKeys:
        """Keys of a cell; cells with equal keys may share a program or a call."""

    def lanes(self, values: Values) -> int:
        """Number of lanes of a cell."""

    def steps(self, values: Values, place: SweepFiles) -> int:
        """Most environment steps of a cell."""

    def episodes(self, values: Values, place: SweepFiles) -> int:
        """Number of rows of a cell."""

    def bytes(self, values: Values, cells: int, place: SweepFiles) -> int:
        """Memory of a pack, in addition to that of the process."""

    def play(self, cells: Sequence[SweepCell], place: SweepFiles) -> PackResults:
        """Play the cells of a pack; the result does not depend on time or machine."""

    def schema(self) -> pa.Schema:
        """Columns of `PackResults.rows`."""


def complete(base: Base, values: Values) -> Values:
    """Fill in the defaults of the base.

    Raises:
      ValueError: a required value is missing.
    """
    fields = base.fields()
    for name, default in fields.items():
        if default is None and name not in values:
            raise ValueError(f'{name} is not set; write {name} = "..." below [fixed] or [axes]')
    return {**fields, **values}


def typed(
    values: Values,
    kinds: Mapping[str, type | tuple[type, ...]],
    defaults: Mapping[str, Value | None],
) -> None:
    """Check the types of values.

    Args:
      values: of a cell.
      kinds: types by name.
      defaults: by name; where it is "", that means a value that is not set.

    Raises:
      ValueError: a value has the wrong type; the message names it and the right type.
    """
    words = {int: "a whole number", float: "a number", str: "text"}
    for name, kind in kinds.items():
        value = values.get(name)
        allowed = kind if isinstance(kind, tuple) else (kind,)
        if float in allowed:
            allowed = (*allowed, int)
        if name in values and type(value) not in allowed and not value == defaults.get(name) == "":
            description = " or ".join(dict.fromkeys(words[k] for k in allowed))
            raise ValueError(f"{name} is {value!r}; it must be {description}")


def check_level(values: Values, defaults: Mapping[str, Value | None]) -> None:
    """Check that the fields of a level do not contradict its parameters.

    Raises:
      ValueError: says what to leave out.
    """
    for name in ("level", "difficulty"):
        path = f"novelty/{name}"
        if values[name] != defaults[name] and path in values:
            raise ValueError(f"{name} and {path} are both set; leave one of them out")


def paths(values: Values, fields: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Values that are not fields, by path; without those that begin with `prefix`."""
    return {k: v for k, v in values.items() if k not in fields and not (prefix and _in(k, prefix))}


def agent_files(values: Values, field: str = "agent") -> list[str]:
    """The file of an agent in a list, which is empty if the agent is not from a file."""
    path = agents.file_of(str(values[field]))
    return [path] if path else []


def agent_of(values: Values, place: SweepFiles, field: str = "agent") -> str:
    """Name of an agent, with the path of the copy of its file."""
    name = str(values[field])
    files = agent_files(values, field)
    return str(place.file(files[0])) + name.removeprefix(files[0]) if files else name


def below(values: Values, prefix: str) -> dict[str, Any]:
    """Values whose names begin with a prefix; the prefix is removed."""
    return {name.removeprefix(prefix): v for name, v in values.items() if _in(name, prefix)}


def _in(name: str, prefix: str) -> bool:
    return name.startswith(prefix)


def no_such(name: str, allowed: Sequence[str]) -> ValueError:
    """The error for an unknown name."""
    return ValueError(unknown("name", name, allowed))


def metrics_table(
    cells: Sequence[int],
    names: Sequence[str],
    columns: Mapping[str, np.ndarray],
    reason: np.ndarray,
) -> pa.Table:
    """Make a table of metrics.

    Args:
      cells: (C,) numbers of the cells.
      names: (M,) names of the metrics.
      columns: "value", "low", "high" and "count", each (C, M); NaN if missing.
      reason: (C, M) text, None if nothing is missing.
    """
    count = len(names)
    arrays: list[pa.Array] = [
        pa.array(np.repeat(np.asarray(cells, np.int64), count)),
        pa.array(list(names) * len(cells), pa.string()),
    ]
    arrays += [
        pa.array(np.asarray(columns[key], np.float64).ravel(), pa.float64(), from_pandas=True)
        for key in ("value", "low", "high")
    ]
    arrays.append(pa.array(np.asarray(columns["count"]).ravel().astype(np.int64)))
    arrays.append(pa.array(np.asarray(reason, object).ravel().tolist(), pa.string()))
    return pa.Table.from_arrays(arrays, schema=METRICS)
