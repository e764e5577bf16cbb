"""What is wrong with a log on disk: every problem with its file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_PROBLEMS: Final = 5
"""Problems of one log that are said in one line."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with a log on disk.

    Attributes:
      path: the file or directory.
      line: 1-based line in it, or None where it is not about a line.
      severity: ``"error"``: the log is not valid; ``"warning"``: readers cope.
      message: what is wrong and what is expected.
    """

    path: Path
    line: int | None
    severity: str
    message: str

    def __str__(self) -> str:
        """The problem as ``file:line: severity: message``."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"


class LogError(ValueError):
    """A log on disk is not valid; ``problems`` holds every one found, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems and put the errors among them into the message."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in problems if p.severity == "error"))

    def line(self, most: int = MAX_PROBLEMS) -> str:
        """Return the first errors in one line, and how many more there are."""
        found = [problem for problem in self.problems if problem.severity == "error"]
        more = f"; and {len(found) - most} more" if len(found) > most else ""
        return "; ".join(map(str, found[:most])) + more


class Problems:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def error(self, path: Path, line: int | None, message: str) -> None:
        """Note something that makes the log invalid."""
        self.found.append(Problem(path, line, "error", message))

    def warning(self, path: Path, line: int | None, message: str) -> None:
        """Note something that readers cope with."""
        self.found.append(Problem(path, line, "warning", message))

    @property
    def fatal(self) -> bool:
        """Whether an error is among them."""
        return any(problem.severity == "error" for problem in self.found)
