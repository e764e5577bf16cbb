"""Servers that receive nonsense, while their memory, threads and descriptors are measured."""

import contextlib
import itertools
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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.siege import Blow
from evaluation.sciencebirds.codec import REQUESTS

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
WARM_UP = 300
"""Connections before anything is compared: buffers grow until the longest messages fit."""
MOST_GROWTH = 1.05
LAST_LINES, MOST_CHARACTERS = 5, 500
"""Last lines of a server's output that are kept, and characters of them that are shown."""
ROUND = 100
"""Connections in one blow."""
ABREAST = 8
"""Connections at a time."""
MOST_MESSAGES = 100
"""Messages on one connection."""
SENSE = 0.3
"""Share of valid messages; the others are random bytes."""
SAMPLE = ROOT / "examples" / "sciencebirds" / "sequences.xml"
COMMANDS = {
    "gvgai serve": ["gvgai", "serve", "--port", "0", "--sessions", "100000000"],
    "sciencebirds serve": ["sciencebirds", "serve", "--port", "0", "--config-meta", str(SAMPLE)],
}
WORDS = {
    "gvgai serve": (
        *(b"0#INIT_DONE#JSON\n", b"1#ACTION_LEFT\n", b"#", b"\n", b"-1#\n", b"0#START_DONE\n"),
    ),
    "sciencebirds serve": tuple(
        message.encode({name: 1 for name, _ in message.fields})
        for message in REQUESTS.values()
        if all(kind in ("u8", "u32", "i32", "f32") for _, kind in message.fields)
    ),
}
"""Valid messages to each server."""


def servers(seed: int, first: int = 0) -> Iterator[Blow]:
    """Fuzz both servers in turn, from try `first` on; one blow for every `ROUND` connections."""
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(ABREAST))
        running = {name: stack.enter_context(_running(words)) for name, words in COMMANDS.items()}
        before: dict[str, dict[str, int]] = {}
        for number in itertools.count(first):
            name = list(running)[number % len(running)]
            process, port, output = running[name]
            draws = (random.Random(f"{seed} {number} {index}") for index in range(ROUND))
            sent = sum(pool.map(partial(_connect, port, WORDS[name]), draws))
            label = f"nonsense to `jaxsim {name}`, messages"
            now = _usage(process.pid)
            if now is None:
                code, last = process.wait(), " ".join(map(str.strip, output))[-MOST_CHARACTERS:]
                yield Blow(label, sent, "failed", f"try {number}: ended with code {code}: {last}")
                return
            growth, outcome = "", "answered or hung up on"
            if (number - first) // len(running) * ROUND >= WARM_UP:
                growth = _growth(before.setdefault(name, now), now)
                outcome += "; memory, threads and descriptors flat"
            if growth:
                yield Blow(label, sent, "failed", f"try {number}: {growth}")
            else:
                yield Blow(label, sent, outcome)


@contextlib.contextmanager
def _running(words: list[str]) -> Iterator[tuple[subprocess.Popen[str], int, deque[str]]]:
    """Start a server in a separate process; yield it, its port, and its last lines of output."""
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
    """Keep reading a server's output, so that it never blocks; return the last lines."""
    lines: deque[str] = deque(maxlen=LAST_LINES)
    assert process.stdout
    threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True).start()
    return lines


def _connect(port: int, words: tuple[bytes, ...], draw: random.Random) -> int:
    """Connect, send some messages, most of them nonsense, and disconnect.

    Returns:
      Number of messages that were sent before the server hung up.
    """
    count = 0
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as stream:
        stream.settimeout(0.05)
        for _ in range(draw.randint(1, MOST_MESSAGES)):
            stream.sendall(draw.choice(words) if draw.random() < SENSE else _noise(draw))
            count += 1
            if draw.random() < 0.1:
                with contextlib.suppress(TimeoutError):
                    if not stream.recv(4096):
                        break
    return count


def _noise(draw: random.Random) -> bytes:
    return draw.randbytes(draw.choice((1, 2, 5, 17, 200)))


def _usage(pid: int) -> dict[str, int] | None:
    """Resident memory in KiB, threads and descriptors of a process; None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None
    matches = {key: re.search(rf"{key}:\s+(\d+)", status) for key in ("VmRSS", "Threads")}
    numbers = {key: int(match[1]) for key, match in matches.items() if match}
    return {**numbers, "descriptors": descriptors} if len(numbers) == len(matches) else None


def _growth(first: dict[str, int], now: dict[str, int]) -> str:
    """Which quantities have grown by more than is allowed; "" for none.

    A few more threads and descriptors are allowed: they may belong to open connections.
    """
    grown = [
        f"{key} from {first[key]} to {now[key]}"
        for key in first
        if now[key] > MOST_GROWTH * first[key] + (3 if key != "VmRSS" else 0)
    ]
    return ", ".join(grown)
