"""Colours, light and shadows are those of a ray caster in NumPy, with its numbers once more."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import render
from jaxsim.render.scene import Scene
from jaxsim.worlds.cartpole3d.types import Vector

COLOURS = {"cart": (0, 114, 178), "pole": (213, 94, 0), "block": (0, 158, 115)}
TILES = ((226, 230, 236), (212, 217, 225))
WALLS = ((240, 242, 246), (233, 236, 241), (246, 247, 249))
PAPER, EDGE = (250, 250, 252), (160, 168, 180)
SUN = np.array([-0.39, -0.52, 0.76])
LEAN = np.array([0.2, -0.15, np.sqrt(1 - 0.2**2 - 0.15**2)])
# A wide room with small blocks; one hangs over the cart, one is lost.
SCENE = Scene(
    Vector(*map(jnp.float32, (0.8, -1.1, 0.0))),
    Vector(*map(jnp.float32, LEAN)),
    Vector(
        *np.array([[0.6, -1.3, 2.2], [-2.0, 2.5, 3.0], [1.45, -1.1, 0.05], [0, 0, 4]], np.float32).T
    ),
    np.array([True, True, True, False]),
    pole_length=1.6,
    block_radius=0.4,
    half_width=3.95,
    floor=-0.15,
    ceiling=6.85,
)


def eye_and_rays(camera):
    """Beginnings and unit directions, (H, W, 3), and size of a pixel by view."""
    largest, middle = 3.95, 0.5 * (6.85 - 0.15)  # the room is wider than it is high
    shorter = min(camera.height, camera.width)
    x = (np.arange(camera.width) + 0.5 - camera.width / 2) * 2 / shorter
    y = (camera.height / 2 - np.arange(camera.height) - 0.5) * 2 / shorter
    x, y = (a[..., None] for a in np.meshgrid(x, y))
    if camera.view == "top":
        half = (1 + camera.margin) * 3.95
        begin = np.array([0, 0, middle + 20 * largest]) + half * (x * [1, 0, 0] + y * [0, 1, 0])
        return begin, np.broadcast_to([0, 0, -1.0], begin.shape), 2 * half / shorter
    if camera.view == "side":
        half = (1 + camera.margin) * largest
        begin = np.array([0, -20 * largest, middle]) + half * (x * [1, 0, 0] + y * [0, 0, 1])
        return begin, np.broadcast_to([0, 1.0, 0], begin.shape), 2 * half / shorter
    if camera.view == "first":
        begin, zoom = np.array([0.8, -1.1 - 1.7, 1.35]), 0.8
        to = np.array([0.8, -1.1 + 3.0, 1.3])
    else:
        begin = np.array([-1.55 * largest, -3.3 * largest, middle + 1.25 * 3.5])
        to, zoom = np.array([0, 0, middle - 0.12 * 3.5]), 0.44
    ahead = (to - begin) / np.linalg.norm(to - begin)
    right = np.cross(ahead, [0, 0, 1])
    right /= np.linalg.norm(right)
    way = ahead + zoom * (x * right + y * np.cross(right, ahead))
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    return np.broadcast_to(begin, way.shape), way, 2 * zoom / shorter


def met_cylinder(begin, way, base, axis, length, radius):
    """Distance to a cylinder, and cosine between the light and its surface at that point."""
    to = begin - base
    across, apart = way - (way @ axis)[..., None] * axis, to - (to @ axis)[..., None] * axis
    a, b = (across**2).sum(-1), (across * apart).sum(-1)
    inside = b * b - a * ((apart**2).sum(-1) - radius**2)
    with np.errstate(all="ignore"):
        side = (-b - np.sqrt(inside)) / a
        height = to @ axis + side * (way @ axis)
        side = np.where((inside > 0) & (height > 0) & (height < length) & (side > 0), side, np.inf)
        end = (np.where(way @ axis < 0, length, 0) - to @ axis) / (way @ axis)
        offset = apart + end[..., None] * across
        end = np.where(((offset**2).sum(-1) < radius**2) & (end > 0), end, np.inf)
        normal = (apart + side[..., None] * across) @ SUN / radius
    return np.minimum(side, end), np.where(end < side, -np.sign(way @ axis) * (axis @ SUN), normal)


def drawn(camera, scene):
    begin, way, pixel = eye_and_rays(camera)
    low, high = np.array([-3.95, -3.95, -0.15]), np.array([3.95, 3.95, 6.85])
    with np.errstate(all="ignore"):
        exits = np.where(way > 0, high - begin, low - begin) / way
        enters = np.where(way > 0, low - begin, high - begin) / way
    exits = np.where(way == 0, np.inf, exits)
    enters = np.where(way == 0, -np.inf, enters)
    room, face = exits.min(-1), exits.argmin(-1)
    beside = ((way == 0) & ((begin < low) | (begin > high))).any(-1)
    room = np.where((enters.max(-1) < room) & ~beside, room, np.inf)
    cart = np.array([0.8, -1.1, 0])
    foot = cart + np.array([0, 0, 0.2]) + 0.05 * LEAN
    reach = 1.6 * LEAN * [camera.lean, camera.lean, 1]
    depth = 1 if camera.view in ("top", "side") else np.linalg.norm(foot - begin[0, 0])
    thick = max(0.03, camera.thickness * pixel * depth)
    bodies = [
        (
            "cart",
            *met_cylinder(
                begin, way, cart + np.array([0, 0, 0.1]), np.array([0, 0, 1.0]), 0.2, 0.5
            ),
        ),
        (
            "pole",
            *met_cylinder(
                begin, way, foot, reach / np.linalg.norm(reach), np.linalg.norm(reach), thick
            ),
        ),
    ]
    centres = np.stack(scene.blocks, -1).astype(float)[:3]
    for centre in centres:
        along = ((centre - begin) * way).sum(-1)
        inside = 0.4**2 - ((centre - begin - along[..., None] * way) ** 2).sum(-1)
        distance = along - np.sqrt(np.maximum(inside, 0))
        distance = np.where((inside > 0) & (distance > 0), distance, np.inf)
        with np.errstate(all="ignore"):
            bodies.append(
                ("block", distance, (begin + distance[..., None] * way - centre) @ SUN / 0.4)
            )
    body = np.min([distance for _, distance, _ in bodies], axis=0)
    image = np.empty((*room.shape, 3))
    for row, column in np.ndindex(room.shape):
        here = row, column
        point = begin[here] + min(body[here], room[here], 1e9) * way[here]
        if body[here] < room[here]:
            name, _, facing = next(b for b in bodies if b[1][here] == body[here])
            light = 0.58 + 0.42 * max(facing[here], 0)
            colour = COLOURS[name]
        elif room[here] == np.inf:
            name, light, colour = "paper", 1, PAPER
        else:
            floor = face[here] == 2 and point[2] < 3
            name, light = "floor" if floor else "wall", 1
            colour = (
                TILES[int(np.floor(point[0]) + np.floor(point[1])) % 2]
                if floor
                else WALLS[face[here]]
            )
            gaps = np.minimum(point - low, high - point)
            gaps[face[here]] = np.inf
            width = 0.7 * pixel * (1 if camera.view in ("top", "side") else room[here])
            if camera.margin and gaps.min() < max(0.05, width):
                colour = EDGE
        if name in ("floor", "cart"):
            light *= 1 - 0.36 * shadow(point, name == "floor", cart, foot, reach, thick, centres)
        image[here] = np.array(colour) * light
    return image


def shadow(point, on_floor, cart, foot, reach, thick, centres):
    def soft(gap, radius):
        return np.clip(2.5 * (1 - (gap / radius) ** 2), 0, 1)

    flat = point[:2] - foot[:2]
    share = np.clip(flat @ reach[:2] / (reach[:2] @ reach[:2]), 0, 1)
    dark = [soft(np.linalg.norm(flat - share * reach[:2]), thick + 0.06)]
    if on_floor:
        dark.append(soft(np.linalg.norm(point[:2] - cart[:2]), 0.5))
    for centre in centres:
        if centre[2] > point[2] + 0.02:
            dark.append(soft(np.linalg.norm(point[:2] - centre[:2]), 0.4))
    return max(dark)


@pytest.mark.parametrize(
    "camera",
    [
        render.Camera("corner", 44, 60, thickness=2.5),
        render.Camera("first", 36, 52, margin=0.0),
        render.Camera("top", 40, 52, margin=0.3, lean=2.0, thickness=0.0),
        render.Camera("side", 40, 34, thickness=3.0),
    ],
    ids=lambda camera: camera.view,
)
def test_pixels_are_those_of_a_ray_caster_in_numpy(camera):
    ours = np.asarray(jax.jit(render.image, static_argnums=1)(SCENE, camera), float)
    expected = drawn(camera, SCENE)
    # Where two surfaces meet, rounding may show the other in a pixel.
    assert (np.abs(ours - expected).max(-1) > 1).sum() <= 2
    grey = np.asarray(jax.jit(render.image, static_argnums=(1, 2))(SCENE, camera, True), float)
    luminance = expected @ [0.299, 0.587, 0.114]
    assert (np.abs(grey[..., 0] - luminance) > 1).sum() <= 2


def test_a_style_is_a_row_of_cameras():
    usual = render.Style()
    assert [vars(camera) for camera in usual.cameras] == [
        {
            "view": view,
            "height": 240,
            "width": 240,
            "samples": 1,
            "margin": 0.1,
            "lean": 1.0,
            "thickness": 1.0,
        }
        for view in ("corner", "top")
    ]
    assert render.Camera() == usual.cameras[0]
    style = render.Style(("side", "top", "first"), 12, 0.2, 3.0, 2, 4.0)
    assert style.cameras == (
        render.Camera("side", 12, 12, 2, 0.2, 1.0, 4.0),
        render.Camera("top", 12, 12, 2, 0.2, 3.0, 4.0),
        render.Camera("first", 12, 12, 2, 0.2, 1.0, 4.0),
    )


@pytest.mark.parametrize("name", ["half_width", "cart", "lean", "alive"])
def test_any_part_of_a_scene_may_be_that_of_a_batch(name):
    """One leaf alone has lanes; each lane is drawn as it is alone."""
    camera = render.Camera("top", 9, 9)
    other = {
        "half_width": np.float32(2.0),
        "cart": Vector(*map(np.float32, (-2, 2, 0))),
        "lean": Vector(*map(np.float32, (0.6, 0.0, 0.8))),
        "alive": np.array([False, False, True, False]),
    }[name]
    values = getattr(SCENE, name), other
    lanes = jax.tree.map(lambda *leaves: np.stack(list(map(np.asarray, leaves))), *values)
    batch = render.parts(replace(SCENE, **{name: lanes}), camera)
    assert batch.shape == (2, 9, 9)
    for lane, value in enumerate(values):
        alone = render.parts(replace(SCENE, **{name: value}), camera)
        np.testing.assert_array_equal(batch[lane], alone)
