"""Pictures of scenes by ray casting, as pure functions, batched and compiled.

    camera = Camera("corner", height=64, width=64)
    pixels = image(scene(env, params, state), camera)  # (64, 64, 3) uint8, or (L, 64, 64, 3)

One ray goes through each sample of each pixel. Cart and pole are cylinders, blocks are spheres, and
only the faces of the room that look towards the eye are drawn. Shadows fall straight down, on the
floor and on the cart: a shadow lies where its body would land.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxsim.pytrees import Leaf
from jaxsim.render import surfaces
from jaxsim.render.camera import PARALLEL, Camera, CameraPose, pole_radius, pose, rays
from jaxsim.render.scene import CART_BOTTOM, CART_RADIUS, CART_TOP, POLE_RADIUS, Scene
from jaxsim.render.surfaces import FAR, Cylinder
from jaxsim.worlds.cartpole3d.geometry import add, dot, scale, sub
from jaxsim.worlds.cartpole3d.types import UNROLLED, Scalar, Vector

T = TypeVar("T")

Colour = tuple[int, int, int]
PAPER: Colour = (250, 250, 252)
CART: Colour = (0, 114, 178)
POLE: Colour = (213, 94, 0)
BLOCK: Colour = (0, 158, 115)
"""Colours in full light, distinct also with red-green colour blindness (Okabe and Ito)."""
FLOOR: tuple[Colour, Colour] = ((226, 230, 236), (212, 217, 225))
"""Tiles of 1 m."""
WALLS: tuple[Colour, Colour, Colour] = ((240, 242, 246), (233, 236, 241), (246, 247, 249))
"""Faces of x, of y, and the ceiling."""
EDGE: Colour = (160, 168, 180)

NOTHING, FLOOR_PART, WALL_PART, EDGE_PART, CART_PART, POLE_PART, FIRST_BLOCK = range(7)
"""Numbers of `parts`; block i is FIRST_BLOCK + i."""

SUN = Vector(-0.39, -0.52, 0.76)
"""Unit vector towards the light."""
AMBIENT = 0.58
SHADE = 0.36
"""Share of the light that a shadow takes."""
EDGE_WIDTH = 0.05  # m, at least 0.7 pixels
SHADOW_MARGIN = 0.06  # m, around the pole
LIFT = 0.02  # m, least height of a body above a point that it shades


class _Hit(NamedTuple):
    """The nearest body on each ray.

    Attributes:
      distance: along the ray, m.
      part: number of the body.
      centre: of the block, m.
    """

    distance: jax.Array
    part: jax.Array
    centre: Vector


def image(scene: Scene, camera: Camera, grey: bool = False) -> jax.Array:
    """Draw a scene, or a batch of them.

    Args:
      scene: places and sizes; leaves () or (L,), blocks (N,) or (L, N).
      camera: settings of the picture.
      grey: whether to return one channel, the luminance, instead of three.

    Returns:
      (H, W, 3) uint8, or (L, H, W, 3); (..., H, W, 1) if grey. Bodies at places that are not finite
      are drawn as if far away.
    """
    pixels = _batched(scene, lambda one: _shaded(one, camera, grey))
    if grey:
        return pixels[..., None]
    # After the loop over lanes: inside it, XLA:CPU recomputes a ray for each byte of a pixel, and
    # without SIMD (194 us a picture of 64 x 64 pixels, 45 us this way).
    return jax.lax.bitcast_convert_type(pixels, jnp.uint8)[..., :3]


def parts(scene: Scene, camera: Camera) -> jax.Array:
    """Return what each pixel shows, for tests and for learning from segments.

    Args:
      scene: as for `image`.
      camera: with one sample a pixel.

    Returns:
      (H, W) int32, or (L, H, W): `NOTHING`, `FLOOR_PART`, `WALL_PART`, `EDGE_PART`, `CART_PART`,
      `POLE_PART`, or `FIRST_BLOCK` plus the slot of a block.

    Raises:
      ValueError: a pixel has several samples.
    """
    if camera.samples != 1:
        raise ValueError(f"samples is {camera.samples}; parts of a picture need 1")
    return _batched(scene, lambda one: _Look(one, camera).parts())


def _batched(scene: Scene, draw: Callable[[Scene], jax.Array]) -> jax.Array:
    """Call a function of one lane for each lane in turn, so that arrays stay in the cache."""
    lanes = jnp.broadcast_shapes(
        *(jnp.shape(leaf) for leaf in (*scene.cart, *scene.lean, scene.half_width)),
        jnp.shape(scene.alive)[:-1],
    )
    slots = jnp.shape(scene.alive)[-1:]

    def spread(path: tuple[jax.tree_util.GetAttrKey, ...], leaf: Leaf) -> jax.Array:
        blocks = path[0].name in ("blocks", "alive")
        leaf = jnp.asarray(leaf)
        leaf = leaf if leaf.dtype == bool else leaf.astype(jnp.float32)
        return jnp.broadcast_to(leaf, lanes + slots if blocks else lanes)

    scene = jax.tree_util.tree_map_with_path(spread, scene)
    if not lanes:
        return draw(scene)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(lanes) :]), scene)
    pixels = jax.lax.map(draw, flat)
    return pixels.reshape(*lanes, *pixels.shape[1:])


def _shaded(scene: Scene, camera: Camera, grey: bool) -> jax.Array:
    """Pixels of one lane's picture, (H, W): uint8 if grey, else uint32 with red in its low byte."""
    channels: tuple[jax.Array, ...] = _Look(scene, camera).colours()
    if grey:
        r, g, b = channels
        channels = (0.299 * r + 0.587 * g + 0.114 * b,)
    if camera.samples > 1:
        shape = (camera.height, camera.samples, camera.width, camera.samples)
        channels = tuple(channel.reshape(shape).mean((1, 3)) for channel in channels)
    # One number a pixel: three separate channels would each be computed from the rays.
    levels = [jnp.clip(channel + 0.5, 0, 255).astype(jnp.uint32) for channel in channels]
    if grey:
        return levels[0].astype(jnp.uint8)
    return levels[0] | (levels[1] << 8) | (levels[2] << 16)


class _Look:
    """One lane's scene through a camera; every array is (H * samples, W * samples)."""

    def __init__(self, scene: Scene, camera: Camera) -> None:
        self.scene, self.camera = scene, camera
        self.at: CameraPose = pose(scene, camera)
        self.begin, self.way = rays(self.at, camera)
        upright = Vector(0.0, 0.0, 1.0)
        cart = scene.cart
        bottom = Vector(cart.x, cart.y, cart.z + CART_BOTTOM)
        self.cart = Cylinder(bottom, upright, CART_TOP - CART_BOTTOM, CART_RADIUS)
        self.foot, self.tip = scene.foot, scene.tip
        if camera.lean != 1.0:
            way = sub(self.tip, self.foot)
            longer = Vector(camera.lean * way.x, camera.lean * way.y, way.z)
            self.tip = add(self.foot, longer)
        way = sub(self.tip, self.foot)
        length = jnp.sqrt(dot(way, way))
        thick = pole_radius(scene, camera, self.at, POLE_RADIUS)
        self.pole = Cylinder(self.foot, scale(way, 1 / length), length, thick)
        # Size of a pixel, m: of a parallel view, else for each m of distance.
        self.pixel = 2 * self.at.zoom / min(camera.height, camera.width)

    def parts(self) -> jax.Array:
        """Number of the part that each ray meets."""
        hit, _, _ = self._bodies()
        distance, on_x, on_z = self._room()
        point = add(self.begin, scale(self.way, distance))
        is_floor, edge = self._face(point, distance, on_x, on_z)
        face = jnp.where(edge, EDGE_PART, jnp.where(is_floor, FLOOR_PART, WALL_PART))
        face = jnp.where(distance < FAR, face, NOTHING)
        return jnp.where(hit.distance < distance, hit.part, face)

    def colours(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Red, green and blue, 0 to 255."""
        hit, cart_end, pole_end = self._bodies()
        distance, on_x, on_z = self._room()
        body = hit.distance < distance
        point = add(self.begin, scale(self.way, jnp.minimum(hit.distance, distance)))
        is_floor, edge = self._face(point, distance, on_x, on_z)
        is_floor &= ~body
        is_cart = body & (hit.part == CART_PART)

        light = AMBIENT + (1 - AMBIENT) * self._facing(hit, point, cart_end, pole_end)
        shadow = jnp.where(is_floor | is_cart, self._shadow(point, is_floor), 0.0)
        light = jnp.where(body, light, 1.0) * (1 - SHADE * shadow)

        tile = (jnp.floor(point.x).astype(jnp.int32) + jnp.floor(point.y).astype(jnp.int32)) & 1
        channels = []
        for i in range(3):
            floor = jnp.where(tile == 0, FLOOR[0][i], FLOOR[1][i])
            wall = jnp.where(on_x, WALLS[0][i], jnp.where(on_z, WALLS[2][i], WALLS[1][i]))
            face = jnp.where(edge, EDGE[i], jnp.where(is_floor, floor, wall))
            face = jnp.where(distance < FAR, face, PAPER[i])
            solid = jnp.where(
                hit.part == CART_PART, CART[i], jnp.where(hit.part == POLE_PART, POLE[i], BLOCK[i])
            )
            channels.append(jnp.where(body, solid, face) * light)
        return channels[0], channels[1], channels[2]

    def _room(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        half = self.scene.half_width
        low, high = Vector(-half, -half, self.scene.floor), Vector(half, half, self.scene.ceiling)
        return surfaces.room(self.begin, self.way, low, high)

    def _face(
        self, point: Vector, distance: jax.Array, on_x: jax.Array, on_z: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Whether a point of the room is on the floor, and whether it is near an edge."""
        scene = self.scene
        x = scene.half_width - jnp.abs(point.x)
        y = scene.half_width - jnp.abs(point.y)
        half_height = (scene.ceiling - scene.floor) / 2
        z = half_height - jnp.abs(point.z - scene.floor - half_height)
        # The distance to the nearest of the two other pairs of faces.
        edge_distance = jnp.where(on_x, jnp.minimum(y, z), jnp.minimum(x, jnp.where(on_z, y, z)))
        pixel = self.pixel if self.camera.view in PARALLEL else self.pixel * distance
        width = jnp.maximum(EDGE_WIDTH, 0.7 * pixel) if self.camera.margin else 0.0
        return on_z & (point.z < scene.floor + half_height), edge_distance < width

    def _bodies(self) -> tuple[_Hit, jax.Array, jax.Array]:
        """The nearest body, and whether cart and pole are met at an end."""
        cart, cart_end = surfaces.cylinder(self.begin, self.way, self.cart)
        pole, pole_end = surfaces.cylinder(self.begin, self.way, self.pole)
        distance = jnp.minimum(cart, pole)
        part = jnp.where(cart <= pole, CART_PART, POLE_PART)
        nowhere = Vector(*(jnp.zeros_like(distance) for _ in range(3)))
        hit = self._each(self._nearer, _Hit(distance, part, nowhere))
        return hit, cart_end, pole_end

    def _nearer(self, hit: _Hit, number: Leaf, centre: Vector, alive: jax.Array) -> _Hit:
        """The nearer of a hit and a block."""
        radius = jnp.where(alive, self.scene.block_radius, 0.0)
        distance = surfaces.sphere(self.begin, self.way, centre, radius)
        better = distance < hit.distance
        part = jnp.where(better, FIRST_BLOCK + number, hit.part)
        parts = [jnp.where(better, new, old) for new, old in zip(centre, hit.centre, strict=True)]
        return _Hit(jnp.minimum(distance, hit.distance), part, Vector(*parts))

    def _each(self, body: Callable[[T, Leaf, Vector, jax.Array], T], first: T) -> T:
        """Fold over the blocks."""
        scene = self.scene

        def one(number: Leaf, carry: T) -> T:
            centre = Vector(*(jnp.asarray(part)[number] for part in scene.blocks))
            return body(carry, number, centre, scene.alive[number])

        slots = scene.alive.shape[0]
        if slots > UNROLLED:
            return jax.lax.fori_loop(0, slots, one, first)
        for number in range(slots):
            first = one(number, first)
        return first

    def _facing(
        self, hit: _Hit, point: Vector, cart_end: jax.Array, pole_end: jax.Array
    ) -> jax.Array:
        """How far a body's surface faces the light, 0 to 1."""
        block = sub(point, hit.centre)
        light = dot(block, SUN) / self.scene.block_radius
        for body, ends, number in (
            (self.cart, cart_end, CART_PART),
            (self.pole, pole_end, POLE_PART),
        ):
            offset = sub(point, body.base)
            across = sub(offset, scale(body.axis, dot(offset, body.axis)))
            side = dot(across, SUN) / body.radius
            below = jnp.where(dot(body.axis, self.way) > 0, -1.0, 1.0)
            end = below * dot(body.axis, SUN)
            light = jnp.where(hit.part == number, jnp.where(ends, end, side), light)
        return jnp.maximum(light, 0.0)

    def _shadow(self, point: Vector, is_floor: jax.Array) -> jax.Array:
        """Shadow of bodies straight above, 0 to 1."""
        foot, tip = self.foot, self.tip
        along = sub(tip, foot)
        flat = jnp.maximum(along.x**2 + along.y**2, 1e-6)
        dx, dy = point.x - foot.x, point.y - foot.y
        share = jnp.clip((dx * along.x + dy * along.y) / flat, 0.0, 1.0)
        gap = (dx - share * along.x) ** 2 + (dy - share * along.y) ** 2
        dark = _soft(gap, (self.pole.radius + SHADOW_MARGIN) ** 2)
        cart = (point.x - self.scene.cart.x) ** 2 + (point.y - self.scene.cart.y) ** 2
        dark = jnp.where(is_floor, jnp.maximum(dark, _soft(cart, CART_RADIUS**2)), dark)
        square: Scalar = self.scene.block_radius * self.scene.block_radius

        def block(dark: jax.Array, _: Leaf, centre: Vector, alive: jax.Array) -> jax.Array:
            squared = (point.x - centre.x) ** 2 + (point.y - centre.y) ** 2
            over = alive & (centre.z > point.z + LIFT)
            return jnp.maximum(dark, jnp.where(over, _soft(squared, square), 0.0))

        return self._each(block, dark)


def _soft(squared: Scalar, square: Scalar) -> jax.Array:
    """1 well inside of a circle, 0 outside, by the squared distance from its middle."""
    return jnp.clip(2.5 * (1 - squared / square), 0.0, 1.0)
