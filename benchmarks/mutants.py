"""Test a seeded sample of mutants, by cosmic-ray: which small changes do the tests not notice?

    python -m benchmarks.mutants evaluation/sailon jaxsim/agents/mpc.py --number 20 --seed 0
    python -m benchmarks.mutants --since main
    python -m benchmarks.mutants jaxsim/rng.py --tests tests/jaxsim/test_rng.py

Each mutant is one change of one place: another operator, comparison, number or truth value. It is
made in a copy of the working tree, in which the tests run that import its module. A mutant that no
test sees survives; its difference is printed. The exit code is 0 however many survive, and 2 if
there is nothing to play or the tests fail without any change. docs/mutants.md is the page on it.
"""

import argparse
import ast
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.output import add_out, put

ROOT = Path(__file__).parents[1]
PACKAGES = ("jaxsim", "evaluation")
SKIPPED = ("core/NoOp", "core/RemoveDecorator")
"""Operators whose mutants are none, or die wherever a module is imported."""
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long and not service")
PATIENCE = 3.0
"""A mutant may take so many times as long as the tests without it."""
LEAST_SECONDS = 60.0
NO_TESTS = 5
"""Exit code of pytest where none was found."""
INSTALL = "mutants need cosmic-ray: pip install 'jaxsim-novelty[mutants]'"


class Mutant(NamedTuple):
    """One change of one place.

    Attributes:
      path: of the module, from the root.
      operator: of cosmic-ray.
      occurrence: place among those of the operator in the module, from 0.
      line: where it is, from 1.
    """

    path: str
    operator: str
    occurrence: int
    line: int


class Fate(NamedTuple):
    """Result of a mutant; `difference` is "" if it was killed."""

    mutant: Mutant
    killed: bool
    difference: str


# Mutants ------------------------------------------------------------------------------------------


def modules(scope: Iterable[str], root: Path) -> list[str]:
    """Modules in files and folders, as paths from the root.

    Raises:
      ValueError: no such file or folder, or one without a module.
    """
    names: set[str] = set()
    for name in scope:
        path = (root / name).resolve()
        inside = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        module = path.is_dir() or path.suffix == ".py"
        if not path.exists() or not module or not inside or not path.is_relative_to(root.resolve()):
            raise ValueError(f"{name} is not a module or folder of modules of this project")
        names |= {str(each.relative_to(root.resolve())) for each in inside}
    return sorted(names)


def changed(since: str, root: Path) -> list[str]:
    """Modules that differ from where this branch has left another one, committed or not.

    Raises:
      ValueError: git does not know it.
    """
    base = _git(root, "merge-base", since, "HEAD").strip()
    names = _git(root, "diff", "--name-only", "--diff-filter=d", base, "--", *PACKAGES)
    return sorted(name for name in names.splitlines() if name.endswith(".py"))


def _git(root: Path, *words: str) -> str:
    process = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, check=False)
    if process.returncode:
        raise ValueError(f"git {words[0]}: {process.stderr.strip().splitlines()[-1]}")
    return process.stdout


def mutants(paths: Iterable[str], root: Path) -> list[Mutant]:
    """All mutants of some modules, except those in annotations, which no program runs.

    Raises:
      ValueError: cosmic-ray is not installed.
    """
    try:
        from cosmic_ray.commands import init
        from cosmic_ray.work_db import WorkDB, use_db
    except ModuleNotFoundError as error:
        raise ValueError(INSTALL) from error
    all_mutants = []
    with (
        tempfile.TemporaryDirectory() as folder,
        use_db(os.path.join(folder, "session.sqlite"), WorkDB.Mode.create) as session,
    ):
        for path in paths:
            annotations = _annotations(ast.parse((root / path).read_text(encoding="utf-8")))
            init([root / path], session, {})
            for item in session.work_items:
                (one,) = item.mutations
                if one.operator_name in SKIPPED or _inside(one.start_pos, annotations):
                    continue
                all_mutants.append(
                    Mutant(path, one.operator_name, one.occurrence, one.start_pos[0])
                )
    return sorted(all_mutants)


Span = tuple[tuple[int, int], tuple[int, int]]


def _annotations(tree: ast.AST) -> list[Span]:
    """Start and end of each annotation of a module, as (line, column)."""
    spans = []
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            note = getattr(node, name, None)
            if isinstance(note, ast.expr):
                end = note.end_lineno or note.lineno, note.end_col_offset or note.col_offset
                spans.append(((note.lineno, note.col_offset), end))
    return spans


def _inside(place: tuple[int, int], spans: Iterable[Span]) -> bool:
    return any(first <= tuple(place) < last for first, last in spans)


# Tests --------------------------------------------------------------------------------------------


def tests_of(path: str, root: Path) -> list[str]:
    """Test files that import a module, or else the folder of tests that mirrors its own.

    Args:
      path: of the module, from the root.
      root: of the working tree.
    """
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    tests = sorted((root / "tests").rglob("test_*.py"))
    importers = [str(test.relative_to(root)) for test in tests if dotted in set(_imports(test))]
    if importers:
        return importers
    folder = root / "tests" / Path(path).parent
    while not folder.is_dir():
        folder = folder.parent
    return [str(folder.relative_to(root))]


def _imports(path: Path) -> Iterator[str]:
    """All imports of a file: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def copied(root: Path, place: Path) -> None:
    """Copy the working tree as it is, without what git ignores."""
    names = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, names.split("\0")):
        source, target = root / name, place / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


class Bench:
    """A copy of the working tree in which mutants are made and tested, one at a time.

    Args:
      root: of the working tree.
      place: an empty folder for the copy.
      tests: test files for all mutants; None for the tests of each mutant's module.
    """

    def __init__(self, root: Path, place: Path, tests: Sequence[str] | None = None) -> None:
        self._root, self._place, self._tests = root, place, tests
        self._limits: dict[str, float] = {}
        copied(root, place)

    def try_(self, mutant: Mutant) -> Fate:
        """Make a mutant, run its tests, and undo it.

        Raises:
          ValueError: the tests fail without it.
        """
        from cosmic_ray.mutating import mutate_and_test
        from cosmic_ray.work_item import MutationSpec, TestOutcome

        command = self._command(mutant.path)
        if command not in self._limits:
            self._limits[command] = self._unchanged(command)
        module = self._place / mutant.path
        spec = MutationSpec(module, mutant.operator, mutant.occurrence, (1, 0), (1, 1))
        with _working_in(self._place):
            result = mutate_and_test([spec], command, self._limits[command])
        survived = result.test_outcome == TestOutcome.SURVIVED
        lines = (result.diff or "").splitlines() if survived else []
        changes = (each for each in lines if each[:1] in "+-" and each[:3] not in ("---", "+++"))
        return Fate(mutant, not survived, "\n".join(changes))

    def _command(self, path: str) -> str:
        tests = tests_of(path, self._root) if self._tests is None else self._tests
        return shlex.join([sys.executable, *PYTEST, *tests])

    def _unchanged(self, command: str) -> float:
        """Run tests without a mutant; return the time limit with one, s."""
        start = time.monotonic()
        with _working_in(self._place):
            process = subprocess.run(
                shlex.split(command), capture_output=True, text=True, check=False
            )
        if process.returncode:
            none = process.returncode == NO_TESTS
            last = "no test is run" if none else (process.stdout.strip().splitlines() or [""])[-1]
            raise ValueError(f"without a mutant, {command}: {last}")
        return max(PATIENCE * (time.monotonic() - start), LEAST_SECONDS)


class _working_in:
    """Work in another folder, whose packages are imported before all others."""

    def __init__(self, place: Path) -> None:
        self._place, self._before = place, (os.getcwd(), os.environ.get("PYTHONPATH"))

    def __enter__(self) -> None:
        os.chdir(self._place)
        os.environ["PYTHONPATH"] = str(self._place)

    def __exit__(self, *error: Any) -> None:
        folder, path = self._before
        os.chdir(folder)
        if path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = path


# The report ---------------------------------------------------------------------------------------


def report(fates: Sequence[Fate], number: int, seed: int) -> Iterator[str]:
    """Lines about the results of a sample of `number` mutants."""
    killed = sum(fate.killed for fate in fates)
    share = 100 * killed / len(fates)
    selection = f"{number:,} there are, of which seed {seed} chose these."
    yield f"{killed} of {len(fates)} mutants were killed ({share:.0f} %); {selection}"
    yield ""
    yield "| module | mutants | killed |"
    yield "| --- | --- | --- |"
    mutants_by_path = Counter(fate.mutant.path for fate in fates)
    killed_by_path = Counter(fate.mutant.path for fate in fates if fate.killed)
    yield from (
        f"| {path} | {mutants_by_path[path]} | {killed_by_path[path]} |"
        for path in sorted(mutants_by_path)
    )
    for fate in fates:
        if not fate.killed:
            yield ""
            yield f"{fate.mutant.path}:{fate.mutant.line} survived, {fate.mutant.operator}:"
            yield from ("", *(f"    {line}" for line in fate.difference.splitlines()))


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Play a sample, print what survived, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Play a sample of mutants.")
    parser.add_argument("scope", nargs="*", help="modules and folders; without, changed modules")
    parser.add_argument(
        "--since", default="main", metavar="REF", help="without a scope: changed since this (main)"
    )
    parser.add_argument("--number", type=int, default=20, metavar="N", help="mutants (20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample (0)")
    parser.add_argument(
        "--tests", nargs="+", metavar="TEST", help="files and folders; those that import a module"
    )
    add_out(parser)
    arguments = parser.parse_args(argv)
    try:
        if arguments.number < 1:
            raise ValueError(f"number is {arguments.number}; it must be at least 1")
        paths = (
            modules(arguments.scope, root) if arguments.scope else changed(arguments.since, root)
        )
        if not paths:
            raise ValueError(
                f"no module has changed since {arguments.since}; name modules or folders"
            )
        all_mutants = mutants(paths, root)
        if not all_mutants:
            raise ValueError("there is nothing to mutate in these modules; name others")
        sample = sorted(
            random.Random(arguments.seed).sample(
                all_mutants, min(arguments.number, len(all_mutants))
            )
        )
        with tempfile.TemporaryDirectory(prefix="jaxsim-mutants-") as place:
            bench, fates = Bench(root, Path(place), arguments.tests), []
            for mutant in sample:
                fates.append(bench.try_(mutant))
                word = "killed" if fates[-1].killed else "SURVIVED"
                print(f"{mutant.path}:{mutant.line} {word}", file=sys.stderr, flush=True)
    except ValueError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    put("\n".join(report(fates, len(all_mutants), arguments.seed)) + "\n", arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
