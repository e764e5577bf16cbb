"""Keep the numbers of the page from reports of `jaxsim sailon evaluate`.

    python -m tools.sailon_evaluations runs/evaluation/report.json
    python -m tools.pages docs/sailon.md

The file is docs/sailon-evaluations.json. A report replaces an earlier one of the same command.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from evaluation.files import write_json
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.sailon.evaluate import BUTTON, EvaluationPlan
from jaxsim.worlds.cartpole3d.levels import EVALUATED
from tools.islands import DOCS, measured

FILE = "sailon-evaluations.json"
KEPT = (
    "cdt",
    "false_alarms",
    "median_delay",
    "mean_delay",
    "performance_pre",
    "performance_post",
    "level_accuracy_found",
    "entity_accuracy",
    "attribute_accuracy",
    "change_accuracy",
)
"""Numbers of the page from a cell of a report."""
CHANGED = ("training_episodes", "hint_level", "starts", "sensors")
"""Settings that few evaluations change; those stored before these were kept have none of them."""


def kept(report: JsonMapping) -> JsonObject:
    """Entries of a report of `jaxsim sailon evaluate` that are stored.

    Raises:
      ValueError: it is not a report.
    """
    try:
        settings = report["experiment"]["settings"]
        names = ("seed", "trials", "testing_episodes", "pre_novel_episodes")
        cells = [
            {
                **{name: cell[name] for name in ("level", "difficulty", "visibility", "trials")},
                **{name: cell[name] for name in KEPT},
                "intervals": {name: cell["intervals"][name] for name in KEPT},
            }
            for cell in report["cells"]
        ]
        return {
            "agent": report["agent"]["agent"],
            "baseline": report["baseline"]["agent"],
            "versions": report["agent"]["versions"],
            "settings": {
                **{name: settings[name] for name in names},
                **{name: settings[name] for name in CHANGED if name in settings},
            },
            "timing": report["timing"],
            "cells": cells,
        }
    except (KeyError, TypeError) as error:
        raise ValueError("that is not a report.json of jaxsim sailon evaluate") from error


def command(evaluation: JsonMapping) -> str:
    """The command of an evaluation."""
    levels = sorted({cell["level"] for cell in evaluation["cells"]})
    visibilities = sorted({cell["visibility"] for cell in evaluation["cells"]})
    parts = [f"jaxsim sailon evaluate --agent {evaluation['agent']}"]
    if set(levels) != set(EVALUATED):
        parts.append(f"--levels {','.join(map(str, levels))}")
    difficulties = list(dict.fromkeys(cell["difficulty"] for cell in evaluation["cells"]))
    if len(difficulties) < 3:
        parts.append(f"--difficulties {','.join(difficulties)}")
    if len(visibilities) < 2:
        parts.append(f"--visibilities {visibilities[0]}")
    settings = evaluation["settings"]
    episodes, (hint_level,) = settings["testing_episodes"], settings.get("hint_level", [-1])
    options = (
        ("--baseline", evaluation["baseline"], EvaluationPlan.baseline),
        *(
            ("--set", f"{path}={value}", None)
            for path, value in settings.get("sensors", {}).items()
        ),
        ("--episodes", episodes, EvaluationPlan.episodes),
        ("--button", settings["pre_novel_episodes"], min(BUTTON, episodes // 2)),
        ("--training", settings.get("training_episodes", 0), EvaluationPlan.training),
        ("--hint-level", hint_level, EvaluationPlan.hint_level),
        ("--starts", settings.get("starts", "counter"), EvaluationPlan.starts),
    )
    parts += [f"{name} {value}" for name, value, usual in options if value != usual]
    parts.append(f"--trials {settings['trials']} --seed {settings['seed']} --out DIR")
    return " ".join(parts)


def added(evaluations: list[Any], new: JsonMapping) -> list[Any]:
    """Add an evaluation, or put it in the place of that of the same command."""
    commands = [command(one) for one in evaluations]
    place = commands.index(command(new)) if command(new) in commands else len(evaluations)
    return [*evaluations[:place], dict(new), *evaluations[place + 1 :]]


def main() -> None:
    """Keep the numbers of the given reports."""
    parser = argparse.ArgumentParser(description="Keep the page's numbers of evaluations.")
    parser.add_argument("reports", type=Path, nargs="+", metavar="FILE", help="report.json")
    evaluations = measured(FILE)
    for path in parser.parse_args().reports:
        evaluations = added(evaluations, kept(json.loads(path.read_text(encoding="utf-8"))))
    write_json(DOCS / FILE, evaluations)


if __name__ == "__main__":
    main()
