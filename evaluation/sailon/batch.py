"""Whole experiments with a pure agent: every trial is a lane of the scanner.

A trial is a lifetime: trial k of an experiment is lifetime k + 1, and the training before all
trials is lifetime 0, whose memory every trial begins with. Lanes play the same place of their
trials side by side, each its own level with its own start. So an experiment is one compiled program
for all levels that need as many block slots.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evaluation import counters
from evaluation.episodes import Outcome, learn_from, play_abreast
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
from jaxsim import __version__, rng
from jaxsim.agents import UNNAMED, Agent, NoveltyPrediction, Told
from jaxsim.worlds.cartpole3d import CartPole3D, hints
from jaxsim.worlds.cartpole3d.hints import LEVELS_PER_GROUP, TOLD

PHASE_1_THRESHOLD = 0.05
"""Of the probability that stands for a novelty prediction from 0 to 10: any above 0 is one."""
MOST_LEVEL = 10


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
      experiment: what is played.
      agent: pure agent; it learns from every episode, and is told what the protocol tells.
      seed: root of all randomness; None for the experiment's own.
      options: chunks and devices; nothing in here changes a result.
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
        crew = _Crew(agent, group, root, len(group.trials), options)
        if index == 0:
            trained, outcome = crew.train(training, experiment)
            report(len(training))
            if outcome is not None:
                _fill(rows, outcome, np.arange(len(training))[:, None], experiment)
        parts = crew.test(experiment, trained, report)
        _fill(rows, parts, _places(rows, group.trials), experiment)
    versions = {"jaxsim-novelty": __version__, "jax": jax.__version__}
    used = experiment.settings.seed if seed is None else seed
    metadata = {"agent": agent.name, "engine": "scanner", "seed": used, "versions": versions}
    return Results(rows, experiment, metadata)


def _places(rows: results.Rows, trials: Sequence[Trial]) -> npt.NDArray[np.int64]:
    """Rows of the episodes of T trials, (E, T); -1 behind the end of a shorter one."""
    first = np.searchsorted(rows["trial_id"], [trial.number for trial in trials])
    count = np.array([len(trial.seeds) for trial in trials])
    index = np.arange(count.max())[:, None]
    return np.where(index < count, first + index, -1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Plan:
    """A stretch of the trials of a chunk, for the scan; leaves (S, L) unless said otherwise."""

    episode: Any  # (S,) int32, number of the episode in its trial
    world: Any  # int32, environment that it is played in
    row: Any  # int32, row of that environment's parameter table
    active: Any  # bool, whether the lane plays
    told: Told
    given: Any  # bool, whether it starts at `start`
    start: Any  # state of the first environment; None where starts are counted


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Played:
    """What came of an episode; leaves (L,)."""

    outcome: Outcome
    named: jax.Array  # int32, catalogue level that the agent names


class _Crew:
    """All chunks of a group of trials, with the program that plays them."""

    def __init__(
        self, agent: Agent, group: Group, root: rng.Words, lanes: int, options: Options
    ) -> None:
        self.agent, self.group, self.root = agent, group, root
        self.segment = options.segment
        devices, chunks, self.lanes = options.layout(lanes)
        self.homes = [devices[index % len(devices)] for index in range(chunks)]
        envs = tuple(world.env for world in group.tasks.worlds)
        tables = tuple(world.params for world in group.tasks.worlds)
        self.shared = {home: jax.device_put((root, tables), home) for home in set(self.homes)}
        self.advance = jax.jit(partial(_play_segment, agent, envs), donate_argnums=2)
        self.compiled: dict[Any, Callable[..., Any]] = {}

    def train(
        self, episodes: Sequence[EpisodePlan], experiment: Experiment
    ) -> tuple[Any, _Played | None]:
        """Play the training in all lanes of one chunk alike; memories, and results if any."""
        zeros = jnp.zeros(self.lanes, jnp.uint32)
        memory = _memories(self.agent, self.root, zeros)
        played = []
        for start in range(0, len(episodes), self.segment):
            part = episodes[start : start + self.segment]
            plan = self._plan([list(part)] * self.lanes, start, experiment)
            memory, out = self._run(self.homes[0], zeros, memory, plan)
            played.append(_cut(out, len(part), 1))
        if not played:
            return memory, None
        return memory, jax.tree.map(lambda *leaves: np.concatenate(leaves), *played)

    def test(self, experiment: Experiment, trained: Any, report: Callable[[int], None]) -> _Played:
        """Play every trial; results have leaves (E, T)."""
        chunks = []
        for index in range(len(self.homes)):
            members = self.group.trials[index * self.lanes : (index + 1) * self.lanes]
            chunks.append([list(experiment.episodes(trial)) for trial in members])
        numbers = [
            np.array([trial.number + 1 for trial in self.group.trials[i : i + self.lanes]])
            for i in range(0, len(self.group.trials), self.lanes)
        ]
        length = max(len(trial.seeds) for trial in self.group.trials)
        memories = [_spread(trained, self.lanes, home) for home in self.homes]
        parts = []
        for start in range(0, length, self.segment):
            outs = []
            for index, home in enumerate(self.homes):
                part = [lane[start : start + self.segment] for lane in chunks[index]]
                plan = self._plan(part, start, experiment)
                lanes = np.zeros(self.lanes, np.uint32)
                lanes[: len(numbers[index])] = numbers[index]
                memories[index], out = self._run(home, lanes, memories[index], plan)
                outs.append(out)
            size = min(self.segment, length - start)
            gathered = [_cut(out, size, len(own)) for out, own in zip(outs, numbers, strict=True)]
            parts.append(jax.tree.map(lambda *a: np.concatenate(a, axis=1), *gathered))
            report(sum(len(lane[start : start + size]) for chunk in chunks for lane in chunk))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def _run(self, home: Any, numbers: Any, memory: Any, plan: _Plan) -> tuple[Any, _Played]:
        given = jax.device_put((numbers, memory, plan), home)
        if not self.compiled:
            self.compiled = self._compile(given)
        memory, played = self.compiled[home](self.shared[home], *given)
        return memory, played

    def _compile(self, example: Any) -> dict[Any, Callable[..., Any]]:
        """Compile the same program for each device, side by side."""

        def build(home: Any) -> Callable[..., Any]:
            own = jax.device_put(example, home)
            return self.advance.lower(self.shared[home], *own).compile()

        with ThreadPoolExecutor(len(self.shared)) as pool:
            return dict(zip(self.shared, pool.map(build, self.shared), strict=True))

    def _plan(self, lanes: list[list[EpisodePlan]], first: int, experiment: Experiment) -> _Plan:
        """Arrays for episodes that lanes play side by side, padded to the size of the program."""
        size, tasks = self.segment, self.group.tasks
        variant = np.zeros((size, self.lanes), np.int32)
        active = np.zeros((size, self.lanes), bool)
        told = np.full((5, size, self.lanes), -1, np.int32)
        known: dict[tuple[Any, ...], tuple[int, ...]] = {}
        for lane, episodes in enumerate(lanes):
            for place, plan in enumerate(episodes):
                active[place, lane] = True
                variant[place, lane] = self.group.variant(plan)
                key = (plan.told, plan.level, plan.hint_level)
                if key not in known:
                    known[key] = _told_codes(plan)
                told[:, place, lane] = known[key]
        given = np.zeros((size, self.lanes), bool)
        start = self._starts(lanes, given) if experiment.settings.starts == "wsu" else None
        number = first + np.arange(size, dtype=np.int32)
        world, row = tasks.world[variant], tasks.row[variant]
        return _Plan(number, world, row, active, Told(*told), given, start)

    def _starts(self, lanes: list[list[EpisodePlan]], given: npt.NDArray[np.bool_]) -> Any:
        """Starts of the original, leaves (S, L, ...), where `given` is then set."""
        places: dict[tuple[int, int, str], int] = {}
        plans: list[EpisodePlan] = []
        index = np.zeros(given.shape, np.int64)
        for lane, episodes in enumerate(lanes):
            for place, plan in enumerate(episodes):
                if worlds.drawn_by_seed(plan):
                    key = (plan.seed, plan.level, plan.difficulty)
                    if key not in places:
                        places[key] = len(plans)
                        plans.append(plan)
                    given[place, lane], index[place, lane] = True, places[key]
        # Something must stand where no episode has a start of the original: the same program plays.
        plans = plans or [EpisodePlan(0, NOMINAL, NOMINAL_DIFFICULTY, 0, False, None, -1)]
        # Level 200 comes first in every group, so its environment does.
        drawn = worlds.original_starts(plans, self.group.tasks.worlds[0].env)
        return jax.tree.map(lambda leaf: leaf[index], drawn)


def _told_codes(plan: EpisodePlan) -> tuple[int, ...]:
    novel = -1 if plan.told is None else int(plan.told)
    return (novel, *hints.codes(plan.level, plan.hint_level))


def _cut(played: _Played, episodes: int, lanes: int) -> _Played:
    """Results without the padding, on the host."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:episodes, :lanes], played)


def _memories(agent: Agent, root: rng.Words, numbers: jax.Array) -> Any:
    keys = rng.to_key(rng.fold(root, numbers, counters.AGENT))
    return jax.jit(jax.vmap(agent.init))(keys)


def _spread(memory: Any, lanes: int, home: Any) -> Any:
    """The first lane's memory in a number of lanes; a copy, since programs consume theirs."""

    def one(leaf: jax.Array) -> jax.Array:
        return jnp.repeat(leaf[:1], lanes, axis=0)

    return jax.device_put(jax.tree.map(one, memory), home)


# The program ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Started:
    """An environment whose parameters also say where episodes start."""

    env: Any

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return int(self.env.max_steps)

    def start(self, key: jax.Array, both: Any) -> Any:
        """A drawn start, or where one is given that one."""
        params, given, start = both
        drawn = self.env.start(key, params)
        adopted = self.env.adopt(start, key, params)
        return jax.tree.map(partial(_choose, given), adopted, drawn)

    def observe(self, state: Any) -> Any:
        return self.env.observe(state)

    def step(self, key: jax.Array, state: Any, action: jax.Array, both: Any) -> Any:
        return self.env.step(key, state, action, both[0])


def _choose(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Select lane by lane, whatever follows the lane axis."""
    if jnp.issubdtype(yes.dtype, jax.dtypes.prng_key):
        data = _choose(condition, jax.random.key_data(yes), jax.random.key_data(no))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(yes))
    return jnp.where(condition.reshape(condition.shape + (1,) * (yes.ndim - 1)), yes, no)


def _play_segment(
    agent: Agent, envs: tuple[Any, ...], shared: Any, numbers: jax.Array, memory: Any, plan: _Plan
) -> tuple[Any, _Played]:
    """Scan a stretch of episodes; results have leaves (S, L)."""
    root, tables = shared
    lanes = rng.fold(root, numbers, counters.EPISODE)
    step = partial(_next_episode, agent, tuple(zip(envs, tables, strict=True)), lanes)
    return jax.lax.scan(step, memory, plan)


def _next_episode(
    agent: Agent, played_in: tuple[tuple[Any, Any], ...], lanes: rng.Words, memory: Any, plan: _Plan
) -> tuple[Any, _Played]:
    """Tell every lane of its next episode, play it and learn from it, one environment at a time."""
    heard = jax.vmap(agent.tell)(memory, plan.told)
    memory = jax.tree.map(partial(_choose, plan.active), heard, memory)
    key = rng.fold(lanes, plan.episode)
    played = _nothing_played(plan.active)
    for index, (env, table) in enumerate(played_in):
        inside = plan.active & (plan.world == index)
        run = partial(_play_in, agent, env, table, key, plan, inside)
        # A program of one environment is smaller without a choice of whether to play in it.
        if len(played_in) == 1:
            new, out = run(memory)
        else:
            new, out = jax.lax.cond(jnp.any(inside), run, lambda m, p=played: (m, p), memory)
        memory = jax.tree.map(partial(_choose, inside), new, memory)
        played = jax.tree.map(partial(_choose, inside), out, played)
    size = plan.active.shape[0]
    return memory, _Played(played, jax.vmap(agent.named, axis_size=size)(memory))


def _nothing_played(active: jax.Array) -> Outcome:
    """Results of lanes that do not play."""
    zero, none = jnp.zeros(active.shape), jnp.zeros(active.shape, jnp.int32)
    never = jnp.zeros(active.shape, bool)
    return Outcome(zero, zero, none, never, never, NoveltyPrediction(none, zero, zero + 1))


def _play_in(
    agent: Agent, env: Any, table: Any, key: Any, plan: _Plan, inside: jax.Array, memory: Any
) -> tuple[Any, Outcome]:
    """Play and learn in one environment; what comes out of other lanes is of no account."""
    params = jax.tree.map(lambda leaf: leaf[jnp.clip(plan.row, 0, leaf.shape[0] - 1)], table)
    if plan.start is not None and isinstance(env, CartPole3D):
        env, params = _Started(env), (params, plan.given, plan.start)
    steps = env.max_steps
    memory, outcome, kept = play_abreast(agent, env, params, key, inside, memory, 1, steps)
    one_by_one = jax.tree.map(lambda leaf: leaf[:, None], outcome)
    return learn_from(agent, one_by_one, None, kept, memory), outcome


# Rows -------------------------------------------------------------------------------------------


def _fill(
    rows: Any, played: _Played, places: npt.NDArray[np.int64], experiment: Experiment
) -> None:
    """Write results, leaves (E, T), to the rows at `places`, (E, T)."""
    outcome, there = played.outcome, places >= 0
    at = places[there]

    def column(leaf: Any) -> npt.NDArray[Any]:
        return np.asarray(leaf)[there]

    said = outcome.prediction
    level = column(said.level)
    probability = column(said.probability).astype(np.float64)
    threshold = column(said.threshold).astype(np.float64)
    if experiment.settings.of_2021:
        probability, threshold = from_prediction(level)
    rows["reward"][at] = column(outcome.reward)
    rows["length"][at] = column(outcome.length)
    rows["complete"][at] = column(outcome.complete)
    # Steps of 1/200 come back from float32 as they are.
    rows["performance"][at] = np.round(column(outcome.performance).astype(np.float64), 6)
    rows["seconds"][at] = column(outcome.length) * 0.02
    rows["novelty"][at] = level
    rows["novelty_probability"][at] = probability
    rows["novelty_threshold"][at] = threshold
    _fill_words(rows, at, column(played.named), level)


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
