"""An agent's functions over lanes; the W lanes of a lifetime share leaves that are only read.

The weights of a network are read by all episodes of a round and changed by none. So they are stored
once for each lifetime, and leaves that an episode changes are stored once for each lane.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.tree_util import PyTreeDef

from jaxsim.agents import contract
from jaxsim.agents.base import Agent, Memory
from jaxsim.pytrees import Observation, Tree

T = TypeVar("T")


@dataclass(frozen=True)
class Minds:
    """Memories of lifetimes and lanes as their leaves, in two lists.

    Shared leaves, (P, ...), are those that `begin` and `act` return unchanged; local leaves,
    (P W, ...), belong to a lane.

    Attributes:
      agent: pure agent.
      structure: tree structure of a memory.
      shared: for each leaf whether it is shared.
      width: lanes of each lifetime, W.
    """

    agent: Agent
    structure: PyTreeDef
    shared: tuple[bool, ...]
    width: int

    @classmethod
    def of(cls, agent: Agent, memory: Memory, observation: Observation, width: int) -> "Minds":
        """Find the leaves that an agent only reads in an episode, by a trace.

        Args:
          agent: pure agent.
          memory: shapes of one memory.
          observation: shapes of one observation.
          width: lanes of each lifetime.

        Raises:
          TypeError: what `begin` or `act` return is of another form than engines need.
        """
        leaves, structure = jax.tree.flatten(memory)

        def episode(leaves: Tree, observation: Observation, key: jax.Array) -> list[jax.Array]:
            memory = jax.tree.unflatten(structure, leaves)
            first = agent.begin(memory, key)
            contract.check_memory("begin", first, memory)
            answer = agent.act(first, observation, key)
            contract.check_answer(answer, memory)
            return jax.tree.leaves(answer[2])

        key = jax.eval_shape(lambda: jax.random.key(0))
        traced = jax.make_jaxpr(episode)(leaves, observation, key).jaxpr
        inputs = traced.invars[: len(leaves)]
        shared = tuple(a is b for a, b in zip(inputs, traced.outvars, strict=True))
        return cls(agent, structure, shared, width)

    def split(self, memory: Memory) -> tuple[list[jax.Array], list[jax.Array]]:
        """Split memories of lifetimes into shared and local leaves, all (P, ...)."""
        pairs = list(zip(self.shared, jax.tree.leaves(memory), strict=True))
        return [leaf for shared, leaf in pairs if shared], [
            leaf for shared, leaf in pairs if not shared
        ]

    def joined(self, shared: list[jax.Array], local: list[jax.Array]) -> Memory:
        """Inverse of `split`."""
        sources = {True: iter(shared), False: iter(local)}
        return jax.tree.unflatten(self.structure, [next(sources[s]) for s in self.shared])

    def spread(self, local: list[jax.Array]) -> list[jax.Array]:
        """Copy the local leaves of lifetimes, (P, ...), to their lanes, (P W, ...)."""
        return [jnp.repeat(leaf, self.width, axis=0) for leaf in local]

    def first(self, local: list[jax.Array]) -> list[jax.Array]:
        """Take the leaves of the first lane of each lifetime."""
        return [leaf[:: self.width] for leaf in local]

    def begin(self, shared: Tree, local: Tree, key: jax.Array) -> list[jax.Array]:
        """Call `Agent.begin`; return the local leaves."""

        def one(memory: Memory, key: jax.Array) -> list[jax.Array]:
            return self.split(self.agent.begin(memory, key))[1]

        result: list[jax.Array] = self._each(one, shared, local, key)
        return result

    def act(self, shared: Tree, local: Tree, observation: Observation, key: jax.Array) -> Tree:
        """Call `Agent.act`; return (action, prediction, local leaves)."""

        def one(memory: Memory, observation: Observation, key: jax.Array) -> Tree:
            action, prediction, after = self.agent.act(memory, observation, key)
            return action, prediction, self.split(after)[1]

        return self._each(one, shared, local, observation, key)

    def trace(self, shared: Tree, local: Tree, observation: Observation, action: jax.Array) -> Tree:
        """Call `Agent.trace`."""
        assert self.agent.trace is not None
        return self._each(self.agent.trace, shared, local, observation, action)

    def _each(self, function: Callable[..., T], shared: Tree, local: Tree, *arguments: Tree) -> T:
        """Call a function of one lifetime for every lane."""

        def one(shared: Tree, local: Tree, *arguments: Tree) -> T:
            return function(self.joined(shared, local), *arguments)

        if self.width == 1:
            return jax.vmap(one)(shared, local, *arguments)
        folded = jax.tree.map(
            lambda leaf: leaf.reshape(-1, self.width, *leaf.shape[1:]), (local, *arguments)
        )
        lanes_of_one = jax.vmap(one, in_axes=(None, *(0 for _ in folded)))
        result = jax.vmap(lanes_of_one)(shared, *folded)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), result)
