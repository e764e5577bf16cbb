"""A Slurm of a test's own: one node, every file in one folder, ended by its pid files."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_port

PROGRAMS = ("/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "/usr/bin/sbatch")
MISSING = [program for program in PROGRAMS if not Path(program).exists()]

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=20
CryptoType=crypto/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=1,sched_interval=5
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
InactiveLimit=0
KillWait=5
MinJobAge=3600
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Starts and ends munged, slurmctld and slurmd.

    Args:
      folder: empty; everything lies in it.
      cpus: of the node.
    """

    def __init__(self, folder: Path, cpus: int = 2) -> None:
        self.folder, self.cpus = folder, cpus
        self.conf = folder / "slurm.conf"
        self.env = {**os.environ, "SLURM_CONF": str(self.conf)}

    def start(self, patience: float = 90.0) -> None:
        munge = self.folder / "munge"
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        key = munge / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        places = {
            "key-file": key,
            "socket": munge / "socket",
            "pid-file": self.folder / "munged.pid",
            "log-file": munge / "log",
            "seed-file": munge / "seed",
        }
        options = [f"--{name}={path}" for name, path in places.items()]
        self._call("/usr/sbin/munged", "--force", *options)
        text = CONF.format(
            host=socket.gethostname().split(".")[0],
            user="root",
            folder=self.folder,
            controller=free_port(),
            node=free_port(),
            cpus=self.cpus,
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 1,
        )
        self.conf.write_text(text)
        self._call("/usr/sbin/slurmctld", "-c")
        self._call("/usr/sbin/slurmd", "-c")
        end = time.monotonic() + patience
        while "idle" not in self._call("sinfo", "--noheader", "--format=%T", check=False):
            if time.monotonic() > end:
                logs = "".join(p.read_text()[-3000:] for p in self.folder.glob("*.log"))
                raise RuntimeError(f"no idle node after {patience:g} s: {logs}")
            time.sleep(0.3)

    def _call(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            words, env=self.env, capture_output=True, text=True, check=False, timeout=600
        )
        if check and done.returncode:
            raise RuntimeError(f"{words[0]}: {done.stderr or done.stdout}")
        return done.stdout

    def call(self, *words: str) -> str:
        """Output of a command of Slurm."""
        return self._call(*words)

    def states(self, job: str) -> dict[str, str]:
        """State of every task of an array, by its number."""
        output = self._call("squeue", "-a", "-r", "-h", "-j", job, "-t", "all", "-o", "%K %T")
        return dict(line.split() for line in output.splitlines())

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self._call("scancel", "--user=root", check=False)
        for name in ("slurmd", "slurmctld", "munged"):
            path = self.folder / f"{name}.pid"
            with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
                _end(int(path.read_text()))


def _end(pid: int, patience: float = 20.0) -> None:
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
