"""Servers that are sent nonsense, with their memory, threads and descriptors watched."""

import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from benchmarks.siege import Blow

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
WARM_UP = 300
"""Connections before anything is compared: caches fill."""
MOST_GROWTH = 1.05
KEPT, LONGEST = 5, 500
"""Lines that a server has said last, and characters of them that are shown."""
ROUND = 50
"""Connections of a blow."""
SAMPLE = ROOT / "examples" / "sciencebirds" / "sequences.xml"
COMMANDS = {
    "gvgai serve": ["gvgai", "serve", "--port", "0", "--sessions", "100000000"],
    "sciencebirds serve": ["sciencebirds", "serve", "--port", "0", "--config-meta", str(SAMPLE)],
}
WORDS = (b"0#INIT_DONE#JSON\n", b"1#ACTION_LEFT\n", b"#", b"\n", b"-1#\n", b"0#START_DONE\n")


def servers(seed: int, first: int = 0) -> Iterator[Blow]:
    """Fuzz both servers in turn, from a number of a try on; one blow a number of connections."""
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(_running(words)) for name, words in COMMANDS.items()}
        number, before = first, {}
        while True:
            for name, (process, port, said) in running.items():
                draw = random.Random(f"{seed} {number}")
                sent = sum(_connect(port, draw) for _ in range(ROUND))
                label = f"nonsense to `jaxsim {name}`, messages"
                now = _used(process.pid)
                if now is None:
                    code, last = process.wait(), " ".join(map(str.strip, said))[-LONGEST:]
                    reason = f"try {number}: ended with code {code}: {last}"
                    yield Blow(label, sent, "failed", reason)
                    return
                if (number - first + 1) * ROUND >= WARM_UP * len(running):
                    grown = _growth(before.setdefault(name, now), now)
                    if grown:
                        yield Blow(label, sent, "failed", f"try {number}: {grown}")
                        continue
                yield Blow(label, sent, "answered or hung up on; memory flat")
                number += 1


@contextlib.contextmanager
def _running(words: list[str]) -> Iterator[tuple[subprocess.Popen[str], int, deque[str]]]:
    """A server in a process of its own, its port, and the last that it has said."""
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as folder:
        results = ["--results", folder] if words[0] == "sciencebirds" else []
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words, *results],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout
        try:
            address = None
            while address is None:
                line = process.stdout.readline()
                if not line:
                    raise ValueError(f"jaxsim {' '.join(words)} has ended before it listened")
                address = re.search(r"listening .*?(?::|port )(\d+)\b", line)
            yield process, int(address[1]), _drain(process)
        finally:
            process.kill()
            process.wait()


def _drain(process: subprocess.Popen[str]) -> deque[str]:
    """Read what a server says, so that it never waits for a reader; the last lines."""
    lines: deque[str] = deque(maxlen=KEPT)
    assert process.stdout
    threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True).start()
    return lines


def _connect(port: int, draw: random.Random) -> int:
    """Connect, send some messages of nonsense, and leave in some way; the number of messages."""
    count = draw.randint(1, 40)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as stream:
        stream.settimeout(0.05)
        for _ in range(count):
            stream.sendall(draw.choice(WORDS) if draw.random() < 0.3 else _noise(draw))
            if draw.random() < 0.1:
                with contextlib.suppress(TimeoutError):
                    if not stream.recv(4096):
                        break
    return count


def _noise(draw: random.Random) -> bytes:
    return draw.randbytes(draw.choice((1, 2, 5, 17, 200)))


def _used(pid: int) -> dict[str, int] | None:
    """What a process uses: resident memory, KiB; threads; descriptors. None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None
    matches = {key: re.search(rf"{key}:\s+(\d+)", status) for key in ("VmRSS", "Threads")}
    numbers = {key: int(match[1]) for key, match in matches.items() if match}
    return {**numbers, "descriptors": descriptors} if len(numbers) == len(matches) else None


def _growth(first: dict[str, int], now: dict[str, int]) -> str:
    """What has grown by more than it may; "" for nothing. Descriptors may be one's own."""
    grown = [
        f"{key} from {first[key]} to {now[key]}"
        for key in first
        if now[key] > MOST_GROWTH * first[key] + (3 if key != "VmRSS" else 0)
    ]
    return ", ".join(grown)
