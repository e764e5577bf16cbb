"""Every level and difficulty of every registered environment, sorted by the program it needs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

import jaxsim


@dataclass
class Group:
    """Cases that one compiled program can play.

    Attributes:
      env: the environment that plays them all.
      params: parameters by case, for example "CartPole3D 203 hard"; scalar leaves.
    """

    env: Any
    params: dict[str, Any] = field(default_factory=dict)


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, environment id and parameters by path of each level and difficulty."""
    for env_id in jaxsim.registered_envs():
        spec = jaxsim.spec(env_id)
        if "novelty/level" not in spec.parameters:
            yield spec.task, env_id, {}
            continue
        for level in spec.parameters["novelty/level"].choices:
            for difficulty in spec.parameters["novelty/difficulty"].choices:
                values = {"novelty/level": level, "novelty/difficulty": difficulty}
                yield f"{spec.task} {level} {difficulty}", env_id, values


def groups(**options: Any) -> list[Group]:
    """Sort all cases into as few groups as states of one shape allow.

    Args:
      **options: of `jaxsim.make`, for all environments.
    """
    shapes: dict[Any, Any] = {}
    found: dict[Any, Group] = {}
    for name, env_id, values in cases():
        env, params = jaxsim.make(env_id, values, **options)
        if env not in shapes:
            shapes[env] = (env.name, state_shapes(env, params))
        group = found.setdefault(shapes[env], Group(env))
        if group.env != env:
            group.env = group.env.covering(env)
        group.params[name] = params
    return list(found.values())


def state_shapes(env: Any, params: Any) -> Any:
    """What distinguishes states that cannot share a batch: structure, shapes and types."""
    start = jax.eval_shape(env.start, jax.random.key(0), params)
    leaves = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(start))
    return jax.tree.structure(start), leaves
