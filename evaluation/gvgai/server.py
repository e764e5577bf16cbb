"""Server of the track at a socket, for clients in any language.

It serves one client at a time. Another one that connects meanwhile is sent FINISH, upon which
clients of the framework stop, and is disconnected. A client is also disconnected if it sends too
long a line, does not read, or lets the time for a reply pass; the levels it has played count.
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator

from evaluation.addresses import check_port
from evaluation.clock import Clock, SystemClock
from evaluation.closing import Closing
from evaluation.gvgai import protocol
from evaluation.gvgai.phases import Call
from evaluation.gvgai.protocol import ClientLine, LineBuffer
from evaluation.gvgai.results import Announcer
from evaluation.gvgai.track import Track
from evaluation.gvgai.trial import TrackLifetime, check, warm_up

LOOPBACK = "127.0.0.1"
TRANSPORT_SECONDS = 5.0
"""Time for a message and its reply to travel, on top of the agent's own limit, s."""
LOOK_SECONDS = 0.25
"""Time between two looks at the clock while nothing arrives, s."""
DRAIN_SECONDS = 0.25
"""Time for a client to close its end after ours is closed, s."""
CHUNK = 65_536  # bytes read at a time


class ClientGone(Exception):
    """The other end has closed the connection, is silent or sends too long a line."""


class ClientLeft(ClientGone):
    """The other end has closed the connection."""


class Connection:
    """Lines to and from a socket, with bounded buffers.

    Args:
      stream: a connected socket; closed by `close`.
      clock: measures how long the other end takes.
      longest: bytes of a line that is received.
    """

    def __init__(self, stream: socket.socket, clock: Clock, longest: int) -> None:
        self._stream, self._clock = stream, clock
        self._buffer, self._lines = LineBuffer(longest), list[bytes]()
        self._selector = selectors.DefaultSelector()
        self._selector.register(stream, selectors.EVENT_READ)
        stream.setblocking(False)

    def watch(self, listener: socket.socket, visitor: Callable[[], None]) -> None:
        """Call `visitor` when another client connects during `receive`."""
        self._selector.register(listener, selectors.EVENT_READ, visitor)

    def send(self, line: bytes, seconds: float) -> None:
        """Send a line.

        Raises:
          ClientGone: the line is not taken completely within `seconds`.
        """
        deadline = self._clock.now() + seconds
        rest = memoryview(line)
        while rest:
            remaining = deadline - self._clock.now()
            if remaining <= 0:
                raise ClientGone(f"a message was not taken within {seconds:g} s")
            try:
                rest = rest[self._stream.send(rest) :]
            except BlockingIOError:
                self._wait_for_room(min(remaining, LOOK_SECONDS))
            except OSError as error:
                raise ClientLeft(f"a message was not taken: {error}") from error

    def _wait_for_room(self, seconds: float) -> None:
        """Wait until the socket takes data, or for `seconds`."""
        with selectors.DefaultSelector() as room:
            room.register(self._stream, selectors.EVENT_WRITE)
            room.select(seconds)

    def receive(self, seconds: float) -> bytes:
        """Return the next line, without its end.

        Raises:
          ClientGone: there is none within `seconds`, it is too long, or the connection is closed.
        """
        deadline = self._clock.now() + seconds
        while not self._lines:
            remaining = deadline - self._clock.now()
            if remaining <= 0:
                raise ClientGone(f"no reply within {seconds:g} s")
            for key, _ in self._selector.select(min(remaining, LOOK_SECONDS)):
                if key.data:
                    key.data()
                else:
                    self._read()
        return self._lines.pop(0)

    def close(self) -> None:
        """Close both directions, after a time for the other end to read what was sent."""
        self._selector.close()
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)
            self._stream.settimeout(DRAIN_SECONDS)
            self._stream.recv(CHUNK)
        self._stream.close()

    def _read(self) -> None:
        try:
            data = self._stream.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise ClientLeft(f"the connection broke: {error}") from error
        if not data:
            raise ClientLeft("the other end closed the connection")
        try:
            self._lines += self._buffer.feed(data)
        except protocol.TooLong as error:
            raise ClientGone(str(error)) from error


class TrackServer(Closing):
    """Waits for clients and lets each play the track.

    Listens as soon as it is made; use it as a context, or call `close`.

    Args:
      track: levels and rules.
      host: address to listen at; by default other machines cannot reach it.
      port: to listen at; 0 for a free one.
      warn: called with a line of text about clients that are refused or disconnected.
      clock: measures clients.
      transport_seconds: time for a message and its reply to travel, s.
      seed: root of all randomness, from 0 to 2^32 - 1.
      first_lifetime: number of the first client's lifetime; the next ones count on.

    Attributes:
      trial: of the present or the last client; None while the next one is awaited.

    Raises:
      ValueError: a number out of bounds.
      OSError: the address cannot be used.
    """

    def __init__(
        self,
        track: Track,
        *,
        host: str = LOOPBACK,
        port: int = protocol.PORT,
        warn: Callable[[str], None] | None = None,
        clock: Clock | None = None,
        transport_seconds: float = TRANSPORT_SECONDS,
        seed: int = 0,
        first_lifetime: int = 0,
    ) -> None:
        check_port(port, least=0)
        if not 0 < transport_seconds <= 3600:
            raise ValueError(
                f"transport_seconds is {transport_seconds}; it must be above 0 and up to 3600"
            )
        check(track, seed, first_lifetime)
        self._track, self._clock = track, clock or SystemClock()
        self._warn = warn or (lambda line: None)
        self._transport = transport_seconds
        self._seed, self._lifetime = seed, first_lifetime
        self.trial: TrackLifetime | None = None
        self._stop = threading.Event()
        self._listener = _listen(host, port)
        # A client that comes while this compiles waits for START, and its time begins with that.
        warm_up(track)

    @property
    def address(self) -> tuple[str, int]:
        """Address and port at which it listens."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def serve(
        self, sessions: int | None = 1, announcer: Announcer | None = None
    ) -> Iterator[TrackLifetime]:
        """Wait for clients, one after the other; yield the trial of each.

        A client that leaves before it has answered START, as a check of the port does, has no
        trial and is not counted.

        Args:
          sessions: number of clients; None for any number, until `stop`.
          announcer: called with results and phases.
        """
        served = 0
        while not self._stop.is_set() and (sessions is None or served < sessions):
            self.trial = None
            stream = self._next_client()
            trial = None if stream is None else self._play(stream, announcer)
            if trial is not None:
                yield trial
                served += 1

    def stop(self) -> None:
        """Let `serve` end after the client that plays, if any; from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _next_client(self) -> socket.socket | None:
        """Accept a client, or return None after a short while."""
        self._listener.settimeout(LOOK_SECONDS)
        try:
            return self._listener.accept()[0]
        except OSError:  # no client, or it is gone again
            return None

    def _play(self, stream: socket.socket, announcer: Announcer | None) -> TrackLifetime | None:
        """Let a client play the track; None if it leaves before it has answered START."""
        connection = Connection(stream, self._clock, protocol.LONGEST_REPLY)
        connection.watch(self._listener, self._refuse)
        self.trial = trial = TrackLifetime(
            self._track,
            self._clock,
            announcer,
            seed=self._seed,
            lifetime=self._lifetime,
            agent="client",
        )
        try:
            self._converse(connection, trial)
        except ClientGone as gone:
            if isinstance(gone, ClientLeft) and trial.call == Call.START:
                self._warn("a client that left before it answered START is not counted")
                return None
            self._warn(f"client of lifetime {self._lifetime} hung up on: {gone}")
            trial.hang_up(str(gone))
        finally:
            connection.close()
        self._lifetime += 1
        return trial

    def _converse(self, connection: Connection, trial: TrackLifetime) -> None:
        """Send every message and take the reply to it, up to FINISH."""
        number = 0
        while trial.waiting:
            limit = trial.limit()
            start = self._clock.now()
            connection.send(protocol.message(number, trial.payload), self._transport)
            reply = self._reply(connection, number, limit + self._transport)
            trial.reply(reply.text, reply.form, seconds=self._clock.now() - start)
            number += 1
        if trial.payload == protocol.FINISH and not trial.reason:
            connection.send(protocol.message(number, protocol.FINISH), self._transport)

    def _reply(self, connection: Connection, number: int, seconds: float) -> ClientLine:
        """Wait for the reply to one message; everything else that arrives is ignored."""
        deadline = self._clock.now() + seconds
        warned = False
        while True:
            remaining = deadline - self._clock.now()
            if remaining <= 0:
                raise ClientGone(f"no reply to message {number} within {seconds:g} s")
            reply = protocol.read_reply(connection.receive(remaining))
            if reply is not None and reply.number == number:
                return reply
            if reply is not None and reply.number > number and not warned:
                self._warn(f"a reply to message {reply.number} before it was sent is ignored")
                warned = True

    def _refuse(self) -> None:
        """Turn away a client that comes while another one plays."""
        with contextlib.suppress(OSError):
            other, _ = self._listener.accept()
            with other:
                other.setblocking(False)
                other.sendall(protocol.message(0, protocol.FINISH))
                other.shutdown(socket.SHUT_WR)
            self._warn("another client was turned away: one plays already")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)
    listener.settimeout(LOOK_SECONDS)
    return listener
