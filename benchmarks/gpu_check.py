"""Check and measure the package on an accelerator, and write docs/gpu.json.

    python -m benchmarks.gpu_check --out docs/gpu.json
    python -m benchmarks.gpu_check --platform cpu --task CartPole --episodes 4096

Five parts, each in a separate process that has the device to itself: ticks against recordings of
the original at level 200, in float64; a schedule that is played in several ways, whose records have
to be the same bit for bit; `jaxsim bench`; rollouts of level 200 in other layouts, with the
number of episodes whose length a layout changes; and rollouts without graphs of kernels. The exit
code is 0 if the first two hold, 1 if one does not, and 2 if JAX has no device of the platform.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

import jaxsim
from benchmarks.output import add_out, put_json
from evaluation.bench.ours import rollout_arguments
from evaluation.bench.workloads import WORKLOADS
from evaluation.json_types import JsonObject
from jaxsim import agents, backend
from jaxsim.lanes.crew import executable
from jaxsim.pytrees import Leaf
from jaxsim.rollouts import Totals

RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "oracle"
MOST_ERROR = 1e-6
"""m/s and rad/s, in a tick without contacts: 8e-7 on a processor, from rounding of recordings."""
LIFETIMES, EPISODES = 256, 12
BENCHED = ("200", "mix")
PLATFORMS = {"gpu": "cuda13", "tpu": "tpu", "cpu": ""}
"""Names of JAX, and the extra of JAX that brings each."""

GRAPH_WORKLOADS = {"200": 1 << 20, "203_hard": 1 << 17}
"""Workloads whose loops are graphs of kernels or not, with their numbers of episodes."""

PARTS = ("device", "parity", "same", "bench", "layouts", "graphs")
NO_DEVICE = 2
"""Exit code."""

Values = JsonObject


def parity() -> Values:
    """Errors of one tick from every recorded state of level 200, by class of contact."""
    jax.config.update("jax_enable_x64", True)
    from benchmarks.parity import cases, tick_errors

    (case,) = cases(RECORDINGS)
    errors = tick_errors(case)
    free = errors["free"]
    worst = max(free.cart_velocity, free.pole_rate, free.block_velocity)
    return {"holds": worst <= MOST_ERROR, "ticks": {k: asdict(v) for k, v in errors.items()}}


def same_results(task: str) -> Values:
    """Records of the same lifetimes, played whole, in parts, in chunks and in short segments."""
    from evaluation import scanner
    from evaluation.schedule import Block, Schedule

    schedule = Schedule("gpu-check", (Block(0, 1, "test", task, (), EPISODES, False),))

    def play(first: int = 0, lifetimes: int = LIFETIMES, **options: Any) -> dict[str, np.ndarray]:
        records = scanner.play(
            schedule,
            agents.get("pd" if task == "CartPole3D" else "random"),
            lifetimes=lifetimes,
            first_lifetime=first,
            options=scanner.MachineOptions(**options),
        )
        return dict(records.columns)

    whole, half = play(), LIFETIMES // 2
    parts = [play(0, half), play(half, half)]
    ways = {
        "chunks of 64 lanes": play(chunk=64),
        "segments of 5 rounds": play(segment=5),
        "two parts": {name: np.concatenate([part[name] for part in parts]) for name in whole},
    }
    same = {
        way: all(np.array_equal(columns[name], whole[name]) for name in whole)
        for way, columns in ways.items()
    }
    return {"holds": all(same.values()), "same": same, "steps": int(whole["length"].sum())}


def bench(episodes: int, workloads: tuple[str, ...]) -> Values:
    """Result of `jaxsim bench` without peers."""
    from evaluation.bench.run import Benchmark, run

    benchmark = Benchmark(workloads=workloads, peers=(), flags=("default",), episodes=episodes)
    return run(benchmark).to_json()


def variants(usual: backend.Layout) -> Iterator[backend.Layout]:
    """The usual layout, and others that differ in lanes, steps in a row, or lanes of a group."""
    yield usual
    for lanes in (usual.lanes // 4, usual.lanes * 4):
        yield usual._replace(lanes=lanes, chunk=lanes, enough=lanes)
    yield usual._replace(ticks=max(1, usual.ticks // 4))
    yield usual._replace(groups=tuple(max(1, lanes // 4) for lanes in usual.groups))
    yield usual._replace(turns=max(1, usual.turns // 4))


def layouts(task: str, episodes: int) -> list[Values]:
    """Speed of rollouts in several layouts, and episodes whose lengths the first does not have."""
    agent = agents.get("pd" if task == "CartPole3D" else "random")
    play = partial(jaxsim.rollout, *jaxsim.make(task), agent, episodes)
    rows, usual_lengths = [], None
    for layout in variants(backend.layout()):
        with mock.patch.object(backend, "layout", lambda layout=layout: layout):
            lengths, rate = fastest(play)
        if usual_lengths is None:
            usual_lengths = lengths
        changed = int((lengths != usual_lengths).sum())
        rows.append({**layout._asdict(), "steps_per_second": rate, "other_lengths": changed})
    return rows


def graphs(workloads: Mapping[str, int]) -> list[Values]:
    """Speed of rollouts with loops that are graphs of kernels, and with loops that are not.

    Args:
      workloads: numbers of episodes by names of workloads of `jaxsim bench`.
    """
    agent, rows = agents.get("pd"), []
    search = "in a loop" if backend.on_cpu() else "unrolled"  # of `jaxsim.marks`
    for workload, episodes in workloads.items():
        env, params, variant = rollout_arguments(WORKLOADS[workload], episodes)
        play = partial(jaxsim.rollout, env, params, agent, episodes, variant=variant)
        for options in ({}, backend.GRAPHS):
            executable.cache_clear()
            with mock.patch.object(backend, "GRAPHS", options):
                _, rate = fastest(play)
            row = {"workload": workload, "episodes": episodes, "graphs": bool(options)}
            rows.append({**row, "search": search, "steps_per_second": rate})
    return rows


def fastest(play: Callable[[], Totals]) -> tuple[Leaf, float]:
    """Lengths of the episodes of a call, and steps a second of the better of two later calls."""
    lengths, seconds = play().length, []
    for _ in range(2):
        start = time.perf_counter()
        play()
        seconds.append(time.perf_counter() - start)
    return lengths, int(lengths.sum(dtype=np.int64)) / min(seconds)


def device(platform: str) -> Values:
    """The first device of a platform, and versions.

    Raises:
      ValueError: JAX has none, or another platform is its default.
    """
    default = jax.default_backend()
    if default != platform:
        advice = f'; pip install "jax[{PLATFORMS[platform]}]"' if PLATFORMS[platform] else ""
        raise ValueError(f"JAX runs on {default} here, not on {platform}{advice}")
    kinds = [one.device_kind for one in jax.local_devices()]
    return {"platform": default, "devices": kinds, "jax": jax.__version__}


def check(part: str, arguments: argparse.Namespace) -> Values:
    """Do a part in this process; the bench starts processes that use the device."""
    if part == "parity":
        return parity()
    if part == "same":
        return same_results(arguments.task)
    if part == "layouts":
        rows = layouts(arguments.task, arguments.episodes)
        return {"episodes": arguments.episodes, "rows": rows}
    if part == "graphs":
        return {"rows": graphs(GRAPH_WORKLOADS)}
    return bench(arguments.episodes, tuple(arguments.workload or BENCHED))


def in_process(part: str, arguments: list[str]) -> Values | None:
    """Do a part in a separate process, which has the device to itself; None for no device."""
    print(f"{part} ...", file=sys.stderr, flush=True)
    words = [sys.executable, "-m", "benchmarks.gpu_check", *arguments, "--part", part]
    process = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode == NO_DEVICE:
        return None
    process.check_returncode()
    values: Values = json.loads(process.stdout)
    return values


def main(argv: list[str] | None = None) -> int:
    """Check, write the result, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make gpu-check", description="Check and measure the package on an accelerator."
    )
    parser.add_argument("--platform", choices=list(PLATFORMS), default="gpu", help="(gpu)")
    parser.add_argument("--task", default="CartPole3D", help="of the records (CartPole3D)")
    parser.add_argument(
        "--episodes", type=int, default=1 << 20, metavar="N", help="of a call of the bench (2^20)"
    )
    parser.add_argument(
        "--workload", action="append", metavar="NAME", help="of the bench; may be repeated"
    )
    parser.add_argument("--part", choices=PARTS, help="print this one only, from this process")
    add_out(parser)
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(words)
    if arguments.part == "device":
        try:
            print(json.dumps(device(arguments.platform)))
        except ValueError as error:
            print(f"gpu-check: {error}", file=sys.stderr)
            return NO_DEVICE
        return 0
    if arguments.part:
        print(json.dumps(check(arguments.part, arguments)))
        return 0
    parts: Values = {}
    for part in PARTS:
        values = in_process(part, words)
        if values is None:
            return NO_DEVICE
        parts[part] = values
    put_json(parts, arguments.out)
    return int(not all(values.get("holds", True) for values in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
