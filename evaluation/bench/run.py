"""One run of the benchmark: every program prepared in turn, then measured round by round.

Rounds interleave the programs, so that other load on the machine affects them alike, and every
ratio is taken within a round.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

from evaluation import agents
from evaluation.bench import peers
from evaluation.bench.process import Process
from evaluation.bench.program import Unavailable
from evaluation.bench.result import (
    CONFIGURED,
    DEFAULT,
    OURS,
    BenchResult,
    Measurements,
    Sample,
    ThroughputCurve,
)
from evaluation.bench.settings import PD, ProgramSettings
from evaluation.bench.workloads import (
    CAMERA,
    FLOOD,
    GRADER,
    MIX,
    MOST_EPISODES,
    NOMINAL,
    ONE_THREAD,
    RUN,
    RUN_ROLLOUT,
    SESSION,
    SINGLE,
    TA2,
    WORKLOADS,
    Kind,
)
from evaluation.json_types import JsonObject
from jaxsim import parameters
from jaxsim.backend import cores
from jaxsim.inputs import check_whole
from jaxsim.lanes.crew import MAX_THREADS

FLAGS = (DEFAULT, CONFIGURED)
PROGRAMS: dict[Kind, str] = {
    "rollout": "evaluation.bench.ours",
    "single": "evaluation.bench.single",
    "camera": "evaluation.bench.camera",
}
CURVE = (64, 256, 1024, 4096, 16384, 65536)
"""Episodes of a call, for the plot."""
QUICK_WORKLOADS = (
    NOMINAL,
    ONE_THREAD,
    MIX,
    FLOOD,
    RUN,
    RUN_ROLLOUT,
    SINGLE,
    SESSION,
    GRADER,
    TA2,
    CAMERA,
)
"""Workloads of the ratios."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done, and the number of them in all."""


@dataclass(frozen=True)
class Benchmark:
    """Programs and workloads to measure, and for how long.

    Attributes:
      workloads: names out of `WORKLOADS`.
      peers: names out of `peers.PEERS`.
      flags: "default", "configured" or both, for our own workloads.
      episodes: of one call of `jaxsim.rollout`, fewer for some workloads, and lifetimes of a call
        for workloads of a syllabus, 2,048 at most; a measurement takes whole calls.
      rounds: number of measurements of each.
      seconds: least length of a measurement, s.
      agent: agent of `jaxsim.rollout`, a name or "FILE.py"; one episode at a time and with the
        peers it is always `pd`, whose rule they have in plain Python.
      seed: root of the randomness of our own workloads.
      threads: parts of the episodes that are played at the same time; None for one a core.
      chunk: lanes that advance together; None for what suits the backend.
      curve: also measure level 200 with so many episodes a call.
    """

    workloads: tuple[str, ...] = tuple(WORKLOADS)
    peers: tuple[str, ...] = tuple(peers.PEERS)
    flags: tuple[str, ...] = FLAGS
    episodes: int = 65_536
    rounds: int = 5
    seconds: float = 3.0
    agent: str = PD
    seed: int = 0
    threads: int | None = None
    chunk: int | None = None
    curve: tuple[int, ...] = ()

    def check(self) -> None:
        """Check what can be checked before anything is started.

        Raises:
          ValueError: says what to change.
        """
        for kind, names, options in (
            ("workload", self.workloads, WORKLOADS),
            ("peer", self.peers, peers.PEERS),
            ("flags", self.flags, FLAGS),
        ):
            for name in names:
                if name not in options:
                    raise ValueError(parameters.unknown(kind, name, options))
        if self.workloads and not list(_our_sources(self)):
            raise ValueError(
                f"{', '.join(self.workloads)}: flags make a difference for batches of episodes "
                f"alone; add {DEFAULT!r} to flags"
            )
        for name, number, most in (
            ("episodes", self.episodes, MOST_EPISODES),
            ("rounds", self.rounds, 1000),
            ("threads", self.threads, MAX_THREADS),
        ):
            if number is not None:
                check_whole(name, number, 1, most)
        if not 0 < self.seconds <= 3600:
            raise ValueError(f"seconds is {self.seconds}; it must be above 0 and up to 3600")
        agents.get(self.agent)
        check_whole("seed", self.seed, 0, 2**31 - 1)

    def settings(self) -> JsonObject:
        """Return plain JSON values of all attributes."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}


def quick(**changes: Any) -> Benchmark:
    """Return a short benchmark, enough for the ratios with default flags."""
    shorter: dict[str, Any] = {
        "workloads": QUICK_WORKLOADS,
        "flags": (DEFAULT,),
        "episodes": 4096,
        "rounds": 2,
        "seconds": 0.5,
    }
    return Benchmark(**{**shorter, **changes})


@dataclass
class _Source:
    """A program with its workloads."""

    name: str
    module: str
    workloads: Sequence[str]
    flags: str | None = None
    arguments: Sequence[str] = ()
    kind: Kind | None = None
    process: Process | None = None
    cache: str | None = None
    rows: dict[str, Measurements] = field(default_factory=dict)

    def start(self) -> Process:
        """Start the program."""
        return Process(self.module, self.arguments, self.cache)

    def leave_out(self, workload: str, reason: str) -> None:
        """Record why a workload is not measured."""
        self.rows[workload] = Measurements(self.name, workload, self.flags, {}, missing=reason)


def run(benchmark: Benchmark, progress: Progress | None = None) -> BenchResult:
    """Measure everything.

    Args:
      benchmark: checked already.
      progress: called before each step of the work.

    Raises:
      ValueError: a program refused a setting or failed.
    """
    sources = list(sources_of(benchmark))
    pairs = [(source, name) for source in sources for name in source.workloads]
    counter = _Counter(progress, (1 + benchmark.rounds) * len(pairs) + _points(benchmark))
    counter.total += len(_warm(sources))
    result = BenchResult(benchmark.settings(), cores())
    with ExitStack() as stack:
        for source in sources:
            _prepare(source, result, counter, stack)
        for source in _warm(sources):
            counter(f"starting {_label(source, NOMINAL)} again")
            assert source.flags
            result.first_result_cached_seconds[source.flags] = _first_result(source)
        for number in range(benchmark.rounds):
            for source, name in _interleaved(pairs):
                counter(f"{_label(source, name)}, round {number + 1} of {benchmark.rounds}")
                _sample(source, name, benchmark.seconds)
        result.curves = [
            _curve(source, benchmark, counter) for source in _ours(sources) if source.process
        ]
    result.finish([row for source in sources for row in source.rows.values()])
    return result


@dataclass
class _Counter:
    """Counts the steps of the work."""

    progress: Progress | None
    total: int
    done: int = 0

    def __call__(self, what: str) -> None:
        if self.progress:
            self.progress(what, self.done, self.total)
        self.done += 1


def sources_of(benchmark: Benchmark) -> Iterator[_Source]:
    """Our own programs, once for each choice of flags, then the peers."""
    yield from _our_sources(benchmark)
    for name in benchmark.peers:
        peer = peers.PEERS[name]
        yield _Source(name, peer.module, peer.workloads, None, (str(cores()),))


def _our_sources(benchmark: Benchmark) -> Iterator[_Source]:
    # The nominal workload first: the time to the first result is taken with it.
    ordered = [name for name in WORKLOADS if name in benchmark.workloads]
    for flags in benchmark.flags:
        settings = ProgramSettings(
            configured=flags == CONFIGURED,
            episodes=benchmark.episodes,
            agent=benchmark.agent,
            seed=benchmark.seed,
            threads=benchmark.threads,
            chunk=benchmark.chunk,
        )
        for kind, module in PROGRAMS.items():
            names = [name for name in ordered if WORKLOADS[name].kind == kind]
            # The flags are for batches.
            if names and (kind == "rollout" or flags == DEFAULT):
                yield _Source(OURS, module, names, flags, (settings.dumps(),), kind=kind)


def _ours(sources: Sequence[_Source]) -> list[_Source]:
    return [source for source in sources if source.kind == "rollout"]


def _warm(sources: Sequence[_Source]) -> list[_Source]:
    """Programs whose first result is also timed with a filled compilation cache."""
    return [source for source in _ours(sources) if NOMINAL in source.workloads]


def _first_result(source: _Source) -> float:
    """Seconds from the start of another process to its first result."""
    started = time.perf_counter()
    with closing(source.start()) as process:
        process.prepare(NOMINAL)
        return time.perf_counter() - started


def _points(benchmark: Benchmark) -> int:
    return len(benchmark.curve) * len(benchmark.flags)


def _label(source: _Source, workload: str) -> str:
    return " ".join(filter(None, (source.name, workload, source.flags)))


def _interleaved(pairs: Sequence[tuple[_Source, str]]) -> list[tuple[_Source, str]]:
    """Sort by workload, so that programs of a ratio are measured one right after the other."""
    order = list(dict.fromkeys(name for _, name in pairs))
    return sorted(pairs, key=lambda pair: order.index(pair[1]))


def _prepare(source: _Source, result: BenchResult, counter: _Counter, stack: ExitStack) -> None:
    """Start a program and prepare its workloads; record which of them it cannot play and why."""
    started = time.perf_counter()
    if not peers.exists(source.module):
        for name in source.workloads:
            source.leave_out(name, peers.NOT_FOUND)
        return
    if source.kind == "rollout":
        source.cache = stack.enter_context(TemporaryDirectory())
    source.process = stack.enter_context(closing(source.start()))
    for name in source.workloads:
        counter(f"preparing {_label(source, name)}")
        try:
            facts = source.process.prepare(name)
        except Unavailable as reason:
            source.leave_out(name, str(reason))
            continue
        if source.name == OURS and name == NOMINAL:
            assert source.flags
            result.first_result_seconds[source.flags] = time.perf_counter() - started
        source.rows[name] = Measurements(source.name, name, source.flags, facts)


def _sample(source: _Source, workload: str, seconds: float) -> None:
    if source.process and not source.rows[workload].missing:
        rate = source.process.measure(workload, seconds)
        source.rows[workload].samples.append(Sample(rate, os.getloadavg()[0]))


def _curve(source: _Source, benchmark: Benchmark, counter: _Counter) -> ThroughputCurve:
    """Throughput of level 200 by the number of episodes of a call."""
    assert source.flags and source.process
    curve = ThroughputCurve(source.flags)
    for episodes in benchmark.curve:
        name = f"{NOMINAL}@{episodes}"
        counter(_label(source, name))
        source.process.prepare(name)
        rate = source.process.measure(name, benchmark.seconds)
        curve.points.append((episodes, rate.steps_per_wall_second))
    return curve
