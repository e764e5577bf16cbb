"""A measured program runs in a process of its own, which answers each line of JSON with one.

A process keeps what it has compiled between two questions and is idle while others are measured.
It answers on its first standard output; the output of libraries goes to its standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

from evaluation.bench.rate import Rate
from evaluation.json_types import JsonObject

Question = JsonObject
Answer = JsonObject


class BenchProgram(Protocol):
    """Something that can be measured on one or more workloads."""

    def prepare(self, workload: str) -> JsonObject:
        """Get ready, once for each workload; return facts about how it will be measured.

        Raises:
          Unavailable: what it needs is not installed.
          ValueError: a setting that is not allowed.
        """
        ...

    def measure(self, workload: str, seconds: float) -> Rate:
        """Work for at least `seconds` on a prepared workload."""
        ...


class Unavailable(Exception):
    """A program cannot run here; the message says why and what to do about it."""


def missing(package: str, extra: str) -> Unavailable:
    """Return the error for a package that is not installed."""
    return Unavailable(f"{package} is not installed: pip install 'jaxsim-novelty[{extra}]'")


def serve(program: BenchProgram) -> None:
    """Answer questions from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(program, json.loads(line)), allow_nan=False) + "\n")


def answer(program: BenchProgram, question: Question) -> Answer:
    """Answer one question: prepare or measure.

    Args:
      program: the program.
      question: "workload", and "seconds" for a measurement or none to prepare.

    Returns:
      "facts" or "rate"; or in their place, in words, "unavailable" for a package that is not
      installed or "refused" for a setting that is not allowed.
    """
    try:
        if "seconds" not in question:
            return {"facts": program.prepare(question["workload"])}
        return {"rate": program.measure(question["workload"], question["seconds"]).to_json()}
    except Unavailable as reason:
        return {"unavailable": str(reason)}
    except ValueError as error:
        return {"refused": str(error)}


def timed(work: Callable[[], int], seconds: float, processes: int = 1) -> Rate:
    """Repeat some work in this process for at least `seconds`.

    Args:
      work: returns how many environment steps it took.
      seconds: wall-clock time, s.
      processes: threads that work on it.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    steps = work()
    while time.perf_counter() < wall + seconds:
        steps += work()
    return Rate(steps, time.perf_counter() - wall, time.process_time() - cpu, processes)
