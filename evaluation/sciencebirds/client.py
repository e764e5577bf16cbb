"""A client of the protocol, for agents in Python: one method a request.

    with Client() as client:
        while client.state() != State.EVALUATION_TERMINATED:
            ...

It needs nothing but the standard library.
"""

import socket
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from evaluation.sciencebirds.codec import BY_NAME, DIALECTS, NOTHING_LEFT, Picture
from evaluation.sciencebirds.codes import State


class Disconnected(ConnectionError):
    """The server does not serve this client, or not any more."""


class Header(NamedTuple):
    """Limits and kind of the set that comes next; all zeros if none was announced."""

    time_limit: int  # s, 0 for none
    interaction_limit: int  # 0 for none
    levels: int  # 0 if it is not told
    attempts: int  # loads of each level, 0 for no limit
    mode: int  # 0 training, 1 testing
    order: int  # 0 unordered set, 1 sequence
    novelty_query: int  # 1 if `novelty_info` is answered

    @property
    def testing(self) -> bool:
        """Whether it is a test set."""
        return self.mode == 1


class Client:
    """A connection to a harness.

    Args:
      host: address of the server.
      port: of the server.
      timeout: longest wait for a reply, s.
      dialect: "current", or "early" for the requests of the original up to version 0.3.6.

    Raises:
      OSError: nobody listens there.
      Disconnected: from any request, the server has another client or has closed the line.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 2004,
        *,
        timeout: float = 300.0,
        dialect: str = "current",
    ) -> None:
        self._table = DIALECTS[dialect]
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the evaluation waits for the next one."""
        self._socket.close()

    def request(self, name: str, **values: Any) -> dict[str, Any]:
        """Send a request of the table and return the fields of its reply.

        Raises:
          ValueError: fields that the request does not have, or values out of range.
        """
        message = self._table[BY_NAME[name].code]
        self._send(message.encode(values))
        reply = message.read_reply(self._take)
        if next(iter(reply.values()), None) == NOTHING_LEFT and message.reply[0][1] == "u8":
            raise Disconnected("the server has another client or stops")
        return reply

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except ConnectionError as error:
            raise Disconnected("the server has closed the connection") from error

    def _take(self, size: int) -> bytes:
        """Receive exactly so many bytes."""
        parts = bytearray()
        while len(parts) < size:
            try:
                data = self._socket.recv(min(size - len(parts), 65_536))
            except ConnectionError as error:
                raise Disconnected("the server has closed the connection") from error
            if not data:
                said = "refused this client" if parts == bytes([NOTHING_LEFT]) else "closed"
                raise Disconnected(f"the server has {said} after {len(parts)} bytes of a reply")
            parts += data
        return bytes(parts)

    def configure(self, agent_id: int, mode: int = 1) -> tuple[int, int, int]:
        """Introduce the agent; return round, minutes and levels, zeros here."""
        reply = self.request("configure", agent_id=agent_id, mode=mode)
        return reply["round"], reply["minutes"], reply["levels"]

    def state(self) -> State:
        """What is going on, and hence what is to be done."""
        return State(self.request("state")["state"])

    def ready(self) -> Header:
        """Go on with the set that was announced."""
        return Header(**self.request("ready"))

    def load_next(self) -> int:
        """Load the level that comes next; its number from 1, or 0 if there is none."""
        return int(self.request("load_next")["level"])

    def load_level(self, level: int) -> bool:
        """Load a level by its number, from 1; False if it is refused."""
        return bool(self.request("load_level", level=max(level, 1))["accepted"])

    def restart(self) -> bool:
        """Load the current level once more; False if it is refused."""
        return bool(self.request("restart")["accepted"])

    def shoot(self, x: int, y: int, t1: int = 0, t2: int = 0) -> bool:
        """Act; False if it is refused. The early dialect's other numbers are sent as zeros."""
        values = {"t1": t1, "t2": t2}
        early = "dx" in dict(self._table[BY_NAME["shoot"].code].fields)
        values |= {"fx": 0, "fy": 0, "dx": x, "dy": y} if early else {"x": x, "y": y}
        return bool(self.request("shoot", **values)["accepted"])

    def shoot_sequence(self, shots: Sequence[tuple[int, int]]) -> list[bool]:
        """Act up to 16 times; False for each one that is refused."""
        message = BY_NAME["shoot_sequence"]
        self._send(message.encode({"shots": [(x, y, 0, 0) for x, y in shots]}))
        return [bool(byte) for byte in self._take(len(shots))]

    def score(self) -> int:
        """Score of the current level, 0 without one."""
        return int(self.request("score")["score"])

    def ground_truth(self) -> dict[str, Any]:
        """Feature vector of the current level, {} without one."""
        vector: dict[str, Any] = self.request("ground_truth")["vector"]
        return vector

    def screenshot(self) -> Picture:
        """Picture of the current level, of no pixels without one."""
        picture: Picture = self.request("screenshot")["picture"]
        return picture

    def report_likelihood(
        self,
        novel: float,
        non_novel: float,
        ids: Sequence[int] = (),
        level: int = 0,
        description: str = "",
    ) -> bool:
        """Report how likely it is that the levels hold novelty, and that they do not."""
        values: dict[str, Any] = {"novel": novel, "non_novel": non_novel}
        message = self._table[BY_NAME["report_likelihood"].code]
        if len(message.fields) > len(values):
            values |= {"ids": tuple(ids), "level": level, "description": description}
        return bool(self.request("report_likelihood", **values)["accepted"])

    def report_description(self, text: str) -> bool:
        """Report whatever else there is to say; False if there is no room left for it."""
        return bool(self.request("report_description", text=text)["accepted"])

    def novelty_info(self) -> int:
        """1 if the level is novel, 0 if not, -1 where that is not told."""
        return int(self.request("novelty_info")["novelty"])
