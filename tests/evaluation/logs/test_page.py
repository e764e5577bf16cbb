"""What the page on logs shows works, in the order in which it stands there."""

import re

import pytest

from evaluation import cli
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^jaxsim (.*?)(?: +#.*)?$", PAGE, re.MULTILINE)


def test_the_programs_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(PROGRAMS) == 3
    names: dict[str, object] = {}
    for program in PROGRAMS:
        exec(program, names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("logs/my_scenario-")
    assert lines[1] == "[12. 14. 13.]"
    assert lines[2].startswith("('pole_long',) 0 ")
    for log in sorted((tmp_path / "logs").iterdir()):
        assert cli.main(["l2m", "validate", str(log)]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_are_understood(command):
    words = command.split()
    arguments = cli.build_parser().parse_args(words)
    assert arguments.command == words[0]
