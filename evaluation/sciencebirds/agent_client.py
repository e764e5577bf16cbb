"""The client of the protocol, for agents in Python: one method a request.

    with AgentClient() as client:
        while client.get_game_state() != GameState.EVALUATION_TERMINATED:
            ...

The methods have the names that published agents call, which import it as `client.agent_client` (see
`jaxsim shims`).
"""

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from evaluation.addresses import check_port
from evaluation.json_types import JsonObject, JsonValue
from evaluation.sciencebirds.codec import BY_NAME, DIALECTS, NOTHING_LEFT, Message, Picture, Values
from evaluation.sciencebirds.codes import GameState

if TYPE_CHECKING:
    import numpy as np

Reply = TypeVar("Reply")
Vector = JsonObject
"""Ground truth: the feature vector of the level that is played, {} without one."""

MOST_FRAMES: Final = 300
"""Largest number of vectors of a `batch_ground_truth`."""


class Disconnected(ConnectionError):
    """There is no connection, or the server has refused or dropped this client."""


class Header(NamedTuple):
    """Limits and kind of the set that comes next; all zeros if none was announced."""

    time_limit: int  # s, 0 for none
    interaction_limit: int  # 0 for none
    levels: int  # 0 if it is not told
    attempts: int  # loads of each level, 0 for no limit
    mode: int  # 0 training, 1 testing
    order: int  # 0 unordered set, 1 sequence
    novelty_query: int  # 1 if `get_novelty_info` is answered

    @property
    def testing(self) -> bool:
        """Whether it is a test set."""
        return self.mode == 1


class AgentClient:
    """A connection to a harness, made by `connect_to_server` or by entering it as a context.

    An error in a request closes the connection, so that a late reply is not taken for that of the
    next request; `connect_to_server` then makes a new one.

    Args:
      host: address of the server.
      port: of the server.
      timeout: longest wait for a reply, s.
      dialect: "current", or "early" for the requests of the original up to version 0.3.6.

    Raises:
      ValueError: the port is out of range.
      OSError: from `connect_to_server`, no server listens there.
      Disconnected: from any request, there is no connection, or the server has another client or
        has closed the connection.
      TimeoutError: from any request, no reply within `timeout`.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 2004,
        *,
        timeout: float = 300.0,
        dialect: str = "current",
    ) -> None:
        check_port(int(port))
        self._address, self._timeout = (host, int(port)), timeout
        self._table = DIALECTS[dialect]
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        self.connect_to_server()
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect_from_server()

    # Connection -----------------------------------------------------------------------------

    def connect_to_server(self) -> None:
        """Connect, if that is not done yet."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def disconnect_from_server(self) -> None:
        """Close the connection; the evaluation waits for the next one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def request(self, name: str, **values: object) -> Values:
        """Send a request of the table and return the fields of its reply.

        Raises:
          ValueError: fields that the request does not have, or values out of range.
        """
        message = self._message(name)

        def read() -> Values:
            reply = message.read_reply(self._take)
            if message.reply and message.reply[0][1] == "u8":
                _check_refusal(next(iter(reply.values())))
            return reply

        return self._exchange(message.encode(values), read)

    def _message(self, name: str) -> Message:
        """The request of a name in this dialect."""
        message = BY_NAME[name]
        return self._table.get(message.code, message)

    def _exchange(self, request: bytes, read: Callable[[], Reply]) -> Reply:
        """Send a request and read its reply; close the connection on an error."""
        try:
            self._send(request)
            return read()
        except BaseException:
            self.disconnect_from_server()
            raise

    def _line(self) -> socket.socket:
        if self._socket is None:
            raise Disconnected("there is no connection; call connect_to_server() first")
        return self._socket

    def _send(self, data: bytes) -> None:
        try:
            self._line().sendall(data)
        except ConnectionError as error:
            if isinstance(error, Disconnected):
                raise
            raise Disconnected("the server has closed the connection") from error

    def _take(self, size: int) -> bytes:
        """Receive exactly `size` bytes."""
        parts = bytearray()
        while len(parts) < size:
            try:
                data = self._line().recv(min(size - len(parts), 65_536))
            except ConnectionResetError as error:
                raise Disconnected("the server has closed the connection") from error
            if not data:
                event = "refused this client" if parts == bytes([NOTHING_LEFT]) else "closed"
                raise Disconnected(f"the server has {event} after {len(parts)} bytes of a reply")
            parts += data
        return bytes(parts)

    # The evaluation -------------------------------------------------------------------------

    def configure(self, agent_id: int, mode: int = 1) -> tuple[int, int, int]:
        """Introduce the agent; return round, minutes and levels, zeros here."""
        reply = self.request("configure", agent_id=agent_id, mode=mode)
        return reply["round"], reply["minutes"], reply["levels"]

    def get_game_state(self) -> GameState:
        """State of the evaluation, which says what the agent has to do."""
        return GameState(self.request("state")["state"])

    def ready_for_new_set(self) -> Header:
        """Start the announced set; return its header."""
        return Header(**self.request("ready"))

    def report_novelty_likelihood(
        self,
        novelty_likelihood: float,
        non_novelty_likelihood: float,
        ids: Sequence[int] = (),
        novelty_level: int = 0,
        novelty_description: str = "",
    ) -> bool:
        """Report how likely it is that the levels hold novelty, and that they do not."""
        values: dict[str, object] = {
            "novel": novelty_likelihood,
            "non_novel": non_novelty_likelihood,
        }
        message = self._message("report_likelihood")
        if len(message.fields) > len(values):
            values |= {
                "ids": tuple(ids),
                "level": novelty_level,
                "description": novelty_description,
            }
        return bool(self.request("report_likelihood", **values)["accepted"])

    def report_novelty_description(self, novelty_description: str) -> bool:
        """Report a text on the novelty; False if there is no room left for it."""
        return bool(self.request("report_description", text=novelty_description)["accepted"])

    def get_novelty_info(self) -> int:
        """1 if the level is novel, 0 if not, -1 where that is not told."""
        return int(self.request("novelty_info")["novelty"])

    def get_novelty_hint(self, level: int = 0) -> JsonValue:
        """Hint on the novelty, decoded from JSON; an empty list if there is none."""
        return self.request("hint", level=level)["hint"]

    # Levels ---------------------------------------------------------------------------------

    def load_next_available_level(self) -> int:
        """Load the next level; return its number from 1, or 0 if there is none."""
        return int(self.request("load_next")["level"])

    def load_level(self, level: int) -> bool:
        """Load a level by its number, from 1; False if it is refused."""
        return bool(self.request("load_level", level=max(level, 1))["accepted"])

    def restart_level(self) -> bool:
        """Load the current level once more; False if it is refused."""
        return bool(self.request("restart")["accepted"])

    def get_number_of_levels(self) -> int:
        """Number of levels of the set, 0 if it is not told."""
        return int(self.request("number_of_levels")["levels"])

    def get_current_level(self) -> int:
        """Always 1; `load_next_available_level` returns a level's number."""
        return int(self.request("current_level")["level"])

    def get_current_score(self) -> int:
        """Score of the current level, 0 without one."""
        return int(self.request("score")["score"])

    def get_all_level_scores(self) -> tuple[int, ...]:
        """Scores of all levels; none during an evaluation."""
        return tuple(self.request("all_scores")["scores"])

    # Actions --------------------------------------------------------------------------------

    def shoot(self, x: int, y: int, t1: int = 0, t2: int = 0, polar: bool = False) -> bool:
        """Act; False if it is refused.

        Args:
          x: of the shot, or its length; the early dialect's point of the shot is sent as zeros.
          y: of the shot, or its angle in degrees.
          t1: without effect here.
          t2: without effect here.
          polar: whether length and angle are given.
        """
        return self._shot("shoot", x, y, t1, t2, polar)

    def fast_shoot(self, x: int, y: int, t1: int = 0, t2: int = 0, polar: bool = False) -> bool:
        """Act as `shoot` does; False if it is refused."""
        return self._shot("shoot_fast", x, y, t1, t2, polar)

    def _shot(self, name: str, x: int, y: int, t1: int, t2: int, polar: bool) -> bool:
        values = {"t1": t1, "t2": t2}
        if polar:
            name = name.replace("shoot", "shoot_polar")
            return bool(self.request(name, radius=x, angle=y, **values)["accepted"])
        early = "dx" in dict(self._message(name).fields)
        values |= {"fx": 0, "fy": 0, "dx": x, "dy": y} if early else {"x": x, "y": y}
        return bool(self.request(name, **values)["accepted"])

    def shoot_sequence(self, shots: Sequence[tuple[int, int]]) -> list[bool]:
        """Act up to 16 times; False for each one that is refused."""
        values = {"shots": [(x, y, 0, 0) for x, y in shots]}

        def read() -> list[bool]:
            answers = self._take(len(shots))
            for answer in answers:
                _check_refusal(answer)
            return [bool(answer) for answer in answers]

        return self._exchange(self._message("shoot_sequence").encode(values), read)

    def shoot_and_record_ground_truth(
        self, x: int, y: int, t1: int = 0, t2: int = 0, frequency: int = 1
    ) -> list[Vector]:
        """Act; return the vector after every `frequency` steps, or none if it is refused."""
        values = {"x": x, "y": y, "t1": t1, "t2": t2, "frequency": frequency}
        vectors: list[Vector] = self.request("shoot_and_record", **values)["vectors"]
        return vectors

    def batch_ground_truth(self, frequency: int = 1, frames: int = MOST_FRAMES) -> list[Vector]:
        """Vectors of the next frames; only one here, as time stands still between actions.

        Args:
          frequency: frames from one vector to the next.
          frames: number of them; only the first is sent.
        """
        vectors: list[Vector] = self.request("batch", frequency=frequency)["vectors"]
        return vectors[:frames]

    # Observations ---------------------------------------------------------------------------

    def get_ground_truth_without_screenshot(self) -> Vector:
        """Feature vector of the current level."""
        vector: Vector = self.request("ground_truth")["vector"]
        return vector

    def get_noisy_ground_truth_without_screenshot(self) -> Vector:
        """As `get_ground_truth_without_screenshot`: noise is a parameter of the task's sensors."""
        vector: Vector = self.request("noisy_ground_truth")["vector"]
        return vector

    def get_ground_truth_with_screenshot(self) -> "tuple[np.ndarray, Vector]":
        """Picture and feature vector of the current level."""
        return _picture_and_vector(self.request("ground_truth_with_screenshot"))

    def get_noisy_ground_truth_with_screenshot(self) -> "tuple[np.ndarray, Vector]":
        """As `get_ground_truth_with_screenshot`: noise is a parameter of the task's sensors."""
        return _picture_and_vector(self.request("noisy_ground_truth_with_screenshot"))

    def do_screenshot(self) -> "np.ndarray":
        """Picture of the current level, (H, W, 3) uint8, red first; 0 by 0 pixels without one."""
        return _image(self.request("screenshot")["picture"])

    def get_initial_state_screenshot(self) -> "np.ndarray":
        """Picture of the current level as it began, (H, W, 3) uint8."""
        return _image(self.request("initial_screenshot")["picture"])

    def fully_zoom_in(self) -> bool:
        """Do nothing; return whether a level is played."""
        return bool(self.request("zoom_in")["accepted"])

    def fully_zoom_out(self) -> bool:
        """Do nothing; return whether a level is played."""
        return bool(self.request("zoom_out")["accepted"])

    def set_game_simulation_speed(self, simulation_speed: int) -> bool:
        """Do nothing: time passes by actions."""
        return bool(self.request("set_speed", speed=simulation_speed)["accepted"])


def _check_refusal(answer: int) -> None:
    if answer == NOTHING_LEFT:
        raise Disconnected("the server has another client or stops")


def _picture_and_vector(reply: Values) -> "tuple[np.ndarray, Vector]":
    return _image(reply["picture"]), reply["vector"]


def _image(picture: Picture) -> "np.ndarray":
    import numpy as np  # imported here because only pictures need it

    pixels = np.frombuffer(picture.pixels, np.uint8)
    return pixels.reshape(picture.height, picture.width, 3)
