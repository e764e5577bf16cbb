"""The shipped examples, as they stand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "grader"


def run(*words):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.requirement(67)
def test_a_suite_and_a_submission():
    pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")
    command = ["-m", "evaluation.cli", "grade", "examples/grader/balance.py"]
    result = run(*command, "examples/grader/my_agent.py")
    values = {each["case_id"]: each["result"]["value"] for each in result["results"]}
    assert values == {"short": 100.0, "whole episodes": 500.0}


@pytest.mark.requirement(63, 67)
def test_classes_of_ones_own_and_an_adapted_game():
    expected = {"name": "win rate", "detail": [True] * 8, "value": 1.0, "error": None}
    result = run("examples/grader/matches.py")
    assert result["results"] == [{"case_id": "tournament", "result": expected}]


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "balance.py",
        "matches.py",
        "my_agent.py",
    }
