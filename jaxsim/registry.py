"""Environments by name: `make`, `register` and the parameters of each."""

from collections.abc import Callable, Mapping
from typing import Any

from jaxsim import image_settings, parameters
from jaxsim.env import Env
from jaxsim.env_spec import GYMNAX, VERSIONED, EnvSpec
from jaxsim.parameters import Parameter, Values
from jaxsim.pytrees import Params

_SPECS: dict[str, EnvSpec] = {}


def register(
    env_id: str,
    factory: Callable[..., tuple[Env, Params]],
    table: Mapping[str, Parameter],
    fill: Callable[[Values], Values] | None = None,
    check: Callable[[Values], None] | None = None,
    camera: bool = False,
    expand: Callable[[Values], dict[str, Any]] = dict,
) -> None:
    """Register an environment under a versioned name.

    Args:
      env_id: "<Task>-v<number>".
      factory: called as `factory(values, **options)` with values that `make` has checked against
        the table one by one; returns (env, params).
      table: parameters a user may set, by path.
      fill: completes values by path; None to take every default from the table.
      check: raises `ValueError` for values that contradict one another; None if none can.
      camera: whether what it observes can be drawn (`render.scene`); the parameters
        `sensors/image/...` then add a picture to its observations, see `jaxsim.imaging`.
      expand: replaces a value that stands for several parameters by these, before the checks.

    Raises:
      ValueError: the name has no version or is taken.
    """
    if not VERSIONED.fullmatch(env_id):
        raise ValueError(f"environment id {env_id!r} must look like 'Name-v0'")
    if env_id in _SPECS:
        raise ValueError(f"environment id {env_id!r} is taken; raise its version")
    image = image_settings.PARAMETERS if camera else {}
    table = {**table, **image}
    defaults = {path: row.default for path, row in table.items()}

    def check_all(values: Values) -> None:
        if camera:
            image_settings.check(values)
        if check:
            check(values)

    _SPECS[env_id] = EnvSpec(
        env_id,
        factory,
        table,
        lambda values: defaults | dict(fill(values) if fill else values),
        check_all,
        frozenset(image),
        expand,
    )


def registered_envs() -> tuple[str, ...]:
    """Return the ids of all registered environments."""
    return tuple(_SPECS)


def task_names() -> tuple[str, ...]:
    """Return the names that a syllabus may use: tasks without a version, and versioned ids."""
    return tuple(dict.fromkeys(s.task for s in _SPECS.values())) + registered_envs()


def spec(name: str) -> EnvSpec:
    """Look up an environment by id, or by task name (its newest version).

    Raises:
      ValueError: no environment has that name; the message lists those that exist. Or it is one of
        gymnax, which is not installed.
    """
    if name.startswith(GYMNAX):
        from jaxsim.adapters import from_gymnax  # here, because gymnax is an extra

        return from_gymnax.spec(name)
    if name in _SPECS:
        return _SPECS[name]
    versions = [s for s in _SPECS.values() if s.task == name]
    if not versions:
        raise ValueError(parameters.unknown("task", name, task_names()))
    return max(versions, key=lambda s: int(s.env_id.rpartition("-v")[2]))


def make(name: str, values: Values | None = None, /, **options: Any) -> tuple[Any, Params]:
    """Build an environment and its parameters.

    Args:
      name: environment id or task name, for example "CartPole3D-v0".
      values: parameters by path, for example `{"pole/length": 3.0}`, also scalars of NumPy; under
        "novelty", of CartPole3D, a sample of `jaxsim.novelty`.
      **options: options of the environment, for example `level=200, difficulty="hard"`; and
        `image`, the parameters below `sensors/image/` by their last part, see `jaxsim.imaging`.

    Returns:
      (env, params): an object with `reset` and `step`, and the traced parameters they take.

    Raises:
      ValueError: unknown name, parameter or option, or a value out of bounds.
    """
    env_spec = spec(name)
    if not isinstance(values, Mapping | None):
        example = "it must be a mapping of paths, as {'pole/length': 3.0}"
        raise ValueError(f"values is {parameters.shown(values)}; {example}")
    values = env_spec.expand(parameters.plain(values or {}))
    if (image := options.pop("image", None)) is not None:
        values |= image_settings.by_path(image)
    parameters.check(env_spec.parameters, values)
    values, picture = image_settings.split(values)
    env, params = env_spec.factory(values, **options)
    if picture is None:
        return env, params
    # Imported here, because most programs have no pictures.
    from jaxsim import imaging

    return imaging.with_image(env, picture), params
