"""What the page on statistics shows works as it stands there."""

import json
import re
from pathlib import Path

from evaluation.metrics import STATISTICS

PAGE = (Path(__file__).parents[1] / "docs" / "statistics.md").read_text(encoding="utf-8")


def code(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_python_on_the_page_runs(tmp_path, monkeypatch, capsys):
    values = {"perf_recovery": -2.0, "avg_eval_perf": 3.0}
    transfer = {"forward_transfer_ratio": {"b_1": [1.5]}}
    run = {"run_id": "one", **values, "task_metrics": {"a_1": {**values, **transfer}}}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "one_metrics.json").write_text(json.dumps(run))
    monkeypatch.chdir(tmp_path)
    blocks = code("python")
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})
    assert "('one',) ('a_1', 'b_1')" in capsys.readouterr().out


def test_the_entry_on_the_page_is_one_of_a_report():
    (entry,) = map(json.loads, code("json"))
    assert ["mean", *entry["statistics"]] == list(STATISTICS)
    assert {"mean", "low", "high", "std", "lifetimes", "missing"} <= set(entry)


def test_commands_on_the_page_parse():
    from evaluation.cli import build_parser

    commands = re.findall(r"^    jaxsim (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert callable(build_parser().parse_args(command.split()).handler)
