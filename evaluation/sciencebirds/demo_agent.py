"""A small agent that does what every state requires; a template for other agents.

    python -m evaluation.sciencebirds.demo_agent --port 2004 --backups runs/demo_agent

It balances by four gains, which it improves level by level while it may learn: it tries gains near
the best ones and keeps those that score at least as much. Before new training it backs its gains up
and resets them. For tests it sets them aside, and restores them afterwards.
"""

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping
from evaluation.sciencebirds.agent_client import AgentClient
from evaluation.sciencebirds.codes import GameState

REPORT = (0.9, 0.1, (1, -2, -398879789), 0, "")
"""Its report of novelty: likelihoods, object ids, level, description."""
PATIENCE = 100
"""Refused loads in a row after which it gives up."""
SPREAD = 0.5
"""Standard deviation of the candidates around the best gains."""
PUSH = 100
"""Length of the vector of a shot."""


@dataclass(frozen=True)
class GainSearch:
    """Gains of a linear controller, and the search for better ones.

    Attributes:
      best: gains of lean, its rate, position and velocity.
      score: of the best gains.
      candidate: gains that are played now.
      seed: of the candidates.
      levels: number of levels played while learning.
    """

    best: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    score: float = -1.0
    candidate: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    seed: int = 0
    levels: int = 0

    @property
    def digest(self) -> str:
        """Fingerprint of the learner."""
        text = json.dumps([self.best, self.score, self.seed, self.levels])
        return hashlib.sha256(text.encode()).hexdigest()

    def begin(self, learning: bool) -> "GainSearch":
        """Choose the gains of a level: while learning, others near the best."""
        if not learning:
            return replace(self, candidate=self.best)
        gauss = random.Random(f"{self.seed} {self.levels}").gauss
        candidate = tuple(gain + gauss(0.0, SPREAD) for gain in self.best)
        return replace(self, candidate=candidate, levels=self.levels + 1)

    def end(self, score: float) -> "GainSearch":
        """Keep the candidate if it is at least as good."""
        return replace(self, best=self.candidate, score=score) if score >= self.score else self

    def shot(self, vector: JsonMapping) -> tuple[int, int]:
        """Vector of the candidate's shot."""
        if "pole" not in vector:
            return 0, 0
        pole, cart = vector["pole"], vector["cart"]
        x, y, z, w = (pole[f"{name}_quaternion"] for name in "xyzw")
        wx, wy, wz = (pole[f"{name}_velocity"] for name in "xyz")
        axis = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
        rate = (wy * axis[2] - wz * axis[1], wz * axis[0] - wx * axis[2])
        demands = []
        for i, name in enumerate("xy"):
            inputs = (axis[i], rate[i], cart[f"{name}_position"], cart[f"{name}_velocity"])
            demands.append(
                sum(gain * value for gain, value in zip(self.candidate, inputs, strict=True))
            )
        strongest = 0 if abs(demands[0]) >= abs(demands[1]) else 1
        push = PUSH if demands[strongest] > 0 else -PUSH if demands[strongest] < 0 else 0
        return (push, 0) if strongest == 0 else (0, push)


@dataclass
class DemoAgent:
    """The agent with its connection.

    Attributes:
      client: connected client.
      backups: directory for backups; None for none.
      learner: its gains.
      history: announcements and levels so far, as in "11 9 L1 L2 8 T1 10 L3 13".
      digests: fingerprint of the learner at each of them.
    """

    client: AgentClient
    backups: Path | None = None
    learner: GainSearch = field(default_factory=GainSearch)
    history: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    learning: bool = False
    testing: bool = False
    _backup: GainSearch = field(default_factory=GainSearch)
    _playing: bool = False
    _refusals: int = 0
    _number: int = 0

    def run(self) -> None:
        """Play until the evaluation has ended.

        Raises:
          Disconnected: the server has closed the connection.
          RuntimeError: nothing can be loaded although nothing is announced.
        """
        while (state := self.client.get_game_state()) != GameState.EVALUATION_TERMINATED:
            self._do(state)
        self._note(str(int(state)))
        self._back_up()

    def _do(self, state: GameState) -> None:
        if self._playing and state not in (GameState.PLAYING, GameState.REQUESTNOVELTYLIKELIHOOD):
            self._end_level()
        if state == GameState.PLAYING:
            self._playing = True
            self.client.shoot(*self.learner.shot(self.client.get_ground_truth_without_screenshot()))
        elif state == GameState.REQUESTNOVELTYLIKELIHOOD:
            self._note(str(int(state)))
            self.client.report_novelty_likelihood(*REPORT)
        elif state in (GameState.NEWTRIAL, GameState.NEWTRAININGSET):
            self._note(str(int(state)))
            self._back_up()
            # Set aside as well: the original announces some tests by 9.
            self._backup, self.learner = self.learner, GainSearch()
            self._get_ready()
        elif state == GameState.NEWTESTSET:
            self._note(str(int(state)))
            if not self.testing:
                self._backup = self.learner
            self._get_ready()
        elif state == GameState.RESUMETRAINING:
            self._note(str(int(state)))
            self.learner = self._backup
            self._get_ready()
        else:
            self._load()

    def _get_ready(self) -> None:
        """Start the announced set; the reply says whether the agent may learn."""
        header = self.client.ready_for_new_set()
        self.testing = header.testing
        self.learning = not header.testing

    def _load(self) -> None:
        number = self.client.load_next_available_level()
        self.client.get_novelty_info()
        if number:
            self._refusals = 0
            self.learner = self.learner.begin(self.learning)
            self._note(f"{'T' if self.testing else 'L'}{number}")
            return
        self._refusals += 1
        if self._refusals == PATIENCE:
            raise RuntimeError("no level can be loaded, and nothing else is announced")

    def _end_level(self) -> None:
        """Learn from a level that is over."""
        self._playing = False
        if self.learning:
            self.learner = self.learner.end(self.client.get_current_score())

    def _back_up(self) -> None:
        """Write the gains to a new file."""
        if self.backups is None:
            return
        self._number += 1
        values = {"best": self.learner.best, "score": self.learner.score}
        text = json.dumps({**values, "digest": self.learner.digest}, indent=2) + "\n"
        write_whole(self.backups / f"backup_{self._number:03}.json", text)

    def _note(self, what: str) -> None:
        self.history.append(what)
        self.digests.append(self.learner.digest)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the agent's options to a parser."""
    parser.add_argument("--host", default="127.0.0.1", help="address of the server (127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=2004, metavar="N", help="port of the server (2004)"
    )
    parser.add_argument("--backups", type=Path, metavar="DIR", help="directory for backups")


def play(arguments: argparse.Namespace) -> int:
    """Connect and play; return the exit code."""
    try:
        with AgentClient(arguments.host, arguments.port) as client:
            agent = DemoAgent(client, arguments.backups)
            agent.run()
    except ConnectionRefusedError:
        print(
            f"demo agent: nothing listens at {arguments.host}, port {arguments.port}; start "
            "jaxsim sciencebirds serve first",
            file=sys.stderr,
        )
        return 1
    except (OSError, RuntimeError) as error:
        print(f"demo agent: {error}", file=sys.stderr)
        return 1
    print(" ".join(agent.history))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent; return the exit code."""
    parser = argparse.ArgumentParser(description="Play an evaluation with the demo agent.")
    add_options(parser)
    try:
        return play(parser.parse_args(argv))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
