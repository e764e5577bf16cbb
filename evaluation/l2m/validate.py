"""Validation of syllabus files: content, and all findings with line and column."""

from dataclasses import dataclass
from pathlib import Path

from evaluation import positions
from evaluation.json_types import JsonObject
from evaluation.l2m import instructions, rules
from evaluation.l2m.classification.syllabus import DataReader
from evaluation.l2m.document import Document, SyllabusError, read_text
from evaluation.l2m.instructions import Reading
from evaluation.l2m.rules import SUBTYPES, Subtype, Violation

UNREADABLE = "file"
"""Rule of a finding about a file that cannot be opened."""


@dataclass(frozen=True, order=True)
class Finding:
    """A problem of a file.

    Attributes:
      line: from 1.
      column: from 1, in characters.
      severity: "error", or "warning" for rules that are only expected.
      rule: "file" for a file that cannot be read, "grammar", "required", "disallowed" or
        "expected".
      reason: what is wrong and what to change.
    """

    line: int
    column: int
    severity: str
    rule: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """Result of the validation of one file.

    Attributes:
      file: its path as passed.
      reading: content of the syllabus; None if it could not be read.
      subtype: the subtype whose rules were checked; None without a check.
      stated: whether the user named the subtype; else it was inferred.
      satisfied: the subtypes whose rules the syllabus keeps without an error.
      findings: all problems, in the order of the text.
    """

    file: str
    reading: Reading | None
    subtype: Subtype | None
    stated: bool
    satisfied: tuple[Subtype, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return len(self.findings) - self.errors

    @property
    def unreadable(self) -> bool:
        """Whether the file could not be opened."""
        return any(finding.rule == UNREADABLE for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of phases, blocks, episodes and variants; zeros if nothing could be read.

        In a syllabus of classification, episodes are batches.
        """
        schedule = self.reading.schedule if self.reading else None
        blocks = schedule.blocks if schedule else ()
        return {
            "phases": len(self.reading.phases) if self.reading else 0,
            "blocks": len(blocks),
            "episodes": sum(block.episodes for block in blocks),
            "variants": len({block.variant for block in blocks}),
        }

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order of their first blocks."""
        blocks = self.reading.schedule.blocks if self.reading else ()
        return tuple(dict.fromkeys(block.task for block in blocks))

    def lines(self) -> list[str]:
        """One line per finding, ``FILE:LINE:COLUMN: severity: reason``."""
        file = self.file if self.file.isprintable() else repr(self.file)
        return [f"{file}:{f.line}:{f.column}: {f.severity}: {f.reason}" for f in self.findings]

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        schedule = self.reading.schedule if self.reading else None
        return {
            "file": self.file,
            "name": schedule.name if schedule else None,
            "author": schedule.author if schedule else None,
            "valid": not self.errors,
            "contains": self.reading.contains if self.reading else None,
            **self.counts,
            "tasks": list(self.tasks),
            "subtype": self.subtype,
            "stated": self.stated,
            "satisfied": list(self.satisfied),
            "findings": [vars(finding) for finding in self.findings],
        }


def check_file(path: Path, subtype: Subtype | None = None, *, foreign: bool = False) -> Verdict:
    """Check a syllabus file, of episodes or, if it contains "datasets", of classification.

    Args:
      path: of the file.
      subtype: the one whose rules are checked; None for the one that fits best.
      foreign: whether unknown tasks are accepted, with any parameters.
    """
    source = str(path)
    try:
        text = read_text(source).removeprefix("\ufeff")
    except SyllabusError as error:
        rule = UNREADABLE if isinstance(error.__cause__, OSError) else error.rule
        finding = Finding(error.line, error.column, "error", rule, error.reason)
        return Verdict(source, None, subtype, subtype is not None, (), (finding,))
    return check_text(text, source, path.stem, subtype, foreign=foreign)


def check_text(
    text: str,
    source: str = "<string>",
    name: str = "syllabus",
    subtype: Subtype | None = None,
    *,
    foreign: bool = False,
) -> Verdict:
    """Check a syllabus for all its errors and all rules that it breaks.

    Args:
      text: JSON text.
      source: name of the text.
      name: used if the text has none.
      subtype: the one whose rules are checked; None for the one that fits best.
      foreign: whether unknown tasks are accepted, with any parameters.

    Returns:
      The verdict. Rules of subtypes are not checked if the grammar is broken, because only a part
      of the syllabus could be read.
    """
    problems: list[SyllabusError] = []
    document = Document(text, source, problems)
    reading = None
    try:
        content = document.decode()
        kind = DataReader if _is_of_data_sets(content) else instructions.Reader
        reading, _ = instructions.play(document, content, name, kind, foreign=foreign)
    except SyllabusError as error:
        problems.append(error)
    findings = [Finding(p.line, p.column, "error", p.rule, p.reason) for p in problems]
    stated = subtype is not None
    satisfied: tuple[Subtype, ...] = ()
    if reading and reading.schedule.blocks and all(p.rule == "required" for p in problems):
        subtype = subtype or rules.infer(reading)
        by_subtype = {kind: rules.violations(reading, kind) for kind in SUBTYPES}
        findings += _findings(document, by_subtype[subtype])
        if not problems:
            satisfied = tuple(kind for kind in SUBTYPES if not _broken(by_subtype[kind]))
    return Verdict(source, reading, subtype, stated, satisfied, tuple(sorted(findings)))


def _is_of_data_sets(content: object) -> bool:
    """Whether a syllabus says that it is one of classification."""
    return isinstance(content, dict) and content.get("contains") == DataReader.contains


def _broken(violations: list[Violation]) -> bool:
    return any(violation.rule == "disallowed" for violation in violations)


def _findings(document: Document, violations: list[Violation]) -> list[Finding]:
    """Convert violations to findings with line and column."""
    places = positions.locate_all(document.text, {violation.path for violation in violations})
    severity = {"disallowed": "error", "expected": "warning"}
    return [Finding(*places[v.path], severity[v.rule], v.rule, v.reason) for v in violations]
