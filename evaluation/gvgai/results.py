"""Results of levels: a record, a line of text, and files that grow level by level."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.closing import Closing
from evaluation.gvgai.observation import WINNERS
from evaluation.gvgai.phases import Phase
from evaluation.gvgai.rules import TRAINING, VALIDATION
from evaluation.json_types import JsonObject

RESULTS_FILE = "results.jsonl"

START_PHASE = "start"
PHASES = {Phase.FIRST: "first", Phase.SECOND: "second", Phase.VALIDATION: "validation"}
"""Names of the phases in results."""


@dataclass(frozen=True)
class LevelResult:
    """One play of a level, or a constructor that failed.

    Attributes:
      game: name of the track.
      lifetime: number of the lifetime.
      phase: "first", "second" or "validation"; "start" for a constructor that failed.
      level: 0 to 4; null for such a constructor.
      play: number of the play in the lifetime, from 0; with the seed it gives start and randomness.
      winner: 1 win, 0 lose, -1 none, -100 disqualified.
      score: of the game; -1000 if disqualified.
      ticks: steps played.
      aborted: whether the agent broke it off.
      overspent: whether an action came too late for the level to continue.
      act_max_ms: longest time for an action, ms; at a server, transport included.
      performance: the task's score, in [0, 1].
      complete: whether it was played to its end with every number finite.
      seconds: simulated time, s.
      error: exception of the agent, or loss of the client, that ended it.
    """

    game: str
    lifetime: int
    phase: str
    level: int | None
    play: int
    winner: int
    score: float
    ticks: int
    aborted: bool = False
    overspent: bool = False
    act_max_ms: float = 0.0
    performance: float = 0.0
    complete: bool = False
    seconds: float = 0.0
    error: str = ""

    @property
    def line(self) -> str:
        """The line that the framework's server prints."""
        if self.level is None:
            return "[START] The constructor failed or was late: disqualified"
        kind = "VALIDATION" if self.phase == PHASES[Phase.VALIDATION] else "TRAINING"
        return (
            f"[{kind}] Result (1->win; 0->lose): level:{self.level}, Player0:{self.winner}, "
            f"Player0-Score:{self.score}, timesteps:{self.ticks}"
        )

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return asdict(self)


def final_score(winner: int, score: float) -> float:
    """Score of a result line: a win is worth 1 if its score is not above 0."""
    return 1.0 if winner == WINNERS["PLAYER_WINS"] and score <= 0 else score


def phase_line(phase: Phase) -> str:
    """The line that the framework's server prints when a phase begins."""
    number = {
        Phase.FIRST: f"First Phase of Training in {len(TRAINING)}",
        Phase.SECOND: f"Second Phase of Training in {len(TRAINING)}",
        Phase.VALIDATION: f"Validation in {len(VALIDATION)}",
    }
    return f"[PHASE] Starting {number[phase]} levels."


END_LINE = f"[PHASE] End Validation in {len(VALIDATION)} levels."


class ResultFile(Closing):
    """JSON lines, one a level, each flushed before the next level begins.

    Args:
      path: a new file; its directory is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")

    def write(self, result: LevelResult) -> None:
        """Append a level."""
        self._file.write(json.dumps(result.to_json(), allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_results(path: Path) -> list[LevelResult]:
    """Read a `ResultFile`; half a line at the end, of a run that was killed, is ignored.

    Raises:
      ValueError: a line is not a result.
    """
    *lines, _unfinished = path.read_text(encoding="utf-8").split("\n")
    results = []
    for number, line in enumerate(lines, start=1):
        try:
            results.append(LevelResult(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number}: no result of a level: {error}") from error
    return results


class Announcer:
    """Passes on results of levels and lines of text.

    Args:
      say: called with every line of text; None for silence.
      keep: called with every result.
    """

    def __init__(
        self,
        say: Callable[[str], None] | None = None,
        keep: Callable[[LevelResult], None] | None = None,
    ) -> None:
        self._say, self._keep = say, keep

    def say(self, line: str) -> None:
        """Pass on a line of text."""
        if self._say:
            self._say(line)

    def result(self, result: LevelResult) -> None:
        """Keep a result, then say its line, so that every printed result is on disk."""
        if self._keep:
            self._keep(result)
        self.say(result.line)
