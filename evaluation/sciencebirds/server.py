"""TCP server of a harness, for one client at a time.

One thread waits for all sockets and never blocks on one. A client is disconnected if it sends an
invalid request, takes too long to complete one, or does not take its replies. The evaluation stays
as it was, and the next client continues it.
"""

import contextlib
import selectors
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from evaluation.clock import Clock
from evaluation.sciencebirds.codec import NOTHING_LEFT, REQUESTS, Decoder, Message, ProtocolError
from evaluation.sciencebirds.harness import Harness

HOST: Final = "127.0.0.1"
PORT: Final = 2004
IDLE_LIMIT: Final = 300.0
"""Time that a client may take between requests, and for taking a whole reply, s."""
REQUEST_LIMIT: Final = 10.0
"""Time from the first byte of a request to its last, s; a shorter layout is never complete."""
PIECE: Final = 65_536
"""Most bytes that are received at once."""
BURST: Final = 64
"""Most requests that are answered before other sockets are looked at."""
POLL: Final = 0.05
"""Time between two looks at the clock while a client is connected, s."""

Note = Callable[[str], None]


@dataclass
class _Client:
    """One connection.

    Attributes:
      socket: never blocks.
      decoder: holds received bytes that are not answered yet.
      deadline: of the next request, or of the reply that is being taken, on the server's clock, s.
      request_deadline: for the rest of an incomplete request; None if there is none.
      unsent: bytes of replies.
      more: whether the decoder may hold another request.
    """

    socket: socket.socket
    decoder: Decoder
    deadline: float
    request_deadline: float | None = None
    unsent: bytearray = field(default_factory=bytearray)
    more: bool = False


def listen(host: str = HOST, port: int = PORT) -> socket.socket:
    """Open a port for a server.

    Args:
      host: address; any other than loopback admits other machines.
      port: 0 for any free one.

    Raises:
      ValueError: the port is taken, or the address is not of this machine.
    """
    try:
        return socket.create_server((host, port), backlog=16)
    except (OSError, OverflowError) as error:
        raise ValueError(f"cannot listen on {host}, port {port}: {error}; name others") from error


class EvaluationServer:
    """A port on which one evaluation is run.

    Args:
      harness: the evaluation.
      listener: from `listen`; the server closes it.
      clock: measures the clients' time.
      idle_limit: time that a client may take between requests and for a whole reply, s.
      request_limit: time that a client may take for a request that it has begun, s.
      table: requests by code; see `codec.DIALECTS`.
      note: called with a line of text on what happens.
    """

    def __init__(
        self,
        harness: Harness,
        listener: socket.socket,
        *,
        clock: Clock,
        idle_limit: float = IDLE_LIMIT,
        request_limit: float = REQUEST_LIMIT,
        table: Mapping[int, Message] = REQUESTS,
        note: Note = lambda text: None,
    ) -> None:
        self._harness, self._clock, self._table, self._note = harness, clock, table, note
        self._idle_limit, self._request_limit = idle_limit, min(request_limit, idle_limit)
        self._listener = listener
        self._listener.setblocking(False)
        self._wake, self._waker = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._client: _Client | None = None
        self._stopped = self._served = False

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def stop(self) -> None:
        """Make `serve` return; from any thread."""
        with contextlib.suppress(OSError):  # it has returned already
            self._waker.send(b"\0")

    def serve(self) -> None:
        """Serve clients until the evaluation has ended and its client is gone, or until `stop`.

        Raises:
          OSError: a file of results cannot be written.
        """
        try:
            while not (self._stopped or self._finished()):
                self._turn()
        finally:
            self.close()

    def close(self) -> None:
        """Close everything; a level that is being played is written down as such."""
        self._drop("the server stops")
        self._selector.close()
        for each in (self._listener, self._wake, self._waker):
            each.close()
        self._harness.close()

    def _finished(self) -> bool:
        return self._served and self._client is None and self._harness.terminated

    def _turn(self) -> None:
        """Wait for sockets and handle their events."""
        client = self._client
        pause = None if client is None else 0.0 if client.more and not client.unsent else POLL
        # The client comes before new connections: it may have left to make room for them.
        ready = self._selector.select(pause)
        for key, _ in sorted(ready, key=lambda item: item[0].fileobj is self._listener):
            if key.fileobj is self._wake:
                self._stopped = True
            elif key.fileobj is self._listener:
                self._accept()
            elif self._client is not None:
                self._exchange(self._client)
        client = self._client
        if client is not None and client.more and not client.unsent:
            self._exchange(client)
        if self._client is not None:
            self._check_time(self._client)

    def _check_time(self, client: _Client) -> None:
        """Disconnect a client that takes too long."""
        now = self._clock.now()
        if (
            client.request_deadline is not None
            and not client.unsent
            and now >= client.request_deadline
        ):
            self._drop(f"{self._request_limit:g} s of {client.decoder.waiting()}")
        elif now >= client.deadline:
            self._drop(f"no request, or a reply not taken, for {self._idle_limit:g} s")

    def _accept(self) -> None:
        """Accept a client, or refuse it while there is another."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        connection.setblocking(False)
        if self._client is not None and _has_left(self._client.socket):
            self._drop("the client has left")
        if self._client is not None:
            self._note("refused a second client")
            _refuse(connection)
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ)
        deadline = self._clock.now() + self._idle_limit
        self._client, self._served = _Client(connection, Decoder(self._table), deadline), True
        self._note("a client is connected")

    def _exchange(self, client: _Client) -> None:
        """Make progress once: send unsent output, else answer buffered requests, else receive."""
        try:
            if client.unsent:
                self._send(client)
                return
            if not client.more:
                data = client.socket.recv(PIECE)
                if not data:
                    self._drop("the client has left")
                    return
                client.decoder.feed(data)
            self._answer(client)
        except (BlockingIOError, InterruptedError):
            return
        except ProtocolError as error:
            self._drop(str(error))
        except ConnectionError as error:
            self._drop(f"the connection is lost: {error.strerror}")

    def _answer(self, client: _Client) -> None:
        """Answer requests while replies are taken at once."""
        for _ in range(BURST):
            request = client.decoder.next()
            client.more = request is not None
            if request is None:
                if not len(client.decoder):
                    client.request_deadline = None
                elif client.request_deadline is None:
                    client.request_deadline = self._clock.now() + self._request_limit
                return
            client.request_deadline = None
            reply = self._harness.answer(request)
            if reply is None:
                self._note(f"{request.message.name} is not answered, as in the original")
                continue
            client.deadline = self._clock.now() + self._idle_limit
            client.unsent += reply
            if reply:
                self._send(client)
            if client.unsent:
                return

    def _send(self, client: _Client) -> None:
        """Send what the client takes; resume reading when it has taken all."""
        try:
            sent = client.socket.send(client.unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        del client.unsent[:sent]
        events = selectors.EVENT_WRITE if client.unsent else selectors.EVENT_READ
        self._selector.modify(client.socket, events)

    def _drop(self, reason: str) -> None:
        """Close the connection of the client, if there is one."""
        if self._client is None:
            return
        self._note(f"disconnected: {reason}")
        self._selector.unregister(self._client.socket)
        self._client.socket.close()
        self._client = None


def _has_left(connection: socket.socket) -> bool:
    """Whether a client has closed its connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _refuse(connection: socket.socket) -> None:
    """Tell a client that it is not served, and close."""
    with connection:
        try:
            connection.send(bytes([NOTHING_LEFT]))
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has left already
