"""Wall bounces and the speed that a contact asks for, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase, rows
from jaxsim.worlds.cartpole3d.types import Pose, Rail, Sphere, Vector

UPRIGHT = Pose(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
WORLD = geo.rotation(0.0, 0.0, 0.0, 1.0)
SLOP = 1e-5  # m of overlap that is left alone
HALF = 4.45  # m, where a block of radius 0.5 touches a side wall


@pytest.mark.parametrize(
    ("approach", "gap", "restitution", "expected"),
    [
        # At rest on the surface: only the slop, as a gap, may be closed: -1e-5 / 0.02.
        (0.0, 0.0, 1.0, -0.0005),
        # Closing at 3 m/s, restitution 1: turned round.
        (-3.0, -SLOP, 1.0, 6.0),
        (-3.0, -SLOP, 0.0, 3.0),
        (-3.0, -SLOP, 1.44, 7.32),
        # Slower than 0.2 m/s: no bounce; from 0.2 on, bounce.
        (-0.1999, -SLOP, 1.0, 0.1999),
        (-0.2, -SLOP, 1.0, 0.4),
        # Overlap of 5 mm: 4 times (5 mm - slop) more.
        (-3.0, -0.005, 1.0, 6.0 + 4 * (0.005 - SLOP)),
        (-0.1, -0.005, 1.0, 0.1 + 4 * (0.005 - SLOP)),
        # A gap of 1 cm may be closed within the tick, at (1 cm + slop) / 0.02.
        (-3.0, 0.01, 0.0, 3.0 - (0.01 + SLOP) / 0.02),
        # Parting already: asks for less than nothing, the impulse is clamped later.
        (2.0, -SLOP, 1.0, -2.0),
    ],
)
def test_separating_speed(approach, gap, restitution, expected, x64):
    asked = broadphase.separating_speed(jnp.float64(approach), gap, restitution)
    assert float(asked) == pytest.approx(expected, abs=1e-14)


def bounce(p, v, leaving=False, **params):
    block = Sphere(Vector(*map(jnp.float64, p)), Vector(*map(jnp.float64, v)), jnp.asarray(True))
    return np.array(broadphase.bounce_off_walls(Params(**params), block, block.v, leaving))


def test_inside_the_room_nothing_happens(x64):
    np.testing.assert_array_equal(bounce((4.44, -4.44, 9.44), (9, -9, 9)), [9, -9, 9])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [-1, 1])
def test_each_wall_turns_its_own_component(axis, side, x64):
    middle, reach = [(0, HALF), (0, HALF), (4.95, 4.5)][axis]
    p, v = np.array([0.0, 0.0, 4.95]), np.array([1.0, 2.0, 3.0])
    depth = 0.003
    p[axis] = middle + side * (reach + depth)
    v[axis] = side * 7.0
    expected = v.copy()
    expected[axis] = -side * (7.0 + 4 * (depth - SLOP))
    np.testing.assert_allclose(bounce(p, v), expected, atol=1e-12)


def test_a_corner_has_three_walls_at_once(x64):
    depths = np.array([0.001, 0.02, 0.1])
    p = np.array([-HALF, HALF, 0.45]) + depths * [-1, 1, -1]
    expected = np.array([5.0, -6.0, 7.0]) + 4 * (depths - SLOP) * [1, -1, 1]
    np.testing.assert_allclose(bounce(p, (-5, 6, -7)), expected, atol=1e-12)


def test_a_block_that_leaves_by_itself_is_let_go(x64):
    """Deep inside the wall, but faster than four times the depth."""
    np.testing.assert_allclose(bounce((HALF + 0.1, 0, 5), (-3, 0, 0)), [-3, 0, 0], atol=1e-15)
    # Slower than that it is pushed out at 4 x depth.
    pushed = bounce((HALF + 0.1, 0, 5), (-0.1, 0, 0))
    np.testing.assert_allclose(pushed, [-4 * (0.1 - SLOP), 0, 0], atol=1e-12)


def test_a_slow_block_is_stopped(x64):
    stopped = bounce((HALF, 0, 5), (0.1, 0, 0))
    # Exactly at the wall the slop counts as a gap that may still be closed.
    np.testing.assert_allclose(stopped, [SLOP / 0.02, 0, 0], atol=1e-12)


def test_restitutions_multiply_and_the_room_can_be_of_any_size(x64):
    v = bounce(
        (9.5 + SLOP, 0, 5),
        (2, 0, 0),
        restitution_wall=1.2,
        restitution_block=0.5,
        room_half_width=10.0,
    )
    np.testing.assert_allclose(v, [-1.2, 0, 0], atol=1e-12)
    v = bounce(
        (0, 0, 1.8 + 2 * SLOP), (0, 0, 4), room_ceiling=2.0, room_floor=-9.0, block_radius=0.2
    )
    np.testing.assert_allclose(v, [0, 0, -4 - 4 * SLOP], atol=1e-12)


@pytest.mark.parametrize(("x", "y", "touched"), [(5.4, -4.5, []), (5.4, -4.65, [-0.0386])])
def test_a_block_past_a_corner_touches_only_what_is_near(x, y, touched, x64):
    """Beyond the wall of +x, 0.35 m from its outer face, and around the corner from that of -y."""
    place = Vector(*map(jnp.float64, ([x], [y], [5.0])))
    contacts = rows.wall_rows(Params(), Sphere(place, place, jnp.asarray([True])))
    active, gap = np.asarray(contacts.active)[:, 0], np.asarray(contacts.gap)[:, 0]
    walls = ["-y", "+y", "-x", "+x", "ceiling", "floor"]
    assert [w for w, a in zip(walls, active, strict=True) if a] == ["-y"] * len(touched) + ["+x"]
    np.testing.assert_allclose(gap[active], [*touched, -0.15], atol=1e-4)


@pytest.mark.parametrize(
    "place", [(5.7, 0, 3), (0, -5.7, 3), (5.7, 5.7, -20), (0, 0, -1), (0, 0, 11)]
)
def test_nothing_touches_a_block_that_has_left_the_room(place, x64):
    params = Params()
    p = Vector(*map(jnp.float64, place))
    block = Sphere(Vector(*(c[None] for c in p)), Vector(*3 * [jnp.ones(1)]), jnp.ones(1, bool))
    one = Sphere(p, p, jnp.asarray(True))
    assert not rows.wall_rows(params, block).active.any()
    assert not broadphase.past_a_face(params, one, leaving=True)
    np.testing.assert_array_equal(bounce(place, (1, 2, 3), leaving=True), [1, 2, 3])
    # Where that is rare, the full tick is asked.
    assert broadphase.past_a_face(params, one)


@pytest.mark.parametrize("depth", np.linspace(0.51, 1.2, 15))
def test_a_block_on_its_way_out_takes_the_full_tick(depth, x64):
    """No place is left over between inside, past a face and gone."""
    params = Params()
    for place in ((HALF + depth, 0, 5), (0, -HALF - depth, 5), (0, 0, 0.44 - depth)):
        p = Vector(*map(jnp.float64, place))
        block = Sphere(Vector(*(c[None] for c in p)), Vector(*3 * [jnp.ones(1)]), jnp.ones(1, bool))
        one = Sphere(p, p, jnp.asarray(True))
        touched = bool(rows.wall_rows(params, block).active.any())
        assert bool(broadphase.past_a_face(params, one, leaving=True)) >= touched


def on_line(place, speed, slope):
    """A block whose line has a slope (x, y), and its velocity after the walls."""
    rail = Rail(*map(jnp.float64, (*slope, 0.0, 0.0)))
    v = Vector(*map(jnp.float64, (speed * slope[0], speed * slope[1], 0.0)))
    block = Sphere(Vector(*map(jnp.float64, place)), v, jnp.asarray(True), rail)
    return block, np.array(broadphase.bounce_off_walls(Params(), block, v, True))


@pytest.mark.parametrize("slope", [(0.6, 0.8), (-0.28, 0.96), (0.96, -0.28), (1.0, 0.0)])
def test_a_side_wall_turns_a_block_back_on_its_line(slope, x64):
    """The velocity along the line is what the iteration over the wall's row comes to."""
    depth, speed = 0.003, 5.0 * np.sign(slope[0])
    block, after = on_line((HALF + depth, 0.0, 3.0), speed, slope)
    wanted = -abs(speed * slope[0]) - 4 * (depth - SLOP)
    np.testing.assert_allclose(after, [wanted, wanted * slope[1] / slope[0], 0], atol=1e-12)
    assert not broadphase.beyond_planes(Params(), UPRIGHT, WORLD, [block], leaving=True)


@pytest.mark.parametrize(
    ("place", "slope"),
    [((HALF + 0.01, HALF + 0.01, 3), (0.6, 0.8)), ((HALF + 0.01, 0, 3), (1e-4, 1.0))],
)
def test_a_block_on_a_line_in_a_corner_or_along_a_wall_takes_the_full_tick(place, slope, x64):
    block, _ = on_line(place, 1.0, slope)
    assert broadphase.beyond_planes(Params(), UPRIGHT, WORLD, [block], leaving=True)
    # Nothing holds it up once it is outside.
    block, after = on_line([2 * c for c in place], 1.0, slope)
    assert not broadphase.beyond_planes(Params(), UPRIGHT, WORLD, [block], leaving=True)
    np.testing.assert_array_equal(after, np.array(block.v))
