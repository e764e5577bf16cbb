"""The program that measures one episode at a time, as for an agent in Python.

The workload "single" is Gymnasium's environment as `gymnasium.make` gives it, "session" the engine
for agents outside of JAX. Graders and agents of the WSU generator use these two: "grader" is a test
case without limits, "ta2" trials of a novelty experiment, with a message for every step. All
play level 200 with the rule of `pd` in Python, and everything is timed: starts of episodes, the
rule, and the loop.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.bench.program import missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.bench.rule import pd
from evaluation.bench.settings import ProgramSettings
from evaluation.bench.workloads import GRADER, SESSION, SINGLE, TA2
from evaluation.json_types import JsonMapping, JsonObject
from jaxsim.worlds.cartpole3d.types import ACTIONS

if TYPE_CHECKING:
    from evaluation.sailon.ta2 import Feedback, Verdict

ENV = "CartPole3D-v0"
WARM = 20
"""Warm-up calls: some have contacts, whose program is compiled then."""
MOST_STEPS = 200
"""Steps of an episode."""
TRIAL = 10
"""Episodes of a trial."""


@dataclass
class Singles:
    """Players of one episode; each returns the steps that it took."""

    settings: ProgramSettings
    players: dict[str, Callable[[], int]] = field(default_factory=dict)

    def prepare(self, workload: str) -> JsonObject:
        """Compile the programs of a workload by playing some episodes."""
        makers = {
            SINGLE: gymnasium_player,
            SESSION: session_player,
            GRADER: grader_player,
            TA2: ta2_player,
        }
        play = self.players[workload] = makers[workload](self.settings.seed)
        steps = sum(play() for _ in range(WARM))
        return {"mean_length": steps / WARM}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Play whole episodes for at least `seconds`."""
        return timed(self.players[workload], seconds)


def gymnasium_player(seed: int) -> Callable[[], int]:
    """Return a function that plays an episode of Gymnasium's environment."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise missing("gymnasium", "gymnasium") from error
    import jaxsim.adapters.gymnasium as adapter

    env = gymnasium.make(f"{adapter.NAMESPACE}/{ENV}")
    env.reset(seed=seed)

    def play() -> int:
        observation, _ = env.reset()
        steps, over = 0, False
        while not over:
            action = pd(observation[4:8].tolist(), observation[8:11].tolist())
            observation, _, terminated, truncated, _ = env.step(action)
            steps, over = steps + 1, terminated or truncated
        return steps

    return play


def session_player(seed: int) -> Callable[[], int]:
    """Return a function that plays an episode of the session."""
    from evaluation.schedule import Block, Schedule
    from evaluation.session import Session

    most = 2**20  # episodes; more than any measurement plays
    block = Block(0, 1, "test", "CartPole3D", (), most, False)
    session = Session(Schedule("bench", (block,)), seed=seed)
    numbers = iter(range(most))

    def play() -> int:
        episode = session.start(0, next(numbers))
        observation = episode.observation
        while not episode.over:
            observation = episode.step(pd(observation.pole_quaternion, observation.pole_velocity))
        return episode.length

    return play


def grader_player(seed: int) -> Callable[[], int]:
    """Return a function that plays an episode of a test case, with the agent in this process."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise missing("gymnasium", "gymnasium") from error
    import jaxsim.adapters.gymnasium as adapter
    from evaluation.grader import ReinforcementLearningTestCase, StepCountEvaluator

    env = gymnasium.make(f"{adapter.NAMESPACE}/{ENV}")
    env.reset(seed=seed)

    def play() -> int:
        evaluator = StepCountEvaluator()
        case: Any = ReinforcementLearningTestCase(MOST_STEPS, [], 0, None, 1, env, evaluator)
        return int(case.evaluate(_GradedAgent).results["total_steps"])

    return play


class _GradedAgent:
    """A submission to the grader."""

    def step(self, state: np.ndarray) -> int:
        return pd(state[4:8].tolist(), state[8:11].tolist())

    def reset(self) -> None:
        pass


def ta2_player(seed: int) -> Callable[[], int]:
    """Return a function that plays a trial of one level, episode by episode."""
    from evaluation import sailon

    settings = sailon.ExperimentSettings(
        novelty=(200,),
        difficulty=("easy",),
        novelty_visibility=(0,),
        trials=1,
        training_episodes=0,
        testing_episodes=TRIAL,
        seed=seed,
    )
    experiment = sailon.generate(settings)

    def play() -> int:
        return int(sailon.play(experiment, _TA2Agent()).rows["length"].sum())

    return play


class _TA2Agent:
    """An agent of the generator's interface."""

    def testing_instance(
        self, feature_vector: JsonMapping, novelty_indicator: bool | None = None
    ) -> JsonObject:
        pole = feature_vector["pole"]
        quaternion = [pole[f"{axis}_quaternion"] for axis in "xyzw"]
        action = pd(quaternion, [pole[f"{axis}_velocity"] for axis in "xyz"])
        return {"action": ACTIONS[action]}

    def testing_episode_end(self, performance: float, feedback: "Feedback" = None) -> "Verdict":
        return 0.0, 1.0, 0, {}


def main() -> None:
    """Serve with the settings on the command line."""
    serve(Singles(ProgramSettings.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
