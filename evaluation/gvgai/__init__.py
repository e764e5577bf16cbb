"""Single-player learning track of the General Video Game AI competition, over CartPole levels."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.gvgai.agent import Agent, ElapsedTimer
    from evaluation.gvgai.batch import play_batch
    from evaluation.gvgai.harness import run
    from evaluation.gvgai.observation import SerializableStateObservation
    from evaluation.gvgai.results import LevelResult
    from evaluation.gvgai.rules import Rules
    from evaluation.gvgai.server import Server
    from evaluation.gvgai.track import Level, Track, default_track, load, loads

_HOMES = {
    "Agent": "agent",
    "ElapsedTimer": "agent",
    "Level": "track",
    "LevelResult": "results",
    "Rules": "rules",
    "SerializableStateObservation": "observation",
    "Server": "server",
    "Track": "track",
    "default_track": "track",
    "load": "track",
    "loads": "track",
    "play_batch": "batch",
    "run": "harness",
}

__all__ = [
    "Agent",
    "ElapsedTimer",
    "Level",
    "LevelResult",
    "Rules",
    "SerializableStateObservation",
    "Server",
    "Track",
    "default_track",
    "load",
    "loads",
    "play_batch",
    "run",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
