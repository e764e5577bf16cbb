"""An agent for the learning track: pushes the cart under the pole, and learns how hard to look.

It balances with one number, how much the rate of the lean counts against the lean. While it trains
it tries some; for validation it keeps the one that has scored best.
"""

import random

from evaluation.gvgai import TrackAgent as Base

TRIED = (0.1, 0.2, 0.3, 0.5, 0.8)  # s


class Agent(Base):
    """Balances by the lean of the pole and its rate."""

    def __init__(self, sso=None, elapsed_timer=None):
        self.random = random.Random(0)
        self.scores = {gain: [] for gain in TRIED}
        self.gain = TRIED[2]

    def init(self, sso, elapsed_timer):
        """Try a gain, or in validation take the best one."""
        means = {gain: sum(s) / len(s) for gain, s in self.scores.items() if s}
        if sso.isValidation and means:
            self.gain = max(means, key=means.get)
        else:
            self.gain = self.random.choice(TRIED)

    def act(self, sso, elapsed_timer):
        """Push along the axis in which the pole leans and falls more."""
        x, y = sso.avatarOrientation
        rate_x, rate_y = falling(sso.cartpole["pole"])
        along_x, along_y = x + self.gain * rate_x, y + self.gain * rate_y
        if abs(along_x) >= abs(along_y) or "ACTION_UP" not in sso.availableActions:
            return "ACTION_RIGHT" if along_x > 0 else "ACTION_LEFT"
        return "ACTION_UP" if along_y > 0 else "ACTION_DOWN"

    def result(self, sso, elapsed_timer):
        """Note the score, and choose a training level."""
        if not sso.isValidation:
            self.scores[self.gain].append(sso.gameScore)
        return self.random.randrange(3)


def falling(pole):
    """Rate of change of the horizontal part of the pole's axis, 1/s."""
    x, y, z, w = pole["quaternion"]
    wx, wy, wz = pole["angularVelocity"]
    ax, ay, az = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    return wy * az - wz * ay, wz * ax - wx * az
