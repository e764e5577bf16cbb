"""Run the tests of clients and tools of the field against this package.

    python -m tools.compatibility
    python -m tools.pages docs/compatibility.md

compatibility.toml lists the tests. Those that need a large package or a service need its
installation: `make test-sb3` makes the environment of stable-baselines3, and `.ci/services`
installs RabbitMQ. docs/compatibility.json is written only if all tests were run and passed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from defusedxml import ElementTree

from evaluation.files import write_json
from evaluation.json_types import JsonObject
from tools.islands import DOCS

ROOT = Path(__file__).parents[1]
SB3 = Path(".venv/sb3/bin/python")
MAKE = {
    "test": "make test",
    "long": "make test-long",
    "nightly": "make test-nightly",
    "sb3": "make test-sb3",
    "services": "make test-services",
}
"""Command that runs the tests of each group."""
SELECTED = {"long": ["-m", "long"], "nightly": ["-m", "nightly"], "services": ["-m", "service"]}
"""Options of pytest that select the tests of a group."""


@dataclass(frozen=True)
class ClientTool:
    """One client or tool.

    Attributes:
      client: for people.
      use: use case, as code or a command.
      run: group of the tests, a key of `MAKE`.
      file: of the tests, below tests/.
      tests: names of the tests; all of the file if there are none.
      of: distribution whose version is shown; "" for none.
    """

    client: str
    use: str
    run: str
    file: str
    tests: tuple[str, ...]
    of: str = ""

    @property
    def nodes(self) -> list[str]:
        """Arguments of pytest."""
        path = f"tests/{self.file}"
        return [f"{path}::{name}" for name in self.tests] or [path]


def rows() -> list[ClientTool]:
    """Rows of compatibility.toml."""
    text = (Path(__file__).parent / "compatibility.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)["row"]
    return [ClientTool(**{**row, "tests": tuple(row["tests"])}) for row in table]


def results() -> Iterator[JsonObject]:
    """Version of the client and number of passed tests of each row."""
    for row in rows():
        print(f"{row.client} ...", file=sys.stderr, flush=True)
        python = str(SB3) if row.run == "sb3" else sys.executable
        passed = _passed(row, python)
        yield {"client": row.client, "version": _version(row.of, python), "passed": passed}


def _passed(row: ClientTool, python: str) -> int:
    """Run the tests of a row; return how many passed.

    Raises:
      ValueError: a test failed or was skipped.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [python, "-m", "pytest", "-q", *SELECTED.get(row.run, []), f"--junitxml={report}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.run(
            [*words, *row.nodes], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        if process.returncode:
            raise ValueError(f"{row.client}: {MAKE[row.run]} says\n{process.stdout[-2000:]}")
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    counts: Mapping[str, str] = suite.attrib
    if int(counts["skipped"]):
        raise ValueError(f"{row.client}: tests were left out; see {MAKE[row.run]}")
    return int(counts["tests"])


def _version(distribution: str, python: str) -> str:
    """Version of a distribution in an environment; "" for none."""
    if not distribution:
        return ""
    ask = "import importlib.metadata as m, json, sys; print(json.dumps(m.version(sys.argv[1])))"
    process = subprocess.run(
        [python, "-c", ask, distribution], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return str(json.loads(process.stdout))


def main() -> None:
    """Run everything and write the results."""
    argparse.ArgumentParser(description="Run the tests of compatibility.").parse_args()
    write_json(DOCS / "compatibility.json", list(results()))


if __name__ == "__main__":
    main()
