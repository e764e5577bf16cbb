"""Texts that must stay what they were, in tests/data/snapshots.

With `JAXSIM_RENEW_SNAPSHOTS=1` a text takes the place of the one that is kept.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "snapshots"
RENEW = "JAXSIM_RENEW_SNAPSHOTS" in os.environ


def kept(name: str, text: str) -> str:
    """Return the text that is kept under a name, which is `text` itself if it is renewed."""
    path = FOLDER / name
    if RENEW:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path.read_text()
