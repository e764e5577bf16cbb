"""SAIL-ON: novelty experiments, the agent interface of the WSU generator, and their metrics.

    from evaluation import sailon
    from jaxsim import agents

    experiment = sailon.generate(sailon.ExperimentSettings(novelty=(203,), trials=30))
    sailon.play_batch(experiment, agents.get("pd")).write(Path("pd.parquet"))
    sailon.play(experiment, MyAgent()).write(Path("mine.parquet"))

`play_batch` plays pure agents, all trials at once; `play` any object with the methods of
`TA2Logic`.

| module | subject |
| --- | --- |
| `settings` | settings of experiments |
| `experiment` | training and trials, with a change at a button |
| `novelties` | lists of novelties |
| `worlds` | environments and starts of the trials |
| `batch` | experiments with a pure agent |
| `interactive` | experiments with an ordinary Python agent |
| `ta2` | base class of agents for the WSU generator |
| `host` | agent files for the WSU generator, unchanged |
| `options` | the command line of such files |
| `answers` | checks of what agents return |
| `labels` | actions in labels and feedback |
| `pictures` | pictures of the room in feature vectors |
| `transcript` | episodes as messages, and their replay |
| `identify` | what changed in the world of transcripts |
| `serve` | experiments over RabbitMQ, for agents in containers |
| `results` | one row an episode, as Parquet or CSV |
| `reading` | results from such files |
| `trial_data` | results arranged by trials, for the metrics |
| `analysis` | metrics of an experiment |
| `evaluate` | full evaluation of a pure agent |
| `plots` | plots of an evaluation |
| `text` | strict decoding of experiment files |
| `commands` | `jaxsim sailon` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sailon.batch import play_batch as play_batch
    from evaluation.sailon.experiment import Experiment as Experiment
    from evaluation.sailon.experiment import Trial as Trial
    from evaluation.sailon.experiment import generate as generate
    from evaluation.sailon.experiment import load as load
    from evaluation.sailon.experiment import loads as loads
    from evaluation.sailon.interactive import PlayOptions as PlayOptions
    from evaluation.sailon.interactive import play as play
    from evaluation.sailon.reading import load_results as load_results
    from evaluation.sailon.results import Results as Results
    from evaluation.sailon.settings import ExperimentSettings as ExperimentSettings
    from evaluation.sailon.ta2 import TA2Logic as TA2Logic
    from evaluation.sailon.text import ExperimentError as ExperimentError
    from evaluation.sailon.transcript import replay as replay

__getattr__, __dir__ = exports(__name__)
