"""Runs that are killed inside the system calls by which they write, by `strace`."""

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.siege import Blow
from benchmarks.siege.runs import (
    SiegeCommand,
    contents,
    difference,
    finish,
    finish_and_compare,
    runs,
    start,
)

CALLS = ("openat", "write", "pwrite64", "fsync", "ftruncate", "mkdir", "rename", "unlink", "chmod")
MOST_KILLS = 3  # of one run
_LINE = re.compile(r"(\d+) +([a-z0-9]+)\((.*)")


def calls(seed: int, first: int = 0, names: Sequence[str] = ()) -> Iterator[Blow]:
    """Kill runs inside system calls on their results; one blow for each finished run.

    Args:
      seed: what is tried follows from it and the number of the try.
      first: number of the first try.
      names: of the runs; none for all.
    """
    if not can_trace():
        yield Blow("kills inside system calls", 0, "left out, there is no `strace` that may trace")
        return
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place:
        folder = Path(place)
        commands, references = runs(folder), {}
        names = names or list(commands)
        for number in itertools.count(first):
            name = names[number % len(names)]
            run = commands[name]
            if name not in references:
                traced = run.begin(folder / f"traced-{len(references)}")
                places = _places(run, traced, folder / "calls")
                references[name] = contents(run, traced), places
            out, draw = run.begin(folder / str(number)), random.Random(f"{seed} {number}")
            yield _kill_and_compare(name, run, out, draw, *references[name], number)


def can_trace() -> bool:
    """Whether `strace` is installed and may trace processes."""
    if shutil.which("strace") is None:
        return False
    words = ("strace", "-qq", "-o", os.devnull, sys.executable, "-c", "")
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


Place = tuple[str, int]
"""A system call, and which of its calls in one thread, from 1."""


def _places(run: SiegeCommand, out: Path, log: Path) -> list[Place]:
    """The system calls of a run that are about its results."""
    trace = ("strace", "-f", "-y", "-qq", "-s", "256", "-e", f"trace={','.join(CALLS)}")
    ended = finish(start(run, out, before=(*trace, "-e", "signal=none", "-o", str(log))))
    if ended.code:
        raise ValueError(f"traced, it ends with {ended.code}: {ended.errors.strip()[-200:]}")
    counts: dict[tuple[str, str], int] = defaultdict(int)
    places = []
    for line in log.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:  # the second half of a call that another thread has interrupted
            continue
        thread, call, rest = match.groups()
        counts[thread, call] += 1
        writes = call != "openat" or "O_CREAT" in rest
        if str(out) in rest and writes:
            places.append((call, counts[thread, call]))
    return places


def _kill_and_compare(
    name: str,
    run: SiegeCommand,
    out: Path,
    draw: random.Random,
    expected: Mapping[str, bytes],
    places: Sequence[Place],
    number: int,
) -> Blow:
    """Kill a run inside some system calls, then finish it and compare its files."""
    sent, code, attempts = 0, -1, []
    for kill in range(draw.randint(1, MOST_KILLS)):
        call, when = draw.choice(places)
        attempts.append(f"{call} {when}")
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={when}")
        before = ("strace", "-f", "-qq", *inject, "-o", os.devnull)
        code = finish(start(run, out, again=kill > 0, before=before)).code
        if code == 0:
            break
        sent += 1
    wrong = (
        difference(contents(run, out), expected)
        if code == 0
        else finish_and_compare(run, out, expected)
    )
    label = f"kills inside system calls of `jaxsim {name}`"
    if wrong:
        return Blow(label, sent, "failed", f"try {number}, inside {', '.join(attempts)}: {wrong}")
    return Blow(label, sent, "the same files in the end")
