"""Actions in labels and feedback: those of a reference agent."""

from functools import lru_cache
from typing import Any, Final

import jax

from jaxsim import agents
from jaxsim.pytrees import Observation
from jaxsim.worlds.cartpole3d.types import ACTIONS

LEFT: Final = "left"
"""The label that the original always sends, right or wrong."""
REFERENCE: Final = "reference"
"""The agent `pd`."""


class EpisodeLabels:
    """Labels of the episodes of a trial, or of the training.

    Args:
      name: `LEFT`, `REFERENCE`, or the name of a pure agent.
      seed: of the agent's randomness.
      lifetime: number of the trial's lifetime, 0 for the training.
    """

    def __init__(self, name: str, seed: int, lifetime: int) -> None:
        self.fixed = name == LEFT
        if not self.fixed:
            self._agent = agents.get("pd" if name == REFERENCE else name)
            self._key = jax.random.fold_in(jax.random.key(seed), lifetime)
            self._memory = self._agent.init(self._key)

    def begin(self, episode: int) -> None:
        """Start an episode."""
        if not self.fixed:
            self._key = jax.random.fold_in(self._key, episode)
            self._memory = self._agent.begin(self._memory, self._key)

    def action(self, observation: Observation) -> str:
        """The action that is right for an observation.

        Call this at every tick that needs a label: an agent that plans ahead continues from its
        last plan.
        """
        if self.fixed:
            return LEFT
        self._key, key = jax.random.split(self._key)
        action, _, self._memory = _acting(self._agent)(self._memory, observation, key)
        return ACTIONS[int(action)]


@lru_cache(maxsize=8)
def _acting(agent: agents.Agent) -> Any:
    return jax.jit(agent.act)
