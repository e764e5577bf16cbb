"""The server's side of the RabbitMQ transport, with a broker in memory."""

import importlib.util
import json
import queue
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest

from evaluation import cli, sailon
from evaluation.clock import ScriptedClock
from evaluation.sailon.serve import protocol
from evaluation.sailon.serve.protocol import BadMessage, Delivery
from evaluation.sailon.serve.remote import AgentGone, Conversation
from evaluation.sailon.serve.server import ExperimentServer
from evaluation.sailon.serve.transport import Lost, Rabbit

ROOT = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location(
    "amqp_agent", ROOT / "examples" / "sailon" / "amqp_agent.py"
)
amqp_agent = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(amqp_agent)


class Memory:
    """A broker in this process; a `Transport`, and what agents call."""

    def __init__(self):
        self.queues, self.arrived = {}, queue.Queue()
        self.answers, self.lost = {}, False

    def listen(self, name, *, shared):
        self.queues[name] = shared

    def receive(self, seconds):
        if self.lost:
            raise Lost("the broker is gone")
        try:
            one = self.arrived.get(timeout=seconds)
        except queue.Empty:
            return []
        return [one] if isinstance(one, Delivery) else []

    def send(self, name, body, correlation_id):
        self.answers[name].put((correlation_id, json.loads(body)))

    def wake(self):
        self.arrived.put(None)

    def close(self):
        pass

    def agent(self):
        """A function that sends a request and returns its answer, or None where none comes."""
        inbox, answers = uuid.uuid4().hex, queue.Queue()
        self.answers[inbox] = answers

        def call(name, message, known_by=None, raw=None, wait=30):
            known_by = known_by or uuid.uuid4().hex
            body = json.dumps([message]).encode() if raw is None else raw
            assert name in self.queues
            self.arrived.put(Delivery(name, body, inbox, known_by))
            if not wait:
                return None
            answer_id, (answer,) = answers.get(timeout=wait)
            assert answer_id == known_by
            return answer

        return call


class Serving:
    """A server in a thread."""

    def __init__(self, plan, **options):
        self.broker, self.notes, self.error = Memory(), [], None
        self.clock = options.pop("clock", None)
        self.server = ExperimentServer(
            plan, self.broker, clock=self.clock, note=self.notes.append, **options
        )
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        while protocol.REQUESTS_QUEUE not in self.broker.queues:
            self.thread.join(0.001)

    def _serve(self):
        try:
            self.server.serve()
        except BaseException as error:
            self.error = error

    def end(self):
        self.thread.join(60)
        assert not self.thread.is_alive()
        return [seat.results for seat in self.server.seats]


class Scripted:
    """Gives up in most episodes, so that a test is short; keeps what it was told."""

    end_training_early = end_experiment_early = False

    def __init__(self, ticks=2, probability=0.25):
        self.ticks, self.probability = ticks, probability
        self.remaining, self.calls = 0, []

    def __getattr__(self, name):
        if name.startswith("_") or name.endswith("early"):
            raise AttributeError(name)
        return lambda **values: self.calls.append((name, values))

    def training_episode_start(self, episode_number):
        self.remaining = self.ticks
        self.calls.append(("training_episode_start", {"episode_number": episode_number}))

    def testing_episode_start(self, episode_number):
        self.remaining = self.ticks
        self.calls.append(("testing_episode_start", {"episode_number": episode_number}))

    def training_instance(self, feature_vector, feature_label):
        self.calls.append(("training_instance", {"label": feature_label}))
        return self.testing_instance(feature_vector)

    def testing_instance(self, feature_vector, novelty_indicator=None):
        self.remaining -= 1
        return {"action": "left" if self.remaining else "give_up"}

    def training_episode_end(self, performance, feedback=None):
        return self.probability, 0.5, 1, {"level": [{"level_number": 1, "probability": 1.0}]}

    testing_episode_end = training_episode_end


def without_clock(calls):
    """The calls without those that name folders of models."""
    return [(name, values) for name, values in calls if name not in ("save_model", "reset_model")]


def test_results_and_calls_are_those_of_an_agent_in_process(draw, tmp_path):
    plan = draw(trials=2, testing_episodes=3, training_episodes=2, budget=1.0)
    local, remote = Scripted(probability=0.75), Scripted(probability=0.75)
    expected = sailon.play(plan, local)
    serving = Serving(plan, out=tmp_path)
    amqp_agent.play(remote, serving.broker.agent(), "some / agent")
    (results,) = serving.end()
    assert serving.error is None
    for name, column in expected.rows.items():
        np.testing.assert_array_equal(results.rows[name], column, err_msg=name)
    assert results.metadata["problems"] == []
    assert without_clock(remote.calls) == without_clock(local.calls)
    assert any(values.get("feedback") for _, values in remote.calls)
    (folder,) = tmp_path.iterdir()
    assert folder.name == "00-some_agent"
    written = sailon.load_results(folder / "results.parquet")
    np.testing.assert_array_equal(written.rows["performance"], results.rows["performance"])
    assert (folder / "experiment.json").exists() and (folder / "results.csv").exists()


def test_several_agents_play_each_their_own(draw):
    plan = draw(trials=1, testing_episodes=2, pre_novel_episodes=1, training_episodes=1)
    serving = Serving(plan, agents=3)
    agents = [Scripted(ticks) for ticks in (1, 2, 3)]
    threads = [
        threading.Thread(target=amqp_agent.play, args=(agent, serving.broker.agent(), str(n)))
        for n, agent in enumerate(agents)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for seat, results in zip(serving.server.seats, serving.end(), strict=True):
        expected = sailon.play(plan, Scripted(int(seat.name) + 1))
        np.testing.assert_array_equal(results.rows["length"], expected.rows["length"])
    secrets = {seat.talk._secret for seat in serving.server.seats}
    assert len(secrets) == len({seat.queue for seat in serving.server.seats}) == 3


def test_the_agents_wishes_are_heard(draw):
    plan = draw(trials=2, testing_episodes=2, pre_novel_episodes=1, training_episodes=3)
    serving, agent = Serving(plan), Scripted()
    agent.end_training_early = True
    amqp_agent.play(agent, serving.broker.agent())
    (results,) = serving.end()
    assert results.rows["problem"][1] == "not played: the agent ended the training early"
    assert np.isfinite(results.rows["performance"][3:]).all()
    call = Serving(plan)
    broker = call.broker.agent()

    def without_testing(name, message):
        return broker(name, {**message, "no_testing": True})

    counts = amqp_agent.play(Scripted(), without_testing)
    call.end()
    assert counts["episodes"] == 3


# What goes wrong ----------------------------------------------------------------------------------


def registered(serving):
    call = serving.broker.agent()
    model = json.dumps({"model_name": "m"})
    welcome = call(
        protocol.REQUESTS_QUEUE, {"obj_type": "request_experiment", "model": model}, "first"
    )
    return call, welcome


SMALL = {"trials": 1, "testing_episodes": 2, "pre_novel_episodes": 1, "training_episodes": 1}


def test_an_agent_that_is_silent_ends_its_experiment(draw, tmp_path):
    clock = ScriptedClock()
    serving = Serving(draw(**SMALL, normal_timeout_seconds=100), clock=clock, out=tmp_path)
    call, welcome = registered(serving)
    assert welcome["experiment_timeout"] == 100
    assert call(welcome["server_rpc_queue"], {"obj_type": "request_state"})
    while serving.thread.is_alive():
        clock.advance(10)
        serving.thread.join(0.02)
    (results,) = serving.end()
    reason = "the agent sent no benchmark_data for 95 s"
    assert reason in results.metadata["problems"]
    # As in process, an episode that has begun counts, with the performance so far.
    np.testing.assert_array_equal(results.rows["performance"], [0.0, np.nan, np.nan])
    assert all(reason in text for text in results.rows["problem"])
    assert serving.notes[-1] == f"agent 0, m: {reason}"
    assert (tmp_path / "00-m" / "results.parquet").exists()


@pytest.mark.parametrize("first", ["nonsense", "a request that was answered"])
def test_an_agent_that_sends_what_is_not_due_has_no_more_time(first):
    """A byte, or a request that came before, a second: the limit is that of the request due."""
    clock, sent = ScriptedClock(), []

    def answered(delivery, message):
        sent.append(message)
        clock.advance(1)
        talk.put(delivery)

    talk = Conversation("secret", answered, clock, 20.0)
    body = json.dumps([{"obj_type": "request_state"}]).encode()
    talk.put(Delivery("queue", b"1" if first == "nonsense" else body, "inbox", "known"))
    if first != "nonsense":
        talk.receive("request_state")
        talk.reply("answer")
    with pytest.raises(AgentGone, match="sent no benchmark_data for 20 s"):
        talk.receive("benchmark_data")
    assert len(sent) <= 22


def test_a_broker_that_takes_nothing_is_not_waited_for_for_ever(monkeypatch):
    pika = pytest.importorskip("pika")
    settings = []

    class Connection:
        def __init__(self, parameters):
            settings.append(parameters)

        def channel(self):
            return None

    monkeypatch.setattr(pika, "BlockingConnection", Connection)
    Rabbit("amqp://guest:guest@127.0.0.1:5672/%2F", patience=7.0)
    (parameters,) = settings
    assert parameters.blocked_connection_timeout == 7.0
    assert 0 < parameters.heartbeat <= 60


def test_what_is_no_message_is_refused_and_named(draw):
    serving = Serving(draw(**SMALL))
    call, welcome = registered(serving)
    place = welcome["server_rpc_queue"]
    for raw, words in (
        (b"{", "not JSON"),
        (b"[NaN]", "not JSON"),
        (b"[]", "a list with one object"),
        (b"[{}]", "without an obj_type"),
        (b"x" * (protocol.MAX_BYTES + 1), "at most 1048576 are read"),
    ):
        answer = call(place, None, raw=raw)
        assert answer["status"] == "error" and words in answer["error_message"]
    answer = call(place, {"obj_type": "request_training_data"})
    assert answer["error_message"] == "request_training_data instead of request_state"
    answer = call(place, {"obj_type": "request_state", "secret": "guess"})
    assert "another secret" in answer["error_message"]
    amqp_agent_again(serving, call, welcome)
    (results,) = serving.end()
    assert np.isfinite(results.rows["performance"]).all()
    assert len(results.metadata["problems"]) == 7


def amqp_agent_again(serving, call, welcome):
    """Let the example play with an agent that has registered already, each request sent twice."""

    def twice(name, message):
        if name == protocol.REQUESTS_QUEUE:
            return welcome
        return call(name, message)

    amqp_agent.play(Scripted(), twice)


def test_a_request_that_comes_twice_is_answered_twice(draw):
    serving = Serving(draw(**SMALL))
    call, welcome = registered(serving)
    again = {"obj_type": "request_experiment", "model": "{}"}
    assert call(protocol.REQUESTS_QUEUE, again, "first") == welcome
    assert len(serving.server.seats) == 1
    place, known_by = welcome["server_rpc_queue"], "one"
    first = call(place, {"obj_type": "request_state"}, known_by)
    assert call(place, {"obj_type": "request_state"}, known_by) == first
    amqp_agent_again_from_benchmark(call, place, welcome)
    (results,) = serving.end()
    assert results.metadata["problems"] == [
        "a request came twice; benchmark_request was sent again"
    ]


def amqp_agent_again_from_benchmark(call, place, welcome):
    """Go on where `benchmark_request` was answered."""
    call(place, {"obj_type": "benchmark_data", "benchmark_data": {}})
    answers = iter([{"obj_type": "benchmark_request"}, {"obj_type": "benchmark_ack"}])

    def rest(name, message):
        if name == protocol.REQUESTS_QUEUE:
            return welcome
        return next(answers, None) or call(name, message)

    amqp_agent.play(Scripted(), rest)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"obj_type": "request_experiment_trials"}, "workers that share an experiment"),
        ({"obj_type": "request_state"}, "request_state instead of request_experiment"),
        ({"obj_type": "request_experiment"}, "model is None; it must be JSON text"),
        ({"obj_type": "request_experiment", "model": "{"}, "model is not JSON"),
        ({"obj_type": "request_experiment", "model": "[1]"}, "model is [1]"),
    ],
)
def test_registrations_that_are_refused(draw, message, words):
    serving = Serving(draw(**SMALL))
    answer = serving.broker.agent()(protocol.REQUESTS_QUEUE, message)
    assert answer["status"] == "error" and words in answer["error_message"]
    assert serving.notes[-1].startswith("refused: ") and not serving.server.seats
    serving.broker.lost = True
    serving.end()


def test_more_agents_than_expected_are_refused(draw):
    serving = Serving(draw(**SMALL))
    registered(serving)
    answer = serving.broker.agent()(
        protocol.REQUESTS_QUEUE, {"obj_type": "request_experiment", "model": "{}"}
    )
    assert "all 1 agents have registered" in answer["error_message"]
    serving.broker.lost = True
    serving.end()


def test_a_broker_that_is_gone_for_good(draw, tmp_path):
    serving = Serving(draw(**SMALL), out=tmp_path)
    registered(serving)
    serving.broker.lost = True
    (results,) = serving.end()
    assert isinstance(serving.error, Lost)
    assert "the broker is gone" in results.metadata["problems"]
    assert (tmp_path / "00-m" / "results.parquet").exists()


def test_models():
    assert protocol.name_of(protocol.model_of({"model": {"model_name": "x" * 900}})) == "x" * 200
    assert protocol.name_of(protocol.model_of({"model": '{"model_name": 3}'})) == "agent"
    with pytest.raises(BadMessage):
        protocol.decode(b"[" * 100_000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agents", "0"], "agents is 0; it must be from 1 to 64"),
        (["--broker", "http://x"], "broker is 'http://x'; it must be as amqp://"),
        (["--broker", "amqp://127.0.0.1:1/%2F"], "there is no broker at 127.0.0.1, port 1 ("),
    ],
)
def test_wrong_input_is_one_line(tmp_path, capsys, words, message):
    pytest.importorskip("pika")
    plan = str(ROOT / "examples" / "sailon" / "experiment.json")
    assert cli.main(["sailon", "serve", plan, "--out", str(tmp_path / "out"), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []
