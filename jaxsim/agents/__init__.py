"""Agents as pure functions: policies and novelty predictions."""

from jaxsim import parameters
from jaxsim.agents import reference
from jaxsim.agents.base import UNNAMED, Agent, Episodes, NoveltyPrediction, Told

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (reference.random, reference.nothing, reference.pd, reference.greedy)
}


def get(name: str) -> Agent:
    """Look up a built-in agent.

    Raises:
      ValueError: no agent has that name; the message lists those that exist.
    """
    if name not in AGENTS:
        raise ValueError(parameters.unknown("agent", name, AGENTS))
    return AGENTS[name]


__all__ = ["AGENTS", "UNNAMED", "Agent", "Episodes", "NoveltyPrediction", "Told", "get"]
