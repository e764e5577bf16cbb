"""The program that measures this package: `jaxsim.rollout` with a pure agent, whole episodes."""

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from evaluation import agents
from evaluation.bench.program import serve, timed
from evaluation.bench.rate import Rate
from evaluation.bench.settings import Settings
from evaluation.bench.workloads import WORKLOADS, Workload

ENV = "CartPole3D-v0"


@dataclass
class Ours:
    """The simulator; its workloads are those of the table, or "NAME@N" for N episodes a call."""

    settings: Settings
    played: dict[str, Callable[[], int]] = field(default_factory=dict)

    def prepare(self, workload: str) -> dict[str, Any]:
        """Compile the program of a workload by playing it once."""
        name, _, episodes = workload.partition("@")
        number = int(episodes or min(self.settings.episodes, WORKLOADS[name].most))
        play = self.played[workload] = player(WORKLOADS[name], number, self.settings)
        started = time.perf_counter()
        steps = play()
        return {
            "episodes": number,
            "mean_length": steps / number,
            "first_seconds": time.perf_counter() - started,
            "first_steps": steps,
            **sizes(WORKLOADS[name], number, self.settings),
            "xla_flags": os.environ.get("XLA_FLAGS"),
            "device": jax.devices()[0].device_kind,
            "platform": jax.default_backend(),
            "devices": used_devices(WORKLOADS[name], self.settings),
            "peak_memory_mib": peak_memory(),
        }

    def measure(self, workload: str, seconds: float) -> Rate:
        """Play whole calls for at least so many seconds."""
        name, _, _ = workload.partition("@")
        devices = used_devices(WORKLOADS[name], self.settings)
        return timed(self.played[workload], seconds, devices)


def used_devices(workload: Workload, settings: Settings) -> int:
    """Number of devices that play a workload."""
    return 1 if workload.one_device else settings.devices or len(jax.local_devices())


def spread(workload: Workload, settings: Settings) -> jaxsim.RolloutOptions:
    """How a workload is spread over the machine."""
    devices = 1 if workload.one_device else settings.devices
    return jaxsim.RolloutOptions(settings.lanes, settings.chunk, settings.ticks, devices)


def made(workload: Workload) -> tuple[Any, list[Any]]:
    """Environment that plays all cells of a workload, and the physics of each."""
    cells = [jaxsim.make(ENV, level=level, difficulty=d) for level, d in workload.cells]
    env: Any = reduce(lambda a, b: a.covering(b), (env for env, _ in cells))
    return env, [params for _, params in cells]


def sizes(workload: Workload, episodes: int, settings: Settings) -> dict[str, int]:
    """Sizes that a call of so many episodes has on each device."""
    share = -(-episodes // used_devices(workload, settings))
    env, _ = made(workload)
    found = spread(workload, settings).sizes(share, env.layout)
    return {"lanes": found.lanes, "chunk": found.chunk, "ticks": found.ticks}


def player(workload: Workload, episodes: int, settings: Settings) -> Callable[[], int]:
    """Return what plays so many episodes at a call, new ones each time, and counts their steps."""
    env, rows = made(workload)
    params, variant = rows[0], None
    if len(rows) > 1:
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
        variant = np.arange(episodes, dtype=np.int32) % len(rows)
    agent, seeds = agents.get(settings.agent), iter(range(settings.seed, 2**32))
    options = spread(workload, settings)

    def play() -> int:
        result = jaxsim.rollout(
            env, params, agent, episodes, seed=next(seeds), options=options, variant=variant
        )
        return int(np.asarray(result.length).sum(dtype=np.int64))

    return play


def peak_memory() -> float:
    """Most memory that this process has held so far, MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    """Serve with the settings on the command line."""
    settings = Settings.loads(sys.argv[1])
    if settings.configured:
        jaxsim.configure_cpu(settings.cores)
    else:
        jax.config.update("jax_num_cpu_devices", settings.cores)
    serve(Ours(settings))


if __name__ == "__main__":
    main()
