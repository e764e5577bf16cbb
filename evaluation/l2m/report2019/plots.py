"""Plots of per-block numbers; matplotlib is imported when one is drawn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def per_block(name: str, values: Mapping[str, Mapping[int, float] | float]) -> "Figure | None":
    """Draw one panel per quantity, with its numbers over blocks.

    Args:
      name: title.
      values: quantity -> block -> number; quantities with one number are left out.

    Returns:
      A matplotlib figure, or None if no quantity has numbers for blocks.

    Raises:
      ValueError: matplotlib is not installed.
    """
    panels = {q: numbers for q, numbers in values.items() if isinstance(numbers, Mapping)}
    if not panels:
        return None
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError("plots need matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(7, 1 + 2.2 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (quantity, numbers) in zip(axes, panels.items(), strict=True):
        axis.plot(list(numbers), list(numbers.values()), "o")
        axis.set(xlabel="block", ylabel=quantity, xlim=(min(numbers) - 0.5, max(numbers) + 0.5))
        axis.grid(alpha=0.3)
    figure.suptitle(name)
    return figure
