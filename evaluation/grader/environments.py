"""Both generations of Gym-compatible environments behind one reset and one step.

The newer one is Gymnasium's: `reset(seed=...)` returns observation and info, `step` five values.
The older one is gym's up to 0.25: `seed(...)` is a method, `reset()` returns the observation,
`step` four values.
"""

import inspect
from typing import Any, Literal, NamedTuple

SeedOrder = Literal["seed_first", "legacy"]
SEED_ORDERS: tuple[SeedOrder, ...] = ("seed_first", "legacy")

CUT = "TimeLimit.truncated"
"""Key of `info`, present if a limit was reached: True if the task itself had not ended."""


class Seeding:
    """Starts of the episodes of one run.

    Args:
      env: environment of either generation.
      seeds: one for each episode; none to leave them unseeded.
      order: "seed_first" seeds each episode before its reset; "legacy" after it, as the original
        does: each episode then starts from the seed of the one before.
    """

    def __init__(self, env: Any, seeds: list[int], order: SeedOrder) -> None:
        self.env, self.seeds, self.order = env, seeds, order

    def reset(self, episode: int) -> Any:
        """Start an episode and return its first observation.

        Raises:
          TypeError: the environment cannot be seeded.
        """
        if not self.seeds:
            return _first(self.env.reset())
        if _takes_seed(self.env):
            place = episode if self.order == "seed_first" else episode - 1
            return _first(
                self.env.reset(seed=self.seeds[place]) if place >= 0 else self.env.reset()
            )
        if not callable(getattr(self.env, "seed", None)):
            raise TypeError(
                f"{type(self.env).__name__} has neither reset(seed=...) nor seed(...), so that "
                "seeds cannot be given to it; pass seeds=[]"
            )
        if self.order == "seed_first":
            self.env.seed(self.seeds[episode])
            return _first(self.env.reset())
        observation = _first(self.env.reset())
        self.env.seed(self.seeds[episode])
        return observation


class EnvStep(NamedTuple):
    """Result of a step of either generation."""

    observation: Any
    reward: Any
    done: bool
    info: dict[str, Any]


def step(env: Any, action: Any) -> EnvStep:
    """Take a step.

    Raises:
      ValueError: the environment does not return four or five values.
    """
    values = env.step(action)
    if not isinstance(values, tuple | list) or len(values) not in (4, 5):
        raise ValueError(
            f"{type(env).__name__}.step returned {_kind(values)}; it must return observation, "
            "reward, terminated, truncated and info, or observation, reward, done and info"
        )
    if len(values) == 4:
        observation, reward, done, info = values
        return EnvStep(observation, reward, bool(done), info)
    observation, reward, terminated, truncated, info = values
    if truncated:
        info = {**(info or {}), CUT: not terminated}
    return EnvStep(observation, reward, bool(terminated or truncated), info)


def _first(value: Any) -> Any:
    """Observation in what `reset` returns, with or without info."""
    pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)
    return value[0] if pair else value


def _takes_seed(env: Any) -> bool:
    """Whether `reset` takes a seed; if it takes any keyword, only without a method `seed`."""
    try:
        parameters = inspect.signature(env.reset).parameters
    except (TypeError, ValueError):
        return not callable(getattr(env, "seed", None))
    if "seed" in parameters:
        return True
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return anything and not callable(getattr(env, "seed", None))


def _kind(values: object) -> str:
    return f"{len(values)} values" if isinstance(values, tuple | list) else type(values).__name__
