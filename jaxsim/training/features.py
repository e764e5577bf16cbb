"""Inputs of a learner's network from an observation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.reference import RATE_GAIN, lean
from jaxsim.env import Env
from jaxsim.pytrees import Leaf, Params, Tree
from jaxsim.training import around
from jaxsim.training.around import Around
from jaxsim.worlds.cartpole3d.types import ACTIONS, DT, Observation, Vector

BLOCKS = 3
"""Blocks that are shown, the most urgent first."""
MIDDLE = 0.6  # m, height of the middle of cart and pole, from which distances are measured
HORIZON = 1.5  # s, longest extrapolation of a block
HASTE = 8.0  # m/s, speed that converts a distance to a time
ROOM, SPEED = 5.0, 10.0  # m and m/s, scales of places and speeds
PAIRS = 4  # horizontal vectors that describe cart and pole
EACH = 11  # numbers that describe a block
BODY = 64
"""Most numbers of an observation that the model of the world predicts one by one."""


class LearnerView(NamedTuple):
    """An observation as a learner sees it."""

    inputs: jax.Array  # (F,) float32, for the network
    body: jax.Array  # (D,) float32, numbers whose change in a step follows a learnable law
    actions: jax.Array  # (A,) int32, the action that each of the network's outputs stands for
    around: Around  # blocks, whose flight can be learned as well


@dataclass(frozen=True)
class Sight:
    """How observations become vectors.

    Attributes:
      name: short name.
      size: length of the network's input, F.
      body: length of the body that the learned model predicts, D.
      actions: number of actions, A.
      look: observation -> view.
    """

    name: str
    size: int
    body: int
    actions: int
    look: Callable[[Tree], LearnerView]


Pair = tuple[Leaf, Leaf]
"""Horizontal parts of a vector."""


class Frame(NamedTuple):
    """One of the eight symmetries of a square room."""

    x: jax.Array  # () 1 or -1, factor of x
    y: jax.Array  # ()
    swap: jax.Array  # () bool, whether x and y then change places

    @classmethod
    def of(cls, x: Leaf, y: Leaf) -> "Frame":
        """The frame in which a horizontal vector points along x more than along y, forwards."""
        return cls(_sign(x), _sign(y), jnp.abs(y) > jnp.abs(x))

    def turned(self, x: Leaf, y: Leaf) -> tuple[jax.Array, jax.Array]:
        """Turn a horizontal vector."""
        x, y = self.x * x, self.y * y
        return jnp.where(self.swap, y, x), jnp.where(self.swap, x, y)

    def actions(self) -> jax.Array:
        """Actions, (A,), that look like the codes 0 to 4 in here."""
        right, left = jnp.where(self.x > 0, 1, 2), jnp.where(self.x > 0, 2, 1)
        ahead, back = jnp.where(self.y > 0, 3, 4), jnp.where(self.y > 0, 4, 3)
        straight = jnp.stack([jnp.int32(0), right, left, ahead, back])
        return jnp.where(self.swap, straight[jnp.array([0, 3, 4, 1, 2])], straight)


def _look(observation: Observation) -> LearnerView:
    """Cart and pole, then the most urgent blocks, turned so that the pole falls to the right.

    The room is symmetric in quarter turns and mirrors. So every observation is turned to the case
    where the pole falls along x more than along y, in positive directions; what is learned there
    holds in the seven other cases as well. Actions are turned with it.
    """
    if not isinstance(observation, Observation):
        raise ValueError(
            f"an observation of type {type(observation).__name__} is none of CartPole3D; make the "
            "learner with settings and features.flat(env, params), or ppo+leans for leans"
        )
    o = observation
    pairs = cart_and_pole(o)
    (lx, ly), (dlx, dly) = pairs[:2]
    frame = Frame.of(lx + RATE_GAIN * dlx, ly + RATE_GAIN * dly)
    inputs = jnp.concatenate([scaled(pairs, frame), urgent_blocks(turned(o, frame)).ravel()])
    return LearnerView(inputs, scaled(pairs), frame.actions(), around.of(o))


def cart_and_pole(o: Observation) -> list[Pair]:
    """`PAIRS` horizontal vectors: lean, its rate, 1/s, place, m, and speed of the cart, m/s."""
    (lx, ly), (dlx, dly) = lean(o)
    # The lean is reported a tick late.
    lx, ly = lx + DT * dlx, ly + DT * dly
    p, v = o.cart_position, o.cart_velocity
    return [(lx, ly), (dlx, dly), (p.x, p.y), (v.x, v.y)]


def scaled(pairs: list[Pair], frame: Frame | None = None) -> jax.Array:
    """Vectors of `cart_and_pole` scaled to about 1, turned into a frame if there is one."""
    (lx, ly), rate, (x, y), speed = pairs
    numbers = [(10 * lx, 10 * ly), rate, (x / ROOM, y / ROOM), speed]
    numbers = [frame.turned(*pair) for pair in numbers] if frame else numbers
    return jnp.stack([number for pair in numbers for number in pair])


def _sign(number: Leaf) -> jax.Array:
    return jnp.where(number < 0, -1.0, 1.0)


def turned(o: Observation, frame: Frame) -> Observation:
    """Turn places and velocities of the cart and the blocks."""

    def vector(v: Vector) -> Vector:
        return Vector(*frame.turned(v.x, v.y), v.z)

    return replace(
        o,
        cart_position=vector(o.cart_position),
        cart_velocity=vector(o.cart_velocity),
        block_position=tuple(vector(p) for p in o.block_position),
        block_velocity=tuple(vector(v) for v in o.block_velocity),
    )


def urgent_blocks(o: Observation) -> jax.Array:
    """(BLOCKS, EACH) relative motion of the most urgent blocks; zeros where there are fewer."""
    count = sum(jnp.size(alive) for alive in o.block_alive)
    alive = jnp.stack(o.block_alive).reshape(count)
    place = jnp.stack([jnp.stack(p) for p in zip(*o.block_position, strict=True)])
    speed = jnp.stack([jnp.stack(v) for v in zip(*o.block_velocity, strict=True)])
    cart_place = jnp.stack([o.cart_position.x, o.cart_position.y, o.cart_position.z + MIDDLE])
    cart_velocity = jnp.stack(o.cart_velocity)
    offset = place.reshape(3, count) - cart_place[:, None]  # (3, N) m
    velocity = speed.reshape(3, count) - cart_velocity[:, None]  # (3, N) m/s
    squared = jnp.maximum(jnp.sum(velocity * velocity, 0), 1e-3)
    wait = jnp.clip(-jnp.sum(offset * velocity, 0) / squared, 0.0, HORIZON)
    miss = offset + wait * velocity
    delay = wait + jnp.sqrt(jnp.sum(miss * miss, 0)) / HASTE + jnp.where(wait > 0, 0.0, 1.0)
    delay = jnp.where(alive, delay, jnp.inf)
    numbers = jnp.concatenate(
        [
            offset / ROOM,
            velocity / SPEED,
            miss / ROOM,
            jnp.exp(-2 * wait)[None],
            jnp.ones((1, count)),
        ]
    )
    numbers = jnp.where(alive, numbers, 0.0)
    rows = []
    for _ in range(BLOCKS):
        chosen = (jnp.arange(count) == jnp.argmin(delay)) & jnp.isfinite(delay)
        rows.append(jnp.sum(jnp.where(chosen, numbers, 0.0), axis=1))
        delay = jnp.where(chosen, jnp.inf, delay)
    return jnp.stack(rows)


cartpole3d = Sight("cartpole3d", 2 * PAIRS + BLOCKS * EACH, 2 * PAIRS, len(ACTIONS), _look)
"""Sight of CartPole3D and the worlds embedded in its observation, for any number of slots."""


def flat(env: Env, params: Params) -> Sight:
    """Return the sight of any environment: all numbers of its observation, one after the other.

    For an observation with a picture it is the picture alone, as in `spaces.flatten`.

    The model of the world predicts these numbers too. If there are more than `BODY`, as in a
    picture, it predicts the means of `BODY` equal stretches.
    """

    def look(observation: Tree) -> LearnerView:
        leaves = jax.tree.leaves(getattr(observation, "image", observation))
        leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in leaves]
        whole = jnp.concatenate(leaves)
        body = whole
        if whole.size > BODY:
            stretch = -(-whole.size // BODY)
            body = jnp.pad(whole, (0, stretch * BODY - whole.size)).reshape(BODY, stretch).mean(1)
        return LearnerView(whole, body, jnp.arange(env.num_actions), around.nothing())

    def first(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        view = look(env.reset(key, params)[0])
        return view.inputs, view.body

    whole, body = jax.eval_shape(first, jax.random.key(0))
    return Sight(env.name, whole.size, body.size, env.num_actions, look)
