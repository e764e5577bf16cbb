"""Messages of a connection, sent and received piece by piece, so that none of them blocks."""

import os
import selectors
import struct
from multiprocessing.connection import Connection
from typing import Final

_SIZE: Final = struct.Struct("!i")
"""Size of a message, before it; of larger ones than 2 GiB it is negative."""
_LARGE_SIZE: Final = struct.Struct("!iQ")
"""A negative number, and the size of a message that is larger than 2 GiB."""
PIECE: Final = 1 << 16
"""Most bytes that are sent or received at once."""


class CallWriter:
    """Sends what the other end of a connection receives by `recv_bytes`.

    Args:
      connection: to write to; nothing else may write to it. It no longer blocks.
    """

    def __init__(self, connection: Connection) -> None:
        self._descriptor = connection.fileno()
        self._waiting: list[memoryview] = []
        os.set_blocking(self._descriptor, False)

    def put(self, message: bytes) -> None:
        """Add a message, which `sent` sends."""
        small = len(message) < 1 << 31
        size = _SIZE.pack(len(message)) if small else _LARGE_SIZE.pack(-1, len(message))
        self._waiting += [memoryview(size), memoryview(message)]

    def sent(self, seconds: float) -> bool:
        """Send what fits, and wait at most so long for room; return whether all is sent.

        Raises:
          OSError: the other end has closed the connection.
        """
        while self._waiting:
            try:
                count = os.write(self._descriptor, self._waiting[0][:PIECE])
            except BlockingIOError:
                self._await_room(seconds)
                return False
            self._waiting[0] = self._waiting[0][count:]
            if not self._waiting[0]:
                del self._waiting[0]
        return True

    def _await_room(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_WRITE)
            selector.select(seconds)


class AnswerReader:
    """What the other end of a connection sends by `send_bytes`.

    Args:
      connection: to read from; nothing else may read from it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received = bytearray()
        self._ended = False

    def arrives(self, seconds: float) -> bool:
        """Wait at most so long for more; return whether a message is complete, or none comes."""
        if not self._complete and self._connection.poll(seconds):
            try:
                piece = os.read(self._connection.fileno(), PIECE)
            except ConnectionError:
                piece = b""
            self._received += piece
            self._ended = not piece
        return self._complete

    def next(self) -> bytes:
        """Return the next message, once it has arrived.

        Raises:
          EOFError: the connection has ended before.
          ValueError: the message is larger than 2 GiB.
        """
        if self._size is None or len(self._received) < _SIZE.size + self._size:
            raise EOFError
        if self._size < 0:
            raise ValueError("it is larger than 2 GiB")
        end = _SIZE.size + self._size
        message = bytes(self._received[_SIZE.size : end])
        del self._received[:end]
        return message

    @property
    def _size(self) -> int | None:
        """Size of the next message; None before it is known."""
        if len(self._received) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(self._received)
        return int(size)

    @property
    def _complete(self) -> bool:
        """Whether `next` need not wait."""
        size = self._size
        return self._ended or (size is not None and len(self._received) >= _SIZE.size + size)
