"""Elastic weight consolidation: what mattered to earlier phases is held where it was.

While it learns, the agent keeps a running estimate of the diagonal of the Fisher information of its
policy. As a phase ends, that estimate joins the importance of each parameter, and the parameters
are noted; later changes cost the square of what they move, times the importance.

Source: J. Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", 2017; one
anchor with summed importances as in J. Schwarz et al., "Progress & compress", 2018.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.base import Agent, Entry
from jaxsim.pytrees import Tree
from jaxsim.training import features, network, normalise, ppo
from jaxsim.training.features import Sight
from jaxsim.training.network import Layer, Network
from jaxsim.training.settings import Settings

WINDOW = 10
"""Calls of `learn` that the running estimate looks back on."""


class Consolidated(NamedTuple):
    """What the agent holds on to."""

    anchor: Network
    importance: Network
    recent: Network  # running estimate of the present phase
    rounds: jax.Array  # () int32, calls of `learn` in it


def agent(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """PPO with elastic weight consolidation at phase ends; see `ppo.ppo`."""
    return ppo.learner("ppo+ewc", settings or Settings(), sight, VARIANT)


def _init(parameters: Network) -> Consolidated:
    zero = jax.tree.map(jnp.zeros_like, parameters)
    return Consolidated(zero, zero, zero, jnp.int32(0))


def _enter(memory: ppo.Memory, entry: Entry, fresh: Tree) -> ppo.Memory:
    """Consolidate what the phase before has taught."""
    held: Consolidated = memory.extra
    joined = jax.tree.map(jnp.add, held.importance, held.recent)
    zero = jax.tree.map(jnp.zeros_like, held.recent)
    now = Consolidated(memory.parameters, joined, zero, jnp.int32(0))
    ends = entry.new_phase & (held.rounds > 0)
    return replace(memory, extra=ppo.choose(ends, now, held))


def _penalty(memory: ppo.Memory, parameters: Network, key: jax.Array) -> jax.Array:
    held: Consolidated = memory.extra
    costs = jax.tree.map(
        lambda p, a, i: jnp.sum(i * (p - a) ** 2),
        parameters,
        held.anchor,
        held.importance,
    )
    return 0.5 * memory.hyper.consolidation * sum(jax.tree.leaves(costs))


def _after(memory: ppo.Memory, decisions: ppo.Decisions, key: jax.Array) -> Consolidated:
    held: Consolidated = memory.extra
    rounds = held.rounds + 1
    x = normalise.apply(memory.moments, decisions.seen)
    information = fisher(memory.parameters, x, decisions.output)
    share = 1.0 / jnp.minimum(rounds, WINDOW)
    recent = jax.tree.map(lambda old, new: old + share * (new - old), held.recent, information)
    return held._replace(recent=recent, rounds=rounds)


def fisher(parameters: Network, x: jax.Array, action: jax.Array) -> Network:
    """Estimate the diagonal of the Fisher information of a policy.

    The gradient of one decision by a weight is what its layer takes in times the gradient by what
    the layer puts out, so that the mean of squares over decisions is a product of two matrices.

    Args:
      parameters: of the network.
      x: (B, F) its input.
      action: (B, A) one-hot, drawn from the policy.

    Returns:
      The mean over decisions of the squared gradients of the action's log-probability.
    """
    every = (*parameters.trunk, parameters.head)
    still = [jnp.zeros((*x.shape[:-1], layer.bias.size)) for layer in every]

    def chance(nudges: Any) -> tuple[jax.Array, list[jax.Array]]:
        *taken, out = network.layers(parameters, x, nudges)
        return jnp.sum(network.read(out)[0] * action), taken

    gradients, taken = jax.grad(chance, has_aux=True)(still)
    number = x.shape[0]
    layers = [
        Layer((a**2).T @ (g**2) / number, jnp.mean(g**2, axis=0))
        for a, g in zip(taken, gradients, strict=True)
    ]
    return Network(tuple(layers[:-1]), layers[-1])


VARIANT = ppo.Variant(_init, _enter, _penalty, _after)
