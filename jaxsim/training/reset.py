"""PPO that starts afresh at every block it learns in: the control without any transfer."""

from dataclasses import replace

from jaxsim.agents.base import Agent, Entry
from jaxsim.pytrees import Tree
from jaxsim.training import features, ppo
from jaxsim.training.features import Sight
from jaxsim.training.settings import Settings


def agent(settings: Settings | None = None, sight: Sight = features.cartpole3d) -> Agent:
    """PPO that forgets everything as a block begins in which it may learn; see `ppo.ppo`."""
    return ppo.learner("ppo+reset", settings or Settings(), sight, VARIANT)


def _enter(memory: ppo.Memory, entry: Entry, fresh: Tree) -> ppo.Memory:
    return ppo.choose(entry.learning, replace(fresh(memory), learning=entry.learning), memory)


VARIANT = ppo.plain._replace(enter=_enter)
