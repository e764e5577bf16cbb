"""Signals that end a command as Ctrl-C does."""

import signal
import threading
import time

import pytest

from evaluation.checkpoints.stopping import Ended, interruptible


def ended_by(work):
    """The signal that ended some work, which is given up after some seconds."""
    with pytest.raises(Ended) as caught, interruptible():
        work()
        for _ in range(500):
            time.sleep(0.01)
    return caught.value.number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_done(number):
    before = signal.getsignal(number)
    assert ended_by(lambda: signal.raise_signal(number)) == number
    assert signal.getsignal(number) == before


def test_a_signal_is_not_lost_while_an_object_is_collected():
    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)
            sum(range(10))

    def collect():
        dying = Dying()
        del dying

    assert ended_by(collect) == signal.SIGTERM


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing():
    before = signal.getsignal(signal.SIGTERM)
    handlers = []

    def inside():
        with interruptible():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert handlers == [before]
