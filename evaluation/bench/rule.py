"""The agent `pd` on plain numbers, for programs that play one episode from Python."""

from collections.abc import Sequence

RATE_GAIN = 0.3
"""s, weight of the lean's rate against the lean."""


def pd(quaternion: Sequence[float], rate: Sequence[float]) -> int:
    """Push the cart under the lean of the pole and its rate, as the agent `pd` does.

    Args:
      quaternion: x, y, z, w, pole to world.
      rate: angular velocity of the pole, rad/s, world frame.

    Returns:
      Code of CartPole3D's push.
    """
    x, y, z, w = quaternion
    wx, wy, wz = rate
    lx, ly, lz = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    ux = lx + RATE_GAIN * (wy * lz - wz * ly)
    uy = ly + RATE_GAIN * (wz * lx - wx * lz)
    if abs(ux) >= abs(uy):
        return 1 if ux > 0 else 2 if ux < 0 else 0
    return 3 if uy > 0 else 4
