"""Transfer as the area between learning curves, as batched kernels.

The learning curve of a task that was learned after another one is compared with that of the same
task learned first. Curves are (..., T): one performance value per episode, padded behind the
``length`` episodes that count. Padding is ignored, NaN included.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.typing import ArrayLike

DEFAULT_DIVISIONS: Final = 4
"""Parts of the learning curve that are reported separately."""


def area_between_curves(
    transferred: ArrayLike, baseline: ArrayLike, length: ArrayLike, divisions: int = 1
) -> jax.Array:
    """Area between a learning curve and its baseline, by part of the curve.

    The n common episodes are spread over [0, 1] at distances of 1 / n; areas follow from the
    trapezoidal rule. The trapezoid that begins at episode i (from 0) belongs to part
    floor(i divisions / n). The parts add up to the whole area. A part without a trapezoid has no
    value.

    Args:
      transferred: (..., T) performance on a task learned after another.
      baseline: (..., T) mean performance on the task when it is learned first.
      length: (...) number of episodes that both have, n.
      divisions: number of parts, D.

    Returns:
      (..., D) in the unit of performance; positive where the earlier task helped. NaN where a part
      has no trapezoid or an episode without a finite value; fewer than two episodes have none.

    Raises:
      ValueError: ``divisions`` below 1, or curves of different shapes.

    Source: supplementary transfer analysis of the L2M metrics package (ABC transfer).
    """
    if isinstance(divisions, bool) or not isinstance(divisions, int) or divisions < 1:
        raise ValueError(f"divisions must be a whole number from 1, not {divisions!r}")
    one, other = jnp.asarray(transferred), jnp.asarray(baseline)
    if one.ndim < 1 or one.shape[-1:] != other.shape[-1:]:
        raise ValueError(
            f"both curves must be padded to one length, not {one.shape} and {other.shape}"
        )
    if one.shape[-1] < 2:
        shape = jnp.broadcast_shapes(one.shape[:-1], other.shape[:-1], jnp.shape(length))
        return jnp.full((*shape, divisions), jnp.nan)
    return _areas(one, other, jnp.asarray(length), divisions)


@functools.partial(jax.jit, static_argnames="divisions")
def _areas(one: jax.Array, other: jax.Array, length: jax.Array, divisions: int) -> jax.Array:
    gap = one - other
    trapezoids = (gap[..., :-1] + gap[..., 1:]) / 2
    start = jnp.arange(trapezoids.shape[-1])
    episodes = jnp.maximum(length, 1)[..., None]
    parts = start * divisions // episodes
    inside = start < length[..., None] - 1
    member = inside[..., None, :] & (parts[..., None, :] == jnp.arange(divisions)[:, None])
    sums = jnp.where(member, trapezoids[..., None, :], 0).sum(axis=-1)
    areas = sums / episodes
    return jnp.where(member.any(axis=-1) & jnp.isfinite(areas), areas, jnp.nan)


def abc_transfer_matrix(
    first: Mapping[str, Sequence[npt.ArrayLike]],
    after: Mapping[tuple[str, str], Sequence[npt.ArrayLike]],
    divisions: int = DEFAULT_DIVISIONS,
) -> dict[tuple[str, str], npt.NDArray[np.float64]]:
    """Area between curves of every ordered pair of tasks, over many lifetimes.

    The baseline of a task is the mean of its curves over lifetimes that begin with it. The curves
    of a pair and its baseline are cut to the length of the shortest one.

    Args:
      first: task -> curves (n,) of the lifetimes that begin with it.
      after: (earlier task, task) -> curves (n,) of the task in lifetimes that learned the earlier
        task before.
      divisions: number of parts of the curve, D.

    Returns:
      (earlier task, task) -> (lifetimes, D) areas of `area_between_curves`.

    Raises:
      ValueError: a pair without curves, a task without a baseline, or a curve that is not (n,).

    Source: supplementary transfer analysis of the L2M metrics package (ABC transfer).
    """
    matrix = {}
    for (earlier, task), curves in after.items():
        if not first.get(task):
            raise ValueError(
                f"task {task!r} has no baseline: add lifetimes that begin with it to 'first'"
            )
        if not curves:
            raise ValueError(f"the pair {earlier!r}, {task!r} has no curves; leave it out")
        transferred, baselines = (
            [_curve(c, task) for c in group] for group in (curves, first[task])
        )
        length = min(map(len, transferred + baselines))
        baseline = np.mean([curve[:length] for curve in baselines], axis=0)
        stacked = np.stack([curve[:length] for curve in transferred])
        areas = area_between_curves(stacked, baseline, length, divisions)
        matrix[earlier, task] = np.asarray(areas, np.float64)
    return matrix


def _curve(values: npt.ArrayLike, task: str) -> npt.NDArray[np.float64]:
    curve = np.asarray(values, np.float64)
    if curve.ndim != 1:
        raise ValueError(f"a curve of task {task!r} must be (n,), not {curve.shape}")
    return curve
