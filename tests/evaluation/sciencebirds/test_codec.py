"""Bytes of the protocol, in both directions and in pieces."""

import io
import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.sciencebirds import codec
from evaluation.sciencebirds.codec import BY_NAME, Decoder, ProtocolError
from evaluation.sciencebirds.codes import GameState

NO_TEXT = {"novel": 0.9, "non_novel": 0.1, "ids": (), "level": 0, "description": ""}
LONGER = NO_TEXT | {"ids": (1, -2, -398879789), "level": 2, "description": "pole longer"}
HEADER_A = (600, 200, 0, 1, 0, 1, 0)
HEADER_B = (0, 0, 10, 0, 1, 0, 1)

REQUESTS = {
    "configure id=2888 mode=TRAINING": ("configure", {"agent_id": 2888, "mode": 1}),
    "set speed 20": ("set_speed", {"speed": 20}),
    "get state": ("state", {}),
    "get current level": ("current_level", {}),
    "get number of levels": ("number_of_levels", {}),
    "get all level scores": ("all_scores", {}),
    "load level 3": ("load_level", {"level": 3}),
    "restart level": ("restart", {}),
    "load next available level": ("load_next", {}),
    "get current level score": ("score", {}),
    "report likelihood .9/.1 ids [] level 0 ''": ("report_likelihood", NO_TEXT),
    "report likelihood .9/.1 ids [1,-2,-398879789] level 2 'pole longer'": (
        "report_likelihood",
        LONGER,
    ),
    "report description 'pole longer'": ("report_description", {"text": "pole longer"}),
    "ready for new set": ("ready", {}),
    "request novelty information": ("novelty_info", {}),
}
REPLIES = {
    "configure response training mode (round,limit,levels)": ("configure", (0, 0, 0)),
    "ok": ("set_speed", (1,)),
    "err": ("load_level", (0,)),
    **{f"state {state.name}": ("state", (int(state),)) for state in GameState},
    "current level = 1 (deprecated, constant)": ("current_level", (1,)),
    "number of levels = 0 during evaluation": ("number_of_levels", (0,)),
    "all scores n=2: 10, 20": ("all_scores", ((10, 20),)),
    "all scores during evaluation": ("all_scores", ((),)),
    "loaded level 7 (1-based)": ("load_next", (7,)),
    "load next refused / none left": ("load_next", (0,)),
    "score 200": ("score", (200,)),
    "ready response: 600 s, 200 interactions, 0 levels, 1 attempt, training, sequence, "
    "novelty query refused": ("ready", HEADER_A),
    "ready response: 0 s, 0 int., 10 levels, 0 attempts, testing, set, novelty query allowed": (
        "ready",
        HEADER_B,
    ),
    "novelty info -1": ("novelty_info", (-1,)),
    "novelty info 0": ("novelty_info", (0,)),
    "novelty info 1": ("novelty_info", (1,)),
}


@pytest.fixture(scope="module")
def vectors(recorded_data):
    return json.loads(recorded_data("protocols/sb_bytes.json").read_text(encoding="utf-8"))


def nearly(values):
    """Values as float32 brings them back."""
    return {
        name: struct.unpack(">f", struct.pack(">f", v))[0] if isinstance(v, float) else v
        for name, v in values.items()
    }


@pytest.mark.requirement(43)
def test_every_recorded_message_is_known(vectors):
    for direction, table in (("req", REQUESTS), ("resp", REPLIES)):
        assert {v["name"] for v in vectors if v["dir"] == direction} == set(table)


@pytest.mark.requirement(31, 43)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_recorded_requests_in_both_directions(vectors, piece):
    decoder = Decoder()
    for vector in (v for v in vectors if v["dir"] == "req"):
        name, values = REQUESTS[vector["name"]]
        data = bytes.fromhex(vector["hex"])
        assert BY_NAME[name].encode(values) == data
        assert len(data) == vector["bytes"]
        for start in range(0, len(data), piece):
            assert decoder.next() is None
            decoder.feed(data[start : start + piece])
        request = decoder.next()
        assert request is not None
        assert (request.message.name, request.values) == (name, nearly(values))
        assert decoder.next() is None and len(decoder) == 0


@pytest.mark.requirement(33, 43)
def test_recorded_replies_in_both_directions(vectors):
    for vector in (v for v in vectors if v["dir"] == "resp"):
        name, values = REPLIES[vector["name"]]
        data = bytes.fromhex(vector["hex"])
        assert BY_NAME[name].encode_reply(*values) == data
        rest = io.BytesIO(data)
        assert tuple(BY_NAME[name].read_reply(rest.read).values()) == values
        assert rest.read() == b""


@pytest.mark.requirement(35, 36, 37, 38, 39, 40)
def test_codes_of_the_states():
    assert (GameState.NEWTESTSET, GameState.NEWTRAININGSET, GameState.RESUMETRAINING) == (8, 9, 10)
    assert (GameState.NEWTRIAL, GameState.REQUESTNOVELTYLIKELIHOOD) == (11, 12)
    assert GameState.EVALUATION_TERMINATED == 13


# --- anything, and in any pieces -------------------------------------------------------------

I32 = st.integers(-(2**31), 2**31 - 1)
STRATEGIES = {
    "u8": st.integers(0, 255),
    "u32": st.integers(0, 2**32 - 1),
    "i32": I32,
    "f32": st.floats(width=32, allow_nan=False),
    "text": st.text(max_size=40),
    "signed text": st.text(max_size=40),
    "ids": st.lists(I32, max_size=9).map(tuple),
    "shots": st.lists(st.tuples(I32, I32, I32, I32), max_size=16).map(tuple),
    "groups": st.lists(st.floats(width=32, allow_nan=False), max_size=9).map(tuple),
}


def messages(table):
    def values(message):
        fields = {name: STRATEGIES[kind] for name, kind in message.fields}
        return st.fixed_dictionaries(fields).map(lambda chosen: (message, chosen))

    return st.sampled_from([m for m in table.values() if m.code]).flatmap(values)


def printable(value):
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


@pytest.mark.requirement(43)
@pytest.mark.parametrize("dialect", codec.DIALECTS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_whatever_is_sent_arrives_in_any_pieces(dialect, data):
    table = codec.DIALECTS[dialect]
    sent = data.draw(st.lists(messages(table), max_size=6))
    stream = b"".join(message.encode(values) for message, values in sent)
    decoder, got = Decoder(table), []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, 20))
        decoder.feed(stream[at : at + size])
        at += size
        while (request := decoder.next()) is not None:
            got.append(request)
    assert [request.message for request in got] == [message for message, _ in sent]
    for request, (_, values) in zip(got, sent, strict=True):
        assert request.values == {name: printable(value) for name, value in values.items()}


@pytest.mark.requirement(43)
@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_requests_or_an_error(pieces):
    decoder = Decoder()
    with_error = False
    for piece in pieces:
        decoder.feed(piece)
        try:
            while decoder.next() is not None:
                pass
        except ProtocolError:
            with_error = True
            break
    assert with_error or len(decoder) <= sum(map(len, pieces))


@pytest.mark.requirement(32)
@pytest.mark.parametrize("text", ["", "Pfahl länger", "🐦" * 3, "a\nb,\0c", "x" * 2**20])
def test_descriptions_arrive_as_they_are(text):
    decoder = Decoder()
    decoder.feed(BY_NAME["report_description"].encode({"text": text}))
    request = decoder.next()
    assert request is not None
    assert request.values["text"] == text


def test_a_mebibyte_may_come_byte_by_byte():
    decoder = Decoder()
    data = BY_NAME["report_description"].encode({"text": "é" * 2**19})
    for at in range(len(data) - 1):
        decoder.feed(data[at : at + 1])
        assert decoder.next() is None
    decoder.feed(data[-1:])
    assert decoder.next() is not None


def test_text_that_is_no_utf8_is_shown():
    decoder = Decoder()
    decoder.feed(bytes([67]) + struct.pack(">I", 3) + b"a\xffb")
    request = decoder.next()
    assert request is not None
    assert request.values["text"] == "a\\xffb"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes([200]), "unknown request code 200"),
        (bytes([0]), "unknown request code 0"),
        (bytes([67]) + struct.pack(">I", codec.MAX_TEXT + 1), "bytes of text; at most"),
        (bytes([67]) + b"\xff" * 4, "bytes of text; at most"),
        (bytes([66]) + bytes(8) + struct.pack(">i", codec.MAX_IDS + 1), "values; at most"),
        (bytes([66]) + bytes(8) + struct.pack(">i", -1), "-1 values"),
        (bytes([66]) + bytes(16) + struct.pack(">i", -5), "-5 bytes of text"),
        (bytes([33]) + struct.pack(">i", codec.MAX_SHOTS + 1), "17 shots; at most 16"),
    ],
)
def test_lengths_that_nobody_needs_are_refused_at_once(data, words):
    decoder = Decoder()
    decoder.feed(data)
    with pytest.raises(ProtocolError, match=words):
        decoder.next()


def test_likelihoods_of_groups_come_only_behind_a_report():
    groups = BY_NAME["report_groups"].encode({"likelihoods": (0.5, 0.25)})
    assert groups == struct.pack(">i2f", 2, 0.5, 0.25)
    decoder = Decoder()
    decoder.feed(BY_NAME["report_likelihood"].encode(NO_TEXT) + groups + bytes([12]))
    names = [request.message.name for request in iter(decoder.next, None)]
    assert names == ["report_likelihood", "report_groups", "state"]
    decoder.feed(bytes([0]))
    with pytest.raises(ProtocolError, match="unknown request code 0"):
        decoder.next()


def test_the_early_dialect_has_shorter_reports_and_longer_shots():
    early = codec.EARLY
    assert early[66].encode({"novel": 1.0, "non_novel": 0.0}) == b"\x42\x3f\x80\0\0\0\0\0\0"
    assert len(early[31].encode(dict.fromkeys(("fx", "fy", "dx", "dy", "t1", "t2"), 1))) == 25


@pytest.mark.parametrize(
    "values", [{}, {"level": 2**32}, {"level": -1}, {"level": None}, {"level": 1, "more": 2}]
)
def test_what_cannot_be_sent_is_refused(values):
    with pytest.raises(ValueError, match="load_level"):
        BY_NAME["load_level"].encode(values)


def test_pictures_and_documents_come_back():
    picture = codec.Picture(2, 1, b"abcdef")
    message = BY_NAME["ground_truth_with_screenshot"]
    vector = {"cart": {"x": 1.5}, "image": None}
    data = io.BytesIO(message.encode_reply(vector, picture))
    assert message.read_reply(data.read) == {"vector": vector, "picture": picture}
    message = BY_NAME["shoot_and_record"]
    data = io.BytesIO(message.encode_reply([vector, {}]))
    assert message.read_reply(data.read) == {"vectors": [vector, {}]}


def test_a_picture_that_is_too_large_is_refused():
    data = io.BytesIO(struct.pack(">2I", 2**20, 2**20))
    with pytest.raises(ProtocolError, match="is too large"):
        BY_NAME["screenshot"].read_reply(data.read)


def test_numbers_that_are_not_finite_go_through():
    decoder = Decoder()
    decoder.feed(BY_NAME["report_likelihood"].encode(NO_TEXT | {"novel": math.inf}))
    request = decoder.next()
    assert request is not None
    assert request.values["novel"] == math.inf


@pytest.mark.parametrize(("number", "accepted"), [(1023, True), (1024, True), (1025, False)])
def test_the_greatest_number_of_groups(number, accepted):
    groups = BY_NAME["report_groups"].encode({"likelihoods": (0.5,) * number})
    decoder = Decoder()
    decoder.feed(BY_NAME["report_likelihood"].encode(NO_TEXT) + groups)
    assert decoder.next().message.name == "report_likelihood"
    if accepted:
        assert len(decoder.next().values["likelihoods"]) == number
        return
    with pytest.raises(ProtocolError, match="1025 likelihoods; at most 1024"):
        decoder.next()
