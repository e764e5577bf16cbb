"""Every notebook runs from top to bottom, and is committed without what it printed."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"  # the site shows them from there
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 300
MEASURES = "08_throughput"  # how fast programs are that are compiled as for users
HOME = re.compile(r"/(?:home|root|Users)/|C:\\+Users")  # of a user; JSON doubles a backslash

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Name of a kernel that is this interpreter, known to nobody else on the machine."""
    folder = tmp_path / "jupyter" / "kernels" / "this"
    folder.mkdir(parents=True)
    launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": launch, "display_name": "this", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    return "this"


@pytest.mark.long
@every_notebook
def test_notebook_runs(path, kernel):
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    before = {file.name for file in FOLDER.iterdir()}
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name=kernel,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    environment = dict(os.environ)
    if path.stem == MEASURES:
        del environment["XLA_FLAGS"]
    client.execute(env=environment)
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, EXECUTED / path.name)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [o for o in outputs if o.get("name") == "stderr"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)
    # A notebook shows; it leaves nothing behind.
    assert {file.name for file in FOLDER.iterdir()} == before


@every_notebook
def test_notebook_is_stored_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    assert "widgets" not in notebook["metadata"]


@every_notebook
def test_notebook_names_no_place_on_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not HOME.search(text)


@pytest.mark.parametrize("place", ["/Users/me/data", json.dumps("C:\\Users\\me")])
def test_places_on_a_machine_are_known_when_seen(place):
    assert HOME.search(place)


def test_the_share_of_useful_steps_is_that_until_the_longest_episode_ends():
    cells = json.loads((FOLDER / f"{MEASURES}.ipynb").read_text())["cells"]
    lines = [line for cell in cells for line in cell["source"] if line.startswith("useful = ")]
    names = {
        "totals": SimpleNamespace(length=np.array([10, 20, 30])),
        "env": SimpleNamespace(max_steps=1000),
    }
    exec("".join(lines), names)
    assert names["useful"] == 2 / 3
