"""Recorded results of the original grader."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.grader import players

POLICIES = {
    "Always0": lambda: players.Always(0),
    "Always1": lambda: players.Always(1),
    "Alternate": players.Alternate,
    "PoleSign": players.PoleSign,
    "PD": players.PD,
    "CrashAt": players.CrashAt,
}
LIMITS = {"CartPole-v0": 200, "CartPole-v1": 500}


@dataclass(frozen=True)
class Recording:
    """One case as the original graded it."""

    values: dict[str, Any]
    starts: dict[int | None, list[float]]

    @property
    def limit(self) -> int:
        return LIMITS[self.values["env"]]

    @property
    def policy(self) -> Callable[[], Any]:
        return POLICIES[self.values["agent"]]

    @property
    def expected(self) -> dict[str, Any]:
        return self.values["result"]


@pytest.fixture(scope="session")
def golden(recorded_data: Callable[[str], Path]) -> dict[str, Any]:
    path = recorded_data("protocols/aivle_golden.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def recordings(golden: dict[str, Any]) -> list[Recording]:
    """All 26 cases; starts by seed are known from those that seed before the reset."""
    starts: dict[int | None, list[float]] = {}
    for values in golden["cases"]:
        if values["mode"] == "seedfirst":
            starts |= dict(zip(values["seeds"], values["initial_states"], strict=True))
    return [Recording(values, starts) for values in golden["cases"]]


@pytest.fixture(scope="session")
def seed_first(recordings: list[Recording]) -> list[Recording]:
    return [r for r in recordings if r.values["mode"] == "seedfirst"]
