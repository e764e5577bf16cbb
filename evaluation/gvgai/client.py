"""Client of a server, for an agent of this package."""

import socket
from collections.abc import Callable

from evaluation.addresses import check_port
from evaluation.clock import Clock, SystemClock
from evaluation.gvgai import protocol
from evaluation.gvgai.observation import Form
from evaluation.gvgai.player import TimedAgent
from evaluation.gvgai.protocol import ClientLine
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.server import LOOPBACK, ClientGone, Connection

PATIENCE_SECONDS = 60.0
"""Time that a client waits for the server's next message, s."""


def connect(
    make: Callable[..., object],
    rules: Rules,
    *,
    host: str = LOOPBACK,
    port: int = protocol.PORT,
    clock: Clock | None = None,
    form: Form = "JSON",
    patience: float = PATIENCE_SECONDS,
    warn: Callable[[str], None] | None = None,
) -> bool:
    """Play at a server until it sends FINISH or hangs up.

    Args:
      make: the agent's class.
      rules: the agent's limits, which a client measures itself.
      host: the server's address.
      port: the server's port.
      clock: measures the agent.
      form: of observations.
      patience: time to wait for a message, s.
      warn: called with a line of text: exceptions of the agent, why the server did not let it play.

    Returns:
      Whether the server sent FINISH at the end; False if it hung up before, or sent FINISH at once
      because another client plays.

    Raises:
      ValueError: the port is out of range.
      OSError: no server listens there.
    """
    check_port(port)
    clock = clock or SystemClock()
    player, log = TimedAgent(make, clock, rules, form), warn or (lambda line: None)
    stream = socket.create_connection((host, port), timeout=patience)
    connection = Connection(stream, SystemClock(), protocol.LONGEST_MESSAGE)
    try:
        return _converse(connection, player, patience, log)
    except ClientGone as gone:
        log(f"the server is gone: {gone}")
        return False
    finally:
        connection.close()


def _converse(
    connection: Connection, player: TimedAgent, patience: float, warn: Callable[[str], None]
) -> bool:
    """Answer messages until there are no more."""
    has_begun = False
    while True:
        message = protocol.read_message(connection.receive(patience))
        if message is None:
            continue
        number, payload = message
        answer = player.answer(payload)
        if answer is None:
            if not has_begun:
                warn("the server plays with another client; try again later")
            return has_begun
        has_begun = True
        if player.error:
            warn(f"the agent raised {player.error}")
        connection.send(protocol.reply_line(ClientLine(number, *answer)), patience)
