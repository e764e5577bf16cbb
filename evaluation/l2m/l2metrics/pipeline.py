"""Metrics of log directories, with an error per run that fails."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.l2m import ste_store
from evaluation.l2m.l2metrics.analysis import Analysis, Library, analyse
from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.experts import make_ste_run
from evaluation.l2m.l2metrics.reading import (
    LOGGER_INFO,
    SCENARIO_INFO,
    find_log,
    is_log,
    read_log_columns,
)
from evaluation.l2m.l2metrics.runs import LoggedRun, make_run
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.metrics.registry import MetricRow


@dataclass(frozen=True)
class Outcome:
    """Results of log directories.

    Attributes:
      analyses: of the runs without an error, in the given order.
      errors: directory -> its error.
    """

    analyses: list[Analysis]
    errors: dict[Path, L2MetricsError] = field(default_factory=dict)


def run(
    log_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    settings: LogSettings | None = None,
    store: Path | None = None,
    extra_metrics: Sequence[MetricRow] = (),
) -> Outcome:
    """Compute the metrics of l2metrics 3.1 for any number of logs.

    Args:
      log_dirs: one log directory or many; a bare name is looked up below ``$L2DATA/logs``.
      settings: of the metrics; if None, the defaults of l2metrics 3.1 without its defects.
      store: directory of single-task experts; `ste_store.default_directory` if None.
      extra_metrics: custom metrics; they are in every result file.

    Returns:
      `Outcome`; the error of a run does not affect other runs.

    Example:
      >>> outcome = run("logs/my-run", LogSettings(perf_measure="performance"))
      >>> outcome.analyses[0].results.lifetime["perf_recovery"].values
    """
    settings = settings or LogSettings()
    names = [log_dirs] if isinstance(log_dirs, str | os.PathLike) else list(log_dirs)
    runs: list[LoggedRun] = []
    errors: dict[Path, L2MetricsError] = {}
    for name in names:
        try:
            runs.append(make_run(read_log_columns(find_log(name)), settings))
        except L2MetricsError as error:
            errors[Path(name)] = error
    library = Library(store or ste_store.default_directory(), settings)
    analyses, failed = analyse(runs, settings, library, extra_metrics)
    errors |= {runs[position].path: error for position, error in failed.items()}
    return Outcome(analyses, errors)


def find_logs(root: Path) -> list[Path]:
    """Every directory below `root` that has an info file of a log, sorted; not `root` itself.

    Raises:
      L2MetricsError: there is no log.
    """
    paths = []
    for folder, subfolders, names in os.walk(root):
        if {LOGGER_INFO, SCENARIO_INFO} & set(names) and Path(folder) != root:
            paths.append(Path(folder))
            subfolders.clear()  # they belong to this log
    if not paths:
        hint = "; it is a log itself: leave out -R" if is_log(root) else ""
        raise L2MetricsError(ErrorKind.NO_RUNS, f"there is no log below {root}{hint}")
    return sorted(paths)


def store_experts(
    log_dirs: Iterable[str | os.PathLike[str]], append: bool, store: Path | None = None
) -> tuple[dict[Path, str], dict[Path, L2MetricsError]]:
    """Add logs of single-task experts to the store.

    Args:
      log_dirs: one log per expert run.
      append: whether to keep existing runs; otherwise the first run of a task replaces them.
      store: directory; `ste_store.default_directory` if None.

    Returns:
      Directory -> task for each stored run, and directory -> error for each of the others.
    """
    directory = store or ste_store.default_directory()
    stored: dict[Path, str] = {}
    errors: dict[Path, L2MetricsError] = {}
    for name in log_dirs:
        try:
            task, expert = make_ste_run(read_log_columns(find_log(name)))
            add = append or task in stored.values()
            (ste_store.append if add else ste_store.write)(directory, task, [expert])
            stored[Path(name)] = task
        except L2MetricsError as error:
            errors[Path(name)] = error
        except ValueError as error:
            errors[Path(name)] = L2MetricsError(ErrorKind.STE_FILE, str(error))
    return stored, errors
