"""The forecast of leans is that of plain loops in float64, with its numbers once more."""

import math

import jax
import numpy as np

from jaxsim.agents import leans
from jaxsim.worlds.cartpole3d.types import Observation, Vector

DT, RATE_GAIN, FALL, TURN = 0.02, 0.3, 9.861, 0.9148
PUSHED, SPUN, PULL = 0.992, 10.05, -0.895
UP = 1 - 2 * (0.01**2 + 0.005**2)  # of the pole's axis at first
SCENES = {
    "hit at the pole": ((2.4, 0.1, 1.3), (-6.0, 0.0, 0.5), (9, 9, 9), (0, 0, 0), 0.0),
    "hit at the cart": ((-1.5, 1.4, 0.3), (4.0, -4.0, 0.2), (3.0, 3.0, 8.0), (1, 1, 1), 0.0),
    "blocks meet": ((1.6, 0.0, 1.0), (-3.0, 0.0, 0.0), (3.2, 0.1, 1.0), (-9.0, 0.0, 0.0), 0.0),
    "bounced off a wall": ((4.3, -0.2, 0.9), (8.0, 0.0, 0.4), (0.0, 4.2, 9.0), (0, 9, 9), 0.0),
    "cart at a wall": ((0.0, 0.0, 5.0), (1.0, 2.0, 3.0), (1.0, -2.0, 6.0), (-1, 2, 3), 4.3),
}
"""Place, m, and velocity, m/s, of two blocks, and place of the cart along x and y, m."""


def block_speeds(places, speeds):
    after = []
    for p, v in zip(places, speeds, strict=True):
        v = v * (1 - DT * float(np.float32(0.04)) * (1 + np.linalg.norm(v)))
        for axis, (low, high) in enumerate(((-4.45, 4.45), (-4.45, 4.45), (0.45, 9.45))):
            if (p[axis] <= low and v[axis] < 0) or (p[axis] >= high and v[axis] > 0):
                v[axis] *= -1
        after.append(v)
    d, w = places[1] - places[0], after[1] - after[0]
    if d @ d <= 1 and w @ d < 0:
        change = (w @ d) / (d @ d) * d
        after = [after[0] + change, after[1] - change]
    return after


def away_from(part, axis, place):
    """Vector from the nearest point of cart or pole to a place, and height of that point."""
    if part == "pole":
        along = np.clip(place @ axis, 0.05, 1.05)
        return place - along * axis, along
    flat = np.hypot(place[0], place[1])
    share = max(flat - 0.5, 0) / flat
    return np.array([*place[:2] * share, place[2] - np.clip(place[2], -0.1, 0.1)]), 0.0


def forecast(reference, place, speed, cart):
    """Share of ticks upright, least gap, and lean at the end."""
    x, v, rate = np.array([cart, -cart]), np.array([0.2, -0.1]), np.array([0.03, 0.05]) * UP
    lean = np.array([0.01, -0.02]) + DT * rate
    shift, kick = np.zeros((2, 3)), np.zeros((2, 3))
    up, least = 0, 9.0
    for t in range(48):
        wanted = reference if t < 8 else np.zeros(2)
        off = lean + RATE_GAIN * rate - wanted
        force, along = np.zeros(2), int(abs(off[1]) > abs(off[0]))
        force[along] = 10 * (np.sign(off[along]) if along == 0 else (1 if off[1] > 0 else -1))
        v, rate = (
            v + DT * (PUSHED * force + PULL * lean),
            rate + DT * (FALL * lean - TURN * force),
        )
        speed = block_speeds(place, speed)
        axis = np.array([*lean, 1 - 0.5 * (lean @ lean)])
        gap = 9.0
        for part, radius in (("cart", 0.0), ("pole", 0.03)):
            relative = [p + s - [*x, 0.2] for p, s in zip(place, shift, strict=True)]
            each = [away_from(part, axis, r) for r in relative]
            number = int(np.argmin([a @ a for a, _ in each]))
            (to, height), fast = each[number], speed[number] + kick[number]
            distance = np.linalg.norm(to)
            n, here = to / distance, distance - 0.5 - radius
            closing = n @ fast - n[:2] @ (v + height * rate)
            soft = (n[:2] @ n[:2]) * (PUSHED - 2 * TURN * height + SPUN * height**2)
            wanted_speed = -closing - here * (1 if here > 0 else 0.08) / DT
            impulse = max(wanted_speed / (1 + soft), 0) if here <= 0.01 else 0
            v = v - (PUSHED - TURN * height) * impulse * n[:2]
            rate = rate - (SPUN * height - TURN) * impulse * n[:2]
            kick[number] += impulse * n
            gap = min(gap, here)
        for i in range(2):
            if abs(x[i] + DT * v[i]) > 4.449 and x[i] * v[i] > 0:
                rate[i] += TURN / PUSHED * v[i]
                v[i] = 0
        x, lean = x + DT * v, lean + DT * rate
        place = [p + DT * s for p, s in zip(place, speed, strict=True)]
        shift = shift + DT * kick
        if up == t:
            least = min(least, gap)
            up += max(abs(lean)) <= math.sin(math.radians(10))
    return up / 48, least, np.linalg.norm(lean + RATE_GAIN * rate)


def test_the_forecast_is_that_of_plain_loops():
    p, v, q, w, cart = (
        np.array(column, np.float32) for column in zip(*SCENES.values(), strict=True)
    )
    zero, one = np.zeros(len(cart), np.float32), np.ones(len(cart), np.float32)
    # A lean of 0.01 along x and of -0.02 along y, and its rate: about y, and about -x.
    quaternion = (0.01 * one, 0.005 * one, zero, one)
    observation = Observation(
        Vector(cart, -cart, zero),
        Vector(0.2 * one, -0.1 * one, zero),
        quaternion,
        Vector(-0.05 * one, 0.03 * one, zero),
        (Vector(*p.T), Vector(*q.T)),
        (Vector(*v.T), Vector(*w.T)),
        (one > 0, one > 0),
    )
    ours = jax.device_get(jax.jit(leans.outlook)(observation))
    ends = set()
    for i, name in enumerate(SCENES):
        for j, reference in enumerate(leans.LEANS.astype(np.float64)):
            place, speed = ([a[i].astype(np.float64) for a in pair] for pair in ((p, q), (v, w)))
            expected = forecast(reference, place, speed, float(cart[i]))
            np.testing.assert_allclose(
                [leaf[i, j] for leaf in ours], expected, atol=2e-4, err_msg=f"{name}, lean {j}"
            )
            ends.add((name, expected[0] < 1))
    assert len(ends) == 6
