"""The notebooks as pages, with the outputs of their last test.

`tests/test_notebooks.py` executes every notebook and leaves it in build/notebooks. One whose code
is still that of the repository is shown with these outputs; nothing is executed here.
"""

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
EXECUTED = ROOT / "build" / "notebooks"
LOG = logging.getLogger(__name__)


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Cells of code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def with_outputs(notebook: dict[str, Any], executed: dict[str, Any]) -> bool:
    """Copy the outputs of an executed notebook if its code is the same; return whether it is."""
    pairs = list(zip(code(notebook), code(executed), strict=False))
    same = len(code(notebook)) == len(code(executed)) and all(
        "".join(cell["source"]) == "".join(other["source"]) for cell, other in pairs
    )
    for cell, other in pairs if same else ():
        cell |= {key: other[key] for key in ("outputs", "execution_count")}
    return same


def copy(app: Sphinx) -> None:
    """Put the notebooks below the pages."""
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.ipynb"):
        old.unlink()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        executed = EXECUTED / path.name
        if not executed.is_file() or not with_outputs(
            notebook, json.loads(executed.read_text(encoding="utf-8"))
        ):
            LOG.info("%s has no outputs: make docs NOTEBOOKS=1 executes it", path.name)
        (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy before pages are looked for."""
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
