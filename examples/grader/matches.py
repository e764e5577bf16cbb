"""Classes of one's own: a game that is no Gym environment, its evaluator and its test case.

Two players take one, two or three matches in turn; who takes the last one wins.

python examples/grader/matches.py
"""

import json
from typing import Any

from evaluation.grader import Agent, EvaluationResult, Evaluator, TestCase, TestSuite

MOST = 3


class Matches:
    """The game as Gymnasium would have it: `reset` and `step` for one of the players.

    The other player is part of the environment and takes one match.

    Args:
      matches: on the table at the start.
    """

    def __init__(self, matches: int) -> None:
        self.matches = self.left = matches

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        """Lay out the matches."""
        self.left = self.matches
        return self.left, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take some matches, then have the other player take one.

        Raises:
          ValueError: none, or too many.
        """
        if not 1 <= action <= min(MOST, self.left):
            raise ValueError(f"action is {action!r}; take from 1 to {min(MOST, self.left)} matches")
        self.left -= action
        if not self.left:
            return 0, 1.0, True, False, {}
        self.left -= 1
        return self.left, 0.0, not self.left, False, {}


class WinRate(Evaluator):
    """Measures the share of games that were won."""

    def __init__(self) -> None:
        super().__init__()
        self.won: list[bool] = []

    def reset(self) -> None:
        """Begin a game."""
        self.won.append(False)

    def step(self, full_state: Any) -> None:
        """Look whether the game is won."""
        self.won[-1] = self.won[-1] or full_state["reward"] > 0

    def get_result(self) -> EvaluationResult:
        """Return the share, with every game."""
        share = sum(self.won) / len(self.won) if self.won else None
        return EvaluationResult(share, self.error, "win rate", self.won)


class Tournament(TestCase):
    """Plays games with more and more matches."""

    def run(self, agent: Agent) -> None:
        """Play `n_runs` games."""
        for game in range(self.n_runs):
            self.env.matches = game + 1
            state, _ = self.env.reset()
            agent.reset()
            self.evaluator.reset()
            done = False
            while not done:
                state, reward, done, _, _ = self.env.step(agent.step(state))
                self.evaluator.step({"reward": reward})


class Modest(Agent):
    """Takes what leaves a multiple of four, or else one."""

    def step(self, state: int) -> int:
        """Return how many matches to take."""
        return state % (MOST + 1) or 1

    def reset(self) -> None:
        """Nothing is remembered."""


test_suite = TestSuite("matches", [Tournament("tournament", 10.0, 8, None, Matches(1), WinRate())])
create_agent = Modest

if __name__ == "__main__":
    print(json.dumps(test_suite.run(create_agent), indent=2))
