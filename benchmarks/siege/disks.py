"""Runs whose disk is full, or whose folder cannot be written any more.

As root, results go to a small file system in memory, which is made larger, or writable again, in
the end. Others have a limit on the size of files, and folders without the right to write.
"""

import contextlib
import itertools
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.siege import Blow
from benchmarks.siege.runs import (
    SiegeCommand,
    complaint,
    contents,
    difference,
    finish,
    finish_and_compare,
    runs,
    start,
    undisturbed,
)

ROOMY = "1g"
LEAST = 4096  # bytes, of a disk or a file
OVER = 1.2
"""Largest disk, by the files of a whole run: checkpoints need room as well."""


def full(
    seed: int, first: int = 0, names: Sequence[str] = (), mounted: bool | None = None
) -> Iterator[Blow]:
    """Run with a full disk, then with room; one blow for each finished run.

    Args:
      seed: what is tried follows from it and the number of the try.
      first: number of the first try.
      names: of the runs; none for all.
      mounted: whether small file systems are mounted; None for whether they can be.
    """
    yield from _attempts(seed, first, names, mounted, "full disk under", _meet_full)


def read_only(
    seed: int, first: int = 0, names: Sequence[str] = (), mounted: bool | None = None
) -> Iterator[Blow]:
    """Make folders of results read-only, before a run or during it; see `full`."""
    mounted = can_mount() if mounted is None else mounted
    if not mounted and os.geteuid() == 0:
        yield Blow("read-only folder", 0, "left out, root may write everywhere and cannot mount")
        return
    yield from _attempts(seed, first, names, mounted, "read-only folder under", _meet_read_only)


class Disk:
    """A folder for results that can be made small or read-only, and repaired.

    Args:
      run: the run that writes there.
      folder: an empty folder.
      mounted: whether it is a separate file system.
    """

    def __init__(self, run: SiegeCommand, folder: Path, mounted: bool) -> None:
        self._folder, self._mounted = folder, mounted
        if mounted:
            _mount("-t", "tmpfs", "-o", f"size={ROOMY}", "tmpfs", str(folder))
        self.out = run.begin(folder)

    def shrink(self, size: int) -> str:
        """Leave room for `size` bytes; return Python statements that a process must begin with."""
        if self._mounted:
            _mount("-o", f"remount,size={size}", str(self._folder))
            return ""
        return f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({size}, {size})); "

    def forbid(self) -> bool:
        """Make the folder read-only; False if something is being written just now."""
        if self._mounted:
            return _mount("-o", "remount,ro", str(self._folder), check=False)
        for path in (self.out, *self.out.rglob("*")):
            if path.is_dir():
                path.chmod(0o500)
        return True

    def repair(self) -> None:
        """Make room again, and allow all writes."""
        if self._mounted:
            _mount("-o", f"remount,rw,size={ROOMY}", str(self._folder))
            return
        folders = [self.out]
        while folders:
            folder = folders.pop()
            folder.chmod(0o700)
            folders += [path for path in folder.iterdir() if path.is_dir()]

    def close(self) -> None:
        """Remove the folder."""
        self.repair()
        if self._mounted:
            subprocess.run(("umount", "--lazy", str(self._folder)), check=True)


def _mount(*words: str, check: bool = True) -> bool:
    process = subprocess.run(("mount", *words), capture_output=True, text=True, check=False)
    if check and process.returncode:
        raise ValueError(f"mount {' '.join(words)}: {process.stderr.strip()}")
    return not process.returncode


def can_mount() -> bool:
    """Whether this process may mount file systems."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            Disk(SiegeCommand(()), Path(folder), True).close()
        except (ValueError, OSError):
            return False
    return True


Meet = Callable[
    [SiegeCommand, Disk, random.Random, Mapping[str, bytes], float], tuple[str, str, str]
]
"""An attack on a run; returns how it was attacked, its outcome, and what is wrong or ""."""


def _attempts(
    seed: int,
    first: int,
    names: Sequence[str],
    mounted: bool | None,
    what: str,
    meet: Meet,
) -> Iterator[Blow]:
    mounted = can_mount() if mounted is None else mounted
    with tempfile.TemporaryDirectory(prefix="jaxsim-siege-") as place:
        folder = Path(place)
        commands, references = runs(folder), {}
        names = names or list(commands)
        for number in itertools.count(first):
            name = names[number % len(names)]
            run, draw = commands[name], random.Random(f"{seed} {number}")
            if name not in references:
                files, ended = undisturbed(run, folder / f"whole-{len(references)}")
                references[name] = files, ended.seconds
            disk_folder = folder / f"disk-{number}"
            disk_folder.mkdir()
            with contextlib.closing(Disk(run, disk_folder, mounted)) as disk:
                how, outcome, wrong = meet(run, disk, draw, *references[name])
                if not wrong:
                    disk.repair()
                    wrong = (
                        finish_and_compare(run, disk.out, references[name][0]) if outcome else ""
                    )
            label = f"{what} `jaxsim {name}`"
            if wrong:
                yield Blow(label, 1, "failed", f"try {number}, {how}: {wrong}")
            else:
                yield Blow(label, 1, outcome or "room enough")


def _meet_full(
    run: SiegeCommand, disk: Disk, draw: random.Random, expected: Mapping[str, bytes], took: float
) -> tuple[str, str, str]:
    most = max(sum(map(len, expected.values())), LEAST)
    size = draw.randint(LEAST, int(OVER * most) + LEAST)
    ended = finish(start(run, disk.out, prepare=disk.shrink(size)))
    how, wrong = f"{size} bytes", complaint(ended)
    if ended.code == 0:
        return how, "", wrong or difference(contents(run, disk.out), expected)
    return how, "said so, and the same files with room", wrong


def _meet_read_only(
    run: SiegeCommand, disk: Disk, draw: random.Random, expected: Mapping[str, bytes], took: float
) -> tuple[str, str, str]:
    wait = draw.choice((0.0, draw.uniform(0.0, took)))
    if not wait:
        disk.forbid()
        ended = finish(start(run, disk.out))
        wrong = complaint(ended) or ("" if ended.code else "exit code 0")
        return "from the start", "said so, and the same files once writable", wrong
    process = start(run, disk.out)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait)
    while process.poll() is None and not disk.forbid():
        time.sleep(0.001)
    ended = finish(process)
    how, wrong = f"after {wait:.3f} s", complaint(ended)
    if ended.code == 0:
        return how, "", wrong or difference(contents(run, disk.out), expected)
    return how, "said so, and the same files once writable", wrong
