"""The program that measures this package: whole episodes of a pure agent, in batches."""

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from evaluation import agents, l2m, scanner
from evaluation.bench.process import ROOT
from evaluation.bench.program import Unavailable, serve, timed
from evaluation.bench.rate import Rate
from evaluation.bench.settings import ProgramSettings
from evaluation.bench.workloads import LIFETIMES, RUN, WORKLOADS, Workload
from evaluation.json_types import JsonObject
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim.pytrees import Leaf, Params

ENV = "CartPole3D-v0"


@dataclass
class Ours:
    """The simulator; its workloads are those of the table, or "NAME@N" for N episodes a call."""

    settings: ProgramSettings
    players: dict[str, "Rollout"] = field(default_factory=dict)

    def prepare(self, workload: str) -> JsonObject:
        """Compile the program of a workload by playing it once."""
        name, _, episodes = workload.partition("@")
        number = int(episodes or min(self.settings.episodes, WORKLOADS[name].most))
        play = self.players[workload] = player(WORKLOADS[name], number, self.settings)
        started = time.perf_counter()
        steps, number = play()
        return {
            "episodes": number,
            "mean_length": steps / number,
            "first_seconds": time.perf_counter() - started,
            "first_steps": steps,
            "xla_flags": os.environ.get("XLA_FLAGS"),
            "device": jax.devices()[0].device_kind,
            "platform": jax.default_backend(),
            "threads": spread(WORKLOADS[name], self.settings).number,
            "peak_memory_mib": peak_memory(),
        }

    def measure(self, workload: str, seconds: float) -> Rate:
        """Play whole calls for at least `seconds`."""
        name, _, _ = workload.partition("@")
        threads = spread(WORKLOADS[name], self.settings).number
        play = self.players[workload]
        return timed(lambda: play()[0], seconds, threads)


def spread(workload: Workload, settings: ProgramSettings) -> jaxsim.Spread:
    """How a workload is spread over the machine."""
    return jaxsim.Spread(settings.chunk, 1 if workload.one_thread else settings.threads)


def cells_of(workload: Workload) -> tuple[Any, list[Params]]:
    """Environment that plays all cells of a workload, and the physics of each."""
    cells = [jaxsim.make(ENV, level=level, difficulty=d) for level, d in workload.cells]
    env: Any = reduce(lambda a, b: a.covering(b), (env for env, _ in cells))
    return env, [params for _, params in cells]


Rollout = Callable[[], tuple[int, int]]
"""Plays episodes, new ones at each call, and returns (steps, episodes)."""


def player(workload: Workload, episodes: int, settings: ProgramSettings) -> Rollout:
    """Function that plays `episodes` episodes, or lifetimes of a syllabus, at a call."""
    if workload.syllabus:
        schedule, lifetimes = syllabus(workload), min(LIFETIMES, episodes)
        if workload.name == RUN:
            return _by_scanner(schedule, lifetimes, settings)
        episodes = lifetimes * schedule.num_episodes
    env, params, variant = rollout_arguments(workload, episodes)
    agent, seeds = agents.get(settings.agent), count(settings.seed)

    def play() -> tuple[int, int]:
        result = jaxsim.rollout(
            env,
            params,
            agent,
            episodes,
            seed=next(seeds),
            variant=variant,
            spread=spread(workload, settings),
            divided=workload.divided,
        )
        return _steps(result.length), episodes

    return play


def rollout_arguments(workload: Workload, episodes: int) -> tuple[Any, Params, np.ndarray | None]:
    """Environment, parameters and the row of each episode, as `jaxsim.rollout` takes them."""
    if workload.syllabus:
        schedule = syllabus(workload)
        tasks = Tasks.of(schedule)
        (world,) = tasks.worlds
        rows = tasks.row[schedule.block_variants()[schedule.episode_blocks()]]
        return world.env, world.params, np.resize(rows, episodes)
    env, cells = cells_of(workload)
    if len(cells) == 1:
        return env, cells[0], None
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *cells)
    return env, table, np.arange(episodes, dtype=np.int32) % len(cells)


def syllabus(workload: Workload) -> Schedule:
    """The schedule of a workload.

    Raises:
      Unavailable: the examples are not installed.
    """
    path = ROOT / "examples" / "syllabi" / workload.syllabus
    if not path.is_file():
        raise Unavailable(f"{workload.syllabus} is an example: run the benchmark in a clone")
    return l2m.load(path)


def _by_scanner(schedule: Schedule, lifetimes: int, settings: ProgramSettings) -> Rollout:
    """Rollout by the engine, as `jaxsim run` calls it."""
    agent, seeds = agents.get(settings.agent), count(settings.seed)
    options = scanner.MachineOptions(settings.chunk, settings.threads)

    def play() -> tuple[int, int]:
        records = scanner.play(
            schedule, agent, lifetimes=lifetimes, seed=next(seeds), options=options
        )
        length = records.columns["length"]
        return _steps(length), length.size

    return play


def _steps(length: Leaf) -> int:
    return int(np.asarray(length).sum(dtype=np.int64))


def peak_memory() -> float:
    """Peak memory of this process so far, MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    """Serve with the settings on the command line."""
    settings = ProgramSettings.loads(sys.argv[1])
    if settings.configured:
        jaxsim.configure_cpu()
    serve(Ours(settings))


if __name__ == "__main__":
    main()
