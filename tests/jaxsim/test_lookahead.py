"""Parts of the planner's rollouts, in closed form and by plain loops in float64."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import lookahead
from jaxsim.agents.lookahead import ForceField, LeanPlan, Model, Pushes
from jaxsim.backend import opaque_one
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import Params, Pose, Sphere, Vector, Velocity

FUTURES, HORIZON = 300, 60
PARAMS = Params(force=8.0, pole_length=2.0, cart_mass=1.5)


def model(
    on_lines=False,
    field=(0.0, 0.0, 0.0, 0.0),
    force=(0.0, 0.0),
    params=PARAMS,
    pushes=None,
    delay=0,
):
    size = params.force
    pushes = Pushes((1.0, 0.0), (0.0, 1.0), (size, size)) if pushes is None else pushes
    return Model(
        params, pushes, delay, Vector(*force, 0.0), ForceField(*field), jnp.asarray(on_lines)
    )


def futures(draw):
    """Futures near the walls, leaning about the limit, with blocks about near."""
    k = FUTURES
    lean, turn = draw.uniform(0, 0.2, k), draw.uniform(0, 2 * np.pi, k)
    qx, qy = (np.sin(lean / 2) * f(turn) for f in (np.cos, np.sin))
    x, y = (draw.choice([-1, 1], k) * draw.choice([4.44, 3.0, 2.7, 0.1], k) for _ in range(2))
    one, zero = np.ones(k, np.float32), np.zeros(k, np.float32)
    pose = Pose(*np.float32((x, y)), one, zero, *np.float32((qx, qy, 0 * qx, np.cos(lean / 2))))
    velocity = Velocity(
        *np.float32(draw.uniform(-1, 1, (2, k))), zero, *np.float32(draw.normal(size=(3, k)) * 0.3)
    )
    p = np.stack([x, y, 0 * x + 1.2]) + draw.uniform(-1, 1, (4, 3, k)) * [[0.9], [0.9], [1.9]]
    block = Sphere(
        Vector(*np.float32(p.swapaxes(0, 1))),
        Vector(*np.zeros((3, 4, k), np.float32)),
        draw.random((4, k)) < 0.3,
    )
    return pose, velocity, block


def freely(pose, velocity, fx, fy):
    r, body = geo.pole_to_cart(pose), dynamics.bodies(PARAMS)
    return dynamics.accelerate(PARAMS, body, pose, r, velocity, Vector(fx, fy, 0.0))


def axis_of(pose, k):
    qx, qy, qz, qw = (float(c[k]) for c in (pose.qx, pose.qy, pose.qz, pose.qw))
    return np.array([2 * (qx * qz + qw * qy), 2 * (qy * qz - qw * qx), 1 - 2 * (qx * qx + qy * qy)])


def spin_of(pose, velocity, k):
    """World angular velocity of the pole, by its quaternion."""
    q = np.array([float(c[k]) for c in (pose.qx, pose.qy, pose.qz)])
    w = np.array([float(c[k]) for c in (velocity.wx, velocity.wy, velocity.wz)])
    return w + 2 * np.cross(q, np.cross(q, w) + float(pose.qw[k]) * w)


def test_a_tick_costs_what_leans_walls_places_and_falls_cost():
    draw = np.random.default_rng(2)
    pose, velocity, block = futures(draw)
    tick, remaining = 7, 40
    plan = LeanPlan(
        *np.float32(draw.uniform(-0.2, 0.2, (2, HORIZON, FUTURES))),
        switch=draw.integers(5, 10, FUTURES),
        target_x=np.float32(draw.uniform(-3, 3, FUTURES)),
        target_y=np.float32(draw.uniform(-3, 3, FUTURES)),
        cap=np.float32(draw.uniform(0.03, 0.3, FUTURES)),
    )
    fell = draw.random(FUTURES) < 0.1
    now = lookahead._Now(
        pose,
        velocity,
        block,
        np.float32(draw.uniform(0, 5, FUTURES)),
        fell,
        (np.zeros((HORIZON, FUTURES), np.float32),) * 2,
        jnp.int32(tick),
        fell,
    )
    world, wind = model(force=(0.7, -0.4)), np.array([0.7, -0.4])

    def ticks(now):
        body = dynamics.bodies(PARAMS)
        after = lookahead._tick(world, body, plan, jnp.int32(remaining), now, False)[0]
        late = lookahead._tick(world, body, plan, jnp.int32(tick), now, False)[0]
        return after, late.cost

    after, late = jax.device_get(jax.jit(ticks)(now))
    np.testing.assert_array_equal(late, now.cost)  # the episode is over
    costs, references, pushes, falls = [], [], [], []
    for k in range(FUTURES):
        x, y, vx, vy = (float(c[k]) for c in (pose.x, pose.y, velocity.vx, velocity.vy))
        axis = axis_of(pose, k)
        rate = np.cross(spin_of(pose, velocity, k), axis)
        if tick < plan.switch[k]:
            reference = np.array([plan.lean_x[tick, k], plan.lean_y[tick, k]])
        else:
            wanted = 0.08 * np.array([plan.target_x[k] - x, plan.target_y[k] - y])
            wanted -= 0.12 * np.array([vx, vy])
            reference = wanted * min(1, plan.cap[k] / np.linalg.norm(wanted))
        off = axis[:2] + 0.3 * rate[:2] - reference
        along = int(abs(off[1]) > abs(off[0]))
        push = np.zeros(2)
        push[along] = np.sign(off[along]) if abs(off[along]) > 1e-3 else 0
        references.append(reference)
        pushes.append(8.0 * push + wind)
        cost = 0.5 * (axis[:2] @ axis[:2]) + 0.05 * sum(max(abs(c) - 2.8, 0) ** 2 for c in (x, y))
        q = np.array([float(c[k]) for c in (after.pose.qx, after.pose.qy, after.pose.qz)])
        w = float(after.pose.qw[k])
        roll = np.arctan2(2 * (q[1] * q[2] + w * q[0]), 1 - 2 * (q[0] ** 2 + q[1] ** 2))
        pitch = np.arcsin(2 * (w * q[1] - q[0] * q[2]))
        falls.append(max(abs(roll), abs(pitch)) > np.deg2rad(10))
        costs.append(cost + (2000 + 3000 * (HORIZON - tick) / HORIZON) * falls[-1])
    push = np.array(pushes).T
    speeds = jax.jit(freely)(pose, velocity, *np.float32(push))
    # At a wall of |c| = 4.449 m the cart stops.
    for place, speed, left in (
        (pose.x, speeds.vx, after.velocity.vx),
        (pose.y, speeds.vy, after.velocity.vy),
    ):
        speed = np.asarray(speed, np.float64)
        out = np.sign(place) * speed
        stops = (np.abs(place) + 0.02 * out > 4.449) & (out > 0)
        assert 20 < stops.sum() < 200
        np.testing.assert_allclose(left, np.where(stops, 0, speed), atol=1e-5)
        costs += np.where(stops, 0.5 + 2 * out, 0)
    expected = now.cost + np.where(fell, 0, costs)
    np.testing.assert_allclose(after.cost, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(after.fell, fell | falls)
    assert 10 < sum(falls) < 280
    np.testing.assert_allclose(np.stack(after.used)[:, tick].T, references, atol=1e-5)
    assert int(after.tick) == tick + 1
    assert not np.stack(after.used)[:, :tick].any()


def test_blocks_are_near_within_the_clearance_of_cart_or_pole():
    pose, _, block = futures(np.random.default_rng(4))
    r = geo.pole_to_cart(pose)
    near = np.asarray(jax.jit(lookahead._near)(PARAMS, pose, r, block))
    # 0.12 m of clearance, 0.001 m of margin, and the radius of a block.
    reach = 0.12 + 0.001 + 0.5
    for k in range(FUTURES):
        hits = []
        for p, alive in zip(np.stack(block.p, -1)[:, k], block.alive[:, k], strict=True):
            rel = p - [pose.x[k], pose.y[k], 0.2]
            up = rel @ axis_of(pose, k)
            at_cart = np.hypot(*rel[:2]) <= 0.5 + reach and abs(rel[2]) <= 0.1 + reach
            beside = np.sqrt(rel @ rel - up * up) <= 0.03 + reach
            hits.append(alive and (at_cart or (beside and -reach <= up - 0.05 <= 2.0 + reach)))
        assert near[k] == any(hits)
    assert 50 < near.sum() < 250


def test_the_end_costs_lean_speed_and_place_where_the_episode_goes_on():
    draw = np.random.default_rng(6)
    pose, velocity, block = futures(draw)
    cost, fell = np.float32(draw.uniform(0, 9, FUTURES)), draw.random(FUTURES) < 0.3
    now = lookahead._Now(pose, velocity, block, cost, fell, None, jnp.int32(60), fell)
    total = jax.jit(lookahead._total)
    for remaining in (59, 60):
        totals = np.asarray(total(now, jnp.int32(remaining)))
        for k in range(FUTURES):
            axis = axis_of(pose, k)
            end = axis + 0.32 * np.cross(spin_of(pose, velocity, k), axis)
            more = 100 * (end[:2] @ end[:2])
            more += 0.5 * (float(velocity.vx[k]) ** 2 + float(velocity.vy[k]) ** 2)
            more += 0.05 * (float(pose.x[k]) ** 2 + float(pose.y[k]) ** 2)
            expected = cost[k] + (more if remaining == 60 and not fell[k] else 0)
            assert totals[k] == pytest.approx(expected, rel=1e-4)


def test_a_field_pulls_blocks_upwards_and_to_cart_centroid_and_origin():
    p = np.array([[1.0, 2.0, 3.0], [-2.0, 0.5, 6.0], [3.0, -3.0, 2.0], [9.0, 9.0, 9.0]])
    alive = np.array([True, True, True, False])
    block = Sphere(Vector(*np.float32(p.T)), Vector(*np.zeros((3, 4))), alive)
    pulled = np.stack(lookahead.pull(ForceField(-9.0, 2.0, 0.7, -0.4), 0.5, -1.5, block), -1)
    targets = ((2.0, (0.5, -1.5, 0.5)), (0.7, p[:3].mean(0)), (-0.4, np.zeros(3)))
    for place, ours in zip(p, pulled, strict=True):
        expected = np.array([0, 0, -9.0])
        for size, target in targets:
            away = np.array(target) - place
            expected += size * away / np.linalg.norm(away)
        np.testing.assert_allclose(ours, expected, rtol=1e-5)


@pytest.mark.parametrize("on_lines", [False, True])
def test_blocks_turn_back_on_lines_and_bounce_off_walls_elsewhere(on_lines):
    """One at a wall, one in the air, and a field upwards; drag only away from lines."""
    p, v = np.array([[4.46, 0, 5], [1, 1, 5.0]]), np.array([[3.0, 1, 2], [-3, 4, 1]])
    block = Sphere(Vector(*p.T), Vector(*v.T), np.ones(2, bool))
    block = jax.tree.map(lambda leaf: jnp.asarray(leaf)[:, None], block)
    zero = jnp.zeros(1)
    pose = Pose(zero, zero, zero + 1, zero, zero, zero, zero, zero + 1)
    lifted = model(on_lines, field=(5.0, 0.0, 0.0, 0.0))
    moved = jax.jit(lookahead._blocks_moved)
    after = np.stack(moved(lifted, pose, block), -1)[:, 0]
    drag = 0 if on_lines else float(np.float32(0.04))
    free = v * (1 - 0.02 * drag * (1 + np.linalg.norm(v, axis=1)))[:, None] + [0, 0, 5 * 0.02]
    np.testing.assert_allclose(after[1], free[1], rtol=1e-5)
    if on_lines:
        np.testing.assert_allclose(after[0], -free[0], rtol=1e-5)
    else:
        np.testing.assert_allclose(after[0, 1:], free[0, 1:], rtol=1e-5)
        # An overlap of 0.01 m less the slop is pushed out at 0.08 of its depth in a tick.
        assert after[0, 0] == pytest.approx(-free[0, 0] - 0.08 / 0.02 * 0.00999, rel=1e-3)


@jax.jit
def contacts(params, pose, velocity, block):
    r, body, one = geo.pole_to_cart(pose), dynamics.bodies(params), opaque_one(pose.x)
    return lookahead._contacts(params, body, pose, r, velocity, block, block.v, one)


@pytest.mark.parametrize(("height", "part"), [(0.0, "cart"), (0.7, "pole"), (1.6, "pole")])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_block_and_an_upright_pole_exchange_momentum(height, part, axis):
    """By the mass matrix of a cart with a rod: no relative speed is left at the contact."""
    params = Params(pole_length=2.0, pole_com=1.2, pole_mass=0.3, cart_mass=1.5, block_mass=0.8)
    radius = 0.5 if part == "cart" else 0.03
    place = np.zeros(3)
    place[axis], place[2] = radius + 0.001 + 0.5 - 1e-5, height + 0.2
    cart, rate, block_speed = 0.3, 0.4, -2.0
    one, zero = jnp.ones(1), jnp.zeros(1)
    block = Sphere(
        Vector(*(zero + c for c in place)),
        Vector(*(zero + block_speed * (i == axis) for i in range(3))),
        one > 0,
    )
    block = jax.tree.map(lambda leaf: leaf[None], block)
    pose = Pose(zero, zero, one, zero, zero, zero, zero, one)
    still = Velocity(*[zero] * 6)
    velocity = (
        replace(still, vx=zero + cart, wy=zero + rate)
        if axis == 0
        else replace(still, vy=zero + cart, wx=zero - rate)
    )
    moved, v, impulse, gap = contacts(params, pose, velocity, block)
    inertia = 0.3 / 12 * (0.066**2 + 2.006**2) + 0.3 * 1.2**2
    mass = np.array([[1.5 + 0.3, 0.3 * 1.2], [0.3 * 1.2, inertia]])
    lever = np.array([1.0, height if part == "pole" else 0.0])
    response = np.linalg.solve(mass, lever)
    expected = (lever @ [cart, rate] - block_speed) / (lever @ response + 1 / 0.8)
    assert float(impulse[0]) == pytest.approx(expected, rel=2e-3)
    ours = (moved.vx, moved.wy) if axis == 0 else (moved.vy, -moved.wx)
    after = np.array([cart, rate]) - expected * response
    np.testing.assert_allclose(np.concatenate(ours), after, rtol=4e-3, atol=2e-3)
    assert float(v[axis][0, 0]) == pytest.approx(block_speed + expected / 0.8, rel=2e-3)
    assert float(gap[0]) == pytest.approx(-1e-5, abs=1e-5)


def test_a_start_copies_the_world_to_all_futures():
    plan = LeanPlan(*np.float32(np.arange(12).reshape(2, 3, 2)), *np.zeros((4, 2), np.float32))
    block = Sphere(*(Vector(*np.zeros((3, 4), np.float32)),) * 2, np.arange(4) == 0)
    pose = Pose(*map(np.float32, (1, 0, 1, 0, 0, 0, 0, 1)))
    world = lookahead.BodyState(pose, Velocity(*map(np.float32, range(6))), block)
    start = jax.jit(lookahead._start)
    now = start(model(), world, plan)
    np.testing.assert_array_equal(now.pose.x, [1, 1])
    np.testing.assert_array_equal(now.velocity.wz, [5, 5])
    assert now.block.alive.shape == (4, 1) and int(now.tick) == 0
    assert not np.asarray(now.cost).any() and not np.asarray(now.fell).any()
    np.testing.assert_array_equal(now.used, [plan.lean_x, plan.lean_y])
    assert np.asarray(now.near).tolist() == [True, True]


def test_the_world_ahead_is_that_of_the_pushes_on_their_way():
    """Free ticks of the simulator, with turned pushes and a wind; the oldest push comes first."""
    draw = np.random.default_rng(12)
    pushes = Pushes.of((0.0, 6.0), (-9.0, 0.0))
    world = model(pushes=pushes, force=(0.5, -1.0), field=(0.0, 3.0, 0.0, 0.0))
    lean = np.float32(0.03)
    zero, one = np.float32(0), np.float32(1)
    pose = Pose(zero, zero, one, zero, lean, -lean, zero, np.sqrt(one - 2 * lean * lean))
    velocity = Velocity(*np.float32(draw.normal(size=2) * 0.3), zero, *np.float32([0.1, -0.2, 0]))
    p, v = np.float32([[3, 3, 3.0], [-3, -3, 6.0]]).T, np.float32(draw.normal(size=(3, 2)))
    block = Sphere(Vector(*p), Vector(*v), np.array([True, True]))
    start = lookahead.BodyState(pose, velocity, block)
    actions = jnp.array([1, 4, 0, 2])
    ahead = jax.jit(lookahead.ahead)
    jax.tree.map(np.testing.assert_array_equal, ahead(world, start, actions, 0), start)
    after = ahead(world, start, actions, 3)
    step = jax.jit(freely)
    for fx, fy in ((0.0, 0.0), (9.0, 0.0), (0.0, 6.0)):
        velocity = step(pose, velocity, np.float32(fx + 0.5), np.float32(fy - 1.0))
        towards = np.array([[float(pose.x)], [float(pose.y)], [TARGET_HEIGHT]]) - p
        pulled = 3.0 * towards / np.linalg.norm(towards, axis=0)
        v = np.stack(dynamics.accelerate_block(PARAMS, Sphere(Vector(*p), Vector(*v), None), None))
        v = v + 0.02 * pulled
        p = p + 0.02 * v
        pose = dynamics.move(pose, velocity, opaque_one(pose.x))
    # Three ticks in float32, of numbers up to 10.
    np.testing.assert_allclose(np.stack(after.block.p), p, atol=1e-5)
    np.testing.assert_allclose(np.stack(after.block.v), v, atol=1e-5)
    for ours, expected in ((after.pose, pose), (after.velocity, velocity)):
        for name, leaf in vars(expected).items():
            np.testing.assert_allclose(getattr(ours, name), leaf, atol=1e-5, err_msg=name)
