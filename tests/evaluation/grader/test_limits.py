"""Limits of time and memory: in any thread, without signals, and never a suite that hangs."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.grader import (
    AgentError,
    ReinforcementLearningTestCase,
    StepCountEvaluator,
    TestCase,
    TestSuite,
    TimeoutException,
    VectorTestCase,
    alarm,
    batched,
    child,
    hosting,
    processes,
)
from evaluation.grader.answers import PIECE, CallWriter
from evaluation.grader.limits import Limits
from tests.evaluation.grader import players
from tests.evaluation.grader.worlds import OldCartPole, lanes_of

STARTS = dict.fromkeys([None, 0, 1, 2], (0.02, 0.01, 0.05, -0.01))
TIMED_OUT = {"type": "TimeoutException", "message": "Timed out!"}
MEMORY = 400 << 20


def case_of(time_limit=None, *, n_runs=2, clock=None, **options):
    env, evaluator = OldCartPole(STARTS), StepCountEvaluator()
    seeds = list(range(n_runs))
    options = {"clock": clock, **options}
    return ReinforcementLearningTestCase(
        500, seeds, 0, time_limit, n_runs, env, evaluator, **options
    )


# With a scripted clock ----------------------------------------------------------------------------


@pytest.mark.requirement(59)
@pytest.mark.parametrize(
    ("limit", "seconds", "steps"),
    [
        (1.0, 0.3, 3),  # the step that ends at 1.2 s does not count
        (0.75, 0.25, 3),  # one that ends with the limit does
        (2**-10, 2**-13, 8),
        (4.0, 0.25, 16),  # two whole episodes
        (float("inf"), 1e9, 16),
        (0, 1e9, 16),
        (None, 1e9, 16),
    ],
)
def test_a_limit_ends_a_case_at_its_time(limit, seconds, steps):
    clock = ScriptedClock(start=5.0)
    result = case_of(limit, clock=clock).evaluate(lambda: players.Slow(clock, seconds))
    assert result.results["total_steps"] == steps
    assert type(result.error) is (type(None) if steps == 16 else TimeoutException)


@pytest.mark.requirement(59)
@pytest.mark.parametrize("where", ["create", "reset", "env", "evaluator", "end"])
def test_all_that_a_case_does_counts(where):
    """The construction of the agent, and environment and evaluator too."""
    clock = ScriptedClock()

    def late(name):
        if name == where:
            clock.advance(2.0)

    class Late(players.Always):
        def __init__(self):
            super().__init__()
            late("create")

        def reset(self):
            late("reset")

    class World(OldCartPole):
        def reset(self):
            late("env")
            return super().reset()

    class Counter(StepCountEvaluator):
        def step(self, full_state):
            super().step(full_state)
            late("evaluator")
            if full_state["done"]:
                late("end")

    case = ReinforcementLearningTestCase(9, [0], 0, 1.0, 1, World(STARTS), Counter(), clock=clock)
    result = case.evaluate(Late)
    assert type(result.error) is TimeoutException
    assert result.results["total_steps"] == {"evaluator": 1, "end": 8}.get(where, 0)


@pytest.mark.requirement(59)
def test_a_limit_of_a_batch_keeps_what_was_played():
    clock = ScriptedClock()
    env = lanes_of("Gymnasium, five values", STARTS, 50, 3)
    case = VectorTestCase(50, [0, 1, 2], 0, 1.0, 3, env, StepCountEvaluator(), clock=clock)
    result = case.evaluate(lambda: players.Slow(clock, 0.3))
    assert result.get_json()["error"] == TIMED_OUT
    assert (result.results, result.value) == ({"total_episodes": 3, "total_steps": 9}, 3.0)


def test_evaluators_of_a_batch_have_the_time_limit_once_more(monkeypatch):
    """An alarm soon after the limit would lose the episodes that are still to be counted."""
    seconds = []
    monkeypatch.setattr(batched, "begin_anew", seconds.append)
    env = lanes_of("Gymnasium, five values", STARTS, 50, 3)
    VectorTestCase(5, [0, 1, 2], 0, 7.0, 3, env, StepCountEvaluator()).evaluate(players.Always)
    assert seconds == [7.0]


def test_an_alarm_begins_anew_only_if_it_is_ours():
    def left():
        return signal.getitimer(signal.ITIMER_REAL)[0]

    with alarm.time_limiter(1000.0):
        alarm.begin_anew(None)
        assert left() <= 1000
        alarm.begin_anew(5000.0)
        assert 4000 < left() <= 5000 + alarm.GRACE
    alarm.begin_anew(5000.0)
    assert left() == 0


@pytest.mark.requirement(59)
def test_a_call_that_lasts_is_given_up_by_the_scripted_clock():
    clock = ScriptedClock()
    release = threading.Event()

    class Stuck(players.Always):
        def step(self, state):
            clock.advance(3600.0)
            release.wait()
            return 0

    result = case_of(60.0, clock=clock).evaluate(Stuck)
    release.set()
    assert type(result.error) is TimeoutException
    assert result.results == {"total_episodes": 1, "total_steps": 0}


@pytest.mark.requirement(63)
def test_a_case_of_ones_own_is_limited_too():
    clock = ScriptedClock()

    class Guessing(TestCase):
        """Asks for numbers; no environment."""

        def run(self, agent):
            for number in range(self.n_runs):
                agent.reset()
                self.evaluator.reset()
                agent.hear(number)
                if agent.step(number) == number:
                    self.evaluator.step({})

    class Guesser(players.Always):
        def hear(self, number):
            self.heard = number

        def step(self, state):
            clock.advance(0.25)
            return self.heard

    def result_of(time_limit):
        case = Guessing("guess", time_limit, 4, None, None, StepCountEvaluator(), clock=clock)
        return case.evaluate(Guesser)

    for unlimited in (result_of(None), result_of(1.0)):
        assert (unlimited.value, unlimited.error) == (1.0, None)
    assert result_of(0.6).results == {"total_episodes": 3, "total_steps": 2}
    assert type(result_of(0.6).error) is TimeoutException


# With the computer's clock ------------------------------------------------------------------------


@pytest.mark.requirement(59)
@pytest.mark.parametrize("agent", [players.Spinning, players.Hanging])
def test_an_agent_that_hangs_does_not_hang_the_suite(agent):
    suite = TestSuite(0, [case_of(0.05), case_of(5.0)])
    agents = iter([agent, players.Always])
    before = set(threading.enumerate())
    began = time.monotonic()
    first, second = suite.run(lambda: next(agents)())["results"]
    assert time.monotonic() - began < 10.0
    assert first["result"]["error"] == TIMED_OUT
    assert first["result"]["detail"]["total_steps"] == 0
    assert second["result"] == case_of().evaluate(players.Always).get_json()
    # Given up, it ends as soon as it runs Python code again, and does nothing more.
    players.Hanging.release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(10.0)
        assert not thread.is_alive()
    players.Hanging.release.clear()
    assert players.Hanging.after == []


@pytest.mark.requirement(59)
def test_limits_work_in_a_worker_thread():
    results = []

    def work():
        results.append(case_of(0.05).evaluate(players.Sleeping))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10.0)
    assert results[0].get_json()["error"] == TIMED_OUT
    assert results[0].results["total_steps"] <= 3


@pytest.mark.requirement(59)
def test_limits_leave_signals_alone_and_may_be_nested():
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    inner = case_of(0.05)

    class Nested(players.Always):
        """Grades an agent that hangs while it is graded itself."""

        def reset(self):
            assert inner.evaluate(players.Spinning).get_json()["error"] == TIMED_OUT

    result = case_of(30.0, n_runs=1).evaluate(Nested)
    assert result.error is None and result.value == 8.0
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == timer


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms")
@pytest.mark.requirement(59, 68)
def test_an_environment_that_hangs_is_interrupted(monkeypatch):
    monkeypatch.setattr(alarm, "GRACE", 0.05)
    rung = []

    class Hanging(OldCartPole):
        def step(self, action):
            while len(rung) < 2:  # one that catches the first, too
                try:
                    time.sleep(60.0)
                except TimeoutException as error:
                    rung.append(error)
            raise rung[-1]

    before = signal.getsignal(signal.SIGALRM)
    case = case_of(0.2)  # time enough for the agent
    case.env = Hanging(STARTS)
    result = case.evaluate(players.Always)
    assert result.error is rung[-1] and len(rung) == 2
    assert result.results == {"total_episodes": 1, "total_steps": 0}
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_alarm_counts_from_the_construction_of_the_agent(monkeypatch):
    events = []

    @contextlib.contextmanager
    def noted(limits):
        events.append(("alarm", limits.seconds))
        yield
        events.append("no alarm")

    class Noted(players.Always):
        def __init__(self):
            events.append("construction")

        def reset(self):
            events.append("reset")

    monkeypatch.setattr(hosting, "backstop", noted)
    Noted.action = 0
    assert case_of(30.0, n_runs=1).evaluate(Noted).error is None
    assert events == [("alarm", 30.0), "construction", "reset", "no alarm"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms")
@pytest.mark.parametrize("why", ["no limit", "scripted clock", "another alarm", "another thread"])
def test_no_alarm_is_set_where_there_should_be_none(why):
    handlers = []

    class Looking(players.Always):
        def reset(self):
            handlers.append(signal.getsignal(signal.SIGALRM))

    before = signal.getsignal(signal.SIGALRM)
    clock = ScriptedClock() if why == "scripted clock" else None
    case = case_of(None if why == "no limit" else 30.0, clock=clock)
    if why == "another alarm":
        signal.setitimer(signal.ITIMER_REAL, 500.0)
    try:
        target = threading.Thread(target=case.evaluate, args=(Looking,))
        if why == "another thread":
            target.start()
            target.join(30.0)
        else:
            assert case.evaluate(Looking).error is None
        remaining = signal.getitimer(signal.ITIMER_REAL)[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    assert handlers == [before, before]
    assert (remaining > 400.0) == (why == "another alarm")


@pytest.mark.requirement(68)
def test_an_agent_in_a_thread_cannot_interrupt_the_suite():
    class Interrupting(players.Always):
        def step(self, state):
            raise KeyboardInterrupt

    result = case_of(5.0).evaluate(Interrupting)
    assert type(result.error) is AgentError
    assert str(result.error) == "the agent raised KeyboardInterrupt"
    assert type(result.error.__cause__) is KeyboardInterrupt


# In a process of its own --------------------------------------------------------------------------


@pytest.mark.requirement(59, 65)
def test_a_process_gives_the_same_result():
    for time_limit in (None, 20.0):
        alone = case_of(time_limit, isolate=True, agent_init={"action": 1})
        beside = case_of(agent_init={"action": 1})
        result = alone.evaluate(players.Always)
        assert result.get_json() == beside.evaluate(players.Always).get_json()
        assert result.error is None


@pytest.mark.requirement(59, 68)
@pytest.mark.parametrize("agent", [players.Spinning, players.Stubborn])
def test_a_process_that_hangs_is_ended(agent, monkeypatch):
    ended = []
    leave = processes.ProcessHost.__exit__

    def watched(self, *error):
        leave(self, *error)
        ended.append(self._process.exitcode)

    monkeypatch.setattr(processes.ProcessHost, "__exit__", watched)
    began = time.monotonic()
    result = case_of(0.1, isolate=True).evaluate(agent)
    assert result.get_json()["error"] == TIMED_OUT
    assert time.monotonic() - began < 20.0
    assert ended == [-signal.SIGKILL]


class RunsOnRequest(ScriptedClock):
    """Stands still until `running` is set; then each look at it takes a tenth of a second."""

    running = False

    def now(self):
        if self.running:
            self.advance(0.1)
        return super().now()


@pytest.mark.requirement(59, 68)
def test_a_process_that_does_not_take_a_large_state_is_given_up_in_any_thread():
    clock, results = RunsOnRequest(), []

    class World(OldCartPole):
        def step(self, action):
            for process in multiprocessing.active_children():
                os.kill(process.pid, signal.SIGSTOP)
            clock.running = True
            return np.zeros(1 << 20), 1.0, False, {}

    case = case_of(5.0, isolate=True, clock=clock)
    case.env = World(STARTS)
    thread = threading.Thread(target=lambda: results.append(case.evaluate(players.Always)))
    thread.daemon = True
    thread.start()
    thread.join(60.0)
    for process in multiprocessing.active_children():
        process.kill()  # of a case that goes on
    (result,) = results
    assert result.get_json()["error"] == TIMED_OUT
    assert result.results == {"total_episodes": 1, "total_steps": 1}


def test_a_message_is_sent_in_pieces_as_the_other_end_takes_it():
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        messages = [bytes(range(256)) * 40 * PIECE, b"", b"last"]
        writer = CallWriter(ours)
        for message in messages:
            writer.put(message)
        assert not writer.sent(0.0)
        received = []
        thread = threading.Thread(
            target=lambda: received.extend(theirs.recv_bytes() for _ in messages)
        )
        thread.start()
        while not writer.sent(20.0):
            pass
        thread.join()
        assert received == messages
        theirs.close()
        writer.put(b"more")
        with pytest.raises(BrokenPipeError):
            writer.sent(0.0)


@pytest.mark.requirement(68)
@pytest.mark.parametrize(
    ("create", "agent_init", "kind", "words"),
    [
        (players.Raising, {"what": "own"}, "CustomError", "state: too far"),
        (players.Raising, {"what": "key"}, "KeyError", "'angle'"),
        (players.Raising, {"what": "file"}, "FileNotFoundError", "[Errno 2] none: 'model'"),
        (players.Raising, {"what": "exit"}, "SystemExit", "3"),
        (players.Dying, {"how": "exit"}, "AgentError", "ended with exit code 5"),
        (players.Dying, {"how": "kill"}, "AgentError", "was ended by SIGKILL"),
        (players.Returning, {"what": "none"}, "ValueError", "action is None"),
        (players.Returning, {"what": "object"}, "AgentError", "must be made of numbers, strings"),
        (players.Returning, {"what": "fatal"}, "AgentError", "it sent an object of posix._exit"),
        (players.Failing, {}, "RuntimeError", "no model file"),
        (players.incomplete, {}, "TypeError", "no method step and no method reset"),
    ],
)
def test_errors_in_a_process_are_those_beside_it(create, agent_init, kind, words):
    result = case_of(isolate=True, agent_init=agent_init).evaluate(create)
    error = result.get_json()["error"]
    assert error["type"] == kind and words in error["message"]
    # The class of a submission is never loaded here: one of the same name stands for it.
    assert not isinstance(result.error, players.CustomError)
    if kind not in ("AgentError",):
        beside = case_of(agent_init=agent_init).evaluate(create)
        assert beside.get_json() == result.get_json()


@pytest.mark.parametrize(
    "action",
    [
        3,
        None,
        [0.5, {"a": (1, "x")}, b"y", {2}],
        np.float32(0.5),
        np.int64(3),
        np.arange(6.0).reshape(2, 3).T,
        np.array(["x"]),
        np.array([], bool),
    ],
)
def test_plain_actions_come_back_as_they_were(action):
    value = child.loads(pickle.dumps(action))
    assert type(value) is type(action)
    np.testing.assert_equal(value, action)
    assert getattr(value, "dtype", None) == getattr(action, "dtype", None)


def test_what_cannot_be_sent_is_named():
    result = case_of(isolate=True).evaluate(lambda: players.Always())
    assert "at the top level of a module" in str(result.error)

    class World(OldCartPole):
        def reset(self):
            return lambda: None

    case = case_of(isolate=True)
    case.env = World(STARTS)
    assert "cannot be sent the state" in str(case.evaluate(players.Always).error)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
@pytest.mark.requirement(59)
def test_a_memory_limit_is_the_agents_own():
    sizes = {"fits": MEMORY // 8, "too much": 2 * MEMORY}
    results = {
        name: case_of(memory_limit=MEMORY, agent_init={"size": size}).evaluate(players.Hungry)
        for name, size in sizes.items()
    }
    assert results["fits"].error is None and results["fits"].value == 8.0
    assert results["too much"].get_json()["error"] == {"type": "MemoryError", "message": ""}
    assert results["too much"].value is None
    assert case_of(agent_init={"size": 2 * MEMORY}).evaluate(players.Hungry).error is None


@pytest.mark.parametrize(
    ("memory_limit", "words"), [(None, 'under `if __name__ == "__main__":`'), (MEMORY, "memory")]
)
def test_a_process_that_dies_at_its_start_is_explained(memory_limit, words):
    case = case_of(isolate=True, memory_limit=memory_limit, agent_init={"x": players.Fatal()})
    message = str(case.evaluate(players.Always).error)
    assert message.startswith("the agent's process ended with exit code 4; ") and words in message


def test_a_memory_limit_where_there_is_none(monkeypatch):
    monkeypatch.setattr("evaluation.grader.child.sys", SimpleNamespace(platform="win32"))
    result = case_of(memory_limit=MEMORY).evaluate(players.Always)
    assert str(result.error) == "memory_limit needs a POSIX system; leave it out"


def test_a_process_that_does_not_start_is_given_up():
    """The clock stands still, so that only the limit decides, never the speed of the machine."""
    host = processes.ProcessHost(players.Always, {}, None, start_limit=0.0, clock=ScriptedClock())
    with pytest.raises(AgentError, match="the agent's process did not start in 0 s"), host:
        pytest.fail("it started within no time")
    assert not host._process.is_alive()


def test_a_process_whose_start_is_interrupted_is_ended(monkeypatch):
    host = processes.ProcessHost(players.Always, {}, None, start_limit=1.0, clock=ScriptedClock())
    monkeypatch.setattr(host, "_await_start", lambda end: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), host:
        pytest.fail("it was not interrupted")
    assert not host._process.is_alive()


def test_a_process_that_has_time_to_start_is_awaited():
    """However often the wait for it is in vain: no time passes on this clock."""
    host = processes.ProcessHost(players.Always, {}, None, start_limit=0.1, clock=ScriptedClock())
    with host:
        assert host._process.is_alive()


def test_no_limits_is_no_limits():
    assert not Limits(None).timed and not Limits(0).timed and not Limits(float("inf")).timed
    assert Limits(0.5).timed and not Limits(0.5).child
    assert Limits(isolate=True).child and Limits(memory_limit=1 << 30).child
