"""Runs that are killed at any moment, and have to go on to the very same files."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.siege import Blow

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_KILLS = 4  # of one run
LONGEST = 600.0  # s, of one process
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
TRAIN = ("train", "CartPole", "--episodes", "96", "--eval-every", "32", "--lifetimes", "8")
SYLLABUS = """{"instructions": [
  {"$phase": "1.train"}, {"$repeat": {"$episode": "CartPole"}, "count": 600},
  {"$phase": "1.test"}, {"$repeat": {"$episode": "CartPole", "pole/length": 0.7}, "count": 200}
]}"""
EXPERIMENT = """{"novelty": [200, 203], "difficulty": ["hard"], "novelty_visibility": [0],
  "trials": 2, "training_episodes": 1, "testing_episodes": 3}"""


def attacks(folder: Path) -> dict[str, tuple[list[str], bool]]:
    """Commands by name, and whether a command goes on with --resume or begins again."""
    syllabus, experiment = folder / "syllabus.json", folder / "experiment.json"
    syllabus.write_text(SYLLABUS)
    experiment.write_text(EXPERIMENT)
    often = ["--checkpoint-every", "0s", "--quiet"]
    return {
        "run": (["run", str(syllabus), "--agent", "random", "--lifetimes", "64", *often], True),
        "train": ([*TRAIN, *often], True),
        "sailon run": (["sailon", "run", str(experiment), "--agent", "pd"], False),
    }


def kills(seed: int) -> Iterator[Blow]:
    """Kill runs; one blow a run that has come to its end."""
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place:
        folder = Path(place)
        wanted = {}
        commands = attacks(folder)
        for name, (words, _) in commands.items():
            whole = folder / f"whole-{name.replace(' ', '-')}"
            code, took = _finish(_start(words, whole))
            if code:
                reason = f"exit code {code}: {' '.join(words)}"
                yield Blow(f"{name}, not killed", 1, "failed", reason)
                return
            wanted[name] = (_contents(whole), took)
        number = 0
        while True:
            for name, (words, resumes) in commands.items():
                draw = random.Random(f"{seed} {number}")
                out = folder / f"out-{number}"
                yield _killed(name, words, resumes, out, draw, *wanted[name], number)
                number += 1


def _killed(
    name: str,
    words: list[str],
    resumes: bool,
    out: Path,
    draw: random.Random,
    wanted: dict[str, bytes],
    took: float,
    number: int,
) -> Blow:
    """Kill a run some times, let it come to its end, and compare its files."""
    times = draw.randint(1, MOST_KILLS)
    again = ["--resume"] if resumes else ["--overwrite"]
    sent, code = 0, -1
    for kill in range(times):
        process = _start([*words, *(again if kill else [])], out)
        how, wait = draw.choice(SIGNALS), draw.uniform(0.0, 1.1 * took)
        try:
            process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            process.communicate(timeout=LONGEST)
            sent += 1
        code = process.returncode
        if code == 0:
            break
    if code:
        code, _ = _finish(_start([*words, *again], out))
    label = f"kills of `jaxsim {name}`"
    if code:
        return Blow(label, sent, "failed", f"try {number}: exit code {code} in the end")
    contents = _contents(out)
    if contents != wanted:
        odd = sorted(n for n in {*contents, *wanted} if contents.get(n) != wanted.get(n))
        return Blow(label, sent, "failed", f"try {number}: {', '.join(odd)} differ")
    return Blow(label, sent, "the same files in the end")


def _start(words: list[str], out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Wait for the end; exit code and seconds."""
    began = time.monotonic()
    process.communicate(timeout=LONGEST)
    return process.returncode, time.monotonic() - began


def _contents(out: Path) -> dict[str, bytes]:
    """Files of a result directory; checkpoints are none of its results."""
    files = (p for p in out.rglob("*") if p.is_file() and "checkpoints" not in p.parts)
    return {str(path.relative_to(out)): path.read_bytes() for path in files}
