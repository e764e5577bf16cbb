"""One long run of a learning agent on one task, and its result files."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from evaluation import scanner
from evaluation.arguments import command_line
from evaluation.checkpoints.keeper import Checkpoints, Finished, TimeOver
from evaluation.checkpoints.loading import SavedAgent
from evaluation.checkpoints.playing import Playing
from evaluation.checkpoints.stopping import Stop
from evaluation.files import ResultFiles, results, write_json, write_whole
from evaluation.logs.export import NOTE, Logging, check_logged, remove_note
from evaluation.metrics.registry import MetricRow
from evaluation.metrics.statistics import INTERVALS
from evaluation.records import Records
from evaluation.report import html
from evaluation.report.custom_metrics import check_before_play, summarise_custom
from evaluation.report.novelty import summarise_novelty
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from evaluation.train.course import TrainingCourse
from evaluation.train.curve import MEASURE, LearningCurve, plot

DEFAULT_EPISODES = 2000
MOST_MINUTES = 365 * 24 * 60.0

Say = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class TrainingRun(Playing):
    """Settings of a training, beside those of `Playing`.

    Attributes:
      course: what is played.
      episodes: training episodes; None for `DEFAULT_EPISODES`, or for no limit if `minutes` is set.
      minutes: time of play, summed over resumed runs, after which the run ends with its next
        evaluation; None for no limit.
      rows: metrics of users that are also computed.
      logging: of lifetimes in the folder of lifelong-learning data; None for none.
    """

    course: TrainingCourse
    agent: str = "ppo"
    lifetimes: int = 64
    episodes: int | None = None
    minutes: float | None = None
    rows: tuple[MetricRow, ...] = ()
    logging: Logging | None = None
    files = ResultFiles(
        "curve.json",
        ("schedule.json", "records.parquet", "curve.csv", "curve.png", "report.html"),
        (NOTE,),
    )

    @property
    def most_episodes(self) -> int:
        """Training episodes, unless the time is over before."""
        if self.episodes is not None:
            return self.episodes
        if self.minutes is None:
            return max(1, DEFAULT_EPISODES // self.course.every) * self.course.every
        return self.course.most_episodes

    @property
    def command(self) -> str:
        """The command that repeats the training, without paths of this machine."""
        course = self.course
        words = ["train", course.task]
        for path, value in course.parameters:
            words += ["--set", f"{path}={value}"]
        options = (
            ("--agent", self.agent, None),
            ("--lifetimes", self.lifetimes, None),
            ("--seed", self.seed, None),
            ("--episodes", self.episodes, None),
            ("--minutes", self.minutes, None),
            ("--eval-every", course.every, TrainingCourse.every),
            ("--eval-episodes", course.evaluation, TrainingCourse.evaluation),
            ("--lifetime-idx", self.first_lifetime, 0),
            ("--width", self.width, course.full_speed_width),
            ("--out", self.out.name, None),
        )
        return command_line(words, options)

    @property
    def schedule(self) -> Schedule:
        """The whole schedule, unless the time is over before."""
        return self.course.schedule(self.most_episodes)

    def check(self) -> None:
        """Check everything that can be wrong before anything is traced or written.

        Raises:
          ValueError: says what to change.
        """
        if self.minutes is not None and not 0 < self.minutes <= MOST_MINUTES:
            raise ValueError(
                f"minutes is {self.minutes:g}; it must be above 0 and at most {MOST_MINUTES:g}"
            )
        self.course.check(self.most_episodes)
        player = self.check_playing(self.schedule)
        lifetimes = () if self.logging is None else self.logging.lifetimes
        check_logged(lifetimes, self.first_lifetime, self.lifetimes)
        if self.minutes is None:
            self.check_room(self.schedule.num_episodes, player)
        # Without a limit but time, there are far more episodes than will be played.
        if self.rows:
            schedule = self.course.schedule(min(self.most_episodes, DEFAULT_EPISODES))
            check_before_play(self.rows, schedule, Tasks.of(schedule).novelty_levels)

    def keeper(self, schedule: Schedule, player: SavedAgent, stop: Stop, say: Say) -> Checkpoints:
        """Return the checkpoints of the run, which one with more episodes can resume."""
        course = self.course
        content = {
            "task": course.task,
            "parameters": dict(course.parameters),
            "eval-every": course.every,
            "eval-episodes": course.evaluation,
        }
        return Checkpoints(
            self.out,
            schedule.block_counts().tolist(),
            self.configuration(content, player),
            self.files,
            self.pace,
            resume=self.resume,
            keep=True,
            ends=course.ends(self.most_episodes),
            seconds=None if self.minutes is None else 60 * self.minutes,
            stop=stop,
            say=say,
        )


def run(
    job: TrainingRun,
    progress: scanner.Progress | None = None,
    stop: Stop | None = None,
    say: Say = lambda line: None,
) -> tuple[Records, LearningCurve]:
    """Train, and write the results.

    Args:
      job: what to train, checked.
      progress: called as `progress(episodes done, episodes in all)`.
      stop: whether the run was asked to end, checked after each segment.
      say: called with lines for people.

    Returns:
      (records, curve). `out` then holds records.parquet, schedule.json, curve.csv, curve.png if
      matplotlib is installed, report.html, checkpoints/ with the agents' memories, and curve.json.

    Raises:
      Stopped: the run was asked to end, and is saved.
      CheckpointError: there is no checkpoint that it could resume.
      OSError: a file could not be written.
    """
    schedule = job.schedule
    player = job.player(schedule)
    keeper = job.keeper(schedule, player, stop or Stop(), say)
    with contextlib.closing(keeper):
        try:
            records = job.play(schedule, player, keeper, progress)
        except TimeOver as over:
            done = job.course.schedule(job.course.trained(over.episodes))
            records = job.play(done, player, Finished(over.snapshot), None)
        curve = LearningCurve.of(records, job.seed)
        if job.logging is not None and not keeper.was_over:
            job.logging.write(records, job.out)
        _write(job, records, curve, say)
        remove_note(job.out)
    return records, curve


def _write(job: TrainingRun, records: Records, curve: LearningCurve, say: Say) -> None:
    """Write all files, curve.json last: if it exists, all others are complete."""
    about = {**records.metadata, "task": job.course.task, "parameters": dict(job.course.parameters)}
    interval = f"{INTERVALS}; null for a single lifetime"
    with results(job.out, job.files.marker) as folder:
        write_whole(folder / "schedule.json", records.schedule.dumps())
        records.write(folder / "records.parquet")
        write_whole(folder / "curve.csv", curve.to_csv())
        try:
            plot(curve, f"{records.schedule.name}, {job.agent}", folder / "curve.png")
        except ValueError as error:
            say(f"no curve.png: {error}")
        values = {**about, "measure": MEASURE, "interval": interval, "curve": curve.rows()}
        novelty = summarise_novelty(records, job.seed)
        if novelty is not None:
            values["novelty"] = novelty.to_json()
        if job.rows:
            values["metrics"] = summarise_custom(job.rows, records, job.seed).to_json()
        title = f"{records.schedule.name}, learned by {job.agent}"
        ends = html.lifetimes(records, MEASURE, job.out.name)
        page = html.of_report(title, values, job.command, more=[ends])
        write_whole(folder / "report.html", page)
        write_json(folder / job.files.marker, values)
