"""Self-contained HTML pages: style, data and script in one file."""

import html
import json
import re
from importlib import resources
from typing import Final

from jaxsim.json_types import JsonValue

PLACES: Final = re.compile("@([A-Z]+)@")
FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>@TITLE@</title>
<style>@STYLE@</style>
</head>
<body>
{body}
<script type="application/json" id="{name}">@DATA@</script>
<script>@SCRIPT@</script>
</body>
</html>
"""  # noqa: E501


def page(
    body: str, name: str, data: JsonValue, *, title: str, style: str, script: str, **more: str
) -> str:
    """Return a page.

    Args:
      body: HTML in which placeholders such as @TITLE@ are filled.
      name: id of the element that holds the data.
      data: plain JSON values, for the script.
      title: text.
      style: CSS.
      script: JavaScript.
      **more: HTML of further placeholders, named in capital letters.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    # No text may end the element that holds it.
    parts = {"DATA": text.replace("<", "\\u003c"), "TITLE": html.escape(title)}
    parts |= {"STYLE": style, "SCRIPT": script, **more}
    frame = FRAME.format(body=body, name=name)
    return PLACES.sub(lambda match: parts[match[1]], frame)


def shipped(package: str, *names: str) -> str:
    """Concatenated texts of files of a package."""
    folder = resources.files(package)
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)
