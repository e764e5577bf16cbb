"""Results arranged by trials, each beside the baseline's, for `evaluation.metrics.novelty`."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty import Answers, Labels, Trials, no_words
from evaluation.sailon import novelties
from evaluation.sailon.novelties import ListedNovelty
from evaluation.sailon.results import NO_SAMPLE, PROBABILITIES, SLOTS, Results, Rows
from jaxsim.novelty import Novelty
from jaxsim.worlds.cartpole3d.original.hints import HINT_WORDS, LEVELS_PER_GROUP


@dataclass(frozen=True)
class TrialData:
    """Trials of an agent beside those of a baseline, for `evaluation.metrics.novelty`.

    Attributes:
      trials: padded arrays.
      labels: the cell of each trial.
      predictions: of the agent at the end of each trial, and the truth.
    """

    trials: Trials
    labels: Labels
    predictions: Answers


def trial_data(agent: Results, baseline: Results | None) -> TrialData:
    """Arrange results trial by trial, each beside the baseline's trial.

    Trials of a cell are paired by their number, ``trial_index``; by their place among the trials
    of the cell if the two results have no number in common there.

    Args:
      agent: results.
      baseline: results of the baseline in the same experiment; None for none.

    Raises:
      ValueError: no trials, or two results of different experiments.
    """
    rows = agent.tested()
    if baseline is not None and agent.experiment and baseline.experiment:
        digests = agent.experiment.digest(), baseline.experiment.digest()
        if digests[0] != digests[1]:
            raise ValueError(
                f"agent and baseline played different experiments ({' and '.join(digests)}); let "
                "both play the same experiment file"
            )
    groups = _grouped(rows)
    if not groups:
        raise ValueError("the results hold no episode of a trial")
    size = max(len(places) for _, places in groups)

    def padded(column: np.ndarray) -> npt.NDArray[np.float64]:
        table = np.full((len(groups), size), np.nan)
        for line, (_, places) in enumerate(groups):
            table[line, : len(places)] = column[places]
        return table

    baseline_performance = np.full((len(groups), size), np.nan)
    if baseline is not None:
        baseline_rows = baseline.tested()
        for line, places in enumerate(_partners(rows, groups, baseline_rows)):
            values = baseline_rows["performance"][places][: len(groups[line][1])]
            baseline_performance[line, : len(values)] = values
    count = np.array([len(places) for _, places in groups])
    flags = [rows["novelty_initiated"][places] for _, places in groups]
    # A novelty of a list has no digit to name.
    digits = np.array(
        [NO_DIGIT if key[4] != NO_SAMPLE else key[1] % LEVELS_PER_GROUP for key, _ in groups]
    )
    button = np.array([int(column.argmax()) if column.any() else len(column) for column in flags])
    button = np.where(digits == 0, count, button)
    trials = Trials(
        padded(rows["performance"]),
        baseline_performance,
        padded(rows["novelty_probability"]),
        padded(rows["novelty_threshold"]),
        button,
        count,
    )
    entries = {} if agent.experiment is None else agent.experiment.entries
    return TrialData(trials, _labels(groups, entries), _predictions(rows, groups, digits, entries))


Key = tuple[int, int, str, int, int, int]
"""Visibility, level, difficulty, hint level, sample and place of a trial."""

Group = tuple[Key, npt.NDArray[np.int64]]
"""A trial and the places of its rows, in the order of episodes."""

NO_DIGIT: Final = -1


def _grouped(rows: Rows) -> list[Group]:
    """Places of the rows of each trial, in the order of episodes."""
    members: dict[tuple[Any, ...], list[int]] = {}
    names = ("novelty_visibility", "novelty_level", "novelty_difficulty", "hint_level", "sample")
    columns = [rows[name].tolist() for name in (*names, "trial_index", "trial_id")]
    for place, key in enumerate(zip(*columns, strict=True)):
        members.setdefault(key, []).append(place)
    counts: dict[Hashable, int] = {}
    groups = []
    for key in sorted(members):
        cell = key[:5]
        number = counts.get(cell, 0)
        counts[cell] = number + 1
        places = np.array(members[key])
        order = np.argsort(rows["episode_index"][places], kind="stable")
        groups.append(((*cell, number), places[order]))
    return groups


def _partners(
    rows: Rows, groups: Sequence[Group], baseline: Rows
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of the baseline's trial beside each trial; none if it has no such trial."""
    baseline_groups = _grouped(baseline)
    by_key = dict(baseline_groups)
    numbered, partners = _by_number(rows, groups), _by_number(baseline, baseline_groups)
    nothing = np.zeros(0, np.int64)
    for key, places in groups:
        cell = key[:5]
        if numbered[cell].keys() & partners.get(cell, {}).keys():
            yield partners[cell].get(int(rows["trial_index"][places[0]]), nothing)
        else:
            yield by_key.get(key, nothing)


def _by_number(
    rows: Rows, groups: Sequence[Group]
) -> dict[Hashable, dict[int, npt.NDArray[np.int64]]]:
    """Rows of the trials of each cell by their number; none if two have one number."""
    cells: dict[Hashable, dict[int, npt.NDArray[np.int64]]] = {}
    for key, places in groups:
        cells.setdefault(key[:5], {})[int(rows["trial_index"][places[0]])] = places
    sizes: Counter[Hashable] = Counter(key[:5] for key, _ in groups)
    return {cell: of if len(of) == sizes[cell] else {} for cell, of in cells.items()}


def _labels(groups: list[Group], entries: Mapping[int, ListedNovelty]) -> Labels:
    """Labels of the trials; for novelties of a list, their families and classes."""
    keys = [key for key, _ in groups]
    visibility, level, difficulty, hint, sample, _ = zip(*keys, strict=True)
    if not entries:
        return Labels(np.array(level), np.array(difficulty), np.array(visibility), np.array(hint))
    trial_entries = [entries[number] for number in sample]
    return Labels(
        np.array([entry.novelty.name for entry in trial_entries]),
        np.array([entry.difficulty for entry in trial_entries]),
        np.array(visibility),
        np.array(hint),
        {
            "split": np.array([entry.split for entry in trial_entries]),
            "control": np.array([novelties.bin_of(entry.control) for entry in trial_entries]),
            "detection": np.array([novelties.bin_of(entry.detection) for entry in trial_entries]),
        },
        np.array(sample),
    )


def nearest_words(novelty: Novelty, words: Sequence[str]) -> tuple[str, str, str]:
    """Words of the family of a novelty that agrees with most of the given words.

    Args:
      novelty: of one or several families.
      words: entity, attribute and change that an agent names.
    """

    def agreement(true: tuple[str, str, str]) -> int:
        return sum(a == b for a, b in zip(words, true, strict=True))

    return max(novelty.words, key=agreement)


def _last(valid: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> int:
    """Place of the last episode that was played; of the last one if none was."""
    return int(valid[-1] if valid.size else places[-1])


def _predictions(
    rows: Rows,
    groups: list[Group],
    digits: npt.NDArray[np.int64],
    entries: Mapping[int, ListedNovelty],
) -> Answers:
    valid = np.isfinite(rows["performance"])
    last = np.array([_last(places[valid[places]], places) for _, places in groups])
    words, truth = no_words(len(groups)), no_words(len(groups))
    for line, (key, _) in enumerate(groups):
        named = [str(rows[name][last[line]]).strip().lower() for name in SLOTS]
        hint = HINT_WORDS.get(key[1], (None, None, None))
        if key[4] in entries:
            hint = nearest_words(entries[key[4]].novelty, named)
        for slot, (word, right) in enumerate(zip(named, hint, strict=True)):
            truth[line, slot] = -1 if right is None else 1
            # An agent that names any word is wrong in the slots that it leaves open.
            words[line, slot] = int(word == right) if any(named) else -1
    return Answers(rows[PROBABILITIES][last], digits, words, truth)
