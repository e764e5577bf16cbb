"""Agents that learn: pure functions whose memory holds parameters, optimiser and statistics.

    agent = training.get("ppo+ewc", training.Settings(learning_rate=(3e-4, 1e-3)))

| module | subject |
| --- | --- |
| `settings` | hyper-parameters of the learners |
| `ppo` | proximal policy optimisation |
| `a2c` | advantage actor-critic |
| `ewc` | elastic weight consolidation |
| `replay` | rehearsal of decisions of earlier phases |
| `reset` | PPO that restarts at every block |
| `ste` | the single-task expert |
| `ppo_leans` | features for learners that act by leans |
| `network` | actor and critic on one trunk |
| `features` | inputs of the network from an observation |
| `around` | blocks around a cart, as features |
| `normalise` | running mean and variance of inputs |
| `advantages` | generalised advantage estimation |
| `surprise` | novelty prediction from surprise |
| `forward_model` | learned prediction of free motion |
| `regression` | robust recursive least squares with forgetting |
| `wrap` | policies that were trained elsewhere |
"""

from collections.abc import Callable

from jaxsim import parameters
from jaxsim.agents.base import Agent
from jaxsim.training import a2c, ewc, features, ppo, ppo_leans, replay, reset, ste, wrap
from jaxsim.training.features import Sight
from jaxsim.training.settings import Settings

LEARNERS: dict[str, Callable[..., Agent]] = {
    "ppo": ppo.ppo,
    "a2c": a2c.a2c,
    "ppo+ewc": ewc.agent,
    "ppo+replay": replay.agent,
    "ppo+reset": reset.agent,
    "ste": ste.agent,
    "ppo+leans": ppo_leans.agent,
}
"""Makers of the learners, by name."""


def get(name: str, settings: Settings | None = None, sight: Sight | None = None) -> Agent:
    """Make a learner.

    Args:
      name: one of `LEARNERS`.
      settings: hyper-parameters; None for the learner's own.
      sight: makes inputs of observations; None for that of CartPole3D, or of CartPole3DLeans for
        `ppo+leans`; `features.flat(env, params)` for other environments.

    Raises:
      ValueError: no such learner.
    """
    if name not in LEARNERS:
        raise ValueError(parameters.unknown("learner", name, LEARNERS))
    return LEARNERS[name](settings, sight) if sight else LEARNERS[name](settings)


__all__ = ["LEARNERS", "Settings", "Sight", "features", "get", "wrap"]
