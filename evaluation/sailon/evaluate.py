"""Full evaluation of a pure agent: cells of levels and difficulties, beside a baseline."""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import jaxsim
from evaluation import agents, scanner
from evaluation.arguments import command_line
from evaluation.checkpoints.configuration import configuration
from evaluation.checkpoints.keeper import Checkpoints, Pace, check_output
from evaluation.checkpoints.stopping import Stop
from evaluation.files import ResultFiles, results
from evaluation.json_types import JsonObject
from evaluation.sailon import plots
from evaluation.sailon.analysis import ExperimentAnalysis, analyse
from evaluation.sailon.batch import play_agents
from evaluation.sailon.experiment import Experiment, generate
from evaluation.sailon.results import Results
from evaluation.sailon.settings import ExperimentSettings, Split, Starts
from jaxsim.inputs import check_whole
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
class EvaluationPlan:
    """An evaluation to run.

    Attributes:
      agent: name of a pure agent; a detector may be joined to a controller, as in "pd+residual".
      out: directory for the results.
      baseline: name of the agent that performance is compared with.
      levels: of the novelty catalogue.
      difficulties: played with every level.
      novelty_list: a list of novelties in place of levels, see `ExperimentSettings`.
      samples: how many of them; None for all.
      split: "known" or "held out" for these alone.
      sensors: (path, value) pairs of how the sensors err in every episode, see
        `ExperimentSettings`.
      visibilities: 0 for agents that are not told of the novelty, 1 for those that are.
      hint_level: how much a hint tells where visibility is 1, -1 to 3.
      trials: of each cell.
      episodes: of each trial.
      button: episodes of a trial before the first novel one; None for 20, or half of a trial that
        is not longer. All later ones are novel.
      training: episodes before all trials.
      seed: root of all randomness.
      starts: "counter" or "wsu", see `ExperimentSettings`.
      overwrite: whether files in `out` may be replaced.
      resume: whether to continue from the newest checkpoint in `out`.
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
    sensors: tuple[tuple[str, float], ...] = ()
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
    options: scanner.MachineOptions = field(default_factory=scanner.MachineOptions)

    @property
    def command(self) -> str:
        """The command that repeats the evaluation; it has no path of the machine."""

        def joined(values: Iterable[object], usual: Iterable[object]) -> str | None:
            return None if values == usual else ",".join(map(str, values))

        options = (
            ("--agent", self.agent, None),
            ("--baseline", self.baseline, EvaluationPlan.baseline),
            ("--levels", joined(self.levels, EVALUATED), None),
            ("--difficulties", joined(self.difficulties, DIFFICULTIES), None),
            ("--novelties", self.novelty_list, None),
            ("--samples", self.samples, None),
            ("--split", self.split and self.split.replace(" ", "-"), None),
            *(("--set", f"{path}={value}", None) for path, value in self.sensors),
            ("--visibilities", joined(self.visibilities, EvaluationPlan.visibilities), None),
            ("--trials", self.trials, TRIALS),
            ("--episodes", self.episodes, EPISODES),
            ("--button", self.button, None),
            ("--training", self.training, 0),
            ("--hint-level", self.hint_level, EvaluationPlan.hint_level),
            ("--seed", self.seed, None),
            ("--starts", self.starts, EvaluationPlan.starts),
            ("--out", self.out.name, None),
        )
        return command_line(["sailon", "evaluate"], options)

    def settings(self) -> ExperimentSettings:
        """Settings of the experiment.

        Raises:
          ValueError: a level, difficulty or number that is not allowed.
        """
        check_whole("episodes", self.episodes, 1)
        button = min(BUTTON, self.episodes // 2) if self.button is None else self.button
        check_whole("button", button, 0, self.episodes)
        return ExperimentSettings(
            novelty=self.levels,
            difficulty=self.difficulties,
            novelty_list=self.novelty_list,
            samples=self.samples,
            split=self.split,
            sensors=self.sensors,
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
        """Names of the agents to play; the baseline is left out if it acts as the agent does."""
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
            agent = agents.get(name)
            if agents.file_of(name):
                agents.check_fit(agent, name, *jaxsim.make("CartPole3D"))
        self.pace.check()
        check_output(self.out, self.overwrite, self.resume, FILES)
        self.options.spread()
        return generate(settings, "evaluation")

    def keeper(
        self, experiment: Experiment, stop: Stop, say: Callable[[str], object]
    ) -> Checkpoints:
        """Return the checkpoints of the run.

        Args:
          experiment: from `checked()`.
          stop: whether the run was asked to end.
          say: called with lines for people.
        """
        names = self.playing()
        episodes = len(experiment.training) + sum(len(trial.seeds) for trial in experiment.trials)
        identity = configuration(
            {"experiment": experiment.digest()},
            agent=" and ".join(names),
            lifetimes=1 + len(experiment.trials),
            seed=self.seed,
            **agents.files_of(names),
        )
        return Checkpoints(
            self.out,
            [episodes] * len(names),
            identity,
            FILES,
            self.pace,
            resume=self.resume,
            stop=stop,
            say=say,
        )


@dataclass(frozen=True)
class EvaluationResults:
    """Results of an evaluation.

    Attributes:
      agent: results of the agent.
      baseline: results of the baseline in the same experiment.
      analysis: the metrics.
      seconds: wall-clock time of each agent, compiling included; after a resume, only since then.
      processor_seconds: CPU time of each agent in that time, all cores together.
    """

    agent: Results
    baseline: Results
    analysis: ExperimentAnalysis
    seconds: dict[str, float]
    processor_seconds: dict[str, float]

    @property
    def steps(self) -> int:
        """Environment steps that were played."""
        # A baseline that acts as the agent does is not played, and comes last.
        tables = (self.agent, self.baseline)[: len(self.seconds)]
        return sum(int(table.rows["length"].sum()) for table in tables)


def run(
    job: EvaluationPlan,
    experiment: Experiment,
    progress: scanner.Progress | None = None,
    stop: Stop | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> EvaluationResults:
    """Let agent and baseline play, and write experiment, results, metrics and report.

    Args:
      job: the evaluation to run.
      experiment: from `job.checked()`.
      progress: called as `progress(episodes done, episodes in all)`, both agents together.
      stop: whether the run was asked to end; read after each segment.
      say: called with lines for people, about checkpoints.

    Raises:
      Stopped: the run was asked to end, and is saved.
      CheckpointError: there is no checkpoint to resume from.
      OSError: a file could not be written.
    """
    keeper = job.keeper(experiment, stop or Stop(), say)
    with contextlib.closing(keeper):
        evaluation = play(job, experiment, progress, keeper)
        _write(job, experiment, evaluation)
        keeper.discard()
    return evaluation


def play(
    job: EvaluationPlan,
    experiment: Experiment,
    progress: scanner.Progress | None = None,
    keeper: scanner.Keeper | None = None,
) -> EvaluationResults:
    """Let agent and baseline play, and write nothing.

    Args:
      job: the evaluation to run.
      experiment: from `job.checked()`.
      progress: as for `run`.
      keeper: see `play_agents`.
    """
    names = job.playing()
    timing = _Timing(names)

    def report(done: int, total: int) -> None:
        timing.note(names[(done - 1) * len(names) // total])
        if progress:
            progress(done, total)

    players = [agents.get(name) for name in names]
    tables = play_agents(experiment, players, options=job.options, progress=report, keeper=keeper)
    by_name = dict(zip(names, tables, strict=True))
    agent = by_name[job.agent]
    baseline = by_name.get(job.baseline) or agent.silenced(job.baseline)
    analysis = analyse(agent, baseline, seed=job.seed)
    return EvaluationResults(agent, baseline, analysis, timing.seconds, timing.processor)


class _Timing:
    """Times of agents that play one after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self.seconds, self.processor = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        self._last = time.perf_counter(), time.process_time()

    def note(self, name: str) -> None:
        """Add the time since the last call to that of an agent."""
        now = time.perf_counter(), time.process_time()
        for sums, end, begin in zip((self.seconds, self.processor), now, self._last, strict=True):
            sums[name] = round(sums[name] + end - begin, 3)
        self._last = now


def _write(job: EvaluationPlan, experiment: Experiment, evaluation: EvaluationResults) -> None:
    """Write all files; they appear together."""
    timing: JsonObject = {
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
