"""A multilayer perceptron with an actor's and a critic's head on one trunk."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Layer(NamedTuple):
    """An affine map."""

    weight: jax.Array  # (I, O)
    bias: jax.Array  # (O,)


class Network(NamedTuple):
    """Parameters of an actor-critic."""

    trunk: tuple[Layer, ...]
    head: Layer  # logits of the A actions, then the value: A + 1 outputs


def init(key: jax.Array, inputs: int, hidden: tuple[int, ...], actions: int) -> Network:
    """Draw a network: orthogonal weights, a nearly even policy and a value near zero.

    Args:
      key: typed key.
      inputs: length of its input, F.
      hidden: units of each layer.
      actions: number of actions, A.
    """
    sizes = (inputs, *hidden)
    keys = jax.random.split(key, len(sizes))
    trunk = tuple(
        Layer(orthogonal(k, i, o) * 2**0.5, jnp.zeros(o))
        for k, i, o in zip(keys, sizes, hidden, strict=False)
    )
    head = 0.01 * jax.random.normal(keys[-1], (hidden[-1], actions + 1)) / hidden[-1] ** 0.5
    return Network(trunk, Layer(head, jnp.zeros(actions + 1)))


def orthogonal(key: jax.Array, rows: int, columns: int) -> jax.Array:
    """Draw a matrix whose rows or columns, whichever are fewer, are orthonormal.

    It is uniform among them: Gram and Schmidt's method on normal vectors, twice for the accuracy
    (Giraud, Langou and Rozloznik, 2005). No library for linear algebra is called: in jaxlib 0.10.2
    two factorisations of many matrices at the same time are a deadlock on a processor of two cores,
    since each holds a thread that the other needs. Sums have a fixed order, so that a matrix does
    not depend on how many are drawn beside it.

    Args:
      key: typed key.
      rows: I.
      columns: O.

    Returns:
      (I, O) float32.
    """
    few, many = sorted((rows, columns))
    start = jax.random.normal(key, (few, many))

    def settle(index: jax.Array, matrix: jax.Array) -> jax.Array:
        previous = jnp.where(jnp.arange(few)[:, None] < index, matrix, 0.0)
        vector = matrix[index]
        for _ in range(2):
            shared = _sum(previous * vector)
            vector = vector - _sum((previous * shared[:, None]).T)
        return matrix.at[index].set(vector / jnp.sqrt(_sum(vector**2)))

    vectors = jax.lax.fori_loop(0, few, settle, start)
    return vectors if rows <= columns else vectors.T


def _sum(values: jax.Array) -> jax.Array:
    """Sum over the last axis, one half added to the other until one number is left.

    XLA chooses the order of `jnp.sum` by the sizes of all axes, those of a batch included.
    """
    while (size := values.shape[-1]) > 1:
        half = size // 2
        added = values[..., :half] + values[..., half : 2 * half]
        values = jnp.concatenate([added, values[..., 2 * half :]], axis=-1)
    return values[..., 0]


def apply(network: Network, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Evaluate a network.

    Args:
      network: its parameters.
      x: (..., F) input.

    Returns:
      (log-probabilities (..., A), value (...)).
    """
    *_, out = layers(network, x)
    return read(out)


def read(out: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Split the output of the heads into log-probabilities and value."""
    return jax.nn.log_softmax(out[..., :-1]), out[..., -1]


def layers(
    network: Network, x: jax.Array, nudges: list[jax.Array] | None = None
) -> list[jax.Array]:
    """Return the input of each layer, and the output of the heads.

    Args:
      network: its parameters.
      x: (..., F) input.
      nudges: added to the output of each layer before its nonlinearity; None for nothing.
    """
    inputs = [x]
    for index, layer in enumerate((*network.trunk, network.head)):
        out = inputs[-1] @ layer.weight + layer.bias
        if nudges is not None:
            out = out + nudges[index]
        inputs.append(jnp.tanh(out) if index < len(network.trunk) else out)
    return inputs
