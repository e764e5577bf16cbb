"""Films as GIF and MP4, drawn by the camera. Needs the extra `view`."""

import math
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from evaluation.files import write_whole
from jaxsim.render import Style, draw
from jaxsim.render.scene import Scene
from jaxsim.render.viewer import Film

FRAMES = {".gif": 25, ".mp4": 50}
"""Frames a second by extension of the file."""
MOST_FRAMES = 3000
ROUNDING = 1e-6  # of a frame; a film that ends on one has no other after it
CHUNK = 32  # frames that are drawn at a time


def check(path: Path) -> None:
    """Check the extension and the libraries before anything is played.

    Raises:
      ValueError: says what to change.
    """
    if path.suffix not in FRAMES:
        raise ValueError(f"{path} must end in .gif or .mp4")
    try:
        import imageio.v3  # noqa: F401

        if path.suffix == ".mp4":
            import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ValueError("videos need an extra: pip install 'jaxsim-novelty[view]'") from error


def ticks_of(film: Film, rate: int) -> np.ndarray:
    """Ticks of the frames at a rate in frames a simulated second, (F,); the last one is the end."""
    number = math.ceil(film.ticks * film.dt * rate - ROUNDING)
    ticks = np.round(np.arange(number) / (rate * film.dt)).astype(int)
    return np.append(ticks, film.ticks)


def frames(film: Film, style: Style, rate: int) -> np.ndarray:
    """Draw the first `MOST_FRAMES` frames of a film, (F, H, W, 3) uint8; see `ticks_of`."""
    chosen = ticks_of(film, rate)[:MOST_FRAMES]
    places = film.places
    rows = film.ticks + 1

    def at(ticks: np.ndarray) -> Scene:
        return jax.tree.map(
            lambda leaf: leaf[ticks] if np.ndim(leaf) and len(leaf) == rows else leaf, places
        )

    chunks = []
    for start in range(0, len(chosen), CHUNK):
        part = chosen[start : start + CHUNK]
        # The last chunk is padded, so that all of them run one program.
        padded = np.resize(part, CHUNK) if len(part) < CHUNK else part
        chunks.append(draw(at(padded), style)[: len(part)])
    return np.concatenate(chunks)


def write(films: list[Film], path: Path, pixels: int, views: tuple[str, ...] = ("corner",)) -> str:
    """Write films next to each other, whole or not at all; shorter ones repeat their last frame.

    Args:
      films: one or more.
      path: ends in .gif or .mp4.
      pixels: height of the picture, and width of each view of each film.
      views: of every film.

    Returns:
      A note that frames were left out; "" if all were written.
    """
    import imageio.v3 as imageio

    rate = FRAMES[path.suffix]
    style = Style(views, pixels, samples=2)
    clips = [frames(film, style, rate) for film in films]
    longest = max(map(len, clips))
    padded = [np.concatenate([d, np.repeat(d[-1:], longest - len(d), 0)]) for d in clips]
    picture = np.concatenate(padded, axis=2)
    options: dict[str, Any] = {"loop": 0, "duration": 1000 / rate}
    if path.suffix == ".mp4":
        options = {"fps": rate, "codec": "libx264", "macro_block_size": 2, "plugin": "FFMPEG"}
    with warnings.catch_warnings():
        # JAX warns of every fork; this one only starts ffmpeg.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        content = imageio.imwrite("<bytes>", picture, extension=path.suffix, **options)
    write_whole(path, content)
    left_out = max(len(ticks_of(film, rate)) for film in films) - MOST_FRAMES
    if left_out <= 0:
        return ""
    return f"{path} has the first {MOST_FRAMES:,} frames; {left_out:,} were left out"
