"""Servers that are sent nonsense, with their memory, threads and descriptors watched."""

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
"""Connections before anything is compared: buffers grow to what the longest messages take."""
MOST_GROWTH = 1.05
KEPT, LONGEST = 5, 500
"""Lines that a server has said last, and characters of them that are shown."""
ROUND = 100
"""Connections of a blow."""
ABREAST = 8
"""Connections at a time."""
MOST_MESSAGES = 100
"""Of a connection."""
SENSE = 0.3
"""Share of the messages that a client could send; the others are random bytes."""
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
"""What clients of each server send."""


def servers(seed: int, first: int = 0) -> Iterator[Blow]:
    """Fuzz both servers in turn, from a number of a try on; one blow a number of connections."""
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
            now = _used(process.pid)
            if now is None:
                code, last = process.wait(), " ".join(map(str.strip, output))[-LONGEST:]
                yield Blow(label, sent, "failed", f"try {number}: ended with code {code}: {last}")
                return
            grown, came = "", "answered or hung up on"
            if (number - first) // len(running) * ROUND >= WARM_UP:
                grown = _growth(before.setdefault(name, now), now)
                came += "; memory, threads and descriptors flat"
            if grown:
                yield Blow(label, sent, "failed", f"try {number}: {grown}")
            else:
                yield Blow(label, sent, came)


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


def _connect(port: int, words: tuple[bytes, ...], draw: random.Random) -> int:
    """Connect, send some messages of nonsense, and leave in some way.

    Returns:
      Number of messages that could be sent before the server hung up.
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
