"""The interface of graded agents."""

from abc import ABC, abstractmethod
from typing import Any, Protocol


class Agent(ABC):
    """Base class of graded agents; any object with these two methods can be graded."""

    @abstractmethod
    def step(self, state: Any) -> Any:
        """Return the action for an observed state."""

    @abstractmethod
    def reset(self) -> None:
        """Forget the last episode; called once before each episode."""


class CreateAgent(Protocol):
    """Type of a submission: a function, or the agent's class."""

    def __call__(self, **agent_init: Any) -> Any:
        """Return a fresh agent; called once for every test case, with its `agent_init`."""
        ...


METHODS = ("step", "reset")


def checked_agent(agent: Any) -> Any:
    """Return an agent that a submission has made, if it can be graded.

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
