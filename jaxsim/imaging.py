"""A camera among the sensors: observations with a picture.

    env, params = jaxsim.make("CartPole3D-v0", {"sensors/image/height": 64}, level=203)
    observation, state = env.reset(key, params)
    observation.image  # (64, 64, 3) uint8; `observation.cart_position` and the others are there too

`image={"height": 64}` is short for the same. The picture shows what the sensors report: the pose of
cart and pole is as old as theirs. An environment without a picture is not wrapped.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import spaces
from jaxsim.embedding import SLOTS, embed
from jaxsim.env import Env
from jaxsim.image_settings import DEFAULT_PIXELS, GROUP
from jaxsim.parameters import Values
from jaxsim.pytrees import Leaf, Observation, Params, State, Step
from jaxsim.render.camera import Camera
from jaxsim.render.image import image
from jaxsim.render.scene import SIZES, scene_of
from jaxsim.worlds.world import Attempt
from jaxsim.wrappers import WorldWrapper, Wrapper


class Imaged(NamedTuple):
    """An observation with a picture; it has the attributes of `observation` too.

    Attributes:
      observation: what the other sensors report.
      image: (..., H, W, 3) uint8, or (..., H, W, 1) in grey.
    """

    observation: Observation
    image: jax.Array

    def __getattr__(self, name: str) -> Any:
        """Return a reading of the other sensors."""
        if name.startswith("_"):  # names that Python or JAX look up
            raise AttributeError(name)
        return getattr(self.observation, name)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ImagingState:
    """State of `Imaging`.

    Attributes:
      inner: state of the wrapped environment.
      sizes: of the scene, m, () or (L,) by name: an observation follows from a state alone.
    """

    inner: State
    sizes: dict[str, jax.Array]


@dataclass(frozen=True)
class Imaging(Wrapper):
    """Adds a picture to every observation.

    Attributes:
      env: the wrapped environment.
      camera: what the picture is like.
      grey: whether it has one channel, the luminance.
    """

    camera: Camera = field(
        default_factory=lambda: Camera(height=DEFAULT_PIXELS, width=DEFAULT_PIXELS)
    )
    grey: bool = False

    def start(self, key: jax.Array, params: Params) -> ImagingState:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        return self._with_sizes(self.env.start(key, params), params)

    def observe(self, state: ImagingState) -> Imaged:
        """Return the observation of a state."""
        return self._pictured(self.env.observe(state.inner), state.sizes)

    def reset(self, key: jax.Array, params: Params) -> tuple[Imaged, ImagingState]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        observation, inner = self.env.reset(key, params)
        state = self._with_sizes(inner, params)
        return self._pictured(observation, state.sizes), state

    def step(self, key: jax.Array, state: ImagingState, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        return self._after(self.env.step(key, state.inner, action, params), state)

    def covering(self, other: "Imaging") -> "Imaging":
        """Return an environment that covers both.

        Raises:
          ValueError: they differ in their pictures, or as the wrapped ones.
        """
        if not isinstance(other, Imaging) or replace(other, env=self.env) != self:
            raise ValueError(f"no environment has the pictures of both {self} and {other}")
        return replace(self, env=self.env.covering(other.env))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one picture."""
        return self.camera.height, self.camera.width, 1 if self.grey else 3

    def _after(self, stepped: Step, before: ImagingState) -> Step:
        """Add the picture to the result of a step of the wrapped environment."""
        observation, inner, reward, terminated, truncated, info = stepped
        pictured = self._pictured(observation, before.sizes)
        return pictured, replace(before, inner=inner), reward, terminated, truncated, info

    def _pictured(self, observation: Observation, sizes: Mapping[str, jax.Array]) -> Imaged:
        values: dict[str, Any] = dict(sizes)
        scene = replace(scene_of(self.env, None, observation), **values)
        return Imaged(observation, image(scene, self.camera, self.grey))

    def _with_sizes(self, inner: State, params: Params) -> ImagingState:
        lanes = jax.tree.leaves(inner)[0].shape
        blank = jax.eval_shape(lambda: self.env.observe(inner))
        scene = scene_of(
            self.env, params, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank)
        )
        sizes = {name: jnp.asarray(getattr(scene, name), jnp.float32) for name in SIZES}
        return ImagingState(inner, {n: jnp.broadcast_to(s, lanes) for n, s in sizes.items()})


@dataclass(frozen=True)
class ImagingWorld(Imaging, WorldWrapper):
    """`Imaging` of a world, for rollouts and single episodes as fast as its own."""

    def quick_step(
        self, key: jax.Array, state: ImagingState, action: jax.Array, params: Params
    ) -> tuple[Step, jax.Array]:
        """Advance one step by the cheapest program; see `jaxsim.worlds.world.World.quick_step`."""
        if not hasattr(self.env, "quick_step"):  # an embedded world
            stepped = self.step(key, state, action, params)
            return stepped, jnp.ones_like(stepped[3])
        stepped, right = self.env.quick_step(key, state.inner, action, params)
        return self._after(stepped, state), right

    @property
    def program_class(self) -> Hashable:
        """That of the wrapped environment, with the same pictures."""
        return self.camera, self.grey, self.env.program_class

    def parts(self, params: Params) -> tuple[tuple["ImagingWorld", ...], np.ndarray]:
        """Simpler environments for some rows; see `jaxsim.worlds.world.World.parts`."""
        parts, place = self.env.parts(params)
        return tuple(replace(self, env=part) for part in parts), place

    def carried(self, state: ImagingState) -> ImagingState:
        """Part of a state that the next step of a running episode, or its picture, reads."""
        return replace(state, inner=self.env.carried(state.inner))

    def resumed(self, carried: ImagingState, length: jax.Array) -> ImagingState:
        """Rebuild a state for the next step from its carried part."""
        return replace(carried, inner=self.env.resumed(carried.inner, length))

    def attempt(
        self,
        key: jax.Array,
        state: ImagingState,
        action: jax.Array,
        params: Params,
        active: jax.Array,
        effort: int,
    ) -> Attempt:
        """Advance running episodes by one step; see `jaxsim.worlds.world.World.attempt`."""
        attempt: Attempt = self.env.attempt(key, state.inner, action, params, active, effort)
        return attempt._replace(state=replace(state, inner=attempt.state))


def with_image(env: Env, values: Values) -> Imaging:
    """Wrap an environment, for `jaxsim.make`.

    Args:
      env: of any world that can be drawn.
      values: by path, all of `image_settings.PARAMETERS`, checked.
    """
    height, width, view, grey, samples = (
        values[f"{GROUP}{name}"] for name in ("height", "width", "view", "grey", "samples")
    )
    kind = ImagingWorld if hasattr(env, "attempt") else Imaging
    return kind(env, Camera(view, height, width, samples), bool(grey))


@embed.register
def _(env: Imaging, slots: int = SLOTS) -> Imaging:
    return replace(env, env=embed(env.env, slots))


@spaces.flatten.register
def _(env: Imaging, observation: Imaged) -> jax.Array:
    """The picture alone, for learners from pixels."""
    return observation.image


@spaces.unflatten.register
def _(env: Imaging, params: Params, vector: Leaf) -> NoReturn:
    raise ValueError("a picture cannot be turned back into an observation")


@spaces.bounds.register
def _(env: Imaging, params: Params) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(env.shape, np.uint8), np.full(env.shape, 255, np.uint8)
