"""The track at a socket: whole sessions, and clients that vanish, hang, flood or talk nonsense."""

import json
import random
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from evaluation.clock import ScriptedClock, SystemClock
from evaluation.gvgai import client, protocol, server
from evaluation.gvgai.client import connect
from evaluation.gvgai.harness import run
from evaluation.gvgai.phases import Call
from evaluation.gvgai.player import TimedAgent
from evaluation.gvgai.protocol import FINISH, LONGEST_REPLY
from evaluation.gvgai.results import Announcer, ResultFile, read_results
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.server import LOOPBACK, ClientGone, Connection, TrackServer
from tests.evaluation.gvgai.scripted import ESCAPE, LEFT, Script, always, in_turn, track
from tests.evaluation.gvgai.wire import Peer, legal, phase_of, serving

FAST = {
    "start_seconds": 0.05,
    "init_seconds": 0.05,
    "act_seconds": 0.04,
    "act_hard_seconds": 0.05,
    "learning_seconds": 0.05,
    "grace_seconds": 0.05,
}
SECOND = 1.0
STATES = ("START", "INIT", "ACT", "ABORT")


@pytest.fixture(scope="module")
def served():
    """A server whose time never passes; clients end training themselves."""
    with serving(track(most_plays=4)) as running:
        yield running


@pytest.fixture(scope="module")
def hasty():
    """A server whose patience is a tenth of a second, by the computer's clock."""
    with serving(track(**FAST), clock=SystemClock(), transport_seconds=0.05) as running:
        yield running


def plays_on(served):
    """Whether a client that behaves well comes to the end of the track."""
    peer = served.connect()
    finished = peer.until(FINISH) >= 0
    peer.close()
    return finished and served.next_trial().call == Call.FINISH


# Whole sessions -----------------------------------------------------------------------------------


def test_it_listens_where_others_cannot_reach_it(served):
    assert served.server.address[0] == LOOPBACK == "127.0.0.1"


def test_a_client_hands_on_all_it_is_given(monkeypatch):
    asked = []

    def note(name, result=None):
        return lambda *given, **named: asked.append((name, given, named)) or result

    closed = SimpleNamespace(close=note("close"))
    monkeypatch.setattr(client.socket, "create_connection", note("connect", "stream"))
    monkeypatch.setattr(client, "TimedAgent", note("agent", "player"))
    monkeypatch.setattr(client, "Connection", lambda stream, clock, most: closed)
    monkeypatch.setattr(client, "_converse", note("converse", True))
    given = {"host": "host", "port": 7, "clock": "a clock", "form": "BOTH", "patience": 5.0}
    assert connect("make", "rules", warn="warn", **given)
    assert asked == [
        ("agent", ("make", "a clock", "rules", "BOTH"), {}),
        ("connect", (("host", 7),), {"timeout": 5.0}),
        ("converse", (closed, "player", 5.0, "warn"), {}),
        ("close", (), {}),
    ]


@pytest.mark.requirement(91)
def test_our_client_plays_what_the_harness_plays():
    def script():
        return Script(levels=in_turn(0, 0, 1, 7), actions=lambda i: LEFT if i % 5 else ESCAPE)

    inside, results = script(), []
    run(track(most_plays=5), inside.agent(), inside.clock, Announcer(None, results.append), seed=2)
    outside = script()
    with serving(track(most_plays=5), seed=2) as served:
        host, port = served.server.address
        agent = outside.agent()
        assert connect(agent, Rules(), host=host, port=port, clock=outside.clock)
        served.next_trial()
    assert served.results == results
    assert [method for method, _ in outside.calls] == [method for method, _ in inside.calls]
    # The constructor comes before the first observation here.
    assert outside.calls[0] == ("constructor", None)
    assert outside.calls[1:] == inside.calls[1:]


@pytest.mark.requirement(92)
def test_the_form_of_observations_switches_at_once_and_stays(served):
    peer = served.connect()
    peer.exchange("START_DONE")
    forms = []
    for form in ("", "#JSON", "#IMAGE", "", "#nonsense", "#BOTH", "", "#JSON"):
        number, payload = peer.receive()
        fields = json.loads(payload)
        forms.append(("avatarPosition" in fields) + 2 * ("imageArray" in fields))
        text = "INIT_DONE" if fields["phase"] == "INIT" else "ACTION_LEFT"
        peer.answer(number, text + form)
    assert forms == [1, 1, 1, 2, 2, 2, 3, 3]
    assert "imageArray" not in json.loads(peer.receive()[1])
    peer.close()
    served.next_trial()


@pytest.mark.requirement(78)
def test_the_server_ends_training_by_its_own_clock():
    clock = ScriptedClock()
    with serving(track(learning_seconds=10), clock=clock) as served:
        peer = served.connect()
        for _ in range(5):
            number = peer.until("ABORT")
            clock.advance(2.1)
            peer.answer(number, "0")
        peer.until(FINISH)
        served.next_trial()
        peer.close()
    phases = [result.phase for result in served.results]
    assert phases == ["first"] * 3 + ["second"] * 2 + ["validation"] * 2


@pytest.mark.requirement(91)
def test_stale_future_and_broken_lines_are_ignored():
    warnings = []
    with serving(track(most_plays=2), warn=warnings.append) as served:
        peer = served.connect()
        peer.exchange("START_DONE")
        peer.exchange("INIT_DONE")
        first, _ = peer.receive()
        peer.send(f"{first - 1}#ACTION_LEFT\n{first + 50}#ACTION_LEFT\nnonsense\n\n#\n\xff\n")
        peer.send(f"{first}#ACTION_RIGHT\n{first}#ACTION_LEFT\n")
        second, payload = peer.receive()
        assert json.loads(payload)["avatarLastAction"] == "ACTION_RIGHT"
        # The second answer to the same message is stale by now.
        peer.answer(second, "ACTION_NIL")
        _, payload = peer.receive()
        assert json.loads(payload)["avatarLastAction"] == "ACTION_NIL"
        peer.close()
        served.next_trial()
    # What is stale may have been under way; what is early is a mistake of the client.
    assert warnings[:-1] == [f"a reply to message {first + 50} before it was sent is ignored"]
    assert warnings[-1].endswith("the other end closed the connection")


def test_bytes_may_come_one_by_one(served):
    peer = served.connect()
    number, _ = peer.receive()
    for byte in f"{number}#START_DONE#JSON\r\n".encode():
        peer.send(bytes([byte]))
    assert phase_of(peer.receive()[1]) == "INIT"
    peer.close()
    served.next_trial()


def test_clients_one_after_the_other_have_lifetimes_of_their_own():
    with serving(track(most_plays=1), first_lifetime=5) as served:
        assert plays_on(served) and plays_on(served)
    assert [r.lifetime for r in served.results] == [5] * 3 + [6] * 3


# Two at once --------------------------------------------------------------------------------------


def test_a_second_client_is_told_to_stop_and_the_first_plays_on():
    warnings = []
    with serving(track(most_plays=2), warn=warnings.append) as served:
        first = served.connect()
        number, _ = first.receive()
        peers = [served.connect() for _ in range(3)]
        for other in peers:
            assert other.receive() == (0, FINISH)
            assert other.receive() == (-1, "")
            other.close()
        first.answer(number, "START_DONE")
        assert first.until(FINISH) > 0
        first.close()
        assert served.next_trial().call == Call.FINISH
    assert warnings == ["another client was turned away: one plays already"] * 3


def test_an_agent_at_a_busy_server_is_not_even_made(served):
    first = served.connect()
    first.exchange("START_DONE")
    script, warnings = Script(), []
    _, port = served.server.address
    assert not connect(script.agent(), Rules(), port=port, clock=script.clock, warn=warnings.append)
    assert script.calls == []
    assert warnings == ["the server plays with another client; try again later"]
    first.close()
    served.next_trial()


# Clients that do not answer -----------------------------------------------------------------------


@pytest.mark.requirement(94)
@pytest.mark.parametrize("state", STATES[1:])
def test_a_client_that_vanishes_ends_the_session_within_a_second(served, state):
    before, peer = len(served.results), served.connect()
    peer.until(state)
    began = time.monotonic()
    peer.close()
    trial = served.next_trial(SECOND)
    assert time.monotonic() - began < SECOND
    assert trial.call == Call.CLOSED
    assert trial.reason.startswith("no more replies while it waited for one to")
    # A level that was begun counts as broken off.
    assert len(served.results) - before == 1
    assert all(result.aborted for result in served.results[before:])
    assert plays_on(served)


@pytest.mark.requirement(94)
def test_a_client_that_leaves_before_it_answers_is_not_counted():
    warnings = []
    with serving(track(most_plays=1), warn=warnings.append, first_lifetime=5) as served:
        peer = served.connect()
        assert peer.receive()[1] == "START"
        peer.close()
        assert plays_on(served)
    assert len(served.trials) == 1
    assert [result.lifetime for result in served.results] == [5] * 3
    assert warnings == ["a client that left before it answered START is not counted"]


@pytest.mark.requirement(94)
@pytest.mark.parametrize("state", STATES)
def test_a_silent_client_is_hung_up_on(hasty, state):
    peer = hasty.connect()
    peer.until(state)
    assert peer.receive() == (-1, "")
    peer.close()
    trial = hasty.next_trial(SECOND)
    assert trial.call == Call.CLOSED
    assert "no reply within" in trial.reason


def test_finished_levels_are_on_disk_when_the_client_vanishes(tmp_path):
    path = tmp_path / "results.jsonl"
    with ResultFile(path) as file, TrackServer(track(), port=0, clock=ScriptedClock()) as server:
        peer = Peer(server.address)

        def client():
            for _ in range(2):
                number = peer.until("ABORT")
                # Whoever is told of the end of a level finds it on disk already.
                on_disk.append(len(read_results(path)))
                peer.answer(number, "0")
            peer.until("ACT")
            peer.close()

        on_disk: list[int] = []
        thread = threading.Thread(target=client)
        thread.start()
        (trial,) = server.serve(1, Announcer(None, file.write))
        thread.join()
    assert on_disk == [1, 2]
    assert [r.level for r in read_results(path)] == [0, 1, 2]
    assert len(trial.log.records().columns["length"][0]) == 3


# Clients that talk nonsense -----------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
def test_an_endless_line_is_hung_up_on_at_once(served, state):
    peer = served.connect()
    peer.until(state)
    peer.send(b"9" * LONGEST_REPLY)
    assert peer.receive() == (-1, "")
    peer.close()
    assert f"longer than {LONGEST_REPLY} bytes" in served.next_trial(SECOND).reason
    assert plays_on(served)


@pytest.mark.parametrize("state", STATES)
def test_fuzzed_bytes_never_hang_the_server(hasty, state):
    draw = random.Random(state)
    for _ in range(4):
        peer = hasty.connect()
        peer.until(state)
        noise = draw.randbytes(draw.randrange(1, 3000)) + b"\n" * draw.randrange(2)
        try:
            peer.send(noise)
            while peer.receive()[0] >= 0:
                peer.send(draw.randbytes(50) + b"\n")
        except OSError:
            pass  # hung up on while it was talking
        peer.close()
        assert hasty.next_trial(SECOND).call in (Call.CLOSED, Call.FINISH)


@pytest.mark.parametrize("seed", range(3))
def test_random_legal_and_illegal_replies_always_come_to_an_end(served, seed):
    draw = random.Random(seed)
    texts = (
        "START_DONE",
        "INIT_DONE",
        "ACTION_LEFT",
        "ACTION_ESCAPE",
        "END_OVERSPENT",
        "END_TRAINING",
        "1",
        "99",
        "",
        "ERROR",
        "a#b#c",
        "\u2603",
    )
    for _ in range(5):
        peer = served.connect()
        while True:
            number, payload = peer.receive()
            if number < 0 or payload == FINISH:
                break
            text = legal(phase_of(payload)) if draw.random() < 0.5 else draw.choice(texts)
            peer.answer(number, text)
        peer.close()
        assert served.next_trial().call in (Call.CLOSED, Call.FINISH)


def test_a_flood_of_stale_lines_is_read_and_forgotten(served):
    peer = served.connect()
    peer.exchange("START_DONE")
    number, _ = peer.receive()
    sender = threading.Thread(target=peer.send, args=(b"0#START_DONE\n" * 80_000,))
    sender.start()
    sender.join()
    peer.answer(number, "INIT_DONE")
    assert phase_of(peer.receive()[1]) == "ACT"
    peer.close()
    served.next_trial()


# One connection -----------------------------------------------------------------------------------


class Dribbling:
    """A clock that goes on by a tenth of a second whenever it is read; then a byte arrives."""

    def __init__(self, other_end):
        self.reads, self.other_end = 0, other_end

    def now(self):
        self.reads += 1
        self.other_end.send(b"1")
        return self.reads / 10


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_client_that_dribbles_is_hung_up_on(pair):
    ours, theirs = pair
    connection = Connection(ours, Dribbling(theirs), 100)
    with pytest.raises(ClientGone, match="no reply within 1 s"):
        connection.receive(1.0)


def test_a_client_that_does_not_read_is_hung_up_on(pair):
    ours, _ = pair
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    connection = Connection(ours, SystemClock(), 100)
    with pytest.raises(ClientGone, match="was not taken"):
        connection.send(b"x" * (1 << 22), 0.02)


class Sipping:
    """A clock that goes on by a second whenever it is read; then a byte is taken."""

    def __init__(self, other_end):
        self.reads, self.other_end = 0, other_end

    def now(self):
        self.reads += 1
        self.other_end.recv(1)
        return float(self.reads)


def test_a_client_that_takes_a_byte_a_second_is_hung_up_on(pair, monkeypatch):
    ours, theirs = pair
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.001)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    clock = Sipping(theirs)
    connection = Connection(ours, clock, 100)
    ours.send(b"before")  # so that there is a byte to take at once
    with pytest.raises(ClientGone, match="was not taken within 20 s"):
        connection.send(b"x" * (1 << 22), 20.0)
    assert clock.reads <= 22


def test_a_message_that_is_taken_in_pieces_arrives_whole(pair):
    ours, theirs = pair
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    line = bytes(range(256)) * 4096
    got = []
    reader = threading.Thread(target=lambda: got.extend(iter(lambda: theirs.recv(65536), b"")))
    reader.start()
    connection = Connection(ours, SystemClock(), 100)
    connection.send(line, 20.0)
    ours.shutdown(socket.SHUT_WR)
    reader.join(20)
    assert b"".join(got) == line


def test_a_connection_that_breaks(pair):
    ours, theirs = pair
    connection = Connection(ours, SystemClock(), 100)
    theirs.send(b"one\ntwo\n")
    theirs.close()
    assert [connection.receive(1.0), connection.receive(1.0)] == [b"one", b"two"]
    with pytest.raises(ClientGone, match="closed the connection"):
        connection.receive(1.0)
    connection.close()


# Our client at strange servers --------------------------------------------------------------------


def test_a_client_answers_what_it_does_not_understand_with_an_error():
    script = Script()
    player = TimedAgent(script.agent(), script.clock, Rules())
    init = '{"phase":"INIT"}'
    for payload in ("", "nonsense", "[1]", "3", '{"phase":["INIT"]}', "[" * 100_000, init):
        assert player.answer(payload) == (protocol.ERROR, None)
    assert player.answer("START") == ("START_DONE", "JSON")
    assert player.answer(init) == ("INIT_DONE", "JSON")
    assert player.answer(FINISH) is None


def test_what_an_agent_returns_cannot_break_the_line():
    script = Script(actions=always("ACTION_LEFT#IMAGE\n5#END_OVERSPENT" + "x" * 10_000))
    player = TimedAgent(script.agent(), script.clock, Rules())
    player.answer("START")
    text, form = player.answer('{"phase":"ACT"}')
    assert len(text) <= 64 and not set("#\n") & set(text)
    assert form == "JSON"


def test_a_client_whose_server_hangs_up():
    listener = socket.create_server((LOOPBACK, 0))
    script, warnings = Script(actions=always(None)), []

    def serve():
        stream, _ = listener.accept()
        stream.sendall(b"not a message\n0#START\n")
        stream.recv(100)
        stream.close()

    thread = threading.Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]

    class Broken:
        def __init__(self):
            raise RuntimeError("no weights")

    assert not connect(Broken, Rules(), port=port, clock=script.clock, warn=warnings.append)
    assert warnings[0] == "the agent raised RuntimeError: no weights"
    assert warnings[1].startswith("the server is gone: ")
    thread.join()
    listener.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"port": 2**16}, "port is 65536"), ({"transport_seconds": 0.0}, "transport_seconds is 0.0")],
)
def test_a_server_with_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        TrackServer(track(), **arguments)


def test_a_port_that_is_taken():
    with socket.create_server((LOOPBACK, 0)) as listener, pytest.raises(OSError):
        TrackServer(track(), port=listener.getsockname()[1])
