"""The classic CartPole against recorded trajectories of the original.

The recordings hold whole episodes of gym 0.19's CartPole-v0 (float64), whose physics and end test
are those of Gymnasium's CartPole-v1; only its limit, 200 steps, is another.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.json_types import JsonObject
from jaxsim.worlds import cartpole

DTYPES = ("float32", "float64")
ERRORS = ("position", "velocity", "angle", "rate")
"""Numbers of the state that are compared, in SI units."""


@dataclass(frozen=True)
class Trajectory:
    """One recorded episode of n steps.

    Attributes:
      states: (n + 1, 4) position (m), velocity, angle (rad) and rate; the first is the start.
      action: (n,)
      over: (n,) bool, whether the episode was over after the step, for either reason.
      cut: whether it was the limit of 200 steps that ended it.
      total: sum of its rewards.
    """

    states: np.ndarray
    action: np.ndarray
    over: np.ndarray
    cut: bool
    total: float

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self.action)

    @property
    def terminated(self) -> np.ndarray:
        """(n,) bool, whether the episode was over after the step without regard to the limit."""
        last = np.arange(self.length) == self.length - 1
        return self.over & ~(last & self.cut)


def read(path: Path) -> list[Trajectory]:
    """Read all trajectories of a file."""
    return [_trajectory(values) for values in json.loads(path.read_text(encoding="utf-8"))]


def _trajectory(values: JsonObject) -> Trajectory:
    action, after, _, over = zip(*values["steps"], strict=True)
    return Trajectory(
        np.array([values["s0"], *after]),
        np.array(action, np.int32),
        np.array(over, bool),
        values["truncated"],
        values["return"],
    )


def ended_early(trajectories: list[Trajectory]) -> list[Trajectory]:
    """Trajectories that ended before the old limit."""
    return [trajectory for trajectory in trajectories if not trajectory.cut]


def states_at(rows: Any, dtype: str) -> cartpole.State:
    """States of running episodes with some motions, (..., 4)."""
    columns = np.moveaxis(np.asarray(rows, float), -1, 0)
    motion = cartpole.Motion(*(jnp.asarray(c, dtype) for c in columns))
    start = cartpole.initial(motion)
    return cartpole.State(start.motion, jnp.zeros_like(start.step), start.done)


@dataclass(frozen=True)
class OneStep:
    """Results of one step from each of N recorded states.

    Attributes:
      errors: (N, 4) differences of position (m), velocity, angle (rad) and rate.
      reward: (N,)
      terminated: (N,) bool
    """

    errors: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray


def one_step(trajectories: list[Trajectory], dtype: str) -> OneStep:
    """Step once from every recorded state; float64 needs `jax_enable_x64`."""
    before = np.concatenate([t.states[:-1] for t in trajectories])
    after = np.concatenate([t.states[1:] for t in trajectories])
    action = np.concatenate([t.action for t in trajectories])
    run = _play(dtype, states_at(before, dtype), action[None])
    return OneStep(run.path[0] - after, run.reward[0], run.terminated[0])


@dataclass(frozen=True)
class ParallelEpisodes:
    """E episodes in parallel for T steps; one that is over stays as it is.

    Attributes:
      lengths: (E,) steps until each episode was over.
      path: (T, E, 4) position (m), velocity, angle (rad) and rate.
      reward: (T, E)
      terminated: (T, E) bool
      truncated: (T, E) bool
    """

    lengths: np.ndarray
    path: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def free_run(trajectories: list[Trajectory], dtype: str) -> ParallelEpisodes:
    """Play the recorded actions from the first states, and some steps more than the longest has.

    Float64 needs `jax_enable_x64`.
    """
    actions = np.zeros((max(t.length for t in trajectories) + 5, len(trajectories)), np.int32)
    for lane, t in enumerate(trajectories):
        actions[: t.length, lane] = t.action
    start = states_at([t.states[0] for t in trajectories], dtype)
    return _play(dtype, start, actions)


def _play(dtype: str, start: cartpole.State, actions: np.ndarray) -> ParallelEpisodes:
    """Play actions, (T, E)."""
    _, params = cartpole.make({}, dtype=dtype)
    lengths, path, *rest = _scan(dtype, start, actions, params)
    return ParallelEpisodes(np.asarray(lengths), np.asarray(path, float), *map(np.asarray, rest))


@partial(jax.jit, static_argnums=0)
def _scan(dtype: str, start: cartpole.State, actions: jax.Array, params: cartpole.Params) -> Any:
    env = cartpole.CartPole(cartpole.Config(dtype=dtype))
    key = jax.random.key(0)  # nothing is drawn in a step

    def step(state: cartpole.State, action: jax.Array) -> Any:
        observation, state, reward, terminated, truncated, _ = env.step(key, state, action, params)
        return state, (cartpole.to_vector(observation), reward, terminated, truncated)

    state, out = jax.lax.scan(step, start, actions)
    return state.step, *out


def errors_by_dtype(path: Path) -> JsonObject:
    """Errors of one step and lengths of free runs, in both precisions.

    Needs `jax_enable_x64`.
    """
    if not path.exists():
        return {"missing": f"the recorded trajectories, {path.name}, are missing"}
    trajectories = read(path)
    return {"rows": [_errors(trajectories, dtype) for dtype in DTYPES]}


def _errors(trajectories: list[Trajectory], dtype: str) -> JsonObject:
    errors = np.abs(one_step(trajectories, dtype).errors)
    ended = ended_early(trajectories)
    same = free_run(ended, dtype).lengths == [t.length for t in ended]
    return {
        "dtype": dtype,
        "steps": len(errors),
        "errors": dict(zip(ERRORS, map(float, errors.max(axis=0)), strict=True)),
        "episodes": same.size,
        "same_length": int(same.sum()),
    }
