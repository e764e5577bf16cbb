"""The runs that are attacked, and the files that they leave."""

import contextlib
import io
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple, NoReturn

from evaluation.cache import folder as cache
from evaluation.cli import main

ROOT = Path(__file__).parents[2]
LONGEST = 600.0  # s, of one process
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
SYLLABUS = """{"instructions": [
  {"$phase": "1.train"}, {"$repeat": {"$episode": "CartPole"}, "count": 120},
  {"$phase": "1.test"}, {"$repeat": {"$episode": "CartPole", "pole/length": 0.7}, "count": 40}
]}"""
EXPERIMENT = """{"novelty": [200, 203], "difficulty": ["hard"], "novelty_visibility": [0],
  "trials": 2, "training_episodes": 1, "testing_episodes": 3}"""
SETTINGS = """{"novelty": [203], "difficulty": ["hard"], "trials": 200, "testing_episodes": 20}"""
SWEEP = """base = "evaluate"
name = "siege"
[fixed]
episodes = 64
task = "CartPole"
agent = "random"
[axes]
"pole/length" = {linear = [0.4, 0.8], count = 5}
seed = {integers = [0, 7]}
"""
OFTEN = ("--checkpoint-every", "0s", "--quiet")

NOTES = ("checkpoints", "running")
"""Folders from which a run is resumed; a run that was killed may leave them."""
PRELOADED = (
    *("evaluation.cli", "evaluation.l2m.run", "evaluation.train.run"),
    *("evaluation.train.commands", "evaluation.checkpoints.playing", "evaluation.sweep.playing"),
    *(
        "optax",
        "orbax.checkpoint",
        "pandas",
        "pyarrow.parquet",
        "scipy.special",
        "matplotlib.pyplot",
    ),
)
"""Modules that are imported by the process from which others are forked."""


class SiegeCommand(NamedTuple):
    """A command and what it writes.

    Attributes:
      words: arguments of the command, without `--out`.
      again: further arguments when an interrupted command is started again.
      file: the result file in the folder of results; "" if the folder itself is the result.
      option: the option whose value is the result; empty if it is a positional argument.
      inputs: a folder whose files are copied to the folder of results first; None for none.
      timed: names of result files that contain durations.
    """

    words: tuple[str, ...]
    again: tuple[str, ...] = ()
    file: str = ""
    option: tuple[str, ...] = ("--out",)
    inputs: Path | None = None
    timed: tuple[str, ...] = ()

    def command(self, out: Path, again: bool) -> list[str]:
        """All arguments for a folder of results, for the first start or a later one."""
        further = self.again if again else ()
        return [*self.words, *further, *self.option, str(out / self.file)]

    def begin(self, place: Path) -> Path:
        """Make the folder of results in `place`; its name is fixed, because reports contain it."""
        out = place / "out"
        out.mkdir(parents=True)
        if self.inputs:
            shutil.copytree(self.inputs, out, dirs_exist_ok=True)
        return out


def runs(folder: Path) -> dict[str, SiegeCommand]:
    """Return the runs by name, and write the files that they read to a folder."""
    syllabus, experiment = folder / "syllabus.json", folder / "experiment.json"
    syllabus.write_text(SYLLABUS)
    experiment.write_text(EXPERIMENT)
    settings, sweep = folder / "settings.json", folder / "sweep.toml"
    settings.write_text(SETTINGS)
    sweep.write_text(SWEEP)
    planned = folder / "planned"
    with contextlib.redirect_stdout(io.StringIO()):
        if code := main(["sweep", "plan", str(sweep), "--minutes", "1e-4", "--out", str(planned)]):
            raise ValueError(f"jaxsim sweep plan ends with {code}")
    play = ("run", str(syllabus), "--agent", "random", "--lifetimes", "8", *OFTEN)
    train = ("train", "CartPole", "--episodes", "96", "--eval-every", "32", "--lifetimes", "8")
    levels = ("--levels", "200", "--difficulties", "hard", "--visibilities", "0")
    trials = ("--trials", "8", "--episodes", "20", "--agent", "random", "--quiet")
    over, timed = ("--overwrite",), ("report.json", "report.html")
    return {
        "run": SiegeCommand(play, ("--resume",)),
        "sweep run": SiegeCommand(("sweep", "run", "--quiet"), option=(), inputs=planned),
        "sailon generate": SiegeCommand(("sailon", "generate", str(settings)), file="drawn.json"),
        "train": SiegeCommand((*train, *OFTEN), ("--resume",)),
        "sailon run": SiegeCommand(("sailon", "run", str(experiment), "--agent", "pd"), over),
        "sailon evaluate": SiegeCommand(
            ("sailon", "evaluate", *levels, *trials, "--checkpoint-every", "0s"),
            ("--resume",),
            timed=timed,
        ),
    }


def start(
    run: SiegeCommand,
    out: Path,
    *,
    again: bool = False,
    before: Sequence[str] = (),
    prepare: str = "",
) -> "subprocess.Popen[str]":
    """Start a command.

    Args:
      run: the run to start.
      out: folder of its results.
      again: whether it was started before and interrupted.
      before: arguments of a program that starts the command, e.g. `strace`.
      prepare: Python statements that the new process executes first.
    """
    return subprocess.Popen(
        [*before, sys.executable, "-c", prepare + PROGRAM, *run.command(out, again)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def fork_server() -> ForkServerContext:
    """A server that has imported the package, to fork processes from; it never initializes JAX."""
    cache.use(os.environ)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def fork(
    context: ForkServerContext, run: SiegeCommand, out: Path, again: bool = False
) -> BaseProcess:
    """Start a command in a forked process, which need not import anything."""
    process = context.Process(target=_forked, args=(run.command(out, again), f"{out}.errors"))
    process.start()
    return process


def _forked(words: list[str], errors: str) -> NoReturn:
    """Run the command in this process, with stderr written to a file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.exit(main(words))


class ProcessExit(NamedTuple):
    """How a process has ended: its exit code, what it wrote to stderr, and its duration, s."""

    code: int
    errors: str
    seconds: float


def finish(process: "subprocess.Popen[str]") -> ProcessExit:
    """Wait for the end of a process."""
    start_time = time.monotonic()
    _, errors = process.communicate(timeout=LONGEST)
    return ProcessExit(process.returncode, errors, time.monotonic() - start_time)


def wait_for(process: BaseProcess, errors: str) -> ProcessExit:
    """Wait for the end of a forked process, whose stderr is written to a file."""
    start_time = time.monotonic()
    process.join(LONGEST)
    code = -1 if process.exitcode is None else process.exitcode
    return ProcessExit(
        code, Path(errors).read_text(errors="replace"), time.monotonic() - start_time
    )


def contents(run: SiegeCommand, out: Path) -> dict[str, bytes]:
    """Contents of the result files that every repetition must reproduce, by path.

    Checkpoints, notes of running processes, hidden files and files with durations are left out.
    """
    files = (p.relative_to(out) for p in out.rglob("*") if p.is_file())
    visible = (p for p in files if p.parts[0] not in NOTES and not any(map(_is_hidden, p.parts)))
    return {str(path): (out / path).read_bytes() for path in visible if path.name not in run.timed}


def _is_hidden(name: str) -> bool:
    """Whether the name is hidden, as that of an unfinished file; a killed process leaves some."""
    return name.startswith(".")


def undisturbed(
    run: SiegeCommand, place: Path, context: ForkServerContext | None = None
) -> tuple[dict[str, bytes], ProcessExit]:
    """Complete a run twice without attacks, to have files to compare with.

    Returns:
      The contents of its files, and how it ended the second time, with all programs compiled.

    Raises:
      ValueError: it fails by itself, or its files differ the second time.
    """
    results = []
    for repetition in ("first", "second"):
        out = run.begin(place / repetition)
        ended = play(run, out, False, context)
        if ended.code:
            raise ValueError(
                f"not attacked, it ends with {ended.code}: {ended.errors.strip()[-200:]}"
            )
        results.append(contents(run, out))
    if problem := difference(*results):
        raise ValueError(f"not attacked, {problem}")
    return results[0], ended


def play(
    run: SiegeCommand, out: Path, again: bool, context: ForkServerContext | None = None
) -> ProcessExit:
    """Complete a run, in a process that is forked if a `context` is given."""
    if context is None:
        return finish(start(run, out, again=again))
    return wait_for(fork(context, run, out, again), f"{out}.errors")


def complaint(ended: ProcessExit) -> str:
    """What is wrong with the way an attacked run ended; "" for nothing.

    It may succeed, or end with exit code 1 or 2 and a message; a traceback is a bug.
    """
    if "Traceback (most recent call last)" in ended.errors:
        return f"a traceback: {ended.errors.strip().splitlines()[-1][:200]}"
    if ended.code not in (0, 1, 2):
        return f"exit code {ended.code}"
    if ended.code and not ended.errors.strip():
        return f"exit code {ended.code} without a word"
    return ""


def finish_and_compare(
    run: SiegeCommand,
    out: Path,
    expected: Mapping[str, bytes],
    context: ForkServerContext | None = None,
) -> str:
    """Complete an attacked run without attacks; how its files differ, "" if they do not."""
    ended = play(run, out, True, context)
    if ended.code:
        return f"exit code {ended.code} in the end: {ended.errors.strip()[-200:]}"
    return difference(contents(run, out), expected)


def difference(actual: Mapping[str, bytes], expected: Mapping[str, bytes]) -> str:
    """Names of files that differ or exist on one side only, as a sentence; "" for none."""
    names = sorted(n for n in {*actual, *expected} if actual.get(n) != expected.get(n))
    return f"{', '.join(names)} differ" if names else ""
