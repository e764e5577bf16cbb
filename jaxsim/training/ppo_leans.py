"""Inputs of a learner that acts by leans: cart and pole, blocks, and the outlook of each lean."""

import itertools

import jax.numpy as jnp
import numpy as np

from jaxsim.agents.base import Agent
from jaxsim.agents.leans import LEANS, Outlook
from jaxsim.lean_actions import Leaned
from jaxsim.training import around, features, ppo
from jaxsim.training.features import BLOCKS, EACH, PAIRS, Frame, LearnerView, Sight
from jaxsim.training.settings import Settings

NEAR, LEANING = 0.3, 0.1  # m and rad, scales of gaps and leans


def _alike() -> np.ndarray:
    """(2, 2, 2, A) leans that look like each lean where x, y are negated and change places."""
    table = np.zeros((2, 2, 2, len(LEANS)), np.int32)
    for x, y, swap in itertools.product((0, 1), repeat=3):
        lean_x, lean_y = LEANS.T[::-1] if swap else LEANS.T
        turned = np.stack([lean_x * (1 - 2 * x), lean_y * (1 - 2 * y)], axis=1)
        squared = ((turned[:, None] - LEANS) ** 2).sum(axis=2)
        table[x, y, swap] = squared.argmin(axis=1)
    return table


ALIKE = _alike()


def _look(leaned: Leaned) -> LearnerView:
    """Cart and pole, urgent blocks and outlook, turned so that the first block comes along x.

    As for `features.cartpole3d`, what is learned in one view of the square room holds in all eight.
    """
    if not isinstance(leaned, Leaned):
        raise ValueError(
            f"an observation of type {type(leaned).__name__} shows no leans; play CartPole3DLeans"
        )
    o = leaned.observation
    pairs = features.cart_and_pole(o)
    block = features.urgent_blocks(o)[0]
    frame = Frame.of(block[3], block[4])
    leans = jnp.asarray(ALIKE)[
        (frame.x < 0).astype(jnp.int32),
        (frame.y < 0).astype(jnp.int32),
        frame.swap.astype(jnp.int32),
    ]
    inputs = (
        features.scaled(pairs, frame),
        features.urgent_blocks(features.turned(o, frame)).ravel(),
        _scaled(leaned.outlook)[:, leans].ravel(),
    )
    return LearnerView(jnp.concatenate(inputs), features.scaled(pairs), leans, around.nothing())


def _scaled(outlook: Outlook) -> jnp.ndarray:
    """(3, A) an outlook, scaled to about 1."""
    return jnp.stack([outlook.upright, jnp.tanh(outlook.gap / NEAR), outlook.end / LEANING])


PARTS = len(Outlook._fields)
sight = Sight("leans", 2 * PAIRS + BLOCKS * EACH + PARTS * len(LEANS), 2 * PAIRS, len(LEANS), _look)
"""Sight of `jaxsim.lean_actions.Leaning`."""

SETTINGS = Settings(updates=32, discount=0.96, trace_decay=0.96)
"""For about 256 episodes in parallel; a step is several ticks, and a dodge takes a second."""


def agent(settings: Settings | None = None, sight: Sight = sight) -> Agent:
    """PPO that holds leans, on CartPole3DLeans; see `ppo.ppo`."""
    return ppo.learner("ppo+leans", settings or SETTINGS, sight)
