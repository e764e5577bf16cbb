"""The program that measures one episode at a time: what an agent in Python gets.

The workload "single" is Gymnasium's environment as `gymnasium.make` gives it, "session" the engine
for agents outside of JAX. Both play level 200 with the rule of `pd` in Python, and everything is
timed: starts of episodes, the rule, and the loop.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evaluation.bench.program import missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.bench.rule import pd
from evaluation.bench.settings import Settings
from evaluation.bench.workloads import SESSION, SINGLE

ENV = "CartPole3D-v0"
WARM = 20
"""Episodes before the first measurement: some have contacts, whose program is compiled then."""


@dataclass
class Singles:
    """Players of one episode; each returns the steps that it took."""

    settings: Settings
    players: dict[str, Callable[[], int]] = field(default_factory=dict)

    def prepare(self, workload: str) -> dict[str, Any]:
        """Compile the programs of a workload by playing some episodes."""
        makers = {SINGLE: gymnasium_player, SESSION: session_player}
        play = self.players[workload] = makers[workload](self.settings.seed)
        steps = sum(play() for _ in range(WARM))
        return {"mean_length": steps / WARM}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Play whole episodes for at least so many seconds."""
        return timed(self.players[workload], seconds)


def gymnasium_player(seed: int) -> Callable[[], int]:
    """Return what plays an episode of Gymnasium's environment."""
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
    """Return what plays an episode of the session."""
    from evaluation.schedule import Block, Schedule
    from evaluation.session import Session

    most = 2**20  # episodes; more than any measurement plays
    block = Block(0, 1, "test", "CartPole3D", (), most, False)
    session = Session(Schedule("bench", (block,)), seed=seed)
    numbers = iter(range(most))

    def play() -> int:
        episode = session.start(0, next(numbers))
        seen = episode.observation
        while not episode.over:
            seen = episode.step(pd(seen.pole_quaternion, seen.pole_velocity))
        return episode.length

    return play


def main() -> None:
    """Serve with the settings on the command line."""
    serve(Singles(Settings.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
