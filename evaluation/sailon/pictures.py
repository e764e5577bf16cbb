"""Pictures of the room in feature vectors, for agents that ask for them.

A client of the original gets null in the field `image` unless the generator renders; then it is
an array, packed by blosc and written in base64.

Source: specs of the protocol, which say no more of the format than this. `blosc.pack_array` is how
the package blosc packs an array; `blosc.unpack_array` is its inverse.
"""

import base64
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from evaluation.session import Episode
from jaxsim import render

NO_BLOSC: Final = "pictures in feature vectors need blosc: pip install 'jaxsim-novelty[images]'"


@dataclass(frozen=True)
class Pictures:
    """Draws the observations of an episode from the corner.

    Attributes:
      pixels: height and width.

    Raises:
      ValueError: a size that cannot be drawn, or blosc is not installed.
    """

    pixels: int

    def __post_init__(self) -> None:
        """Check the size, and that blosc is installed."""
        render.Camera("corner", self.pixels, self.pixels)
        if find_spec("blosc") is None:
            raise ValueError(NO_BLOSC)

    def draw(self, episode: Episode) -> str:
        """Return the field `image` of the latest observation."""
        scene = render.scene_of(episode.env, episode.params, episode.observation)
        return encode(render.draw(scene, render.Style(("corner",), self.pixels)))


def encode(pixels: np.ndarray) -> str:
    """Pack an array as the original does.

    Args:
      pixels: (H, W, 3) uint8.

    Returns:
      Base64 of the result of `blosc.pack_array`.
    """
    import blosc

    packed: Any = blosc.pack_array(np.ascontiguousarray(pixels))
    return base64.b64encode(packed).decode("ascii")
