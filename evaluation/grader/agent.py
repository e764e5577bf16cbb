"""What is graded."""

from abc import ABC, abstractmethod
from typing import Any, Protocol


class Agent(ABC):
    """A gradable agent. Any object with these two methods is one, of this class or not."""

    @abstractmethod
    def step(self, state: Any) -> Any:
        """Return the action for an observed state."""

    @abstractmethod
    def reset(self) -> None:
        """Forget what belongs to an episode; called once before each of them."""


class CreateAgent(Protocol):
    """What a submission hands in: a function, or the agent's class."""

    def __call__(self, **agent_init: Any) -> Any:
        """Return a fresh agent; called once for every test case, with its `agent_init`."""
        ...


METHODS = ("step", "reset")


def checked_agent(agent: Any) -> Any:
    """Return what a submission's function has made, if it can be graded.

    Raises:
      TypeError: it lacks a method.
    """
    missing = [name for name in METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise TypeError(
            f"create_agent returned {type(agent).__name__}, which has no method "
            f"{' and no method '.join(missing)}; return an object with step(state) and reset()"
        )
    return agent
