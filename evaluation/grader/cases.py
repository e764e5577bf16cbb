"""Test cases: episodes in an environment, with limits and an evaluator."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from evaluation import memory
from evaluation.clock import Clock, SystemClock
from evaluation.grader import environments
from evaluation.grader.agent import Agent, CreateAgent
from evaluation.grader.environments import SEED_ORDERS, Seeding, SeedOrder
from evaluation.grader.evaluators import Evaluator
from evaluation.grader.hosting import limited
from evaluation.grader.limits import Limits
from evaluation.grader.results import EvaluationResult


class TestCase(ABC):
    """A number of episodes with an evaluator. A subclass defines how they are played.

    Args:
      case_id: name or number of the case.
      time_limit: s for the whole case, from the agent's construction on; fractions count. 0 or
        None for no limit.
      n_runs: number of episodes.
      agent_init: arguments for the submission's `create_agent`; None for none.
      env: Gym-compatible environment.
      evaluator: measures the episodes. One that several cases share continues to count.
      memory_limit: bytes of address space that the agent's process may have; None for no limit.
      isolate: whether the agent has a process of its own, which can be ended at any time. A memory
        limit needs one.
      clock: measures time limits; None for the computer's clock.

    Raises:
      ValueError: a number out of bounds.
    """

    __test__ = False  # not a test of pytest's

    memory_limit: int | None = None
    isolate: bool = False

    def __init__(
        self,
        case_id: object,
        time_limit: float | None,
        n_runs: int,
        agent_init: Mapping[str, object] | None,
        env: Any,
        evaluator: Evaluator,
        *,
        memory_limit: int | None = None,
        isolate: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.case_id = case_id
        self.time_limit = time_limit
        self.n_runs = _count("n_runs", n_runs)
        self._agent_init = {} if agent_init is None else dict(agent_init)
        self.env = env
        self.evaluator = evaluator
        episode_bytes, remedy = (
            evaluator.held_per_episode,
            "lower n_runs, or make several cases of it",
        )
        memory.check_fits(self.n_runs, episode_bytes, "episodes of n_runs", remedy)
        self.memory_limit = memory_limit
        self.isolate = isolate
        self.clock = clock or SystemClock()
        self._limits()

    @property
    def agent_init(self) -> dict[str, object]:
        """Arguments for the submission's `create_agent`."""
        return self._agent_init

    @abstractmethod
    def run(self, agent: Agent) -> None:
        """Play `n_runs` episodes of `env`, and pass each step to `evaluator`.

        Args:
          agent: a fresh agent, or with limits its proxy.
        """

    def evaluate(self, create_agent: CreateAgent) -> EvaluationResult:
        """Play the case with a fresh agent.

        Args:
          create_agent: makes the agent.

        Returns:
          The evaluator's result. An exception of agent, environment or evaluator, `SystemExit`
          included, is in the result beside the episodes so far.
        """
        try:
            self.evaluator.error = None  # of an earlier run
            with limited(self._limits(), create_agent, self._agent_init) as agent:
                self.run(agent)
        except (Exception, SystemExit) as error:
            self.evaluator.terminate(error)
        try:
            return self.evaluator.get_result()
        except Exception as error:
            return EvaluationResult(None, self.evaluator.error or error)

    def _limits(self) -> Limits:
        return Limits(self.time_limit, self.memory_limit, self.isolate, self.clock)


def _count(name: str, value: object) -> int:
    """Return a whole number from 0, of Python's or NumPy's."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from 0")
    return int(value)


class ReinforcementLearningTestCase(TestCase):
    """Episodes of a Gym-compatible environment, of either generation, one after the other.

    In each, the environment is reset first, then the agent, then the evaluator. Then agent,
    environment and evaluator take steps in turns until the episode is over or `t_max` are taken.

    Args:
      t_max: most steps of an episode.
      seeds: one for each episode; empty or None to leave them unseeded.
      case_id: name or number of the case.
      time_limit: s for the whole case; 0 or None for no limit.
      n_runs: number of episodes.
      env: Gym-compatible environment.
      evaluator: measures the episodes.
      agent_init: arguments for the submission's `create_agent`; None for none.
      seed_order: "seed_first", or "legacy" to seed each episode after its reset, as the original
        does: every episode then starts from the seed of the one before, the first unseeded.
      memory_limit: bytes of address space that the agent's process may have; None for no limit.
      isolate: whether the agent has a process of its own.
      clock: measures time limits; None for the computer's clock.

    Raises:
      ValueError: a number out of bounds, or not as many seeds as runs.
    """

    def __init__(
        self,
        t_max: int,
        seeds: Sequence[int] | None,
        case_id: object,
        time_limit: float | None,
        n_runs: int,
        env: Any,
        evaluator: Evaluator,
        agent_init: Mapping[str, object] | None = None,
        *,
        seed_order: SeedOrder = "seed_first",
        memory_limit: int | None = None,
        isolate: bool = False,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            case_id,
            time_limit,
            n_runs,
            agent_init,
            env,
            evaluator,
            memory_limit=memory_limit,
            isolate=isolate,
            clock=clock,
        )
        self.t_max = _count("t_max", t_max)
        # Gymnasium refuses NumPy's numbers.
        self.seeds = [
            int(s) if isinstance(s, Integral) else s for s in (() if seeds is None else seeds)
        ]
        if self.seeds and len(self.seeds) != n_runs:
            raise ValueError(
                f"{len(self.seeds)} seeds were given for {n_runs} runs; give one for each, or none"
            )
        if seed_order not in SEED_ORDERS:
            allowed = " or ".join(map(repr, SEED_ORDERS))
            raise ValueError(f"seed_order is {seed_order!r}; it must be {allowed}")
        self.seed_order: SeedOrder = seed_order

    def run(self, agent: Agent) -> None:
        """Play all episodes."""
        starts = Seeding(self.env, self.seeds, self.seed_order)
        for episode in range(self.n_runs):
            state = starts.reset(episode)
            agent.reset()
            self.evaluator.reset()
            for t in range(self.t_max):
                action = agent.step(state)
                outcome = environments.step(self.env, action)
                self.evaluator.step(
                    {
                        "state": state,
                        "action": action,
                        "reward": outcome.reward,
                        "next_state": outcome.observation,
                        "done": outcome.done,
                        "info": outcome.info,
                        "episode_count": episode,
                        "t": t,
                    }
                )
                state = outcome.observation
                if outcome.done:
                    break
