"""The viewer's page: films and a player in one text."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsim.render import pages
from jaxsim.render.viewer.film import Film

MOST_FILMS = 8
NOTEBOOK_HEIGHT = 720  # pixels


def page(films: Sequence[Film], title: str = "") -> str:
    """Return an HTML page that shows films next to each other.

    Args:
      films: one or more.
      title: of the page; "" for that of the first film.

    Raises:
      ValueError: no film, or too many to be seen.
    """
    if not 1 <= len(films) <= MOST_FILMS:
        raise ValueError(f"{len(films)} films were given; a page shows from 1 to {MOST_FILMS}")
    folder = "jaxsim.render.viewer"
    return pages.page(
        pages.shipped(folder, "page.html"),
        "data",
        [film.to_json() for film in films],
        title=title or films[0].title,
        style=pages.shipped(folder, "style.css"),
        script=pages.shipped(folder, "scene.js", "player.js"),
    )


@dataclass(frozen=True)
class Viewer:
    """Films that a notebook shows.

    Attributes:
      films: shown next to each other.
      title: of the page.
      height: of the frame in a notebook, pixels.
    """

    films: Sequence[Film]
    title: str = ""
    height: int = NOTEBOOK_HEIGHT

    @property
    def html(self) -> str:
        """The page by itself."""
        return page(self.films, self.title)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks."""
        text = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{text}" title="{html.escape(self.title or self.films[0].title)}" '
            f'sandbox="allow-scripts" style="width:100%;height:{self.height}px;border:0"></iframe>'
        )
