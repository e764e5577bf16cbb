"""Steps of lanes: the action and the cheapest attempt, and attempts with more effort."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import counters, inputs, rng
from jaxsim.lanes.minds import Minds
from jaxsim.lanes.state import Lanes, where
from jaxsim.lanes.worlds import Worlds
from jaxsim.pytrees import Tree
from jaxsim.worlds.world import RUNNING, Attempt


class Steps:
    """The steps of a program.

    Args:
      worlds: environments.
      minds: the agent's functions over lanes.
      traces: whether the result of `Agent.trace` is returned for each step.
    """

    def __init__(self, worlds: Worlds, minds: Minds, traces: bool) -> None:
        self.worlds, self.minds, self.traces = worlds, minds, traces

    def tick(self, lanes: Lanes, shared: list[jax.Array]) -> tuple[Lanes, Tree]:
        """Choose the actions of the lanes that need one, and attempt their cheapest steps.

        Returns:
          (lanes, None or (row of the history (L,), past its end for no step, trace, reward or
          None)).
        """
        active = (lanes.ending == RUNNING) & (lanes.needs == 0)
        observation = self.worlds.observed(lanes.states, lanes.length, lanes.world)
        number = (lanes.length + 1).astype(jnp.uint32)
        act_key = rng.to_key(rng.fold(lanes.key, counters.ACT, number))
        action, prediction, local = self.minds.act(shared, lanes.local, observation, act_key)
        if action.dtype == bool:
            action = action.astype(jnp.int32)
        action = inputs.action_codes(action, self.worlds.works[0].num_actions)
        # The hidden first step ignores the agent's action.
        chosen = active & (lanes.length >= 0)
        before = replace(
            lanes,
            action=jnp.where(chosen, action, jnp.where(active, 0, lanes.action)).astype(jnp.int32),
            local=where(chosen, local, lanes.local),
            prediction=None
            if lanes.prediction is None
            else where(chosen, prediction, lanes.prediction),
        )
        after = before
        for world in range(len(self.worlds.works)):
            lanes_of_world = active if lanes.world is None else active & (lanes.world == world)
            after = self.stepped(before, after, world, 0, lanes_of_world)
        if not self.traces:
            return after, None
        trace = self.minds.trace(shared, lanes.local, observation, before.action)
        row = jnp.where(chosen, lanes.length, self.worlds.max_steps)
        reward = None if self.worlds.scored else after.reward - before.reward
        return after, (row, trace, reward)

    def waiting(self, lanes: Lanes, world: int, effort: int) -> jax.Array:
        """Mask of the lanes of an environment that need an effort, (L,)."""
        waiting = (lanes.ending == RUNNING) & (lanes.needs == effort)
        return waiting if lanes.world is None else waiting & (lanes.world == world)

    def raised(self, world: int, effort: int, lanes: Lanes) -> tuple[Lanes, None]:
        """Attempt the steps of the lanes that need an effort."""
        return self.stepped(lanes, lanes, world, effort, self.waiting(lanes, world, effort)), None

    def stepped(
        self, before: Lanes, after: Lanes, world: int, effort: int, active: jax.Array
    ) -> Lanes:
        """Attempt a step of the active lanes of one environment.

        Args:
          before: lanes before the step.
          after: lanes after the steps of other environments.
          world: index of the environment.
          effort: index among its efforts.
          active: (L,) bool.
        """
        attempt = partial(self.attempted, before, world, effort, active)
        if len(self.worlds.works) > 1 and effort == 0:
            # Most chunks are in one world at a time; the other worlds then cost nothing.
            zeros = jax.tree.map(
                lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(attempt)
            )
            result = jax.lax.cond(jnp.any(active), attempt, lambda: zeros)
        else:
            result = attempt()
        right, ending, needs, state, gains = result
        states = list(after.states)
        states[world] = where(right, state, states[world])
        totals: dict[str, Any] = {}
        if gains is not None:
            counts = right & (before.length >= 0)
            totals = {
                "reward": jnp.where(counts, before.reward + gains[0], after.reward),
                "performance": jnp.where(counts, gains[1], after.performance),
            }
        needs = jnp.where(right, 0, jnp.where(active, needs, after.needs))
        return replace(
            after,
            ending=jnp.where(right, ending, after.ending).astype(jnp.int32),
            needs=needs.astype(jnp.int32),
            length=jnp.where(right, before.length + 1, after.length),
            states=tuple(states),
            **totals,
        )

    def attempted(self, lanes: Lanes, world: int, effort: int, active: jax.Array) -> Tree:
        """Attempt a step in one environment; (right, ending, needs, carried state, gains)."""
        work = self.worlds.works[world]
        key = rng.fold(lanes.key, counters.STEP, (lanes.length + 1).astype(jnp.uint32))
        attempt = work.attempt(
            rng.to_key(key),
            work.resumed(lanes.states[world], lanes.length),
            lanes.action,
            self.worlds.params(world, lanes.params[world]),
            active,
            work.efforts[effort],
        )
        needs = jnp.broadcast_to(attempt.needs, active.shape)
        gains = None if self.worlds.scored else self.gains(world, attempt, lanes.length + 1)
        return attempt.right & active, attempt.ending, needs, work.carried(attempt.state), gains

    def gains(self, world: int, attempt: Attempt, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Reward of a step and performance after it, float32."""
        if attempt.reward is None:
            work = self.worlds.works[world]
            gains = work.step_reward(number), work.score(number)[1]
        else:
            gains = attempt.reward, attempt.performance
        return gains[0].astype(jnp.float32), gains[1].astype(jnp.float32)
