"""Agents as pure functions: policies and novelty predictions."""

from functools import cache

from jaxsim import parameters
from jaxsim.agents import mpc, reference, residual, wow
from jaxsim.agents.base import UNNAMED, Agent, Episodes, NoveltyPrediction, Told
from jaxsim.agents.detection import Detector, joined

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        reference.random,
        reference.nothing,
        reference.pd,
        reference.greedy,
        mpc.mpc,
        wow.agent(),
        wow.agent(published=True),
    )
}
"""Agents that act; all but `wow` say nothing of novelty by themselves."""

DETECTORS: dict[str, Detector] = {
    detector.name: detector
    for detector in (residual.residual, wow.detector(), wow.detector(published=True))
}
"""Novelty detectors, which join any of them."""


@cache
def get(name: str) -> Agent:
    """Look up a built-in agent.

    Args:
      name: of an agent, as "pd", or of an agent that a detector joins, as "pd+residual".

    Raises:
      ValueError: no agent or detector has that name; the message lists those that exist.
    """
    controller, *detectors = name.split("+", 1)
    if controller not in AGENTS:
        raise ValueError(parameters.unknown("agent", controller, AGENTS))
    if not detectors:
        return AGENTS[controller]
    if detectors[0] not in DETECTORS:
        raise ValueError(parameters.unknown("detector", detectors[0], DETECTORS))
    return joined(AGENTS[controller], DETECTORS[detectors[0]])


__all__ = [
    "AGENTS",
    "DETECTORS",
    "UNNAMED",
    "Agent",
    "Detector",
    "Episodes",
    "NoveltyPrediction",
    "Told",
    "get",
    "joined",
]
