"""Tasks that one compiled program plays.

Compiling takes longer than playing thousands of episodes, so tasks share programs where they can.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.pytrees import Params


class SharedTask(NamedTuple):
    """Tasks that one environment covers.

    Attributes:
      env: the environment.
      params: parameters of the tasks, NumPy leaves (V,).
      places: (V,) of the tasks among all.
    """

    env: Any
    params: Params
    places: np.ndarray


def shared(tasks: Sequence[tuple[Any, Params]]) -> Iterator[SharedTask]:
    """Sort tasks into as few programs as play them well; see `World.program_class`.

    Args:
      tasks: environments with their parameters, scalar leaves.
    """
    classes: dict[Any, list[int]] = {}
    for place, (env, _) in enumerate(tasks):
        classes.setdefault(getattr(env, "program_class", env), []).append(place)
    for places in classes.values():
        envs = dict.fromkeys(tasks[place][0] for place in places)
        env = reduce(lambda one, other: one.covering(other), envs)
        rows = (tasks[place][1] for place in places)
        params = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        yield SharedTask(env, params, np.array(places))
