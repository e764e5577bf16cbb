"""Slow, obvious twins of the physics in float64 NumPy, one state at a time.

Everything is in the world frame, with matrices written out: generalized velocities are the blocks'
(3 N), the cart's (x, y), its yaw rate, and the pole's angular velocity (3). What the simulator
keeps, components in turning frames, is converted at the very end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

Array = np.ndarray

DT = 0.02
MARGIN = 0.001  # m, around hulls
CART = (0.5, 0.1)  # m, circumradius and half height of the prism
POLE_RADIUS = 0.03  # m
PIVOT = 0.2  # m, above the cart's origin; also the height of the cart prism's centre
BOTTOM = 0.05  # m, lower end of the pole above the pivot
UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class World:
    """One state as matrices and world vectors.

    Attributes:
      p: parameters by field name.
      x: (3,) pivot.
      yaw: (3, 3) cart to world.
      r: (3, 3) pole to world.
      u: (3 N + 6,) generalized velocities.
      blocks: (N, 3) centres.
      alive: (N,) bool.
    """

    p: Mapping[str, float]
    x: Array
    yaw: Array
    r: Array
    u: Array
    blocks: Array
    alive: Array


def world(arrays: Mapping[str, Array], lane: int, p: Mapping[str, float]) -> World:
    """Read one lane of named arrays."""
    a = {name: np.asarray(values[lane], float) for name, values in arrays.items()}
    yaw = Rotation.from_rotvec(a["cart_yaw"] * UP).as_matrix()
    r = yaw @ Rotation.from_quat(a["pole_jq"]).as_matrix()
    omega = r @ a["pole_jw"] + a["cart_yaw_rate"] * UP
    u = np.concatenate([a["block_vel"].ravel(), a["cart_vel"], [a["cart_yaw_rate"]], omega])
    x = np.array([*a["cart_pos"], PIVOT])
    return World(p, x, yaw, r, u, a["block_pos"], a["block_alive"].astype(bool))


def local_components(w: World, u: Array) -> dict[str, Array]:
    """Velocities as the simulator keeps them: in the cart's and the pole's frame."""
    n = 3 * len(w.blocks)
    velocity = np.array([*u[n : n + 2], 0.0])
    return {
        "block_vel": u[:n].reshape(-1, 3),
        "cart": (w.yaw.T @ velocity)[:2],
        "yaw_rate": u[n + 2],
        "pole": w.r.T @ (u[n + 3 :] - u[n + 2] * UP),
    }


# --- free motion ------------------------------------------------------------------------------


def inertias(p: Mapping[str, float]) -> tuple[Array, float]:
    """Pole's inertia about its centre of mass (3, 3) and the cart's about the vertical."""

    def box(mass: float, *lengths: float) -> Array:
        x, y, z = (length + 0.006 for length in lengths)
        return mass / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])

    pole = box(p["pole_mass"], 2 * POLE_RADIUS, 2 * POLE_RADIUS, p["pole_length"])
    return pole, box(p["cart_mass"], 2 * CART[0], 2 * CART[0], 2 * CART[1])[2, 2]


def cross_matrix(a: Array) -> Array:
    """The matrix of b -> a x b."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def com_jacobian(w: World) -> Array:
    """Velocity of the pole's centre of mass per generalized velocity of cart and pole, (3, 6)."""
    j = np.zeros((3, 6))
    j[:2, :2] = np.eye(2)
    j[:, 3:] = -cross_matrix(w.p["pole_com"] * w.r[:, 2])
    return j


def mass_matrix(w: World) -> Array:
    """Generalized mass of blocks, cart and pole."""
    n = 3 * len(w.blocks)
    pole, cart = inertias(w.p)
    j = com_jacobian(w)
    m = np.zeros((n + 6, n + 6))
    m[:n, :n] = w.p["block_mass"] * np.eye(n)
    m[n:, n:] = w.p["pole_mass"] * j.T @ j
    m[n : n + 2, n : n + 2] += w.p["cart_mass"] * np.eye(2)
    m[n + 2, n + 2] += cart
    m[n + 3 :, n + 3 :] += w.r @ pole @ w.r.T
    return m


def drag(c: float, mass: Any, v: Array) -> Array:
    """Linear and quadratic drag: force for mass and velocity, torque for inertia and spin."""
    return -c * (1 + np.linalg.norm(v)) * np.dot(mass, v)


def accelerations(w: World, force: Array) -> Array:
    """Generalized accelerations without contacts, for a force on the cart in N."""
    n, c = 3 * len(w.blocks), w.p["drag"]
    pole, cart = inertias(w.p)
    inertia = w.r @ pole @ w.r.T
    j = com_jacobian(w)
    omega = w.u[n + 3 :]
    v_cart = np.array([*w.u[n : n + 2], 0.0])
    v_com = j @ w.u[n:]
    arm = w.p["pole_com"] * w.r[:, 2]
    load = drag(c, w.p["pole_mass"], v_com) - w.p["pole_mass"] * (
        w.p["gravity"] * UP + np.cross(omega, np.cross(omega, arm))
    )
    torque = drag(c, inertia, omega) - np.cross(omega, inertia @ omega)
    q = np.zeros(n + 6)
    for i in range(len(w.blocks)):
        weight = w.p["block_mass"] * w.p["gravity"] * (w.p["block_buoyancy"] - 1) * UP
        q[3 * i : 3 * i + 3] = weight + drag(c, w.p["block_mass"], w.u[3 * i : 3 * i + 3])
    q[n:] = j.T @ load
    q[n : n + 2] += force[:2] + drag(c, w.p["cart_mass"], v_cart)[:2]
    q[n + 2] += -cart * c * (1 + abs(w.u[n + 2])) * w.u[n + 2]
    q[n + 3 :] += torque
    return np.linalg.solve(mass_matrix(w), q)


def free_motion(w: World, force: Array) -> Array:
    """Generalized velocities after the free motion of one tick, before contacts.

    The simulator integrates local components, d(R^T a)/dt = R^T a' - R^T (omega x a), and holds the
    frames still meanwhile.
    """
    n = 3 * len(w.blocks)
    du = accelerations(w, force)
    spin = w.u[n + 2] * UP
    omega = w.u[n + 3 :]
    v = np.array([*w.u[n : n + 2], 0.0])
    du[n : n + 2] -= np.cross(spin, v)[:2]
    # The kept rate R^T (omega - spin) changes by R^T (omega' - spin' - omega x (omega - spin)).
    du[n + 3 :] += np.cross(omega, spin)
    return w.u + DT * du


# --- contacts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contact:
    """A row: what it reads of the generalized velocities, how far it is, how it bounces."""

    jacobian: Array
    gap: float
    restitution: float


def prism_faces(radius: float, half: float) -> tuple[Array, Array, Array]:
    """Outward normals (34, 3), offsets (34,), and the vertices of the 32-gon (32, 2)."""
    angle = np.arange(32) * (2 * np.pi / 32)
    gon = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    middle = angle + np.pi / 32
    sides = np.stack([np.cos(middle), np.sin(middle), 0 * middle], axis=1)
    normals = np.concatenate([sides, [UP, -UP]])
    offsets = np.concatenate([np.full(32, radius * np.cos(np.pi / 32)), [half, half]])
    return normals, offsets, gon


def nearest_on_prism(p: Array, radius: float, half: float) -> tuple[Array, Array, float]:
    """Closest point, direction and signed distance, by trying every face, edge and vertex."""
    normals, offsets, gon = prism_faces(radius, half)
    depth = offsets - normals @ p
    if (depth >= 0).all():
        k = int(np.argmin(depth))
        return p + depth[k] * normals[k], normals[k], -depth[k]
    # The sides, and with them all edges and vertices: rectangles, clamped in both directions.
    edge = np.roll(gon, -1, axis=0) - gon
    t = np.clip(np.sum((p[:2] - gon) * edge, axis=1) / np.sum(edge * edge, axis=1), 0, 1)
    height = np.full((32, 1), np.clip(p[2], -half, half))
    candidates = np.column_stack([gon + t[:, None] * edge, height])
    # The ends: straight below and above p if p is over the polygon, whose sides come first.
    if (depth[:32] >= 0).all():
        ends = np.array([[p[0], p[1], -half], [p[0], p[1], half]])
        candidates = np.concatenate([candidates, ends])
    distances = np.linalg.norm(p - candidates, axis=1)
    k = int(np.argmin(distances))
    # Rounding may put a point of the surface outside, at distance 0.
    return candidates[k], (p - candidates[k]) / max(distances[k], 1e-300), float(distances[k])


def boxes_meet(w: World, centre: Array, frame: Array, half: Array, hull: Array) -> bool:
    """Whether the sphere's box meets the hull's, in the hull's frame and in the world's."""
    radius = w.p["block_radius"]
    inside = np.abs(frame.T @ (centre - hull)) <= radius + half + 2 * MARGIN
    reach = np.abs(frame) @ (half + MARGIN) + MARGIN
    return bool(inside.all() and (np.abs(centre - hull) <= radius + reach).all())


def disc(half: Array, offset: float) -> float:
    """Radius that a body sweeps about its centre of mass."""
    return float(np.linalg.norm(half + 0.003) + abs(offset))


def contacts(w: World) -> list[Contact]:
    """All rows in the order in which they are solved."""
    return [*_walls(w), *_pairs(w), *_hits(w, False), *_hits(w, True), *_at_walls(w)]


def _row(w: World) -> Array:
    return np.zeros(3 * len(w.blocks) + 6)


def _room(p: Mapping[str, float]) -> list[tuple[Array, Array]]:
    """(lowest corner, highest corner) of the six boxes, each 0.1 m thick."""
    inner, outer = p["room_half_width"], p["room_half_width"] + 0.1
    floor, ceiling = p["room_floor"], p["room_ceiling"]
    top = ceiling + 0.1
    corners = [
        ((-outer, -outer, floor), (outer, -inner, top)),
        ((-outer, inner, floor), (outer, outer, top)),
        ((-outer, -outer, floor), (-inner, outer, top)),
        ((inner, -outer, floor), (outer, outer, top)),
        ((-outer, -outer, ceiling), (outer, outer, top)),
        ((-outer, -outer, floor - 0.1), (outer, outer, floor)),
    ]
    return [(np.array(low), np.array(high)) for low, high in corners]


def _walls(w: World) -> list[Contact]:
    p, rows = w.p, []
    for low, high in _room(p):
        for i in np.flatnonzero(w.alive):
            x, radius = w.blocks[i], p["block_radius"]
            if np.any(x + radius < low) or np.any(x - radius > high):
                continue
            # The edges are rounded: Bullet's box is a smaller one with a margin around it.
            away = x - np.clip(x, low + MARGIN, high - MARGIN)
            distance = np.linalg.norm(away)
            if distance > 0:
                normal, distance = away / distance, distance - MARGIN
            else:  # inside: out through the nearest face
                depths = np.concatenate([x - low, high - x])
                face = int(np.argmin(depths))
                normal = np.eye(3)[face % 3] * (-1.0 if face < 3 else 1.0)
                distance = -depths[face]
            if distance - radius > 0.02 * np.sqrt(3) * radius:
                continue  # only their boxes meet, around the corner of the room
            j = _row(w)
            j[3 * i : 3 * i + 3] = normal
            restitution = p["restitution_wall"] * p["restitution_block"]
            rows.append(Contact(j, distance - radius, restitution))
    return rows


def _pairs(w: World) -> list[Contact]:
    rows = []
    for i in range(len(w.blocks)):
        for k in range(i + 1, len(w.blocks)):
            d = w.blocks[i] - w.blocks[k]
            length = np.linalg.norm(d)
            gap = length - 2 * w.p["block_radius"]
            if w.alive[i] and w.alive[k] and gap <= 0:
                normal = d / length if length > 0 else np.array([1.0, 0.0, 0.0])
                j = _row(w)
                j[3 * i : 3 * i + 3], j[3 * k : 3 * k + 3] = normal, -normal
                rows.append(Contact(j, gap, w.p["restitution_block"] ** 2))
    return rows


def _hits(w: World, on_pole: bool) -> list[Contact]:
    """Blocks against the cart, or against the pole."""
    p, n, rows = w.p, 3 * len(w.blocks), []
    if on_pole:
        radius, half, frame = POLE_RADIUS, 0.5 * p["pole_length"], w.r
        middle = BOTTOM + half
        hull, offset = w.x + middle * w.r[:, 2], p["pole_com"] - middle
    else:
        (radius, half), frame, hull, offset = CART, w.yaw, w.x, PIVOT
    extents = np.array([radius, radius, half])
    breaking = 0.02 * min(np.sqrt(3) * p["block_radius"], disc(extents, offset))
    for i in np.flatnonzero(w.alive):
        if np.linalg.norm(w.blocks[i] - hull) > p["block_radius"] + radius + half + 1:
            continue  # far away; only saves time
        local = frame.T @ (w.blocks[i] - hull)
        point, direction, distance = nearest_on_prism(local, radius, half)
        gap = distance - MARGIN - p["block_radius"]
        if gap > breaking or not boxes_meet(w, w.blocks[i], frame, extents, hull):
            continue
        normal, arm = frame @ direction, frame @ point + hull - w.x
        j = _row(w)
        j[3 * i : 3 * i + 3] = normal
        j[n : n + 2] = -normal[:2]
        if on_pole:
            j[n + 3 :] = -np.cross(arm, normal)
        else:
            j[n + 2] = -np.cross(arm, normal)[2]
        key = "restitution_pole" if on_pole else "restitution_cart"
        rows.append(Contact(j, gap, p["restitution_block"] * p[key]))
    return rows


def _at_walls(w: World) -> list[Contact]:
    """Cart against the side walls, then the pole's top."""
    p, n, rows = w.p, 3 * len(w.blocks), []
    _, _, gon = prism_faces(CART[0], CART[1])
    extents = np.array([CART[0], CART[0], CART[1]])
    reach = np.abs(w.yaw) @ (extents + MARGIN) + MARGIN
    walls = [(axis, sign) for axis in (0, 1) for sign in (-1.0, 1.0)]
    vertices = (w.yaw @ np.column_stack([gon, 0 * gon[:, 0]]).T).T
    for axis, sign in walls:
        room = p["room_half_width"] - sign * w.x[axis]
        arm = vertices[np.argmax(sign * vertices[:, axis])]
        gap = room - sign * arm[axis] - MARGIN
        if room <= reach[axis] and gap <= 0.02 * disc(extents, PIVOT):
            j = _row(w)
            normal = -sign * np.eye(3)[axis]
            j[n : n + 2], j[n + 2] = normal[:2], np.cross(arm, normal)[2]
            rows.append(Contact(j, gap, p["restitution_wall"] * p["restitution_cart"]))
    _, _, gon = prism_faces(POLE_RADIUS, 0.0)
    top = BOTTOM + p["pole_length"]
    tips = (w.r @ np.column_stack([gon, np.full(32, top)]).T).T
    for axis, sign in walls:
        arm = tips[np.argmax(sign * tips[:, axis])]
        gap = p["room_half_width"] - sign * (w.x[axis] + arm[axis]) - MARGIN
        if gap <= MARGIN:
            j = _row(w)
            normal = -sign * np.eye(3)[axis]
            j[n : n + 2], j[n + 3 :] = normal[:2], np.cross(arm, normal)
            rows.append(Contact(j, gap, p["restitution_wall"] * p["restitution_pole"]))
    return rows


def asked(approach: float, row: Contact) -> float:
    """Change of relative velocity that a row asks for."""
    bounce = row.restitution * max(-approach, 0.0) if abs(approach) >= 0.2 else 0.0
    d = row.gap + 1e-5
    return bounce - approach - (d / DT if d > 0 else 0.08 * d / DT)


def resolve(w: World, u: Array, rows: list[Contact]) -> tuple[Array, int]:
    """Projected Gauss-Seidel over dense rows; velocities and the number of passes."""
    if not rows:
        return u, 0
    inverse = np.linalg.inv(mass_matrix(w))
    j = np.stack([row.jacobian for row in rows])
    softness = np.einsum("ri,ik,rk->r", j, inverse, j)
    b = np.array([asked(float(row.jacobian @ u), row) for row in rows])
    impulse, du = np.zeros(len(rows)), np.zeros_like(u)
    sweeps, worst = 0, np.inf
    while sweeps < 50 and worst * worst > 1e-7:
        sweeps, worst = sweeps + 1, 0.0
        for k in range(len(rows)):
            new = max(impulse[k] + (b[k] - j[k] @ du) / softness[k], 0.0)
            change, impulse[k] = new - impulse[k], new
            du += inverse @ j[k] * change
            worst = max(worst, abs(change * softness[k]))
    return u + du, sweeps
