"""The runs that are attacked, and what they leave."""

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
"""Folders of what helps to go on, which a run that was killed may leave."""
PRELOADED = (
    *("evaluation.cli", "evaluation.l2m.run", "evaluation.report.l2m", "evaluation.train.run"),
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
"""What a process has imported from which others are forked."""


class Run(NamedTuple):
    """A command with what it writes.

    Attributes:
      words: of the command, without `--out`.
      again: what the command needs more after an end before its time.
      file: its result in the folder that it is given; "" if the folder is.
      option: in front of the folder.
      given: a folder whose files lie in that folder before; None for none.
      timed: results that say how long it took.
    """

    words: tuple[str, ...]
    again: tuple[str, ...] = ()
    file: str = ""
    option: tuple[str, ...] = ("--out",)
    given: Path | None = None
    timed: tuple[str, ...] = ()

    def command(self, out: Path, again: bool) -> list[str]:
        """All words, for a folder of results, of a first or a later time."""
        later = self.again if again else ()
        return [*self.words, *later, *self.option, str(out / self.file)]

    def begin(self, place: Path) -> Path:
        """Make the folder of results in a place; all have one name, which reports repeat."""
        out = place / "out"
        out.mkdir(parents=True)
        if self.given:
            shutil.copytree(self.given, out, dirs_exist_ok=True)
        return out


def runs(folder: Path) -> dict[str, Run]:
    """Commands by name; what they read is written to a folder."""
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
        "run": Run(play, ("--resume",)),
        "sweep run": Run(("sweep", "run", "--quiet"), option=(), given=planned),
        "sailon generate": Run(("sailon", "generate", str(settings)), file="drawn.json"),
        "train": Run((*train, *OFTEN), ("--resume",)),
        "sailon run": Run(("sailon", "run", str(experiment), "--agent", "pd"), over),
        "sailon evaluate": Run(
            ("sailon", "evaluate", *levels, *trials, "--checkpoint-every", "0s"),
            ("--resume",),
            timed=timed,
        ),
    }


def start(
    run: Run,
    out: Path,
    *,
    again: bool = False,
    before: Sequence[str] = (),
    prepare: str = "",
) -> "subprocess.Popen[str]":
    """Start a command.

    Args:
      run: what is started.
      out: folder of its results.
      again: whether it has ended before its time.
      before: words of a program that the command is started by.
      prepare: statements of Python that the new process begins with.
    """
    return subprocess.Popen(
        [*before, sys.executable, "-c", prepare + PROGRAM, *run.command(out, again)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def nursery() -> ForkServerContext:
    """A process that has imported the package, to fork others from; none starts JAX in it."""
    cache.use(os.environ)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def fork(context: ForkServerContext, run: Run, out: Path, again: bool = False) -> BaseProcess:
    """Start a command in a process that need not import anything."""
    process = context.Process(target=_forked, args=(run.command(out, again), f"{out}.errors"))
    process.start()
    return process


def _forked(words: list[str], errors: str) -> NoReturn:
    """Be the command, whose words go to a file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.exit(main(words))


class Ended(NamedTuple):
    """How a process has ended: exit code, what it wrote to stderr, and how long it took, s."""

    code: int
    errors: str
    seconds: float


def finish(process: "subprocess.Popen[str]") -> Ended:
    """Wait for the end."""
    began = time.monotonic()
    _, errors = process.communicate(timeout=LONGEST)
    return Ended(process.returncode, errors, time.monotonic() - began)


def await_(process: BaseProcess, errors: str) -> Ended:
    """Wait for the end of a forked process, whose words go to a file."""
    began = time.monotonic()
    process.join(LONGEST)
    code = -1 if process.exitcode is None else process.exitcode
    return Ended(code, Path(errors).read_text(errors="replace"), time.monotonic() - began)


def contents(run: Run, out: Path) -> dict[str, bytes]:
    """Files of results that are the same each time: no checkpoints, hidden files and notes."""
    files = (p.relative_to(out) for p in out.rglob("*") if p.is_file())
    kept = (p for p in files if p.parts[0] not in NOTES and not any(map(_is_hidden, p.parts)))
    return {str(path): (out / path).read_bytes() for path in kept if path.name not in run.timed}


def _is_hidden(name: str) -> bool:
    """Whether this is the name of what is being written; a process that is killed leaves it."""
    return name.startswith(".")


def whole(
    run: Run, place: Path, context: ForkServerContext | None = None
) -> tuple[dict[str, bytes], Ended]:
    """What a run leaves that nobody attacks, and how it ended the second time, all compiled.

    Raises:
      ValueError: it fails by itself, or leaves something else the second time.
    """
    times = []
    for time_ in ("first", "second"):
        out = run.begin(place / time_)
        ended = play(run, out, False, context)
        if ended.code:
            raise ValueError(
                f"not attacked, it ends with {ended.code}: {ended.errors.strip()[-200:]}"
            )
        times.append(contents(run, out))
    if odd := differing(*times):
        raise ValueError(f"not attacked, {odd}")
    return times[0], ended


def play(run: Run, out: Path, again: bool, context: ForkServerContext | None = None) -> Ended:
    """Let a run come to its end, in a process that is forked if there is what forks it."""
    if context is None:
        return finish(start(run, out, again=again))
    return await_(fork(context, run, out, again), f"{out}.errors")


def complaint(ended: Ended) -> str:
    """What is wrong with how an attacked run ended; "" for nothing.

    It may succeed, or end with an exit code of ours and say why; a traceback is a bug.
    """
    if "Traceback (most recent call last)" in ended.errors:
        return f"a traceback: {ended.errors.strip().splitlines()[-1][:200]}"
    if ended.code not in (0, 1, 2):
        return f"exit code {ended.code}"
    if ended.code and not ended.errors.strip():
        return f"exit code {ended.code} without a word"
    return ""


def completed(
    run: Run, out: Path, wanted: Mapping[str, bytes], context: ForkServerContext | None = None
) -> str:
    """Let an attacked run come to its end in peace; how its files differ, "" if they do not."""
    ended = play(run, out, True, context)
    if ended.code:
        return f"exit code {ended.code} in the end: {ended.errors.strip()[-200:]}"
    return differing(contents(run, out), wanted)


def differing(found: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> str:
    """Names of files that differ or are there once only; "" for none."""
    odd = sorted(n for n in {*found, *wanted} if found.get(n) != wanted.get(n))
    return f"{', '.join(odd)} differ" if odd else ""
