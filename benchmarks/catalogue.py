"""Every level and difficulty of every world, sorted by the program it needs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jaxsim
from jaxsim.pytrees import Params


@dataclass
class CaseGroup:
    """Cases that one compiled program can play.

    Attributes:
      env: the environment that plays them all.
      params: parameters by case, for example "CartPole3D 203 hard"; scalar leaves.
    """

    env: Any
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the environment, with its capacity if it has one."""
        slots = getattr(getattr(self.env, "config", None), "max_blocks", None)
        return self.env.name if slots is None else f"{self.env.name}, {slots} block slots"


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, environment id and parameters by path of each level and difficulty."""
    tasks = {level.task for level in jaxsim.levels()}
    for env_id in jaxsim.registered_envs():
        spec = jaxsim.spec(env_id)
        if spec.task not in tasks and "novelty/level" in spec.parameters:
            continue  # another way to play the same levels
        if "novelty/level" not in spec.parameters:
            yield spec.task, env_id, {}
            continue
        for level in spec.parameters["novelty/level"].choices:
            for difficulty in spec.parameters["novelty/difficulty"].choices:
                values = {"novelty/level": level, "novelty/difficulty": difficulty}
                yield f"{spec.task} {level} {difficulty}", env_id, values


def groups(**options: Any) -> list[CaseGroup]:
    """Sort all cases into groups that share a program: by world, and by the form of block slots.

    Levels whose blocks need stacked slots share the largest capacity among them: one program more
    costs more than the empty slots.

    Args:
      **options: of `jaxsim.make`, for all environments.
    """
    by_program: dict[Any, CaseGroup] = {}
    for name, env_id, values in cases():
        add_to(by_program, name, *jaxsim.make(env_id, values, **options))
    return list(by_program.values())


def add_to(by_program: dict[Any, CaseGroup], name: str, env: Any, params: Params) -> None:
    """Add a case to the group whose program can play it, or to a new one."""
    kind = env.name, getattr(env.config, "stacked", False)
    group = by_program.setdefault(kind, CaseGroup(env))
    if group.env != env:
        group.env = group.env.covering(env)
    group.params[name] = params
