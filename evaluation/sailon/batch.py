"""Whole experiments with a pure agent: every trial is a lane of the scanner.

Trial k of an experiment is lifetime k + 1. The training is lifetime 0; every trial begins with its
memory. Lanes play episodes of the same index in parallel, each with its own level and start. So
all levels that need the same number of block slots share one compiled program.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty.characterisation import KINDS
from evaluation.metrics.statistics.arrays import Floats
from evaluation.sailon import results, worlds
from evaluation.sailon.experiment import (
    UNCHANGED,
    EpisodePlan,
    Experiment,
    Trial,
)
from evaluation.sailon.results import SLOTS, Results
from evaluation.sailon.worlds import TrialGroup
from evaluation.scanner import (
    Keeper,
    MachineOptions,
    Progress,
    Snapshot,
    check_predictions,
    rows_at,
)
from evaluation.tasks import Tasks
from jaxsim import __version__, counters, rng
from jaxsim.agents import UNNAMED, Agent, NoveltyHint
from jaxsim.agents.base import Memory
from jaxsim.agents.contract import check_agent
from jaxsim.lanes.crew import Crew
from jaxsim.lanes.lists import Rounds, Rows
from jaxsim.pytrees import Leaf, State, Tree
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.original.hints import HINT_WORDS, LEVELS_PER_GROUP
from jaxsim.worlds.world import NONFINITE

PHASE_1_THRESHOLD = 0.05
"""Threshold for novelty predictions from 0 to 10 as probabilities: any above 0 is a detection."""
MAX_LEVEL = 10

COLUMNS = {
    "length": np.int32,
    "ending": np.int32,
    "reward": np.float32,
    "performance": np.float32,
    "level": np.int32,
    "probability": np.float32,
    "threshold": np.float32,
    "named": np.int32,
}
"""Columns of the episodes until the table of results is made."""

Places = npt.NDArray[np.int64]
"""Places of episodes in the table of results, -1 for none."""


def play_batch(
    experiment: Experiment,
    agent: Agent,
    *,
    seed: int | None = None,
    options: MachineOptions | None = None,
    progress: Progress | None = None,
) -> Results:
    """Play an experiment with a pure agent, all trials at once; see `play_agents`."""
    (table,) = play_agents(experiment, (agent,), seed=seed, options=options, progress=progress)
    return table


def play_agents(
    experiment: Experiment,
    agents: Sequence[Agent],
    *,
    seed: int | None = None,
    options: MachineOptions | None = None,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> list[Results]:
    """Play an experiment with pure agents one after the other; each plays all trials at once.

    With ``"starts": "wsu"`` starts are drawn from the episodes' seeds as in the original. Other
    starts, and all later randomness, come from a counter of seed, trial and episode.

    Args:
      experiment: to play.
      agents: pure agents; they learn from every episode and get the hints of the protocol.
      seed: root of all randomness; None for the experiment's seed.
      options: chunks, threads and segments; none of them changes a result.
      progress: called as `progress(episodes done, episodes in all)`, all agents together.
      keeper: returns where to resume, and is called after each segment with the number of
        episodes of all agents.

    Returns:
      The results of each agent; equal arguments give equal results.

    Raises:
      ValueError: a bad seed, bad options, or a prediction of novelty out of its bounds.
      TypeError: another object than an agent.
    """
    for agent in agents:
        check_agent(agent)
    root_seed = experiment.settings.seed if seed is None else seed
    course = _Course(experiment, agents, counters.root(root_seed), options or MachineOptions())
    columns = course.play(progress, keeper)
    versions = {"jaxsim-novelty": __version__, "jax": jax.__version__}
    about = {"engine": "scanner", "seed": root_seed, "versions": versions}
    tables = []
    for index, agent in enumerate(agents):
        rows = results.planned(experiment)
        _fill(rows, {name: column[index] for name, column in columns.items()}, experiment)
        tables.append(Results(rows, experiment, {"agent": agent.name, **about}))
    return tables


class _Part(NamedTuple):
    """Rounds that a crew plays in a row: an agent's training, or its trials of a group."""

    agent: int
    group: int
    training: bool
    first: int  # number of its first round among those of all parts
    rounds: int


class _Course:
    """All rounds of all agents, numbered consecutively.

    An agent's memories, leaves (1 + T, ...), are those of the training and of each trial.
    Columns, (A, E), hold the episodes of all agents in the order of the table of results.
    """

    def __init__(
        self,
        experiment: Experiment,
        agents: Sequence[Agent],
        root: rng.Words,
        options: MachineOptions,
    ) -> None:
        self.experiment, self.agents, self.root = experiment, tuple(agents), root
        self.options, self.groups = options, worlds.groups(experiment, worlds.FEW_EPISODES)
        options.spread()
        self.training = experiment.training_episodes()
        self.planned = results.planned(experiment)
        self.episodes = len(self.planned["performance"])
        self.parts = self._parts()
        self.memories = [self._initial(agent) for agent in self.agents]
        shape = len(self.agents), self.episodes
        self.columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}

    def _parts(self) -> list[_Part]:
        parts: list[_Part] = []
        first = 0
        for agent in range(len(self.agents)):
            stages = [(0, True, len(self.training))] if self.groups else []
            for index, group in enumerate(self.groups):
                stages.append((index, False, max(len(trial.seeds) for trial in group.trials)))
            for group_index, training, rounds in stages:
                parts.append(_Part(agent, group_index, training, first, rounds))
                first += rounds
        return parts

    def _initial(self, agent: Agent) -> Memory:
        """Memories before the first round."""
        tasks = worlds.training_group(self.experiment).tasks
        memory = _crew(agent, tasks, self.root, np.zeros(1, np.uint32), self.options).memory()
        return rows_at(memory, np.zeros(1 + len(self.experiment.trials), np.int64))

    def play(self, progress: Progress | None, keeper: Keeper | None) -> dict[str, np.ndarray]:
        """Play everything; return the columns."""
        snapshot = keeper.begin(partial(self._snapshot, 0)) if keeper else None
        if snapshot:
            self.memories = list(snapshot.memory)
            self.columns = {name: np.array(column) for name, column in snapshot.outcome.items()}
        reached, done = (snapshot.rounds if snapshot else 0), 0
        total = len(self.agents) * self.episodes
        for part in self.parts:
            start = max(reached - part.first, 0)
            done += self._count(part, 0, min(start, part.rounds))
            for stop, episodes in self._segments(part, start):
                done += episodes
                if progress:
                    progress(done, total)
                if keeper:
                    keeper.between(done, partial(self._snapshot, part.first + stop))
        return self.columns

    def _snapshot(self, rounds: int) -> Snapshot:
        return Snapshot(rounds, tuple(self.memories), self.columns)

    def _places(self, part: _Part) -> Places:
        """Rows of the episodes of a part, (R, T)."""
        if part.training:
            return np.arange(part.rounds)[:, None]
        return _places(self.planned, self.groups[part.group].trials)

    def _count(self, part: _Part, start: int, stop: int) -> int:
        """Number of episodes in some rounds of a part."""
        return int((self._places(part)[start:stop] >= 0).sum())

    def _segments(self, part: _Part, start: int) -> Iterator[tuple[int, int]]:
        """Play a part from a round on; yield (end round, episodes) after each segment."""
        if start >= part.rounds:
            return
        group, agent = self.groups[part.group], self.agents[part.agent]
        trials = _Trials(agent, group, self.experiment, self.root, self.options)
        memories, places = self.memories[part.agent], self._places(part)
        if part.training:
            lists: list[list[EpisodePlan]] = [list(self.training), *([] for _ in group.trials[1:])]
            number = np.zeros(len(group.trials), np.int64)
        else:
            lists = [list(self.experiment.episodes(trial)) for trial in group.trials]
            number = np.array([trial.number + 1 for trial in group.trials])
            trials.crew.renumber(number)
        # A trial begins with the memory of the training.
        trials.crew.remember(rows_at(memories, number if start else np.zeros_like(number)))
        for first in range(start, part.rounds, trials.segment):
            stop = min(first + trials.segment, part.rounds)
            outcome = trials.play(lists, first, part.training)
            self._note(part.agent, outcome, places[first:stop])
            memories = self.memories[part.agent] = _replaced(memories, number, trials.crew.memory())
            yield stop, self._count(part, first, stop)

    def _note(self, agent: int, outcome: Rows, places: Places) -> None:
        """Copy the outcome of episodes, leaves (S, T, 1), to `places`, (S, T) or (S, 1)."""
        episodes, lifetimes = places.shape
        mask = places >= 0
        prediction = outcome.prediction
        predicted = prediction.level, prediction.probability, prediction.threshold
        reported = (leaf[:episodes, :lifetimes, 0][mask] for leaf in predicted)
        check_predictions(self.agents[agent], *reported)
        for name, leaf in (
            ("length", outcome.length),
            ("ending", outcome.ending),
            ("reward", outcome.reward),
            ("performance", outcome.performance),
            ("level", prediction.level),
            ("probability", prediction.probability),
            ("threshold", prediction.threshold),
            ("named", outcome.named),
        ):
            self.columns[name][agent, places[mask]] = leaf[:episodes, :lifetimes, 0][mask]


def _replaced(tree: Tree, index: np.ndarray, rows: Tree) -> Tree:
    """Copy of a tree with rows replaced; a repeated index takes the first of its rows."""
    index, first = np.unique(index, return_index=True)

    def one(leaf: Leaf, new: Leaf) -> np.ndarray:
        changed = np.array(leaf)
        changed[index] = new[first]
        return changed

    return jax.tree.map(one, tree, rows)


def _places(rows: results.Rows, trials: Sequence[Trial]) -> Places:
    """Rows of the episodes of T trials, (E, T); -1 after the end of a shorter trial."""
    first = np.searchsorted(rows["trial_id"], [trial.number for trial in trials])
    count = np.array([len(trial.seeds) for trial in trials])
    index = np.arange(count.max())[:, None]
    return np.where(index < count, first + index, -1)


def _crew(
    agent: Agent, tasks: Tasks, root: rng.Words, numbers: np.ndarray, options: MachineOptions
) -> Crew:
    """Lifetimes in the environments of some tasks."""
    return Crew(
        agent,
        [world.env for world in tasks.worlds],
        [world.params for world in tasks.worlds],
        root,
        numbers,
        spread=options.spread(),
        names=True,
    )


class _Trials:
    """The trials of a group as lifetimes; all have the training's number 0 at first."""

    def __init__(
        self,
        agent: Agent,
        group: TrialGroup,
        experiment: Experiment,
        root: rng.Words,
        options: MachineOptions,
    ) -> None:
        self.group, self.experiment = group, experiment
        longest = max(len(trial.seeds) for trial in group.trials)
        longest = max(longest, len(experiment.training_episodes()))
        self.segment = min(options.segment, 1 << (longest - 1).bit_length())
        zeros = np.zeros(len(group.trials), np.uint32)
        self.crew = _crew(agent, group.tasks, root, zeros, options)

    def play(self, lists: list[list[EpisodePlan]], start: int, training: bool) -> Rows:
        """Play one segment of each lifetime's list of episodes, from round `start` on."""
        part = [plans[start : start + self.segment] for plans in lists]
        return self.crew.play(self.rounds(part, start, training))

    def rounds(self, lists: list[list[EpisodePlan]], first: int, training: bool) -> Rounds:
        """Lists of up to S episodes for T lifetimes, (S, T), from number `first` on."""
        shape, tasks = (self.segment, len(lists)), self.group.tasks
        variant, count = np.zeros((2, *shape), np.int32)
        hint = np.full((5, *shape), -1, np.int32)
        codes: dict[Hashable, tuple[int, ...]] = {}
        for lane, plans in enumerate(lists):
            count[: len(plans), lane] = 1
            for place, plan in enumerate(plans):
                variant[place, lane] = self.group.variant(plan)
                key = (plan.indicator, plan.variant, plan.hint_level)
                if key not in codes:
                    codes[key] = _hint_codes(plan, training)
                hint[:, place, lane] = codes[key]
        has_start = np.zeros(shape, bool)
        original = self.experiment.settings.starts == "wsu"
        start = self._starts(lists, has_start) if original else None
        return Rounds(
            episode=first + np.arange(self.segment, dtype=np.int32)[:, None],
            count=count,
            world=tasks.world[variant],
            row=tasks.row[variant],
            learning=np.ones((self.segment, 1), bool),
            hint=NoveltyHint(*hint),
            has_start=has_start if original else None,
            start=start,
        )

    def _starts(self, lists: list[list[EpisodePlan]], has_start: npt.NDArray[np.bool_]) -> State:
        """Starts of the original, leaves (S, T, ...); sets `has_start` where there is one."""
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
        # A placeholder, so that the same program plays if no episode has a start of the original.
        plans = plans or [EpisodePlan(0, UNCHANGED, 0, False, None, -1)]
        # Level 200 comes first in every group, and so does its environment.
        starts = worlds.original_starts(plans, self.group.tasks.worlds[0].env)
        return jax.tree.map(lambda leaf: leaf[index], starts)


def _hint_codes(plan: EpisodePlan, training: bool) -> tuple[int, ...]:
    """Codes of the hint of an episode; in training the indicator is false."""
    indicator = False if training else plan.indicator
    novel = -1 if indicator is None else int(indicator)
    return (novel, *hints.codes_of(plan.hint[0]))


# Rows -------------------------------------------------------------------------------------------


def _fill(rows: results.Rows, columns: Mapping[str, np.ndarray], experiment: Experiment) -> None:
    """Write columns of all episodes, (E,), to the table of results."""
    level = columns["level"]
    probability = columns["probability"].astype(np.float64)
    threshold = columns["threshold"].astype(np.float64)
    if experiment.settings.of_2021:
        probability, threshold = from_prediction(level)
    rows["reward"][:] = columns["reward"]
    rows["length"][:] = columns["length"]
    rows["complete"][:] = columns["ending"] != NONFINITE
    # Rounding recovers multiples of 1/200 from float32, and those of 0.02 as the session has them.
    rows["performance"][:] = np.round(columns["performance"].astype(np.float64), 6)
    rows["seconds"][:] = np.round(columns["length"] * 0.02, 6)
    rows["novelty"][:] = level
    rows["novelty_probability"][:] = probability
    rows["novelty_threshold"][:] = threshold
    _fill_words(rows, columns["named"], level)


def from_prediction(level: np.ndarray) -> tuple[Floats, Floats]:
    """Probability and threshold that stand for novelty predictions from 0 to 10."""
    probability = np.clip(np.asarray(level, np.float64) / MAX_LEVEL, 0, 1)
    return probability, np.full(probability.shape, PHASE_1_THRESHOLD)


def _fill_words(rows: results.Rows, named: np.ndarray, level: np.ndarray) -> None:
    """Write the novelties that an agent names: probabilities of the levels' digits, and words."""
    digit = np.where(named == UNNAMED, level, named % LEVELS_PER_GROUP)
    rows["level_probs"][:] = np.where(digit[:, None] == np.arange(KINDS), 1.0, 0.0)
    for catalogue in np.unique(named):
        for slot, word in zip(
            SLOTS, HINT_WORDS.get(int(catalogue), (None, None, None)), strict=True
        ):
            rows[slot][named == catalogue] = word or ""
