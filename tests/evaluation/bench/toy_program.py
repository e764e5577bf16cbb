"""A program whose throughput is known: what is measured takes no time at all.

Its argument is what every program is given: settings of our own, or the number of cores of a peer.
"""

import sys
from typing import Any

from evaluation.bench.program import Unavailable, serve
from evaluation.bench.rate import Rate
from evaluation.bench.settings import ProgramSettings

OURS = {
    "200": 8_000,
    "200_one_thread": 5_000,
    "mix": 4_000,
    "208_hard": 600,
    "run": 6_000,
    "run_rollout": 8_000,
}
PEER = {"200": 20, "208_hard": 3}
CONFIGURED = 4  # times as fast


class Toy:
    """Answers from the tables; a call of N episodes is N steps a second faster."""

    def __init__(self, argument: str) -> None:
        self.settings = None if argument.isdigit() else ProgramSettings.loads(argument)

    def prepare(self, workload: str) -> dict[str, Any]:
        print("a library prints this on standard output")
        if workload == "absent":
            raise Unavailable("it is not installed")
        if workload == "refused":
            raise ValueError("chunk is 3; it must be even")
        if workload == "broken":
            raise RuntimeError("the engine is on fire")
        return {
            "threads": 2,
            "mean_length": 100.0,
            "first_seconds": 10.0,
            "first_steps": 8_000,
        }

    def measure(self, workload: str, seconds: float) -> Rate:
        name, _, episodes = workload.partition("@")
        if not self.settings:
            return Rate(PEER[name], 1.0, 2.0, 2)
        speed = OURS[name] * (CONFIGURED if self.settings.configured else 1)
        return Rate(speed + int(episodes or 0), 1.0, 2.0, 2)


if __name__ == "__main__":
    serve(Toy(sys.argv[1]))
