"""The command `jaxsim validate`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command

if TYPE_CHECKING:
    from evaluation.l2m.validate import Verdict

VALID, INVALID, UNREADABLE = range(3)
"""Exit codes: all files are valid, a file has an error, a file cannot be read."""

MOST_LINES = 100
"""Maximum of printed findings of a file."""

VALIDATE_EXAMPLES = """examples:
  jaxsim validate examples/syllabi/*.json
  jaxsim validate mine.json --subtype ANT_B
  jaxsim validate moved_images.json --data folder/of/data/sets
  jaxsim validate theirs.json --foreign --json > verdict.json

A syllabus with "contains": "datasets" is one of classification; its episodes are batches.

All findings are printed as lines FILE:LINE:COLUMN: severity: reason, before a table with one row
per file. Without --subtype the rules are those of the subtype that fits best; it is printed with
"?" after it. Exit code 0: no error, perhaps warnings; 1: errors; 2: a file cannot be read or the
command itself is wrong.
"""

HEADINGS = ("file", "phases", "blocks", "episodes", "tasks", "subtype", "satisfies", "verdict")


def add_to(commands: Commands) -> None:
    """Add `validate` to the subcommands of `jaxsim`."""
    validate = add_command(
        commands,
        "validate",
        "check syllabi: their grammar, and the rules of CL, ANT_A, ANT_B or ANT_C",
        VALIDATE_EXAMPLES,
    )
    validate.add_argument("files", type=Path, nargs="+", metavar="FILE", help="syllabi, JSON")
    validate.add_argument(
        "--subtype", metavar="NAME", help="CL, ANT_A, ANT_B or ANT_C (the one that fits best)"
    )
    validate.add_argument(
        "--foreign",
        action="store_true",
        help="accept unknown tasks, with any parameters",
    )
    validate.add_argument(
        "--data", type=Path, metavar="DIR", help="data sets of arrays, DIR/NAME/train_images.npy"
    )
    validate.add_argument("--json", action="store_true", help="print JSON, one object per file")
    validate.set_defaults(handler=_validate)


def _validate(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.l2m import rules
    from evaluation.l2m.classification import folders
    from evaluation.l2m.validate import check_file

    if arguments.data is not None:
        folders.register(arguments.data)
    matches = [kind for kind in rules.SUBTYPES if kind == arguments.subtype]
    if arguments.subtype is not None and not matches:
        allowed = ", ".join(rules.SUBTYPES)
        raise ValueError(f"subtype is {arguments.subtype!r}; it must be one of {allowed}")
    subtype = matches[0] if matches else None
    verdicts = [check_file(path, subtype, foreign=arguments.foreign) for path in arguments.files]
    if arguments.json:
        print(json.dumps([verdict.to_json() for verdict in verdicts], indent=2, allow_nan=False))
    else:
        _print(verdicts)
    if any(verdict.unreadable for verdict in verdicts):
        return UNREADABLE
    return INVALID if any(verdict.errors for verdict in verdicts) else VALID


def _print(verdicts: Sequence["Verdict"]) -> None:
    """Print all findings, and a table of the files."""
    for verdict in verdicts:
        lines = verdict.lines()
        print(*lines[:MOST_LINES], sep="\n", end="\n" if lines else "")
        if len(lines) > MOST_LINES:
            print(f"{verdict.file}: {len(lines) - MOST_LINES} more")
    rows = [HEADINGS, *(_row(verdict) for verdict in verdicts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _row(verdict: "Verdict") -> tuple[str, ...]:
    """Cells of the table, as in `HEADINGS`."""
    counts = verdict.counts
    totals = {"error": verdict.errors, "warning": verdict.warnings}
    words = [f"{n} {noun}{'s' * (n > 1)}" for noun, n in totals.items() if n]
    return (
        verdict.file,
        *(str(counts[name]) for name in ("phases", "blocks", "episodes")),
        ", ".join(verdict.tasks) or "-",
        f"{verdict.subtype or '-'}{'' if verdict.stated or not verdict.subtype else '?'}",
        ", ".join(verdict.satisfied) or "-",
        ", ".join(words) or "valid",
    )
