"""A submission: what a student hands in.

jaxsim grade examples/grader/balance.py examples/grader/my_agent.py
"""

from typing import Any

import numpy as np

from evaluation.grader import Agent


class Balancer(Agent):
    """Pushes the cart under the pole, in one state or in every one of a batch.

    Args:
      rate_gain: s, weight of the pole's angular velocity against its angle.
    """

    def __init__(self, rate_gain: float = 0.5) -> None:
        self.rate_gain = rate_gain

    def step(self, state: Any) -> Any:
        """Choose a push: 0 to the left, 1 to the right."""
        angle, rate = state[..., 2], state[..., 3]
        return np.where(angle + self.rate_gain * rate > 0, 1, 0)

    def reset(self) -> None:
        """Nothing is remembered."""


def create_agent(**agent_init: Any) -> Balancer:
    """Make an agent with the arguments of a test case."""
    return Balancer(**agent_init)
