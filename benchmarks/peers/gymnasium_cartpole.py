"""Gymnasium's CartPole-v1 as a NumPy vector environment in one process: a lightweight reference.

Actions are drawn once in advance; every call uses the same ones.

    python -m benchmarks.peers.gymnasium_cartpole 2
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.bench.program import missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.json_types import JsonObject

LANES, STEPS = 16_384, 50  # of one call


@dataclass
class GymnasiumPeer:
    """The vector environment that Gymnasium registers for this task."""

    envs: Any = None
    actions: Any = None

    def prepare(self, workload: str) -> JsonObject:
        """Make the environments."""
        try:
            import gymnasium
        except ModuleNotFoundError as error:
            raise missing("gymnasium", "gymnasium") from error

        self.envs = gymnasium.make_vec(
            "CartPole-v1", LANES, vectorization_mode="vector_entry_point"
        )
        self.envs.reset(seed=0)
        self.actions = np.random.default_rng(0).integers(0, 2, (STEPS, LANES))
        return {"lanes": LANES}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Step all environments repeatedly."""
        return timed(self._play, seconds)

    def _play(self) -> int:
        for action in self.actions:
            self.envs.step(action)
        return LANES * STEPS


if __name__ == "__main__":
    serve(GymnasiumPeer())
