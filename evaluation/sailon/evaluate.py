"""Full evaluation of a pure agent: cells of levels and difficulties, beside a baseline."""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation import agents, scanner
from evaluation.arguments import command_line
from evaluation.checkpoints.configuration import configuration
from evaluation.checkpoints.keeper import Checkpoints, Pace, check_output
from evaluation.checkpoints.stopping import Stop
from evaluation.files import ResultFiles, results
from evaluation.sailon import plots
from evaluation.sailon.analysis import Analysis, analyse
from evaluation.sailon.batch import play_agents
from evaluation.sailon.experiment import Experiment, generate
from evaluation.sailon.results import Results
from evaluation.sailon.settings import Settings, Split, Starts
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, EVALUATED

EPISODES, BUTTON, TRIALS = 45, 20, 30
"""Episodes of a trial, those before the button, and trials of a cell."""
FILES = ResultFiles(
    "report.json",
    (
        *("experiment.json", "agent.parquet", "baseline.parquet", "metrics.csv", "trials.csv"),
        *(
            "report.html",
            *(f"{name}_{visibility}.png" for name in plots.FIGURES for visibility in (0, 1)),
        ),
    ),
)


@dataclass(frozen=True)
class Job:
    """What to evaluate and where results go.

    Attributes:
      agent: name of a pure agent; a detector may be joined to a controller, as in "pd+residual".
      out: directory for the results.
      baseline: name of the agent that performance is compared with.
      levels: of the novelty catalogue.
      difficulties: played with every level.
      novelty_list: a list of novelties in place of levels, see `Settings`.
      samples: how many of them; None for all.
      split: "known" or "held out" for these alone.
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
      resume: whether to go on from the newest checkpoint in `out`.
      pace: how often the run is saved.
      options: how the run is spread over the machine.
    """

    agent: str
    out: Path
    baseline: str = "pd"
    levels: tuple[int, ...] = EVALUATED
    difficulties: tuple[str, ...] = DIFFICULTIES
    novelty_list: str | None = None
    samples: int | None = None
    split: Split | None = None
    visibilities: tuple[int, ...] = (0, 1)
    hint_level: int = -1
    trials: int = TRIALS
    episodes: int = EPISODES
    button: int | None = None
    training: int = 0
    seed: int = 0
    starts: Starts = "counter"
    overwrite: bool = False
    resume: bool = False
    pace: Pace = field(default_factory=Pace)
    options: scanner.Options = field(default_factory=scanner.Options)

    @property
    def command(self) -> str:
        """The command that evaluates the same again; results name no place on the machine."""

        def listed(values: Iterable[object], usual: Iterable[object]) -> str | None:
            return None if values == usual else ",".join(map(str, values))

        options = (
            ("--agent", self.agent, None),
            ("--baseline", self.baseline, Job.baseline),
            ("--levels", listed(self.levels, EVALUATED), None),
            ("--difficulties", listed(self.difficulties, DIFFICULTIES), None),
            ("--novelties", self.novelty_list, None),
            ("--samples", self.samples, None),
            ("--split", self.split, None),
            ("--visibilities", listed(self.visibilities, Job.visibilities), None),
            ("--trials", self.trials, TRIALS),
            ("--episodes", self.episodes, EPISODES),
            ("--button", self.button, None),
            ("--training", self.training, 0),
            ("--hint-level", self.hint_level, Job.hint_level),
            ("--seed", self.seed, None),
            ("--starts", self.starts, Job.starts),
            ("--out", self.out.name, None),
        )
        return command_line(["sailon", "evaluate"], options)

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
            novelty_list=self.novelty_list,
            samples=self.samples,
            split=self.split,
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
        self.pace.check()
        check_output(self.out, self.overwrite, self.resume, FILES)
        self.options.spread()
        return generate(settings, "evaluation")

    def keeper(
        self, experiment: Experiment, stop: Stop, say: Callable[[str], object]
    ) -> Checkpoints:
        """Return what saves the run.

        Args:
          experiment: from `checked()`.
          stop: whether the run was asked to end.
          say: is given lines for people.
        """
        names = self.playing()
        episodes = len(experiment.training) + sum(len(trial.seeds) for trial in experiment.trials)
        matters = configuration(
            {"experiment": experiment.digest()},
            agent=" and ".join(names),
            lifetimes=1 + len(experiment.trials),
            seed=self.seed,
        )
        return Checkpoints(
            self.out,
            [episodes] * len(names),
            matters,
            FILES,
            self.pace,
            resume=self.resume,
            stop=stop,
            say=say,
        )


@dataclass(frozen=True)
class Evaluation:
    """What came of it.

    Attributes:
      agent: its results.
      baseline: results of the baseline in the same experiment.
      analysis: the metrics.
      seconds: time on the clock that each played, compiling included; of a run that was resumed,
        since then.
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


def run(
    job: Job,
    experiment: Experiment,
    progress: scanner.Progress | None = None,
    stop: Stop | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Evaluation:
    """Let agent and baseline play, and write experiment, results, metrics and report.

    Args:
      job: what to evaluate.
      experiment: from `job.checked()`.
      progress: called as `progress(episodes done, episodes in all)`, both agents together.
      stop: whether the run was asked to end, looked at after each segment.
      say: is given lines for people, about checkpoints.

    Raises:
      Stopped: the run was asked to end, and is saved.
      CheckpointError: there is no checkpoint that it could go on from.
      OSError: a file could not be written.
    """
    keeper = job.keeper(experiment, stop or Stop(), say)
    with contextlib.closing(keeper):
        evaluation = play(job, experiment, progress, keeper)
        _write(job, experiment, evaluation)
        keeper.discard()
    return evaluation


def play(
    job: Job,
    experiment: Experiment,
    progress: scanner.Progress | None = None,
    keeper: scanner.Keeper | None = None,
) -> Evaluation:
    """Let agent and baseline play, and write nothing.

    Args:
      job: what to evaluate.
      experiment: that its settings give.
      progress: as for `run`.
      keeper: see `play_agents`.
    """
    names = job.playing()
    timing = _Timing(names)

    def report(done: int, total: int) -> None:
        timing.note(names[(done - 1) * len(names) // total])
        if progress:
            progress(done, total)

    who = [agents.get(name) for name in names]
    tables = play_agents(experiment, who, options=job.options, progress=report, keeper=keeper)
    by_name = dict(zip(names, tables, strict=True))
    agent = by_name[job.agent]
    baseline = by_name.get(job.baseline) or agent.silenced(job.baseline)
    analysis = analyse(agent, baseline, seed=job.seed)
    return Evaluation(agent, baseline, analysis, timing.seconds, timing.processor)


class _Timing:
    """Time that agents take which play one after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self.seconds, self.processor = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        self._at = time.perf_counter(), time.process_time()

    def note(self, name: str) -> None:
        """Add the time since the last call to an agent's."""
        now = time.perf_counter(), time.process_time()
        for sums, end, begin in zip((self.seconds, self.processor), now, self._at, strict=True):
            sums[name] = round(sums[name] + end - begin, 3)
        self._at = now


def _write(job: Job, experiment: Experiment, evaluation: Evaluation) -> None:
    """Write all files, which appear together."""
    timing: dict[str, Any] = {
        "seconds": evaluation.seconds,
        "processor_seconds": evaluation.processor_seconds,
        "steps": evaluation.steps,
    }
    analysis = evaluation.analysis
    whole = replace(analysis, metadata={**analysis.metadata, "timing": timing})
    with results(job.out, FILES.marker) as folder:
        experiment.write(folder / "experiment.json")
        evaluation.agent.write(folder / "agent.parquet")
        evaluation.baseline.write(folder / "baseline.parquet")
        if plots.available():
            plots.write(whole.rows, folder)
        whole.write(folder, job.command)
