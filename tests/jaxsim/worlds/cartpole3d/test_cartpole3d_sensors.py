"""What the sensors report beyond plain copies of the state."""

import numpy as np

from jaxsim.worlds.cartpole3d import Config, observe, state_from_arrays


def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of quaternions (x, y, z, w), (..., 4)."""
    u, v, s, t = a[..., :3], b[..., :3], a[..., 3:], b[..., 3:]
    vector = s * v + t * u + np.cross(u, v)
    return np.concatenate([vector, s * t - (u * v).sum(axis=-1, keepdims=True)], axis=-1)


def about(axis: int, angle: np.ndarray) -> np.ndarray:
    """Quaternions of turns about a coordinate axis, (..., 4)."""
    q = np.zeros((*np.shape(angle), 4))
    q[..., axis], q[..., 3] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    return q


def from_matrix(q: np.ndarray) -> np.ndarray:
    """The sign that comes out when a quaternion is found from its rotation matrix."""
    trace = 4 * q[3] ** 2 - 1
    leading = q[3] if trace > 0 else q[np.argmax(np.abs(q[:3]))]
    return q if leading > 0 else -q


def test_a_pole_that_has_spun_half_way_round_is_reported_with_the_sign_of_bullet(x64):
    spin, lean = np.meshgrid(np.linspace(-6.2, 6.2, 100), [-1.2, -0.1, 0.0, 0.17, 1.2])
    spin, lean = spin.ravel(), lean.ravel()
    yaw = np.linspace(-3.0, 3.0, spin.size)
    joint = turned(about(0, lean), about(2, spin))
    lanes = spin.size
    state = state_from_arrays(
        {
            "cart_pos": np.zeros((lanes, 2)),
            "cart_yaw": yaw,
            "cart_vel": np.zeros((lanes, 2)),
            "cart_yaw_rate": np.zeros(lanes),
            "pole_jq": joint,
            "pole_jw": np.zeros((lanes, 3)),
        },
        Config(dtype="float64"),
    )
    expected = np.array([from_matrix(q) for q in turned(about(2, yaw), joint)])
    assert 0.1 < (expected[:, 3] < 0).mean() < 0.9  # both branches of the rule
    reported = np.stack(observe(state).pole_quaternion, axis=-1)
    np.testing.assert_allclose(reported, expected, atol=1e-14)
