"""docs/gvgai.md is that of the code, and what it shows works."""

import re
import shlex
from pathlib import Path

import pytest

from evaluation import cli
from evaluation.clock import ScriptedClock
from evaluation.gvgai import harness
from evaluation.gvgai.observation import FIELDS
from evaluation.gvgai.phases import Call
from evaluation.gvgai.results import LevelResult
from evaluation.gvgai.rules import Rules
from tests.evaluation.gvgai.scripted import track
from tools import gvgai_page

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gvgai.md").read_text(encoding="utf-8")


def test_the_page_is_current():
    again = "write it anew: python -m tools.gvgai_page --out docs/gvgai.md"
    assert "\n".join(gvgai_page.page()) + "\n" == PAGE, again


@pytest.mark.requirement(84, 97)
def test_every_field_rule_and_result_stands_there():
    rows = set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE))
    assert {field.name for field in FIELDS} <= rows
    assert set(Rules().to_json()) == set(gvgai_page.attributes(Rules)) <= rows
    assert set(LevelResult.__annotations__) == set(gvgai_page.attributes(LevelResult)) <= rows
    assert not re.search(r"[A-Z]_(SECONDS|MILLIS)|TRANSPORT|LONGEST|CELLS", PAGE)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_its_commands_are_understood():
    (block,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        program, *words = shlex.split(line.partition(">")[0], comments=True)
        assert program == "jaxsim"
        assert cli.build_parser().parse_args(words).command == "gvgai"


def test_its_agent_plays(monkeypatch):
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    names: dict = {}
    played, clock = harness.run, ScriptedClock()

    def quickly(given, agent, given_clock):
        assert given.name == "cartpole3d"
        return played(track(most_plays=2), agent, clock)

    monkeypatch.setattr(harness, "run", quickly)
    exec(block, names)
    assert names["trial"].call == Call.FINISH
    assert names["records"].schedule.num_episodes == 4
