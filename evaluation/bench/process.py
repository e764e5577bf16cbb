"""Client of a program that runs in a process of its own, and prepares and measures on request."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evaluation.bench.program import Unavailable
from evaluation.bench.rate import Rate
from evaluation.cache.folder import TRACED_FOLDER
from evaluation.json_types import JsonObject

ROOT = Path(__file__).resolve().parents[2]
"""Folder of the packages: the clone, or the folder that a wheel was installed to."""


class Process:
    """A program in a process of its own, without flags of XLA and the user's compilation cache.

    Args:
      module: module for `python -m`; it calls `serve`.
      arguments: of its command line.
      cache: folder of kept programs; None for none.
    """

    def __init__(
        self, module: str, arguments: Sequence[str] = (), cache: str | None = None
    ) -> None:
        self.module = module
        # Compiling is measured too, and each program sets its own flags.
        environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
        environment["JAX_ENABLE_COMPILATION_CACHE"] = "true" if cache else "false"
        environment.pop(TRACED_FOLDER, None)
        if cache:
            environment["JAX_COMPILATION_CACHE_DIR"] = environment[TRACED_FOLDER] = cache
            environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, closed in close
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def prepare(self, workload: str) -> JsonObject:
        """Get ready for a workload; see `BenchProgram.prepare`."""
        facts: JsonObject = self._ask({"workload": workload})["facts"]
        return facts

    def measure(self, workload: str, seconds: float) -> Rate:
        """Measure a workload; see `BenchProgram.measure`."""
        return Rate(**self._ask({"workload": workload, "seconds": seconds})["rate"])

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin and self.process.stdout
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            # A question that a dead process has not read is still in the buffer.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _ask(self, question: JsonObject) -> JsonObject:
        """Ask one question.

        Raises:
          Unavailable: the program needs something that is not installed.
          ValueError: the program refused a setting, or failed.
        """
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise ValueError(self._failure()) from error
        line = self.process.stdout.readline()
        if not line:
            raise ValueError(self._failure())
        answer: JsonObject = json.loads(line)
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        if "refused" in answer:
            raise ValueError(answer["refused"])
        return answer

    def _failure(self) -> str:
        """How a process ended, with the last line of its errors."""
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return f"{self.module} ended with exit code {code}: {lines[-1] if lines else 'no message'}"
