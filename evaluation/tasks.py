"""From the variants of a schedule to one environment and a table of traced parameters."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.schedule import Schedule
from jaxsim import registry


@dataclass(frozen=True)
class Tasks:
    """What a schedule plays.

    Attributes:
      env: the environment all variants share.
      params: its parameters, every leaf (P,), one entry a variant.
      novelty_levels: (P,) int32, level of the novelty catalogue, 0 for none.
    """

    env: Any
    params: Any
    novelty_levels: np.ndarray

    @classmethod
    def of(cls, schedule: Schedule) -> "Tasks":
        """Build environment and parameters for every variant of a schedule.

        Raises:
          ValueError: an unknown task or parameter, or tasks that need different environments.
        """
        made = [registry.make(task, dict(values)) for task, values in schedule.variants]
        env = made[0][0]
        for (task, _), (other, _) in zip(schedule.variants, made, strict=True):
            try:
                env = env if other == env else env.covering(other)
            except (AttributeError, ValueError) as error:
                raise ValueError(
                    f"task {task!r} needs another environment than "
                    f"{schedule.variants[0][0]!r}; play them as separate schedules"
                ) from error
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(p for _, p in made))
        # Levels 50, 100 and 200 are the catalogue's unchanged worlds.
        levels = np.asarray(params.novelty_level).astype(np.int32) % 50
        return cls(env, params, levels)
