"""Whole experiments with a pure agent: every trial is a lane of the scanner.

A trial is a lifetime: trial k of an experiment is lifetime k + 1, and the training before all
trials is lifetime 0, whose memory every trial begins with. Lanes play the same place of their
trials side by side, each its own level with its own start. So an experiment is one compiled program
for all levels that need as many block slots.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty.characterisation import KINDS
from evaluation.sailon import results, worlds
from evaluation.sailon.experiment import (
    NOMINAL,
    NOMINAL_DIFFICULTY,
    EpisodePlan,
    Experiment,
    Trial,
)
from evaluation.sailon.results import SLOTS, Results
from evaluation.sailon.worlds import Group
from evaluation.scanner import Options, Progress
from jaxsim import __version__, counters, rng
from jaxsim.agents import UNNAMED, Agent, Told
from jaxsim.lanes.crew import Crew
from jaxsim.lanes.lists import Rounds, Rows
from jaxsim.worlds.base import NONFINITE
from jaxsim.worlds.cartpole3d import hints
from jaxsim.worlds.cartpole3d.hints import LEVELS_PER_GROUP, TOLD

PHASE_1_THRESHOLD = 0.05
"""Of the probability that stands for a novelty prediction from 0 to 10: any above 0 is one."""
MOST_LEVEL = 10

Places = npt.NDArray[np.int64]
"""Places of episodes in the table of results, -1 for none."""


def play_batch(
    experiment: Experiment,
    agent: Agent,
    *,
    seed: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Results:
    """Play an experiment with a pure agent, all trials at once.

    Starts are those that the original draws from the episodes' seeds if the experiment says
    ``"starts": "wsu"``, and otherwise counted, like all that is random later in an episode, from
    the seed, the trial and the episode.

    Args:
      experiment: what is outcome.
      agent: pure agent; it learns from every episode, and is told what the protocol tells.
      seed: root of all randomness; None for the experiment's own.
      options: chunks, threads and segments; nothing in here changes a result.
      progress: called as `progress(episodes done, episodes in all)`.

    Returns:
      The results; equal arguments give equal ones.

    Raises:
      ValueError: a bad seed or bad options.
    """
    root = counters.root(experiment.settings.seed if seed is None else seed)
    options = options or Options()
    rows = results.planned(experiment)
    trained: Any = None
    total, done = len(rows["performance"]), 0
    training = experiment.training_episodes()

    def report(episodes: int) -> None:
        nonlocal done
        done += episodes
        if progress:
            progress(min(done, total), total)

    for index, group in enumerate(worlds.groups(experiment)):
        trials = _Trials(agent, group, experiment, root, options)
        if index == 0:
            for places, results_of in trials.train(training):
                _fill(rows, results_of, places, experiment)
                report(places.size)
            trained = trials.knowledge()
        for places, results_of in trials.test(rows, trained):
            _fill(rows, results_of, places, experiment)
            report(int((places >= 0).sum()))
    versions = {"jaxsim-novelty": __version__, "jax": jax.__version__}
    used = experiment.settings.seed if seed is None else seed
    metadata = {"agent": agent.name, "engine": "scanner", "seed": used, "versions": versions}
    return Results(rows, experiment, metadata)


def _places(rows: results.Rows, trials: Sequence[Trial]) -> Places:
    """Rows of the episodes of T trials, (E, T); -1 behind the end of a shorter one."""
    first = np.searchsorted(rows["trial_id"], [trial.number for trial in trials])
    count = np.array([len(trial.seeds) for trial in trials])
    index = np.arange(count.max())[:, None]
    return np.where(index < count, first + index, -1)


class _Trials:
    """The trials of a group as lifetimes, and the training before them."""

    def __init__(
        self, agent: Agent, group: Group, experiment: Experiment, root: rng.Words, options: Options
    ) -> None:
        self.group, self.experiment = group, experiment
        self.numbers = np.array([trial.number + 1 for trial in group.trials])
        self.plans = [list(experiment.episodes(trial)) for trial in group.trials]
        longest = max(len(experiment.training_episodes()), *map(len, self.plans))
        self.segment = min(options.segment, 1 << (longest - 1).bit_length())
        self.crew = Crew(
            agent,
            [world.env for world in group.tasks.worlds],
            [world.params for world in group.tasks.worlds],
            root,
            np.zeros_like(self.numbers),
            spread=options.spread(),
            names=True,
        )

    def train(self, episodes: Sequence[EpisodePlan]) -> Iterator[tuple[Places, Rows]]:
        """Play the training as lifetime 0; rows of results with their places, (S, 1)."""
        nobody: list[EpisodePlan] = []
        lists = [list(episodes), *(nobody for _ in self.plans[1:])]
        for start, rows in self._stretches(lists):
            size = min(self.segment, len(episodes) - start)
            yield start + np.arange(size)[:, None], _cut(rows, size, 1)

    def knowledge(self) -> Any:
        """What the agent knows after the training, leaves (1, ...)."""
        return jax.tree.map(lambda leaf: leaf[:1], self.crew.memory())

    def test(self, rows: results.Rows, trained: Any) -> Iterator[tuple[Places, Rows]]:
        """Play every trial from what the training left; results with their places, (S, T)."""
        count = len(self.plans)
        self.crew.renumber(self.numbers)
        self.crew.remember(jax.tree.map(lambda leaf: np.repeat(leaf, count, axis=0), trained))
        places = _places(rows, self.group.trials)
        for start, outcome in self._stretches(self.plans):
            part = places[start : start + self.segment]
            yield part, _cut(outcome, len(part), count)

    def _stretches(self, lists: list[list[EpisodePlan]]) -> Iterator[tuple[int, Rows]]:
        """Play a list of episodes for each lifetime, stretch by stretch."""
        for start in range(0, max(map(len, lists)), self.segment):
            part = [plans[start : start + self.segment] for plans in lists]
            yield start, self.crew.play(self.rounds(part, start))

    def rounds(self, lists: list[list[EpisodePlan]], first: int) -> Rounds:
        """Lists of up to S episodes for T lifetimes, (S, T), from number `first` on."""
        shape, tasks = (self.segment, len(lists)), self.group.tasks
        variant, count = np.zeros((2, *shape), np.int32)
        hint = np.full((5, *shape), -1, np.int32)
        known: dict[tuple[Any, ...], tuple[int, ...]] = {}
        for lane, plans in enumerate(lists):
            count[: len(plans), lane] = 1
            for place, plan in enumerate(plans):
                variant[place, lane] = self.group.variant(plan)
                key = (plan.told, plan.level, plan.hint_level)
                if key not in known:
                    known[key] = _told_codes(plan)
                hint[:, place, lane] = known[key]
        has_start = np.zeros(shape, bool)
        original = self.experiment.settings.starts == "wsu"
        start = self._starts(lists, has_start) if original else None
        return Rounds(
            episode=first + np.arange(self.segment, dtype=np.int32)[:, None],
            count=count,
            world=tasks.world[variant],
            row=tasks.row[variant],
            learning=np.ones((self.segment, 1), bool),
            hint=Told(*hint),
            has_start=has_start if original else None,
            start=start,
        )

    def _starts(self, lists: list[list[EpisodePlan]], has_start: npt.NDArray[np.bool_]) -> Any:
        """Starts of the original, leaves (S, T, ...), where `has_start` is then set."""
        places: dict[tuple[int, int, str], int] = {}
        plans: list[EpisodePlan] = []
        index = np.zeros(has_start.shape, np.int64)
        for lane, episodes in enumerate(lists):
            for place, plan in enumerate(episodes):
                if worlds.drawn_by_seed(plan):
                    key = (plan.seed, plan.level, plan.difficulty)
                    if key not in places:
                        places[key] = len(plans)
                        plans.append(plan)
                    has_start[place, lane], index[place, lane] = True, places[key]
        # Something must stand where no episode has a start of the original: the same program plays.
        plans = plans or [EpisodePlan(0, NOMINAL, NOMINAL_DIFFICULTY, 0, False, None, -1)]
        # Level 200 comes first in every group, so its environment does.
        drawn = worlds.original_starts(plans, self.group.tasks.worlds[0].env)
        return jax.tree.map(lambda leaf: leaf[index], drawn)


def _told_codes(plan: EpisodePlan) -> tuple[int, ...]:
    novel = -1 if plan.told is None else int(plan.told)
    return (novel, *hints.codes(plan.level, plan.hint_level))


def _cut(rows: Rows, episodes: int, lifetimes: int) -> Rows:
    """Results of some episodes of some lifetimes, leaves (E, T)."""
    cut: Rows = jax.tree.map(lambda leaf: leaf[:episodes, :lifetimes, 0], rows)
    return cut


# Rows -------------------------------------------------------------------------------------------


def _fill(rows: Any, outcome: Rows, places: Places, experiment: Experiment) -> None:
    """Write results, leaves (E, T), to the rows at `places`, (E, T)."""
    mask = places >= 0
    at = places[mask]

    def column(leaf: Any) -> npt.NDArray[Any]:
        return np.asarray(leaf)[mask]

    prediction = outcome.prediction
    level = column(prediction.level)
    probability = column(prediction.probability).astype(np.float64)
    threshold = column(prediction.threshold).astype(np.float64)
    if experiment.settings.of_2021:
        probability, threshold = from_prediction(level)
    rows["reward"][at] = column(outcome.reward)
    rows["length"][at] = column(outcome.length)
    rows["complete"][at] = column(outcome.ending) != NONFINITE
    # Steps of 1/200 come back from float32 as they are.
    rows["performance"][at] = np.round(column(outcome.performance).astype(np.float64), 6)
    rows["seconds"][at] = column(outcome.length) * 0.02
    rows["novelty"][at] = level
    rows["novelty_probability"][at] = probability
    rows["novelty_threshold"][at] = threshold
    _fill_words(rows, at, column(outcome.named), level)


def from_prediction(level: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], Any]:
    """Probability and threshold that stand for novelty predictions from 0 to 10."""
    probability = np.clip(np.asarray(level, np.float64) / MOST_LEVEL, 0, 1)
    return probability, np.full(probability.shape, PHASE_1_THRESHOLD)


def _fill_words(rows: Any, at: Any, named: Any, level: Any) -> None:
    """What an agent names, as probabilities of the levels' digits and as words."""
    digit = np.where(named == UNNAMED, level, named % LEVELS_PER_GROUP)
    rows["level_probs"][at] = np.where(digit[:, None] == np.arange(KINDS), 1.0, 0.0)
    for catalogue in np.unique(named):
        for slot, word in zip(SLOTS, TOLD.get(int(catalogue), (None, None, None)), strict=True):
            rows[slot][at[named == catalogue]] = word or ""
