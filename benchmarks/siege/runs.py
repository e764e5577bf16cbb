"""The runs that are attacked, and what they leave."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LONGEST = 600.0  # s, of one process
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
SYLLABUS = """{"instructions": [
  {"$phase": "1.train"}, {"$repeat": {"$episode": "CartPole"}, "count": 600},
  {"$phase": "1.test"}, {"$repeat": {"$episode": "CartPole", "pole/length": 0.7}, "count": 200}
]}"""
EXPERIMENT = """{"novelty": [200, 203], "difficulty": ["hard"], "novelty_visibility": [0],
  "trials": 2, "training_episodes": 1, "testing_episodes": 3}"""
SETTINGS = """{"novelty": [203], "difficulty": ["hard"], "trials": 200, "testing_episodes": 20}"""
OFTEN = ("--checkpoint-every", "0s", "--quiet")


class Run(NamedTuple):
    """A command with what it writes.

    Attributes:
      words: of the command, without `--out`.
      again: what the command needs more after an end before its time.
      file: its result in the folder that it is given; "" if the folder is.
    """

    words: tuple[str, ...]
    again: tuple[str, ...] = ()
    file: str = ""


def runs(folder: Path) -> dict[str, Run]:
    """Commands by name; what they read is written to a folder."""
    syllabus, experiment = folder / "syllabus.json", folder / "experiment.json"
    syllabus.write_text(SYLLABUS)
    experiment.write_text(EXPERIMENT)
    settings = folder / "settings.json"
    settings.write_text(SETTINGS)
    play = ("run", str(syllabus), "--agent", "random", "--lifetimes", "64", *OFTEN)
    train = ("train", "CartPole", "--episodes", "96", "--eval-every", "32", "--lifetimes", "8")
    return {
        "run": Run(play, ("--resume",)),
        "sailon generate": Run(("sailon", "generate", str(settings)), (), "drawn.json"),
        "train": Run((*train, *OFTEN), ("--resume",)),
        "sailon run": Run(("sailon", "run", str(experiment), "--agent", "pd"), ("--overwrite",)),
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
    words = [*run.words, *(run.again if again else ())]
    return subprocess.Popen(
        [*before, sys.executable, "-c", prepare + PROGRAM, *words, "--out", str(out / run.file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


class Ended(NamedTuple):
    """How a process has ended: exit code, what it said, and how long it took, s."""

    code: int
    said: str
    seconds: float


def finish(process: "subprocess.Popen[str]") -> Ended:
    """Wait for the end."""
    began = time.monotonic()
    _, said = process.communicate(timeout=LONGEST)
    return Ended(process.returncode, said, time.monotonic() - began)


def contents(out: Path) -> dict[str, bytes]:
    """Files of a result directory; checkpoints and what begins with a dot are no results."""
    files = (p.relative_to(out) for p in out.rglob("*") if p.is_file())
    kept = (p for p in files if "checkpoints" not in p.parts and not p.parts[0].startswith("."))
    return {str(path): (out / path).read_bytes() for path in kept}


def whole(run: Run, out: Path) -> tuple[dict[str, bytes], Ended]:
    """What a run leaves that nobody attacks.

    Raises:
      ValueError: it fails by itself.
    """
    out.mkdir()
    ended = finish(start(run, out))
    if ended.code:
        raise ValueError(f"not attacked, it ends with {ended.code}: {ended.said.strip()[-200:]}")
    return contents(out), ended


def complaint(ended: Ended) -> str:
    """What is wrong with how an attacked run ended; "" for nothing.

    It may succeed, or end with an exit code of ours and say why; a traceback is a bug.
    """
    if "Traceback (most recent call last)" in ended.said:
        return f"a traceback: {ended.said.strip().splitlines()[-1][:200]}"
    if ended.code not in (0, 1, 2):
        return f"exit code {ended.code}"
    if ended.code and not ended.said.strip():
        return f"exit code {ended.code} without a word"
    return ""


def completed(run: Run, out: Path, wanted: Mapping[str, bytes]) -> str:
    """Let an attacked run come to its end in peace; how its files differ, "" if they do not."""
    ended = finish(start(run, out, again=True))
    if ended.code:
        return f"exit code {ended.code} in the end: {ended.said.strip()[-200:]}"
    return differing(contents(out), wanted)


def differing(found: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> str:
    """Names of files that differ or are there once only; "" for none."""
    odd = sorted(n for n in {*found, *wanted} if found.get(n) != wanted.get(n))
    return f"{', '.join(odd)} differ" if odd else ""
