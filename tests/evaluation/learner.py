"""A tiny agent that learns to balance poles, with memories of every kind, for runs that resume.

It searches at random: each episode tries other gains, and keeps those that did better than before.
"""

import jax
import jax.numpy as jnp

from jaxsim import agents
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.agents.reference import lean, push_along

NAME = "searcher"


def _init(key):
    return {
        "key": key,
        "gains": jnp.zeros(2),
        "trial": jnp.zeros(2),
        "best": jnp.bfloat16(0.0),
        "learned": 0,
        "nothing": (),
        "empty": jnp.zeros((0, 3)),
    }


def _begin(memory, key):
    next_key = jax.random.fold_in(memory["key"], memory["learned"])
    noise = jax.random.normal(key, (2,)) * jax.random.uniform(next_key)
    return {**memory, "key": next_key, "trial": memory["gains"] + noise}


def _act(memory, observation, key):
    (lx, ly), (dlx, dly) = lean(observation)
    angle, rate = memory["trial"]
    action = push_along(angle * lx + rate * dlx, angle * ly + rate * dly)
    return action, NoveltyPrediction.none(), memory


def _learn(memory, episodes):
    mask = jnp.ones(episodes.length.shape, bool) if episodes.played is None else episodes.played
    score = jnp.mean(episodes.performance, where=mask).astype(jnp.bfloat16)
    better = score > memory["best"]
    return {
        **memory,
        "gains": jnp.where(better, memory["trial"], memory["gains"]),
        "best": jnp.maximum(score, memory["best"]),
        "learned": memory["learned"] + 1,
    }


searcher = Agent(NAME, _act, _init, _begin, _learn)


def register():
    """Make the agent known by its name."""
    agents.AGENTS[NAME] = searcher
