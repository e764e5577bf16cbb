"""The evidence of `wow` is that of plain loops in float64, with its table of numbers once more.

Predictions of cart, pole and blocks are taken from the agent's helpers, which have their tests.
"""

import math
from dataclasses import fields, replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxsim.agents import bank, sight, wow
from jaxsim.agents.detection import Transition
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d.types import Observation, Pose, Sphere, Vector

LANES = 320
STRUCTURE = (0.0257, 0.0419, 0.0425, 0.0448, 0.0190, 0.0072, 0.0844, 0.0230, 2.85, 3.39, 13.5)
PLACES, SPEEDS = (0.0444, 0.0433, 0.410), (0.422, 0.427, 0.425)
FORECAST = {
    10: ((0.2975, 1.124, 0.520), (0.462, 1.013, 0.524)),
    25: ((2.573, 1.644, 0.452), (4.376, 1.433, 0.822)),
    35: ((6.214, 1.422, 0.253), (9.632, 1.822, 0.473)),
    45: ((10.55, 1.338, 0.541), (20.75, 1.218, 0.472)),
    55: ((19.52, 1.826, 0.593), (28.01, 1.821, 0.463)),
    65: ((19.68, 1.572, 0.542), (38.51, 1.013, 0.472)),
    75: ((8.750, 1.142, 0.577), (35.76, 1.012, 0.472)),
}


def tail(x, begin, shape, scale, published):
    excess = max(x - begin, 0) / scale
    return 1 - math.exp(-(shape * excess if published else excess**shape))


def beyond(x, limit, published):
    return tail(x, limit, 1.5, 0.25 * max(1, limit), published)


def odd_error(difference, limit, published):
    excess = abs(difference) - limit
    return tail(excess, 0, 1.5, 0.25, published) if 0 < excess < 1 else 0


def relations(s):
    living = [
        (p, v / np.linalg.norm(v))
        for p, v, alive in zip(s.p, s.v, s.alive, strict=True)
        if alive and np.linalg.norm(v) > 1e-3
    ]
    meets = aligned = crossing = False
    for i, (p, u) in enumerate(living):
        to_cart = np.array([s.x, s.y, 0]) - p
        meets |= np.linalg.norm(np.cross(u, to_cart)) < 0.01 and u @ to_cart > 0
        for q, w in living[:i]:
            aligned |= abs(u @ w) > math.cos(0.1)
            across = np.cross(u, w)
            sine = np.linalg.norm(across)
            if sine < 1e-3:
                apart = np.linalg.norm(np.cross(p - q, u))
            else:
                apart = abs((p - q) @ across) / sine
            crossing |= apart < 0.025
    return 0.5 * meets + 0.5 * aligned + 0.2 * crossing


def opening(s, published):
    limits = [(s.x, 3.0), (s.y, 3.0), (s.vx, 0.02), (s.vy, 0.02)]
    limits += [(c, 0.01) for c in s.q[:3]]
    limits += zip(s.spin, (0.028, 0.028, 0.58), strict=True)
    total = sum(beyond(abs(value), limit, published) for value, limit in limits)
    violations = 0
    for p, v, alive in zip(s.p, s.v, s.alive, strict=True):
        if not alive:
            continue
        odd = sum(beyond(abs(c), 4.5, published) for c in p[:2]) + beyond(p[2], 9.5, published)
        if max(abs(p[0]), abs(p[1])) < 4 and 1 < p[2] < 9:
            odd += sum(beyond(abs(c), 11.5, published) for c in v)
            odd += tail(4.5 - min(abs(v)), 0, 1.5, 0.25 * 4.5, published)
        total += odd
        violations += odd > 0.1
    total += not 1 <= s.count <= 6
    total += not 2 <= s.count <= 4
    return min(total + relations(s), 4), violations


def structure(after, pose, velocity, spin, published):
    sign = -1 if pose.q @ after.q < 0 else 1
    differences = [pose.x - after.x, pose.y - after.y]
    differences += [velocity[0] - after.vx, velocity[1] - after.vy]
    differences += [*(sign * pose.q - after.q), *(spin - after.spin)]
    each = [odd_error(d, limit, published) for d, limit in zip(differences, STRUCTURE, strict=True)]
    return 0.125 * each[-1] if published else 0.25 * max(each)


def block_error(before, after, speeds, published):
    largest = 0
    for i in range(4):
        x, y, z = after.p[i]
        if not (before.alive[i] and after.alive[i] and max(abs(x), abs(y)) <= 4 and 1 <= z <= 8):
            continue
        place = before.p[i] + 0.02 * speeds[i]
        pairs = [*zip(after.p[i] - place, PLACES, strict=True)]
        pairs += zip(after.v[i] - speeds[i], SPEEDS, strict=True)
        largest = max(largest, *(odd_error(d, limit, published) for d, limit in pairs))
    return min(largest, 0.1)


def forecast_error(m, s, p, alive, published):
    """Evidence of the forecast places of blocks at some ticks, in place."""
    squares, counts = np.zeros(3), np.zeros(3)
    for i in range(4):
        for axis in range(3):
            pair = s.p[i, axis], p[i, axis]
            near = all(1 <= c <= 8 for c in pair) if axis == 2 else max(map(abs, pair)) <= 4
            if s.alive[i] and alive[i] and near:
                squares[axis] += (pair[0] - pair[1]) ** 2
                counts[axis] += 1
    if m.ticks not in FORECAST:
        return
    heights, places = FORECAST[m.ticks]
    err = squares.sum() / max(counts.sum(), 1)
    evidence = max(
        tail(squares[2] / max(counts[2], 1), *heights, published), tail(err, *places, published)
    )
    if m.ticks >= 55 and m.run == 0 and err <= places[0]:
        evidence = 0
    m.errors += 0.25 * evidence * (m.run + 1 if m.ticks >= 25 else 1)
    if not evidence:
        m.run = 0
        return
    m.run += 1
    share = squares[2] / squares.sum()
    if share > 0.94:
        m.tags[6] += 1
    elif share < 0.5:
        m.tags[7] += 1


def divergence(m):
    return min(0.5 * (max(m.listed / max(m.entries, 1) - 0.04, 0) / 0.09) ** 2, 1)


def failed(m):
    return m.ticks + 1 < 198


def declared(m, published):
    e = m.episode
    if e < 17:
        return 0.0
    recent = np.mean([(m.ticks + 1) / 200, *m.recent[:-1]])
    worse = 0.15 * min(0.5 * (max(0.88835 - recent, 0) / 0.08242) ** 2, 1) if e >= 25 else 0
    weight = m.appeared
    total = 0.0
    if 19 <= e < 34:
        often = min(0.4 * (1 + m.diverged), 17 / max(e - 16, 1))
        weight += m.errors + max(divergence(m) * often, worse)
        total = 0.25 * m.opening
    share = (m.failures + failed(m)) / (e + 1)
    row = m.failed_row + 1 if failed(m) else 0
    failing = 1 if row > 4 else np.clip((share - 0.2) / 0.05, 0, 1)
    total += (m.declared + weight) * min(1, weight + failing)
    rate = sum(m.tags[2:]) / (e + 1)
    if 20 <= e < 22:
        total += tail(rate, 2.2598, 2.1238, 0.5830, published)
    elif 22 <= e < 35:
        total += tail(rate, 2.8153, 2.4171, 0.7317, published)
    if failing >= 1 and e >= 34:
        total = max(total, 0.5)
    return min(max(total, m.declared), 1)


def started(m, s, published):
    number, violations = opening(s, published)
    counted = number > 0.1
    m.ticks, m.entries = 0, int(counted)
    m.listed = m.opening = number if counted else 0
    m.tags[2] += violations


def continued(m, before, after, expected, published):
    of_pole = structure(after, expected.pose, expected.velocity, expected.spin, published)
    m.hits += of_pole > 0
    number = of_pole if m.hits > 4 else 0
    number += block_error(before, after, expected.speeds, published)
    number += min(relations(after), 0.1)
    if m.entries < 17:
        m.listed, m.entries = m.listed + number, m.entries + 1
    m.ticks += 1
    m.tags[1] += 0.01 * (of_pole > 0)
    if after.count != before.count:
        m.appeared = max(m.appeared, 1)
        m.tags[8] += 10
    forecast_error(m, after, expected.places, expected.alive, published)


def ended(m, published):
    if m.episode >= 0:
        m.declared, last = declared(m, published), m.ticks + 1
        m.since = m.since + 1 if m.declared >= 0.5 else 0
        m.diverged = m.diverged + 1 if divergence(m) > 0.1 else 0
        m.failures += failed(m)
        m.failed_row = m.failed_row + 1 if failed(m) else 0
        m.recent = np.concatenate([[last / 200], m.recent[:-1]])
    m.episode += 1
    m.ticks = m.listed = m.entries = m.opening = m.errors = m.run = m.appeared = m.hits = 0


# Draws ------------------------------------------------------------------------------------------


def around(draw, limit, size, most=0.25, share=0.06):
    """Numbers of both signs up to a limit, and a share of them up to `most` scales beyond."""
    number = limit * draw.random(size)
    far = draw.random(size) < share
    number[far] = limit + max(1, limit) * most * draw.random(far.sum())
    return np.where(draw.random(size) < 0.5, number, -number)


def vector(a):
    return Vector(*np.moveaxis(np.asarray(a, np.float32), -1, 0))


def first_reports(draw):
    def each(limit):
        return around(draw, limit, LANES)

    def some(share):
        return draw.random(LANES) < share

    p = np.stack([around(draw, limit, (LANES, 4)) for limit in (4.5, 4.5, 9.5)], -1)
    p[..., 2] = np.abs(p[..., 2])
    v = np.where(draw.random((LANES, 4, 3)) < 0.5, 1, -1) * draw.uniform(4.4, 11.6, (LANES, 4, 3))
    x, y = each(3.0), each(3.0)
    to_cart = np.stack([x, y, np.zeros(LANES)], -1) - p[:, 0]
    v[:, 0] = np.where(some(0.2)[:, None], to_cart, v[:, 0])
    v[:, 0] = np.where(some(0.1)[:, None], -to_cart, v[:, 0])
    turned = v[:, 0] + draw.choice([0.02, 0.08, 0.2], (LANES, 1)) * np.roll(v[:, 0], 1, -1)
    v[:, 1] = np.where(some(0.3)[:, None], turned, v[:, 1])
    beside = some(0.2)
    v[:, 1] = np.where(beside[:, None], -v[:, 0], v[:, 1])
    apart = draw.uniform(0, 0.03, (LANES, 3))
    p[:, 1] = np.where(beside[:, None], p[:, 0] + 0.2 * v[:, 0] + apart, p[:, 1])
    crossing = p[:, 2] + 0.3 * v[:, 2] - 0.2 * v[:, 3]
    p[:, 3] = np.where(some(0.2)[:, None], crossing, p[:, 3])
    p[:, 3, 2] += np.where(some(0.3), draw.uniform(0, 0.08, LANES), 0)
    qx, qy, qz = (each(0.01) for _ in range(3))
    qw = np.sqrt(1 - qx**2 - qy**2 - qz**2)
    spin = np.stack([each(0.028), each(0.028), each(0.58)], -1)
    none = np.zeros(LANES)
    pose = Pose(*(np.float32(c) for c in (x, y, none + 1, none, qx, qy, qz, qw)))
    alive = np.arange(4) < draw.choice([0, 1, 2, 3, 4, 4, 4], LANES)[:, None]
    count = np.where(draw.random(LANES) < 0.2, draw.integers(4, 9, LANES), alive.sum(1))
    return Sighting(
        pose,
        np.float32(each(0.02)),
        np.float32(each(0.02)),
        vector(spin),
        Sphere(vector(p), vector(v), alive),
        vector(v[:, 0]),
        np.int32(count),
    )


def lane(tree, i):
    """Numbers of one lane."""
    s, r = tree, tree.reported
    p, v = (
        np.stack([np.asarray(c, np.float64)[i] for c in part], -1)
        for part in (s.block.p, s.block.v)
    )
    return SimpleNamespace(
        **{name: float(getattr(r, name)[i]) for name in ("x", "y")},
        q=np.array([float(getattr(r, name)[i]) for name in ("qx", "qy", "qz", "qw")]),
        vx=float(s.vx[i]),
        vy=float(s.vy[i]),
        spin=np.array([float(c[i]) for c in s.spin]),
        p=p,
        v=v,
        alive=np.asarray(s.block.alive)[i],
        count=int(s.count[i]),
    )


def predictions(before, action):
    """Pose, velocities and spin of cart and pole, and velocities of blocks, a tick later."""
    pose, velocity = sight.predicted(wow.NOMINAL, before, sight.push(wow.NOMINAL, action))
    spin = sight.spin_of(pose, velocity)
    return pose, velocity, spin, bank.blocks_after(wow.NOMINAL, before.block)


def later_reports(draw, before, pose, velocity, spin, speeds):
    """Observations that differ from predictions by errors about their limits."""

    def off(limit, size=LANES, most=0.2):
        return around(draw, limit, size, most=most, share=0.05).astype(np.float32)

    sign = np.where(draw.random(LANES) < 0.3, -1, 1).astype(np.float32)
    names = ("qx", "qy", "qz", "qw")
    turned = {
        name: sign * (np.asarray(getattr(pose, name)) + off(limit))
        for name, limit in zip(names, STRUCTURE[4:8], strict=True)
    }
    reported = replace(
        pose,
        x=np.asarray(pose.x) + off(STRUCTURE[0]),
        y=np.asarray(pose.y) + off(STRUCTURE[1]),
        **turned,
    )
    p = np.stack(before.block.p, -1) + 0.02 * np.stack(speeds, -1)
    p += np.stack([off(limit, (LANES, 4), 0.06) for limit in PLACES], -1)
    v = np.stack(speeds, -1)
    v = v + np.stack([off(limit, (LANES, 4), 0.06) for limit in SPEEDS], -1)
    alive = before.block.alive ^ (draw.random((LANES, 4)) < 0.05)
    more = draw.random(LANES) < 0.1
    return Sighting(
        reported,
        np.asarray(velocity.vx) + off(STRUCTURE[2]),
        np.asarray(velocity.vy) + off(STRUCTURE[3]),
        Vector(
            *(np.asarray(c) + off(n, most=0.1) for c, n in zip(spin, STRUCTURE[8:], strict=True))
        ),
        Sphere(vector(p), vector(v), alive),
        before.newest,
        before.count + more.astype(np.int32),
    )


def memories(draw, block):
    """Memories with little evidence, whose forecasts are about as far off as their tails begin."""

    def small(most):
        return np.float32(np.where(draw.random(LANES) < 0.5, 0, most * draw.random(LANES)))

    def whole(low, high):
        return draw.integers(low, high, LANES, dtype=np.int32)

    episode, due = whole(14, 38), draw.integers(0, 7, LANES)
    tick = np.array([9, 24, 34, 44, 54, 64, 74])[due]
    size = np.sqrt([0.5, 4.0, 9.0, 18.0, 27.0, 35.0, 30.0])[due]
    axes = np.array([[1, 1, 1], [1, 1, 0.1], [0.1, 0.1, 1], [0, 0, 0]])[draw.integers(0, 4, LANES)]
    off = draw.normal(size=(LANES, 4, 3)) * (size[:, None] * axes)[:, None]
    v = draw.uniform(-9, 9, off.shape)
    p = np.stack(block.p, -1) + off - 0.02 * v
    return wow.Memory(
        episode=episode,
        ticks=np.int32(np.where(draw.random(LANES) < 0.95, tick, whole(0, 200))),
        listed=small(3),
        entries=whole(0, 19),
        opening=small(1),
        forecast=Sphere(vector(p), vector(v), draw.random((LANES, 4)) < 0.9),
        errors=small(0.2),
        run=whole(0, 3),
        appeared=np.float32(draw.random(LANES) < 0.1),
        hits=whole(2, 7),
        tags=np.float32(draw.uniform(0, 0.22, (LANES, 9)) * (episode[:, None] + 1) * 2),
        declared=small(0.6),
        since=whole(0, 4),
        diverged=whole(0, 3),
        failures=whole(0, 9),
        failed_row=whole(0, 6),
        recent=np.float32(draw.uniform(0.75, 1, (LANES, 7))),
    )


def plain(memory, i):
    """Memory of one lane as numbers that the loops change in place."""
    names = [field.name for field in fields(memory) if field.name != "forecast"]
    whole = ("episode", "ticks", "entries", "run", "hits", "since", "diverged", "failures")
    one = {name: np.array(getattr(memory, name)[i], np.float64) for name in names}
    one = {name: value if value.ndim else float(value) for name, value in one.items()}
    return SimpleNamespace(**one | {name: int(one[name]) for name in (*whole, "failed_row")})


def agree(memory, expected):
    for field in fields(memory):
        if field.name != "forecast":
            ours, theirs = getattr(memory, field.name), [getattr(m, field.name) for m in expected]
            # Squares of float32 that differ by 1e-6 of 10 m, and powers of small excesses.
            np.testing.assert_allclose(ours, np.stack(theirs), atol=2e-4, err_msg=field.name)


@pytest.mark.parametrize("published", [False, True])
def test_evidence_is_that_of_plain_loops(published):
    """At first observations, at later ones, and as the next episode begins."""
    draw = np.random.default_rng(5)
    before, action = first_reports(draw), draw.integers(0, 5, LANES, dtype=np.int32)
    predict = jax.jit(jax.vmap(predictions))
    pose, velocity, spin, speeds = jax.device_get(predict(before, action))
    after = later_reports(draw, before, pose, velocity, spin, speeds)
    memory = memories(draw, after.block)
    detector, first = wow.detector(published), draw.random(LANES) < 0.4

    def both(memory, before, action, after, first):
        watched = detector.watch(memory, Transition(before, action, after, first))
        return *watched, detector.begin(memory), wow.flown(memory.forecast)

    report = jax.tree.map(
        lambda a, b: np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b), before, after
    )
    run = jax.jit(jax.vmap(both))
    evidence, prediction, initial, flown = jax.device_get(
        run(memory, before, action, report, first)
    )
    places, of_pose = np.stack(flown.p, -1).astype(np.float64), ("qx", "qy", "qz", "qw")
    watched, opened, probabilities = [], [], []
    for i in range(LANES):
        expected = SimpleNamespace(
            pose=SimpleNamespace(
                x=float(pose.x[i]),
                y=float(pose.y[i]),
                q=np.array([float(getattr(pose, name)[i]) for name in of_pose]),
            ),
            velocity=(float(velocity.vx[i]), float(velocity.vy[i])),
            spin=np.array([float(c[i]) for c in spin]),
            speeds=np.stack([c.astype(np.float64)[i] for c in speeds], -1),
            places=places[i],
            alive=memory.forecast.alive[i],
        )
        watched.append(plain(memory, i))
        opened.append(plain(memory, i))
        if first[i]:
            started(watched[-1], lane(before, i), published)
        else:
            continued(watched[-1], lane(before, i), lane(after, i), expected, published)
        probabilities.append(declared(watched[-1], published))
        ended(opened[-1], published)
    agree(evidence, watched)
    agree(initial, opened)
    levels = [
        np.argmax(m.tags) if p >= 0.5 else 0 for m, p in zip(watched, probabilities, strict=True)
    ]
    np.testing.assert_allclose(prediction.probability, probabilities, atol=2e-4)
    np.testing.assert_array_equal(prediction.level, levels)
    assert (prediction.threshold == 0.5).all()
    assert len(set(levels)) > 5


def test_the_cautious_push_costs_least_by_plain_numbers():
    """Leans, the distance of the nearest block, and flight lines, for each of five pushes."""
    draw, pushes = (
        np.random.default_rng(4),
        {0: (0, 0), 1: (10, 0), 2: (-10, 0), 3: (0, 10), 4: (0, -10)},
    )
    choose, chosen = jax.jit(jax.vmap(wow._cautious)), set()
    lanes = 150
    lean, turn = draw.uniform(0, 0.18, lanes), draw.uniform(0, 2 * np.pi, lanes)
    q = np.float32(
        [
            np.sin(lean / 2) * np.cos(turn),
            np.sin(lean / 2) * np.sin(turn),
            0 * lean,
            np.cos(lean / 2),
        ]
    )
    cart, speed, rate = (np.float32(size * draw.normal(size=(3, lanes))) for size in (1, 0.3, 0.3))
    p = np.float32(
        np.concatenate([draw.uniform(-3, 3, (4, 2, lanes)), draw.uniform(0, 3, (4, 1, lanes))], 1)
    )
    v = np.float32(draw.uniform(-9, 9, (4, 3, lanes)))
    v[0] = np.where(
        draw.random(lanes) < 0.3, np.stack([cart[0], cart[1], 0 * cart[0]]) - p[0], v[0]
    )
    alive = draw.random((4, lanes)) < 0.7
    observation = Observation(
        Vector(*cart), Vector(*speed), tuple(q), Vector(*rate),
        tuple(Vector(*one) for one in p), tuple(Vector(*one) for one in v), tuple(alive),
    )  # fmt: skip
    ours = np.asarray(choose(observation))
    ties = 0
    for k in range(lanes):
        qx, qy, qz, qw = (float(c[k]) for c in q)
        roll = np.arctan2(2 * (qy * qz + qw * qx), qw**2 - qx**2 - qy**2 + qz**2)
        pitch = np.arcsin(2 * (qw * qy - qx * qz))
        costs = {}
        for code, (fx, fy) in pushes.items():
            rolled = roll + 0.02 * (rate[0, k] + 0.02 * (9.861 * roll + 0.9148 * fy))
            pitched = pitch + 0.02 * (rate[1, k] + 0.02 * (9.861 * pitch - 0.9148 * fx))
            high, low = max(abs(rolled), abs(pitched)), min(abs(rolled), abs(pitched))
            slack = 1 - high / np.deg2rad(10)
            x = cart[0, k] + 0.04 * speed[0, k] + 0.0004 * fx
            y = cart[1, k] + 0.04 * speed[1, k] + 0.0004 * fy
            gap, lines = 10.0, 0.0
            for place, fast, alive_here in zip(p[:, :, k], v[:, :, k], alive[:, k], strict=True):
                if not alive_here:
                    continue
                rel = place - [x, y, 0.2]
                at_cart = np.hypot(max(np.hypot(*rel[:2]) - 0.5, 0), max(abs(rel[2]) - 0.1, 0))
                along = np.clip(rel[2], 0.05, 1.05)
                at_pole = np.linalg.norm(rel - along * np.array([pitched, -rolled, 1])) - 0.03
                gap = min(gap, max(min(at_cart, at_pole) - 0.5, 0))
                away = np.linalg.norm(np.cross(fast / np.linalg.norm(fast), [x, y, 0] - place))
                lines += 100 + 5 / (0.01 + away**2) if away < 0.1 else 0
            cost = 151 + 1 / max(slack, 1e-7) if slack > 0.9 else 100 / max(slack, 1e-3) ** 4
            cost += high**2 + low**2
            if slack >= 0.01:
                cost += lines
                if gap - 2 > 0.1:
                    cost += 1 / max(min(gap - 2, 8), 0.1)
                else:
                    cost += 10 + 1 / gap**2 if gap > 0.01 else 1000 + gap**2
            costs[code] = cost
        least = min(costs.values())
        # Costs of 100 and more, in float32, tell pushes apart that differ by more than 1e-4.
        assert costs[int(ours[k])] <= least * (1 + 1e-4)
        chosen.add(int(ours[k]))
        ties += sum(cost <= least * (1 + 1e-4) for cost in costs.values()) > 1
    assert len(chosen) >= 4 and ties < 50


@pytest.mark.parametrize(
    ("gap", "cost"),
    [(0.005, 1000.000025), (0.5, 14), (2.05, 10 + 1 / 2.05**2), (2.2, 5), (5, 1 / 3), (20, 1 / 8)],
)
def test_a_near_block_costs_more_than_any_far_one(gap, cost):
    assert float(wow._distance_cost(np.float32(gap))) == pytest.approx(cost, rel=1e-4)


@pytest.mark.parametrize(("away", "cost"), [(0.05, 100 + 5 / 0.0125), (0.2, 0), (0.0, 600)])
def test_a_place_in_a_flight_line_costs(away, cost):
    """Of blocks that exist; which way they fly does not matter."""
    flying = sight.Sighting.nothing()
    p, v = (np.array([[3.0, away, 0.0]] * 4, np.float32), np.array([[-7.0, 0, 0], [7, 0, 0]] * 2))
    block = Sphere(vector(p), vector(v), np.array([True, False, False, False]))
    one, both = block, replace(block, alive=np.array([True, True, False, False]))
    for blocks, number in ((one, 1), (both, 2)):
        costs = wow._line_cost(replace(flying, block=blocks), 0.0, 0.0)
        assert float(costs) == pytest.approx(number * cost, rel=1e-4)
