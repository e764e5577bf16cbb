"""Agents as pure functions: policies and novelty predictions.

| module | subject |
| --- | --- |
| `base` | the agent contract |
| `contract` | checks that an agent keeps it |
| `reference` | `random`, `nothing`, `pd` and `greedy` |
| `mpc` | `mpc`: model-predictive control that repairs its model |
| `lookahead` | rollouts of a planner, with contacts |
| `leans` | leans of the pole as actions, and their forecasts |
| `repair` | estimate of an episode's physics |
| `pushes` | estimate of what pushes do, and when |
| `derived` | speeds from places, where the reported ones are wrong |
| `detection` | novelty detectors, joined with a controller |
| `residual` | `residual`: novelty detection by prediction errors |
| `limits` | limits of prediction errors under sensor noise |
| `hits` | nominal prediction of a tick with a hit |
| `touch` | possible contacts, from an observation |
| `bank` | known changes of the physics as explanations |
| `noise_scale` | estimate of the sensor noise |
| `sequential` | evidence that is summed over noisy observations |
| `filtering` | Kalman filters of noisy readings |
| `directions` | effects of small changes of the world |
| `martingale` | sequential test with a fixed false-alarm rate |
| `wow` | `wow`: the UCCS group's open-world agent |
| `sight` | observations in the simulator's terms |
"""

from functools import cache

from jaxsim import parameters
from jaxsim.agents import mpc, reference, residual, wow
from jaxsim.agents.base import (
    UNNAMED,
    Agent,
    Entry,
    Episodes,
    NoveltyHint,
    NoveltyPrediction,
    never_fails,
)
from jaxsim.agents.detection import Detector, joined
from jaxsim.env import Env
from jaxsim.pytrees import Params

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        reference.random,
        reference.nothing,
        reference.pd,
        reference.greedy,
        mpc.mpc,
        wow.agent(),
        wow.agent(published=True),
    )
}
"""Agents that act; of these only `wow` predicts novelty by itself."""

DETECTORS: dict[str, Detector] = {
    detector.name: detector
    for detector in (residual.residual, wow.detector(), wow.detector(published=True))
}
"""Novelty detectors, which join any agent."""

LEARNERS = ("ppo", "a2c", "ppo+ewc", "ppo+replay", "ppo+reset", "ste", "ppo+leans")
"""Agents of `jaxsim.training`, which is imported only when one of them is looked up."""


@cache
def get(name: str) -> Agent:
    """Look up a built-in agent.

    Args:
      name: of an agent, as "pd" or "ppo+ewc", or of an agent and a detector, as "pd+residual".

    Raises:
      ValueError: no agent or detector has that name; the message lists those that exist.
    """
    names = (*AGENTS, *LEARNERS)
    # The longest match, as some names contain a plus.
    fitting = [candidate for candidate in names if f"{name}+".startswith(f"{candidate}+")]
    if not fitting:
        raise ValueError(parameters.unknown("agent", name.split("+", 1)[0], names))
    controller = max(fitting, key=len)
    detector = name[len(controller) + 1 :]
    agent = AGENTS[controller] if controller in AGENTS else _learner(controller)
    return agent if name == controller else with_detector(agent, detector)


def with_detector(agent: Agent, detector: str) -> Agent:
    """Join an agent with the detector of a name, one of `DETECTORS`.

    Raises:
      ValueError: no detector has that name; the message lists those that exist.
    """
    if detector not in DETECTORS:
        raise ValueError(parameters.unknown("detector", detector, DETECTORS))
    return joined(agent, DETECTORS[detector])


def fitted(name: str, env: Env, params: Params) -> Agent:
    """Look up a built-in agent for an environment with other observations than CartPole3D.

    Learners get all numbers of the observation, and `random` draws from the environment's actions.
    Other agents are those of `get`.

    Args:
      name: of an agent.
      env: environment.
      params: of the environment, scalar leaves.

    Raises:
      ValueError: as `get`.
    """
    if name == reference.random.name:
        return reference.among(env.num_actions)
    return _learner(name, (env, params)) if name in LEARNERS else get(name)


def _learner(name: str, of: tuple[Env, Params] | None = None) -> Agent:
    # Imported here, as optax is slow to import and only learners need it.
    from jaxsim import training

    return training.get(name, sight=training.features.flat(*of) if of else None)


__all__ = [
    "AGENTS",
    "DETECTORS",
    "LEARNERS",
    "UNNAMED",
    "Agent",
    "Detector",
    "Entry",
    "Episodes",
    "NoveltyHint",
    "NoveltyPrediction",
    "fitted",
    "get",
    "joined",
    "never_fails",
    "with_detector",
]
