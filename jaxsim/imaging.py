"""A camera among the sensors: observations with a picture.

    env, params = jaxsim.make("CartPole3D-v0", level=203, image={"height": 64, "view": "corner"})
    observation, state = env.reset(key, params)
    observation.image  # (64, 64, 3) uint8; the sensors are observation.observation

The picture shows what the sensors report: the pose of cart and pole is as old as theirs. An
environment that is made without `image` is the same object, and the same program, as ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import parameters, spaces
from jaxsim.render.camera import Camera
from jaxsim.render.image import image
from jaxsim.render.scene import SIZES, seen
from jaxsim.wrappers import Step, Wrapper

OPTIONS = ("height", "width", "view", "grey", "samples")
"""What `make(..., image={...})` takes; each has a default."""
USUAL = 64
"""Pixels of a side unless another number is given."""


class Imaged(NamedTuple):
    """What is observed.

    Attributes:
      observation: what the other sensors report.
      image: (..., H, W, 3) uint8, or (..., H, W, 1) in grey.
    """

    observation: Any
    image: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ImagingState:
    """State of `Imaging`.

    Attributes:
      inner: state of the wrapped environment.
      sizes: of the scene, m, () or (L,) by name: an observation follows from a state alone.
    """

    inner: Any
    sizes: dict[str, jax.Array]


@dataclass(frozen=True)
class Imaging(Wrapper):
    """Adds a picture to every observation.

    Attributes:
      env: the wrapped environment.
      camera: what the picture is like.
      grey: whether it has one channel, the luminance.
    """

    camera: Camera = field(default_factory=lambda: Camera(height=USUAL, width=USUAL))
    grey: bool = False

    def start(self, key: jax.Array, params: Any) -> ImagingState:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        return self._with_sizes(self.env.start(key, params), params)

    def observe(self, state: ImagingState) -> Imaged:
        """Return the observation of a state."""
        return self._seen(self.env.observe(state.inner), state.sizes)

    def reset(self, key: jax.Array, params: Any) -> tuple[Imaged, ImagingState]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        observation, inner = self.env.reset(key, params)
        state = self._with_sizes(inner, params)
        return self._seen(observation, state.sizes), state

    def step(self, key: jax.Array, state: ImagingState, action: jax.Array, params: Any) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        observation, inner, *rest = self.env.step(key, state.inner, action, params)
        after = replace(state, inner=inner)
        reward, terminated, truncated, info = rest
        shown = self._seen(observation, state.sizes)
        return shown, after, reward, terminated, truncated, info

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one picture."""
        return self.camera.height, self.camera.width, 1 if self.grey else 3

    def _seen(self, observation: Any, sizes: Mapping[str, jax.Array]) -> Imaged:
        known: dict[str, Any] = dict(sizes)
        scene = replace(seen(self.env, None, observation), **known)
        return Imaged(observation, image(scene, self.camera, self.grey))

    def _with_sizes(self, inner: Any, params: Any) -> ImagingState:
        lanes = jax.tree.leaves(inner)[0].shape
        blank = jax.eval_shape(lambda: self.env.observe(inner))
        scene = seen(self.env, params, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank))
        sizes = {name: jnp.asarray(getattr(scene, name), jnp.float32) for name in SIZES}
        return ImagingState(inner, {n: jnp.broadcast_to(s, lanes) for n, s in sizes.items()})


def with_image(env: Any, options: Any) -> Imaging:
    """Wrap an environment, for `jaxsim.make(..., image=options)`.

    Args:
      env: of any world.
      options: by name, those of `OPTIONS`; {} for 64 x 64 pixels in colour from the corner.

    Raises:
      ValueError: an option that does not exist or does not fit.
    """
    if not isinstance(options, Mapping):
        raise ValueError(f"image is {options!r}; it must be options by name, {{}} for the usual")
    for name in options:
        if name not in OPTIONS:
            raise ValueError(parameters.unknown("image option", str(name), OPTIONS))
    grey = options.get("grey", False)
    if not isinstance(grey, bool):
        raise ValueError(f"grey is {grey!r}; it must be True or False")
    height = options.get("height", options.get("width", USUAL))
    camera = Camera(
        options.get("view", "corner"),
        height,
        options.get("width", height),
        options.get("samples", 1),
    )
    return Imaging(env, camera, grey)


@spaces.flatten.register
def _(env: Imaging, observation: Imaged) -> jax.Array:
    """The picture: learners from pixels are to see nothing else."""
    return observation.image


@spaces.unflatten.register
def _(env: Imaging, params: Any, vector: Any) -> Any:
    raise ValueError("a picture cannot be turned back into an observation")


@spaces.bounds.register
def _(env: Imaging, params: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(env.shape, np.uint8), np.full(env.shape, 255, np.uint8)
