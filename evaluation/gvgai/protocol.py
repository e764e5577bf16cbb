r"""Lines of text between server and client.

    server: <id>#<payload>\n               payload: START, an observation, or FINISH
    client: <id>#<reply>[#<form>]\n        form: JSON, IMAGE or BOTH, of the observations to come

The server counts its messages from 0 and a client repeats the number of the message it answers.
"""

import re
from dataclasses import dataclass

from evaluation.gvgai.observation import ACTIONS, ESCAPE, FORMS, NIL, Form
from evaluation.gvgai.phases import NO_LEVEL, Call, CallOutcome
from evaluation.gvgai.rules import TRAINING

PORT = 8080
LONGEST_REPLY = 4096
"""Bytes of a client's line, its end included; a longer one ends the connection."""
LONGEST_MESSAGE = 1 << 22
"""Bytes of a server's line that a client reads."""

START, FINISH = "START", "FINISH"
START_DONE, START_FAILED = "START_DONE", "START_FAILED"
INIT_DONE, INIT_FAILED = "INIT_DONE", "INIT_FAILED"
ABORT, ERROR = "ABORT", "ERROR"
END_OVERSPENT = "END_OVERSPENT"
END_TRAINING, END_VALIDATION = "END_TRAINING", "END_VALIDATION"

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_LEVELS = {str(level): level for level in TRAINING}


class TooLong(Exception):
    """A line has more bytes than any that is legal."""


@dataclass(frozen=True)
class ClientLine:
    """A client's line.

    Attributes:
      number: of the message it answers.
      text: the answer.
      form: of the observations to come; None for no change.
    """

    number: int
    text: str
    form: Form | None = None


@dataclass(frozen=True)
class Meaning:
    """Meaning of a reply to a call.

    Attributes:
      answer: outcome of the call.
      action: code of the action to play, in ACT.
      level: the level that was chosen, in RESULT; `NO_LEVEL` for an invalid one.
    """

    answer: CallOutcome
    action: int = NIL
    level: int = NO_LEVEL


def message(number: int, payload: str) -> bytes:
    """Return a server's line."""
    return f"{number}#{payload}\n".encode()


def reply_line(reply: ClientLine) -> bytes:
    """Return a client's line."""
    form = f"#{reply.form}" if reply.form else ""
    return f"{reply.number}#{reply.text}{form}\n".encode()


def read_reply(line: bytes) -> ClientLine | None:
    """Read a client's line; None if it is not valid."""
    parts = line.decode("utf-8", errors="replace").strip("\r\n").split("#")
    number = parts[0].strip()
    if len(parts) < 2 or not _NUMBER.fullmatch(number):
        return None
    text = parts[2].strip() if len(parts) > 2 else ""
    form = next((option for option in FORMS if option == text), None)
    return ClientLine(int(number), parts[1].strip(), form)


def read_message(line: bytes) -> tuple[int, str] | None:
    """Read a server's line: its number and payload; None if it is not valid."""
    number, mark, payload = line.decode("utf-8", errors="replace").strip("\r\n").partition("#")
    if not mark or not _NUMBER.fullmatch(number.strip()):
        return None
    return int(number.strip()), payload


def meaning(call: Call, text: str) -> Meaning:
    """Return the meaning of a reply to a call; any text has one.

    Args:
      call: START, INIT, ACT or RESULT.
      text: the reply.
    """
    if call == Call.START:
        return Meaning(CallOutcome.DONE if text == START_DONE else CallOutcome.FAILED)
    if call == Call.INIT:
        return Meaning(CallOutcome.DONE if text == INIT_DONE else CallOutcome.FAILED)
    if text == END_OVERSPENT:
        return Meaning(CallOutcome.OVERSPENT)
    if call == Call.ACT:
        if text in (ABORT, ACTIONS[ESCAPE]):
            return Meaning(CallOutcome.ABORT)
        return Meaning(CallOutcome.DONE, action=ACTIONS.index(text) if text in ACTIONS else NIL)
    if text in (END_TRAINING, END_VALIDATION):
        return Meaning(CallOutcome.END)
    return Meaning(CallOutcome.DONE, level=_LEVELS.get(text, NO_LEVEL))


class LineBuffer:
    """Splits received bytes into lines; it never holds more than the longest line.

    Args:
      longest: bytes of a line, its end included.
    """

    def __init__(self, longest: int) -> None:
        self.longest, self._rest = longest, b""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return every line that is now complete, without its end.

        Raises:
          TooLong: a line is longer than allowed.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if any(len(line) >= self.longest for line in (*lines, self._rest)):
            raise TooLong(f"a line is longer than {self.longest} bytes")
        return lines
