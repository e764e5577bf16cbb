"""Islands of docs/learning_results.md and of the guide, from results of `benchmarks.learning`."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from benchmarks.learning import TEST
from benchmarks.learning_metrics import mean_of
from evaluation.json_types import JsonObject
from evaluation.metrics.statistics import DEFAULT_LEVEL, holm
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, NOMINAL
from tools.islands import DOCS, NONE, Islands, measured, table

FOLDER = "learning"
PLAIN = "ppo"
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

Result = JsonObject
Syllabi = dict[str, list[Result]]
"""Results of each syllabus, one an agent, the plain learner first."""


def islands() -> Islands:
    """Islands of the page of results."""
    curves, syllabi = results("curve"), by_syllabus(results("syllabus"))
    novelty, speed = measured(f"{FOLDER}/novelty.json"), measured(f"{FOLDER}/speed.json")
    first_novel = novelty["cells"][f"{novel_levels(novelty)[0]}:easy"]
    return {
        "curves": curve_runs(curves),
        **{_name(one): curve(one) for one in curves},
        "novelty settings": settings(novelty),
        "novelty episodes": f"{novelty['episodes']} episodes",
        "false alarms": false_alarms(novelty),
        "novel episodes": f"{first_novel['episodes']} episodes",
        "novelty": alarm_table(novelty),
        "syllabi": syllabus_runs(syllabi),
        "forgetting": forgetting(syllabi),
        "missing": missing(syllabi),
        **{f"syllabus {name}": metrics(group) for name, group in syllabi.items()},
        "speed settings": settings(speed),
        "speed": rates(speed),
    }


def _name(result: Result) -> str:
    return f"curve {result['level']} {result['difficulty']} {result['agent']}"


def islands_of_guide() -> Islands:
    """Island of the guide: metrics of the plain learner, with longer training."""
    long = [one for one in results("syllabus") if one["agent"] == PLAIN and one["times"] == 10]
    rows = (
        (f"`{one['syllabus']}`", *(_entry(one["metrics"][m]) for m in IN_GUIDE.values()))
        for one in long
    )
    return {"learning": table((f"`{PLAIN}`, training ten times as long", *IN_GUIDE), rows)}


def results(kind: str) -> list[Result]:
    """Results of a kind."""
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((DOCS / FOLDER).glob(f"{kind}_*.json"))
    ]


def by_syllabus(group: Sequence[Result]) -> Syllabi:
    """Results by syllabus and length of its training."""
    syllabi: Syllabi = {}
    for one in sorted(group, key=lambda one: len(one["agent"])):
        times = f", {one['times']} times" if one["times"] > 1 else ""
        syllabi.setdefault(f"{one['syllabus']}{times}", []).append(one)
    return dict(sorted(syllabi.items()))


def _code(name: str) -> str:
    syllabus, comma, times = name.partition(",")
    return f"`{syllabus}`{comma}{times}"


def settings(result: Result) -> str:
    """Settings of a result."""
    other = f", settings {json.dumps(result['settings'])}" if result["settings"] else ""
    return f"{result['lifetimes']} lifetimes, width {result['width']}, seed {result['seed']}{other}"


def _seconds(number: float | None) -> str:
    return NONE if number is None else f"{number:.0f}"


def _mean(entry: dict[str, float]) -> str:
    return f"{entry['mean']:.3f} ± {entry['half']:.3f}"


def curve_runs(curves: Sequence[Result]) -> Iterator[str]:
    """Settings and cost of each curve."""
    rows = (
        (
            f"`{one['agent']}`",
            f"{one['level']} {one['difficulty']}",
            one.get("task", "CartPole3D"),
            f"{one['episodes']:,}",
            settings(one),
            f"{one['worst']:.3f}",
            f"{one['cost']['steps']:,}",
            _seconds(one["cost"]["processor_seconds"]),
            ", ".join(f"{100 * share:.1f} % in {cell}" for cell, share in one["alarms"].items()),
        )
        for one in curves
    )
    head = ("agent", "level", "task", "episodes", "settings", "worst lifetime in the test", "steps")
    return table((*head, "CPU s", "alarms in the test"), rows)


def curve(result: Result) -> Iterator[str]:
    """Performance while a level is learned, and in the test."""
    rows = [(f"{point['from']} to {point['to']}", _mean(point)) for point in result["curve"]]
    test = f"test of {result.get('tests', TEST)}, no learning", f"**{_mean(result['test'])}**"
    return table(("episodes of a lifetime", "performance"), [*rows, test])


def false_alarms(result: Result) -> Iterator[str]:
    """Episodes of the known level that end with an alarm."""
    parts = {"test": result["cells"]["200:easy"], "learned from": result["while_learning"]}
    rows = ((name, f"{part['episodes']:,}", _rate(part)) for name, part in parts.items())
    return table(("episodes of level 200", "number", "false alarms"), rows)


def alarm_table(result: Result) -> Iterator[str]:
    """Episodes of novel levels that end with an alarm."""
    cells, levels = result["cells"], novel_levels(result)
    rows = ((level, *(_rate(cells[f"{level}:{d}"]) for d in DIFFICULTIES)) for level in levels)
    return table(("level", *DIFFICULTIES), rows)


def novel_levels(result: Result) -> list[int]:
    """Novel levels that were measured; the catalogue may have got others since."""
    levels = {int(cell.partition(":")[0]) for cell in result["cells"]}
    return sorted(levels - {NOMINAL})


def _rate(entry: JsonObject) -> str:
    mean, low, high = (100 * entry[key] for key in ("mean", "low", "high"))
    return f"{mean:.1f} % [{low:.1f}, {high:.1f}]"


def syllabus_runs(syllabi: Syllabi) -> Iterator[str]:
    """Settings of each syllabus."""
    return table(("syllabus", "settings"), ((_code(n), settings(g[0])) for n, g in syllabi.items()))


def metrics(group: Sequence[Result]) -> Iterator[str]:
    """Metrics of one syllabus by agent; those without a value for any are left out."""
    rows = [
        (metric, *(_entry(one["metrics"][metric]) for one in group))
        for metric in group[0]["metrics"]
        if any(one["metrics"][metric]["mean"] is not None for one in group)
    ]
    forgotten = (_mean(mean_of(np.array(one["forgetting"]))) for one in group)
    head = (f"`{one['agent']}`" for one in group)
    return table(("metric", *head), [*rows, ("forgetting", *forgotten)])


def _entry(entry: JsonObject) -> str:
    """A metric with its interval."""
    if entry["mean"] is None:
        return ""
    if entry["low"] is None:
        return f"{entry['mean']:.3f}"
    return f"{entry['mean']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"


def missing(syllabi: Syllabi) -> Iterator[str]:
    """Metrics without a value, with their reasons."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, group in syllabi.items():
        for metric, entry in group[0]["metrics"].items():
            if all(one["metrics"][metric]["mean"] is None for one in group):
                names.setdefault((metric, entry["reason"]), []).append(_code(name))
    rows = ((metric, reason, "; ".join(of)) for (metric, reason), of in names.items())
    return table(("metric without a value", "reason", "syllabi"), rows)


def forgetting(syllabi: Syllabi) -> Iterator[str]:
    """How much less each agent forgets than the plain learner; verdicts are corrected by Holm."""
    agents = dict.fromkeys(one["agent"] for group in syllabi.values() for one in group)
    compared = [agent for agent in agents if agent != PLAIN]
    gaps = {}
    for name, group in syllabi.items():
        by_agent = {one["agent"]: np.array(one["forgetting"]) for one in group}
        plain = by_agent.pop(PLAIN)
        gaps |= {(name, agent): plain - forgotten for agent, forgotten in by_agent.items()}
    p_values = holm([float(stats.ttest_1samp(gap, 0).pvalue) for gap in gaps.values()])
    cells = {
        key: difference(gap, bool(p < 1 - DEFAULT_LEVEL))
        for (key, gap), p in zip(gaps.items(), p_values, strict=True)
    }
    rows = ((_code(name), *(cells.get((name, a), "") for a in compared)) for name in syllabi)
    return table(("syllabus", *(f"`{agent}`" for agent in compared)), rows)


def difference(gap: np.ndarray, certain: bool) -> str:
    """How much less another agent forgets than the plain learner.

    Args:
      gap: (L,) forgetting of the plain learner less that of the agent, lifetime by lifetime.
      certain: whether its sign is.
    """
    mean = mean_of(gap)
    if not certain:
        return f"no measurable difference: {_mean(mean)}"
    word = "less" if mean["mean"] > 0 else "more"
    return f"{word}: {_mean(mean | {'mean': abs(mean['mean'])})}"


def rates(result: Result) -> Iterator[str]:
    """Steps a second of each program, medians over rounds."""
    by_program = {}
    for name, rounds in result["rounds"].items():
        keys = ("steps_per_processor_second", "steps_per_second", "without_building")
        numbers = ([one[key] for one in rounds if key in one] for key in keys)
        by_program[name] = [float(np.median(each)) if each else None for each in numbers]
    ours = by_program["ppo learns"][0]
    rows = (
        (
            name,
            *("" if rate is None else f"{rate:,.0f}" for rate in of),
            "" if name == "ppo learns" or None in (ours, of[0]) else f"{ours / of[0]:,.2f}",
        )
        for name, of in by_program.items()
    )
    head = ("program", "steps a CPU-second", "wall clock", "without building scenes")
    return table((*head, "`ppo` learns at times this rate"), rows)
