"""Pictures of a state or of an observation, as arrays of pixels.

    from jaxsim import render

    image = render.draw(render.scene(env, params, state))  # (240, 480, 3) uint8

    camera = render.Camera("corner", height=64, width=64)
    pixels = render.image(render.scene(env, params, states), camera)  # (L, 64, 64, 3), under jit

One ray caster serves Gymnasium's `render_mode="rgb_array"`, the Science Birds screenshots, the
GVGAI pictures and sensors of images; they differ in `Style` or `Camera` only.
"""

from jaxsim.image_settings import VIEWS
from jaxsim.render.camera import Camera, project
from jaxsim.render.image import BLOCK, CART, PAPER, POLE, image, parts
from jaxsim.render.picture import Style, draw
from jaxsim.render.scene import Scene, observed, scene, scene_of

__all__ = [
    "BLOCK",
    "CART",
    "PAPER",
    "POLE",
    "VIEWS",
    "Camera",
    "Scene",
    "Style",
    "draw",
    "image",
    "observed",
    "parts",
    "project",
    "scene",
    "scene_of",
]
