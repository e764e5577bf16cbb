"""Learners over many lifetimes: curves, lifelong metrics, forgetting, and speed beside a peer.

    python -m benchmarks.learning curve runs --level 200 --episodes 1280
    python -m benchmarks.learning curve runs --level 203 --difficulty hard --agent ppo+leans \\
        --task CartPole3DLeans --episodes 40960 --width 256 --lifetimes 16 --tests 64
    python -m benchmarks.learning curve runs --level 203 --difficulty hard --agent outlook \\
        --task CartPole3DLeans --episodes 2048 --width 256 --lifetimes 16 --tests 64
    python -m benchmarks.learning novelty runs --lifetimes 16 --seed 101 --episodes 640
    python -m benchmarks.learning syllabus runs examples/syllabi/ant_b.json \\
        --agents ppo ppo+ewc ppo+replay ppo+reset --times 10 --width 30
    python -m benchmarks.learning speed runs --peer sb3/bin/python

Each command writes its results to the folder as JSON; `docs/learning` has those of the pages.
Intervals are 95 %, Student's over lifetimes. Lifetimes of two agents with one seed have the same
episodes, so that they are compared in pairs.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import experts
from benchmarks.learning_metrics import alarms, lifelong, mean_of, rate_of
from benchmarks.outlook import outlook
from evaluation import l2m, scanner
from evaluation.files import write_json
from evaluation.json_types import JsonObject
from evaluation.records import Records
from evaluation.schedule import Block, Schedule
from jaxsim import agents, training
from jaxsim.training import Settings
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, NAMED

TEST = 32  # episodes of a test
POINTS = 10  # of a curve
NOVEL = tuple(n for n in NAMED if "spawn_period" not in CATALOGUE[n].overrides[0])
CELL = 8  # episodes that a lifetime plays of each novel level and difficulty
USUAL = 64  # episodes that it plays of the level that it knows
SEGMENT = 4  # rounds of one compiled call: the same program for runs of any length


class WarmTimer:
    """Times of a run without its first calls, which compile."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []

    def __call__(self, done: int, total: int) -> None:
        """Record the progress and the times."""
        self.marks.append((done, time.perf_counter(), time.process_time()))

    def since_first(self, length: np.ndarray) -> JsonObject:
        """Steps and seconds after the first mark; `length` is (L, E).

        Without a second mark, everything compiled: there are no steps, and no seconds to show.
        """
        if len(self.marks) < 2:
            return {"steps": 0, "seconds": None, "processor_seconds": None}
        (done, *start), *_, (_, *end) = self.marks
        steps = int(length[:, done // len(length) :].sum())
        seconds, processor = (b - a for a, b in zip(start, end, strict=True))
        return {
            "steps": steps,
            "seconds": seconds,
            "processor_seconds": processor,
            "steps_per_second": steps / seconds,
            "steps_per_processor_second": steps / processor,
        }


def play(
    schedule: Schedule, agent: agents.Agent, options: argparse.Namespace
) -> tuple[Records, JsonObject]:
    """Play a schedule; return the records, and the cost after the first call."""
    clock = WarmTimer()
    records = scanner.play(
        schedule,
        agent,
        lifetimes=options.lifetimes,
        seed=options.seed,
        width=options.width,
        options=scanner.MachineOptions(threads=options.threads, segment=SEGMENT),
        progress=clock,
    )
    return records, clock.since_first(records.columns["length"])


def of_levels(
    cells: Sequence[str],
    train: int,
    learning: bool = True,
    counts: Sequence[int] = (),
    task: str = "CartPole3D",
) -> Schedule:
    """Training on the first of some levels, like "203:hard", and a test of each of them.

    Args:
      cells: level and difficulty of each.
      train: episodes of the training.
      learning: whether it may be learned from.
      counts: episodes of each test; `TEST` if there are none.
      task: that has these levels.
    """
    values: list[Any] = []
    for cell in cells:
        level, difficulty = cell.split(":")
        values.append((("novelty/difficulty", difficulty), ("novelty/level", int(level))))
    tests = (
        Block(index, 1, "test", task, each, count, False)
        for index, (each, count) in enumerate(
            zip(values, counts or [TEST] * len(values), strict=True), 1
        )
    )
    first = Block(0, 1, "train", task, values[0], train, learning)
    return Schedule(f"level {cells[0]}", (first, *tests))


def learner(name: str, settings: str) -> agents.Agent:
    """A built-in agent, `outlook`, or a learner with settings that are given as JSON."""
    if name == outlook.name:
        return outlook
    return training.get(name, Settings(**json.loads(settings))) if settings else agents.get(name)


def curve(options: argparse.Namespace) -> None:
    """Learn one level from scratch."""
    cells = [f"{options.level}:{options.difficulty}", *options.novel]
    counts = [options.tests] * len(cells)
    schedule = of_levels(cells, options.episodes, counts=counts, task=options.task)
    records, cost = play(schedule, learner(options.agent, options.settings), options)
    performance = records.columns["performance"]
    train, tests = performance[:, : options.episodes], performance[:, options.episodes :]
    test = tests[:, : options.tests]
    alarmed = alarms(records)[:, options.episodes :].reshape(options.lifetimes, -1, options.tests)
    edges = np.linspace(0, options.episodes, min(POINTS, options.episodes) + 1).astype(int)
    result = {
        "kind": "curve",
        "level": options.level,
        "difficulty": options.difficulty,
        "task": options.task,
        **common(options),
        "episodes": options.episodes,
        "curve": [
            {"from": int(a), "to": int(b), **mean_of(train[:, a:b].mean(1))}
            for a, b in pairwise(edges)
        ],
        "tests": options.tests,
        "test": mean_of(test.mean(1)),
        "worst": float(test.mean(1).min()),
        "alarms": dict(zip(cells, alarmed.mean(axis=(0, 2)).tolist(), strict=True)),
        "faults": len(records.metadata.get("faults", ())),
        "cost": cost,
    }
    save(options, f"curve_{options.level}_{options.difficulty}_{options.agent}", result)


def novelty(options: argparse.Namespace) -> None:
    """Learn level 200, then play novel levels without learning, and count alarms."""
    cells = ["200:easy", *(f"{level}:{each}" for level in NOVEL for each in DIFFICULTIES)]
    counts = [USUAL, *[CELL] * (len(cells) - 1)]
    schedule = of_levels(cells, options.episodes, counts=counts)
    records, _ = play(schedule, learner(options.agent, options.settings), options)
    called, ends = alarms(records), np.cumsum([options.episodes, *counts])
    result = {
        "kind": "novelty",
        **common(options),
        "episodes": options.episodes,
        "while_learning": rate_of(called[:, : options.episodes]),
        "cells": {
            cell: {
                **rate_of(called[:, a:b]),
                "performance": float(records.columns["performance"][:, a:b].mean()),
            }
            for cell, (a, b) in zip(cells, pairwise(ends), strict=True)
        },
        "faults": len(records.metadata.get("faults", ())),
    }
    save(options, "novelty", result)


def common(options: argparse.Namespace) -> JsonObject:
    """Entries of every result: agent, settings and versions."""
    return {
        "agent": options.agent,
        "settings": json.loads(options.settings or "{}"),
        "lifetimes": options.lifetimes,
        "width": options.width,
        "seed": options.seed,
        "versions": {"jax": jax.__version__},
    }


def save(options: argparse.Namespace, name: str, result: JsonObject) -> None:
    """Write a result, and show it."""
    write_json(options.folder / f"{name}.json", result)
    print(json.dumps(result), flush=True)


def syllabus(options: argparse.Namespace) -> None:
    """Play a syllabus with each learner, with training blocks that are longer by a factor."""
    loaded = l2m.load(options.syllabus)
    blocks = [
        replace(b, count=b.count * (options.times if b.mode == "train" else 1))
        for b in loaded.blocks
    ]
    schedule = replace(loaded, blocks=tuple(blocks))
    expert = learner("ste", options.settings)
    # Of another seed, so that an expert's luck is not that of a learner.
    expert_options = argparse.Namespace(**{**vars(options), "seed": options.seed + 1})
    expert_records = experts.train(schedule, lambda each: play(each, expert, expert_options)[0])
    for name in options.agents:
        learner_options = argparse.Namespace(**{**vars(options), "agent": name})
        records, cost = play(schedule, learner(name, options.settings), learner_options)
        result = (
            common(learner_options)
            | lifelong(records, expert_records, learner_options)
            | {"cost": cost}
        )
        save(options, f"syllabus_{loaded.name}_{options.times}_{name}", result)


def speed(given: argparse.Namespace) -> None:
    """Learning, only playing with the network, only the environment, and the peer, in turn."""
    rounds: dict[str, list[JsonObject]] = {}
    train = given.episodes

    def ours(name: str, agent: str, learning: bool) -> Callable[[], JsonObject]:
        schedule = of_levels(["200:easy"], train, learning)
        return lambda: play(schedule, agents.get(agent), given)[1]

    programs: dict[str, Callable[[], JsonObject]] = {
        "ppo learns": ours("ppo", "ppo", True),
        "pd, environment only": ours("pd", "pd", False),
    }
    if given.peer:
        for name, options in (("its defaults", ()), ("batches like ours", ("--like-ours",))):
            command = [given.peer, "-m", "benchmarks.peers.sb3_ppo", "--steps", str(given.steps)]
            command += ["--threads", str(given.threads)]
            programs[f"stable-baselines3 PPO, {name}"] = lambda c=(*command, *options): json.loads(
                subprocess.run(c, check=True, capture_output=True, text=True).stdout
            )
    for _ in range(given.rounds):
        for name, program in programs.items():
            rounds.setdefault(name, []).append(program())
            print(name, json.dumps(rounds[name][-1]), flush=True)
    given.agent, given.settings = "ppo", ""
    save(given, "speed", {"kind": "speed", **common(given), "rounds": rounds})


def main() -> None:
    """Read the arguments and run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    handlers = {"curve": curve, "novelty": novelty, "syllabus": syllabus, "speed": speed}
    for name, handler in handlers.items():
        command = commands.add_parser(name)
        command.set_defaults(handler=handler)
        command.add_argument("folder", type=Path, help="where results are kept")
        if name == "syllabus":
            command.add_argument("--agents", nargs="+", default=["ppo"], metavar="AGENT")
        elif name != "speed":
            command.add_argument("--agent", default="ppo")
        command.add_argument("--settings", default="", help="of the learner, as JSON")
        command.add_argument("--lifetimes", type=int, default=64)
        command.add_argument("--width", type=int, default=32)
        command.add_argument("--seed", type=int, default=0)
        threads = 2 if name == "speed" else 1
        command.add_argument("--threads", type=int, default=threads, help="(%(default)s)")
        if name == "curve":
            command.add_argument("--level", type=int, default=200)
            command.add_argument("--difficulty", default="easy")
            command.add_argument("--episodes", type=int, default=1280)
            command.add_argument("--task", default="CartPole3D")
            command.add_argument("--tests", type=int, default=TEST, help="episodes of each test")
            command.add_argument(
                "--novel", nargs="*", default=[], metavar="LEVEL:DIFFICULTY", help="tested as well"
            )
        if name == "novelty":
            command.add_argument("--episodes", type=int, default=1280)
        if name == "syllabus":
            command.add_argument("syllabus", type=Path)
            command.add_argument("--times", type=int, default=1)
            command.add_argument("--window", type=int, default=11)
        if name == "speed":
            command.add_argument("--episodes", type=int, default=1280)
            command.add_argument("--rounds", type=int, default=3)
            command.add_argument("--steps", type=int, default=8192, help="of the peer")
            command.add_argument("--peer", metavar="PYTHON", help="with stable-baselines3")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.handler(options)


if __name__ == "__main__":
    main()
