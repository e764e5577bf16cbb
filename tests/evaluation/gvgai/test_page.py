"""docs/gvgai.md is that of the code, and what it shows works."""

import re
import shlex
from pathlib import Path

import pytest

from evaluation import cli
from evaluation.clock import ScriptedClock
from evaluation.gvgai import harness
from evaluation.gvgai.observation import FIELDS, MOST_CELLS
from evaluation.gvgai.phases import Call
from evaluation.gvgai.protocol import LONGEST_REPLY
from evaluation.gvgai.results import LevelResult
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.server import TRANSPORT_SECONDS
from tests.evaluation.gvgai.scripted import track
from tools import gvgai_page, islands

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gvgai.md").read_text(encoding="utf-8")


def test_the_page_is_current():
    assert islands.filled(PAGE, gvgai_page.islands()) == PAGE, "run python -m tools.pages"


def test_numbers_in_the_text_are_those_of_the_code():
    rules, text = Rules(), " ".join(PAGE.split())
    act, hard = (1e3 * s for s in (rules.act_seconds, rules.act_hard_seconds))
    for words in (
        f"The agent is made. It has {rules.start_seconds:g} s.",
        f"{rules.learning_seconds:g} s from the constructor on",
        f"the agent has {rules.grace_seconds:g} s for `result`",
        f"| constructor | less than {rules.start_seconds:g} s |",
        f"| `init` | less than {rules.init_seconds:g} s |",
        f"| `act` | {act:g} ms | up to {hard:g} ms `ACTION_NIL` is played",
        f"the rest of the time for training, and {rules.grace_seconds:g} s |",
        f"takes {TRANSPORT_SECONDS:g} s longer than the limit",
        f"waits {TRANSPORT_SECONDS:g} s (`--transport-seconds`)",
        f"longer than {LONGEST_REPLY} bytes",
        f"wider than {MOST_CELLS} m",
        f"at most {MOST_CELLS} by {MOST_CELLS}",
    ):
        assert words in text, words


@pytest.mark.requirement(84, 97)
def test_every_field_rule_and_result_stands_there():
    rows = set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE))
    assert {field.name for field in FIELDS} <= rows
    assert set(Rules().to_json()) == set(gvgai_page.attributes(Rules)) <= rows
    assert set(LevelResult.__annotations__) == set(gvgai_page.attributes(LevelResult)) <= rows


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
    run, clock = harness.run, ScriptedClock()

    def quickly(default, agent, given_clock):
        assert default.name == "cartpole3d"
        return run(track(most_plays=2), agent, clock)

    monkeypatch.setattr(harness, "run", quickly)
    exec(block, names)
    assert names["trial"].call == Call.FINISH
    assert names["records"].schedule.num_episodes == 4
