"""Sections of the page of a report, made from its JSON and, for a run, from its records."""

import html
import re
import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.metrics.statistics import bootstrap_interval, describe
from evaluation.records import MEASURE_BOUNDS, Records
from evaluation.report.html import markup
from evaluation.report.html.page import Chart, Section, page

MOST_POINTS = 600
"""Maximum of points of a curve; neighbouring episodes are averaged beyond it."""
ENDS = 5
"""Number of worst and of best lifetimes to list."""
VIEWS = "views"
"""Folder with pages of episodes, in the directory of a run."""
AXES = ("episodes", "episode", "minutes")
MOST_LINES = 6
RESAMPLES = 1000
"""Bootstrap resamples for the band of a curve, which needs no third digit."""


def of_run(report: JsonMapping, records: Records, command: str = "", run: str = "DIR") -> str:
    """Return the page of a run of a syllabus.

    Args:
      report: the values of its report.json.
      records: of the run.
      command: the command that made it.
      run: its directory, for commands that open episodes.
    """
    measure = str(report["measure"])
    sections = [
        _played(report, command),
        _curve(records, measure),
        _metrics(report),
        _blocks(report),
        *_matrix(report),
        *_novelty(report),
        *_capabilities(report),
        lifetimes(records, measure, run),
    ]
    name = report["syllabus"]["name"]
    return page(f"{name}, played by {report.get('agent', 'an agent')}", sections)


def of_report(
    title: str,
    report: JsonMapping,
    command: str = "",
    axes: Sequence[str] = AXES,
    more: Sequence[Section] = (),
) -> str:
    """Return the page of any other report: facts, then a table of each list or group of numbers.

    Args:
      title: heading.
      report: the values of its JSON.
      command: the command that made it.
      axes: fields of rows that can be the x axis of a chart.
      more: sections to append.
    """
    facts = {k: v for k, v in report.items() if not _is_group(v)}
    sections = [Section("What this is", "Settings, versions and totals.", markup.facts(facts))]
    if command:
        sections.append(_command(command))
    for name, value in report.items():
        if not _is_group(value):
            continue
        chart = _chart_of(value, axes)
        sections.append(Section(_words(name), "", _group(value, markup.pointer("", name)), chart))
    return page(title, [*sections, *more])


def _is_group(value: JsonValue) -> bool:
    """Whether a JSON value is shown as a separate table."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) and any(isinstance(one, dict) for one in value.values())


def _group(value: JsonValue, path: str) -> str:
    if isinstance(value, list):
        return markup.records(value, path)
    if all(markup.is_entry(one) for one in value.values()):
        return markup.metrics(value, path)
    parts = []
    for name, one in value.items():
        show = _group if _is_group(one) else markup.cell
        body = show(one, markup.pointer(path, name))
        parts.append(f"<h3>{html.escape(_words(name))}</h3>{body}")
    return "".join(parts)


def _chart_of(value: JsonValue, axes: Sequence[str]) -> Chart | None:
    """A chart of rows with an axis and means with intervals, such as a training curve."""
    if not isinstance(value, list) or len(value) < 2:
        return None
    axis = next((n for n in axes if isinstance(value[0].get(n), int | float)), None)
    if axis is not None and markup.is_entry(value[0]):
        value = [{axis: row[axis], "mean": row} for row in value]
    names = [n for n, v in value[0].items() if markup.is_entry(v)][:MOST_LINES]
    if axis is None or not names:
        return None
    key = "mean" if "mean" in value[0][names[0]] else "value"
    lines = {n: [row[n].get(key) for row in value] for n in names}
    bands = {
        n: ([row[n]["low"] for row in value], [row[n]["high"] for row in value]) for n in names
    }
    return Chart(axis, [row[axis] for row in value], lines, bands)


def _played(report: JsonMapping, command: str) -> Section:
    names = ("agent", "lifetimes", "episodes", "incomplete_episodes", "seed", "width", "measure")
    facts = {n: report[n] for n in names if n in report}
    facts |= {"syllabus": report["syllabus"], "window": report["window"]}
    facts |= {n: report[n] for n in ("interval", "versions", "faults") if n in report}
    body = markup.facts(facts)
    text = "Everything here follows from these settings; the same command gives the same numbers."
    return Section("What was played", text, body + (_command(command).body if command else ""))


def _command(command: str) -> Section:
    text = f"<p>Command: <code>{html.escape(command)}</code></p>"
    return Section("Command", "What made this.", text)


def _points(values: np.ndarray) -> list[float | None]:
    """Heights of a line, with a gap where there is no value."""
    return [round(float(v), 6) if np.isfinite(v) else None for v in values]


def _curve(records: Records, measure: str) -> Section:
    values = np.asarray(records.columns[measure], np.float64)
    lifetimes, episodes = values.shape
    group = -(-episodes // MOST_POINTS)
    shades, firsts, first = [], [], 0
    for block in records.schedule.blocks:
        name = f"{block.task} {block.mode}"
        shades.append((float(first), float(first + block.count), name))
        firsts.append(np.arange(first, first + block.count, group))
        first += block.count
    starts = np.concatenate(firsts)
    finite = np.isfinite(values)
    sums, sizes = (
        np.add.reduceat(each, starts, axis=1) for each in (np.where(finite, values, 0), finite * 1)
    )
    means = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)
    mean = describe(means).mean
    band = bootstrap_interval(means, resamples=RESAMPLES, bounds=MEASURE_BOUNDS[measure])
    # A single lifetime has no interval.
    ends = (np.where(np.isfinite(end), end, mean) for end in (band.low, band.high))
    chart = Chart(
        "episode",
        starts.tolist(),
        {measure: _points(mean)},
        {measure: tuple(map(_points, ends))},
        shades,
    )
    each = f"each point is {group} episodes" if group > 1 else "each point is an episode"
    text = (
        f"Mean {measure} over {lifetimes} lifetimes with its 95 % interval; {each}. "
        "Shades are the blocks: stronger ones are trained, pale ones tested."
    )
    return Section("Curve", text, "", chart)


def _metrics(report: JsonMapping) -> Section:
    body = markup.metrics(report["metrics"], "/metrics")
    lifelong = report.get("lifelong", {}).get("metrics", {})
    if lifelong:
        body += "<h3>Lifelong learning (l2metrics 3.1)</h3>"
        body += markup.metrics(lifelong, "/lifelong/metrics")
    text = f"Means over the blocks and lifetimes; intervals: {report['interval']}."
    return Section("Metrics", text, body)


def _blocks(report: JsonMapping) -> Section:
    rows = [
        {k: v for k, v in block.items() if k != "parameters"}
        | {"parameters": block["parameters"] or "defaults"}
        for block in report["blocks"]
    ]
    return Section(
        "Blocks",
        "Every metric of every block, as it was played.",
        markup.records(rows, "/blocks"),
    )


def _matrix(report: JsonMapping) -> list[Section]:
    """Performance on each task in each test, and the loss since the best test so far."""
    tests: dict[str, dict[str, tuple[float, str]]] = {}
    phases: list[str] = []
    for number, block in enumerate(report["blocks"]):
        value = block["metrics"]["mean"]["mean"]
        if not block["phase"].endswith(".test") or value is None:
            continue
        phases += [block["phase"]] if block["phase"] not in phases else []
        parameters = ", ".join(f"{k} {v}" for k, v in block["parameters"].items())
        name = f"{block['task']} ({parameters})" if parameters else block["task"]
        tests.setdefault(name, {})[block["phase"]] = (value, f"/blocks/{number}/metrics/mean/mean")
    if len(phases) < 2:
        return []
    rows: list[list[str]] = []
    losses_by_task: dict[str, list[float | None]] = {}
    for name, by_phase in tests.items():
        cells: list[str] = []
        losses: list[float | None] = []
        best = -np.inf
        before: float | None = None
        for phase in phases:
            if phase not in by_phase:
                cells.append("")
                losses.append(None)
                continue
            value, path = by_phase[phase]
            change = "" if before is None else f" ({value - before:+.3f})"
            cells.append(markup.number(value, path) + change)
            best, before = max(best, value), value
            losses.append(round(best - value, 6))
        rows.append([html.escape(name), *cells])
        losses_by_task[name] = losses
    matrix = markup.table(("task", *phases), rows, "transfer matrix")
    text = (
        "Mean of each task in each test. In brackets is the change since its last test, the "
        "transfer from the training in between: above 0 helps, below 0 is forgetting."
    )
    chart = Chart("test", list(range(1, len(phases) + 1)), losses_by_task, {})
    forgetting = "The best test of each task so far minus the present one; 0 means no forgetting."
    return [
        Section("Transfer matrix", text, matrix),
        Section("Forgetting over time", forgetting, "", chart),
    ]


def _novelty(report: JsonMapping) -> list[Section]:
    """Scores of novelty predictions, over lifetimes and by block."""
    if "novelty" not in report:
        return []
    lifetimes, blocks = (report["novelty"][name] for name in ("metrics", "blocks"))
    body = markup.metrics(lifetimes, "/novelty/metrics") + "<h3>By block</h3>"
    body += markup.records(blocks, "/novelty/blocks")
    text = (
        "Scores of the agent's predictions, over lifetimes and by block. An episode counts as "
        "called if its last prediction is at or above the agent's threshold."
    )
    return [Section("Novelty detection", text, body)]


def _capabilities(report: JsonMapping) -> list[Section]:
    """Scores of the core capabilities."""
    rows = []
    for name, scores in report.get("capabilities", {}).items():
        path = f"/capabilities/{name}/averages"
        for unit, score in scores["averages"].items():
            metrics = ", ".join(map(_words, score["metrics"]))
            place = markup.pointer(path, unit)
            cells = (_words(name), unit, metrics)
            rows.append([*map(html.escape, cells), markup.entry(score, place)])
    if not rows:
        return []
    text = "Averages of the metrics of a capability, separately for each unit."
    head = ("capability", "unit", "average of", "score [95 % interval]")
    return [Section("Core capabilities", text, markup.table(head, rows, "capabilities"))]


def ends(records: Records, measure: str) -> list[tuple[int, int]]:
    """The worst and best lifetimes, and the worst episode of each.

    Args:
      records: of a run.
      measure: column used as an episode's value.

    Returns:
      (lifetime, episode) of up to `ENDS` worst lifetimes, then of up to as many best ones.
    """
    values = np.asarray(records.columns[measure], np.float64)
    means = np.nan_to_num(describe(values.T).mean, nan=-np.inf)
    order = np.argsort(means, kind="stable")
    lanes = order if len(order) <= 2 * ENDS else np.concatenate([order[:ENDS], order[-ENDS:]])
    return [(records.first_lifetime + int(lane), _worst(values[lane])) for lane in lanes]


def _worst(values: np.ndarray) -> int:
    """Place of the lowest value; of a lifetime without any, the first."""
    return int(np.argmin(np.where(np.isfinite(values), values, np.inf)))


def view_of(lifetime: int, episode: int) -> str:
    """Path of the page that shows an episode, relative to the run's directory."""
    return f"{VIEWS}/lifetime-{lifetime}-episode-{episode}.html"


def linked(page: str, views: Iterable[str]) -> str:
    """Return the page of a run with links to pages of episodes instead of commands.

    Args:
      page: from `of_run`.
      views: paths from `view_of`.
    """
    for view in views:
        cell = re.escape(f'<code data-view="{view}">') + "[^<]*</code>"
        page = re.sub(cell, f'<a href="{view}">{view.removeprefix(VIEWS + "/")}</a>', page)
    return page


def lifetimes(records: Records, measure: str, run: str) -> Section:
    """Return the worst and the best lifetimes, with commands that open an episode of each.

    Args:
      records: of a run.
      measure: column used as an episode's value.
      run: its directory, for the commands.
    """
    values = np.asarray(records.columns[measure], np.float64)
    rows = []
    for lifetime, worst in ends(records, measure):
        lane = values[lifetime - records.first_lifetime]
        words = ("jaxsim", "view", run, "--lifetime", str(lifetime), "--episode", str(worst))
        place = f'data-view="{view_of(lifetime, worst)}"'
        command = f"<code {place}>{html.escape(shlex.join(words))}</code>"
        mean = float(describe(lane).mean)
        rows.append([str(lifetime), f"{mean:.4g}", str(worst), f"{lane[worst]:.4g}", command])
    head = ("lifetime", f"mean {measure}", "worst episode", measure, "see it")
    text = (
        "The worst episode of each, in the viewer. Links to all of them: "
        f"{shlex.join(('jaxsim', 'view', run, '--ends'))}."
    )
    return Section("Worst and best lifetimes", text, markup.table(head, rows, "lifetimes"))


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]
