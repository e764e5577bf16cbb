"""Novelty detectors, and how one joins a controller.

A detector watches the actions and observations of a controller; it never acts. Any detector joins
any controller, and the actions stay exactly those of the controller alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.agents.base import (
    Agent,
    Entry,
    Episodes,
    Memory,
    NoveltyHint,
    NoveltyPrediction,
    hear_nothing,
    name_nothing,
    never_fails,
)
from jaxsim.agents.sight import Sighting, see
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.types import Observation


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Transition:
    """Input of a detector at every observation."""

    before: Sighting  # the last observation; ignored at the first of an episode
    action: jax.Array  # () int32, action between the two
    after: Sighting  # the present observation
    first: jax.Array  # () bool, whether it is the first of its episode


Watch = Callable[[Memory, Transition], tuple[Memory, NoveltyPrediction]]


@dataclass(frozen=True)
class Detector:
    """A pure novelty detector for a single lifetime; its memory is any pytree of arrays.

    Attributes:
      name: short name, for tables.
      watch: (memory, transition) -> (memory, novelty prediction), at every observation.
      init: () -> memory of a new lifetime.
      begin: (memory) -> memory, at the beginning of an episode.
      named: (memory) -> () int32, as `Agent.named`.
      tell: (memory, hint) -> memory, as `Agent.tell`.
      watch_exact: the same as `watch` at less cost where sensors are exact; None for none.
    """

    name: str
    watch: Watch
    init: Callable[[], Memory]
    begin: Callable[[Memory], Memory]
    named: Callable[[Memory], jax.Array] = name_nothing
    tell: Callable[[Memory, NoveltyHint], Memory] = hear_nothing
    watch_exact: Watch | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Joined:
    """Memory of a controller with a detector."""

    controller: Memory
    detector: Memory
    before: Sighting
    action: jax.Array  # () int32
    first: jax.Array  # () bool


def joined(controller: Agent, detector: Detector) -> Agent:
    """Join an agent that acts as the controller and predicts novelty as the detector."""

    def init(key: jax.Array) -> Joined:
        return Joined(
            controller.init(key),
            detector.init(),
            Sighting.nothing(),
            jnp.int32(0),
            jnp.asarray(True),
        )

    def begin(memory: Joined, key: jax.Array) -> Joined:
        return replace(
            memory,
            controller=controller.begin(memory.controller, key),
            detector=detector.begin(memory.detector),
            first=jnp.asarray(True),
        )

    def act(
        watch: Watch, memory: Joined, observation: Observation, key: jax.Array
    ) -> tuple[jax.Array, NoveltyPrediction, Joined]:
        report = see(observation)
        transition = Transition(memory.before, memory.action, report, memory.first)
        detector_memory, prediction = watch(memory.detector, transition)
        action, _, controller_memory = controller.act(memory.controller, observation, key)
        code = jnp.asarray(action, jnp.int32)
        return (
            action,
            prediction,
            Joined(controller_memory, detector_memory, report, code, jnp.asarray(False)),
        )

    def learn(memory: Joined, episodes: Episodes) -> Joined:
        return replace(memory, controller=controller.learn(memory.controller, episodes))

    def tell(memory: Joined, hint: NoveltyHint) -> Joined:
        return replace(
            memory,
            controller=controller.tell(memory.controller, hint),
            detector=detector.tell(memory.detector, hint),
        )

    def named(memory: Joined) -> jax.Array:
        return detector.named(memory.detector)

    def enter(memory: Joined, entry: Entry) -> Joined:
        return replace(memory, controller=controller.enter(memory.controller, entry))

    def assign(memory: Joined, number: jax.Array) -> Joined:
        return replace(memory, controller=controller.assign(memory.controller, number))

    def trace(memory: Joined, observation: Observation, action: jax.Array) -> Tree:
        assert controller.trace is not None
        return controller.trace(memory.controller, observation, action)

    def fault(memory: Joined) -> jax.Array:
        return controller.fault(memory.controller)

    agent = Agent(
        f"{controller.name}+{detector.name}",
        partial(act, detector.watch),
        init,
        begin,
        learn,
        tell,
        named,
        controller,
        trace=None if controller.trace is None else trace,
        enter=enter,
        assign=assign,
        fault=never_fails if controller.fault is never_fails else fault,
        faults=controller.faults,
        costly=controller.costly,
    )
    watch = detector.watch_exact
    return agent if watch is None else replace(agent, exact=replace(agent, act=partial(act, watch)))
