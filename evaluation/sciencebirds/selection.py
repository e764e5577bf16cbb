"""Selection of the trials of a config.xml that are run."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaluation.sciencebirds.document import Evaluation

MAX_LIST = 2**20
"""Longest file of trials, bytes."""


def trial_range(text: str) -> tuple[int, int]:
    """Read `k` or `a-b`, places in the document from 0; the smaller one comes first.

    Raises:
      ValueError: neither.
    """
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text.strip())
    if match is None:
        raise ValueError(f"trial is {text!r}; it must be a number from 0, or two as in 0-4")
    first, last = int(match[1]), int(match[2] or match[1])
    return min(first, last), max(first, last)


def trial_list(path: Path) -> tuple[int, ...]:
    """Read places of trials, one a line; lines without a number are skipped.

    Raises:
      ValueError: no number at all, or a file that is too long.
      OSError: it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(MAX_LIST + 1)
    if len(data) > MAX_LIST:
        raise ValueError(f"{path} is longer than {MAX_LIST // 2**20} MiB; name fewer trials")
    lines = (line.strip() for line in data.decode(errors="replace").splitlines())
    numbers = tuple(int(line) for line in lines if re.fullmatch(r"[0-9]{1,9}", line))
    if not numbers:
        raise ValueError(f"{path} has no number of a trial; write one a line")
    return numbers


def select(
    evaluation: Evaluation,
    *,
    within: tuple[int, int] | None = None,
    places: Sequence[int] | None = None,
    informed: bool | None = None,
) -> Evaluation:
    """Keep some of the trials.

    Args:
      evaluation: all trials.
      within: first and last place; places after the end are the end.
      places: in the order in which they are run; those that do not exist are skipped.
      informed: True for trials whose agent is told of novelty, False for the others.

    Raises:
      ValueError: no trial is left.
    """
    trials = list(evaluation.trials)
    if places is not None:
        trials = [trials[place] for place in dict.fromkeys(places) if place < len(trials)]
    if within is not None and trials:
        last = len(trials) - 1
        trials = trials[min(within[0], last) : min(within[1], last) + 1]
    if informed is not None:
        trials = [trial for trial in trials if trial.notify == informed]
    if evaluation.trials and not trials:
        raise ValueError(f"no trial is left of {len(evaluation.trials)}; choose others")
    return replace(evaluation, trials=tuple(trials))
