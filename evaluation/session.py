"""The engine for ordinary agents: a schedule's episodes one decision at a time.

A `Session` opens episodes; a Python object, or a client of a socket, steps an `Episode`. An episode
has the same start and randomness as the scanner's episode of the same number in the same lifetime.
A `Log` collects episodes that are chosen one by one, in any order; `play` runs a whole schedule
with a `Player`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.json_types import JsonMapping, JsonObject
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Block, Mode, Schedule
from evaluation.tasks import Tasks, entries
from jaxsim import __version__, counters, inputs, rng, spaces
from jaxsim.agents import Agent, Entry, Episodes
from jaxsim.agents.base import Memory
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Leaf, Observation, Params, State, Tree
from jaxsim.stepper import EpisodeKeys, StepOutcome, Stepper, answer_at_once

Progress = Callable[[int, int], None]

answer_at_once()  # A step waits for its outcome; waking another thread would only delay it.


class Prediction(NamedTuple):
    """An agent's prediction of novelty; by default, that there is none."""

    level: int = 0  # of the novelty catalogue, 0 for none
    probability: float = 0.0  # that the world has changed, in [0, 1]
    threshold: float = 1.0  # probability from which the agent calls it a detection

    def checked(self) -> "Prediction":
        """Return it as plain numbers.

        Raises:
          ValueError: a level below 0, a probability or a threshold that is not in [0, 1].
        """
        check_whole("novelty level", self.level, 0)
        probability, threshold = float(self.probability), float(self.threshold)
        for name, value in (("probability", probability), ("threshold", threshold)):
            if not 0 <= value <= 1:
                raise ValueError(f"novelty {name} is {value}; it must be from 0 to 1")
        return Prediction(int(self.level), probability, threshold)


LOGGED_BYTES = 320
"""Least memory of an episode in a `Log`."""


class EpisodeResult(NamedTuple):
    """Totals of one episode, ended or broken off."""

    reward: float
    performance: float  # in [0, 1]
    length: int  # steps
    terminated: bool  # the task ended it, rather than a limit
    complete: bool  # it was played to its end, and every number stayed finite
    seconds: float  # simulated time


class Episode:
    """One episode in play; `Session` makes it.

    Attributes:
      number: of the episode in its lifetime.
      env: environment of the task.
      params: its physics, scalar leaves.
      observation: the latest, with NumPy scalars for leaves.
      over: whether the episode has ended.
      length: steps so far.
      reward: sum of rewards so far.
      last_reward: reward of the last step, 0 before the first.
    """

    def __init__(
        self, stepper: Stepper, params: Params, words: rng.Words, number: int, given: State = None
    ) -> None:
        env = stepper.env
        self.env, self.params, self.number = env, params, number
        self._actions = spaces.action_space(env)
        self._words, self._stepper = words, stepper
        self.reward, self.length = 0.0, 0
        keys = _keys(words)
        if given is None:
            self._note(self._stepper.begin(keys))
        else:
            self._note(self._stepper.begin_at(_adopted(env, keys.start, given, params), keys))
        self.length, self.reward, self.last_reward = 0, 0.0, 0.0

    @property
    def state(self) -> State:
        """State of the world, with NumPy leaves; agents must not see it."""
        return self._stepper.state

    @property
    def performance(self) -> float:
        """The task's score so far, in [0, 1]."""
        return float(self._outcome.performance)

    def act_key(self) -> jax.Array:
        """Key for the next decision, the same as for a pure agent in the scanner."""
        return rng.to_key(rng.fold(self._words, counters.ACT, self.length + 1))

    def begin_key(self) -> jax.Array:
        """Key for the agent at the first observation, the same as in the scanner."""
        return rng.to_key(rng.fold(self._words, counters.BEGIN))

    def step(self, action: Leaf) -> Observation:
        """Advance one step.

        Args:
          action: integer from 0 to `env.num_actions - 1`.

        Returns:
          The new observation.

        Raises:
          ValueError: no such action.
          RuntimeError: the episode is over.
        """
        if self.over:
            raise RuntimeError("the episode is over; open the next one")
        self._note(self._stepper.step(int(self._actions.checked(action))))
        return self.observation

    def result(self) -> EpisodeResult:
        """Totals so far; an episode that is not over counts as broken off."""
        complete = self.over and not self._outcome.nonfinite
        seconds = float(np.float32(self.length * np.float32(self.env.dt(self.params))))
        terminated = bool(self._outcome.terminated)
        return EpisodeResult(
            self.reward, self.performance, self.length, terminated, complete, seconds
        )

    def _note(self, outcome: StepOutcome) -> None:
        """Record the outcome of a step."""
        self.observation, self._outcome = outcome.observation, outcome
        self.over = bool(outcome.terminated | outcome.truncated)
        self.last_reward = float(outcome.reward)
        self.reward = float(np.float32(self.reward) + outcome.reward)
        self.length += 1


@jax.jit
def _episode_words(lifetime: rng.Words, number: Leaf) -> rng.Words:
    """Counter key of an episode, the same as in the scanner."""
    return rng.fold(lifetime, counters.EPISODE, number)


_keys = jax.jit(EpisodeKeys.of)  # the same as in the scanner


@partial(jax.jit, static_argnames="env")
def _adopted(env: Any, key: rng.Words, start: State, params: Params) -> State:
    """A given state before the hidden first step, with the sensors of this episode."""
    return env.adopt(start, rng.to_key(key), params)


class Session:
    """One lifetime of a schedule for an agent of any kind.

    Args:
      schedule: schedule of the lifetime.
      seed: root of all randomness, from 0 to 2^32 - 1.
      lifetime: number of the lifetime.

    Attributes:
      schedule: as given.
      tasks: environments and parameters of its variants.

    Raises:
      ValueError: a seed or a number of lifetime out of bounds, or an unknown task or parameter.
    """

    def __init__(self, schedule: Schedule, *, seed: int = 0, lifetime: int = 0) -> None:
        check_whole("lifetime", lifetime, 0, 2**32 - 1)
        self._lifetime = rng.fold(counters.root(seed), jnp.uint32(lifetime))
        self.schedule, self.tasks = schedule, Tasks.of(schedule)
        self._variants = schedule.block_variants()[schedule.episode_blocks()]
        self._worlds: dict[int, tuple[Stepper, Params]] = {}

    def compile(self) -> None:
        """Compile all programs that the episodes need, so that no agent waits for that."""
        for world in np.unique(self.tasks.world):
            self._stepper(int(np.argmax(self.tasks.world == world)))[0].compile()

    def agent_key(self) -> jax.Array:
        """Key for the agent at the start of its lifetime, the same as in the scanner."""
        return rng.to_key(rng.fold(self._lifetime, counters.AGENT))

    def episode(self, number: int) -> Episode:
        """Open an episode of the schedule.

        Args:
          number: from 0.

        Raises:
          IndexError: the schedule has fewer.
        """
        if not 0 <= number < len(self._variants):
            raise IndexError(f"episode is {number}; the schedule has {len(self._variants)}")
        return self.start(int(self._variants[number]), number)

    def start(self, variant: int, number: int, given: State = None) -> Episode:
        """Open an episode of any variant and number.

        Args:
          variant: index into `schedule.variants`.
          number: number of the episode in the lifetime; start and randomness follow from it.
          given: state before the hidden first step to start from, scalar leaves, in the form that
            the environment's `start` has; None to draw it. The environment must have `adopt`.

        Raises:
          IndexError: no such variant.
        """
        if not 0 <= variant < len(self.tasks.world):
            raise IndexError(f"variant is {variant}; the schedule has {len(self.tasks.world)}")
        stepper, params = self._stepper(variant)
        words = _episode_words(self._lifetime, np.uint32(number))
        return Episode(stepper.another(), params, words, number, given)

    def _stepper(self, variant: int) -> tuple[Stepper, Params]:
        """The stepper that episodes of a variant are copies of, and its parameters."""
        if variant not in self._worlds:
            env, params = self.tasks.variant(variant)
            self._worlds[variant] = Stepper(env, params), params
        return self._worlds[variant]


@dataclass
class Log:
    """Collects episodes in the order in which they were played, and makes records of them.

    Attributes:
      name: of the schedule that the records will have.
      source: where it came from, for people.
      metadata: agent, seed, ...; plain JSON values.
      lifetime: number of the lifetime.
    """

    name: str
    source: str = ""
    metadata: JsonMapping = field(default_factory=dict)
    lifetime: int = 0
    _blocks: list[Block] = field(default_factory=list, init=False)
    _rows: list[tuple[EpisodeResult, Prediction]] = field(default_factory=list, init=False)
    _levels: dict[Hashable, int] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self._rows)

    def add(
        self,
        session: Session,
        variant: int,
        result: EpisodeResult,
        prediction: Prediction | None = None,
        *,
        phase: int = 1,
        mode: Mode = "test",
        learning: bool = False,
    ) -> None:
        """Add an episode that was played.

        Args:
          session: where it was played.
          variant: index into `session.schedule.variants`.
          result: totals of the episode.
          prediction: the agent's last novelty prediction.
          phase: number of the phase it belongs to, from 1.
          mode: whether the protocol calls it training or testing.
          learning: whether the agent was allowed to learn from it.
        """
        task, parameters = what = session.schedule.variants[variant]
        self._levels[what] = int(session.tasks.novelty_levels[variant])
        block = Block(len(self._blocks), phase, mode, task, parameters, 1, learning)
        self._rows.append((result, prediction or Prediction()))
        if self._blocks and _same_run(self._blocks[-1], block):
            last = self._blocks.pop()
            values = (last.index, phase, mode, task, parameters, last.count + 1, learning)
            block = Block(*values)
        self._blocks.append(block)

    def records(self) -> Records:
        """Return the records of one lifetime, all episodes added so far.

        Raises:
          ValueError: there are none.
        """
        if not self._rows:
            raise ValueError("no episode was played, so there are no records")
        schedule = Schedule(self.name, tuple(self._blocks), self.source)
        levels = np.array([self._levels[what] for what in schedule.variants], np.int32)
        columns, metadata = _columns(self._rows), _metadata(self.metadata)
        return Records(schedule, columns, levels, self.lifetime, metadata)


def _same_run(block: Block, other: Block) -> bool:
    """Whether two neighbours belong to one maximal run."""

    def kind(b: Block) -> Hashable:
        return b.phase, b.mode, b.variant, b.learning

    return bool(kind(block) == kind(other))


def _columns(rows: list[tuple[EpisodeResult, Prediction]]) -> dict[str, np.ndarray]:
    """Columns of the records of one lifetime, (1, E) each."""
    named_rows = [
        {
            **result._asdict(),
            "predicted_level": prediction.level,
            "predicted_probability": prediction.probability,
            "threshold": prediction.threshold,
        }
        for result, prediction in rows
    ]
    return {
        name: np.array([[row[name] for row in named_rows]], dtype)
        for name, dtype in COLUMNS.items()
    }


def _metadata(values: JsonMapping) -> JsonObject:
    versions = {"jaxsim-novelty": __version__, "jax": jax.__version__}
    return {"lifetimes": 1, "versions": versions, **values}


class Player(Protocol):
    """An ordinary agent that plays a schedule through `play`.

    If it has `enter(entry: jaxsim.agents.Entry)`, this is called as each block begins. If it has
    `fault() -> int`, episodes that begin with a fault are recorded as not complete.
    """

    @property
    def name(self) -> str:
        """Short name, for tables."""
        ...

    def begin(self, episode: Episode) -> None:
        """Begin a new episode; `episode.observation` is its first."""
        ...

    def act(self, observation: Observation) -> tuple[int, Prediction]:
        """Return an action and a prediction of novelty."""
        ...

    def end(self, result: EpisodeResult, learning: bool) -> None:
        """Take the result of the episode; `learning` says whether to learn from it."""
        ...


class PurePlayer:
    """Plays a pure agent as an ordinary one, with the same randomness as in the scanner.

    Args:
      agent: the agent.
      seed: that of `play`.
      lifetime: that of `play`.
    """

    def __init__(self, agent: Agent, *, seed: int = 0, lifetime: int = 0) -> None:
        self.name, self._agent = agent.name, agent
        self._begin, self._learn = jax.jit(agent.begin), jax.jit(agent.learn)
        self._act, self._enter = jax.jit(agent.act), jax.jit(agent.enter)
        self._trace = jax.jit(agent.trace) if agent.trace else None
        words = rng.fold(counters.root(seed), jnp.uint32(lifetime), counters.AGENT)
        initial = jax.jit(agent.init)(rng.to_key(words))
        self._memory = jax.jit(agent.assign)(initial, jnp.uint32(lifetime))
        self._episode: Episode | None = None
        self._steps: list[Tree] = []
        self._rewards: list[float] = []

    @property
    def memory(self) -> Memory:
        """The agent's present memory."""
        return self._memory

    def enter(self, entry: Entry) -> None:
        """Enter the block that begins."""
        self._memory = self._enter(self._memory, entry)

    def fault(self) -> int:
        """Return the agent's fault, 0 for none."""
        return int(self._agent.fault(self._memory))

    def begin(self, episode: Episode) -> None:
        """Start an episode."""
        self._episode, self._steps, self._rewards = episode, [], []
        self._memory = self._begin(self._memory, episode.begin_key())

    def act(self, observation: Observation) -> tuple[int, Prediction]:
        """Choose an action.

        Raises:
          ValueError: the agent's is not an integer, or there is no such action.
        """
        assert self._episode is not None, "begin comes first"
        before = self._memory
        action, prediction, self._memory = self._act(before, observation, self._episode.act_key())
        if self._trace:
            if self._steps:
                self._rewards.append(self._episode.last_reward)
            self._steps.append(self._trace(before, observation, action))
        code = np.asarray(action)
        if code.dtype != bool:
            inputs.action_codes(code, self._episode.env.num_actions)
        level, probability = int(prediction.level), float(prediction.probability)
        return int(code), Prediction(level, probability, float(prediction.threshold))

    def end(self, result: EpisodeResult, learning: bool) -> None:
        """Learn from the episode if that is allowed."""
        if learning:
            values = (result.reward, result.performance, result.length, result.terminated)
            dtypes = (jnp.float32, jnp.float32, jnp.int32, jnp.bool_)
            totals = [jnp.array([v], dtype) for v, dtype in zip(values, dtypes, strict=True)]
            trace, rewards, final = self._padded_trace()
            steps = {"trace": trace, "rewards": rewards, "final": final}
            episodes = replace(Episodes(*totals), **steps)
            self._memory = self._learn(self._memory, episodes)

    def _padded_trace(self) -> tuple[Tree, Leaf, Tree]:
        """Trace, rewards and last trace of the episode as in `Episodes`, padded with zeros."""
        if not self._trace:
            return None, None, None
        assert self._episode is not None, "begin comes first"
        most = self._episode.env.max_steps

        def rows(like: Leaf, *leaves: Leaf) -> jax.Array:
            padded = np.zeros((1, most, *like.shape), like.dtype)
            for row, leaf in enumerate(leaves):
                padded[0, row] = leaf
            return jnp.asarray(padded)

        last = self._trace(self._memory, self._episode.observation, jnp.int32(0))
        rewards = [np.float32(r) for r in (*self._rewards, self._episode.last_reward)]
        # An episode that its hidden first step has ended is without steps.
        rewards = rewards[: len(self._steps)]
        final = jax.tree.map(lambda leaf: leaf[None], last)
        trace = jax.tree.map(rows, last, *self._steps)
        return trace, rows(np.float32(0), *rewards), final


def play(
    schedule: Schedule,
    player: Player,
    *,
    seed: int = 0,
    lifetime: int = 0,
    progress: Progress | None = None,
) -> Records:
    """Play a whole schedule with an ordinary agent.

    Args:
      schedule: what is played.
      player: the agent.
      seed: root of all randomness, from 0 to 2^32 - 1.
      lifetime: number of the lifetime; with the same seed, that of the scanner.
      progress: called as `progress(episodes done, episodes in all)`.

    Returns:
      The records of one lifetime.

    Raises:
      ValueError: a bad seed, task, action or prediction.
      TypeError: a pure agent; `PurePlayer` makes a player of it.
    """
    if isinstance(player, Agent):
        raise TypeError(f"{player.name} is a pure agent; pass session.PurePlayer(agent)")
    session = Session(schedule, seed=seed, lifetime=lifetime)
    rows: list[tuple[EpisodeResult, Prediction]] = []
    total, entry = schedule.num_episodes, entries(schedule)
    for index, block in enumerate(schedule.blocks):
        if enter := getattr(player, "enter", None):
            enter(jax.tree.map(lambda leaf, index=index: leaf[index], entry))
        for _ in range(block.count):
            rows.append(_play_episode(session.episode(len(rows)), player, block.learning))
            if progress:
                progress(len(rows), total)
    metadata = _metadata({"agent": player.name, "seed": seed})
    levels = session.tasks.novelty_levels
    return Records(schedule, _columns(rows), levels, lifetime, metadata)


def _play_episode(
    episode: Episode, player: Player, learning: bool
) -> tuple[EpisodeResult, Prediction]:
    """Play one episode; return its totals and the player's last novelty prediction."""
    fault = getattr(player, "fault", None)
    sound = fault is None or fault() == 0
    player.begin(episode)
    prediction = Prediction()
    while not episode.over:
        action, prediction = player.act(episode.observation)
        prediction = prediction.checked()
        episode.step(action)
    result = episode.result()
    player.end(result, learning)
    return result._replace(complete=result.complete and sound), prediction
