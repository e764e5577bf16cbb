"""Rotations against SciPy, and the 32-sided prism against trying every face, edge and vertex."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import Vector
from tests.jaxsim.worlds.cartpole3d import twin

PRISMS = [(0.5, 0.1), (0.03, 0.5), (0.03, 4.0)]  # cart, pole, the longest pole


def columns(points: np.ndarray) -> Vector:
    return Vector(*(jnp.asarray(c) for c in points.T))


def rows(vector: Vector) -> np.ndarray:
    return np.stack([np.asarray(c) for c in vector], axis=-1)


def matrix(r: geo.Rotation) -> np.ndarray:
    return np.stack([rows(row) for row in r], axis=-2)


@pytest.fixture
def turns() -> Rotation:
    return Rotation.random(200, random_state=7)


def test_rotations_equal_those_of_scipy(turns, x64):
    r = geo.rotation(*turns.as_quat().T)
    np.testing.assert_allclose(matrix(r), turns.as_matrix(), atol=1e-15)
    points = np.random.default_rng(8).normal(size=(200, 3))
    np.testing.assert_allclose(
        rows(geo.rotate(r, columns(points))), turns.apply(points), atol=1e-14
    )
    back = turns.inv().apply(points)
    np.testing.assert_allclose(rows(geo.rotate_back(r, columns(points))), back, atol=1e-14)


def test_yaw_equals_a_rotation_about_z(turns, x64):
    draw = np.random.default_rng(9)
    angle, points = draw.uniform(-4, 4, 200), draw.normal(size=(200, 3))
    about_z = Rotation.from_rotvec(angle[:, None] * twin.UP)
    ours = geo.yaw(np.cos(angle), np.sin(angle), columns(points))
    np.testing.assert_allclose(rows(ours), about_z.apply(points), atol=1e-14)
    r = geo.rotation(*turns.as_quat().T)
    both = geo.yawed(np.cos(angle), np.sin(angle), r)
    np.testing.assert_allclose(matrix(both), (about_z * turns).as_matrix(), atol=1e-14)


def test_vector_arithmetic(x64):
    a, b = np.random.default_rng(10).normal(size=(2, 50, 3))
    u, v = columns(a), columns(b)
    np.testing.assert_array_equal(rows(geo.add(u, v)), a + b)
    np.testing.assert_array_equal(rows(geo.sub(u, v)), a - b)
    np.testing.assert_array_equal(rows(geo.scale(u, 3.0)), 3 * a)
    np.testing.assert_allclose(geo.dot(u, v), np.sum(a * b, axis=1), atol=1e-14)
    np.testing.assert_allclose(rows(geo.cross(u, v)), np.cross(a, b), atol=1e-14)
    reach = geo.box_reach(u, v)
    np.testing.assert_allclose(reach, np.sum(np.abs(a) * b, axis=1), atol=1e-14)


# Every degree and a half, none on a border between two faces or two vertices.
ANGLES = np.deg2rad(np.arange(0.37, 360, 1.5))


def test_face_direction_is_the_middle_of_the_sector(x64):
    sector = 2 * np.pi / 32
    middle = (np.floor(ANGLES / sector) + 0.5) * sector
    for size in (1e-9, 1.0, 1e9):
        cos, sin = geo.face_direction(size * np.cos(ANGLES), size * np.sin(ANGLES))
        np.testing.assert_allclose(cos, np.cos(middle), atol=1e-15)
        np.testing.assert_allclose(sin, np.sin(middle), atol=1e-15)


def test_vertex_direction_is_the_nearest_vertex(x64):
    sector = 2 * np.pi / 32
    nearest = np.round(ANGLES / sector) * sector
    cos, sin = geo.vertex_direction(np.cos(ANGLES), np.sin(ANGLES))
    np.testing.assert_allclose(cos, np.cos(nearest), atol=1e-15)
    np.testing.assert_allclose(sin, np.sin(nearest), atol=1e-15)


def test_directions_of_the_zero_vector_are_unit_vectors(x64):
    for function in (geo.face_direction, geo.vertex_direction):
        cos, sin = function(jnp.float64(0.0), jnp.float64(0.0))
        assert float(cos * cos + sin * sin) == pytest.approx(1, abs=1e-15)
        assert float(cos) > 0.99


def points_around(radius: float, half: float, draw: np.random.Generator) -> np.ndarray:
    """Points outside, inside and on the prism: faces, edges and vertices."""
    sizes = np.array([radius, radius, half])
    anywhere = draw.normal(size=(400, 3)) * 2 * sizes
    inside = draw.uniform(-0.6, 0.6, (100, 3)) * sizes
    near = draw.normal(size=(100, 3))
    near = near / np.maximum(np.abs(near).max(axis=1, keepdims=True), 1e-9) * sizes
    angle = np.arange(32) * (np.pi / 16)
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.column_stack([ring, np.full(32, half)]) * [1, 1, -1]
    sides = np.column_stack([ring, draw.uniform(-half, half, 32)])
    rims = np.column_stack([0.5 * (ring + np.roll(ring, -1, axis=0)), np.full(32, half)])
    out = 1 + draw.uniform(0.001, 1, (32, 1))
    axis = np.column_stack([np.zeros((5, 2)), np.linspace(-2.1, 2.1, 5) * half])
    return np.concatenate(
        [
            anywhere,
            inside,
            near,
            vertices,
            sides,
            rims,
            vertices * out,
            sides * out,
            rims * out,
            axis,
        ]
    )


@pytest.mark.parametrize(("radius", "half"), PRISMS)
def test_nearest_point_equals_brute_force(radius, half, x64):
    points = points_around(radius, half, np.random.default_rng(11))
    near = geo.nearest_on_prism(columns(points), radius, half, jnp.float64(1.0))
    nearest, normals, distances = rows(near.point), rows(near.normal), np.asarray(near.distance)
    compared = 0
    for p, point, normal, distance in zip(points, nearest, normals, distances, strict=True):
        at, direction, expected = twin.nearest_on_prism(p, radius, half)
        assert distance == pytest.approx(expected, abs=1e-14)
        np.testing.assert_allclose(np.linalg.norm(normal), 1, atol=1e-12)
        # On the surface, or as near to two faces as makes no difference, any of them may do.
        unclear = abs(expected) < 1e-9 or (expected < 0 and ambiguous(p, radius, half))
        if not unclear:
            compared += 1
            np.testing.assert_allclose(point, at, atol=1e-12)
            # The direction is a difference of points divided by their distance.
            np.testing.assert_allclose(normal, direction, atol=1e-14 / abs(expected) + 1e-12)
    assert compared > 0.7 * len(points)


def ambiguous(p: np.ndarray, radius: float, half: float) -> bool:
    """Whether a point inside is equally near to two faces."""
    normals, offsets, _ = twin.prism_faces(radius, half)
    first, second = np.sort(offsets - normals @ p)[:2]
    return bool(second - first < 1e-12)


def test_single_precision_is_as_good_as_its_rounding():
    """No branch of the closest point may amplify rounding: 1e-6 at distances of a metre."""
    points = points_around(0.5, 0.1, np.random.default_rng(12)).astype(np.float32)
    near = geo.nearest_on_prism(columns(points), 0.5, 0.1, jnp.float32(1.0))
    expected = [twin.nearest_on_prism(p.astype(float), 0.5, 0.1)[2] for p in points]
    np.testing.assert_allclose(near.distance, expected, atol=1e-6)
