"""Turns: the change of lifetimes from one round to the next."""

from dataclasses import replace
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp

from jaxsim import counters, rng
from jaxsim.agents import contract
from jaxsim.agents.base import (
    Agent,
    Episodes,
    Memory,
    NoveltyPrediction,
    enter_unmoved,
    hear_nothing,
    learn_nothing,
)
from jaxsim.lanes.lists import Batch, Rows
from jaxsim.lanes.minds import Minds
from jaxsim.lanes.state import History, Lanes, Lifetimes, like, where
from jaxsim.lanes.worlds import Worlds
from jaxsim.pytrees import Tree
from jaxsim.worlds.world import RUNNING, TERMINATED

T = TypeVar("T")


class Turns:
    """The turns of a program.

    Args:
      agent: pure agent.
      worlds: environments.
      minds: the agent's functions over lanes.
      batch: lists of the lifetimes.
      number: rounds of a list, R.
      predicts: whether predictions of novelty are recorded.
      names: whether the levels that the agent names are recorded.
      independent: whether every round begins with a new memory.
    """

    def __init__(
        self,
        agent: Agent,
        worlds: Worlds,
        minds: Minds,
        batch: Batch,
        number: int,
        predicts: bool,
        names: bool,
        independent: bool,
    ) -> None:
        self.agent, self.worlds, self.minds, self.width = agent, worlds, minds, minds.width
        self.independent = independent
        self.rounds, self.number, self.predicts, self.names = batch.rounds, number, predicts, names
        self.learns = self.rounds.learning is not None and agent.learn is not learn_nothing

    def turn(
        self, lifetimes: Lifetimes, lanes: Lanes, history: History | None
    ) -> tuple[Lifetimes, Lanes, tuple[jax.Array, Rows]]:
        """Learn from a round, and begin the next.

        Args:
          lifetimes: between two rounds, or over; leaves (K, ...).
          lanes: of these lifetimes, (K W, ...).
          history: of these lifetimes.

        Returns:
          (lifetimes, lanes, (number of the row (K W,), R for none; results of the round)).
        """
        memory = self.minds.joined(lifetimes.shared, self.minds.first(lanes.local))
        if self.learns:
            learning = self.round_of(lifetimes, self.rounds.learning) & (lifetimes.round >= 0)
            learn = partial(self.learned, lifetimes, lanes, history)
            learned = jax.lax.cond(jnp.any(learning), learn, lambda memory: memory, memory)
            memory = where(learning, learned, memory)
        row = self.row(lifetimes, lanes, memory)
        lifetimes = replace(lifetimes, round=lifetimes.round + 1)
        more = lifetimes.round < self.number
        count = jnp.where(more, self.round_of(lifetimes, self.rounds.count), 0)
        over = lifetimes.over | (count == 0)
        if self.independent:
            memory = where(over, memory, self.initial(lifetimes))
        memory = where(over, memory, self.introduced(lifetimes, memory))
        fault = lifetimes.fault
        if fault is not None:
            fault = jax.vmap(self.agent.fault)(memory).astype(jnp.int32)
        shared, local = self.minds.split(memory)
        local = self.minds.spread(local)
        lifetimes = replace(
            lifetimes, over=over, shared=like(shared, lifetimes.shared), fault=fault
        )
        new = self.opened(lifetimes, count, shared, local)
        old = replace(lanes, local=like(local, lanes.local))
        return lifetimes, where(jnp.repeat(over, self.width), old, new), row

    def initial(self, lifetimes: Lifetimes) -> Memory:
        """New memories for independent rounds, drawn by the numbers of their episodes."""
        number = self.round_of(lifetimes, self.rounds.episode)
        return jax.vmap(self.agent.init)(rng.to_key(rng.fold(lifetimes.key, number, counters.INIT)))

    def introduced(self, lifetimes: Lifetimes, memory: Memory) -> Memory:
        """Give the agent the hint of the round, and the entry of a block that begins."""
        agent, rounds, size = self.agent, self.rounds, lifetimes.place.shape[0]
        if rounds.hint is not None and agent.tell is not hear_nothing:
            hinted = jax.vmap(agent.tell)(memory, self.round_of(lifetimes, rounds.hint))
            contract.check_memory("tell", hinted, memory)
            memory = hinted
        if rounds.entry is not None and agent.enter is not enter_unmoved:
            entry = self.round_of(lifetimes, rounds.entry)
            entered = jax.vmap(agent.enter, axis_size=size)(memory, entry)
            contract.check_memory("enter", entered, memory)
            memory = where(self.round_of(lifetimes, rounds.enters), entered, memory)
        return memory

    def opened(
        self,
        lifetimes: Lifetimes,
        count: jax.Array,
        shared: list[jax.Array],
        local: list[jax.Array],
    ) -> Lanes:
        """Episodes of a round before their hidden first steps."""
        rounds = self.rounds
        beside = jnp.tile(jnp.arange(self.width, dtype=jnp.int32), count.shape[0])
        number = self.each(self.round_of(lifetimes, rounds.episode)) + beside
        key = rng.fold(rng.Words(*map(self.each, lifetimes.key)), number)
        world = self.each(self.round_of(lifetimes, rounds.world))
        params = self.worlds.varying(self.each(self.round_of(lifetimes, rounds.row)))
        states = tuple(self.worlds.started(i, key, part) for i, part in enumerate(params))
        if rounds.start is not None:
            use = self.each(self.round_of(lifetimes, rounds.has_start))
            start = jax.tree.map(self.each, self.round_of(lifetimes, rounds.start))
            states = tuple(
                self.worlds.adopted(i, state, use, start, key, params[i])
                for i, state in enumerate(states)
            )
        local = self.minds.begin(shared, local, rng.to_key(rng.fold(key, counters.BEGIN)))
        playing = beside < self.each(count)
        zero = jnp.zeros_like(number)
        return Lanes(
            ending=jnp.where(playing, RUNNING, TERMINATED).astype(jnp.int32),
            needs=zero,
            length=jnp.where(playing, -1, 0).astype(jnp.int32),
            world=world if len(self.worlds.works) > 1 else None,
            key=key,
            params=params,
            states=states,
            action=zero,
            local=local,
            prediction=no_prediction(zero.shape) if self.predicts else None,
            reward=None if self.worlds.scored else jnp.zeros(zero.shape),
            performance=None if self.worlds.scored else jnp.zeros(zero.shape),
        )

    def each(self, leaf: jax.Array) -> jax.Array:
        """Repeat a leaf of lifetimes, (K, ...), for their lanes, (K W, ...)."""
        return jnp.repeat(leaf, self.width, axis=0)

    def round_of(self, lifetimes: Lifetimes, leaves: T) -> T:
        """Entries of the lists for the present rounds: leaves (R, P, ...) to (K, ...)."""

        def one(leaf: jax.Array) -> jax.Array:
            leaf = jnp.asarray(leaf)
            row = jnp.clip(lifetimes.round, 0, self.number - 1)
            column = lifetimes.place if leaf.shape[1] > 1 else 0
            return leaf[row, column]

        return jax.tree.map(one, leaves)

    def row(self, lifetimes: Lifetimes, lanes: Lanes, memory: Memory) -> tuple[jax.Array, Rows]:
        """Number of the row, (K W,), R for none, and the results of the round that is over."""
        size = lifetimes.place.shape[0]
        number = self.each(jnp.where(lifetimes.round >= 0, lifetimes.round, self.number))
        named = None
        if self.names:
            named = self.each(jax.vmap(self.agent.named, axis_size=size)(memory))
        fault = None if lifetimes.fault is None else self.each(lifetimes.fault)
        reward, performance = lanes.reward, lanes.performance
        return number, Rows(
            lanes.length, lanes.ending, reward, performance, lanes.prediction, named, fault
        )

    def learned(
        self, lifetimes: Lifetimes, lanes: Lanes, history: History | None, memory: Memory
    ) -> Memory:
        """Memories after lifetimes have learned from their rounds."""
        size, width = lifetimes.place.shape[0], self.width

        def apart(leaf: jax.Array) -> jax.Array:
            return leaf.reshape(size, width, *leaf.shape[1:])

        if self.worlds.scored:
            reward, performance = self.worlds.totals(lanes.world, lanes.length)
        else:
            reward, performance = lanes.reward, lanes.performance
        totals = apart(reward), apart(performance), apart(lanes.length)
        mask = None
        if width > 1:
            mask = jnp.arange(width) < self.round_of(lifetimes, self.rounds.count)[:, None]
        steps: tuple[Tree, ...] = ()
        if history is not None:
            steps = jax.tree.map(apart, self.steps(lifetimes, lanes, history))
        episodes = Episodes(*totals, apart(lanes.ending == TERMINATED), mask, *steps)
        return jax.vmap(self.agent.learn)(memory, episodes)

    def steps(
        self, lifetimes: Lifetimes, lanes: Lanes, history: History
    ) -> tuple[Tree, jax.Array, Tree]:
        """Traces and rewards of the steps, and the trace of the last observation, (K W, ...)."""
        length, most = lanes.length, self.worlds.max_steps
        observation = self.worlds.observed(lanes.states, length, lanes.world)
        last = self.minds.trace(lifetimes.shared, lanes.local, observation, jnp.zeros_like(length))
        rewards = history.rewards
        if rewards is None:
            number = jnp.broadcast_to(jnp.arange(1, most + 1), (length.size, most))
            rewards = self.worlds.step_rewards(lanes.world, number)
        return history.trace, rewards, last


def no_prediction(shape: tuple[int, ...]) -> NoveltyPrediction:
    """Predictions of agents before their first."""
    prediction: NoveltyPrediction = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, shape), NoveltyPrediction.none()
    )
    return prediction
