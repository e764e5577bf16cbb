"""A RabbitMQ broker, by pika: queues that are listened to, and messages that are sent.

The connection is made anew when it breaks, with the same queues, for as long as the patience lasts.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from evaluation.sailon.serve.protocol import Delivery

PATIENCE: Final = 60.0
"""Time, s, for which a broker that is gone is tried again."""
PAUSE: Final = 1.0
"""Time, s, between two tries."""
HEARTBEAT: Final = 60
"""Time, s, after which a connection without a sign of life is given up."""
INSTALL: Final = "agents behind RabbitMQ need pika: pip install 'jaxsim-novelty[amqp]'"


class Lost(ConnectionError):
    """There is no broker any more."""


class Transport(Protocol):
    """What a server needs of a broker. All but `wake` is called from one thread."""

    def listen(self, queue: str, *, shared: bool) -> None:
        """Take messages from a queue; one that is not shared is this connection's alone."""
        ...

    def receive(self, seconds: float) -> list[Delivery]:
        """Return what has come in, after at most so long, or as soon as `wake` is called."""
        ...

    def send(self, queue: str, body: bytes, correlation_id: str) -> None:
        """Send a message; where nobody has that queue it is dropped."""
        ...

    def wake(self) -> None:
        """End a `receive` that waits; from any thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Rabbit:
    """A connection to a RabbitMQ broker; a `Transport`.

    Args:
      url: such as "amqp://guest:guest@127.0.0.1:5672/%2F"; amqps for TLS.
      patience: s for which a broker that is gone is tried again, and for which one that takes no
        messages, since it is short of memory or disk, is waited for.
      note: told when the connection is lost and when it is there again.

    Raises:
      ValueError: no URL of a broker, nobody answers there, or pika is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: float = PATIENCE,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        try:
            import pika
        except ModuleNotFoundError as error:
            raise ValueError(INSTALL) from error
        self._pika, self._patience, self._note = pika, patience, note
        if not url.startswith(("amqp://", "amqps://")):
            raise ValueError(f"broker is {url!r}; it must be as amqp://user:password@host:5672/%2F")
        try:
            self._parameters = pika.URLParameters(url)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"broker is no usable URL: {error}") from error
        self._parameters.heartbeat = HEARTBEAT
        self._parameters.blocked_connection_timeout = patience
        self._where = f"{self._parameters.host}, port {self._parameters.port}"
        self._queues: dict[str, bool] = {}
        self._arrived: list[Delivery] = []
        try:
            self._connect()
        except self._failures() as error:
            raise ValueError(
                f"there is no broker at {self._where} ({_reason(error)}); start RabbitMQ, or name "
                "another with --broker"
            ) from error

    def _failures(self) -> tuple[type[BaseException], ...]:
        return (self._pika.exceptions.AMQPError, OSError)

    def _connect(self) -> None:
        self._connection = self._pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        for queue, shared in self._queues.items():
            self._take(queue, shared)

    def _take(self, queue: str, shared: bool) -> None:
        kind = {"durable": True} if shared else {"exclusive": True, "auto_delete": True}
        self._channel.queue_declare(queue, **kind)
        self._channel.basic_consume(queue, self._arrives(queue), auto_ack=True, consumer_tag=queue)

    def _arrives(self, queue: str) -> Callable[..., None]:
        def arrives(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            reply_to, known_by = properties.reply_to or "", properties.correlation_id or ""
            self._arrived.append(Delivery(queue, body, reply_to, known_by))

        return arrives

    def listen(self, queue: str, *, shared: bool) -> None:
        """Take messages from a queue."""
        self._queues[queue] = shared
        self._try(lambda: self._take(queue, shared))

    def receive(self, seconds: float) -> list[Delivery]:
        """Return what has come in, after at most so long."""
        if not self._arrived:
            self._try(lambda: self._connection.process_data_events(time_limit=seconds))
        arrived, self._arrived = self._arrived, []
        return arrived

    def send(self, queue: str, body: bytes, correlation_id: str) -> None:
        """Send a message by the default exchange."""
        properties = self._pika.BasicProperties(
            correlation_id=correlation_id or None, delivery_mode=1
        )
        self._try(lambda: self._channel.basic_publish("", queue, body, properties))

    def wake(self) -> None:
        """End a `receive` that waits."""
        with contextlib.suppress(*self._failures()):
            self._connection.add_callback_threadsafe(lambda: None)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(*self._failures()):
            self._connection.close()

    def _try(self, action: Callable[[], object]) -> None:
        """Do something with the connection; where that is lost, make it anew instead.

        Raises:
          Lost: the broker does not come back.
        """
        try:
            action()
            return
        except self._failures() as error:
            self._note(f"the broker is gone: {_reason(error)}")
        end = time.monotonic() + self._patience
        while True:
            try:
                self._connect()
            except self._failures() as error:
                if time.monotonic() >= end:
                    raise Lost(
                        f"there was no broker at {self._where} for {self._patience:g} s"
                    ) from error
                time.sleep(PAUSE)
            else:
                self._note("the broker is there again")
                return


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
