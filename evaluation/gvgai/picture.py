"""A small picture of the room seen from above, as a PNG."""

import struct
import zlib
from dataclasses import replace

import numpy as np

from evaluation.gvgai.observation import View
from jaxsim import render

SIDE = 100
"""Pixels of a side."""
LEAN = 10.0
"""Factor of the pole's horizontal part, which would be too small to see."""

POLE = 1.5
"""Pixels of half the pole's width."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS, _RGB = 8, 2


def draw(view: View) -> bytes:
    """Draw cart, pole and blocks seen from above; x to the right, y upwards.

    Returns:
      A PNG of `SIDE` by `SIDE` pixels that shows the room or the track, and nothing around it.
    """
    scene = replace(render.observed(view.observation), half_width=view.half_width)
    style = render.Style(("top",), SIDE, margin=0.0, lean=LEAN, thickness=POLE)
    return png(render.draw(scene, style))


def png(pixels: np.ndarray) -> bytes:
    """Encode an image.

    Args:
      pixels: (H, W, 3) uint8.

    Source: W3C, Portable Network Graphics, third edition: signature, IHDR, IDAT, IEND; filter 0.
    """
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, _BITS, _RGB, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
