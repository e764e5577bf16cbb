"""Messages of a connection, received piece by piece, so that a part of one does not block."""

import os
import struct
from multiprocessing.connection import Connection
from typing import Final

_SIZE: Final = struct.Struct("!i")
"""Size of a message, before it; of larger ones than 2 GiB it is negative."""
PIECE: Final = 1 << 16
"""Most bytes that are received at once."""


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
