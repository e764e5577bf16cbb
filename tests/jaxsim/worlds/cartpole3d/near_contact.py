"""Random states in which much is in contact or nearly so, as named arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import PARAMETER_NAMES
from tests.jaxsim.worlds.cartpole3d.twin import BOTTOM, CART, PIVOT, POLE_RADIUS, UP

Array = np.ndarray

BLOCKS = 4


def random_parameters(draw: np.random.Generator, lanes: int) -> dict[str, Array]:
    """Physics by field name, (lanes,) each; the first half of the lanes is level 200."""
    level = {name: np.full(lanes, float(getattr(Params(), name))) for name in PARAMETER_NAMES}
    changes = {
        "gravity": draw.uniform(0, 20, lanes),
        "drag": draw.uniform(0, 0.2, lanes),
        "cart_mass": np.exp(draw.uniform(-1, 2.5, lanes)),
        "pole_mass": np.exp(draw.uniform(-3, 0, lanes)),
        "pole_length": draw.choice([0.5, 1.0, 3.0, 5.0, 8.0], lanes),
        "pole_com": draw.uniform(0.3, 2.0, lanes),
        "block_radius": draw.choice([0.2, 0.5, 1.0], lanes),
        "block_mass": np.exp(draw.uniform(-1, 1, lanes)),
        "block_buoyancy": draw.uniform(0, 1, lanes),
        "restitution_wall": draw.uniform(0.5, 1.3, lanes),
        "restitution_block": draw.uniform(0.5, 1.3, lanes),
        "restitution_cart": draw.choice([0.0, 0.5], lanes),
        "restitution_pole": draw.choice([0.0, 0.5], lanes),
    }
    changed = np.arange(lanes) >= lanes // 2
    return level | {name: np.where(changed, new, level[name]) for name, new in changes.items()}


def random_states(
    draw: np.random.Generator, params: Mapping[str, Array], crowd: float = 0.85
) -> dict[str, Array]:
    """States named as `state_from_arrays` wants them, one a lane of `params`.

    `crowd` is the share of block slots in use, and of states with cart or pole at a wall.
    """
    lanes = len(params["gravity"])
    lane_params = [{name: values[i] for name, values in params.items()} for i in range(lanes)]
    states = [_state(draw, p, crowd) for p in lane_params]
    return {name: np.stack([s[name] for s in states]) for name in states[0]}


def _state(draw: np.random.Generator, p: Mapping[str, Any], crowd: float) -> dict[str, Array]:
    side = p["room_half_width"]
    cart = draw.uniform(-3, 3, 2)
    tilt = Rotation.from_rotvec(draw.normal(size=3) * [0.08, 0.08, 1.0])
    if draw.random() < 0.2:  # flat out, to reach blocks and walls anyhow
        tilt = Rotation.from_rotvec(draw.normal(size=3))
    yaw = draw.uniform(-np.pi, np.pi)
    frame = Rotation.from_rotvec(yaw * UP)
    axis = (frame * tilt).apply(UP)
    choice = draw.random() / crowd
    if choice < 0.35:  # the cart at one wall or in a corner
        at = draw.random(2) < 0.6
        wall = np.sign(draw.normal(size=2)) * (side - CART[0] - draw.uniform(-0.02, 0.03, 2))
        cart = np.where(at, wall, cart)
    elif choice < 0.7:  # the tip at a wall
        top = BOTTOM + p["pole_length"]
        k = draw.integers(2)
        cart[k] = (
            np.sign(axis[k]) * (side - POLE_RADIUS + draw.uniform(-0.02, 0.02)) - top * axis[k]
        )
        cart = np.clip(cart, -side + 0.48, side - 0.48)
    pivot = np.array([*cart, PIVOT])
    positions = np.zeros((BLOCKS, 3))
    for i in range(BLOCKS):
        positions[i] = _block(draw, p, pivot, frame, axis, positions[:i])
    return {
        "cart_pos": cart,
        "cart_yaw": np.array(yaw),
        "cart_vel": draw.normal(size=2) * 2,
        "cart_yaw_rate": np.array(draw.normal() * 3),
        "pole_jq": tilt.as_quat(),
        "pole_jw": draw.normal(size=3) * [2, 2, 10],
        "block_pos": positions,
        "block_vel": draw.normal(size=(BLOCKS, 3)) * draw.choice([0.1, 5.0]),
        "block_alive": draw.random(BLOCKS) < crowd,
    }


def _block(
    draw: np.random.Generator,
    p: Mapping[str, Any],
    pivot: Array,
    frame: Rotation,
    axis: Array,
    neighbours: Array,
) -> Array:
    """Centre of a block at the cart, the pole, another block, the walls, or anywhere."""
    radius, side = p["block_radius"], p["room_half_width"]
    gap = draw.choice([draw.uniform(-0.1, 0.03), draw.uniform(0.0, 0.02)])
    direction = draw.normal(size=3)
    direction /= np.linalg.norm(direction)
    where = draw.random()
    if where < 0.3:
        angle = draw.uniform(0, 2 * np.pi)
        out = np.array([np.cos(angle), np.sin(angle), draw.choice([0.0, 1.0, draw.normal()])])
        surface = np.array([CART[0] * out[0], CART[0] * out[1], draw.uniform(-1, 1) * CART[1]])
        return pivot + frame.apply(surface + out / np.linalg.norm(out) * (radius + gap))
    if where < 0.6:
        along = BOTTOM + draw.uniform(-0.02, 1.02) * p["pole_length"]
        across = np.cross(axis, direction)
        across /= np.linalg.norm(across)
        across = across + draw.choice([0.0, 0.7]) * axis
        out = across / np.linalg.norm(across)
        return pivot + along * axis + out * (radius + POLE_RADIUS + gap)
    if where < 0.8 and len(neighbours):
        return neighbours[draw.integers(len(neighbours))] + direction * (2 * radius + gap)
    anywhere = np.array([*draw.uniform(-side + radius, side - radius, 2), draw.uniform(1, 9)])
    limits = np.array([side, side, 9.95]) - radius
    signs = np.sign(anywhere - [0, 0, 5])
    walls = signs * (limits - [0, 0, 5]) + [0, 0, 5] - signs * draw.uniform(-0.1, 0.05, 3)
    return np.where(draw.random(3) < 0.4, walls, anywhere)
