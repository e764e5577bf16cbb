"""Pages are run in parallel: a command that several show is run once, and a failure ends all."""

import runpy
import threading
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "readme_commands.py"))
Job, main = SCRIPT["Job"], SCRIPT["main"]


def job(page, line, command):
    return Job(page, line, command, ("bash", "-c", command))


@pytest.fixture
def pages(monkeypatch):
    """Pages with the commands that a test gives to them."""

    def use(**commands):
        jobs = {
            page: [job(page, line, command) for line, command in enumerate(lines)]
            for page, lines in commands.items()
        }
        monkeypatch.setitem(main.__globals__, "PAGES", tuple(jobs))
        monkeypatch.setitem(main.__globals__, "jobs", lambda page: iter(jobs[page]))
        monkeypatch.setattr(main.__globals__["os"], "cpu_count", lambda: len(jobs))

    return use


def test_a_shared_command_is_run_once_and_waited_for(pages, tmp_path, capsys):
    log = tmp_path / "log"
    shared = f"sleep 0.2; echo shared >> {log}"
    pages(a=[shared, f"echo a >> {log}"], b=["cd somewhere", shared, f"echo b >> {log}"])
    assert main() == 0
    first, *rest = log.read_text().split()
    assert first == "shared" and sorted(rest) == ["a", "b"]
    printed = capsys.readouterr().out
    assert printed.count("not run (run already)") == 1
    assert "b:0: not run (the clone is here already): cd somewhere\n" in printed
    assert printed.endswith("3 commands and programs run, none failed\n")


def test_a_failure_ends_every_page_and_shows_what_was_printed(pages, tmp_path, monkeypatch):
    shown, late, printed = tmp_path / "shown", tmp_path / "late", []

    def show(text, flush=False):
        printed.append(text)
        if "exit code" in text:
            shown.touch()

    monkeypatch.setitem(main.__globals__, "print", show)
    both, waiting = tmp_path / "both", "while [ ! -e {} ]; do sleep 0.01; done"
    fails = f"{waiting.format(both)}; echo why; exit 3"
    lasts = f"touch {both}; {waiting.format(shown)}"
    pages(a=[fails, f"touch {late}"], b=[lasts, f"touch {late}"])
    assert main() == 3
    assert not late.exists()
    assert printed[0].startswith(f"a:0: {fails}\nwhy\na:0: exit code 3 in ")
    assert printed[1].startswith(f"b:0: {lasts}\nb:0: done in ") and len(printed) == 2


def test_as_many_pages_run_together_as_there_are_cores(pages, tmp_path):
    """Each of the two pages ends only after the other has started."""
    wait = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done"
    one, two = tmp_path / "one", tmp_path / "two"
    pages(a=[wait.format(one, two)], b=[wait.format(two, one)])
    runner = threading.Thread(target=main, daemon=True)
    runner.start()
    runner.join(60)
    assert not runner.is_alive()
