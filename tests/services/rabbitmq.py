"""A RabbitMQ broker of a test's own, on loopback, ended by its pid file."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
USER = "rabbitmq"


class Broker:
    """Starts and ends `rabbitmq-server`.

    Args:
      folder: empty; everything of the broker lies in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.epmd, self.dist = free_port(), free_port()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @property
    def pid_file(self) -> Path:
        return self.folder / "pid"

    def start(self, patience: float = 90.0) -> None:
        names = {
            "HOME": self.folder,
            "RABBITMQ_MNESIA_BASE": self.folder / "mnesia",
            "RABBITMQ_LOG_BASE": self.folder / "log",
            "RABBITMQ_PID_FILE": self.pid_file,
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_CONF_ENV_FILE": self.folder / "none",
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": self.dist,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": self.epmd,
            "PATH": os.environ["PATH"],
        }
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        subprocess.run(
            [str(SERVER), "-detached"],
            env={name: str(value) for name, value in names.items()},
            cwd=self.folder,
            user=USER if os.geteuid() == 0 else None,
            group=USER if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
            capture_output=True,
            check=True,
            timeout=60,
        )
        end = time.monotonic() + patience
        while not self._answers():
            if time.monotonic() > end:
                logs = "".join(p.read_text()[-3000:] for p in self.folder.glob("log/*.log"))
                raise RuntimeError(f"no broker after {patience:g} s: {logs}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        import pika

        try:
            pika.BlockingConnection(pika.URLParameters(self.url)).close()
        except (pika.exceptions.AMQPError, OSError):
            return False
        return self.pid_file.exists()

    def stop(self) -> None:
        pid = int(self.pid_file.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            for _ in range(300):
                time.sleep(0.1)
                os.kill(pid, 0)
            os.kill(pid, signal.SIGKILL)
        self.pid_file.unlink(missing_ok=True)

    def stop_epmd(self) -> None:
        """End the name server that the broker has started, which is on a port of its own."""
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError, ValueError):
                place = f"ERL_EPMD_PORT={self.epmd}".encode()
                if place in path.read_bytes().split(b"\0"):
                    os.kill(int(path.parent.name), signal.SIGTERM)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Broker]:
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        if broker.pid_file.exists():
            broker.stop()
        broker.stop_epmd()
