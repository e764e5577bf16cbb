"""Trials of novelty behind the TCP protocol of the Science Birds competition.

| module | subject |
| --- | --- |
| `document` | configMeta.xml and config.xml |
| `markup` | safe parsing of XML, with lines |
| `generate` | config.xml from configMeta.xml |
| `selection` | selection of the trials to run |
| `levels` | names of levels and their episodes |
| `document_order` | an evaluation as a schedule |
| `codes` | codes of states, and what agents do |
| `codec` | messages between agent and harness |
| `legacy` | differences of the original, by name |
| `scheduler` | the scheduler of trials, a pure function |
| `game` | the game of a level |
| `harness` | requests to replies |
| `server` | TCP server for one client |
| `agent_client` | client for agents in Python |
| `demo_agent` | a template for other agents |
| `recording` | records of a served evaluation |
| `results` | result files of an evaluation |
| `commands` | `jaxsim sciencebirds` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sciencebirds.agent_client import AgentClient as AgentClient
    from evaluation.sciencebirds.agent_client import Disconnected as Disconnected
    from evaluation.sciencebirds.agent_client import Header as Header
    from evaluation.sciencebirds.codes import GameState as GameState
    from evaluation.sciencebirds.demo_agent import DemoAgent as DemoAgent
    from evaluation.sciencebirds.demo_agent import GainSearch as GainSearch
    from evaluation.sciencebirds.document import Evaluation as Evaluation
    from evaluation.sciencebirds.document import load as load
    from evaluation.sciencebirds.document import load_meta as load_meta
    from evaluation.sciencebirds.document_order import schedule as schedule
    from evaluation.sciencebirds.game import CartPoleGame as CartPoleGame
    from evaluation.sciencebirds.game import Game as Game
    from evaluation.sciencebirds.harness import Harness as Harness
    from evaluation.sciencebirds.levels import LevelPath as LevelPath
    from evaluation.sciencebirds.server import EvaluationServer as EvaluationServer
    from evaluation.sciencebirds.server import listen as listen

__getattr__, __dir__ = exports(__name__)
