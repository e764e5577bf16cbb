"""Pictures show where things are, for every world."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import render
from jaxsim.worlds.cartpole3d.types import Observation, Vector

SIZE = 240
HALF = 5.5  # m, of what is seen of a room of 10 m with a margin of a tenth
MIDDLE = 4.95  # m, height of the middle of the room


def observation(x=0.0, y=0.0, quaternion=(0.0, 0.0, 0.0, 1.0), blocks=(), stacked=False):
    zero = np.float32(0)
    points = [Vector(*map(np.float32, point)) for point in blocks]
    alive = [np.bool_(True)] * len(points)
    if stacked:
        points = [Vector(*(np.array([*part, 9.0]) for part in zip(*blocks, strict=True)))]
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


def draw(seen, **style):
    return render.draw(render.observed(seen), render.Style(**style))


def centre(image, colour):
    """Middle of everything of a colour in one view, pixels from the left and from the top."""
    rows, columns = np.nonzero((image == colour).all(axis=-1))
    return float(columns.mean()), float(rows.mean())


def at(metres):
    return (metres + HALF) / (2 * HALF) * SIZE - 0.5


@pytest.mark.parametrize("stacked", [False, True])
def test_a_picture_shows_where_things_are(stacked):
    image = draw(observation(2.0, -3.0, blocks=[(-2.0, 4.0, 6.0)], stacked=stacked))
    assert image.shape == (SIZE, 2 * SIZE, 3) and image.dtype == np.uint8
    side, top = image[:, :SIZE], image[:, SIZE:]
    up = SIZE - 1 - at(6.0 - MIDDLE)
    assert centre(side, render.BLOCK) == pytest.approx((at(-2.0), up), abs=1)
    assert centre(top, render.BLOCK) == pytest.approx((at(-2.0), SIZE - 1 - at(4.0)), abs=1)
    assert centre(top, render.CART)[0] == pytest.approx(at(2.0), abs=1)
    assert centre(top, render.CART)[1] == pytest.approx(SIZE - 1 - at(-3.0), abs=1)
    middle = SIZE - 1 - at(0.7 - MIDDLE)
    assert centre(side, render.POLE) == pytest.approx((at(2.0), middle), abs=1.5)
    assert (image[0, 0] == render.PAPER).all()


def test_a_pole_that_leans_is_seen_to_lean():
    half = np.deg2rad(30) / 2
    turned = (0.0, float(np.sin(half)), 0.0, float(np.cos(half)))  # about y: towards +x
    image = draw(observation(quaternion=turned))
    assert centre(image[:, :SIZE], render.POLE)[0] == pytest.approx(at(0.25), abs=1.5)
    once = centre(draw(observation(quaternion=turned), views=("top",)), render.POLE)[0]
    thrice = centre(draw(observation(quaternion=turned), views=("top",), lean=3.0), render.POLE)[0]
    assert thrice - at(0) == pytest.approx(3 * (once - at(0)), rel=0.1)


def test_blocks_that_are_nowhere_are_not_drawn():
    lost = observation(blocks=[(np.nan, 0.0, 0.0), (np.inf, 1.0, 1.0)])
    np.testing.assert_array_equal(draw(lost), draw(observation()))


def test_nearer_blocks_hide_those_behind():
    image = draw(observation(blocks=[(0.0, 0.0, 9.0)]), views=("top",))
    assert not (image == render.CART).all(axis=-1).any()  # the block is above the cart


def test_without_a_margin_there_are_no_walls():
    style = {"views": ("top",), "pixels": 50, "margin": 0.0}
    image = draw(observation(), **style)
    assert image.shape == (50, 50, 3)
    assert not (image == render.WALL).all(axis=-1).any()
    assert (draw(observation(), **(style | {"margin": 0.1})) == render.WALL).all(axis=-1).any()


@pytest.mark.parametrize("env_id", jaxsim.registered_envs())
def test_every_world_can_be_drawn(env_id):
    env, params = jaxsim.make(env_id)
    state = env.start(jax.random.key(0), params)
    scene = render.scene(env, params, state)
    assert np.isfinite([*scene.cart, *scene.tip]).all()
    image = render.draw(scene)
    for colour in (render.CART, render.POLE, render.WALL):
        assert (image == colour).all(axis=-1).any()


def test_what_has_no_picture_is_refused():
    class Odd:
        name = "Odd"

        def observe(self, state):
            return {"place": state}

    with pytest.raises(TypeError, match="an observation of Odd cannot be drawn"):
        render.scene(Odd(), None, 3)
