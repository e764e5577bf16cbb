"""Connection to a RabbitMQ broker by pika: consumes queues and sends messages.

A broken connection is restored with the same queues, if that succeeds within `patience`.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from evaluation.sailon.serve.protocol import Delivery

PATIENCE: Final = 60.0
"""Time, s, for which a lost broker is tried again."""
PAUSE: Final = 1.0
"""Time, s, between two tries."""
HEARTBEAT: Final = 60
"""Time, s, without a heartbeat after which a connection is given up."""
INSTALL: Final = "agents behind RabbitMQ need pika: pip install 'jaxsim-novelty[amqp]'"


class Lost(ConnectionError):
    """The broker is gone and has not come back."""


class Transport(Protocol):
    """Interface of a broker. All methods but `wake` are called from one thread."""

    def listen(self, queue: str, *, shared: bool) -> None:
        """Consume a queue; without `shared` it is exclusive to this connection."""
        ...

    def receive(self, seconds: float) -> list[Delivery]:
        """Return new deliveries, after at most `seconds` or as soon as `wake` is called."""
        ...

    def send(self, queue: str, body: bytes, correlation_id: str) -> None:
        """Send a message; it is dropped if there is no such queue."""
        ...

    def wake(self) -> None:
        """Interrupt a `receive` that waits; from any thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Rabbit:
    """A connection to a RabbitMQ broker; a `Transport`.

    Args:
      url: such as "amqp://guest:guest@127.0.0.1:5672/%2F"; amqps for TLS.
      patience: s for which a lost broker is tried again, and for which a broker that is short of
        memory or disk may block.
      note: called with a line of text when the connection is lost or restored.

    Raises:
      ValueError: the URL is not usable, no broker answers there, or pika is not installed.
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
            raise ValueError(f"broker is not a usable URL: {error}") from error
        self._parameters.heartbeat = HEARTBEAT
        self._parameters.blocked_connection_timeout = patience
        self._where = f"{self._parameters.host}, port {self._parameters.port}"
        self._queues: dict[str, bool] = {}
        self._deliveries: list[Delivery] = []
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
        self._channel.basic_consume(queue, self._consumer(queue), auto_ack=True, consumer_tag=queue)

    def _consumer(self, queue: str) -> Callable[..., None]:
        def consume(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            reply_to, correlation_id = properties.reply_to or "", properties.correlation_id or ""
            self._deliveries.append(Delivery(queue, body, reply_to, correlation_id))

        return consume

    def listen(self, queue: str, *, shared: bool) -> None:
        """Consume a queue."""
        self._queues[queue] = shared
        self._try(lambda: self._take(queue, shared))

    def receive(self, seconds: float) -> list[Delivery]:
        """Return new deliveries, after at most `seconds`."""
        if not self._deliveries:
            self._try(lambda: self._connection.process_data_events(time_limit=seconds))
        deliveries, self._deliveries = self._deliveries, []
        return deliveries

    def send(self, queue: str, body: bytes, correlation_id: str) -> None:
        """Send a message by the default exchange."""
        properties = self._pika.BasicProperties(
            correlation_id=correlation_id or None, delivery_mode=1
        )
        self._try(lambda: self._channel.basic_publish("", queue, body, properties))

    def wake(self) -> None:
        """Interrupt a `receive` that waits."""
        with contextlib.suppress(*self._failures()):
            self._connection.add_callback_threadsafe(lambda: None)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(*self._failures()):
            self._connection.close()

    def _try(self, action: Callable[[], object]) -> None:
        """Run an action on the connection; if that is lost, reconnect instead.

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
                self._note("connected to the broker again")
                return


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
