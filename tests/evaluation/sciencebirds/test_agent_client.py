"""Each method of the client sends its request with its fields, and returns the reply."""

import numpy as np
import pytest

from evaluation.sciencebirds import agent_client, codec
from evaluation.sciencebirds.agent_client import AgentClient, Header

PICTURE = codec.Picture(2, 1, bytes(range(6)))
IMAGE = [[[0, 1, 2], [3, 4, 5]]]
VECTOR = {"a": 1.0}
OK = {"accepted": 1}
SHOT = {"x": 3, "y": 4, "t1": 5, "t2": 6}
POLAR = {"radius": 3, "angle": 4, "t1": 5, "t2": 6}
FROM_POINT = {"fx": 0, "fy": 0, "dx": 3, "dy": 4, "t1": 5, "t2": 6}
LIKELIHOOD = {"novel": 0.75, "non_novel": 0.5}
WORDS = {"ids": (7, 8), "level": 2, "description": "words"}
HEADER = dict(zip(Header._fields, range(11, 18), strict=True))

CALLS = [
    ("configure", (7, 2), "configure", {"agent_id": 7, "mode": 2}, {"round": 1, "minutes": 2}),
    ("get_game_state", (), "state", {}, {"state": 9}, 9),
    ("ready_for_new_set", (), "ready", {}, HEADER, Header(*range(11, 18))),
    ("report_novelty_description", ("words",), "report_description", {"text": "words"}, OK, True),
    ("get_novelty_info", (), "novelty_info", {}, {"novelty": -1}, -1),
    ("get_novelty_hint", (3,), "hint", {"level": 3}, {"hint": [VECTOR]}, [VECTOR]),
    ("load_next_available_level", (), "load_next", {}, {"level": 4}, 4),
    ("load_level", (5,), "load_level", {"level": 5}, OK, True),
    ("load_level", (-5,), "load_level", {"level": 1}, {"accepted": 0}, False),
    ("restart_level", (), "restart", {}, OK, True),
    ("get_number_of_levels", (), "number_of_levels", {}, {"levels": 6}, 6),
    ("get_current_level", (), "current_level", {}, {"level": 1}, 1),
    ("get_current_score", (), "score", {}, {"score": 8}, 8),
    ("get_all_level_scores", (), "all_scores", {}, {"scores": [1, 2]}, (1, 2)),
    ("shoot", (3, 4, 5, 6), "shoot", SHOT, OK, True),
    ("shoot", (3, 4, 5, 6, True), "shoot_polar", POLAR, OK, True),
    ("fast_shoot", (3, 4, 5, 6), "shoot_fast", SHOT, OK, True),
    ("fast_shoot", (3, 4, 5, 6, True), "shoot_polar_fast", POLAR, {"accepted": 0}, False),
    (
        *("shoot_and_record_ground_truth", (3, 4, 5, 6, 2), "shoot_and_record"),
        *(SHOT | {"frequency": 2}, {"vectors": [VECTOR]}, [VECTOR]),
    ),
    ("batch_ground_truth", (2, 1), "batch", {"frequency": 2}, {"vectors": [VECTOR, {}]}, [VECTOR]),
    ("get_ground_truth_without_screenshot", (), "ground_truth", {}, {"vector": VECTOR}, VECTOR),
    (
        *("get_noisy_ground_truth_without_screenshot", (), "noisy_ground_truth"),
        *({}, {"vector": VECTOR}, VECTOR),
    ),
    (
        *("get_ground_truth_with_screenshot", (), "ground_truth_with_screenshot"),
        *({}, {"vector": VECTOR, "picture": PICTURE}, (IMAGE, VECTOR)),
    ),
    (
        *("get_noisy_ground_truth_with_screenshot", (), "noisy_ground_truth_with_screenshot"),
        *({}, {"vector": VECTOR, "picture": PICTURE}, (IMAGE, VECTOR)),
    ),
    ("do_screenshot", (), "screenshot", {}, {"picture": PICTURE}, IMAGE),
    ("get_initial_state_screenshot", (), "initial_screenshot", {}, {"picture": PICTURE}, IMAGE),
    ("fully_zoom_in", (), "zoom_in", {}, OK, True),
    ("fully_zoom_out", (), "zoom_out", {}, OK, True),
    ("set_game_simulation_speed", (9,), "set_speed", {"speed": 9}, OK, True),
    (
        *("report_novelty_likelihood", (0.75, 0.5, [7, 8], 2, "words"), "report_likelihood"),
        *(LIKELIHOOD | WORDS, OK, True),
    ),
]
CALLS[0] = (*CALLS[0][:4], {"round": 1, "minutes": 2, "levels": 3}, (1, 2, 3))


def plain(value):
    """Pictures as lists, also inside of a tuple."""
    if isinstance(value, np.ndarray):
        assert value.dtype == np.uint8
        return value.tolist()
    return tuple(map(plain, value)) if type(value) is tuple else value


def asked(monkeypatch, reply, **options):
    """A client whose requests are noted and have one reply."""
    requests = []
    client = AgentClient(**options)

    def request(name, **values):
        message = client._table[codec.BY_NAME[name].code]
        assert {field for field, _ in message.fields} == values.keys()
        assert {field for field, _ in message.reply} == reply.keys()
        requests.append((name, values))
        return reply

    monkeypatch.setattr(client, "request", request)
    return client, requests


@pytest.mark.parametrize(
    ("method", "arguments", "name", "values", "reply", "result"),
    CALLS,
    ids=[f"{number} {call[0]}" for number, call in enumerate(CALLS)],
)
def test_a_method_is_its_request(monkeypatch, method, arguments, name, values, reply, result):
    client, requests = asked(monkeypatch, reply)
    returned = getattr(client, method)(*arguments)
    assert requests == [(name, values)]
    assert plain(returned) == result


def test_every_method_is_in_the_table():
    names = {name for name in vars(AgentClient) if not name.startswith("_")}
    elsewhere = {"connect_to_server", "disconnect_from_server", "request", "shoot_sequence"}
    assert names - elsewhere == {call[0] for call in CALLS}


@pytest.mark.parametrize(("method", "name"), [("shoot", "shoot"), ("fast_shoot", "shoot_fast")])
def test_the_early_dialect_sends_a_point_with_a_shot(monkeypatch, method, name):
    client, requests = asked(monkeypatch, OK, dialect="early")
    assert getattr(client, method)(3, 4, 5, 6)
    assert requests == [(name, FROM_POINT)]


def test_a_header_tells_tests_from_training():
    assert [Header(*(0,) * 4, mode, 0, 0).testing for mode in (0, 1)] == [False, True]


def test_a_client_connects_where_it_is_told_and_once(monkeypatch):
    connected = []

    class Line:
        def setsockopt(self, *given):
            connected.append(given[1:])

        def close(self):
            connected.append("closed")

    def connect(address, timeout):
        connected.append((address, timeout))
        return Line()

    monkeypatch.setattr(agent_client.socket, "create_connection", connect)
    with AgentClient("host", 7, timeout=9.0) as client:
        client.connect_to_server()
    client.disconnect_from_server()
    option = agent_client.socket.TCP_NODELAY
    assert connected == [(("host", 7), 9.0), (option, 1), "closed"]
    with pytest.raises(agent_client.Disconnected, match="there is no connection"):
        client.get_game_state()


class Line:
    """A connection with scripted answers, some of them errors."""

    def __init__(self, answers):
        self.answers, self.sent, self.closed = iter(answers), [], False

    def setsockopt(self, *_):
        pass

    def sendall(self, data):
        self.sent.append(data)

    def recv(self, size):
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        assert len(answer) <= size
        return answer

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("answers", "error"),
    [([b"\0\0", TimeoutError()], TimeoutError), ([b"\0", b""], agent_client.Disconnected)],
)
def test_an_error_ends_the_connection_and_the_next_one_is_new(monkeypatch, answers, error):
    """A reply that comes late is not taken for that of the next request."""
    lines = [Line(answers), Line([bytes(3), b"\x4d"])]
    connections = iter(lines)
    monkeypatch.setattr(agent_client.socket, "create_connection", lambda *_: next(connections))
    client = AgentClient()
    client.connect_to_server()
    with pytest.raises(error):
        client.get_current_score()
    assert lines[0].closed
    with pytest.raises(agent_client.Disconnected, match="call connect_to_server"):
        client.get_current_score()
    client.connect_to_server()
    assert client.get_current_score() == 77
    assert [line.closed for line in lines] == [True, False]


@pytest.mark.parametrize(
    ("method", "arguments"), [("restart_level", ()), ("shoot_sequence", ([(1, 0)],))]
)
def test_a_refusal_is_no_answer(monkeypatch, method, arguments):
    line = Line([bytes([codec.NOTHING_LEFT])])
    monkeypatch.setattr(agent_client.socket, "create_connection", lambda *_: line)
    client = AgentClient()
    client.connect_to_server()
    with pytest.raises(agent_client.Disconnected, match="another client"):
        getattr(client, method)(*arguments)
    assert line.closed


def test_values_that_cannot_be_sent_leave_the_connection_open(monkeypatch):
    line = Line([bytes(4)])
    monkeypatch.setattr(agent_client.socket, "create_connection", lambda *_: line)
    client = AgentClient()
    client.connect_to_server()
    with pytest.raises(ValueError, match="set_speed"):
        client.set_game_simulation_speed(-1)
    assert client.get_current_score() == 0


def test_a_request_without_a_reply_waits_for_none(monkeypatch):
    line = Line([])
    monkeypatch.setattr(agent_client.socket, "create_connection", lambda *_: line)
    client = AgentClient()
    client.connect_to_server()
    assert client.request("report_groups", likelihoods=(0.5,)) == {}
    assert line.sent == [codec.BY_NAME["report_groups"].encode({"likelihoods": (0.5,)})]
