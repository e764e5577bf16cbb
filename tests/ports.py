"""Ports for servers that listen some time after their ports are chosen."""

import contextlib
import random
import socket

LISTENING = range(20_000, 32_768)
"""Below the ports that Linux gives to outgoing connections, one of which could take a port between
the choice and the service's start."""


def free_port() -> int:
    """Choose a port at random that nothing listens at.

    Raises:
      RuntimeError: a hundred ports in turn are taken.
    """
    for _ in range(100):
        port = random.SystemRandom().choice(LISTENING)  # no seed: workers must differ
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError(f"100 ports from {LISTENING.start} to {LISTENING.stop - 1} are taken")
