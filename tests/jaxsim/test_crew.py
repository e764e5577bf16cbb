"""Lifetimes dealt to threads: what a process keeps of it."""

import gc
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import agents, rng
from jaxsim.lanes.crew import Crew, Spread, executable
from jaxsim.lanes.lists import Rounds

MAPPINGS = Path("/proc/self/maps")


def mappings():
    """Mappings of memory that this process has."""
    gc.collect()
    return MAPPINGS.read_bytes().count(b"\n")


def play(rounds):
    """Lengths of the episodes of one lifetime of CartPole in so many rounds, (R, 1, 1)."""
    env, params = jaxsim.make("CartPole-v1")
    table = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
    root = rng.words(jax.random.key(0))
    crew = Crew(agents.get("random"), [env], [table], root, [0], spread=Spread(threads=1))
    one = np.ones((rounds, 1), np.int32)
    return crew.play(Rounds(np.arange(rounds)[:, None], one, 0 * one, 0 * one)).length


@pytest.mark.skipif(sys.platform != "linux", reason="mappings of memory are counted by Linux")
def test_a_process_keeps_few_programs():
    """What it has compiled is mapped kernel by kernel, and Linux grants a process 65,530."""
    executable.cache_clear()
    before, lengths = mappings(), play(1)
    one = mappings() - before
    np.testing.assert_array_equal(play(2)[:1], lengths)
    assert mappings() - before > 1.5 * one > 0
    # As many as are kept leave room for all else, of level 200 with six times the mappings too.
    assert 6 * one * executable.cache_info().maxsize < 30_000
    executable.cache_clear()
    assert mappings() - before < 0.5 * one
