"""Run what the README and pages of the documentation show, so that none of it can go stale.

Every ```bash block is run in the clone, line by line in order, each line in a shell of its own
with .venv/bin first in PATH; a command that has run already is not run again. The ```python blocks
of a page are one program, which is run after the page's commands.
Blocks marked ```console, ```py or ```text only show something, because it takes minutes or needs
more than one process, and are left alone. Tests run the code of the other pages, see
`tests/test_site.py`.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAGES = (
    "README.md",
    "docs/tutorials/first-steps.md",
    "docs/tutorials/own-agent.md",
    "docs/tutorials/own-novelty.md",
    "docs/tutorials/a-sweep.md",
    "docs/tutorials/coming-from.md",
    "docs/guide.md",
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
# .ci/run has run these by the time it comes here.
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


def jobs() -> Iterator[tuple[str, int, str, list[str]]]:
    """Yield page, line number, what is shown and what is executed, of all pages in order."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for line, command in bash_commands(text, page):
            yield page, line, command, ["bash", "-euo", "pipefail", "-c", command]
        line, program = python_program(text, page)
        if program:
            yield page, line, "the page's Python", [str(ROOT / ".venv/bin/python"), "-c", program]


def reason_to_skip(command: str) -> str | None:
    """Say why a command is not run, or return None for one that is."""
    plain = " ".join(command.split("#")[0].split())
    if plain.startswith(("git clone ", "cd ")):
        return "the clone is here already"
    if plain in DONE_BEFORE:
        return "run by .ci/run before"
    return None


def main() -> int:
    """Run the commands and stop at the first that fails.

    Returns:
      The exit code of this script: 0, or that of the command that failed.
    """
    environment = os.environ | {"PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    ran, done_before = 0, set[str]()
    for page, line, command, executed in jobs():
        repeated = "run above" if " ".join(executed) in done_before else None
        if reason := reason_to_skip(command) or repeated:
            print(f"{page}:{line}: not run ({reason}): {command}", flush=True)
            continue
        print(f"{page}:{line}: {command}", flush=True)
        started = time.monotonic()
        done = subprocess.run(
            executed,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            print(f"{page}:{line}: exit code {done.returncode}: {command}", file=sys.stderr)
            return done.returncode
        print(f"{page}:{line}: done in {time.monotonic() - started:.1f} s", flush=True)
        done_before.add(" ".join(executed))
        ran += 1
    print(f"{ran} commands and programs run, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
