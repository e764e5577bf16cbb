"""The pandas DataFrames that metrics of the 2019 hierarchy get, and functions to arrange them.

`by_block(dataframe, "reward")` is (B, T), one number per episode; `counts_of(dataframe)` counts the
episodes of each block; `blocks_of(phase_info)` describes the blocks. A missing number of
``metrics_df`` is NaN, and ``metrics_df.attrs["reasons"][quantity][block]`` may have the reason.
"""

from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluation.l2m.report2019.table import BlockTable, LoggedBlock, arranged, episodes_of

How = Literal["mean", "sum", "count", "first"]
DataFrame = Any  # pandas.DataFrame; pandas is imported when a frame is made


def _pandas() -> ModuleType:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ValueError(
            "reports of 2019 need pandas: pip install 'jaxsim-novelty[l2m]'"
        ) from error
    return pandas


def log_frame(table: BlockTable) -> DataFrame:
    """The rows of a log, one per sub-episode (in classification, per batch), ordered by episode.

    Columns are those of the log: ``phase``, ``worker``, ``class_name``, ``block``, ``task`` (the
    episode number), ``sub_task``, ``steps``, ``reward`` ... They are copies.
    """
    return _pandas().DataFrame({name: np.array(column) for name, column in table.columns.items()})


def phase_frame(blocks: tuple[LoggedBlock, ...]) -> DataFrame:
    """One row per block: phase, task as logged, parameters, and name for comparisons."""
    return _pandas().DataFrame(
        {
            "phase": [f"{block.phase}.{block.mode}" for block in blocks],
            "phase_number": [block.phase for block in blocks],
            "phase_type": [block.mode for block in blocks],
            "task_name": [block.class_name for block in blocks],
            "block": [block.index for block in blocks],
            "param_set": [block.parameters for block in blocks],
            "compared_as": [block.task for block in blocks],
            "episodes": [block.count for block in blocks],
        }
    )


def blocks_of(phase_info: DataFrame) -> tuple[LoggedBlock, ...]:
    """The blocks that a frame of phases describes."""
    return tuple(
        LoggedBlock(
            int(row.block),
            int(row.phase_number),
            row.phase_type,
            row.task_name,
            row.compared_as,
            row.param_set,
            int(row.episodes),
        )
        for row in phase_info.itertuples()
    )


def metrics_frame(blocks: tuple[LoggedBlock, ...]) -> DataFrame:
    """One row per block with its number; metrics add columns."""
    frame = _pandas().DataFrame({"block": [block.index for block in blocks]})
    frame.attrs["reasons"] = {}
    return frame


def is_frame(value: object) -> bool:
    """Whether a value is a pandas DataFrame."""
    return isinstance(value, _pandas().DataFrame)


def by_block(dataframe: DataFrame, column: str, how: How = "mean") -> npt.NDArray[np.float64]:
    """Arrange a column of a log by block, one number per episode.

    Args:
      dataframe: the rows of a log, in order.
      column: name of a column of numbers.
      how: reduction over the sub-episodes of an episode.

    Returns:
      (B, T) float64 padded with NaN behind `counts_of`; T is the longest block.

    Raises:
      ValueError: an unknown column, or one without numbers.
    """
    if column not in dataframe:
        raise ValueError(f"the log has no column {column!r}; there are {', '.join(dataframe)}")
    block, task, values = (dataframe[name].to_numpy() for name in ("block", "task", column))
    return arranged(block, task, values, how, column)


def counts_of(dataframe: DataFrame) -> npt.NDArray[np.int32]:
    """Episodes of each block of a log, (B,)."""
    return episodes_of(dataframe["block"].to_numpy(), dataframe["task"].to_numpy())[2]
