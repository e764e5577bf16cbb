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
    python -m benchmarks.learning page runs --out docs/learning_results.md --guide docs/guide.md

Each of the first commands leaves one JSON file in the folder, from which the last writes the page.
Intervals are 95 %, normal over lifetimes. Lifetimes of two agents with one seed have the same
episodes, so that they are compared in pairs.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import experts
from benchmarks.outlook import outlook
from benchmarks.pages import add_out, put, replaced
from evaluation import l2m, scanner
from evaluation.files import write_json
from evaluation.metrics.novelty.cells import wilson
from evaluation.records import Records
from evaluation.report import summarise_records
from evaluation.schedule import Block, Schedule
from jaxsim import agents, training
from jaxsim.training import Settings
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, NAMED

TEST = 32  # episodes of a test
POINTS = 10  # of a curve in the page
NOVEL = tuple(n for n in NAMED if "spawn_period" not in CATALOGUE[n].overrides[0])
CELL = 8  # episodes that a lifetime plays of each novel level and difficulty
USUAL = 64  # episodes that it plays of the level that it knows
SEGMENT = 4  # rounds of one compiled call: the same program for runs of any length

BEGIN, END = "<!-- learning: generated -->", "<!-- learning: end -->"
IN_GUIDE = {
    "saturation": "saturation_value",
    "episodes to it": "time_to_saturation",
    "maintenance, of 100": "perf_maintenance_mrlep",
    "forward transfer": "forward_transfer",
    "backward transfer": "backward_transfer_ratio",
    "recovery, episodes": "recovery_time",
    "sample efficiency": "sample_efficiency",
}
"""Metrics that the guide shows."""

SYLLABI = """\
Training comes in blocks of 30 episodes in the shipped files. `ppo` takes some hundreds to learn
level 200, so blocks are given ten times as long; one syllabus is also played as it is.

* Recovery, maintenance, and transfer with a ratio or a contrast are those of l2metrics 3.1, of
  performance normalised to 1 to 101; saturation, time to it, integral, `recovery_time` and
  `performance_maintenance` those of the framework of 2019.
* `ste_rel_perf` and `sample_efficiency` of l2metrics, `forward_transfer` and `reverse_transfer` of
  2019 are beside single-task experts: `ste`, trained on each task with its parameters for as many
  episodes as the syllabus trains it, in as many lifetimes of the next seed. Transfer is the
  saturation value over the expert's, of tests before the first training, and of tests after that
  of another task. These intervals draw lifetimes and experts anew.
* Forgetting is the first test after a first training, less the last test.
"""


def mean_of(values: np.ndarray) -> dict[str, float]:
    """Mean over lifetimes with half its interval."""
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "half": half}


def shown(entry: dict[str, Any], digits: int = 3) -> str:
    """A mean as in the tables."""
    return f"{entry['mean']:.{digits}f} ± {entry['half']:.{digits}f}"


class Clock:
    """Times of a run without its first calls, which compile."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []

    def __call__(self, done: int, total: int) -> None:
        """Record the progress and the times."""
        self.marks.append((done, time.perf_counter(), time.process_time()))

    def since_first(self, length: np.ndarray) -> dict[str, Any]:
        """Steps and seconds after the first mark; `length` is (L, E)."""
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
) -> tuple[Records, dict[str, Any]]:
    """Play a schedule; return the records, and the cost after the first call."""
    clock = Clock()
    records = scanner.play(
        schedule,
        agent,
        lifetimes=options.lifetimes,
        seed=options.seed,
        width=options.width,
        options=scanner.Options(threads=options.threads, segment=SEGMENT),
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
    edges = np.linspace(0, options.episodes, POINTS + 1).astype(int)
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


def rate_of(called: np.ndarray) -> dict[str, float]:
    """Share of episodes (L, E) that end with an alarm, and its interval.

    Episodes are taken as independent, which those of one lifetime may not be: the interval over
    lifetimes is given too, and the wider of both is shown.
    """
    low, high = wilson(int(called.sum()), called.size)
    each = called.mean(axis=1)
    half = mean_of(each)["half"]
    mean = float(each.mean())
    low, high = min(low, max(0.0, mean - half)), max(high, min(1.0, mean + half))
    return {"mean": mean, "low": low, "high": high, "episodes": called.size}


def alarms(records: Records) -> np.ndarray:
    """Whether each episode ended with a detection, (L, E)."""
    columns = records.columns
    return columns["predicted_probability"] >= columns["threshold"]


def common(options: argparse.Namespace) -> dict[str, Any]:
    """Entries of every result: agent, settings and versions."""
    return {
        "agent": options.agent,
        "settings": json.loads(options.settings or "{}"),
        "lifetimes": options.lifetimes,
        "width": options.width,
        "seed": options.seed,
        "versions": {"jax": jax.__version__},
    }


def save(options: argparse.Namespace, name: str, result: dict[str, Any]) -> None:
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


def lifelong(
    records: Records, expert_records: experts.Experts, options: argparse.Namespace
) -> dict[str, Any]:
    """Every metric of a syllabus that was played, beside its experts."""
    schedule = records.schedule
    report = summarise_records(records, window=options.window).to_json()
    metrics = {
        **report["metrics"],
        **report["lifelong"]["metrics"],
        **experts.compare(records, expert_records, options.window, options.seed),
    }
    keys = ("mean", "low", "high", "lifetimes", "reason")
    return {
        "kind": "syllabus",
        "syllabus": schedule.name,
        "times": options.times,
        "window": options.window,
        "metrics": {
            metric: {key: entry[key] for key in keys if key in entry}
            for metric, entry in metrics.items()
        },
        "forgetting": forgetting(records).tolist(),
        "blocks": [
            {
                "phase": f"{b.phase}.{b.mode}",
                "task": b.task,
                "parameters": dict(b.parameters),
                **mean_of(values),
                "alarms": alarms(records)[:, schedule.episode_blocks() == b.index].mean().item(),
            }
            for b, values in zip(schedule.blocks, block_means(records).T, strict=True)
        ],
    }


def block_means(records: Records) -> np.ndarray:
    """Mean performance of each block, (L, B)."""
    values, counts = records.by_block("performance")
    return np.asarray(values.sum(axis=2) / counts)


def forgetting(records: Records) -> np.ndarray:
    """Mean loss of performance by the last test, over tasks with their parameters, (L,).

    The loss is the first test after the first training, less the last test.
    """
    blocks, means = records.schedule.blocks, block_means(records)
    lost = []
    for variant in records.schedule.variants:
        trained = [b.index for b in blocks if b.variant == variant and b.mode == "train"]
        if not trained:
            continue
        tests = [
            b.index
            for b in blocks
            if b.variant == variant and b.mode == "test" and b.index > trained[0]
        ]
        if len(tests) > 1:
            lost.append(means[:, tests[0]] - means[:, tests[-1]])
    return np.mean(lost, axis=0) if lost else np.zeros(len(means))


def speed(given: argparse.Namespace) -> None:
    """Learning, only playing with the network, only the environment, and the peer, in turn."""
    rounds: dict[str, list[dict[str, Any]]] = {}
    train = given.episodes

    def ours(name: str, agent: str, learning: bool) -> Callable[[], dict[str, Any]]:
        schedule = of_levels(["200:easy"], train, learning)
        return lambda: play(schedule, agents.get(agent), given)[1]

    programs: dict[str, Callable[[], dict[str, Any]]] = {
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


# The page -----------------------------------------------------------------------------------------


def page(options: argparse.Namespace) -> None:
    """Write the page of all results in the folder."""
    put(text_of(options.folder), options.out)
    if options.guide:
        guide = options.guide.read_text(encoding="utf-8")
        put(with_table(guide, options.folder), options.guide)


def guide_table(folder: Path) -> Iterator[str]:
    """Metrics of `ppo` on every syllabus that was played with longer training."""
    yield "| `ppo`, training ten times as long | " + " | ".join(IN_GUIDE) + " |"
    yield "| --- |" + " --- |" * len(IN_GUIDE)
    for path in sorted(folder.glob("syllabus_*_10_ppo.json")):
        result = json.loads(path.read_text())
        cells = (entry_cell(result["metrics"][metric]) for metric in IN_GUIDE.values())
        yield f"| `{result['syllabus']}` | " + " | ".join(cells) + " |"


def with_table(guide: str, folder: Path) -> str:
    """The guide with that table."""
    return replaced(guide, BEGIN, END, guide_table(folder))


def text_of(folder: Path) -> str:
    """The page of the results in a folder."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return "\n".join(lines(results)) + "\n"


def lines(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of the page."""
    kinds: dict[str, list[dict[str, Any]]] = {
        kind: [] for kind in ("curve", "novelty", "syllabus", "speed")
    }
    for result in results:
        kinds[result["kind"]].append(result)
    yield "# What the learners learn"
    yield ""
    yield "Written by `python -m benchmarks.learning page`; its docstring has the commands. Values"
    yield "are means over lifetimes with 95 % intervals. Processor time counts all cores."
    for result in kinds["curve"]:
        yield from curve_lines(result)
    for result in kinds["novelty"]:
        yield from novelty_lines(result)
    if kinds["syllabus"]:
        yield from syllabus_lines(kinds["syllabus"])
    for result in kinds["speed"]:
        yield from speed_lines(result)


def how(result: dict[str, Any]) -> str:
    """Settings of a result, in a sentence."""
    other = f", settings {json.dumps(result['settings'])}" if result["settings"] else ""
    return (
        f"{result['lifetimes']} lifetimes, width {result['width']}, seed {result['seed']}{other}."
    )


def curve_lines(result: dict[str, Any]) -> Iterator[str]:
    """One level from scratch."""
    cost = result["cost"]
    yield ""
    level = f"level {result['level']} {result['difficulty']}"
    if result.get("task", "CartPole3D") != "CartPole3D":
        level += f" of {result['task']}"
    yield f"## `{result['agent']}` on {level}, {result['episodes']} episodes"
    yield ""
    yield how(result)
    yield ""
    yield "| episodes of a lifetime | performance |"
    yield "| --- | --- |"
    for point in result["curve"]:
        yield f"| {point['from']} to {point['to']} | {shown(point)} |"
    tests = result.get("tests", TEST)
    yield f"| test of {tests}, no learning | **{shown(result['test'])}** |"
    yield ""
    yield (
        f"The worst lifetime tests at {result['worst']:.3f}. Behind the first call, "
        f"{cost['steps']:,} steps took {cost['processor_seconds']:.0f} s of processor time. Test "
        f"episodes that end with an alarm of the learned model: {alarm_shares(result)}."
    )


def alarm_shares(result: dict[str, Any]) -> str:
    """Share of alarms in each of the levels that were tested."""
    return ", ".join(f"{100 * share:.1f} % in {cell}" for cell, share in result["alarms"].items())


def novelty_lines(result: dict[str, Any]) -> Iterator[str]:
    """Alarms of the learned model, level by level."""
    cells = result["cells"]
    yield ""
    yield f"## Novelty that `{result['agent']}` finds"
    yield ""
    yield f"{how(result)} Every lifetime learns from {result['episodes']} episodes of level 200 and"
    yield "from nothing else, then plays each cell without learning. Given is the share of episodes"
    yield f"that end with an alarm, of {USUAL} on level 200 and {CELL} in any other cell each,"
    yield "with the wider of two 95 % intervals: Wilson's over episodes, normal over lifetimes."
    yield ""
    yield f"False alarms: {rate_cell(cells['200:easy'])} of the test episodes of level 200, and"
    yield f"{rate_cell(result['while_learning'])} of those that were learned from."
    yield ""
    yield "| level | " + " | ".join(DIFFICULTIES) + " |"
    yield "| --- |" + " --- |" * len(DIFFICULTIES)
    for level in NOVEL:
        row = (rate_cell(cells[f"{level}:{each}"]) for each in DIFFICULTIES)
        yield f"| {level} | " + " | ".join(row) + " |"


def rate_cell(entry: dict[str, Any]) -> str:
    """A share in per cent with its interval."""
    mean, low, high = (100 * entry[key] for key in ("mean", "low", "high"))
    return f"{mean:.1f} % [{low:.1f}, {high:.1f}]"


def syllabus_lines(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Metrics of all syllabi, and who forgets less."""
    yield ""
    yield "## Syllabi"
    yield ""
    yield from SYLLABI.splitlines()
    for name, times in dict.fromkeys((r["syllabus"], r["times"]) for r in results):
        group = [r for r in results if (r["syllabus"], r["times"]) == (name, times)]
        group.sort(key=lambda r: len(r["agent"]))  # the plain learner first
        yield ""
        yield f"### `{name}`" + (f", training {times} times as long" if times > 1 else "")
        yield ""
        yield how(group[0])
        yield ""
        first = group[0]["metrics"]
        names = [m for m in first if any(r["metrics"][m]["mean"] is not None for r in group)]
        yield "| metric | " + " | ".join(f"`{r['agent']}`" for r in group) + " |"
        yield "| --- |" + " --- |" * len(group)
        for metric in names:
            cells = [entry_cell(r["metrics"][metric]) for r in group]
            yield f"| {metric} | " + " | ".join(cells) + " |"
        lost = [mean_of(np.array(r["forgetting"])) for r in group]
        yield "| forgetting | " + " | ".join(map(shown, lost)) + " |"
        missing = [
            f"{metric} ({first[metric]['reason']})" for metric in first if metric not in names
        ]
        if missing:
            yield ""
            yield f"Without a value: {'; '.join(missing)}."
        plain = next((r for r in group if r["agent"] == "ppo"), None)
        if plain is not None and len(group) > 1:
            yield ""
            yield from (difference(plain, r) for r in group if r is not plain)


def entry_cell(entry: dict[str, Any]) -> str:
    """A metric with its interval."""
    if entry["mean"] is None:
        return ""
    if entry["low"] is None:
        return f"{entry['mean']:.3f}"
    return f"{entry['mean']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"


def difference(plain: dict[str, Any], other: dict[str, Any]) -> str:
    """How much less another agent forgets than `ppo`, lifetime by lifetime."""
    gap = mean_of(np.array(plain["forgetting"]) - np.array(other["forgetting"]))
    if abs(gap["mean"]) <= gap["half"]:
        word = "neither measurably less nor more"
    else:
        word = "less" if gap["mean"] > 0 else "more"
        gap["mean"] = abs(gap["mean"])
    return f"- `{other['agent']}` forgets {word} than `ppo`: {shown(gap)} in pairs."


def speed_lines(result: dict[str, Any]) -> Iterator[str]:
    """Rates, medians over rounds."""
    yield ""
    yield "## Speed"
    yield ""
    yield how(result)
    yield ""
    yield "| program | steps a second of processor time | wall clock | without building scenes |"
    yield "| --- | --- | --- | --- |"
    rates = {}
    for name, rounds in result["rounds"].items():
        rates[name] = float(np.median([r["steps_per_processor_second"] for r in rounds]))
        wall = np.median([r["steps_per_second"] for r in rounds])
        bare = [r["without_building"] for r in rounds if "without_building" in r]
        cell = f"{np.median(bare):,.0f}" if bare else ""
        yield f"| {name} | {rates[name]:,.0f} | {wall:,.0f} | {cell} |"
    yield ""
    ours = rates["ppo learns"]
    for name, rate in rates.items():
        if name != "ppo learns":
            yield f"- `ppo` learns at {ours / rate:,.2f} times the rate of: {name}."


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
        command.add_argument("--threads", type=int, default=1)
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
            command.add_argument("--threads", type=int, default=2, help="of the peer's PyTorch")
            command.add_argument("--peer", metavar="PYTHON", help="with stable-baselines3")
    command = commands.add_parser("page")
    command.set_defaults(handler=page)
    command.add_argument("folder", type=Path)
    add_out(command)
    command.add_argument("--guide", type=Path, help="file whose table is replaced")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.handler(options)


if __name__ == "__main__":
    main()
