"""Run what the README and pages of the documentation show, so that none of it can go stale.

Every ```bash block is run in the clone, line by line in order, each line in a shell of its own
with .venv/bin first in PATH; a command that has run already is not run again. The ```python blocks
of a page are one program, which is run after the page's commands. Pages are run in parallel, as
many as there are cores, and what a command prints is shown when it has ended.
Blocks marked ```console, ```py or ```text only show something, because it takes minutes or needs
more than one process, and are left alone. Tests run the code of the other pages, see
`tests/test_site.py`.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

PAGES = (
    "README.md",
    "docs/tutorials/first-steps.md",
    "docs/tutorials/own-agent.md",
    "docs/tutorials/own-novelty.md",
    "docs/tutorials/a-sweep.md",
    "docs/tutorials/coming-from.md",
    "docs/guide.md",
    "docs/identification.md",
    "docs/agents.md",
    "docs/learning.md",
    "docs/novelty.md",
    "docs/open-world.md",
    "docs/performance.md",
    "docs/sailon.md",
    "docs/sciencebirds.md",
    "docs/sweeps.md",
    "docs/view.md",
)
# .ci/run has run these by the time it comes here; the tests of `make test` as part of all tests.
DONE_BEFORE = ("make", "make demo", "make install", "make test")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)")


def blocks(text: str, page: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield first line number, language and lines of each block of code in a Markdown text."""
    fence = language = ""
    start, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        if not fence:
            if mark:
                fence, language = mark[1], mark[2]
                start, lines = number + 1, []
        elif mark and mark[1].startswith(fence) and not mark[2]:
            yield start, language, lines
            fence = ""
        else:
            lines.append(line)
    if fence:
        raise ValueError(f"{page}: a block opened with {fence} is never closed")


def bash_commands(text: str, page: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each command in the ```bash blocks of a Markdown text.

    A backslash at the end of a line joins it with the next one, as bash does. Empty lines and
    comments are dropped.
    """
    for first, language, lines in blocks(text, page):
        if language != "bash":
            continue
        pending = ""
        start = first
        for number, line in enumerate(lines, start=first):
            start = start if pending else number
            pending += line.strip()
            if pending.endswith("\\"):
                pending = pending[:-1]
                continue
            if pending and not pending.startswith("#"):
                yield start, pending
            pending = ""
        if pending:
            raise ValueError(f"{page}:{start}: the block ends in a backslash")


def python_program(text: str, page: str) -> tuple[int, str]:
    """Return the line number of the first ```python block, and all of them as one program.

    Empty lines keep the line numbers of the page, for tracebacks.
    """
    found = [
        (first, lines) for first, language, lines in blocks(text, page) if language == "python"
    ]
    program: list[str] = []
    for first, lines in found:
        program += [""] * (first - 1 - len(program)) + lines
    return (found[0][0] if found else 0), "\n".join(program)


class Job(NamedTuple):
    """A command or program of a page: where it is, what is shown, and what is executed."""

    page: str
    line: int
    shown: str
    executed: tuple[str, ...]


def jobs(page: str) -> Iterator[Job]:
    """Yield the commands of a page in order, and then its program."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for line, command in bash_commands(text, page):
        yield Job(page, line, command, ("bash", "-euo", "pipefail", "-c", command))
    line, program = python_program(text, page)
    if program:
        yield Job(page, line, "the page's Python", (str(ROOT / ".venv/bin/python"), "-c", program))


def reason_to_skip(command: str) -> str | None:
    """Say why a command is not run, or return None for one that is."""
    plain = " ".join(command.split("#")[0].split())
    if plain.startswith(("git clone ", "cd ")):
        return "the clone is here already"
    if plain in DONE_BEFORE:
        return "run by .ci/run before"
    return None


class Runner:
    """Runs pages, several at a time; a command that pages share is run by the first of them.

    Attributes:
      codes: exit codes of the commands that were run or are being run.
    """

    def __init__(self) -> None:
        self.codes: dict[tuple[str, ...], Future[int]] = {}
        self._lock = threading.Lock()
        path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path}

    def play(self, page: str) -> None:
        """Run the commands of a page up to the first that fails, in this page or another."""
        for job in jobs(page):
            where = f"{job.page}:{job.line}"
            if self.failure():
                return
            with self._lock:
                code = self.codes.get(job.executed)
                reason = reason_to_skip(job.shown) or ("run already" if code else None)
                if reason is None:
                    code = self.codes[job.executed] = Future()
            if reason is not None:
                print(f"{where}: not run ({reason}): {job.shown}", flush=True)
            elif code is not None:
                self._run(job, where, code)
            if code is not None:
                code.result()  # waits for another page

    def failure(self) -> int:
        """Exit code of the first command that has failed; 0 if none has."""
        codes = list(self.codes.values())
        return next((code.result() for code in codes if code.done() and code.result()), 0)

    def _run(self, job: Job, where: str, code: Future[int]) -> None:
        """Run a command and show what it has printed."""
        started, output, done = time.monotonic(), "", 1
        try:
            process = subprocess.run(
                job.executed,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output, done = process.stdout.decode(errors="replace"), process.returncode
        finally:
            code.set_result(done)
            result = f"exit code {done}" if done else "done"
            seconds = time.monotonic() - started
            print(f"{where}: {job.shown}\n{output}{where}: {result} in {seconds:.1f} s", flush=True)


def main() -> int:
    """Run all pages, as many at a time as there are cores.

    Returns:
      The exit code of this script: 0, or that of the first command that failed.
    """
    runner = Runner()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(runner.play, PAGES))
    if not runner.failure():
        print(f"{len(runner.codes)} commands and programs run, none failed")
    return runner.failure()


if __name__ == "__main__":
    sys.exit(main())
