"""A small picture of the room seen from above, as a PNG."""

import struct
import zlib

import numpy as np

from evaluation.gvgai.observation import View

SIDE = 100
"""Pixels of a side."""

ROOM, CART, POLE, BLOCK = (255, 255, 255), (31, 78, 121), (192, 57, 43), (128, 128, 128)
CART_HALF, BLOCK_RADIUS, POLE_WIDTH = 0.5, 0.5, 0.12  # m, as they are drawn

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS, _RGB = 8, 2


def draw(view: View) -> bytes:
    """Draw cart, pole and blocks; x to the right, y upwards.

    The pole is drawn ten times as long as its horizontal part, from the middle of the cart.

    Returns:
      A PNG of `SIDE` by `SIDE` pixels.
    """
    scale = 2 * view.half_width / SIDE
    middles = (np.arange(SIDE) + 0.5) * scale
    x, y = np.meshgrid(middles, middles[::-1])
    pixels = np.full((SIDE, SIDE, 3), ROOM, np.uint8)
    for _, position, _ in view.blocks():
        bx, by = view.place(position)
        pixels[(x - bx) ** 2 + (y - by) ** 2 <= max(BLOCK_RADIUS, scale) ** 2] = BLOCK
    cx, cy = view.place(view.seen.cart_position)
    half = max(CART_HALF, scale)
    pixels[(abs(x - cx) <= half) & (abs(y - cy) <= half)] = CART
    pixels[_near_pole(view, x - cx, y - cy, max(POLE_WIDTH, scale))] = POLE
    return png(pixels)


def _near_pole(view: View, x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    """Which pixels, given from the cart, lie within `width` of the pole's shadow."""
    qx, qy, qz, qw = (float(part) for part in view.seen.pole_quaternion)
    ux, uy = 20 * (qx * qz + qw * qy), 20 * (qy * qz - qw * qx)
    length = ux * ux + uy * uy
    along = np.clip((x * ux + y * uy) / length, 0, 1) if length > 0 else np.zeros_like(x)
    return (x - along * ux) ** 2 + (y - along * uy) ** 2 <= width * width


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
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))
