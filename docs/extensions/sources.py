"""Links from pages to files outside of docs, which have other places on the site.

Notebooks and the pages of the top folder are pages of the site; a folder becomes its name. Other
files are copied, and can be downloaded.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[([^]]*)\]\(((?:\.\./)+)([^)#\s]+)(#[^)\s]*)?\)")
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def place_on_site(match: re.Match[str], docname: str) -> str:
    """A Markdown link as the site has it."""
    text, up, path, anchor = match[1], match[2], match[3], match[4] or ""
    here = ROOT / "docs" / docname
    target = (here.parent / up / path).resolve()
    if not target.is_relative_to(ROOT) or target.is_relative_to(ROOT / "docs"):
        return match[0]
    within = target.relative_to(ROOT).as_posix()
    to_docs = "../" * docname.count("/")
    if within in PAGES:
        return f"[{text}]({to_docs}{PAGES[within]}{anchor})"
    if target.suffix == ".ipynb":
        return f"[{text}]({to_docs}{within})"
    return f"{text} (`{within}`)" if target.is_dir() else match[0]


def process(app: Sphinx, docname: str, source: list[str]) -> None:
    """Handle the event `source-read`."""
    source[0] = LINK.sub(lambda match: place_on_site(match, docname), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the event."""
    app.connect("source-read", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
