"""Results of the benchmark: rows of measurements, and ratios between them."""

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from evaluation.bench.rate import Rate
from evaluation.bench.workloads import (
    CAMERA,
    FLOOD,
    GRADER,
    MIX,
    NOMINAL,
    ONE_THREAD,
    RUN,
    RUN_ROLLOUT,
    SESSION,
    SINGLE,
    TA2,
)
from evaluation.json_types import JsonObject

FORMAT = 2
PACKAGES = ("jaxsim-novelty", "jax", "jaxlib", "numpy", "pybullet", "mujoco", "gymnasium", "gymnax")
OURS, DEFAULT, CONFIGURED = "jaxsim", "default", "configured"


@dataclass(frozen=True)
class Sample:
    """One measurement.

    Attributes:
      rate: steps and times.
      load: processes that wanted to run, on average over the last minute.
    """

    rate: Rate
    load: float

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return self.rate.to_json() | {"load": self.load}


@dataclass
class Measurements:
    """All measurements of one program on one workload.

    Attributes:
      program: "jaxsim" or a peer.
      workload: name of the workload.
      flags: "default" or "configured" for our own program, None for a peer.
      facts: facts that the program returned when it was prepared.
      samples: one a round.
      missing: why there are none.
    """

    program: str
    workload: str
    flags: str | None
    facts: JsonObject
    samples: list[Sample] = field(default_factory=list)
    missing: str | None = None

    @property
    def steps_per_wall_second(self) -> float | None:
        """Median over the rounds."""
        return _median([sample.rate.steps_per_wall_second for sample in self.samples])

    @property
    def steps_per_cpu_second(self) -> float | None:
        """Median over the rounds."""
        return _median([sample.rate.steps_per_cpu_second for sample in self.samples])

    @property
    def compile_seconds(self) -> float | None:
        """Time of our program's first call beyond that of the same call later, s."""
        throughput = self.steps_per_wall_second
        if throughput is None or "first_seconds" not in self.facts:
            return None
        return max(0.0, self.facts["first_seconds"] - self.facts["first_steps"] / throughput)

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return {
            "program": self.program,
            "workload": self.workload,
            "flags": self.flags,
            "steps_per_wall_second": self.steps_per_wall_second,
            "steps_per_cpu_second": self.steps_per_cpu_second,
            "compile_seconds": self.compile_seconds,
            "facts": self.facts,
            "samples": [sample.to_json() for sample in self.samples],
            "missing": self.missing,
        }


@dataclass
class ThroughputCurve:
    """Throughput of level 200 by the number of episodes of a call.

    Attributes:
      flags: "default" or "configured".
      points: (episodes, steps a second) pairs.
    """

    flags: str
    points: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Ratio:
    """Ratio of the throughput of one of our workloads to that of a reference row.

    Attributes:
      of: our workload.
      program: of the row it is compared with, whose flags are ours if it is our own.
      workload: of that row.
      each: whether the throughput of one process of that row counts, not that of all.
      core: whether the throughputs of a core count, not those of the machine.
    """

    of: str
    program: str
    workload: str
    each: bool = False
    core: bool = False


RATIOS: dict[str, Ratio] = {
    "pybullet": Ratio(NOMINAL, "pybullet", NOMINAL),
    "mujoco": Ratio(NOMINAL, "mujoco", NOMINAL),
    "mix": Ratio(MIX, OURS, NOMINAL),
    "208_hard": Ratio(FLOOD, "pybullet", FLOOD),
    "run": Ratio(RUN, OURS, RUN_ROLLOUT),
    "threads": Ratio(NOMINAL, OURS, ONE_THREAD),
    "single": Ratio(SINGLE, "pybullet", NOMINAL, each=True),
    "session": Ratio(SESSION, "pybullet", NOMINAL, each=True),
    "grader": Ratio(GRADER, "pybullet", NOMINAL, each=True),
    "ta2": Ratio(TA2, "pybullet", NOMINAL, each=True),
    "camera": Ratio(CAMERA, "mujoco_renderer", CAMERA, core=True),
}


@dataclass
class BenchResult:
    """Results of one run.

    Attributes:
      settings: of the benchmark.
      cores: number of cores of the run.
      first_result_seconds: s from the start of our program to its first result, by flags: import,
        compilation and the first call on level 200.
      first_result_cached_seconds: the same for a second process, which uses the compilation cache
        of the first.
      rows: one a program and workload.
      curves: one for each choice of flags.
      load: over the last minute, when the run began and when it ended.
    """

    settings: JsonObject
    cores: int
    first_result_seconds: dict[str, float] = field(default_factory=dict)
    first_result_cached_seconds: dict[str, float] = field(default_factory=dict)
    rows: list[Measurements] = field(default_factory=list)
    curves: list[ThroughputCurve] = field(default_factory=list)
    load: list[float] = field(default_factory=lambda: [os.getloadavg()[0]])

    def finish(self, rows: list[Measurements]) -> None:
        """Add the rows when all is measured."""
        self.rows = rows
        self.load.append(os.getloadavg()[0])

    def ratio(self, name: str, flags: str) -> tuple[float | None, str | None]:
        """Median of a ratio over the rounds; None with the reason if there is none."""
        definition = RATIOS[name]
        peer_flags = flags if definition.program == OURS else None
        ours, other = (
            self._row(OURS, definition.of, flags),
            self._row(definition.program, definition.workload, peer_flags),
        )
        for row, program, workload in (
            (ours, OURS, definition.of),
            (other, definition.program, definition.workload),
        ):
            if row is None or not row.samples:
                reason = row.missing if row and row.missing else "it was not asked for"
                return None, f"{program} {workload} was not measured: {reason}"
        assert ours and other
        if name == "threads" and ours.facts["threads"] == 1:
            return None, "there is only one thread"
        return _ratio_of_rounds(ours.samples, other.samples, definition), None

    def break_even(self, first_seconds: dict[str, float]) -> dict[str, int]:
        """Number of episodes of level 200 from which on we are faster than PyBullet, by flags.

        Args:
          first_seconds: s from the start of our program to its first result, by flags.
        """
        peer = self._row("pybullet", NOMINAL, None)
        episodes = {}
        for flags, seconds in first_seconds.items():
            ours = self._row(OURS, NOMINAL, flags)
            if not (ours and peer):
                continue
            rate, peer_rate = ours.steps_per_wall_second, peer.steps_per_wall_second
            if rate is None or peer_rate is None or rate <= peer_rate:
                continue
            saved = ours.facts["mean_length"] * (1 / peer_rate - 1 / rate)
            # The first result includes its episodes.
            late = seconds - ours.facts["first_steps"] / rate
            episodes[flags] = math.ceil(max(late, 0) / saved)
        return episodes

    def to_json(self) -> JsonObject:
        """Return strict JSON values; a missing number is null, with the reason."""
        by_flags = {
            flags: {n: self.ratio(n, flags) for n in RATIOS} for flags in (DEFAULT, CONFIGURED)
        }
        return {
            "format": FORMAT,
            "ratios": {name: ratio for name, (ratio, _) in by_flags[DEFAULT].items()},
            "ratios_configured": {name: ratio for name, (ratio, _) in by_flags[CONFIGURED].items()},
            "missing": {
                flags: {name: reason for name, (_, reason) in ratios.items() if reason}
                for flags, ratios in by_flags.items()
            },
            "first_result_seconds": self.first_result_seconds,
            "first_result_cached_seconds": self.first_result_cached_seconds,
            "break_even_episodes": {
                "cold": self.break_even(self.first_result_seconds),
                "cached": self.break_even(self.first_result_cached_seconds),
            },
            "machine": {"cores": self.cores, "processor": processor(), "load": self.load},
            "versions": {"python": platform.python_version()} | versions(),
            "settings": self.settings,
            "rows": [row.to_json() for row in self.rows],
            "curves": [asdict(curve) for curve in self.curves],
        }

    def _row(self, program: str, workload: str, flags: str | None) -> Measurements | None:
        for row in self.rows:
            if (row.program, row.workload, row.flags) == (program, workload, flags):
                return row
        return None


def _ratio_of_rounds(ours: Sequence[Sample], other: Sequence[Sample], definition: Ratio) -> float:
    if definition.core:
        return median(
            a.rate.steps_per_cpu_second / b.rate.steps_per_cpu_second
            for a, b in zip(ours, other, strict=True)
        )
    return median(
        a.rate.steps_per_wall_second
        / (b.rate.steps_per_wall_second / (b.rate.processes if definition.each else 1))
        for a, b in zip(ours, other, strict=True)
    )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def versions() -> dict[str, str | None]:
    """Versions of the packages that matter; None for one that is not installed."""
    return {package: _version(package) for package in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """Name of the processor, as the system reports it."""
    table = Path("/proc/cpuinfo")
    if table.is_file():
        for line in table.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
