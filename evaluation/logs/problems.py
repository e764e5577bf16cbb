"""Problems of logs on disk, with file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_PROBLEMS: Final = 5
"""Maximum of problems of one log in one line."""


@dataclass(frozen=True)
class Problem:
    """A problem of a log on disk.

    Attributes:
      path: the file or directory.
      line: 1-based line in it; None if it is not about a line.
      severity: ``"error"``: the log is not valid; ``"warning"``: it can be read.
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
    """A log on disk is not valid; ``problems`` has all problems, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems and put the errors among them into the message."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in problems if p.severity == "error"))

    def line(self, most: int = MAX_PROBLEMS) -> str:
        """Return the first errors in one line, with the number of further ones."""
        errors = [problem for problem in self.problems if problem.severity == "error"]
        more = f"; and {len(errors) - most} more" if len(errors) > most else ""
        return "; ".join(map(str, errors[:most])) + more


class Problems:
    """Collector of problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, path: Path, line: int | None, message: str) -> None:
        """Add a problem that makes the log invalid."""
        self.problems.append(Problem(path, line, "error", message))

    def warning(self, path: Path, line: int | None, message: str) -> None:
        """Add a problem that does not prevent reading."""
        self.problems.append(Problem(path, line, "warning", message))

    @property
    def fatal(self) -> bool:
        """Whether there is an error."""
        return any(problem.severity == "error" for problem in self.problems)
