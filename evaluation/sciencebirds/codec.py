"""Codec of the protocol between agent and harness: one table for both directions.

Numbers are big-endian. Messages are not framed: the first byte of a request is its code, and the
fields of the table follow. A client sends a request and waits for the reply.

`REQUESTS` is the table. A field's kind is a number (u8, u32, i32, f32), text or JSON after its
length, or several values of a kind after their number. `Decoder` finds requests in a stream of
bytes; it refuses lengths that no agent needs before it stores anything.
"""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from evaluation.json_types import JsonValue

MAX_TEXT: Final = 4 * 2**20
"""Longest text of a request, bytes."""
MAX_IDS: Final = 65_536
"""Most object ids of a likelihood."""
MAX_SHOTS: Final = 16
"""Most shots of a sequence."""
MAX_GROUPS: Final = 1024
"""Most likelihoods of a hierarchy."""
MAX_REPLY: Final = 64 * 2**20
"""Longest part of a reply that a client takes, bytes."""

TRAILER: Final = b" " * 5
"""Padding after each ground truth: public Python clients cut off five bytes before they parse it.

JSON ignores trailing spaces, so clients that cut nothing read the same.
"""

NOTHING_LEFT: Final = 0xFF
"""First byte to a client that is not served: there is another client, or the server stops."""

Read = Callable[[int], bytes]
"""Reads the given number of bytes."""

Values = Mapping[str, Any]
"""Fields of a request or a reply by name."""


class ProtocolError(ValueError):
    """Bytes that are not a message; the bytes after them cannot be decoded."""


class FieldKind(NamedTuple):
    """How a field is read and written.

    Attributes:
      layout: in words.
      read: takes a value from bytes.
      write: turns a value into bytes.
    """

    layout: str
    read: Callable[[Read], object]
    write: Callable[[Any], bytes]


def _number(code: str, layout: str) -> FieldKind:
    form = struct.Struct(f">{code}")

    def read(take: Read) -> float:
        return form.unpack(take(form.size))[0]

    return FieldKind(layout, read, form.pack)


def _count(take: Read, form: str, most: int, what: str) -> int:
    count: int = struct.unpack(form, take(4))[0]
    if not 0 <= count <= most:
        raise ProtocolError(f"{count} {what}; at most {most} are taken")
    return count


def _text(form: str, layout: str, most: int) -> FieldKind:
    def read(take: Read) -> str:
        return take(_count(take, form, most, "bytes of text")).decode(errors="backslashreplace")

    def write(value: str) -> bytes:
        data = value.encode(errors="replace")
        return struct.pack(form, len(data)) + data

    return FieldKind(layout, read, write)


def _several(form: str, code: str, size: int, most: int, layout: str) -> FieldKind:
    def read(take: Read) -> tuple[float, ...]:
        count = _count(take, form, most, "values")
        return struct.unpack(f">{count}{code}", take(count * size))

    def write(values: Sequence[float]) -> bytes:
        return struct.pack(form, len(values)) + struct.pack(f">{len(values)}{code}", *values)

    return FieldKind(layout, read, write)


def _read_shots(take: Read) -> tuple[tuple[int, ...], ...]:
    count = _count(take, ">i", MAX_SHOTS, "shots")
    numbers = struct.unpack(f">{4 * count}i", take(16 * count))
    return tuple(numbers[i : i + 4] for i in range(0, len(numbers), 4))


def _write_shots(shots: Sequence[Sequence[int]]) -> bytes:
    return struct.pack(">i", len(shots)) + b"".join(struct.pack(">4i", *shot) for shot in shots)


def _read_json(take: Read) -> JsonValue:
    return json.loads(take(_count(take, ">I", MAX_REPLY, "bytes of JSON")))


def _write_json(value: JsonValue) -> bytes:
    data = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return struct.pack(">I", len(data)) + data


def _write_truth(value: JsonValue) -> bytes:
    data = json.dumps(value, allow_nan=False, separators=(",", ":")).encode() + TRAILER
    return struct.pack(">I", len(data)) + data


def _read_truths(take: Read) -> list[JsonValue]:
    return [_read_json(take) for _ in range(_count(take, ">I", MAX_TEXT, "documents"))]


def _write_truths(values: Sequence[JsonValue]) -> bytes:
    return struct.pack(">I", len(values)) + b"".join(map(_write_truth, values))


class Picture(NamedTuple):
    """A picture as it is sent.

    Attributes:
      width: pixels.
      height: pixels.
      pixels: 3 width height bytes: red, green and blue of each pixel, row by row from the top.
    """

    width: int
    height: int
    pixels: bytes


NO_PICTURE: Final = Picture(0, 0, b"")


def _read_picture(take: Read) -> Picture:
    width, height = struct.unpack(">2I", take(8))
    if 3 * width * height > MAX_REPLY:
        raise ProtocolError(f"a picture of {width} by {height} pixels is too large")
    return Picture(width, height, take(3 * width * height))


def _write_picture(picture: Picture) -> bytes:
    return struct.pack(">2I", picture.width, picture.height) + picture.pixels


def _read_groups(take: Read) -> tuple[float, ...]:
    # The code was the first byte of the number.
    count = int.from_bytes(take(3), "big")
    if count > MAX_GROUPS:
        raise ProtocolError(f"{count} likelihoods; at most {MAX_GROUPS} are taken")
    return struct.unpack(f">{count}f", take(4 * count))


def _write_groups(values: Sequence[float]) -> bytes:
    return len(values).to_bytes(3, "big") + struct.pack(f">{len(values)}f", *values)


def _read_answers(take: Read) -> bytes:
    raise ProtocolError("the answer must have one byte per shot of the request")


KINDS: Final[dict[str, FieldKind]] = {
    "u8": _number("B", "u8"),
    "u32": _number("I", "u32"),
    "i32": _number("i", "i32"),
    "f32": _number("f", "f32"),
    "text": _text(">I", "u32 length, bytes of UTF-8", MAX_TEXT),
    "signed text": _text(">i", "i32 length, bytes of UTF-8", MAX_TEXT),
    "ids": _several(">i", "i", 4, MAX_IDS, "i32 number, as many i32"),
    "scores": _several(">I", "I", 4, MAX_IDS, "u32 number, as many u32"),
    "shots": FieldKind("i32 number, for each i32 x, y, t1, t2", _read_shots, _write_shots),
    "groups": FieldKind("u24 number, as many f32", _read_groups, _write_groups),
    "json": FieldKind("u32 length, JSON", _read_json, _write_json),
    "truth": FieldKind("u32 length, JSON, five spaces", _read_json, _write_truth),
    "truths": FieldKind(
        "u32 number, for each u32 length, JSON, five spaces", _read_truths, _write_truths
    ),
    "rest": FieldKind(
        "u24", lambda take: int.from_bytes(take(3), "big"), lambda n: n.to_bytes(3, "big")
    ),
    "picture": FieldKind(
        "u32 width, u32 height, 3 width height bytes", _read_picture, _write_picture
    ),
    "answers": FieldKind("one u8 for each shot", _read_answers, bytes),
}

Fields = tuple[tuple[str, str], ...]
"""Names with their kinds."""


@dataclass(frozen=True)
class Message:
    """A request and its reply.

    Attributes:
      code: first byte of the request.
      name: for programs.
      fields: of the request, after the code.
      reply: fields of the reply.
      note: its purpose.
    """

    code: int
    name: str
    fields: Fields
    reply: Fields
    note: str

    def encode(self, values: Values) -> bytes:
        """Return a request with these fields.

        Raises:
          ValueError: a field that is missing, unknown or out of range.
        """
        return bytes([self.code]) + _encode_fields(self.name, self.fields, values)

    def encode_reply(self, *values: object) -> bytes:
        """Return the reply with these fields, in order."""
        names = [name for name, _ in self.reply]
        return _encode_fields(self.name, self.reply, dict(zip(names, values, strict=True)))

    def read_reply(self, take: Read) -> dict[str, Any]:
        """Read a reply with a function that reads bytes."""
        return {name: KINDS[kind].read(take) for name, kind in self.reply}


def _encode_fields(name: str, fields: Fields, values: Values) -> bytes:
    names = [field for field, _ in fields]
    if set(values) != set(names):
        raise ValueError(f"{name} takes {', '.join(names) or 'nothing'}, not {', '.join(values)}")
    try:
        return b"".join(KINDS[kind].write(values[field]) for field, kind in fields)
    except (struct.error, OverflowError, TypeError, AttributeError) as error:
        raise ValueError(f"{name} cannot be sent with {dict(values)!r:.200}: {error}") from error


_OK: Final = (("accepted", "u8"),)
_SHOT: Final = (("x", "i32"), ("y", "i32"), ("t1", "i32"), ("t2", "i32"))
_POLAR: Final = (("radius", "i32"), ("angle", "i32"), ("t1", "i32"), ("t2", "i32"))
_EARLY_SHOT: Final = (("fx", "i32"), ("fy", "i32"), ("dx", "i32"), ("dy", "i32"), *_SHOT[2:])
_LIKELIHOOD: Final = (
    ("novel", "f32"),
    ("non_novel", "f32"),
    ("ids", "ids"),
    ("level", "i32"),
    ("description", "signed text"),
)
_TRUTH: Final = (("vector", "truth"),)
_TRUTH_AND_PICTURE: Final = (*_TRUTH, ("picture", "picture"))
HEADER: Final = (
    ("time_limit", "u32"),
    ("interaction_limit", "u32"),
    ("levels", "u32"),
    ("attempts", "u32"),
    ("mode", "u8"),
    ("order", "u8"),
    ("novelty_query", "u8"),
)

_TABLE: Final = (
    Message(
        1,
        "configure",
        (("agent_id", "u32"), ("mode", "u8")),
        (("round", "u8"), ("minutes", "u8"), ("levels", "u8")),
        "mode 0 competition, 1 training; the reply is three zeros",
    ),
    Message(2, "set_speed", (("speed", "u32"),), _OK, "accepted, without effect"),
    Message(11, "screenshot", (), (("picture", "picture"),), "0 by 0 pixels without a level"),
    Message(12, "state", (), (("state", "u8"),), "code of the state"),
    Message(14, "current_level", (), (("level", "u32"),), "always 1; obsolete"),
    Message(
        15, "number_of_levels", (), (("levels", "u32"),), "0, or with --tell-levels the number"
    ),
    Message(23, "all_scores", (), (("scores", "scores"),), "none during an evaluation"),
    Message(31, "shoot", _SHOT, _OK, "an action"),
    Message(32, "shoot_polar", _POLAR, _OK, "an action; the angle in degrees"),
    Message(33, "shoot_sequence", (("shots", "shots"),), (("accepted", "answers"),), "actions"),
    Message(34, "zoom_out", (), _OK, "accepted while playing, without effect"),
    Message(35, "zoom_in", (), _OK, "accepted while playing, without effect"),
    Message(
        38,
        "shoot_and_record",
        (*_SHOT, ("frequency", "i32")),
        (("vectors", "truths"),),
        "an action, and the feature vector after every `frequency` steps of it",
    ),
    Message(41, "shoot_fast", _SHOT, _OK, "as 31"),
    Message(42, "shoot_polar_fast", _POLAR, _OK, "as 32"),
    Message(43, "shoot_sequence_fast", (("shots", "shots"),), (("accepted", "answers"),), "as 33"),
    Message(
        51, "load_level", (("level", "u32"),), _OK, "by its number, from 1; 0 if it is refused"
    ),
    Message(52, "restart", (), _OK, "load the current level once more, which takes an attempt"),
    Message(53, "load_next", (), (("level", "u32"),), "number of the level, from 1; 0 for none"),
    Message(61, "ground_truth_with_screenshot", (), _TRUTH_AND_PICTURE, "feature vector, picture"),
    Message(62, "ground_truth", (), _TRUTH, "feature vector; {} without a level"),
    Message(
        63,
        "noisy_ground_truth_with_screenshot",
        (),
        _TRUTH_AND_PICTURE,
        "as 61: noise is a parameter of the task's sensors",
    ),
    Message(64, "noisy_ground_truth", (), _TRUTH, "as 62"),
    Message(65, "score", (), (("score", "u32"),), "steps survived in the current level"),
    Message(66, "report_likelihood", _LIKELIHOOD, _OK, "the likelihood of novelty"),
    Message(67, "report_description", (("text", "text"),), _OK, "a text on the novelty"),
    Message(
        68, "ready", (), HEADER, "mode 0 training, 1 testing; order 0 set, 1 sequence; or all zeros"
    ),
    Message(
        69, "novelty_info", (), (("novelty", "i32"),), "-1 not told, 0 not in this level, 1 novelty"
    ),
    Message(
        70,
        "batch",
        (("frequency", "i32"),),
        (("vectors", "truths"),),
        "one vector: time stands still",
    ),
    Message(71, "initial_screenshot", (), (("picture", "picture"),), "as the level began"),
    Message(
        72,
        "hint",
        (("level", "u32"),),
        (("hint", "json"),),
        "of the current novelty, if it is told",
    ),
)

_EXTENSIONS: Final = (
    Message(
        0,
        "report_groups",
        (("likelihoods", "groups"),),
        (),
        "likelihoods of groups of objects, after 66; there is no reply",
    ),
    Message(
        0,
        "recorded_option",
        (("option", "rest"),),
        (),
        "the i32 option that some clients send after 38, without effect; there is no reply",
    ),
    Message(
        0,
        "batch_frames",
        (("frames", "rest"),),
        (),
        "the i32 number of frames that some clients send after 70, without effect; no reply",
    ),
)
EXTENSIONS: Final[dict[int, Message]] = {66: _EXTENSIONS[0], 38: _EXTENSIONS[1], 70: _EXTENSIONS[2]}
"""Fields that longer layouts have after a request, by its code.

They begin with the first byte of a small number, a zero, which is the code of no request. So the
layouts can be told apart wherever the stream is cut.
"""

REQUESTS: Final[dict[int, Message]] = {message.code: message for message in _TABLE}
"""Every request, by its code."""
EARLY: Final[dict[int, Message]] = REQUESTS | {
    31: Message(31, "shoot", _EARLY_SHOT, _OK, "an action, after the point of the shot"),
    41: Message(41, "shoot_fast", _EARLY_SHOT, _OK, "as 31"),
    66: Message(66, "report_likelihood", _LIKELIHOOD[:2], _OK, "the likelihood of novelty"),
}
"""Requests of the original up to version 0.3.6, as in its document."""
DIALECTS: Final = {"current": REQUESTS, "early": EARLY}
BY_NAME: Final = {message.name: message for message in (*_EXTENSIONS, *_TABLE)}


@dataclass(frozen=True)
class Request:
    """A request that was read.

    Attributes:
      message: its row of the table.
      values: its fields by name.
    """

    message: Message
    values: Values


class _Incomplete(Exception):
    """More bytes are needed.

    Args:
      total: from the start of the request, at least.
    """

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self.total = total


class Decoder:
    """Finds requests in a stream of bytes.

    Args:
      table: requests by code, `REQUESTS` or `EARLY`.
    """

    def __init__(self, table: Mapping[int, Message] = REQUESTS) -> None:
        self._table = table
        self._buffer = bytearray()
        self._needed = 1
        self._last = -1

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    def __len__(self) -> int:
        """Number of bytes that are not decoded yet."""
        return len(self._buffer)

    def next(self) -> Request | None:
        """Return the next request, None if it is not complete.

        Raises:
          ProtocolError: an unknown code, or a length above its limit.
        """
        if len(self._buffer) < self._needed:
            return None
        code = self._buffer[0]
        message = self._table.get(code) if code else EXTENSIONS.get(self._last)
        if message is None:
            raise ProtocolError(self._unknown(code))
        offset = 1

        def take(size: int) -> bytes:
            nonlocal offset
            if len(self._buffer) < offset + size:
                raise _Incomplete(offset + size)
            offset += size
            return bytes(self._buffer[offset - size : offset])

        try:
            values = {name: KINDS[kind].read(take) for name, kind in message.fields}
        except _Incomplete as error:
            self._needed = error.total
            return None
        del self._buffer[:offset]
        self._needed, self._last = 1, message.code
        return Request(message, values)

    def waiting(self) -> str:
        """Describe the incomplete request."""
        message = self._table.get(self._buffer[0]) if self._buffer else None
        name = f" of {message.name}" if message else ""
        words = f"waiting for the rest{name} after {len(self._buffer)} bytes"
        return words if self._table is EARLY else f"{words}; is the client of the early dialect?"

    def _unknown(self, code: int) -> str:
        """Describe an unknown code, and what may be the reason."""
        words = f"unknown request code {code}"
        before = self._table.get(self._last)
        if before is None:
            return words
        advice = "; is the client of the early dialect?" if self._table is not EARLY else ""
        return f"{words} after {before.name}{advice}"
