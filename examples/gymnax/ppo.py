"""PPO in one file on the gymnax interface, with normalised observations.

    python examples/gymnax/ppo.py --level 200 --seeds 5

Trains one policy for each seed, one after another, on a million steps; then plays 1,024 fresh
episodes with each and prints the mean performance (length over the longest). Everything but the
environment is plain JAX and optax, to be copied and changed.
"""

import argparse
import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import jaxsim
from jaxsim.adapters.gymnax import to_gymnax

ENVS, LENGTH = 64, 64  # environments side by side, and steps of each between two updates
EPOCHS, MINIBATCHES = 4, 8
RATE, CLIP, DISCOUNT, TRACE = 1e-3, 0.2, 0.99, 0.95
ENTROPY, VALUE, NORM = 0.005, 0.5, 0.5
HIDDEN = 64


class Scale(NamedTuple):
    """Running mean and variance of observations, (D,) each, and how many they are of."""

    mean: jax.Array
    variance: jax.Array
    count: jax.Array

    def __call__(self, observation: jax.Array) -> jax.Array:
        """Return observations with mean 0 and variance 1, cut off at 10."""
        return jnp.clip((observation - self.mean) / jnp.sqrt(self.variance + 1e-8), -10, 10)

    def seen(self, batch: jax.Array) -> "Scale":
        """Take (..., D) observations in."""
        batch = batch.reshape(-1, batch.shape[-1])
        total = self.count + batch.shape[0]
        shift = batch.mean(0) - self.mean
        mean = self.mean + shift * batch.shape[0] / total
        spread = self.variance * self.count + batch.var(0) * batch.shape[0]
        spread += shift**2 * self.count * batch.shape[0] / total
        return Scale(mean, spread / total, total)


class Learner(NamedTuple):
    """All that training changes."""

    weights: Any
    optimiser: Any
    scale: Scale
    state: Any
    observation: jax.Array  # (ENVS, D)


class Steps(NamedTuple):
    """What is kept of each step; leaves (LENGTH, ENVS, ...)."""

    observation: jax.Array
    action: jax.Array
    logit: jax.Array  # log-probability of the action
    value: jax.Array
    reward: jax.Array
    over: jax.Array


def network(key: jax.Array, inputs: int, actions: int) -> list[tuple[jax.Array, jax.Array]]:
    """Weights of two hidden layers for the policy, and of two for the value."""
    sizes = [(inputs, HIDDEN, 2**0.5), (HIDDEN, HIDDEN, 2**0.5)]
    layers = [*sizes, (HIDDEN, actions, 0.01), *sizes, (HIDDEN, 1, 1.0)]
    keys = jax.random.split(key, len(layers))
    return [
        (jax.nn.initializers.orthogonal(gain)(k, (a, b)), jnp.zeros(b))
        for k, (a, b, gain) in zip(keys, layers, strict=True)
    ]


def apply(weights: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits (..., A) and value (...) of normalised observations."""
    heads = []
    for layers in (weights[:3], weights[3:]):
        y = x
        for matrix, bias in layers[:-1]:
            y = jnp.tanh(y @ matrix + bias)
        matrix, bias = layers[-1]
        heads.append(y @ matrix + bias)
    return heads[0], heads[1][..., 0]


def loss(weights: Any, steps: Steps, gain: jax.Array, target: jax.Array) -> jax.Array:
    """PPO's clipped objective, with the value's error and the entropy."""
    logits, value = apply(weights, steps.observation)
    logits = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(logits, steps.action[:, None], axis=1)[:, 0]
    ratio = jnp.exp(chosen - steps.logit)
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    policy = -jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
    error = 0.5 * jnp.square(value - target).mean()
    entropy = -(jnp.exp(logits) * logits).sum(-1).mean()
    return policy + VALUE * error - ENTROPY * entropy


def advantages(steps: Steps, last: jax.Array) -> jax.Array:
    """Generalised advantage estimates, (LENGTH, ENVS)."""

    def back(carry: Any, step: Any) -> Any:
        gain, following = carry
        reward, value, over = step
        delta = reward + DISCOUNT * following * (1 - over) - value
        gain = delta + DISCOUNT * TRACE * (1 - over) * gain
        return (gain, value), gain

    rows = steps.reward, steps.value, steps.over
    return jax.lax.scan(back, (jnp.zeros_like(last), last), rows, reverse=True)[1]


@partial(jax.jit, static_argnames=("env", "updates"))
def train(env: Any, params: Any, key: jax.Array, updates: int) -> tuple[Any, Scale]:
    """Train one policy; return its weights and the scale of its observations."""
    schedule = optax.linear_schedule(RATE, 0.0, updates * EPOCHS * MINIBATCHES)
    optimiser = optax.chain(optax.clip_by_global_norm(NORM), optax.adam(schedule, eps=1e-5))
    key, init, reset = jax.random.split(key, 3)
    observation, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset, ENVS), params)
    size = observation.shape[-1]
    weights = network(init, size, env.num_actions)
    scale = Scale(jnp.zeros(size), jnp.ones(size), jnp.array(1e-4))
    learner = Learner(weights, optimiser.init(weights), scale.seen(observation), state, observation)

    def act(learner: Learner, key: jax.Array) -> tuple[Learner, Any]:
        choose, step = jax.random.split(key)
        seen = learner.scale(learner.observation)
        logits, value = apply(learner.weights, seen)
        action = jax.random.categorical(choose, logits)
        logit = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        keys = jax.random.split(step, ENVS)
        observation, state, reward, terminated, truncated, _ = jax.vmap(env.step, (0, 0, 0, None))(
            keys, learner.state, action, params
        )
        over = terminated | truncated
        raw = learner.observation
        learner = learner._replace(state=state, observation=observation)
        return learner, (raw, Steps(seen, action, logit, value, reward, over))

    def minibatch(carry: Any, rows: Any) -> tuple[Any, None]:
        weights, state = carry
        change, state = optimiser.update(jax.grad(loss)(weights, *rows), state, weights)
        return (optax.apply_updates(weights, change), state), None

    def update(learner: Learner, key: jax.Array) -> tuple[Learner, None]:
        play, *shuffles = jax.random.split(key, 1 + EPOCHS)
        learner, (raw, steps) = jax.lax.scan(act, learner, jax.random.split(play, LENGTH))
        _, last = apply(learner.weights, learner.scale(learner.observation))
        gain = advantages(steps, last)
        flat = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]), (steps, gain, gain + steps.value)
        )
        carry = learner.weights, learner.optimiser
        for shuffle in shuffles:
            order = jax.random.permutation(shuffle, ENVS * LENGTH).reshape(MINIBATCHES, -1)
            carry, _ = jax.lax.scan(lambda c, rows: minibatch(c, _rows(flat, rows)), carry, order)
        weights, state = carry
        scale = learner.scale.seen(raw)
        return learner._replace(weights=weights, optimiser=state, scale=scale), None

    learner, _ = jax.lax.scan(update, learner, jax.random.split(key, updates))
    return learner.weights, learner.scale


def _rows(tree: Any, rows: jax.Array) -> Any:
    return jax.tree.map(lambda x: x[rows], tree)


@partial(jax.jit, static_argnames=("env", "episodes"))
def test(
    env: Any, params: Any, weights: Any, scale: Scale, key: jax.Array, episodes: int
) -> jax.Array:
    """Mean performance of the likeliest actions in fresh episodes."""
    reset, play = jax.random.split(key)
    observation, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset, episodes), params)

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        observation, state, over, performance = carry
        action = jnp.argmax(apply(weights, scale(observation))[0], -1)
        keys = jax.random.split(key, episodes)
        observation, state, _, _, _, info = jax.vmap(env.step, (0, 0, 0, None))(
            keys, state, action, params
        )
        performance = jnp.where(over, performance, info["performance"])
        over |= info["terminated"] | info["truncated"]
        return (observation, state, over, performance), None

    none = jnp.zeros(episodes)
    carry = observation, state, none.astype(bool), none
    (*_, performance), _ = jax.lax.scan(step, carry, jax.random.split(play, env.max_steps))
    return performance.mean()


def main() -> None:
    """Train and test, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", type=int, default=200)
    parser.add_argument("--difficulty", default="easy")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of training, of each seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=1024, help="of the test")
    asked = parser.parse_args()
    core, params = jaxsim.make("CartPole3D-v0", level=asked.level, difficulty=asked.difficulty)
    env = to_gymnax(core, params)
    env.max_steps = core.max_steps
    updates = max(1, asked.steps // (ENVS * LENGTH))
    for seed in range(asked.seeds):
        started = time.perf_counter()
        learn, play = jax.random.split(jax.random.key(seed))
        weights, scale = train(env, params, learn, updates)
        mean = float(test(env, params, weights, scale, play, asked.episodes))
        seconds = time.perf_counter() - started
        steps = updates * ENVS * LENGTH
        print(f"seed {seed}: performance {mean:.3f} after {steps:,} steps, {seconds:.0f} s")


if __name__ == "__main__":
    main()
