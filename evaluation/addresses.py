"""Checks of the addresses of servers and clients."""

MOST_PORT = 2**16 - 1


def check_port(port: int, least: int = 1) -> None:
    """Check a port; of a larger number sockets take the remainder and say nothing.

    Args:
      port: of TCP.
      least: 0 where a server may choose one.

    Raises:
      ValueError: it is out of range.
    """
    if not least <= port <= MOST_PORT:
        raise ValueError(f"port is {port}; it must be from {least} to {MOST_PORT}")
