"""Elastic weight consolidation: parameters that matter to earlier phases stay near their values.

While it learns, the agent keeps a running estimate of the diagonal of the Fisher information of its
policy. As a phase ends, that estimate is added to the importance of each parameter, and the
parameters become the anchor. Later changes cost the squared distance from it, times the importance.

Source: J. Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", 2017; one
anchor with summed importances as in J. Schwarz et al., "Progress & compress", 2018.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.base import Agent, Entry
from jaxsim.pytrees import Tree
from jaxsim.training import features, network, normalise, ppo
from jaxsim.training.features import Sight
from jaxsim.training.network import Layer, Network
from jaxsim.training.settings import Settings

WINDOW = 10
"""Calls of `learn` that the running estimate averages over."""


class Consolidated(NamedTuple):
    """The agent's state of consolidation."""

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
    """Consolidate the phase that has ended."""
    state: Consolidated = memory.extra
    importance = jax.tree.map(jnp.add, state.importance, state.recent)
    zero = jax.tree.map(jnp.zeros_like, state.recent)
    consolidated = Consolidated(memory.parameters, importance, zero, jnp.int32(0))
    ends = entry.new_phase & (state.rounds > 0)
    return replace(memory, extra=ppo.choose(ends, consolidated, state))


def _penalty(memory: ppo.Memory, parameters: Network, key: jax.Array) -> jax.Array:
    state: Consolidated = memory.extra
    costs = jax.tree.map(
        lambda p, a, i: jnp.sum(i * (p - a) ** 2),
        parameters,
        state.anchor,
        state.importance,
    )
    return 0.5 * memory.hyper.consolidation * sum(jax.tree.leaves(costs))


def _after(memory: ppo.Memory, decisions: ppo.Decisions, key: jax.Array) -> Consolidated:
    state: Consolidated = memory.extra
    rounds = state.rounds + 1
    x = normalise.apply(memory.moments, decisions.inputs)
    information = fisher(memory.parameters, x, decisions.output)
    share = 1.0 / jnp.minimum(rounds, WINDOW)
    recent = jax.tree.map(lambda old, new: old + share * (new - old), state.recent, information)
    return state._replace(recent=recent, rounds=rounds)


def fisher(parameters: Network, x: jax.Array, action: jax.Array) -> Network:
    """Estimate the diagonal of the Fisher information of a policy.

    The gradient of one decision by a weight is the layer's input times the gradient by the layer's
    output, so that the mean of squares over decisions is a product of two matrices.

    Args:
      parameters: of the network.
      x: (B, F) its input.
      action: (B, A) one-hot, drawn from the policy.

    Returns:
      The mean over decisions of the squared gradients of the action's log-probability.
    """
    all_layers = (*parameters.trunk, parameters.head)
    zeros = [jnp.zeros((*x.shape[:-1], layer.bias.size)) for layer in all_layers]

    def chance(nudges: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        *inputs, out = network.layers(parameters, x, nudges)
        return jnp.sum(network.read(out)[0] * action), inputs

    gradients, inputs = jax.grad(chance, has_aux=True)(zeros)
    number = x.shape[0]
    layers = [
        Layer((a**2).T @ (g**2) / number, jnp.mean(g**2, axis=0))
        for a, g in zip(inputs, gradients, strict=True)
    ]
    return Network(tuple(layers[:-1]), layers[-1])


VARIANT = ppo.Variant(_init, _enter, _penalty, _after)
