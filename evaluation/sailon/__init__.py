"""SAIL-ON: novelty experiments, the agent interface of the WSU generator, and their metrics.

    from evaluation import sailon
    from jaxsim import agents

    experiment = sailon.generate(sailon.Settings(novelty=(203,), trials=30))
    sailon.play_batch(experiment, agents.get("pd")).write(Path("pd.parquet"))
    sailon.play(experiment, MyAgent()).write(Path("mine.parquet"))

`play_batch` plays pure agents, all trials at once; `play` any object with the methods of
`TA2Logic`.
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sailon.batch import play_batch
    from evaluation.sailon.experiment import Experiment, Trial, generate, load, loads
    from evaluation.sailon.interactive import Options, play
    from evaluation.sailon.results import Results, load_results
    from evaluation.sailon.settings import Settings
    from evaluation.sailon.ta2 import TA2Logic
    from evaluation.sailon.text import ExperimentError
    from evaluation.sailon.transcript import replay

_HOMES = {
    "Experiment": "experiment",
    "ExperimentError": "text",
    "Options": "interactive",
    "Results": "results",
    "Settings": "settings",
    "TA2Logic": "ta2",
    "Trial": "experiment",
    "generate": "experiment",
    "load": "experiment",
    "load_results": "results",
    "loads": "experiment",
    "play": "interactive",
    "play_batch": "batch",
    "replay": "transcript",
}

__all__ = [
    "Experiment",
    "ExperimentError",
    "Options",
    "Results",
    "Settings",
    "TA2Logic",
    "Trial",
    "generate",
    "load",
    "load_results",
    "loads",
    "play",
    "play_batch",
    "replay",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
