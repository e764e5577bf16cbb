"""Run of a syllabus of classification over many lifetimes, with records, report and logs."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import jax
import numpy as np

from evaluation import __version__
from evaluation.files import check_output_directory, write_json, write_whole
from evaluation.json_types import JsonObject
from evaluation.l2m.classification import learners
from evaluation.l2m.classification.course import BatchScore, Course, read_examples
from evaluation.l2m.classification.data import ImageData
from evaluation.l2m.classification.log import write_log
from evaluation.l2m.classification.syllabus import DatasetSyllabus, load
from evaluation.logs.export import check_logged
from evaluation.metrics import DEFAULT_WINDOW
from evaluation.records import COLUMNS, Records
from evaluation.report import Report, summarise_records
from jaxsim.inputs import check_whole


@dataclass(frozen=True)
class ClassificationRun:
    """Settings of a run and of its files.

    Attributes:
      syllabus: path of the syllabus.
      out: directory for the results.
      learner: name of a built-in learner.
      lifetimes: number of lifetimes.
      seed: root of all randomness.
      window: odd smoothing window, batches.
      overwrite: whether files in ``out`` may be replaced.
      log_lifetimes: lifetimes that are also written as logs of the 2019 layout.
    """

    syllabus: Path
    out: Path
    learner: str = "mlp"
    lifetimes: int = 8
    seed: int = 0
    window: int = DEFAULT_WINDOW
    overwrite: bool = False
    log_lifetimes: tuple[int, ...] = (0,)

    def checked_syllabus(self) -> DatasetSyllabus:
        """Check all settings before anything is computed or written.

        Raises:
          ValueError: says what to change; a `SyllabusError` for the syllabus itself.
        """
        learners.get(self.learner)
        check_whole("lifetimes", self.lifetimes, 1)
        check_whole("seed", self.seed, 0, 2**32 - 1)
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(f"window is {self.window}; it must be an odd number from 1")
        check_logged(self.log_lifetimes, 0, self.lifetimes)
        check_output_directory(self.out, self.overwrite)
        return load(self.syllabus)


def run(job: ClassificationRun, syllabus: DatasetSyllabus) -> Report:
    """Play a syllabus, compute its metrics and write the results.

    Args:
      job: settings of the run.
      syllabus: from `ClassificationRun.checked_syllabus`.

    Returns:
      The report. ``out`` then has records.parquet, report.json, schedule.json and the logs.
    """
    examples = read_examples(syllabus)
    scores = play(syllabus, learners.get(job.learner), job.lifetimes, job.seed, examples)
    metadata = {"agent": job.learner, "seed": job.seed, "version": __version__}
    records = as_records(syllabus, scores, metadata)
    report = summarise_records(records, "performance", job.window, job.seed)
    (job.out / "report.json").unlink(missing_ok=True)
    write_whole(job.out / "schedule.json", syllabus.schedule.dumps())
    records.write(job.out / "records.parquet")
    start = datetime.now()
    for lifetime in job.log_lifetimes:
        write_log(syllabus, scores[lifetime], job.out / "logs", job.seed, lifetime, start)
    write_json(job.out / "report.json", report.to_json())
    return report


def play(
    syllabus: DatasetSyllabus,
    learner: learners.PureLearner,
    lifetimes: int,
    seed: int = 0,
    examples: dict[str, ImageData] | None = None,
) -> list[list[BatchScore]]:
    """Play several lifetimes, each with different batches and randomness.

    Args:
      syllabus: of the lifetimes.
      learner: the performer.
      lifetimes: number of lifetimes.
      seed: root of all randomness.
      examples: data sets by name; read if None.

    Returns:
      The scores of each lifetime. Lifetime k does not depend on their number.
    """
    examples = read_examples(syllabus) if examples is None else examples
    scores = []
    for lifetime in range(lifetimes):
        course = Course(syllabus, seed, lifetime, examples)
        learners.play(course, learner, jax.random.fold_in(jax.random.key(seed), lifetime))
        scores.append(course.scores)
    return scores


def as_records(
    syllabus: DatasetSyllabus, scores: list[list[BatchScore]], metadata: JsonObject
) -> Records:
    """Convert scores to records, the input of metrics and reports; an episode is a batch.

    Args:
      syllabus: of the lifetimes.
      scores: of each lifetime.
      metadata: agent, seed, versions; plain JSON values.
    """
    shape = len(scores), syllabus.schedule.num_episodes
    columns: dict[str, np.ndarray] = {
        name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()
    }
    columns["performance"][:] = [[score.accuracy for score in life] for life in scores]
    columns["reward"][:] = [[score.correct for score in life] for life in scores]
    columns["length"][:] = [[score.examples for score in life] for life in scores]
    columns["complete"][:] = True
    levels = np.zeros(len(syllabus.schedule.variants), np.int32)
    return Records(syllabus.schedule, columns, levels, 0, metadata)
