"""Throughput of one measurement."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from evaluation.json_types import JsonObject


@dataclass(frozen=True)
class Rate:
    """Environment steps, and the time that they took.

    Attributes:
      steps: environment steps that count.
      wall_seconds: wall-clock time, s.
      cpu_seconds: CPU time of all processes and threads that worked on them, s.
      processes: processes or threads that worked in parallel.
    """

    steps: int
    wall_seconds: float
    cpu_seconds: float
    processes: int = 1

    @property
    def steps_per_wall_second(self) -> float:
        """Throughput of the machine."""
        return self.steps / self.wall_seconds

    @property
    def steps_per_cpu_second(self) -> float:
        """Throughput of one core; other work on the machine hardly changes it."""
        return self.steps / self.cpu_seconds

    @classmethod
    def together(cls, rates: Sequence["Rate"]) -> "Rate":
        """Rate of processes that worked in parallel and were timed separately.

        The throughputs of the machine add up, however long each of them was timed.
        """
        steps = sum(rate.steps for rate in rates)
        throughput = sum(rate.steps_per_wall_second for rate in rates)
        cpu = sum(rate.cpu_seconds for rate in rates)
        return cls(steps, steps / throughput, cpu, sum(rate.processes for rate in rates))

    def to_json(self) -> JsonObject:
        """Return plain JSON values; `Rate(**values)` is the inverse."""
        return asdict(self)
