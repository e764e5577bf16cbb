"""The page of a report: sections, style, chart library and script in one text."""

import functools
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.json_types import JsonObject
from jaxsim.render import pages

FOLDER = "evaluation.report.html"
BODY = """<header><h1>@TITLE@</h1></header>
<nav aria-label="Contents">@CONTENTS@</nav>
<main>@SECTIONS@</main>"""


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis.

    Attributes:
      label: of the x axis.
      x: values of the x axis.
      lines: name -> values; None for a missing one.
      bands: name of a line -> (low, high).
      shades: (from, to, text) of coloured ranges of x.
    """

    label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float | None]]
    bands: Mapping[str, Sequence[Sequence[float | None]]]
    shades: Sequence[tuple[float, float, str]] = ()

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return {
            "label": self.label,
            "x": list(self.x),
            "lines": {name: list(values) for name, values in self.lines.items()},
            "bands": {name: [list(part) for part in band] for name, band in self.bands.items()},
            "shades": [list(shade) for shade in self.shades],
        }


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
      title: heading.
      text: a sentence below it.
      body: HTML.
      chart: drawn above the body, if there is one.
    """

    title: str
    text: str
    body: str = ""
    chart: Chart | None = None


def page(title: str, sections: Sequence[Section]) -> str:
    """Return an HTML page with a title and sections."""
    charts: list[JsonObject] = []
    parts, contents = [], []
    for number, section in enumerate(sections):
        chart = ""
        if section.chart is not None:
            text = html.escape(f"Chart: {section.title}. {section.text}", quote=True)
            place = f'role="img" aria-label="{text}" data-chart="{len(charts)}"'
            chart = f'<div class="chart" {place}></div>'
            charts.append(section.chart.to_json())
        heading = html.escape(section.title)
        contents.append(f'<a href="#s{number}">{heading}</a>')
        parts.append(
            f'<section id="s{number}"><h2>{heading}</h2><p>{html.escape(section.text)}</p>'
            f"{chart}{section.body}</section>"
        )
    shipped = functools.partial(pages.shipped, FOLDER)
    return pages.page(
        BODY,
        "charts",
        charts,
        title=title,
        style=shipped("uplot.min.css", "report.css"),
        script=f"/* uPlot: {shipped('uplot.LICENSE')} */\n{shipped('uplot.min.js')}\n"
        + shipped("report.js"),
        CONTENTS=" ".join(contents),
        SECTIONS="".join(parts),
    )
