"""Single-player learning track of the General Video Game AI competition, over CartPole levels.

| module | subject |
| --- | --- |
| `track` | levels and rules of a track |
| `rules` | limits and repetitions |
| `phases` | order of calls and levels |
| `trial` | one agent's way through a track |
| `harness` | tracks with an agent in this process |
| `batch` | many agents in parallel |
| `agent` | base class, timer and loading of agents |
| `player` | an agent with its limits |
| `observation` | observations as JSON text |
| `picture` | the room from above, as PNG |
| `protocol` | lines between server and client |
| `server` | server for clients in any language |
| `client` | client for an agent of this package |
| `results` | results of levels, as files |
| `commands` | `jaxsim gvgai` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.gvgai.agent import ElapsedTimer as ElapsedTimer
    from evaluation.gvgai.agent import TrackAgent as TrackAgent
    from evaluation.gvgai.batch import play_batch as play_batch
    from evaluation.gvgai.harness import run as run
    from evaluation.gvgai.observation import (
        SerializableStateObservation as SerializableStateObservation,
    )
    from evaluation.gvgai.results import LevelResult as LevelResult
    from evaluation.gvgai.rules import Rules as Rules
    from evaluation.gvgai.server import TrackServer as TrackServer
    from evaluation.gvgai.track import Track as Track
    from evaluation.gvgai.track import TrackLevel as TrackLevel
    from evaluation.gvgai.track import default_track as default_track
    from evaluation.gvgai.track import load as load
    from evaluation.gvgai.track import loads as loads

__getattr__, __dir__ = exports(__name__)
