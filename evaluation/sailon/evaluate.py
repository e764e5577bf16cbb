"""Full evaluation of a pure agent: cells of levels and difficulties, beside a baseline."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from evaluation import agents, scanner
from evaluation.files import check_output_directory
from evaluation.sailon import plots
from evaluation.sailon.analysis import Analysis, analyse
from evaluation.sailon.batch import play_batch
from evaluation.sailon.experiment import Experiment, generate
from evaluation.sailon.results import Results
from evaluation.sailon.settings import Settings, Starts
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

LEVELS: Final = (*range(200, 209), *range(101, 109))
EPISODES, BUTTON, TRIALS = 45, 20, 30
"""Episodes of a trial, those before the button, and trials of a cell."""


@dataclass(frozen=True)
class Job:
    """What to evaluate and where results go.

    Attributes:
      agent: name of a pure agent; a detector may be joined to a controller, as in "pd+residual".
      out: directory for the results.
      baseline: name of the agent that performance is compared with.
      levels: of the novelty catalogue.
      difficulties: played with every level.
      visibilities: 0 for agents that are not told of the novelty, 1 for those that are.
      hint_level: what those are told beside, -1 to 3.
      trials: of each cell.
      episodes: of each trial.
      button: episodes of a trial before the first novel one; None for 20, or half of a trial that
        is not longer. All later ones are novel.
      training: episodes before all trials.
      seed: root of all randomness.
      starts: "counter" or "wsu", see `Settings`.
      overwrite: whether files in `out` may be replaced.
      options: how the run is spread over the machine.
    """

    agent: str
    out: Path
    baseline: str = "pd"
    levels: tuple[int, ...] = LEVELS
    difficulties: tuple[str, ...] = DIFFICULTIES
    visibilities: tuple[int, ...] = (0, 1)
    hint_level: int = -1
    trials: int = TRIALS
    episodes: int = EPISODES
    button: int | None = None
    training: int = 0
    seed: int = 0
    starts: Starts = "counter"
    overwrite: bool = False
    options: scanner.Options = field(default_factory=scanner.Options)

    def settings(self) -> Settings:
        """What the experiment is generated from.

        Raises:
          ValueError: a level, difficulty or number that is not allowed.
        """
        button = min(BUTTON, self.episodes // 2) if self.button is None else self.button
        if not 0 <= button <= self.episodes:
            raise ValueError(f"button is {button}; it must be from 0 to {self.episodes} episodes")
        return Settings(
            novelty=self.levels,
            difficulty=self.difficulties,
            novelty_visibility=self.visibilities,
            hint_level=(self.hint_level,),
            trials=self.trials,
            training_episodes=self.training,
            testing_episodes=self.episodes,
            pre_novel_episodes=button,
            testing_novelty_p2=1.0,
            seed=self.seed,
            starts=self.starts,
        )

    def playing(self) -> tuple[str, ...]:
        """Who plays: not the baseline if it is the agent, or acts as the agent does anyway."""
        agent, baseline = agents.get(self.agent), agents.get(self.baseline)
        if baseline in (agent, agent.acting):
            return (self.agent,)
        return self.agent, self.baseline

    def checked(self) -> Experiment:
        """Check everything before anything is traced or written; return the experiment.

        Raises:
          ValueError: says what to change.
        """
        settings = self.settings()
        for name in (self.agent, self.baseline):
            agents.get(name)
        check_output_directory(self.out, self.overwrite)
        self.options.spread()
        return generate(settings, "evaluation")


@dataclass(frozen=True)
class Evaluation:
    """What came of it.

    Attributes:
      agent: its results.
      baseline: results of the baseline in the same experiment.
      analysis: the metrics.
      seconds: time on the clock that each played, compiling included.
      processor_seconds: the same of the processor, all cores together.
    """

    agent: Results
    baseline: Results
    analysis: Analysis
    seconds: dict[str, float]
    processor_seconds: dict[str, float]

    @property
    def steps(self) -> int:
        """Environment steps that were played."""
        played = {own.metadata["agent"]: own for own in (self.agent, self.baseline)}
        return sum(int(played[name].rows["length"].sum()) for name in self.seconds)


def run(job: Job, experiment: Experiment, progress: scanner.Progress | None = None) -> Evaluation:
    """Let agent and baseline play, and write experiment, results, metrics and report.

    Args:
      job: what to evaluate.
      experiment: from `job.checked()`.
      progress: called as `progress(episodes done, episodes in all)`, both agents together.
    """
    evaluation = play(job, experiment, progress)
    _write(job, experiment, evaluation)
    return evaluation


def play(job: Job, experiment: Experiment, progress: scanner.Progress | None = None) -> Evaluation:
    """Let agent and baseline play, and write nothing.

    Args:
      job: what to evaluate.
      experiment: that its settings give.
      progress: as for `run`.
    """
    seconds: dict[str, float] = {}
    processor: dict[str, float] = {}
    played: dict[str, Results] = {}
    names = job.playing()
    for turn, name in enumerate(names):

        def report(done: int, total: int, turn: int = turn) -> None:
            if progress:
                progress(turn * total + done, len(names) * total)

        began, used = time.perf_counter(), time.process_time()
        played[name] = play_batch(
            experiment, agents.get(name), options=job.options, progress=report
        )
        seconds[name] = round(time.perf_counter() - began, 3)
        processor[name] = round(time.process_time() - used, 3)
    agent = played[job.agent]
    baseline = played.get(job.baseline) or agent.silenced(job.baseline)
    analysis = analyse(agent, baseline, seed=job.seed)
    return Evaluation(agent, baseline, analysis, seconds, processor)


def _write(job: Job, experiment: Experiment, found: Evaluation) -> None:
    """Write all files; the report comes last, so that its presence means the rest is there."""
    (job.out / "report.json").unlink(missing_ok=True)
    experiment.write(job.out / "experiment.json")
    found.agent.write(job.out / "agent.parquet")
    found.baseline.write(job.out / "baseline.parquet")
    timing: dict[str, Any] = {
        "seconds": found.seconds,
        "processor_seconds": found.processor_seconds,
        "steps": found.steps,
    }
    metadata = {**found.analysis.metadata, "timing": timing}
    whole = Analysis(found.analysis.rows, found.analysis.data, found.analysis.window, metadata)
    if plots.available():
        plots.write(whole.rows, job.out)
    whole.write(job.out)
