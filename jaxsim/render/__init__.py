"""Pictures of a state or of an observation, as arrays of pixels.

    from jaxsim import render

    image = render.draw(render.scene(env, params, state))  # (240, 480, 3) uint8

One drawer serves Gymnasium's `render_mode="rgb_array"`, the Science Birds screenshots and the
GVGAI pictures; they differ in `Style` only.
"""

from jaxsim.render.canvas import BLOCK, CART, PAPER, POLE, WALL, Style, draw
from jaxsim.render.scene import Scene, observed, scene

__all__ = [
    "BLOCK",
    "CART",
    "PAPER",
    "POLE",
    "WALL",
    "Scene",
    "Style",
    "draw",
    "observed",
    "scene",
]
