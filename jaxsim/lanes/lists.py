"""Input and output of lanes: lists of rounds as data, and rows of results.

A round is up to W episodes that one lifetime plays in parallel from one memory. Front doors (a
syllabus, a SAIL-ON experiment) build such lists and read the rows; the program knows no protocol.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax

from jaxsim import rng
from jaxsim.agents.base import Memory
from jaxsim.pytrees import Leaf, Params, State, Tree


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rounds:
    """Lists of R rounds; leaves (R, P) for P lifetimes, or (R, 1) if all play the same list."""

    episode: Leaf  # int32, number of the round's first episode in its lifetime
    count: Leaf  # int32, episodes of the round; 0 ends the list
    world: Leaf  # int32, environment
    row: Leaf  # int32, row of the environment's parameter table
    learning: Leaf = None  # bool, whether the agent learns from the round; None for never
    enters: Leaf = None  # bool, whether a block begins with the round; None without blocks
    entry: Tree = None  # `agents.Entry` of the block
    hint: Tree = None  # `agents.NoveltyHint`, the hint before the round; None for none
    has_start: Leaf = None  # bool, whether `start` is used; None if every start is drawn
    start: State = None  # states before the hidden first step


class Batch(NamedTuple):
    """P lifetimes with their lists."""

    root: rng.Words  # counter key of all randomness
    number: Leaf  # (P,) uint32, number of each lifetime
    real: Leaf  # (P,) bool, False for padding
    tables: tuple[Params, ...]  # of each environment; leaves () where rows agree, else (V,)
    rounds: Rounds
    memory: Memory  # agent memories before the first round, leaves (P, ...)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rows:
    """Results of episodes; leaves (R, P W), the W episodes of a lifetime adjacent.

    Where a list has no episode, a leaf is 0.
    """

    length: Leaf  # int32, steps
    ending: Leaf  # int32, see `worlds.world`
    reward: Leaf  # float32, sum over the steps
    performance: Leaf  # float32, in [0, 1]
    prediction: Tree  # `NoveltyPrediction` after the last step; None if it is not recorded
    named: Leaf  # int32, catalogue level that the agent names; None if it is not recorded
    fault: Leaf  # int32, fault of the agent as the episode began; None for agents without faults


class ProgramOutput(NamedTuple):
    """Output of a program."""

    memory: Memory  # agent memories after the last round, leaves (P, ...)
    rows: Rows
