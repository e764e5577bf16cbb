"""Runs that are killed at any moment, and must end with the same files when they are resumed.

Processes are forked from one that has imported the package, and find their programs compiled: a
kill costs what a run does, and not what Python does before.
"""

import itertools
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerContext
from pathlib import Path

from benchmarks.siege import Blow
from benchmarks.siege.runs import (
    LONGEST,
    SiegeCommand,
    contents,
    difference,
    finish_and_compare,
    fork,
    fork_server,
    runs,
    undisturbed,
)

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_KILLS = 20  # of one run
PARALLEL = 2
"""Runs that are attacked at a time."""
SHARES = {"run": 16, "sweep run": 8, "sailon generate": 4}
"""Tries of cheap runs, for one of each other one."""
EARLY = 1.0, 1.5
"""Parameters of the beta distribution of moments, in lengths of a run; early ones cost less."""


def kills(seed: int, first: int = 0) -> Iterator[Blow]:
    """Kill runs; one blow a run that has come to its end."""
    with (
        tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place,
        ThreadPoolExecutor(PARALLEL) as pool,
    ):
        folder, context = Path(place), fork_server()
        commands = runs(folder)
        names = [name for name in commands for _ in range(SHARES.get(name, 1))]
        random.Random(0).shuffle(names)
        references: dict[str, tuple[dict[str, bytes], float]] = {}
        one_at_a_time = threading.Lock()

        def attempt(number: int) -> Blow:
            name = names[number % len(names)]
            draw, run = random.Random(f"{seed} {number}"), commands[name]
            with one_at_a_time:
                if name not in references:
                    files, ended = undisturbed(run, folder / name, context)
                    references[name] = files, ended.seconds
            place = folder / str(number)
            out = run.begin(place)
            blow, took = _kill_and_compare(name, run, out, draw, *references[name], number, context)
            # Measured beside other work, the first time may be far too long to kill anything.
            references[name] = references[name][0], min(took, references[name][1])
            shutil.rmtree(place)
            return blow

        ahead = deque(pool.submit(attempt, first + number) for number in range(PARALLEL))
        try:
            for number in itertools.count(first + PARALLEL):
                yield ahead.popleft().result()
                ahead.append(pool.submit(attempt, number))
        finally:
            for later in ahead:
                later.cancel()


def _kill_and_compare(
    name: str,
    run: SiegeCommand,
    out: Path,
    draw: random.Random,
    expected: Mapping[str, bytes],
    took: float,
    number: int,
    context: ForkServerContext,
) -> tuple[Blow, float]:
    """Kill a run some times, let it come to its end, and compare its files.

    Returns:
      The blow, and the duration of the run, s, measured again if it was not killed.
    """
    sent, code = 0, -1
    for kill in range(draw.randint(1, MOST_KILLS)):
        start = time.monotonic()
        process = fork(context, run, out, again=kill > 0)
        how, wait = draw.choice(SIGNALS), took * draw.betavariate(*EARLY)
        process.join(wait)
        if process.exitcode is None and process.pid:
            os.kill(process.pid, how)
            process.join(LONGEST)
            sent += 1
        code = -1 if process.exitcode is None else process.exitcode
        if code == 0:
            took = time.monotonic() - start if kill == 0 else took
            break
    if code == 0:
        wrong = difference(contents(run, out), expected)
    else:
        wrong = finish_and_compare(run, out, expected, context)
    label = f"kills of `jaxsim {name}`"
    if wrong:
        return Blow(label, sent, "failed", f"try {number}: {wrong}"), took
    return Blow(label, sent, "the same files in the end"), took
