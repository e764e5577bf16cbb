"""A learned model of the world: what bodies do within a step while nothing hits them.

Three linear laws are learned by robust least squares. One tells how the body changes, from where it
is and what is done. Two are of blocks, axis by axis: how one flies, and how one comes back from a
wall. Nothing is told of gravity, drag, pushes or restitution.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.training import around, regression
from jaxsim.training.around import Blocks
from jaxsim.training.regression import Fit

WINDOW = 320.0
"""Episodes that the model looks back on."""
BODY_FLOOR = 1e-3
"""Smallest standard error of a change of the body."""
SPEED_FLOOR = 5e-3  # m/s, smallest standard error of a block's speed
SLOW = 0.5  # m/s, towards a wall; slower blocks at one are not looked at
SPEED = 10.0  # m/s, that stands for one
ROOM = 5.0  # m, that stand for one
FEATURES = 4
"""Of a block along an axis."""


class Model(NamedTuple):
    """What was learned."""

    body: Fit
    flying: Fit  # leaves (3, ...), by axis
    bouncing: Fit  # leaves (3, ...)


class Flight(NamedTuple):
    """Blocks in the terms of the model, (..., 3) by axis, and features."""

    flies: jax.Array  # bool, whether it touches nothing along the axis
    bounces: jax.Array  # bool, whether it goes into a wall
    outward: jax.Array  # 1 or -1
    flying: jax.Array  # (..., 3, 4)
    bouncing: jax.Array  # (..., 3, 4)


class Lessons(NamedTuple):
    """Steps to learn from."""

    body: jax.Array  # (B, D)
    action: jax.Array  # (B, A) one-hot
    after: jax.Array  # (B, D) body one step later
    calm: jax.Array  # (B,) bool, whether nothing hits it
    block: Blocks  # leaves (B, ...), one of each step
    speed: jax.Array  # (B, 3) m/s, of the block one step later


def init(body: int, actions: int) -> Model:
    """Return a model that knows nothing.

    Args:
      body: numbers of a body, D.
      actions: A.
    """
    axes = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), regression.init(FEATURES, 1))
    return Model(regression.init(2 * body + actions, body), axes, axes)


def features(body: jax.Array, action: jax.Array) -> jax.Array:
    """What the body's law is linear in, (..., 2 D + A): as drag is, in speeds and their squares."""
    return jnp.concatenate([body, body * jnp.abs(body), action], axis=-1)


def flight(blocks: Blocks) -> Flight:
    """Put blocks in the terms of the model; leaves (..., 3) and (..., 3, 4)."""
    alone, speed = blocks.alone[..., None], blocks.speed
    depth = jnp.abs(blocks.place) - jnp.array(around.REACH)
    outward = jnp.where(blocks.place < 0, -1.0, 1.0)
    out = speed * outward
    fast = jnp.sqrt(jnp.sum(speed * speed, axis=-1, keepdims=True)) / SPEED
    one = jnp.ones_like(speed)
    return Flight(
        alone & (depth < -around.EDGE),
        alone & (depth > around.EDGE) & (out > SLOW),
        outward,
        jnp.stack([one, speed, speed * fast, blocks.place / ROOM], axis=-1),
        jnp.stack([one, out, out * fast, depth], axis=-1),
    )


def body_after(model: Model, body: jax.Array, action: jax.Array) -> jax.Array:
    """Predict the body (..., D) after a step with an action (..., A), one-hot."""
    return body + features(body, action) @ model.body.weight


def speed_after(model: Model, blocks: Blocks) -> jax.Array:
    """Predict the speeds of blocks after a step, (..., 3) m/s."""
    here = flight(blocks)
    flown = jnp.sum(here.flying * model.flying.weight[..., 0], axis=-1)
    back = jnp.sum(here.bouncing * model.bouncing.weight[..., 0], axis=-1) * here.outward
    return blocks.speed + jnp.where(here.bounces, back, flown)


def learn(model: Model, lessons: Lessons, steps: jax.Array, episodes: jax.Array) -> Model:
    """Learn from steps.

    Args:
      model: what was learned before.
      lessons: drawn from the steps that were made, B of them.
      steps: () how many were made.
      episodes: () in how many episodes.
    """
    keep = jnp.exp(-episodes / WINDOW)
    each = steps / lessons.calm.shape[0]
    here, change = flight(lessons.block), (lessons.speed - lessons.block.speed)[..., None]
    body = regression.update(
        model.body,
        features(lessons.body, lessons.action),
        lessons.after - lessons.body,
        each * lessons.calm,
        keep,
        BODY_FLOOR,
    )
    by_axis = jax.vmap(regression.update, in_axes=(0, 1, 1, 1, None, None))
    flying = by_axis(model.flying, here.flying, change, each * here.flies, keep, SPEED_FLOOR)
    back, returns = change * here.outward[..., None], each * here.bounces
    bouncing = by_axis(model.bouncing, here.bouncing, back, returns, keep, SPEED_FLOOR)
    return Model(body, flying, bouncing)
