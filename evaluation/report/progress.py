"""A progress bar for a terminal; needs the `cli` extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

LABEL = 40
"""Maximum of characters of a bar's label."""


class Move(Protocol):
    """Function that moves a progress bar."""

    def __call__(self, done: int, total: int, label: str | None = None) -> None:
        """Show `done` of `total`, with a new label unless it is None."""


class EpisodeRate(ProgressColumn):
    """Column with the episodes per second since the first result."""

    def render(self, task: Task) -> Text:
        """Show the rate, or "compiling" before the first result."""
        if task.finished_time:
            return Text(f"{task.completed / task.finished_time:,.0f}/s in all")
        if not task.completed or not task.speed:
            return Text("compiling")
        return Text(f"{task.speed:,.0f}/s")


@contextmanager
def progress_bar(
    console: Console, label: str, total: int | None = None, what: str = "episodes"
) -> Iterator[Move]:
    """Show a progress bar; yields the function that moves it.

    Args:
      console: where to show it.
      label: text before the bar.
      total: number of things to count; None if the first move sets it.
      what: things that are counted. "episodes" are shown with their rate, others with the time.
    """
    whole = "" if total is None else "/{task.total:,.0f}"
    rate = EpisodeRate(table_column=Column(no_wrap=True))
    with Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=LABEL)),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}}{whole} {what}"),
        rate if what == "episodes" else TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task(label, total=total)

        def move(done: int, total: int, label: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=label)

        yield move
