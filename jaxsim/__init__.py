"""CartPole3D and its novelties as pure JAX functions, batched by the ten thousand.

>>> import jax, jaxsim
>>> env, params = jaxsim.make("CartPole3D-v0", {"pole/length": 3.0})
>>> observation, state = env.reset(jax.random.key(0), params)
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from jaxsim import novelty
from jaxsim.backend import configure_cpu, keep_compiled
from jaxsim.env import Env
from jaxsim.lanes.crew import Spread
from jaxsim.parameters import Values
from jaxsim.pytrees import Params
from jaxsim.registry import EnvSpec, make, register, registered_envs, spec, task_names
from jaxsim.rollouts import Totals, rollout
from jaxsim.worlds import cartpole, cartpole2d, cartpole3d
from jaxsim.worlds.cartpole3d import Level

try:
    __version__ = version("jaxsim-novelty")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

register("CartPole-v1", cartpole.make, cartpole.PARAMETERS, camera=True)
register("CartPole2D-v0", cartpole2d.make, cartpole2d.PARAMETERS, camera=True)
register(
    "CartPole3D-v0",
    cartpole3d.make,
    cartpole3d.PARAMETERS,
    fill=cartpole3d.fill_values,
    check=cartpole3d.check_values,
    camera=True,
    expand=novelty.expand,
)


def _by_leans(values: Values, **options: Any) -> tuple[Env, Params]:
    # Imported here, because only this environment needs agents.
    from jaxsim import lean_actions

    return lean_actions.make(values, **options)


register(
    "CartPole3DLeans-v0",
    _by_leans,
    cartpole3d.PARAMETERS,
    fill=cartpole3d.fill_values,
    check=cartpole3d.check_values,
    camera=True,
    expand=novelty.expand,
)


def levels() -> tuple[Level, ...]:
    """Return every level of the novelty catalogue, of both worlds, by number.

    Each level has a text of its change, its hint at each hint level, and its quirks.
    """
    return (*cartpole2d.levels(), *cartpole3d.levels())


__all__ = [
    "EnvSpec",
    "Level",
    "Spread",
    "Totals",
    "__version__",
    "configure_cpu",
    "keep_compiled",
    "levels",
    "make",
    "novelty",
    "register",
    "registered_envs",
    "rollout",
    "spec",
    "task_names",
]
