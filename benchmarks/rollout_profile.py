"""Measure the time of each part of a rollout, beside the processor's limit.

python -m benchmarks.rollout_profile --out docs/profile.json

The parts of a pass over the lanes are compiled apart from one another and played in turn, with the
agent `pd` and on one thread, until one episode of level 200 is over in every lane; the time of a
call that does nothing with the same arguments is taken off each. Both choices of flags are played,
each in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.output import add_out, put_json
from evaluation.json_types import JsonObject
from jaxsim import agents, counters
from jaxsim.lanes.crew import MULTIPLE, Crew
from jaxsim.lanes.lists import Batch, Rounds
from jaxsim.lanes.program import Carry, Play, Sizes
from jaxsim.worlds.cartpole3d.tick import FREE, SINGLE, WALLED
from jaxsim.worlds.world import FULL, RUNNING

ENV = "CartPole3D-v0"
FLAGS = ("default", "configured")
EFFORTS = {
    FREE: "free ticks",
    SINGLE: "one contact",
    WALLED: "and walls",
    FULL: "full ticks",
}
TURNS, CLOSING = "turns", "moving together"
PARTS = (TURNS, *(EFFORTS[effort] for effort in (FREE, SINGLE, FULL)), CLOSING)
SIDE = 1024
"""Side of the matrix whose square measures the processor's limit."""
TIMES = 4
"""Repetitions; the fastest counts."""


class Profile(NamedTuple):
    """Where the time goes with one choice of flags."""

    nanoseconds: dict[str, float]  # by part, of a step
    groups: dict[str, int]  # by packed effort
    moved: dict[str, float]  # by packed effort, share of the steps
    steps: int
    at_work: float  # share of the lanes that chunks compute
    passes: int
    operations: float  # of a free tick
    bytes: float
    most: float  # operations a second of one core

    @property
    def total(self) -> float:
        """Time of a step, ns."""
        return sum(self.nanoseconds.values())

    @property
    def free_rate(self) -> float:
        """Operations of a nanosecond in free ticks."""
        return self.operations / self.nanoseconds["free ticks"] / self.at_work

    @property
    def least(self) -> float:
        """Time of a step if free ticks ran at a core's limit, ns."""
        return self.total - self.nanoseconds["free ticks"] * (1 - self.free_rate * 1e9 / self.most)

    def to_json(self) -> JsonObject:
        """Numbers of the page; rates are operations of a nanosecond."""
        return {
            "nanoseconds": {part: self.nanoseconds[part] for part in PARTS},
            "total": self.total,
            "least": self.least,
            "at_work": self.at_work,
            "passes": self.passes,
            "operations": self.operations,
            "bytes": self.bytes,
            "free_rate": self.free_rate,
            "most_rate": self.most / 1e9,
            "packed": {
                part: {
                    "share": self.moved[part],
                    "groups": number,
                    "microseconds": self.nanoseconds[part] * self.steps / number / 1e3,
                }
                for part, number in self.groups.items()
                if number
            },
        }


class PartTimer:
    """Runs a compiled part of a program and adds its time up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def run(self, part: str, function: Callable[..., Any], idle: float, *arguments: Any) -> Any:
        """Call a function, and add its time beyond that of an idle call."""
        started = time.perf_counter()
        result = jax.block_until_ready(function(*arguments))
        self.seconds[part] += max(0.0, time.perf_counter() - started - idle)
        return result


class Parts:
    """The compiled parts of a pass over the lanes of a rollout.

    Args:
      lanes: that play one episode each.
    """

    def __init__(self, lanes: int) -> None:
        self.env, params = jaxsim.make(ENV)
        crew = Crew(
            agents.get("pd"),
            [self.env],
            [params],
            counters.root(0),
            np.arange(lanes),
            spread=jaxsim.Spread(threads=1),
            predicts=False,
            independent=True,
        )
        place = np.arange(lanes, dtype=np.int32)[None]
        lists = Rounds(place, np.ones_like(place), 0 * place, 0 * place)
        program, batch = crew.program(1), crew.batch(lists, 0)
        self.sizes, self.efforts = crew.sizes, dict(enumerate(self.env.efforts))

        def play(batch: Batch) -> Play:
            play = Play(program, batch)
            play.initial()
            return play

        def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
            function = jax.jit(lambda batch, *more: part(play(batch), *more), donate_argnums=(1,))
            return lambda *more: function(batch, *more)

        self.start = lambda: jax.jit(lambda batch: Play(program, batch).initial())(batch)
        self.idle = compiled(lambda _, carry: carry)
        self.turned = compiled(lambda play, carry: play.turned(carry))
        self.advanced = compiled(lambda play, carry, front: play.advanced(carry, front))
        self.packed = {
            place: compiled(lambda play, carry, place=place: _packed_by(play, carry, place))
            for place in self.efforts
            if place
        }
        self.together = compiled(lambda play, carry: play.compacted(carry))
        self.lanes = jax.jit(lambda batch, carry: play(batch).lanes(carry.lanes))
        self.dense = jax.jit(lambda batch, carry, front: play(batch).dense(front)(carry))
        self.batch, self.play = batch, play

    def tick_cost(self) -> tuple[float, float]:
        """Operations and bytes of a free tick, by lane."""

        def before(batch: Batch) -> Any:
            play = self.play(batch)
            carry = play.initial()
            return play.lanes(carry.lanes), play.lifetimes(carry).shared

        def tick(batch: Batch, lanes: Any, shared: Any) -> Any:
            return self.play(batch).steps.tick(lanes, shared)

        lanes, shared = jax.eval_shape(before, self.batch)
        compiled = jax.jit(tick).lower(self.batch, lanes, shared).compile()
        cost: Any = compiled.cost_analysis()
        number = lanes.length.shape[0]
        # Two shifts and an "or" of each divisor.
        folded = 1.5 * compiled.as_text().count(f"u32[{number}]{{0}} shift-right-logical(")
        return cost["flops"] / number - folded, cost["bytes accessed"] / number


def _packed_by(play: Play, carry: Carry, effort: int) -> Carry:
    lanes = carry.lanes
    return carry._replace(lanes=lanes._replace(body=play.packed(lanes.body, 0, effort)))


class Breakdown(NamedTuple):
    """One list of every lane, taken apart."""

    seconds: dict[str, float]  # by part
    groups: dict[str, int]  # by packed effort
    moved: dict[str, int]  # by packed effort, steps
    steps: int
    at_work: float  # share of the lanes that chunks compute
    passes: int


def take_apart(parts: Parts) -> Breakdown:
    """Play one list of every lane."""
    clock, sizes = PartTimer(), parts.sizes
    names = {place: EFFORTS[effort] for place, effort in parts.efforts.items()}
    groups = {names[place]: 0 for place in parts.packed}
    moved = dict(groups)
    carry = parts.start()
    idle = _idle(parts, carry)
    carry = parts.start()
    lanes = parts.lanes(parts.batch, carry)
    front, passes, advanced, computed = lanes.length.size, 0, 0, 0
    while front:
        carry = clock.run(TURNS, parts.turned, idle, carry)
        before = steps_of(parts, carry)
        carry = clock.run(names[0], parts.advanced, idle, carry, jnp.int32(front))
        advanced += steps_of(parts, carry) - before
        computed += front * sizes.ticks
        for place, function in parts.packed.items():
            lanes = parts.lanes(parts.batch, carry)
            waiting = int(((lanes.ending == RUNNING) & (lanes.needs == place)).sum())
            groups[names[place]] += -(-waiting // group_size(sizes, place, len(parts.packed)))
            before = steps_of(parts, carry)
            carry = clock.run(names[place], function, idle, carry)
            moved[names[place]] += steps_of(parts, carry) - before
        passes += 1
        if not parts.dense(parts.batch, carry, jnp.int32(front)):
            carry, remaining = clock.run(CLOSING, parts.together, idle, carry)
            front = int(remaining)
    steps = int(parts.lanes(parts.batch, carry).length.sum())
    return Breakdown(dict(clock.seconds), groups, moved, steps, advanced / computed, passes)


def steps_of(parts: Parts, carry: Carry) -> int:
    """Steps that all lanes have taken in their episodes, the hidden first one among them."""
    return int((parts.lanes(parts.batch, carry).length + 1).sum())


def group_size(sizes: Sizes, place: int, last: int) -> int:
    """Lanes of a group that takes an effort."""
    return sizes.groups[-1 if place == last else place - 1]


def _idle(parts: Parts, carry: Carry) -> float:
    """Seconds of a call that does nothing; it donates the carry."""
    best = np.inf
    for _ in range(10):
        started = time.perf_counter()
        carry = jax.block_until_ready(parts.idle(carry))
        best = min(best, time.perf_counter() - started)
    return float(best)


def most_operations() -> float:
    """Multiplications and additions of a second in a product of matrices, in this process."""
    matrix = np.random.default_rng(0).uniform(0.1, 0.9, (SIDE, SIDE)).astype(np.float32)
    best = np.inf
    for _ in range(10):
        started = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - started)
    return 2 * SIDE**3 / best


def measured(lanes: int) -> Profile:
    """Profile with the flags of this process."""
    parts = Parts(lanes)
    take_apart(parts)
    best = min((take_apart(parts) for _ in range(TIMES)), key=lambda one: sum(one.seconds.values()))
    nanoseconds = {part: 1e9 * s / best.steps for part, s in best.seconds.items()}
    moved = {part: steps / best.steps for part, steps in best.moved.items()}
    return Profile(
        nanoseconds,
        best.groups,
        moved,
        best.steps,
        best.at_work,
        best.passes,
        *parts.tick_cost(),
        most_operations(),
    )


def check_lanes(lanes: int) -> None:
    """Check a number of lanes.

    Raises:
      ValueError: it cannot work.
    """
    if lanes < MULTIPLE or lanes % MULTIPLE:
        raise ValueError(f"lanes is {lanes}; it must be a multiple of {MULTIPLE}")


def main() -> None:
    """Measure both choices of flags, and write the results."""
    parser = argparse.ArgumentParser(description="Measure where a rollout's time goes.")
    add_out(parser)
    parser.add_argument("--lanes", type=int, default=32_768, help="of the thread (%(default)s)")
    parser.add_argument("--measure", choices=FLAGS, help="measure one choice of flags, print JSON")
    arguments = parser.parse_args()
    try:
        check_lanes(arguments.lanes)
    except ValueError as error:
        parser.error(str(error))
    if arguments.measure == "configured":
        jaxsim.configure_cpu()
    if arguments.measure:
        print(json.dumps(measured(arguments.lanes)._asdict()))
        return
    profiles = {flags: _profile(flags, arguments.lanes).to_json() for flags in FLAGS}
    put_json(profiles, arguments.out)


def _profile(flags: str, lanes: int) -> Profile:
    """Profile of a separate process."""
    command = [sys.executable, "-m", "benchmarks.rollout_profile", "--measure", flags]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(
        [*command, "--lanes", str(lanes)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=one_thread,
    )
    return Profile(**json.loads(process.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
