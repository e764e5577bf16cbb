"""A learned model of the world: how bodies move within a step without hits.

Three linear laws are learned by robust least squares. One predicts the change of the body from its
state and the action. Two predict the speeds of blocks, axis by axis: in flight, and after a bounce
off a wall. Gravity, drag, pushes and restitution are not given.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.training import around, regression
from jaxsim.training.around import Blocks
from jaxsim.training.regression import Fit

WINDOW = 320.0
"""Episodes that the model averages over."""
BODY_FLOOR = 1e-3
"""Smallest standard error of a change of the body."""
SPEED_FLOOR = 5e-3  # m/s, smallest standard error of a block's speed
SLOW = 0.5  # m/s, towards a wall; slower blocks at a wall are ignored
SPEED = 10.0  # m/s, scale of speeds
ROOM = 5.0  # m, scale of places
FEATURES = 4
"""Number of features of a block along an axis."""


class LearnedLaws(NamedTuple):
    """The learned laws."""

    body: Fit
    flying: Fit  # leaves (3, ...), by axis
    bouncing: Fit  # leaves (3, ...)


class Flight(NamedTuple):
    """Blocks as the model needs them: (..., 3) by axis, and features."""

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


def init(body: int, actions: int) -> LearnedLaws:
    """Return the model before it has learned.

    Args:
      body: numbers of a body, D.
      actions: A.
    """
    axes = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), regression.init(FEATURES, 1))
    return LearnedLaws(regression.init(2 * body + actions, body), axes, axes)


def features(body: jax.Array, action: jax.Array) -> jax.Array:
    """Features of the body's law, (..., 2 D + A): body, signed squares (as in drag), and action."""
    return jnp.concatenate([body, body * jnp.abs(body), action], axis=-1)


def flight(blocks: Blocks) -> Flight:
    """Features of blocks for the model; leaves (..., 3) and (..., 3, 4)."""
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


def body_after(model: LearnedLaws, body: jax.Array, action: jax.Array) -> jax.Array:
    """Predict the body (..., D) after a step with an action (..., A), one-hot."""
    return body + features(body, action) @ model.body.weight


def speed_after(model: LearnedLaws, blocks: Blocks) -> jax.Array:
    """Predict the speeds of blocks after a step, (..., 3) m/s."""
    terms = flight(blocks)
    flying = jnp.sum(terms.flying * model.flying.weight[..., 0], axis=-1)
    bouncing = jnp.sum(terms.bouncing * model.bouncing.weight[..., 0], axis=-1) * terms.outward
    return blocks.speed + jnp.where(terms.bounces, bouncing, flying)


def learn(
    model: LearnedLaws, lessons: Lessons, steps: jax.Array, episodes: jax.Array
) -> LearnedLaws:
    """Learn from steps.

    Args:
      model: learned before.
      lessons: B steps, drawn from all.
      steps: () number of all steps.
      episodes: () number of their episodes.
    """
    keep = jnp.exp(-episodes / WINDOW)
    weight = steps / lessons.calm.shape[0]
    terms, change = flight(lessons.block), (lessons.speed - lessons.block.speed)[..., None]
    body = regression.update(
        model.body,
        features(lessons.body, lessons.action),
        lessons.after - lessons.body,
        weight * lessons.calm,
        keep,
        BODY_FLOOR,
    )
    by_axis = jax.vmap(regression.update, in_axes=(0, 1, 1, 1, None, None))
    flying = by_axis(model.flying, terms.flying, change, weight * terms.flies, keep, SPEED_FLOOR)
    rebound, bounce_weight = change * terms.outward[..., None], weight * terms.bounces
    bouncing = by_axis(model.bouncing, terms.bouncing, rebound, bounce_weight, keep, SPEED_FLOOR)
    return LearnedLaws(body, flying, bouncing)
