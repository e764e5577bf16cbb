"""Every field of what is written as JSON is in it: another value makes another text."""

import dataclasses
import json
from typing import Any

import pytest

from evaluation.bench.rate import Rate
from evaluation.bench.result import OURS, BenchResult, Sample, ThroughputCurve
from evaluation.bench.result import Measurements as Measured
from evaluation.bench.workloads import NOMINAL
from evaluation.evaluate.job import ComparisonRow, Mean
from evaluation.gvgai.results import LevelResult
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.track import TrackLevel
from evaluation.report.capabilities import Capability, CapabilityScore
from evaluation.report.html.page import Chart
from evaluation.report.transfer import CurveTransfer
from evaluation.sweep.notes import Failure, RunningProcess
from evaluation.sweep.progress import SweepStatus

MEAN, OTHER_MEAN = Mean(0.5, 0.25, 0.75), Mean(0.5, 0.125, 0.75)
SCORE = CapabilityScore(0.5, 0.25, 0.75, 2, ("mean",))
SAMPLES = [Sample(Rate(100, 2.0, 3.0, 2), 0.5)]
ROW = Measured(
    OURS,
    NOMINAL,
    "default",
    {"first_seconds": 3.0, "first_steps": 10, "mean_length": 5.0, "threads": 1},
    SAMPLES,
    "it was too late",
)
WORDS = {
    "task": "CartPole2D",
    "on_overspent": "abort_level",
    "scope": "phase",
    "timer": "processor",
}
"""Other words, where not all are allowed."""

VALUES = (
    MEAN,
    ComparisonRow("203 hard", "pd", MEAN, OTHER_MEAN, 0.25, 0.5, 0.125, MEAN),
    SCORE,
    Capability({"share": SCORE}, {"mean": SCORE}),
    CurveTransfer("pd", "a", "b", 0.5, 0.25, 0.75, 3),
    Chart("x", [1.0], {"a": [2.0]}, {"a": [[1.0], [3.0]]}, [(0.0, 1.0, "novel")]),
    Rate(100, 2.0, 3.0, 2),
    SAMPLES[0],
    ROW,
    BenchResult(
        {"seed": 1},
        2,
        {"default": 3.0},
        {"default": 1.0},
        [ROW],
        [ThroughputCurve("default")],
        [0.5],
    ),
    LevelResult("g", 1, "first", 2, 3, 1, 4.0, 5, error="it was late"),
    Rules(act_hard_seconds=2.0),
    TrackLevel("CartPole3D", (("pole/length", 2.0),), "a long pole"),
    SweepStatus(
        "s",
        9,
        4,
        1,
        (RunningProcess("here", 7, (3,), 2.0),),
        (Failure(5, 3, "no number", "here 7", "2026-01-01"),),
        1.5,
        60.0,
    ),
)
OTHER = {"performance": OTHER_MEAN, "length": MEAN, "difference": OTHER_MEAN, "rate": Rate(1, 1, 1)}
"""Other values by the name of the field, of what `another` does not know."""


def another(name: str, value: Any) -> Any:
    """A value that differs from one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return WORDS.get(name) or f"{value}x"
        case tuple() | list() | dict():
            assert value, "an empty value shows nothing"
            return type(value)()
    return OTHER[name]


KEYS = {
    "CurveTransfer.earlier": {"from"},
    "CurveTransfer.task": {"to"},
    "Sample.rate": {"cpu_seconds", "processes", "steps", "wall_seconds"},
    "Measurements.facts": {"compile_seconds", "facts"},
    "Measurements.samples": {
        *("samples", "compile_seconds", "steps_per_cpu_second", "steps_per_wall_second"),
    },
    "BenchResult.cores": {"machine"},
    "BenchResult.rows": {"missing", "rows"},
    "BenchResult.load": {"machine"},
}
"""Keys under which a field is written, where it is not its name alone."""


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__qualname__)
def test_every_field_is_in_the_json_under_its_name(value):
    before = json.loads(json.dumps(value.to_json(), allow_nan=False))
    for field in dataclasses.fields(value):
        other = another(field.name, getattr(value, field.name))
        changed = dataclasses.replace(value, **{field.name: other})
        after = json.loads(json.dumps(changed.to_json(), allow_nan=False))
        name = f"{type(value).__name__}.{field.name}"
        assert before.keys() == after.keys(), name
        keys = {key for key in before if before[key] != after[key]}
        assert keys == KEYS.get(name, {field.name}), name
