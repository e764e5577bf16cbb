"""The physics of levels 50 to 53 from its definitions, in NumPy: slow, and written another way."""

from dataclasses import dataclass

import numpy as np

PUSHES = np.array([0.0, 10.0, -10.0])  # N, by action


@dataclass(frozen=True)
class Twin:
    """A cart on a rail with a pole: Jacobians of the two centres, and a solved mass matrix.

    Attributes:
      length: of the pole, m.
      side_push: force away from the middle, N.
      zone_drag: of the five zones of the rail, from left to right.
    """

    length: float = 1.0
    side_push: float = 0.0
    zone_drag: tuple[float, ...] = (0.0,) * 5

    def tick(self, s: np.ndarray, push: float) -> np.ndarray:
        """(4,) position, velocity, angle and rate after one tick from `s` under a force in N."""
        x, v, angle, rate = s
        arm = 0.5 * self.length
        inertia = 0.1 * 0.08333333 * ((self.length + 0.006) ** 2 + 0.066**2)
        c = self.zone_drag[int(np.clip(int(x), -2, 2)) + 2]
        cart = np.array([[1.0, 0.0], [0.0, 0.0]])  # of (x, angle) to (x, z)
        pole = np.array([[1.0, arm * np.cos(angle)], [0.0, -arm * np.sin(angle)]])
        mass = cart.T @ cart + 0.1 * pole.T @ pole + np.diag([0.0, inertia])
        turning = -arm * rate**2 * np.array([np.sin(angle), np.cos(angle)])  # centripetal, (x, z)
        force = np.array([push + self.side_push * np.sign(x), 0.0])
        force += pole.T @ (0.1 * (np.array([0.0, -9.8]) - turning))
        for m, jacobian in ((1.0, cart), (0.1, pole)):
            u = jacobian @ [v, rate]
            force += jacobian.T @ (-m * u * (c + c * np.linalg.norm(u)))
        v, rate = np.array([v, rate]) + 0.02 * np.linalg.solve(mass, force)
        return np.array([x + 0.02 * v, v, angle + 0.02 * rate, rate])

    def play(self, start: np.ndarray, action: np.ndarray) -> np.ndarray:
        """(n + 1, 4) states after the hidden tick from `start` and after each of n actions."""
        s, path = start, []
        for push in (0.0, *PUSHES[action]):
            s = self.tick(s, push)
            path.append(s)
        return np.array(path)
