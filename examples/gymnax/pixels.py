"""PPO from pixels: the classic CartPole by what a camera on the cart shows.

    python examples/gymnax/pixels.py --steps 400000

The trainer is `ppo.py` beside this file, as it is: it sees the pixels of two pictures, this step's
and the last one's, as one vector, and nothing of the state.
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ppo

import jaxsim
from jaxsim.adapters.gymnax import to_gymnax

CAMERA = {"view": "first", "height": 24, "width": 24, "grey": True}


class Framed(NamedTuple):
    """State of `TwoFrames`."""

    inner: Any
    frame: jax.Array  # (F,) the last picture, 0 to 1


@dataclass(frozen=True)
class TwoFrames:
    """Shows the pixels of the last two pictures: one alone shows no velocity.

    Attributes:
      env: in gymnax' form, whose observations are pictures.
      max_steps: of an episode.
    """

    env: Any
    max_steps: int

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        count: int = self.env.num_actions
        return count

    def reset(self, key: jax.Array, params: Any) -> tuple[jax.Array, Framed]:
        """Start an episode."""
        image, inner = self.env.reset(key, params)
        frame = _numbers(image)
        return jnp.concatenate([frame, frame]), Framed(inner, frame)

    def step(self, key: jax.Array, state: Framed, action: jax.Array, params: Any) -> Any:
        """Advance a step; a new episode has no last picture, so its first one stands twice."""
        image, inner, reward, terminated, truncated, info = self.env.step(
            key, state.inner, action, params
        )
        frame = _numbers(image)
        last = jnp.where(terminated | truncated, frame, state.frame)
        seen = jnp.concatenate([frame, last])
        return seen, Framed(inner, frame), reward, terminated, truncated, info


def _numbers(image: jax.Array) -> jax.Array:
    return image.reshape(-1).astype(jnp.float32) / 255


def make() -> tuple[TwoFrames, Any]:
    """Return the environment and its parameters."""
    core, params = jaxsim.make("CartPole-v1", image=CAMERA)
    return TwoFrames(to_gymnax(core, params), core.max_steps), params


def main() -> None:
    """Train and test, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400_000, help="of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=128, help="of the test")
    asked = parser.parse_args()
    env, params = make()
    updates = max(1, asked.steps // (ppo.ENVS * ppo.LENGTH))
    started = time.perf_counter()
    learn, play = jax.random.split(jax.random.key(asked.seed))
    weights, scale = ppo.train(env, params, learn, updates)
    mean = float(ppo.test(env, params, weights, scale, play, asked.episodes))
    seconds = time.perf_counter() - started
    steps = updates * ppo.ENVS * ppo.LENGTH
    print(f"performance {mean:.3f} after {steps:,} steps from pixels, {seconds:.0f} s")


if __name__ == "__main__":
    main()
