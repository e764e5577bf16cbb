"""Tables by column: what a metric of the 2019 hierarchy is given in place of pandas dataframes."""

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluation.l2m.report2019.table import BlockTable, LoggedBlock

How = Literal["mean", "sum", "count", "first"]


class ColumnTable(MutableMapping[str, npt.NDArray[Any]]):
    """Columns of equal length by name.

    ``table["reward"]`` is a NumPy array, ``table["new"] = values`` sets a column (one number fills
    it), ``table.where(table["block"] == 3)`` keeps rows, ``table.columns`` lists names, and
    ``table.to_pandas()`` is a pandas dataframe where pandas is installed.
    """

    def __init__(self, columns: Mapping[str, npt.ArrayLike], rows: int | None = None) -> None:
        """Take columns of equal length.

        Args:
          columns: values by name.
          rows: number of rows; needed only if there are no columns.

        Raises:
          ValueError: columns of different length.
        """
        lengths = {len(np.asarray(column)) for column in columns.values()}
        self._rows = rows if rows is not None else max(lengths, default=0)
        self._columns: dict[str, npt.NDArray[Any]] = {}
        for name, column in columns.items():
            self[name] = np.asarray(column)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return a column.

        Raises:
          KeyError: there is none; the message lists those there are.
        """
        if name not in self._columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._columns)}")
        return self._columns[name]

    def __setitem__(self, name: str, values: npt.ArrayLike) -> None:
        array = np.asarray(values)
        if array.ndim == 0:
            array = np.full(self._rows, array)
        if array.shape != (self._rows,):
            raise ValueError(f"column {name!r} is {array.shape}; it must be ({self._rows},)")
        self._columns[name] = array

    def __delitem__(self, name: str) -> None:
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def where(self, mask: npt.ArrayLike) -> "ColumnTable":
        """Return the rows of a boolean mask."""
        chosen = np.asarray(mask, bool)
        kept = {name: column[chosen] for name, column in self._columns.items()}
        return ColumnTable(kept, int(chosen.sum()))

    def to_pandas(self) -> Any:
        """Return a pandas dataframe.

        Raises:
          ValueError: pandas is not installed.
        """
        try:
            pandas: Any = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ValueError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame(self._columns)


class LogTable(ColumnTable):
    """The rows of a log, one a sub-episode (or a batch, in classification), ordered by episode.

    Columns are those of the log: ``phase``, ``worker``, ``class_name``, ``block``, ``task`` (the
    episode number), ``sub_task``, ``steps``, ``reward`` ... Changing one changes nothing else.
    """

    def __init__(self, table: BlockTable) -> None:
        """Show the rows of a log that has been read."""
        super().__init__({name: np.array(column) for name, column in table.columns.items()})
        self._table = table

    @property
    def blocks(self) -> tuple[LoggedBlock, ...]:
        """The B blocks, in order."""
        return self._table.blocks

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """Episodes of each block, (B,)."""
        return self._table.counts

    def by_block(self, column: str, how: How = "mean") -> npt.NDArray[np.float64]:
        """Arrange a column block by block, one number an episode.

        Args:
          column: name of a column of numbers.
          how: what is taken over the sub-episodes of an episode.

        Returns:
          (B, T) float64 padded with NaN behind `counts`; T is the longest block.

        Raises:
          ValueError: no such column, or one that does not hold numbers.
        """
        return self._table.by_block(column, how)


class PhaseTable(ColumnTable):
    """One row a block: phase, phase_number, phase_type, task_name, block, param_set."""

    def __init__(self, blocks: tuple[LoggedBlock, ...]) -> None:
        """Describe blocks."""
        super().__init__(
            {
                "phase": [f"{block.phase}.{block.mode}" for block in blocks],
                "phase_number": [block.phase for block in blocks],
                "phase_type": [block.mode for block in blocks],
                "task_name": [block.class_name for block in blocks],
                "block": [block.index for block in blocks],
                "param_set": [block.parameters for block in blocks],
            },
            len(blocks),
        )
        self.blocks = blocks


class MetricsTable(ColumnTable):
    """One row a block: its number, and a column for each quantity computed so far.

    Missing numbers are NaN; `reasons` may say why.
    """

    def __init__(self, blocks: tuple[LoggedBlock, ...]) -> None:
        """Begin with the numbers of the blocks."""
        super().__init__({"block": [block.index for block in blocks]}, len(blocks))
        self.reasons: dict[str, dict[int, str]] = {}

    def copy(self) -> "MetricsTable":
        """Return a table that may be changed on its own."""
        other = MetricsTable(())
        other._rows = self._rows
        other._columns = dict(self._columns)
        other.reasons = {name: dict(why) for name, why in self.reasons.items()}
        return other
