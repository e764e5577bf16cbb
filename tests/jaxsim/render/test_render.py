"""Pictures show where things are, for every world, by projections computed another way."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import render
from jaxsim.render import camera as cameras
from jaxsim.render.image import CART_PART, FIRST_BLOCK, FLOOR_PART, NOTHING, POLE_PART
from jaxsim.worlds.cartpole3d.types import Observation, Vector

SIZE = 96


def observation(x=0.0, y=0.0, quaternion=(0.0, 0.0, 0.0, 1.0), blocks=(), stacked=False):
    zero = np.float32(0)
    points = [Vector(*map(np.float32, point)) for point in blocks]
    alive = [np.bool_(True)] * len(points)
    if stacked:
        points = [
            Vector(*(np.array([*part, 9.0], np.float32) for part in zip(*blocks, strict=True)))
        ]
        alive = [np.array([True] * len(blocks) + [False])]
    still = Vector(zero, zero, zero)
    return Observation(
        cart_position=Vector(np.float32(x), np.float32(y), zero),
        cart_velocity=still,
        pole_quaternion=tuple(map(np.float32, quaternion)),
        pole_velocity=still,
        block_position=tuple(points),
        block_velocity=tuple(still for _ in points),
        block_alive=tuple(alive),
    )


def leaning(degrees):
    half = np.deg2rad(degrees) / 2
    return (0.0, float(np.sin(half)), 0.0, float(np.cos(half)))  # about y: towards +x


BLOCKS = [(-2.0, 3.0, 6.0), (2.5, 1.0, 3.0), (0.5, 3.5, 2.0)]
SCENE = render.observed(observation(1.0, -1.5, leaning(25), BLOCKS))


def segments(scene, camera):
    return np.asarray(jax.jit(render.parts, static_argnums=1)(scene, camera))


def picture(scene, camera, grey=False):
    return np.asarray(jax.jit(render.image, static_argnums=(1, 2))(scene, camera, grey))


def projected(view, size, point, cart=(1.0, -1.5)):
    """Column and row of a point by a matrix, float64; sizes are those of CartPole3D's room."""
    point, middle = np.asarray(point, float), np.array([0.0, 0.0, 4.95])
    if view in ("side", "top"):
        half = 1.1 * (5.0 if view == "side" else 4.95)
        right, up = (point[0], point[2] - 4.95) if view == "side" else (point[0], point[1])
    else:
        if view == "corner":
            eye = middle + np.array([-1.55, -3.3, 1.25]) * 5.0
            target, half = middle - [0, 0, 0.12 * 5.0], 0.44
        else:
            x, y = cart
            eye, target, half = np.array([x, y - 1.7, 1.35]), np.array([x, y + 3.0, 1.3]), 0.8
        ahead = (target - eye) / np.linalg.norm(target - eye)
        side = np.cross(ahead, [0, 0, 1])
        side /= np.linalg.norm(side)
        turn = np.stack([side, np.cross(side, ahead), ahead])
        x, y, depth = turn @ (point - eye)
        right, up = x / depth, y / depth
    scale = size / 2 / half
    return (size - 1) / 2 + right * scale, (size - 1) / 2 - up * scale


@pytest.mark.parametrize("view", render.VIEWS)
def test_points_appear_where_an_independent_projection_puts_them(view):
    camera = render.Camera(view, SIZE, SIZE)
    for point in [(1.0, -1.5, 0.2), tuple(map(float, SCENE.tip)), *BLOCKS]:
        projection = render.project(SCENE, camera, Vector(*map(jnp.float32, point)))
        np.testing.assert_allclose(projection, projected(view, SIZE, point), atol=0.01)


@pytest.mark.parametrize("view", ["corner", "side", "top"])
def test_bodies_are_drawn_where_they_are_projected(view):
    size = 256
    labels = segments(SCENE, render.Camera(view, size, size))
    for number, block in enumerate(BLOCKS):
        rows, columns = np.nonzero(labels == FIRST_BLOCK + number)
        at = projected(view, size, block)
        assert (columns.mean(), rows.mean()) == pytest.approx(at, abs=0.5)
    column, row = projected(view, size, [float(part) for part in SCENE.tip])
    rows, columns = np.nonzero(labels == POLE_PART)
    # The tip is the pole's end that is farthest from the cart.
    foot = projected(view, size, [float(part) for part in SCENE.foot])
    reach = np.hypot(columns - foot[0], rows - foot[1])
    assert reach.max() == pytest.approx(np.hypot(column - foot[0], row - foot[1]), abs=1.5)
    rows, columns = np.nonzero(labels == CART_PART)
    column, row = projected(view, size, (1.0, -1.5, 0.2))
    # From above the pole hides a part of the cart, so its outermost pixels are compared.
    assert (columns.min() + columns.max()) / 2 == pytest.approx(column, abs=0.75)
    assert (rows.min() + rows.max()) / 2 == pytest.approx(row, abs=0.75)


def test_silhouettes_of_parallel_views_are_analytic():
    size, one = 128, render.observed(observation(blocks=[(-2.0, 3.0, 6.0)]))
    pixel = 2 * 1.1 * 4.95 / size
    centres = (np.arange(size) + 0.5) * pixel - 1.1 * 4.95
    x, y = centres[None, :], -centres[:, None]
    labels = segments(one, render.Camera("top", size, size))
    np.testing.assert_array_equal(labels == FIRST_BLOCK, (x + 2) ** 2 + (y - 3) ** 2 < 0.25)
    cart = (labels == CART_PART) | (labels == POLE_PART)
    np.testing.assert_array_equal(cart, x**2 + y**2 < 0.25)
    room = (abs(x) < 4.95) & (abs(y) < 4.95)
    np.testing.assert_array_equal(labels != NOTHING, np.broadcast_to(room, labels.shape))

    pixel = 2 * 1.1 * 5 / size
    centres = (np.arange(size) + 0.5) * pixel - 1.1 * 5
    x, z = centres[None, :], 4.95 - centres[:, None]
    labels = segments(one, render.Camera("side", size, size))
    box = (abs(x) < 0.5) & (z > 0.1) & (z < 0.3)
    pole = (abs(x) < pixel) & (z > 0.25) & (z < 1.25)
    np.testing.assert_array_equal(labels == CART_PART, box)
    np.testing.assert_array_equal(labels == POLE_PART, pole & ~box)


def test_a_sphere_in_perspective_is_a_cone_of_rays():
    size, camera = 128, render.Camera("corner", 128, 128)
    mask = segments(SCENE, camera) == FIRST_BLOCK
    at = cameras.pose(SCENE, camera)
    _, way = cameras.rays(at, camera)
    to = np.array(BLOCKS[0]) - np.array([float(part) for part in at.eye])
    distance = np.linalg.norm(to)
    cosine = sum(np.asarray(w, np.float64) * t for w, t in zip(way, to / distance, strict=True))
    expected = np.arccos(np.clip(cosine, -1, 1)) < np.arcsin(0.5 / distance)
    assert 20 < expected.sum() < size * size / 10
    np.testing.assert_array_equal(mask, expected)


def test_a_shadow_lies_where_a_block_would_land():
    camera = render.Camera("corner", SIZE, SIZE)
    high = replace(SCENE, blocks=Vector(*(part[:1] for part in SCENE.blocks)))
    high = replace(high, alive=SCENE.alive[:1])
    none = replace(high, alive=jnp.zeros_like(high.alive))
    with_block, without = (picture(s, camera).astype(int) for s in (high, none))
    changed = (without - with_block).sum(-1) > 40
    floor = segments(high, camera) == FLOOR_PART
    rows, columns = np.nonzero(changed & floor)
    at = projected("corner", SIZE, (-2.0, 3.0, -0.05))
    assert (columns.mean(), rows.mean()) == pytest.approx(at, abs=1.0)


def test_the_colours_tell_bodies_apart():
    labels = segments(SCENE, render.Camera("corner", SIZE, SIZE))
    image = picture(SCENE, render.Camera("corner", SIZE, SIZE)).astype(float)
    for part, colour in ((CART_PART, render.CART), (FIRST_BLOCK, render.BLOCK)):
        share = image[labels == part].mean(0)
        np.testing.assert_allclose(share / share.sum(), np.divide(colour, sum(colour)), atol=0.02)
    assert np.ptp(image[labels == FLOOR_PART], axis=-1).max() < 20


@pytest.mark.parametrize("grey", [False, True])
def test_a_batch_is_its_rows_and_jit_changes_nothing(grey):
    camera = render.Camera("corner", 24, 32)
    env, params = jaxsim.make("CartPole3D-v0", level=203, difficulty="hard")
    states = jax.jit(env.start)(jax.random.split(jax.random.key(0), 3), params)
    scenes = render.scene(env, params, states)
    batch = picture(scenes, camera, grey)
    assert batch.shape == (3, 24, 32, 1 if grey else 3) and batch.dtype == np.uint8
    for lane in range(3):
        state = jax.tree.map(lambda leaf, lane=lane: leaf[lane], states)
        one = picture(render.scene(env, params, state), camera, grey)
        # A tile's edge may fall to the other side by rounding.
        assert (one != batch[lane]).mean() < 0.01
    with jax.disable_jit():
        small = replace(camera, height=4, width=4)
        plain = np.asarray(render.image(SCENE, small, grey))
    assert (plain != picture(SCENE, small, grey)).mean() < 0.1


def test_listed_and_stacked_blocks_look_the_same_and_lost_ones_are_not_drawn():
    style = render.Style(("top",), 48)
    listed = render.draw(render.observed(observation(blocks=BLOCKS)), style)
    many = render.observed(observation(blocks=BLOCKS, stacked=True))
    np.testing.assert_array_equal(render.draw(many, style), listed)
    lost = observation(blocks=[(np.nan, 0.0, 3.0), (1.0, np.inf, 3.0), (1.0, 1.0, np.nan)])
    nothing = observation(blocks=[(0.0, 0.0, 3.0)] * 3)
    empty = replace(render.observed(nothing), alive=np.zeros(3, bool))
    assert not np.any(render.observed(lost).alive)
    np.testing.assert_array_equal(
        render.draw(render.observed(lost), style), render.draw(empty, style)
    )


def test_a_pole_that_leans_is_seen_to_lean():
    scene = render.observed(observation(quaternion=leaning(10)))

    def reach(lean):
        labels = segments(scene, render.Camera("top", 200, 200, lean=lean))
        return np.nonzero(labels == POLE_PART)[1].max() - 99.5

    pixel = 2 * 1.1 * 4.95 / 200
    assert reach(1.0) == pytest.approx(1.05 * np.sin(np.deg2rad(10)) / pixel, abs=1.5)
    assert reach(3.0) - reach(1.0) == pytest.approx(2 * np.sin(np.deg2rad(10)) / pixel, abs=1.5)


def test_samples_smooth_a_picture_and_keep_its_mean():
    rough, smooth = (
        render.draw(SCENE, render.Style(("corner",), 48, samples=n)).astype(float) for n in (1, 3)
    )
    assert rough.shape == smooth.shape and (rough != smooth).any()
    assert smooth.mean() == pytest.approx(rough.mean(), abs=1.5)


@pytest.mark.parametrize("env_id", jaxsim.registered_envs())
def test_every_world_can_be_drawn(env_id):
    env, params = jaxsim.make(env_id)
    scene = render.scene(env, params, jax.jit(env.start)(jax.random.key(0), params))
    labels = segments(scene, render.Camera("corner", 64, 64))
    assert {CART_PART, POLE_PART, FLOOR_PART} <= set(labels.ravel().tolist())
    assert render.draw(scene).shape == (240, 480, 3)


def test_what_has_no_picture_is_refused():
    class Odd:
        name = "Odd"

        def observe(self, state):
            return {"place": state}

    with pytest.raises(TypeError, match="an observation of Odd cannot be drawn"):
        render.scene(Odd(), None, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"view": "behind"}, "view is 'behind'; it must be one of corner, side, top, first"),
        ({"height": 0}, "height is 0; it must be from 1 to 1024"),
        ({"width": 5000}, "width is 5000; it must be from 1 to 1024"),
        ({"samples": 2.5}, "samples is 2.5; it must be a whole number, from 1 to 8"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        render.Camera(**given)
