"""Run agent files that were written for the WSU generator, unchanged.

Such a file imports `objects.TA2_logic` and ends by making an agent and calling its `run`. Here that
module is the one of `jaxsim shims`, which imports from `evaluation.sailon.ta2`.
"""

import os
import runpy
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from evaluation import errors, shims
from evaluation.sailon import interactive
from evaluation.sailon.experiment import Experiment
from evaluation.sailon.interactive import PlayOptions
from evaluation.sailon.results import Results
from evaluation.sailon.ta2 import TA2Logic, hosted


def run(
    path: Path, experiment: Experiment, options: PlayOptions, arguments: Sequence[str] = ()
) -> Results:
    """Run an agent file and let its agent play an experiment.

    Args:
      path: a Python file that makes a `TA2Logic` and calls `run`, or only defines one class.
      experiment: to play.
      options: clock, transcripts and limits; a folder of earlier transcripts is replaced.
      arguments: command line of the agent.

    Returns:
      The results.

    Raises:
      ValueError: no such file, or it fails before its agent plays.
      OSError: a transcript cannot be written.
    """
    if not path.is_file():
        raise ValueError(f"agent {path} is not a file; name a Python file")
    runs: list[Results] = []
    failures: list[Exception] = []

    def play(agent: object) -> None:
        if runs:
            raise ValueError("it has a second agent, which is not played")
        mine = _with_arguments(agent, options)
        if mine.transcripts is not None:
            shutil.rmtree(mine.transcripts, ignore_errors=True)
        try:
            runs.append(interactive.play(experiment, agent, mine, path.stem))
        except Exception as error:
            failures.append(error)
            raise

    with _stage(path, arguments), hosted(play):
        try:
            names = runpy.run_path(str(path), run_name="__main__")
            if not runs:
                _agent_class(names, path)().run()
        except (Exception, SystemExit) as error:
            if failures:
                raise failures[0] from None  # not the agent's, as that of a full disk
            reason = errors.one_line(error)
            if not runs:
                raise ValueError(f"agent {path} cannot be started: {reason}") from error
            if not isinstance(error, SystemExit) or error.code:
                _problems(runs[0]).append(f"{path}, after its agent has played: {reason}")
    return runs[0]


def _problems(results: Results) -> list[str]:
    """Errors of the agent outside of episodes, which are kept with the results."""
    problems: list[str] = results.metadata["problems"]
    return problems


def _with_arguments(agent: object, options: PlayOptions) -> PlayOptions:
    """The options, changed by the agent's command line."""
    arguments = getattr(agent, "arguments", None)
    if getattr(arguments, "no_testing", False):
        options = replace(options, testing=False)
    if getattr(arguments, "just_one_trial", False):
        options = replace(options, most_trials=1)
    return options


def _agent_class(names: dict[str, object], path: Path) -> type[TA2Logic]:
    """The agent's class in a file that only defines it."""
    classes = [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, TA2Logic) and value is not TA2Logic
    ]
    leaves = [c for c in classes if not any(c is not d and issubclass(d, c) for d in classes)]
    if len(leaves) != 1:
        raise ValueError(
            f"{path} starts no agent and defines {len(leaves)} classes derived from TA2Logic; call "
            f"run() of one, or name a pure agent by its variable, as {path}:agent"
        )
    return leaves[0]


@contextmanager
def _stage(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Modules, command line and search path as the file expects them; restored at the end."""
    before = _objects()
    argv, search, folder = sys.argv, list(sys.path), Path.cwd()
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    shims.put_on_path()
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
        os.chdir(folder)  # an agent may have changed it, and later paths are relative to it
        _objects()
        sys.modules |= before


def _objects() -> dict[str, ModuleType]:
    """Remove the modules `objects` from `sys.modules` and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "objects"]
    return {name: sys.modules.pop(name) for name in names}
