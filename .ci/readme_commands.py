"""Run the commands of README.md and docs/guide.md, so that none of them can go stale.

Every ```bash block is run in the clone, line by line in order, each line in a shell of its own
with .venv/bin first in PATH.
Blocks marked ```console or ```text only show something and are left alone.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAGES = ("README.md", "docs/guide.md")
# .ci/run has run these by the time it comes here.
DONE_BEFORE = ("make", "make demo", "make install", "make test")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)")


def bash_commands(text: str, page: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each command in the ```bash blocks of a Markdown text.

    A backslash at the end of a line joins it with the next one, as bash does. Empty lines and
    comments are dropped.
    """
    fence = language = pending = ""
    start = 0
    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        if not fence:
            if mark:
                fence, language = mark[1], mark[2]
            continue
        if mark and mark[1].startswith(fence) and not mark[2]:
            if pending:
                raise ValueError(f"{page}:{start}: the block ends in a backslash")
            fence = ""
            continue
        if language != "bash":
            continue
        start = start if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        if pending and not pending.startswith("#"):
            yield start, pending
        pending = ""
    if fence:
        raise ValueError(f"{page}: a block opened with {fence} is never closed")


def commands() -> Iterator[tuple[str, int, str]]:
    """Yield page, line number and text of each command of all pages."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        yield from ((page, line, command) for line, command in bash_commands(text, page))


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
    ran = 0
    for page, line, command in commands():
        if reason := reason_to_skip(command):
            print(f"{page}:{line}: not run ({reason}): {command}", flush=True)
            continue
        print(f"{page}:{line}: {command}", flush=True)
        started = time.monotonic()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            print(f"{page}:{line}: exit code {done.returncode}: {command}", file=sys.stderr)
            return done.returncode
        print(f"{page}:{line}: done in {time.monotonic() - started:.1f} s", flush=True)
        ran += 1
    print(f"{ran} commands run, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
