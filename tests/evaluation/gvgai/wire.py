"""A server in a thread, and the raw other end of its socket."""

import json
import socket
import threading
from contextlib import contextmanager
from typing import Any

from evaluation.clock import ScriptedClock
from evaluation.gvgai.results import Announcer, LevelResult
from evaluation.gvgai.server import TrackServer
from evaluation.gvgai.track import Track
from evaluation.gvgai.trial import TrackLifetime

PATIENCE = 20.0  # s, after which a test fails rather than hangs


class Peer:
    """Raw lines to and from a server."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.file = self.socket.makefile("rb")

    def receive(self) -> tuple[int, str]:
        """Number and payload of the next message; (-1, "") when the server has hung up."""
        try:
            line = self.file.readline()
        except ConnectionError:
            return -1, ""
        if not line:
            return -1, ""
        number, _, payload = line.decode().rstrip("\n").partition("#")
        return int(number), payload

    def send(self, content: bytes | str) -> None:
        self.socket.sendall(content.encode() if isinstance(content, str) else content)

    def answer(self, number: int, text: str) -> None:
        self.send(f"{number}#{text}\n")

    def exchange(self, reply: Any) -> tuple[int, str]:
        """Receive a message and answer it with `reply`, a text or a function of the payload."""
        number, payload = self.receive()
        text = reply(payload) if callable(reply) else reply
        if number >= 0 and text is not None:
            self.answer(number, text)
        return number, payload

    def until(self, phase: str) -> int:
        """Answer until a message of a phase has come; return its number."""
        while True:
            number, payload = self.receive()
            current = phase_of(payload)
            if current == phase or number < 0:
                return number
            self.answer(number, legal(current))

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def phase_of(payload: str) -> str:
    """START, INIT, ACT, END, ABORT or FINISH."""
    return json.loads(payload)["phase"] if payload.startswith("{") else payload


def legal(phase: str) -> str:
    """A reply by which the track comes to its end soon."""
    return {"START": "START_DONE", "INIT": "INIT_DONE", "ACT": "ABORT"}.get(phase, "0")


class Served:
    """A server in a thread, with what it did."""

    def __init__(self, server: TrackServer) -> None:
        self.server = server
        self.trials: list[TrackLifetime] = []
        self.results: list[LevelResult] = []
        self.lines: list[str] = []
        self.served = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        announcer = Announcer(self.lines.append, self.results.append)
        for trial in self.server.serve(None, announcer):
            self.trials.append(trial)
            self.served.release()

    def connect(self) -> Peer:
        return Peer(self.server.address)

    def next_trial(self, seconds: float = PATIENCE) -> TrackLifetime:
        """The next trial that comes to its end."""
        assert self.served.acquire(timeout=seconds), "the server is still busy"
        return self.trials[-1]

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        self.server.close()


@contextmanager
def serving(track: Track, **arguments: Any) -> Any:
    """Serve a track in a thread until the end of the block."""
    arguments.setdefault("clock", ScriptedClock())
    served = Served(TrackServer(track, port=0, **arguments))
    try:
        yield served
    finally:
        served.stop()
