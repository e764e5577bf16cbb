"""Start states, drawn on the device.

The original's reset runs one physics tick with the action "nothing", in which the drawn "initial
velocity" of the cart acts as a force. The states here are those before that hidden tick (`step` is
-1); the first step from them leads to the first observation.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.backend import materialise, opaque_one
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d.blocks import slots
from jaxsim.worlds.cartpole3d.blocks.placement import (
    BLOCK_MIDDLE,
    BLOCK_SPREAD,
    REDRAWS,
    at_speed,
    clear_of,
    rarely_fitting,
    sign,
)
from jaxsim.worlds.cartpole3d.tick import advance
from jaxsim.worlds.cartpole3d.types import (
    RESTING,
    Config,
    Params,
    Pose,
    Rail,
    Scalar,
    Sphere,
    State,
    Supply,
    Vector,
    Velocity,
)

AIM_HEIGHT = 0.5  # m, height at which blocks are aimed at the cart

# Counter slots of one episode's start.
_SLOT_CART, _SLOT_PUSH, _SLOT_POLE, _SLOT_COUNT, _SLOT_POINT = 0, 2, 4, 10, 11
_SLOT_BOUNCE, _SLOT_WIND, _SLOT_BLOCKS = 15, 16, 20
_SLOTS_PER_BLOCK = 8 + 3 * REDRAWS

# Counter of the key of lines, and its slots for each block.
_LINES = 1
LINE_REDRAWS = 512  # most lines tried, and most places on a line; about a tenth fit
_SLOT_HEIGHT, _SLOT_SPEED, _SLOT_SIGN, _SLOT_LINES = 0, 1, 2, 3
_SLOT_PLACES = _SLOT_LINES + 3 * LINE_REDRAWS
_SLOTS_PER_LINE = _SLOT_PLACES + LINE_REDRAWS


def draw(key: jax.Array, params: Params, config: Config) -> State:
    """Draw the state before the hidden first tick.

    Args:
      key: () or (L,) typed key of the episode.
      params: physics; leaves that broadcast with the key.
      config: capacity and precision.
    """
    k = rng.words(key)
    dtype = jnp.dtype(config.dtype)

    def within(slot: int, spread: Scalar) -> jax.Array:
        return rng.uniform(k, slot, -1.0, 1.0, dtype) * spread

    x, y = (within(_SLOT_CART + i, params.start_spread) for i in range(2))
    push = [within(_SLOT_PUSH + i, params.start_push) for i in range(2)]
    lean = [within(_SLOT_POLE + i, params.start_lean) for i in range(6)]
    span = params.block_count_max - params.block_count_min + 1
    share = rng.uniform(k, _SLOT_COUNT, dtype=dtype)
    count = params.block_count_min + jnp.minimum(jnp.floor(share * span), span - 1)
    blocks = _draw_blocks(k, x, y, count, params, config)
    if "lines" in config.terms:
        blocks = _draw_lines(rng.fold(k, _LINES), blocks, x, y, lean[0], params, config)
    bounce = rng.uniform(k, _SLOT_BOUNCE, dtype=dtype) * params.bounce_spread
    angle = rng.uniform(k, _SLOT_WIND, dtype=dtype) * (2 * jnp.pi)
    start = initial(x, y, push, lean, slots.arrange(blocks), bounce, angle)
    return fitted(start, config)


def _draw_blocks(
    k: rng.Words, x: jax.Array, y: jax.Array, count: jax.Array, params: Params, config: Config
) -> Sphere:
    """Draw all blocks, clear of the cart at (x, y); leaves (N, ...)."""
    number = config.max_blocks
    dtype = jnp.dtype(config.dtype)
    index = jnp.arange(number).reshape((number,) + (1,) * x.ndim)
    base = _SLOT_BLOCKS + index * _SLOTS_PER_BLOCK
    p = clear_of(k, base + 8, x, y, dtype)
    v = _draw_velocities(k, base, p, Vector(x, y, jnp.zeros_like(x)), params, dtype)
    # Computed once for all slots.
    p, v = materialise((p, v), opaque_one((k.a + index).astype(dtype)))
    return _present(p, v, index < count)


def _present(p: Vector, v: Vector, alive: jax.Array) -> Sphere:
    """Blocks with rest values in the slots that are not alive."""
    rest = (0.0, 0.0, RESTING)
    return Sphere(
        Vector(*(jnp.where(alive, c, default) for c, default in zip(p, rest, strict=True))),
        Vector(*(jnp.where(alive, c, 0.0) for c in v)),
        alive,
    )


def _draw_lines(
    k: rng.Words,
    free: Sphere,
    x: jax.Array,
    y: jax.Array,
    lean: jax.Array,
    params: Params,
    config: Config,
) -> Sphere:
    """Put blocks on lines in the lanes that have them; leaves (N, ...)."""
    number = config.max_blocks
    dtype = jnp.dtype(config.dtype)
    base = jnp.arange(number).reshape((number,) + (1,) * x.ndim) * _SLOTS_PER_LINE

    def unit(k: rng.Words, base: jax.Array, slot: Leaf) -> jax.Array:
        return rng.uniform(k, base + slot, dtype=dtype)

    def line(inputs: Tree, attempt: jax.Array | int) -> Vector:
        k, base, *_ = inputs
        px, py, turn = (unit(k, base, _SLOT_LINES + 3 * attempt + i) for i in range(3))
        spread = BLOCK_SPREAD
        return Vector(spread * (2 * px - 1), spread * (2 * py - 1), 2 * jnp.pi * turn)

    def in_band(inputs: Tree, candidate: Vector) -> jax.Array:
        _, _, x, y, near, far = inputs
        px, py, angle = candidate
        distance = jnp.abs(jnp.cos(angle) * (py - y) - jnp.sin(angle) * (px - x))
        return (far <= 0) | ((distance >= near) & (distance <= far))

    # Without lines, the first one fits.
    far = jnp.asarray(params.line_far)
    band = (k, base, x, y, params.line_near, far)
    px, py, angle = rarely_fitting(line, in_band, LINE_REDRAWS, band)
    height = 2 * unit(k, base, _SLOT_HEIGHT) - 1
    engine = config.engine

    def place(inputs: Tree, attempt: jax.Array | int) -> Vector:
        k, base, lean, *_ = inputs
        s = LINE_REACH * (2 * unit(k, base, _SLOT_PLACES + attempt) - 1)
        s = joint_position(s, lean, engine)
        return Vector(s, 0.0 * s, 0.0 * s)

    def inside(inputs: Tree, candidate: Vector) -> jax.Array:
        _, _, _, px, py, angle, far = inputs
        return (far <= 0) | starts_inside(Vector(px, py, 0.0), angle, candidate.x)

    point = Vector(px, py, height)
    line_inputs = (k, base, lean, px, py, angle, far)
    s = rarely_fitting(place, inside, LINE_REDRAWS, line_inputs).x
    low, high = params.block_speed_min, params.block_speed_max
    speed = sign(k, base + _SLOT_SIGN) * (low + (high - low) * unit(k, base, _SLOT_SPEED))
    on_lines = on_line(point, angle, s, speed)
    has_line = free.alive & (far > 0)
    no_rail = Rail(*(0.0 * angle for _ in range(4)))
    off_lines = Sphere(free.p, free.v, free.alive, no_rail)
    on_lines = Sphere(on_lines.p, on_lines.v, free.alive, on_lines.rail)
    return jax.tree.map(lambda a, b: jnp.where(has_line, a, b), on_lines, off_lines)


LINE_REACH = 10.0  # m, blocks start within +- this along their line


def joint_position(s: Leaf, lean: Leaf, engine: str) -> Leaf:
    """Place on the line that an engine's reset sets for a drawn one, m.

    The patched engine divides every joint position it sets by the length of two numbers. The second
    is a leftover in memory: the first of the pole's initial numbers.
    """
    return s / (s * s + lean * lean) ** 0.5 if engine == "tbplanar" else s


def starts_inside(base: Vector, angle: Leaf, s: Leaf) -> Leaf:
    """Whether the original accepts a place on a line, with its wrong direction.

    It uses the z component of the line's quaternion as the line's angle.
    """
    z = angle / (1 + angle * angle) ** 0.5
    px, py = base.x + s * jnp.cos(z), base.y + s * jnp.sin(z)
    return (jnp.abs(px) < BLOCK_SPREAD) & (jnp.abs(py) < BLOCK_SPREAD)


def on_line(base: Vector, angle: Leaf, s: Leaf, speed: Leaf) -> Sphere:
    """A block on a line, before the hidden tick.

    Args:
      base: m, point of the line; the block is 1 m higher.
      angle: drawn for the line. The original writes it into a quaternion (0, 0, angle, 1), so the
        line points to 2 atan(angle). Until the quaternion is normalised in the hidden tick,
        collider and sensors are (1 + angle^2) times as far from the base, in height too.
      s: m, along the line from the base.
      speed: m/s, along the line.
    """
    direction = 2 * jnp.arctan(angle)
    cos, sin = jnp.cos(direction), jnp.sin(direction)
    rise = angle * angle
    excess = rise * s
    far = s + excess
    return Sphere(
        Vector(base.x + far * cos, base.y + far * sin, base.z + 1 + rise),
        Vector(speed * cos, speed * sin, 0.0 * speed),
        jnp.ones_like(speed, bool),
        Rail(cos, sin, -excess, -rise),
    )


def _draw_velocities(
    k: rng.Words, base: jax.Array, p: Vector, cart: Vector, params: Params, dtype: jnp.dtype
) -> Vector:
    """Initial velocities at positions p: nominal, scattered, aimed at the cart, or gathering."""

    def unit(slot: jax.Array | int) -> jax.Array:
        return rng.uniform(k, slot, dtype=dtype)

    low, high = params.block_speed_min, params.block_speed_max
    sizes = [unit(base + i) for i in range(3)]
    nominal = [sign(k, base + 3 + i) * (u * (high - low) + low) for i, u in enumerate(sizes)]
    scattered = [params.scatter_speed * (2 * u - 1) for u in sizes]
    scatter = params.scatter_speed > 0
    v = Vector(*(jnp.where(scatter, a, b) for a, b in zip(scattered, nominal, strict=True)))
    target = Vector(cart.x, cart.y, cart.z + AIM_HEIGHT)
    low, high = params.aim_speed_min, params.aim_speed_max
    aimed = at_speed(p, target, low + (high - low) * unit(base + 7))
    v = _either(unit(base + 6) < params.aim_share, aimed, v)
    point = _gathering_point(*(unit(_SLOT_POINT + i) for i in range(3)))
    gathering = at_speed(p, point, params.gather_speed_max * unit(_SLOT_POINT + 3))
    return _either(jnp.asarray(params.gather_speed_max) > 0, gathering, v)


def _gathering_point(*units: Scalar) -> Vector:
    """Target of the blocks of levels 103 and 113, from numbers in [0, 1)."""
    x, y, z = (BLOCK_SPREAD * (2 * u - 1) for u in units)
    return Vector(x, y, z + BLOCK_MIDDLE)


def _either(condition: jax.Array, a: Vector, b: Vector) -> Vector:
    return Vector(*(jnp.where(condition, x, y) for x, y in zip(a, b, strict=True)))


def initial(
    x: jax.Array,
    y: jax.Array,
    push: list[jax.Array],
    lean: list[jax.Array],
    blocks: tuple[Sphere, ...],
    bounce: jax.Array,
    wind_angle: jax.Array,
) -> State:
    """Assemble a state before the hidden tick; the pole's quaternion is (r0, r1, r2, 1)."""
    r0, r1, r2, w0, w1, _ = lean
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    size = jnp.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + 1)
    pose = Pose(x, y, one, zero, r0 / size, r1 / size, r2 / size, 1 / size)
    velocity = Velocity(zero, zero, zero, w0, w1, zero)
    step = jnp.full(x.shape, -1, jnp.int32)
    wind = Vector(-jnp.sin(wind_angle), jnp.cos(wind_angle), zero)
    push_at_start = Vector(push[0], push[1], zero)
    return State(pose, pose, velocity, blocks, bounce, wind, push_at_start, step, step >= 0)


def fitted(start: State, config: Config) -> State:
    """Convert a start to the form of a configuration: its slots and optional parts.

    Args:
      start: before the hidden tick, with at most as many slots as the configuration has.
      config: of the environment.
    """
    lane = start.pose.x
    block = slots.stack(start.blocks, lane)
    if "lines" in config.terms and block.rail is None:
        block = replace(block, rail=Rail(*(0.0 * block.p.x for _ in range(4))))
    spare = config.max_blocks - block.alive.shape[0]
    if spare < 0:
        raise ValueError(
            f"the start has {block.alive.shape[0]} block slots; config.max_blocks is "
            f"{config.max_blocks}"
        )
    block = jax.tree.map(partial(_lengthen, spare=spare), block)
    middle = jnp.where(block.alive, block.p.z, RESTING)
    block = replace(block, p=Vector(block.p.x, block.p.y, middle))
    zero = 0.0 * lane
    here = Vector(lane, start.pose.y, zero)
    supply = Supply(here, Vector(zero, zero, zero)) if "spawn" in config.terms else None
    return replace(start, blocks=slots.arrange(block), supply=supply)


def _lengthen(leaf: jax.Array, spare: int) -> jax.Array:
    """Pad with slots of zeros."""
    return jnp.concatenate([leaf, jnp.zeros((spare, *leaf.shape[1:]), leaf.dtype)])


def begin(start: State, params: Params, config: Config, key: rng.Words) -> State:
    """Run the hidden first tick; return the state of the first observation."""
    active = jnp.ones_like(start.done)
    return advance(params, config, key, start, start.push, active)[0]
