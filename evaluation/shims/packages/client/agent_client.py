"""`client.agent_client`: the client of the Science Birds agents."""

from evaluation.sciencebirds.agent_client import AgentClient
from evaluation.sciencebirds.codes import GameState

__all__ = ["AgentClient", "GameState"]
