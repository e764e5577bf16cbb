"""Pictures for people and protocols: one or more views of a scene, as NumPy pixels."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from jaxsim.render.camera import Camera
from jaxsim.render.image import image
from jaxsim.render.scene import Scene


@dataclass(frozen=True)
class Style:
    """How a scene is drawn.

    Attributes:
      views: names of `camera.VIEWS`, from left to right.
      pixels: height of the picture and width of each view.
      margin: of parallel views, border around the room as a share of the room.
      lean: factor of the pole's horizontal part seen from above, to make small leans visible.
      samples: rays along each side of a pixel; 1 is fast, 3 is smooth.
      thickness: least radius of the drawn pole, pixels.
    """

    views: tuple[str, ...] = ("corner", "top")
    pixels: int = 240
    margin: float = 0.1
    lean: float = 1.0
    samples: int = 1
    thickness: float = 1.0

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """A camera for each view."""
        return tuple(
            Camera(
                view,
                self.pixels,
                self.pixels,
                self.samples,
                self.margin,
                self.lean if view == "top" else 1.0,
                self.thickness,
            )
            for view in self.views
        )


def draw(scene: Scene, style: Style | None = None) -> np.ndarray:
    """Draw a scene, or a batch of them.

    Args:
      scene: places and sizes; leaves () or (L,).
      style: None for the view from the corner and the view from above.

    Returns:
      (..., pixels, pixels * number of views, 3) uint8.
    """
    cameras = (style or Style()).cameras
    scene = jax.tree.map(lambda leaf: np.asarray(leaf, _kind(leaf)), scene)
    return np.asarray(_drawn(cameras, scene))


def _kind(leaf: object) -> type:
    return np.bool_ if np.asarray(leaf).dtype == bool else np.float32


@partial(jax.jit, static_argnums=0)
def _drawn(cameras: tuple[Camera, ...], scene: Scene) -> jax.Array:
    return jax.numpy.concatenate([image(scene, camera) for camera in cameras], axis=-2)
