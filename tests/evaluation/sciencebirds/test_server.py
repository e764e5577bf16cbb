"""The server: whole evaluations over TCP, and clients that do not behave."""

import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import datetime

import numpy as np
import pytest

from evaluation.sciencebirds import codec, harness
from evaluation.sciencebirds import server as server_module
from evaluation.sciencebirds.agent_client import AgentClient, Disconnected
from evaluation.sciencebirds.codec import BY_NAME
from evaluation.sciencebirds.codes import GameState
from evaluation.sciencebirds.demo_agent import DemoAgent, GainSearch
from evaluation.sciencebirds.results import ResultWriter
from evaluation.sciencebirds.scheduler import Quirks
from tests.evaluation.sciencebirds.support import (
    TRACES,
    ShotGame,
    evaluation,
    level_set,
    serving,
    trial,
)

STARTED = datetime(2020, 4, 7)


def connect(server) -> AgentClient:
    client = AgentClient(port=server.address[1], timeout=20)
    client.connect_to_server()
    return client


def plug(server) -> socket.socket:
    """A connection without a client's manners."""
    connected = socket.create_connection(server.address, 20)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def rest(connected) -> bytes:
    """All that comes until the other side has closed."""
    received = b""
    try:
        while data := connected.recv(65536):
            received += data
    except ConnectionError:
        pass
    return received


def still_answers(server) -> None:
    with connect(server) as client:
        assert client.get_game_state() == GameState.NEWTRIAL


# --- the demo agent --------------------------------------------------------------------------


@pytest.mark.requirement(41, 42)
@pytest.mark.parametrize("name", TRACES)
def test_the_demo_agent_plays_whole_evaluations(name):
    what, expected = TRACES[name]
    with serving(what) as (server, _, _), connect(server) as client:
        agent = DemoAgent(client)
        agent.run()
        assert " ".join(agent.history) == expected
        assert client.get_game_state() == GameState.EVALUATION_TERMINATED


@pytest.mark.requirement(35, 36, 37)
def test_the_demo_agent_keeps_what_it_should(tmp_path):
    tests = [2, 2]
    what = evaluation(trial(4, tests, interactions=2), trial(1))
    options = harness.HarnessOptions(per_episode=True)
    with (
        serving(what, shots=3, options=options) as (server, _, _),
        connect(server) as client,
    ):
        agent = DemoAgent(client, tmp_path)
        agent.run()
    assert " ".join(agent.history) == "11 9 L1 L2 8 T1 T2 10 L3 L4 8 T1 T2 11 9 L1 13"
    fresh = GainSearch().digest
    digest = dict(enumerate(agent.digests))
    learned = digest[4]  # as the first test was announced
    assert learned != fresh
    assert {digest[index] for index in (5, 6, 7)} == {learned}  # T1, T2 and 10
    assert digest[8] != learned  # it has begun to learn again
    assert digest[10] == digest[11] == digest[12] != learned
    assert digest[13] == digest[10]  # the next trial is announced, then all is dropped
    assert digest[14] == fresh
    backups = sorted(tmp_path.iterdir())
    assert [path.name for path in backups] == [f"backup_00{n}.json" for n in range(1, 6)]
    assert digest[13] in backups[2].read_text()
    assert fresh in backups[3].read_text()
    assert agent.digests[-1] in backups[4].read_text()


@pytest.mark.requirement(40)
def test_the_demo_agent_exits_safely(tmp_path):
    command = [sys.executable, "-m", "evaluation.sciencebirds.demo_agent"]
    with serving(TRACES["D"][0]) as (server, _, _):
        options = ["--port", str(server.address[1]), "--backups", str(tmp_path)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip() == TRACES["D"][1]
        assert len(list(tmp_path.iterdir())) == 3
        again = subprocess.run(
            [*command, "--port", "1"], capture_output=True, text=True, timeout=60
        )
        assert again.returncode == 1
        assert again.stderr.startswith("demo agent: ") and again.stderr.count("\n") == 1


@pytest.mark.requirement(48)
def test_announcements_of_the_original_over_the_wire():
    what = evaluation(trial(level_set(5, interactions=5), [2], interactions=2))
    quirks = Quirks(nine_for_eight=True, all_tests=True, lost_position=True)
    options = harness.HarnessOptions(quirks=quirks)
    with serving(what, options=options) as (server, clock, notes), connect(server) as client:
        agent = DemoAgent(client)

        def play() -> None:
            with pytest.raises(Disconnected):
                agent.run()

        waiting = threading.Thread(target=play)
        waiting.start()
        while not any("is not answered" in note for note in list(notes)):
            waiting.join(0.01)
        clock.advance(301)
        waiting.join(20)
        assert " ".join(agent.history) == "11 9 L1 L2 9 T1 T2 10"
        assert notes[-1].startswith("disconnected: no request")


# --- bytes -----------------------------------------------------------------------------------


@pytest.mark.requirement(43)
@pytest.mark.parametrize("piece", [1, 2, 10_000])
def test_requests_in_pieces_have_the_same_replies(piece):
    report = {"novel": 0.9, "non_novel": 0.1, "ids": (1, -2), "level": 2, "description": "é"}
    sent = [
        ("state", {}), ("ready", {}), ("ready", {}), ("load_level", {"level": 1}),
        ("report_likelihood", report), ("shoot", {"x": 1, "y": 0, "t1": 0, "t2": 0}),
        ("shoot_sequence", {"shots": ((1, 0, 0, 0),) * 2}), ("state", {}), ("score", {}),
    ]  # fmt: skip
    stream = b"".join(BY_NAME[name].encode(values) for name, values in sent)
    header = "00000000 00000000 00000000 00000001 00 01 00"
    expected = bytes.fromhex(f"0b {header} {header} 01 01 01 00 00 06 0000000a")
    with serving(evaluation(trial(3))) as (server, _, _), plug(server) as connected:
        for start in range(0, len(stream), piece):
            connected.sendall(stream[start : start + piece])
        connected.shutdown(socket.SHUT_WR)
        assert rest(connected) == expected


def test_requests_that_come_early_are_all_answered():
    with serving(evaluation(trial(1))) as (server, _, _), plug(server) as connected:
        connected.sendall(b"\x0c" * 1000 + b"\x0e" * 1000)
        connected.shutdown(socket.SHUT_WR)
        assert rest(connected) == b"\x0b" * 1000 + b"\0\0\0\1" * 1000


@pytest.mark.requirement(43)
@pytest.mark.parametrize("data", [b"\xc8", b"\x00", b"\x43\xff\xff\xff\xff", b"\x0c\x07"])
def test_what_is_no_request_ends_the_connection(data):
    with serving(evaluation(trial(1))) as (server, _, notes):
        with plug(server) as connected:
            connected.sendall(data)
            assert rest(connected) in (b"", b"\x0b")
        assert any("unknown request" in note or "at most" in note for note in notes)
        still_answers(server)


@pytest.mark.requirement(43)
def test_noise_is_answered_or_closed():
    draw = random.Random(11)
    with serving(evaluation(trial(2, [1], interactions=1)), shots=2) as (server, clock, _):
        for _ in range(60):
            data = draw.randbytes(draw.choice((1, 4, 40, 4000)))
            if draw.random() < 0.5:  # begin with what is understood
                data = (
                    bytes(draw.choice((12, 14, 15, 23, 52, 53, 65, 68, 69)) for _ in range(5))
                    + data
                )
            with plug(server) as connected:
                try:
                    connected.sendall(data)
                    connected.shutdown(socket.SHUT_WR)
                except ConnectionError:
                    pass  # it was closed before all was sent
                rest(connected)
        with connect(server) as client:
            assert client.get_game_state() in tuple(GameState)


def test_the_early_dialect_over_the_wire():
    what = evaluation(trial(1), step=1, in_training=True)
    with (
        serving(what, table=codec.EARLY) as (server, _, _),
        AgentClient(port=server.address[1], dialect="early") as client,
    ):
        agent = DemoAgent(client)
        agent.run()
        assert " ".join(agent.history) == "11 9 L1 12 13"


def test_every_method_of_the_client():
    what = evaluation(trial(level_set(2, attempts=0)))
    with serving(what, shots=9) as (server, _, _), connect(server) as client:
        assert client.configure(7) == (0, 0, 0)
        assert client.ready_for_new_set().testing is False
        client.ready_for_new_set()
        assert client.load_level(0)  # clients ask for level 1 instead
        assert client.restart_level() and client.shoot(1, 0)
        assert client.shoot_sequence([(1, 0), (0, 0)]) == [True, True]
        assert client.get_current_score() == 30
        assert client.get_ground_truth_without_screenshot() == {"shots": 3}
        picture = np.frombuffer(b"abcdef", np.uint8).reshape(2, 1, 3)
        np.testing.assert_array_equal(client.do_screenshot(), picture)
        assert client.get_initial_state_screenshot().tobytes() == b"xyz"
        for pixels, vector in (
            client.get_ground_truth_with_screenshot(),
            client.get_noisy_ground_truth_with_screenshot(),
        ):
            np.testing.assert_array_equal(pixels, picture)
            assert vector == client.get_noisy_ground_truth_without_screenshot() == {"shots": 3}
        assert client.batch_ground_truth(1, 5) == [{"shots": 3}]
        assert client.fully_zoom_in() and client.fully_zoom_out()
        assert client.set_game_simulation_speed(20)
        assert client.get_number_of_levels() == 0 and client.get_current_level() == 1
        assert client.get_all_level_scores() == () and client.get_novelty_hint(1) == []
        assert client.fast_shoot(1, 0) and client.shoot(100, 90, polar=True)
        assert len(client.shoot_and_record_ground_truth(1, 0, frequency=1)) == 1
        assert client.report_novelty_likelihood(0.5, 0.5) and client.report_novelty_description("")
        assert client.get_novelty_info() == -1
        assert client.load_next_available_level() == 2


# --- clients that come and go ----------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_a_hundred_clients_leave_nothing_behind():
    threads = threading.active_count()
    before = descriptors()
    with serving(evaluation(trial(1))) as (server, _, _):
        still_answers(server)
        inside = descriptors()
        for number in range(100):
            with plug(server) as connected:
                connected.sendall(b"\x0c"[: number % 2])
                if number % 2:
                    assert connected.recv(1) == b"\x0b"
        still_answers(server)
        assert threading.active_count() == threads + 1
        assert descriptors() <= inside + 1  # the last one may not have been looked at
    assert threading.active_count() == threads
    assert descriptors() == before


@pytest.mark.parametrize("name", ["B", "C", "D"])
def test_each_request_may_come_from_another_client(name):
    """Whoever leaves at whatever state, the next one goes on."""
    what, expected = TRACES[name]

    class Restless:
        def __init__(self, server) -> None:
            self.server = server

        def __getattr__(self, name):
            def ask(*values):
                with connect(self.server) as client:
                    return getattr(client, name)(*values)

            return ask

    with serving(what) as (server, _, _):
        server._finished = lambda: False  # it would end with the first client that leaves
        agent = DemoAgent(Restless(server))
        agent.run()
        assert " ".join(agent.history) == expected


@pytest.mark.parametrize("sent", range(1, 21))
def test_a_client_may_leave_within_a_request(sent):
    report = {"novel": 0.9, "non_novel": 0.1, "ids": (), "level": 0, "description": "word"}
    data = BY_NAME["report_likelihood"].encode(report)[:sent]
    with serving(evaluation(trial(1))) as (server, _, _):
        with plug(server) as connected:
            connected.sendall(data)
        still_answers(server)


def test_a_connection_that_is_reset_is_dropped():
    with serving(evaluation(trial(1))) as (server, _, _):
        connected = plug(server)
        connected.sendall(b"\x0c")
        assert connected.recv(1) == b"\x0b"
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connected.close()
        still_answers(server)


def test_a_second_client_is_refused_politely():
    with serving(evaluation(trial(1))) as (server, _, notes), connect(server) as first:
        assert first.get_game_state() == GameState.NEWTRIAL
        for _ in range(3):
            with plug(server) as second:
                assert rest(second) == bytes([codec.NOTHING_LEFT])
            with connect(server) as second, pytest.raises(Disconnected):
                second.get_game_state()
        assert first.get_game_state() == GameState.NEWTRIAL
        assert "refused a second client" in notes


def test_a_client_that_was_refused_connects_again():
    with serving(evaluation(trial(1)), shots=3) as (server, _, _):
        with connect(server) as first:
            first.get_game_state()
            second = connect(server)
            with pytest.raises(Disconnected):
                second.shoot_sequence([(1, 0)])
        for _ in range(2000):  # until the server has taken notice of the end
            second.connect_to_server()
            try:
                assert second.get_game_state() == GameState.NEWTRIAL
                break
            except Disconnected:
                time.sleep(0.01)
        with second:
            assert second.report_novelty_likelihood(0.5, 0.5)
            assert second.request("report_groups", likelihoods=(0.5, 0.25)) == {}
            assert second.get_game_state() == GameState.NEWTRIAL


@pytest.mark.parametrize("sent", [b"", b"\x42\x3f", b"\x0c"])
def test_a_silent_client_is_disconnected(sent):
    with serving(evaluation(trial(1)), idle_limit=300) as (server, clock, notes):
        with plug(server) as connected:
            connected.sendall(sent)
            if sent == b"\x0c":
                assert connected.recv(1) == b"\x0b"
            while not notes:
                connected.settimeout(0.01)
                try:
                    connected.recv(1)
                except TimeoutError:
                    continue
            while sent.startswith(b"\x42") and server._client.request_deadline is None:
                time.sleep(0.001)  # the server has not read it yet
            connected.settimeout(20)
            limit = server_module.REQUEST_LIMIT if sent.startswith(b"\x42") else 300
            clock.advance(limit - 0.1)
            connected.sendall(b"")
            clock.advance(0.2)
            assert rest(connected) == b""
        rest_of_it = "10 s of waiting for the rest of report_likelihood after 2 bytes"
        words = rest_of_it if limit < 300 else "no request"
        assert notes[-1].startswith(f"disconnected: {words}")
        still_answers(server)


def test_a_request_has_no_more_time_than_an_idle_client():
    with serving(evaluation(trial(1)), idle_limit=4) as (server, clock, _):
        with plug(server) as connected:
            connected.sendall(b"\x0c")
            assert connected.recv(1) == b"\x0b"
            closed = False
            # 6 s, in which it is never idle for long; a request may take 10 s elsewhere.
            for byte in BY_NAME["report_description"].encode({"text": "x" * 300})[:12]:
                clock.advance(0.5)
                try:
                    connected.sendall(bytes([byte]))
                except ConnectionError:
                    closed = True
                    break
            assert closed or rest(connected) == b""
        still_answers(server)


def test_a_request_that_never_ends_has_no_more_time():
    with serving(evaluation(trial(1)), idle_limit=300) as (server, clock, _):
        with plug(server) as connected:
            connected.sendall(b"\x0c")
            assert connected.recv(1) == b"\x0b"
            closed = False
            # 400 s for two thirds of a request.
            for byte in BY_NAME["report_description"].encode({"text": "x" * 300})[:200]:
                clock.advance(2)
                try:
                    connected.sendall(bytes([byte]))
                except ConnectionError:
                    closed = True
                    break
            assert closed or rest(connected) == b""
        still_answers(server)


class Pictures(ShotGame):
    """A game whose pictures are larger than what a connection buffers."""

    def picture(self):
        return codec.Picture(2048, 2048, bytes(3 * 2048 * 2048))


def test_a_client_that_takes_a_byte_a_second_has_no_more_time():
    """The limit is that of the whole reply: what is taken of it renews nothing."""
    what = evaluation(trial(1))
    with (
        serving(what, game=Pictures(), idle_limit=60) as (server, clock, notes),
        socket.socket() as line,
    ):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(20)
        line.connect(server.address)
        line.sendall(bytes([68, 68, 53, 11]))  # a picture of the level that is loaded
        data = b""
        while len(data) < 19 + 19 + 4 + 1:  # what comes before the picture, and a byte of it
            data += line.recv(1)
        for _ in range(61):
            assert line.recv(1)
            clock.advance(1)
        assert len(rest(line)) < 3 * 2048 * 2048
        assert any("a reply not taken, for 60 s" in note for note in notes)
        with connect(server) as client:
            assert client.get_game_state() == GameState.PLAYING


LAYOUTS = {
    "batch with frames": (struct.pack(">Bii", 70, 1, 300), 1),
    "batch without": (struct.pack(">Bi", 70, 1), 1),
    "record with an option": (struct.pack(">B6i", 38, 1, 0, 0, 0, 1, 0), 1),
    "record without": (struct.pack(">B5i", 38, 1, 0, 0, 0, 1), 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("pause", [False, True])
def test_both_layouts_are_answered(name, pause):
    """Also where the bytes come one by one, so that the reply is there before the last ones."""
    data, vectors = LAYOUTS[name]
    with serving(evaluation(trial(1)), shots=9) as (server, _, notes), plug(server) as line:
        line.sendall(bytes([68, 68, 53]))
        stream = line.makefile("rb")
        assert len(stream.read(19 + 19 + 4)) == 42
        for byte in (data[i : i + 1] for i in range(len(data))) if pause else [data]:
            line.sendall(byte)
        (count,) = struct.unpack(">I", stream.read(4))
        assert count == vectors
        for _ in range(count):
            (length,) = struct.unpack(">I", stream.read(4))
            text = stream.read(length)
            assert text[-5:] == codec.TRAILER
            assert json.loads(text[:-5]) == json.loads(text)
        line.sendall(b"\x0c")  # and the line goes on
        assert stream.read(1)[0] in tuple(GameState)
        assert not any("disconnected" in note for note in notes)


def test_requests_of_the_early_dialect_are_not_waited_for():
    """A likelihood without ids is shorter, a shot with its point longer: the line is closed."""
    early = codec.EARLY
    likelihood = early[66].encode({"novel": 0.5, "non_novel": 0.5})
    shot = early[31].encode({"fx": 0, "fy": 0, "dx": 9, "dy": 9, "t1": 0, "t2": 0})
    with serving(evaluation(trial(1))) as (server, clock, notes):
        with plug(server) as line:
            line.sendall(likelihood)
            while server._client is None or server._client.request_deadline is None:
                threading.Event().wait(0.01)
            clock.advance(server_module.REQUEST_LIMIT + 0.1)
            assert rest(line) == b""
        assert "rest of report_likelihood after 9 bytes; is the client of the early" in notes[-1]
        with plug(server) as line:
            line.sendall(shot)
            assert len(rest(line)) <= 1
        assert "unknown request code 0 after shoot; is the client of the early" in notes[-1]


def test_a_reply_that_is_taken_byte_by_byte_has_no_more_time():
    with serving(evaluation(trial(1)), game=WideGame(2)) as (server, clock, notes):
        with plug(server) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.sendall(bytes([68, 68, 53, 11]))
            received = 0
            for _ in range(200):
                clock.advance(2)  # 400 s, a little taken in each
                received += len(line.recv(1000))
                if any("disconnected" in note for note in notes):
                    break
            assert received < 3_000_000
        while not any("a reply not taken, for 300 s" in note for note in notes):
            threading.Event().wait(0.01)


class WideGame(ShotGame):
    def picture(self) -> codec.Picture:
        return codec.Picture(1000, 1000, bytes(3_000_000))


def test_replies_that_are_not_taken_do_not_pile_up():
    with serving(evaluation(trial(1)), game=WideGame(2)) as (server, clock, notes):
        with plug(server) as connected:
            connected.sendall(bytes([68, 68, 53]) + bytes([11]) * 5000)
            assert len(connected.recv(100)) > 0
            clock.advance(1)
            client = server._client
            assert len(client.unsent) <= 3_000_100
            assert len(client.decoder) <= 6000
            while not any("disconnected" in note for note in list(notes)):
                clock.advance(301)
                threading.Event().wait(0.01)
        still_answers_after_play(server)


def still_answers_after_play(server) -> None:
    with connect(server) as client:
        assert client.get_game_state() == GameState.PLAYING


# --- the end ---------------------------------------------------------------------------------


def test_the_server_ends_behind_the_last_client():
    with serving(evaluation()) as (server, _, _):
        address = server.address
        with connect(server) as client:
            assert client.get_game_state() == GameState.EVALUATION_TERMINATED
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 5)


def test_levels_that_are_over_are_on_disk_whenever_the_server_stops(tmp_path):
    files = ResultWriter.below(tmp_path, "a", 1, STARTED)
    what = evaluation(trial(9))
    with (
        serving(what, shots=2, results=files) as (server, _, _),
        connect(server) as client,
    ):
        client.ready_for_new_set(), client.ready_for_new_set()
        for number in range(3):
            client.load_next_available_level()
            client.shoot(1, 0), client.shoot(1, 0)
            (path,) = files.folder.iterdir()
            assert path.read_text().count("Pass") == number + 1
        client.load_next_available_level()
        client.shoot(1, 0)
    assert [line.split(",")[3] for line in path.read_text().splitlines()[1:]] == [
        "Pass",
        "Pass",
        "Pass",
        "Playing",
    ]


def test_a_disk_that_is_full_ends_the_server(tmp_path):
    files = ResultWriter.below(tmp_path, "a", 1, STARTED)

    def full(*_):
        raise OSError(28, "No space left on device")

    files.level = full
    with (
        pytest.raises(AssertionError, match="No space left on device"),
        serving(evaluation(trial(1)), results=files) as (server, _, _),
        connect(server) as client,
    ):
        client.ready_for_new_set(), client.ready_for_new_set(), client.load_next_available_level()
        with pytest.raises(Disconnected):
            client.shoot(1, 0)
