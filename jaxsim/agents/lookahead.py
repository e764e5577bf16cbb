"""Rollouts of a planner: many futures of one world under lean references.

Free motion, shapes and the response of cart and pole to an impulse are those of the simulator, as a
search would exploit errors of simpler shapes. Contacts are simplified: cart and pole meet only the
block that is nearest to each, in few sweeps, cart before pole, and a cart never turns. Blocks
bounce off walls and one another. Leaves are (K,) for K futures of a lane, those of blocks (4, K),
or (4, 1) while the futures share them. A batch of lanes is one more axis behind: (K, L).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import materialise, opaque_one
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.geometry import MARGIN, Rotation
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Params,
    Pose,
    Scalar,
    Sphere,
    Vector,
    Velocity,
)

HORIZON = 60  # ticks
RATE_GAIN = 0.3  # s, weight of the lean's rate in the inner loop
DEAD_BAND = 1e-3  # rad, demands below it get no push
HOME, DAMPING = 0.08, 0.12  # rad/m and rad s/m, gains of the lean that moves the cart to a place
FALL, FALL_EARLY = 2000.0, 3000.0  # cost of a fall, and extra cost of a fall at tick 0
HIT, HIT_FIXED = 30.0, 0.15  # cost of an impulse, 1/(N s), and N s that are added to each
CLEARANCE, CLOSE = 0.12, 2.0  # m, gap below which a block costs, and cost without a gap
AT_WALL, WALL_SPEED = 0.5, 2.0  # cost of a cart at a wall, and of its speed there
CART_ROOM = 4.449  # m, |x| or |y| of a cart at a wall
FAR, FAR_COST = 2.8, 0.05  # m, |x| or |y| beyond which the cart costs, and that cost, 1/m^2
NEAR = 10.0  # cost of a tick with a block within `CLEARANCE`, in rollouts without contacts
LEANING = 0.5  # cost of a lean, 1/rad^2
SWEEPS = 2  # over the contacts of a tick
END_LEAN, END_RATE, END_SPEED, END_PLACE = 100.0, 0.32, 0.5, 0.05


class LeanPlan(NamedTuple):
    """A reference for the pole's lean, rad: explicit tick by tick, then towards a place."""

    lean_x: Leaf  # (H, K)
    lean_y: Leaf  # (H, K)
    switch: Leaf  # (K,) int32, tick from which the cart goes to the target
    target_x: Leaf  # (K,) m
    target_y: Leaf  # (K,) m
    cap: Leaf  # (K,) rad, largest lean on the way to the target


class ForceField(NamedTuple):
    """Acceleration of blocks, m/s^2: upwards, and towards cart, centroid and origin."""

    up: Scalar
    cart: Scalar
    centroid: Scalar
    origin: Scalar


class Pushes(NamedTuple):
    """Forces of the pushes right and forward on the cart; left and backward are the opposite."""

    right: tuple[Scalar, Scalar]  # direction, x and y
    forward: tuple[Scalar, Scalar]
    sizes: tuple[Scalar, Scalar]  # N

    @classmethod
    def of(cls, right: tuple[Scalar, Scalar], forward: tuple[Scalar, Scalar]) -> "Pushes":
        """Separate two forces, N, into directions and sizes."""
        sizes = [jnp.sqrt(x * x + y * y) for x, y in (right, forward)]
        units = [
            (x / jnp.maximum(size, 1e-6), y / jnp.maximum(size, 1e-6))
            for (x, y), size in zip((right, forward), sizes, strict=True)
        ]
        return cls(units[0], units[1], (sizes[0], sizes[1]))

    def force(self, right: Scalar, forward: Scalar) -> tuple[Scalar, Scalar]:
        """Force of a push, N, which is -1, 0 or 1 in both directions."""
        a, b = self.sizes[0] * right, self.sizes[1] * forward
        return a * self.right[0] + b * self.forward[0], a * self.right[1] + b * self.forward[1]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Model:
    """The physics that a planner assumes; leaves ()."""

    params: Params  # its pushes are not used
    pushes: Pushes
    delay: Scalar  # int32, ticks by which pushes act late
    force: Vector  # N on the cart besides pushes; z is 0
    field: ForceField
    on_lines: jax.Array  # bool, blocks slide on lines, without drag


class BodyState(NamedTuple):
    """State of the world; leaves (), those of blocks (4,), and of a batch (L,) and (4, L)."""

    pose: Pose
    velocity: Velocity
    block: Sphere


class _Now(NamedTuple):
    """Futures at the present tick."""

    pose: Pose  # leaves (K, ...)
    velocity: Velocity
    block: Sphere  # (4, K, ...), or (4, 1, ...) where nothing has hit a block
    cost: jax.Array  # (K, ...)
    fell: jax.Array  # (K, ...) bool
    used: tuple[jax.Array, jax.Array]  # (H, K, ...) rad, references so far
    tick: jax.Array  # () int32
    near: jax.Array  # (K, ...) bool, whether the next tick may have a contact that costs


class _Futures(NamedTuple):
    """Futures of one lane; after a hit each has its own blocks."""

    now: _Now  # blocks (4, 1)
    hit: Sphere  # (4, K), blocks after the first hit
    apart: jax.Array  # () bool, whether a block was hit
    going: jax.Array  # () bool, whether any future continues
    near: jax.Array  # () bool, whether the next tick of any such future may have a contact


def lean(r: Rotation, velocity: Velocity) -> tuple[Vector, Vector]:
    """The pole's axis and its rate of change, 1/s, for a cart that does not turn."""
    axis = Vector(r.x.z, r.y.z, r.z.z)
    spin = geo.rotate(r, Vector(velocity.wx, velocity.wy, velocity.wz))
    return axis, geo.cross(spin, axis)


def going(plan: LeanPlan, x: Scalar, y: Scalar, vx: Scalar, vy: Scalar) -> tuple[Scalar, Scalar]:
    """Lean that moves the cart to the target of a plan, rad."""
    ax = HOME * (plan.target_x - x) - DAMPING * vx
    ay = HOME * (plan.target_y - y) - DAMPING * vy
    size = jnp.sqrt(ax * ax + ay * ay)
    share = jnp.minimum(1.0, plan.cap / jnp.maximum(size, 1e-6))
    return ax * share, ay * share


def demand(
    pushes: Pushes, axis: Vector, rate: Vector, reference: tuple[Scalar, Scalar]
) -> tuple[jax.Array, jax.Array]:
    """Push that tracks a lean reference: -1, 0 or 1 to the right and forward."""
    ex = axis.x + RATE_GAIN * rate.x - reference[0]
    ey = axis.y + RATE_GAIN * rate.y - reference[1]
    right, forward = (x * ex + y * ey for x, y in (pushes.right, pushes.forward))
    sideways = jnp.abs(right) >= jnp.abs(forward)
    dx = jnp.where(sideways & (jnp.abs(right) > DEAD_BAND), jnp.sign(right), 0.0)
    dy = jnp.where(~sideways & (jnp.abs(forward) > DEAD_BAND), jnp.sign(forward), 0.0)
    return dx, dy


def ahead(model: Model, world: BodyState, actions: jax.Array, ticks: Scalar) -> BodyState:
    """The world of one lane some ticks later, if nothing touches cart and pole until then.

    Args:
      model: the physics.
      world: the state, leaves () and (N,).
      actions: (D,) int32 codes of the actions that act until then, the newest first.
      ticks: () int32, at most D.
    """
    body = dynamics.bodies(model.params)

    def tick(number: jax.Array, world: BodyState) -> BodyState:
        pose, velocity, block = world
        action = actions[ticks - 1 - number]
        right = jnp.where(action == 1, 1.0, jnp.where(action == 2, -1.0, 0.0))
        forward = jnp.where(action == 3, 1.0, jnp.where(action == 4, -1.0, 0.0))
        fx, fy = model.pushes.force(right, forward)
        force = Vector(fx + model.force.x, fy + model.force.y, 0.0 * fx)
        r = geo.pole_to_cart(pose)
        velocity = dynamics.accelerate(model.params, body, pose, r, velocity, force)
        single = jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], (pose, block))
        v = Vector(*(jnp.asarray(c)[:, 0] for c in _blocks_moved(model, *single)))
        velocity, _ = _stopped(pose, velocity)
        block = replace(block, p=geo.add(block.p, geo.scale(v, DT)), v=v)
        return BodyState(dynamics.move(pose, velocity, opaque_one(pose.x)), velocity, block)

    return jax.lax.fori_loop(0, ticks, tick, world)


def screen(
    model: Model, world: BodyState, plan: LeanPlan, remaining: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Roll out plans of a batch of lanes without contacts.

    Args:
      model: the physics; leaves (L,).
      world: the present state, leaves (L,) and (4, L).
      plan: K plans of each lane, (..., K, L). A field pulls blocks to the cart of the first plan.
      remaining: (L,) ticks until the episode is over.

    Returns:
      (K, L) costs, with `NEAR` for each tick in which a block is near, and the references that
      were used, x and y, (H, K, L) each.
    """
    start = _start(model, world, plan)
    body = dynamics.bodies(model.params)

    def tick(_: jax.Array, now: _Now) -> _Now:
        near = now.near & ~now.fell & (now.tick < remaining)
        now = _tick(model, body, plan, remaining, now, False)[0]
        return now._replace(cost=now.cost + jnp.where(near, NEAR, 0.0))

    now = jax.lax.fori_loop(0, HORIZON, tick, start)
    return _total(now, remaining), now.used


def rollout(
    model: Model, world: BodyState, plan: LeanPlan, remaining: jax.Array, bound: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Roll out plans of one lane, with contacts.

    Contacts are computed in ticks in which some future has a block near. All futures share the
    blocks until one is hit. Futures that cost more than the bound count in neither, and the rollout
    stops when no other future is left.

    Args:
      model: the physics; leaves ().
      world: the present state, leaves () and (4,).
      plan: K plans.
      remaining: () ticks until the episode is over.
      bound: () cost from which the exact cost of a plan does not matter.

    Returns:
      (K,) costs, exact up to the bound and at least the bound above it, and the references that
      were used, x and y, (H, K) each.
    """
    body = dynamics.bodies(model.params)
    ticks = jnp.minimum(remaining, HORIZON)

    def state(now: _Now, hit: Sphere, apart: jax.Array) -> _Futures:
        counts = ~now.fell & (now.cost <= bound)
        going = (now.tick < ticks) & jnp.any(counts)
        return _Futures(now, hit, apart, going, going & jnp.any(now.near & counts))

    def free(futures: _Futures) -> _Futures:
        now = _tick(model, body, plan, remaining, futures.now, False)[0]
        return state(now, futures.hit, futures.apart)

    def free_apart(futures: _Futures) -> _Futures:
        now = futures.now._replace(block=futures.hit)
        now = _tick(model, body, plan, remaining, now, False)[0]
        return state(now._replace(block=futures.now.block), now.block, futures.apart)

    def with_contacts(futures: _Futures) -> _Futures:
        lead = futures.now.block
        block = jax.tree.map(partial(jnp.where, futures.apart), futures.hit, lead)
        now, impulse = _tick(model, body, plan, remaining, futures.now._replace(block=block), True)
        counts = ~now.fell & (now.cost <= bound)
        v = _blocks_moved(model, futures.now.pose, lead)
        lead = replace(lead, p=geo.add(lead.p, geo.scale(v, DT)), v=v)
        apart = futures.apart | jnp.any(counts & (impulse > 0))
        return state(now._replace(block=lead), now.block, apart)

    def advance(futures: _Futures) -> _Futures:
        for tick, needed in (
            (free, lambda f: f.going & ~f.near & ~f.apart),
            (free_apart, lambda f: f.going & ~f.near & f.apart),
            (with_contacts, lambda f: f.near),
        ):
            futures = jax.lax.while_loop(needed, tick, futures)
        return futures

    start = _start(model, world, plan)
    hit = jax.tree.map(lambda leaf: leaf + jnp.zeros(plan.cap.shape, leaf.dtype), start.block)
    first = state(start, hit, jnp.asarray(model.field.cart != 0))
    now = jax.lax.while_loop(lambda futures: futures.going, advance, first).now
    return _total(now, remaining), now.used


def _start(model: Model, world: BodyState, plan: LeanPlan) -> _Now:
    """Futures before their first tick."""
    shape = plan.cap.shape
    pose, velocity = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, shape), (world.pose, world.velocity)
    )
    block = jax.tree.map(lambda leaf: leaf[:, None], world.block)
    near = _near(model.params, pose, geo.pole_to_cart(pose), block)
    none = jnp.zeros(shape)
    used = plan.lean_x, plan.lean_y
    return _Now(pose, velocity, block, none, none > 0, used, jnp.int32(0), near)


def _total(now: _Now, remaining: jax.Array) -> jax.Array:
    """Costs of futures, the terminal cost included."""
    pose, velocity = now.pose, now.velocity
    axis, rate = lean(geo.pole_to_cart(pose), velocity)
    end_x, end_y = axis.x + END_RATE * rate.x, axis.y + END_RATE * rate.y
    end = END_LEAN * (end_x * end_x + end_y * end_y)
    end = end + END_SPEED * (velocity.vx**2 + velocity.vy**2)
    end = end + END_PLACE * (pose.x * pose.x + pose.y * pose.y)
    # Nothing after the end of the episode matters.
    return now.cost + jnp.where(~now.fell & (remaining >= HORIZON), end, 0.0)


def _tick(
    model: Model,
    body: dynamics.Bodies,
    plan: LeanPlan,
    remaining: jax.Array,
    now: _Now,
    meets: bool,
) -> tuple[_Now, Leaf]:
    """One tick of all futures, with or without contacts, and the sums of their impulses, N s."""
    pose, velocity, block, t = now.pose, now.velocity, now.block, now.tick
    one = opaque_one(pose.x)
    r = geo.pole_to_cart(pose)
    axis, rate = lean(r, velocity)
    place = going(plan, pose.x, pose.y, velocity.vx, velocity.vy)
    explicit = t < plan.switch
    leans = (jax.lax.dynamic_index_in_dim(c, t, keepdims=False) for c in (plan.lean_x, plan.lean_y))
    reference_x, reference_y = (
        jnp.where(explicit, *pair) for pair in zip(leans, place, strict=True)
    )
    reference = materialise((reference_x, reference_y), one)
    fx, fy = model.pushes.force(*demand(model.pushes, axis, rate, reference))
    push = Vector(fx + model.force.x, fy + model.force.y, 0.0 * fx)
    velocity = dynamics.accelerate(model.params, body, pose, r, velocity, push)
    velocity = materialise(velocity, one)
    v = materialise(_blocks_moved(model, pose, block), opaque_one(block.p.x))
    cost, impulse = LEANING * (axis.x * axis.x + axis.y * axis.y), jnp.zeros_like(pose.x)
    if meets:
        velocity, v, impulse, gap = _contacts(model.params, body, pose, r, velocity, block, v, one)
        cost = cost + HIT * (impulse + jnp.where(impulse > 0, HIT_FIXED, 0.0))
        cost = cost + CLOSE * jnp.clip((CLEARANCE - gap) / CLEARANCE, 0.0, 1.0)
    velocity, wall_cost = _stopped(pose, velocity)
    block = replace(block, p=geo.add(block.p, geo.scale(v, DT)), v=v)
    for c in (pose.x, pose.y):
        cost = cost + FAR_COST * jnp.maximum(jnp.abs(c) - FAR, 0.0) ** 2
    pose = dynamics.move(pose, velocity, one)
    r = geo.pole_to_cart(pose)
    fallen = dynamics.has_fallen(r, model.params.lean_limit) & ~now.fell
    cost = cost + wall_cost + jnp.where(fallen, FALL + FALL_EARLY * (HORIZON - t) / HORIZON, 0.0)
    cost = now.cost + jnp.where(now.fell | (t >= remaining), 0.0, cost)
    put = partial(jax.lax.dynamic_update_index_in_dim, index=t, axis=0)
    used = put(now.used[0], reference[0]), put(now.used[1], reference[1])
    near = _near(model.params, pose, r, block)
    after = _Now(pose, velocity, block, cost, now.fell | fallen, used, t + 1, near)
    return after, impulse


def _near(params: Params, pose: Pose, r: Rotation, block: Sphere) -> jax.Array:
    """Whether any block may be within `CLEARANCE` of cart or pole; (K, ...) bool."""
    reach = CLEARANCE + MARGIN + params.block_radius
    rel = Vector(block.p.x - pose.x, block.p.y - pose.y, block.p.z - PIVOT_HEIGHT)
    beside = rel.x * rel.x + rel.y * rel.y
    cart = beside <= (dynamics.CART_RADIUS + reach) ** 2
    cart = cart & (jnp.abs(rel.z) <= dynamics.CART_HALF_HEIGHT + reach)
    up = r.x.z * rel.x + r.y.z * rel.y + r.z.z * rel.z
    pole = beside + rel.z * rel.z - up * up <= (dynamics.POLE_RADIUS + reach) ** 2
    half = 0.5 * params.pole_length
    pole = pole & (jnp.abs(up - (POLE_BOTTOM + half)) <= half + reach)
    return jnp.any(block.alive & (cart | pole), axis=0)


def _stopped(pose: Pose, velocity: Velocity) -> tuple[Velocity, Scalar]:
    """Velocities after side walls have stopped the cart, and the cost of that."""
    cost: Scalar = 0.0
    speeds = []
    for c, v in ((pose.x, velocity.vx), (pose.y, velocity.vy)):
        out = jnp.where(c > 0, v, -v)
        at_wall = (jnp.abs(c) + DT * out > CART_ROOM) & (out > 0)
        cost = cost + jnp.where(at_wall, AT_WALL + WALL_SPEED * out, 0.0)
        speeds.append(jnp.where(at_wall, 0.0, v))
    return replace(velocity, vx=speeds[0], vy=speeds[1]), cost


# Blocks -----------------------------------------------------------------------------------------


def _blocks_moved(model: Model, pose: Pose, block: Sphere) -> Vector:
    """Velocities of blocks after the tick, without hits of cart and pole."""
    params, p = model.params, block.p
    futures = len(block.alive[0])
    x, y = (jnp.asarray(c)[:futures] for c in (pose.x, pose.y))
    pulled = pull(model.field, x, y, block)
    params = replace(params, drag=jnp.where(model.on_lines, 0.0, params.drag))
    v = dynamics.accelerate_block(params, block, None)
    v = geo.add(v, geo.scale(pulled, DT))
    bounced = broadphase.bounce_off_walls(params, replace(block, p=p), v)
    turned = (bounced.x != v.x) | (bounced.y != v.y)
    back = Vector(*(jnp.where(turned, -c, c) for c in v))
    bounced = Vector(*(jnp.where(model.on_lines, a, b) for a, b in zip(back, bounced, strict=True)))
    return collided(params, block, bounced)


def directions(x: Scalar, y: Scalar, block: Sphere) -> tuple[Vector, Vector, Vector]:
    """Unit vectors from blocks, (4, ...), to the cart, their centroid and the origin."""
    p = block.p
    zero = jnp.zeros_like(p.x)
    number = jnp.maximum(jnp.sum(block.alive, axis=0), 1)
    centroid = Vector(*(jnp.sum(jnp.where(block.alive, c, 0.0), axis=0) / number for c in p))
    cart = Vector(x, y, TARGET_HEIGHT)
    return _unit(cart, p), _unit(centroid, p), _unit(Vector(zero, zero, zero), p)


def _unit(target: Vector, p: Vector) -> Vector:
    d = geo.sub(target, p)
    return geo.scale(d, jax.lax.rsqrt(jnp.maximum(geo.dot(d, d), 1e-12)))


def pull(field: ForceField, x: Scalar, y: Scalar, block: Sphere) -> Vector:
    """Acceleration of blocks by a field, m/s^2."""
    cart, centroid, origin = directions(x, y, block)
    total = geo.add(geo.scale(cart, field.cart), geo.scale(centroid, field.centroid))
    total = geo.add(total, geo.scale(origin, field.origin))
    return Vector(total.x, total.y, total.z + field.up)


def collided(params: Params, block: Sphere, v: Vector) -> Vector:
    """Velocities after collisions of equal blocks that touch and approach, each pair alone."""
    p, alive = Vector(*map(jnp.asarray, block.p)), jnp.asarray(block.alive)
    restitution = params.restitution_block * params.restitution_block
    after = v = Vector(*map(jnp.asarray, v))
    for other in range(len(alive)):
        d, w = (geo.sub(c, jax.tree.map(lambda leaf, i=other: leaf[i], c)) for c in (p, v))
        square = geo.dot(d, d)
        near = (square <= broadphase.pair_reach(params)) & (square > 0)
        touching = near & alive & alive[other]
        approach = geo.dot(w, d) / jnp.where(near, square, 1.0)
        size = jnp.where(touching & (approach < 0), 0.5 * (1 + restitution) * approach, 0.0)
        after = geo.sub(after, geo.scale(d, size))
    return after


# Contacts of blocks with cart and pole ----------------------------------------------------------


def _contacts(
    params: Params,
    body: dynamics.Bodies,
    pose: Pose,
    r: Rotation,
    velocity: Velocity,
    block: Sphere,
    v: Vector,
    one: jax.Array,
) -> tuple[Velocity, Vector, jax.Array, jax.Array]:
    """Velocities after the contacts, the sum of impulses, N s, and the smallest gap, m.

    Cart and pole meet the block that is nearest to each of them.
    """
    rel = Vector(block.p.x - pose.x, block.p.y - pose.y, block.p.z - PIVOT_HEIGHT)
    half = 0.5 * params.pole_length
    middle = Vector(0.0, 0.0, POLE_BOTTOM + half)
    place = materialise(geo.sub(geo.rotate_back(r, rel), middle), one)
    to_cart, at_cart = _nearest(
        block.alive, rel, dynamics.CART_RADIUS, dynamics.CART_HALF_HEIGHT, one
    )
    to_pole, at_pole = _nearest(block.alive, place, dynamics.POLE_RADIUS, half, one)
    touches = [
        _on_cart(params, body, r, at_cart, one),
        _on_pole(params, body, r, at_pole, middle, one),
    ]
    masks, any_block = [to_cart, to_pole], jnp.any(block.alive, axis=0)
    total = [jnp.zeros_like(pose.x)] * len(touches)
    for _ in range(SWEEPS):
        for i, touch in enumerate(touches):
            block_velocity = _of(masks[i], v)
            more = _impulse(params, any_block, touch, total[i], velocity, block_velocity)
            more = materialise(more, one)
            velocity = materialise(_react(velocity, touch, more), one)
            change = geo.scale(touch.normal, more / params.block_mass)
            v = Vector(*(a + jnp.where(masks[i], b, 0.0) for a, b in zip(v, change, strict=True)))
            total[i] = total[i] + more
    gap = jnp.where(any_block, jnp.minimum(touches[0].gap, touches[1].gap), 10.0)
    return velocity, v, total[0] + total[1], gap


def _nearest(
    alive: jax.Array, place: Vector, radius: Scalar, half_height: Scalar, one: jax.Array
) -> tuple[jax.Array, Vector]:
    """One-hot mask, (N, K), of the block nearest to an upright cylinder, and its place, (K,)."""
    beside = jnp.maximum(jnp.sqrt(place.x * place.x + place.y * place.y) - radius, 0.0)
    above = jnp.maximum(jnp.abs(place.z) - half_height, 0.0)
    square = materialise(jnp.where(alive, beside * beside + above * above, jnp.inf), one)
    first = jnp.argmin(square, axis=0)
    chosen = jnp.arange(len(square))[:, None] == first
    return chosen, materialise(_of(chosen, place), one)


def _of(chosen: jax.Array, v: Vector) -> Vector:
    """Vector of the chosen block, (K,) from (N, K)."""
    return Vector(*(jnp.sum(jnp.where(chosen, c, 0.0), axis=0) for c in v))


class _Touch(NamedTuple):
    """Contact point of a block with the cart or the pole; leaves (K,)."""

    gap: Scalar  # m
    normal: Vector  # unit, towards the block
    turn: Vector  # m, motion of the point along the normal by turns of the pole, in its frame
    a: Vector  # m/s^2 by N, of the pivot, for a force along the normal
    alpha: Vector  # rad/s^2 by N, of the pole in its frame
    soft: Scalar  # m/s^2 by N, of the point along the normal


def _on_cart(
    params: Params, body: dynamics.Bodies, r: Rotation, place: Vector, one: jax.Array
) -> _Touch:
    none = Vector(*(jnp.zeros_like(place.x) for _ in range(3)))
    near = geo.nearest_on_prism(place, dynamics.CART_RADIUS, dynamics.CART_HALF_HEIGHT, one)
    gap = near.distance - MARGIN - params.block_radius
    a, alpha = dynamics.pivot_response(params, body, r, near.normal, none, none)
    soft = near.normal.x * a.x + near.normal.y * a.y
    return _Touch(*materialise((gap, near.normal, none, a, alpha, soft), one))


def _on_pole(
    params: Params,
    body: dynamics.Bodies,
    r: Rotation,
    place: Vector,
    middle: Vector,
    one: jax.Array,
) -> _Touch:
    none = Vector(*(jnp.zeros_like(place.x) for _ in range(3)))
    near = geo.nearest_on_prism(place, dynamics.POLE_RADIUS, 0.5 * params.pole_length, one)
    point = geo.add(near.point, middle)
    com = Vector(0.0, 0.0, params.pole_com)
    turn, tau = geo.cross(point, near.normal), geo.cross(geo.sub(point, com), near.normal)
    c = geo.scale(near.normal, -1 / params.pole_mass)
    normal = geo.rotate(r, near.normal)
    gap = near.distance - MARGIN - params.block_radius
    gap, normal, turn, tau, c = materialise((gap, normal, turn, tau, c), one)
    a, alpha = materialise(dynamics.pivot_response(params, body, r, none, c, tau), one)
    soft = normal.x * a.x + normal.y * a.y + geo.dot(turn, alpha)
    return _Touch(gap, normal, turn, a, alpha, materialise(soft, one))


def _impulse(
    params: Params,
    any_block: jax.Array,
    touch: _Touch,
    total: jax.Array,
    velocity: Velocity,
    v: Vector,
) -> jax.Array:
    """Addition, N s, to the total impulse of a contact that does not bounce and only pushes."""
    reach = broadphase.BREAKING * broadphase.breaking_size(params)
    pushed = touch.normal.x * velocity.vx + touch.normal.y * velocity.vy
    spun = geo.dot(touch.turn, Vector(velocity.wx, velocity.wy, velocity.wz))
    speed = geo.dot(touch.normal, v) - pushed - spun
    target_speed = broadphase.separating_speed(speed, touch.gap, jnp.zeros_like(touch.gap))
    more = jnp.maximum(target_speed / (1 / params.block_mass + touch.soft), -total)
    return jnp.where(any_block & (touch.gap <= reach), more, 0.0)


def _react(velocity: Velocity, touch: _Touch, impulse: jax.Array) -> Velocity:
    """Velocity of cart and pole after an impulse along the normal on the block."""
    return replace(
        velocity,
        vx=velocity.vx - touch.a.x * impulse,
        vy=velocity.vy - touch.a.y * impulse,
        wx=velocity.wx - touch.alpha.x * impulse,
        wy=velocity.wy - touch.alpha.y * impulse,
        wz=velocity.wz - touch.alpha.z * impulse,
    )
