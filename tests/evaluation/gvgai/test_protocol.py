"""Lines: what is one, what it means, and that nothing else does any harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.gvgai import protocol
from evaluation.gvgai.observation import ACTIONS, ESCAPE, LEFT, NIL
from evaluation.gvgai.phases import NO_LEVEL, Call, CallOutcome
from evaluation.gvgai.protocol import ClientLine, LineBuffer, Meaning, TooLong

ASKING = (Call.START, Call.INIT, Call.ACT, Call.RESULT)


@pytest.mark.requirement(91)
def test_lines_come_back():
    assert protocol.message(7, "START") == b"7#START\n"
    assert protocol.read_message(b"7#START") == (7, "START")
    assert protocol.read_message(b'7#{"a":"#"}\r') == (7, '{"a":"#"}')
    for reply in (ClientLine(3, "ACTION_LEFT", "JSON"), ClientLine(0, "START_FAILED")):
        assert protocol.read_reply(protocol.reply_line(reply).rstrip(b"\n")) == reply


@pytest.mark.requirement(91)
@pytest.mark.parametrize(
    "line", [b"", b"ACTION_LEFT", b"#ACTION_LEFT", b"x#ACTION_LEFT", b"-1#A", b"1e3#A", b"\xff#A"]
)
def test_what_is_no_line_is_ignored(line):
    assert protocol.read_reply(line) is None
    assert protocol.read_message(line) is None


def test_numbers_are_short_and_plain():
    assert protocol.read_reply(b"9" * 4000 + b"#A") is None
    assert protocol.read_reply("\u0663#A".encode()) is None  # a digit, but not one of ours
    assert protocol.read_reply(b" 12 # A # IMAGE \r") == ClientLine(12, "A", "IMAGE")
    assert protocol.read_reply(b"12#A#PICTURE") == ClientLine(12, "A", None)


@pytest.mark.requirement(77, 90)
@pytest.mark.parametrize(
    ("call", "text", "meaning"),
    [
        (Call.START, "START_DONE", Meaning(CallOutcome.DONE)),
        (Call.START, "START_FAILED", Meaning(CallOutcome.FAILED)),
        (Call.START, "ERROR", Meaning(CallOutcome.FAILED)),
        (Call.INIT, "INIT_DONE", Meaning(CallOutcome.DONE)),
        (Call.INIT, "", Meaning(CallOutcome.FAILED)),
        (Call.ACT, "ACTION_LEFT", Meaning(CallOutcome.DONE, action=LEFT)),
        (Call.ACT, "gibberish", Meaning(CallOutcome.DONE, action=NIL)),
        (Call.ACT, "ACTION_ESCAPE", Meaning(CallOutcome.ABORT)),
        (Call.ACT, "ABORT", Meaning(CallOutcome.ABORT)),
        (Call.ACT, "END_OVERSPENT", Meaning(CallOutcome.OVERSPENT)),
        (Call.RESULT, "2", Meaning(CallOutcome.DONE, level=2)),
        (Call.RESULT, "3", Meaning(CallOutcome.DONE, level=NO_LEVEL)),
        (Call.RESULT, "-1", Meaning(CallOutcome.DONE, level=NO_LEVEL)),
        (Call.RESULT, "END_TRAINING", Meaning(CallOutcome.END)),
        (Call.RESULT, "END_VALIDATION", Meaning(CallOutcome.END)),
        (Call.RESULT, "END_OVERSPENT", Meaning(CallOutcome.OVERSPENT)),
    ],
)
def test_what_replies_mean(call, text, meaning):
    assert protocol.meaning(call, text) == meaning


@given(st.binary(max_size=200), st.sampled_from(ASKING))
def test_any_bytes_mean_something_legal(line, call):
    reply = protocol.read_reply(line)
    if reply is not None:
        meaning = protocol.meaning(call, reply.text)
        assert meaning.answer in CallOutcome
        assert 0 <= meaning.action < len(ACTIONS) and meaning.action != ESCAPE
        assert meaning.level in (NO_LEVEL, 0, 1, 2)
    protocol.read_message(line)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_lines_do_not_depend_on_how_they_arrive(parts):
    whole, buffer, lines = b"".join(parts), LineBuffer(1000), []
    for part in parts:
        lines += buffer.feed(part)
    assert lines == whole.split(b"\n")[:-1]


def test_a_line_has_a_longest_length():
    assert LineBuffer(4).feed(b"abc\nabc\n") == [b"abc", b"abc"]
    for data in (b"abcd\n", b"abcd", b"ab\nabcd"):
        with pytest.raises(TooLong, match="longer than 4 bytes"):
            LineBuffer(4).feed(data)
    buffer = LineBuffer(4)
    for _ in range(3):
        assert buffer.feed(b"a") == []
    with pytest.raises(TooLong):
        buffer.feed(b"a")


@pytest.mark.parametrize("blank", ["\x1f", "\x1c", "\x0b", "\u2003", "\xa0", " \t"])
def test_a_number_may_stand_among_blanks_of_any_kind(blank):
    """Some that text is stripped of are none to a number."""
    for line in (f"{blank}0#ACTION_LEFT\n", f"0{blank}#ACTION_LEFT\n"):
        assert protocol.read_reply(line.encode()) == ClientLine(0, "ACTION_LEFT")
        assert protocol.read_message(line.encode()) == (0, "ACTION_LEFT")
