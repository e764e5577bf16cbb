"""All episodes of a test case in parallel."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from evaluation.clock import Clock
from evaluation.grader.agent import Agent
from evaluation.grader.alarm import begin_anew
from evaluation.grader.cases import ReinforcementLearningTestCase
from evaluation.grader.environments import CUT
from evaluation.grader.evaluators import BatchEvaluator, Evaluator, FullState


class VectorTestCase(ReinforcementLearningTestCase):
    """The episodes of a `ReinforcementLearningTestCase`, played at once as lanes of a batch.

    The agent is reset once. It then gets the states of all lanes, (L, ...), and returns L actions.
    An agent that treats each lane as a single state, and remembers nothing between episodes, gets
    exactly the result of sequential episodes. The evaluator gets the episodes in order when all
    are over, and its time counts as well. After an error, or at the end of the time limit, each
    episode counts up to its last step.

    Args:
      t_max: most steps of an episode.
      seeds: one for each episode; empty or None to leave them unseeded.
      case_id: name or number of the case.
      time_limit: s for the whole case; 0 or None for no limit.
      n_runs: number of episodes, L.
      env: vector environment of Gymnasium with L lanes that resets a lane in the step after its
        end, as `gymnasium.make_vec("jaxsim/CartPole-v1", num_envs=L)` does.
      evaluator: measures the episodes.
      agent_init: arguments for the submission's `create_agent`; None for none.
      memory_limit: bytes of address space that the agent's process may have; None for no limit.
      isolate: whether the agent has a process of its own.
      clock: measures time limits; None for the computer's clock.

    Raises:
      ValueError: a number out of bounds, not as many seeds as runs, or an environment that does
        not fit.
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
        memory_limit: int | None = None,
        isolate: bool = False,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            t_max,
            seeds,
            case_id,
            time_limit,
            n_runs,
            env,
            evaluator,
            agent_init,
            memory_limit=memory_limit,
            isolate=isolate,
            clock=clock,
        )
        _check_lanes(env, n_runs)

    def run(self, agent: Agent) -> None:
        """Play all episodes."""
        states, _ = self.env.reset(seed=self.seeds or None)
        agent.reset()
        batch = _LaneSteps(self.n_runs, whole=not _knows_batches(self.evaluator))
        try:
            for _ in range(self.t_max):
                actions = np.asarray(agent.step(states))
                if actions.shape[:1] != (self.n_runs,):
                    raise ValueError(
                        f"the agent returned actions of shape {actions.shape} for {self.n_runs} "
                        "states; in a VectorTestCase it must return one action for each state"
                    )
                outcome = self.env.step(actions)
                batch.note(states, actions, outcome)
                states = outcome[0]
                if batch.over.all():
                    break
        finally:
            self._tell(batch)

    def _tell(self, batch: "_LaneSteps") -> None:
        """Pass all episodes to the evaluator, one after the other.

        The alarm begins anew, so that none of them is lost if the time limit is over.
        """
        begin_anew(self.time_limit)
        if _knows_batches(self.evaluator):
            self.evaluator.add_episodes(batch.table(), batch.lengths)
            return
        for lane in range(self.n_runs):
            self.evaluator.reset()
            for full_state in batch.full_states(lane):
                self.evaluator.step(full_state)


def _knows_batches(evaluator: Evaluator) -> TypeGuard[BatchEvaluator]:
    """Whether an evaluator's `add_episodes` does what its `reset` and `step` do.

    It does not if a subclass overrides one of these but inherits `add_episodes`.
    """
    classes = type(evaluator).__mro__

    def home(name: str) -> int:
        return next(place for place, kind in enumerate(classes) if name in vars(kind))

    if not isinstance(evaluator, BatchEvaluator):
        return False
    return home("add_episodes") <= min(home("reset"), home("step"))


def _check_lanes(env: Any, n_runs: int) -> None:
    lanes = getattr(env, "num_envs", None)
    if lanes != n_runs:
        raise ValueError(
            f"env has {lanes} lanes for {n_runs} runs; make it with "
            f"gymnasium.make_vec(..., num_envs={n_runs})"
            if lanes is not None
            else "env is not a vector environment; make one with "
            f"gymnasium.make_vec(..., num_envs={n_runs})"
        )
    mode = getattr(env, "metadata", {}).get("autoreset_mode")
    name = getattr(mode, "value", mode)
    if name != "NextStep":
        raise ValueError(
            f"env resets lanes in mode {name}; it must be NextStep, so that the last observation "
            "of an episode is seen"
        )


class _LaneSteps:
    """Steps of L lanes.

    Args:
      lanes: L.
      whole: whether states, actions and infos are kept as well.
    """

    def __init__(self, lanes: int, *, whole: bool) -> None:
        self.over = np.zeros(lanes, bool)
        self.lengths = np.zeros(lanes, np.int64)
        self._rewards: list[np.ndarray] = []
        self._steps: list[tuple[Any, ...]] = []
        self._whole = whole

    def note(self, states: Any, actions: np.ndarray, outcome: tuple[Any, ...]) -> None:
        """Add a step of every lane; lanes whose episode is over do not count."""
        _, rewards, terminated, truncated, _ = outcome
        self.lengths += ~self.over
        self.over |= np.asarray(terminated) | np.asarray(truncated)
        self._rewards.append(np.asarray(rewards, float))
        if self._whole:
            self._steps.append((states, actions, *outcome))

    def table(self) -> np.ndarray:
        """Rewards by step, (T, L)."""
        return np.array(self._rewards).reshape(-1, len(self.lengths))

    def full_states(self, lane: int) -> Iterator[FullState]:
        """Steps of one episode, with the keys of `FULL_STATE`."""
        for t in range(self.lengths[lane]):
            states, actions, next_states, rewards, terminated, truncated, infos = self._steps[t]
            info = _info_of(infos, lane)
            if truncated[lane]:
                info[CUT] = not terminated[lane]
            yield {
                "state": _lane_of(states, lane),
                "action": _lane_of(actions, lane),
                "reward": float(rewards[lane]),
                "next_state": _lane_of(next_states, lane),
                "done": bool(terminated[lane] or truncated[lane]),
                "info": info,
                "episode_count": lane,
                "t": t,
            }


def _lane_of(tree: Any, lane: int) -> Any:
    """One lane of an array, or of arrays in dictionaries and tuples."""
    if isinstance(tree, dict):
        return {name: _lane_of(each, lane) for name, each in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_lane_of(each, lane) for each in tree)
    value = tree[lane]
    return value.item() if isinstance(value, np.generic) else value


def _info_of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """One lane's part of Gymnasium's `infos`; the mask "_name" marks lanes that have "name"."""
    info = {}
    for name, values in infos.items():
        if name.startswith("_") and name[1:] in infos:
            continue
        mask = infos.get(f"_{name}")
        if mask is None or mask[lane]:
            info[name] = _lane_of(values, lane)
    return info
