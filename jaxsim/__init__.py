"""CartPole3D and its novelties as pure JAX functions, batched by the ten thousand.

>>> import jax, jaxsim
>>> env, params = jaxsim.make("CartPole3D-v0", {"pole/length": 3.0})
>>> observation, state = env.reset(jax.random.key(0), params)

| module | subject |
| --- | --- |
| `env` | the contract that every environment follows |
| `registry` | environments by name, with their parameters |
| `env_spec` | the entry of the registry for an environment |
| `parameters` | parameters that a user may set by name |
| `spaces` | spaces of actions and of flat observations |
| `worlds` | CartPole, CartPole2D and CartPole3D |
| `novelty` | families of novelties, seeded samples, compositions |
| `agents` | policies and novelty predictions |
| `identification` | which parameters of a world changed, from episodes in it |
| `training` | agents that learn |
| `lean_actions` | CartPole3D with leans of the pole as actions |
| `embedding` | two-dimensional worlds behind CartPole3D's interface |
| `imaging` | observations with a picture from a camera |
| `image_settings` | parameters of that camera |
| `render` | states and observations as pictures and films |
| `rollouts` | whole batches of episodes at full speed |
| `lanes` | the engine of pure agents |
| `stepper` | one episode, stepped from Python |
| `wrappers` | automatic reset, time limits, flat observations |
| `adapters` | interfaces of Gymnasium, gymnax and stable-baselines3 |
| `testing` | properties that every environment must have |
| `rng` | counter-based randomness |
| `counters` | counters that random keys are folded from |
| `inputs` | checks of values that callers pass |
| `marks` | masks of lanes with their ranks |
| `packing` | a pytree as one array of words |
| `pytrees` | names of the pytrees that environments choose |
| `json_types` | names of the values that JSON has |
| `fingerprint` | digests of what a program is made from |
| `program_store` | traced programs in a folder |
| `backend` | settings and sizes that depend on the backend |
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from jaxsim import novelty
from jaxsim.backend import configure_cpu, keep_compiled
from jaxsim.env import Env
from jaxsim.env_spec import EnvSpec
from jaxsim.lanes.crew import Spread
from jaxsim.parameters import Values
from jaxsim.pytrees import Params
from jaxsim.registry import make, register, registered_envs, spec, task_names
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
