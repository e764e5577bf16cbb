"""Learners of classification as pure functions, and the loop that plays a course."""

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from evaluation.l2m.classification.course import Course
from jaxsim.pytrees import Tree

LEARNING_RATE: Final = 1e-2
HIDDEN: Final = 64

Layers = list[tuple[jax.Array, jax.Array]]


class NetworkState(NamedTuple):
    """State of a network.

    Attributes:
      layers: (weights (I, O), bias (O,)) of each layer.
      optimizer: state of the optimiser.
    """

    layers: Layers
    optimizer: optax.OptState


class PureLearner(NamedTuple):
    """A learner as pure functions.

    Attributes:
      init: ``init(key, features, classes) -> state``.
      predict: ``predict(state, inputs (M, ...), key) -> (M,) classes``.
      learn: ``learn(state, inputs (M, ...), labels (M,)) -> state``.
    """

    init: Callable[[jax.Array, int, int], Tree]
    predict: Callable[[Tree, npt.ArrayLike, jax.Array], jax.Array]
    learn: Callable[[Tree, npt.ArrayLike, npt.ArrayLike], Tree]


def network(hidden: int = HIDDEN, learning_rate: float = LEARNING_RATE) -> PureLearner:
    """Return a network trained on the cross-entropy, with one Adam step per batch.

    Args:
      hidden: units of the one hidden layer (ReLU); 0 for softmax regression.
      learning_rate: of Adam.

    Raises:
      ValueError: a negative number of units or a learning rate that is not positive.
    """
    if hidden < 0 or not learning_rate > 0:
        raise ValueError(
            f"hidden must be 0 or more and learning_rate above 0, not {hidden}, {learning_rate}"
        )
    optimizer = optax.adam(learning_rate)

    def init(key: jax.Array, features: int, classes: int) -> NetworkState:
        widths = [features, *([hidden] if hidden else []), classes]
        keys = jax.random.split(key, len(widths) - 1)
        layers = [
            (jax.random.normal(k, (rows, columns)) * jnp.sqrt(2 / rows), jnp.zeros(columns))
            for k, rows, columns in zip(keys, widths[:-1], widths[1:], strict=True)
        ]
        return NetworkState(layers, optimizer.init(layers))

    @jax.jit
    def predict(state: NetworkState, inputs: npt.ArrayLike, key: jax.Array) -> jax.Array:
        return jnp.argmax(_logits(state.layers, inputs), axis=-1)

    @jax.jit
    def learn(state: NetworkState, inputs: npt.ArrayLike, labels: npt.ArrayLike) -> NetworkState:
        gradient = jax.grad(_loss)(state.layers, inputs, labels)
        updates, memory = optimizer.update(gradient, state.optimizer)
        layers: Any = optax.apply_updates(state.layers, updates)
        return NetworkState(layers, memory)

    return PureLearner(init, predict, learn)


def chance() -> PureLearner:
    """Return a learner that guesses every class with the same probability and learns nothing."""

    def init(key: jax.Array, features: int, classes: int) -> int:
        return classes

    @functools.partial(jax.jit, static_argnums=0)
    def predict(classes: int, inputs: npt.ArrayLike, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (np.shape(inputs)[0],), 0, classes)

    return PureLearner(init, predict, lambda state, inputs, labels: state)


LEARNERS: Final[dict[str, Callable[[], PureLearner]]] = {
    "chance": chance,
    "softmax": functools.partial(network, hidden=0),
    "mlp": network,
}
"""Built-in learners by name."""


def get(name: str) -> PureLearner:
    """Return a built-in learner.

    Raises:
      ValueError: an unknown name.
    """
    if name not in LEARNERS:
        raise ValueError(f"learner is {name!r}; it must be one of {', '.join(LEARNERS)}")
    return LEARNERS[name]()


def play(course: Course, learner: PureLearner, key: jax.Array) -> Tree:
    """Let a learner play a course; it learns where labels are returned.

    Args:
      course: one lifetime; its scores are filled.
      learner: the performer.
      key: of the learner's randomness.

    Returns:
      The learner's last state.

    Raises:
      ValueError: images of different sizes.
    """
    sizes = {int(np.prod(shape)) for shape in course.shapes.values()}
    if len(sizes) > 1:
        shown = ", ".join(f"{name} {shape}" for name, shape in course.shapes.items())
        raise ValueError(f"images of a syllabus must have one size for a learner; here {shown}")
    start, guess = jax.random.split(key)
    state = learner.init(start, max(sizes, default=0), course.classes)
    for dataset in course.datasets():
        dataset.reset()
        done = False
        while not done:
            batch, done, _ = dataset.next_batch()
            batch_key = _fold_in(guess, len(course.scores))
            answer = learner.predict(state, batch["inputs"], batch_key)
            labels = dataset.get_labels(batch["id"], np.asarray(answer))
            if labels:
                state = learner.learn(state, batch["inputs"], np.asarray(labels))
    return state


_fold_in = jax.jit(jax.random.fold_in)


def _logits(layers: Layers, inputs: npt.ArrayLike) -> jax.Array:
    """(M, classes) of (M, H, W) images."""
    images = jnp.asarray(inputs)
    hidden = images.reshape(images.shape[0], -1) - 0.5
    for weights, bias in layers[:-1]:
        hidden = jax.nn.relu(hidden @ weights + bias)
    weights, bias = layers[-1]
    return hidden @ weights + bias


def _loss(layers: Layers, inputs: npt.ArrayLike, labels: npt.ArrayLike) -> jax.Array:
    logits = _logits(layers, inputs)
    return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(labels)).mean()
