"""Trials of novelty behind the TCP protocol of the Science Birds competition."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sciencebirds.agent_client import AgentClient, Disconnected, Header
    from evaluation.sciencebirds.codes import State
    from evaluation.sciencebirds.demo_agent import DemoAgent, Learner
    from evaluation.sciencebirds.document import Evaluation, load, load_meta
    from evaluation.sciencebirds.game import CartPoleGame, Game
    from evaluation.sciencebirds.harness import Harness
    from evaluation.sciencebirds.levels import Level, schedule
    from evaluation.sciencebirds.server import Server, listen

_HOMES = {
    "AgentClient": "agent_client",
    "CartPoleGame": "game",
    "DemoAgent": "demo_agent",
    "Disconnected": "agent_client",
    "Evaluation": "document",
    "Game": "game",
    "Harness": "harness",
    "Header": "agent_client",
    "Learner": "demo_agent",
    "Level": "levels",
    "Server": "server",
    "State": "codes",
    "listen": "server",
    "load": "document",
    "load_meta": "document",
    "schedule": "levels",
}

__all__ = [
    "AgentClient",
    "CartPoleGame",
    "DemoAgent",
    "Disconnected",
    "Evaluation",
    "Game",
    "Harness",
    "Header",
    "Learner",
    "Level",
    "Server",
    "State",
    "listen",
    "load",
    "load_meta",
    "schedule",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
