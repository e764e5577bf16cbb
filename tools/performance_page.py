"""Islands of docs/performance.md and of the README, from results of `jaxsim bench`."""

from collections.abc import Iterator

from evaluation.bench import show
from evaluation.bench.peers import PEERS
from evaluation.bench.result import OURS
from evaluation.json_types import JsonObject
from jaxsim.backend import (
    ACCELERATOR,
    CPU,
    CPU_CONFIGURED,
    EXTRA_OPTION,
    EXTRA_OPTIONS,
    Layout,
)
from tools.islands import NONE, Islands, measured, table

KINDS = ("ratios", "ratios_configured")

ABOUT = {
    "pybullet": "level 200, over PyBullet's",
    "mujoco": "level 200, over MuJoCo's",
    "mix": "a batch of every level from 200 to 207 at every difficulty, over level 200",
    "208_hard": "level 208 hard, in which blocks appear, over PyBullet's",
    "run": "the syllabus of `jaxsim run`'s example, over a rollout at the same parameters",
    "threads": "level 200 on a thread for each core, over one thread",
    "camera": "pictures of 64 x 64 pixels, over MuJoCo's software renderer, by processor time",
    "single": "Gymnasium's single environment, level 200, over one process of PyBullet's",
    "session": "an agent in Python through `evaluation.session`, over one process of PyBullet's",
    "grader": "a test case of the grader without limits, over one process of PyBullet's",
    "ta2": "an agent of the WSU generator's interface, over one process of PyBullet's",
}
"""Descriptions of the ratios."""
GOALS = {
    "pybullet": (450, 900),
    "mujoco": (130, 250),
    "mix": (0.2, 0.25),
    "208_hard": (100, 100),
    "run": (0.75, 0.75),
    "threads": (1.8, 1.7),
    "camera": (5, None),
}
"""Goals with default flags and configured; None if flags do not matter."""

SINGLE_GOALS = {"single": 0.5, "session": 0.5, "grader": 0.5, "ta2": 0.5}


def islands() -> Islands:
    """Islands of docs/performance.md."""
    return {
        **islands_of(measured("performance.json")),
        **islands_of_single(measured("performance_single.json")),
        "option": f"`{EXTRA_OPTIONS}={EXTRA_OPTION}`",
        "layouts": layouts(),
    }


def islands_of(values: JsonObject) -> Islands:
    """Islands of the result for whole batches."""
    return {
        "circumstances": circumstances(values),
        "ratios": ratios(values),
        "programs": programs(values),
        "curve": curve(values),
        "peers": peers(values),
        "sizes": sizes(values),
        "first results": first_results(values),
    }


def islands_of_single(values: JsonObject) -> Islands:
    """Islands of the result for one episode at a time."""
    return {"single": single(values), "single load": _load(values)}


def islands_of_readme() -> Islands:
    """Islands of the README: throughput of level 200, and over the peers."""
    return speed(measured("performance.json"))


def speed(values: JsonObject) -> Islands:
    """Throughput of level 200, and over the peers."""
    steps = {
        (row["workload"], row["flags"]): show.steps(row["steps_per_wall_second"])
        for row in values["rows"]
        if row["program"] == OURS
    }
    default, configured = (steps.get(("200", flags), NONE) for flags in ("default", "configured"))
    cells = {
        "cores": f"{values['machine']['cores']} cores",
        "speed": f"[{default}](docs/performance.md); {configured} with `configure_cpu()`",
    }
    for peer in ("pybullet", "mujoco"):
        over, configured = (_times(values[kind][peer]) for kind in KINDS)
        cells[f"over {peer}"] = f"{over}; {configured} with `configure_cpu()`"
    return cells


def _times(number: float | None) -> str:
    return NONE if number is None else f"{_ratio(number)} ×"


def _ratio(number: float | None) -> str:
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def circumstances(values: JsonObject) -> Iterator[str]:
    """Machine, load, flags and versions."""
    machine, settings = values["machine"], values["settings"]
    packages = ", ".join(f"{name} {v}" for name, v in values["versions"].items() if v)
    yield f"* {machine['processor']}, {machine['cores']} cores."
    yield f"* Load {_load(values)}."
    for row in _first_rows(values):
        flags = row["facts"]["xla_flags"]
        yield f"* {OURS}, {row['flags']} flags: {_device(row['facts'])}, {_options(flags)}."
    yield f"* {packages}."
    rounds, seconds = settings["rounds"], settings["seconds"]
    yield f"* Medians of {rounds} rounds of at least {seconds:g} s; seed {settings['seed']}."


def _load(values: JsonObject) -> str:
    before, *_, after = values["machine"]["load"]
    return f"{before:.1f} before the run and {after:.1f} after it"


def _first_rows(values: JsonObject) -> Iterator[JsonObject]:
    """One of our rows for each choice of flags."""
    flags = set()
    for row in values["rows"]:
        if row["program"] == OURS and row["flags"] not in flags and row["facts"]:
            flags.add(row["flags"])
            yield row


def _device(facts: JsonObject) -> str:
    threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    return f"{threads} ({facts['device']})"


def _options(flags: str | None) -> str:
    return f"`{flags}`" if flags else "no flags of XLA"


def ratios(values: JsonObject) -> Iterator[str]:
    """Ratios beside their goals, and the reasons of missing ones."""
    rows = []
    for name, goals in GOALS.items():
        pairs = zip((values[kind][name] for kind in KINDS), goals, strict=True)
        rows.append((f"`{name}`", ABOUT[name], *(_ratio(n) for pair in pairs for n in pair)))
    yield from table(("ratio", "of", "default flags", "goal", "configured", "goal"), rows)
    for index, (flags, reasons) in enumerate(values["missing"].items()):
        for name, reason in reasons.items():
            if name in GOALS and GOALS[name][index] is not None:
                yield f"\n`{name}` with {flags} flags is missing: {reason}."


def programs(values: JsonObject) -> Iterator[str]:
    """Rates of every program and workload."""
    head = ("program", "workload", "flags", "steps/s", "steps/s of a core", "at once")
    return table((*head, "mean length"), (_cells(row) for row in values["rows"]))


def _cells(row: JsonObject) -> Iterator[str]:
    length = row["facts"].get("mean_length")
    yield row["program"]
    yield f"`{row['workload']}`"
    yield row["flags"] or ""
    yield show.steps(row["steps_per_wall_second"])
    yield show.steps(row["steps_per_cpu_second"])
    yield str(row["samples"][0]["processes"]) if row["samples"] else NONE
    yield "" if length is None else f"{length:.0f}"


def curve(values: JsonObject) -> Iterator[str]:
    """The plot that `jaxsim bench` drew, if it measured one."""
    if any(each["points"] for each in values["curves"]):
        yield "![Throughput of level 200 by the number of episodes in one call](performance.png)"


def peers(values: JsonObject) -> Iterator[str]:
    """What each peer plays."""
    for name in dict.fromkeys(row["program"] for row in values["rows"]):
        if name in PEERS:
            yield f"* `{name}`: {PEERS[name].about}."


def sizes(values: JsonObject) -> Iterator[str]:
    """Compilation, episodes and memory of our programs."""
    ours = (row for row in values["rows"] if row["program"] == OURS and "episodes" in row["facts"])
    head = ("workload", "flags", "compiling", "episodes of a call", "memory")
    return table(head, (_sizes(row) for row in ours))


def _sizes(row: JsonObject) -> Iterator[str]:
    facts, seconds = row["facts"], row["compile_seconds"]
    yield f"`{row['workload']}`"
    yield row["flags"]
    yield NONE if seconds is None else f"{seconds:.0f} s"
    yield f"{facts['episodes']:,}"
    yield f"{facts['peak_memory_mib']:,.0f} MiB"


def first_results(values: JsonObject) -> Iterator[str]:
    """Time to the first result, and episodes from which on it is ahead of PyBullet."""
    seconds = values["first_result_seconds"], values["first_result_cached_seconds"]
    episodes = values["break_even_episodes"]["cold"], values["break_even_episodes"]["cached"]
    rows = [
        (
            flags,
            *(f"{of[flags]:.1f} s" if flags in of else NONE for of in seconds),
            *(f"{of[flags]:,}" if flags in of else NONE for of in episodes),
        )
        for flags in seconds[0]
    ]
    head = ("flags", "first result", "with the compilation cache filled", "ahead from")
    return table((*head, "cache filled"), rows)


def single(values: JsonObject) -> Iterator[str]:
    """Rates of interfaces for one episode at a time, beside PyBullet's."""
    by_name = {(row["program"], row["workload"]): row for row in values["rows"]}
    peer = by_name["pybullet", "200"]
    peer_rate = peer["steps_per_wall_second"] / peer["samples"][0]["processes"]
    rows = (
        (
            f"`{name}`",
            ABOUT[name],
            _ratio(values["ratios"][name]),
            _ratio(goal),
            show.steps(by_name[OURS, name]["steps_per_wall_second"]),
            show.steps(peer_rate),
        )
        for name, goal in SINGLE_GOALS.items()
    )
    head = ("ratio", "of", "measured", "goal", "steps/s", "PyBullet, steps/s of a process")
    return table(head, rows)


def layouts() -> Iterator[str]:
    """Default sizes of lanes, chunks and groups by backend."""
    names = {
        "processor": CPU,
        "processor, configured": CPU_CONFIGURED,
        "GPU; TPU (not measured)": ACCELERATOR,
    }
    head = ("", "lanes", "chunk", "ticks in a row", "lanes of a group", "episodes of a lane")
    return table((*head, "enough lanes"), ((name, *_layout(of)) for name, of in names.items()))


def _layout(layout: Layout) -> Iterator[str]:
    yield from (f"{layout.lanes:,}", f"{layout.chunk:,}", str(layout.ticks))
    yield ", ".join(map(str, layout.groups))
    yield from (str(layout.rounds), f"{layout.enough:,}")
