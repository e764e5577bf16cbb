"""The notebooks as pages: as the tests have executed them, or without outputs.

`tests/test_notebooks.py` executes every notebook and leaves it in build/notebooks. One whose code
is still that of the repository is shown with its outputs; nothing is executed here.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
EXECUTED = ROOT / "build" / "notebooks"
LOG = logging.getLogger(__name__)


def cells(path: Path) -> list[Any]:
    """Kind and source of each cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def page_of(notebook: Path, executed: Path) -> Path:
    """File that is shown for a notebook: the executed one if it is of the same cells."""
    return executed if executed.is_file() and cells(executed) == cells(notebook) else notebook


def copy(app: Sphinx) -> None:
    """Put the notebooks below the pages."""
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.ipynb"):
        old.unlink()
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        source = page_of(notebook, EXECUTED / notebook.name)
        if source == notebook:
            LOG.info("%s has no outputs: make docs NOTEBOOKS=1 executes it", notebook.name)
        shutil.copyfile(source, folder / notebook.name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy before pages are looked for."""
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
