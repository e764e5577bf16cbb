"""Checks of what an agent's functions return; they look at types and shapes, so they cost no time.

Engines select and batch what agents return, which hides a wrong type: a memory of int32 that `act`
returns as float32 would be cut to whole numbers.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents.base import (
    Agent,
    Entry,
    Episodes,
    Memory,
    NoveltyPrediction,
    learn_nothing,
)
from jaxsim.env import Env
from jaxsim.inputs import action_codes
from jaxsim.pytrees import Params, Tree

_ANSWER = "action", "prediction", "memory"


def check_agent(agent: object) -> None:
    """Check that something is an agent, and no name of one.

    Raises:
      TypeError: it is another object.
    """
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r}; it must be an Agent, as jaxsim.agents.get('pd') is")


def check_functions(agent: Agent, env: Env, params: Params, keys: jax.Array) -> None:
    """Call each function of an agent, in a batch as engines do, and check what it returns.

    Args:
      agent: pure agent.
      env: environment that it plays, or that it learns in.
      params: of the environment.
      keys: (N,) of all that is drawn; for traced code.

    Raises:
      TypeError: a memory or an answer of another form than engines need.
      ValueError: an action that is no integer.
      Exception: what the functions of the agent raise.
    """

    def first(key: jax.Array) -> Memory:
        memory = agent.init(key)
        check_memory("init", memory, memory)
        return memory

    jax.vmap(partial(_check_with_memory, agent, env, params))(keys, jax.vmap(first)(keys))


def _check_with_memory(
    agent: Agent, env: Env, params: Params, key: jax.Array, memory: Memory
) -> None:
    """Check the functions that are given a memory."""
    observation = env.observe(env.start(key, params))
    check_memory("assign", agent.assign(memory, jnp.uint32(0)), memory)
    one, true = jnp.int32(1), jnp.bool_(True)
    check_memory("enter", agent.enter(memory, Entry(one, one, one, one, true, true)), memory)
    _check_scalars("`fault` must return one number", agent.fault(memory))
    first_memory = agent.begin(memory, key)
    check_memory("begin", first_memory, memory)
    answer = agent.act(first_memory, observation, key)
    check_answer(answer, memory)
    action_codes(answer[0], env.num_actions)
    if agent.learn is not learn_nothing:
        steps: tuple[Tree, ...] = ()
        if agent.trace is not None:
            final = jax.tree.map(jnp.asarray, agent.trace(memory, observation, jnp.int32(0)))
            size = 1, env.max_steps
            trace = jax.tree.map(lambda leaf: jnp.zeros((*size, *leaf.shape), leaf.dtype), final)
            steps = trace, jnp.zeros(size), jax.tree.map(lambda leaf: leaf[None], final)
        number, length = jnp.zeros(1), jnp.zeros(1, jnp.int32)
        episodes = Episodes(number, number, length, jnp.zeros(1, bool), None, *steps)
        check_memory("learn", agent.learn(memory, episodes), memory)


def check_answer(answer: object, memory: Memory) -> None:
    """Check what `act` returns, but for the range of the action.

    Args:
      answer: (action, prediction, memory).
      memory: of the same agent, in the form that all must have.

    Raises:
      TypeError: it is of another form.
    """
    if not isinstance(answer, tuple) or len(answer) != len(_ANSWER):
        raise TypeError(f"`act` must return ({', '.join(_ANSWER)})")
    action, prediction, after = answer
    _check_scalars("`act` must return one action", action)
    if not isinstance(prediction, NoveltyPrediction):
        raise TypeError(
            f"the prediction of `act` is a {type(prediction).__name__}; it must be a "
            "jaxsim.agents.NoveltyPrediction, as NoveltyPrediction.none()"
        )
    numbers = prediction.level, prediction.probability, prediction.threshold
    _check_scalars("a prediction of `act` must hold one number each", *numbers)
    check_memory("act", after, memory)


def check_memory(function: str, memory: Memory, first: Memory) -> None:
    """Check that a memory is of the form of the first one.

    Args:
      function: name of the function of an agent that returned it.
      memory: what it returned.
      first: memory of `init`, or its shapes.

    Raises:
      TypeError: it is of another form.
    """
    for leaf in jax.tree.leaves(memory):
        if not hasattr(leaf, "dtype"):
            raise TypeError(
                f"the memory of `{function}` holds {leaf!r}; it must hold arrays, as jnp.int32(0)"
            )
    structures: list[Any] = [jax.tree.structure(tree) for tree in (first, memory)]
    if structures[0] != structures[1]:
        raise TypeError(f"the memory of `{function}` has another structure than of `init`")
    for leaf, initial in zip(jax.tree.leaves(memory), jax.tree.leaves(first), strict=True):
        if (leaf.shape, leaf.dtype) != (initial.shape, initial.dtype):
            raise TypeError(
                f"the memory of `{function}` has {leaf.dtype} of shape {leaf.shape}; that of "
                f"`init` has {initial.dtype} of shape {initial.shape}"
            )


def _check_scalars(message: str, *numbers: Any) -> None:
    for number in numbers:
        if np.shape(number) != ():
            raise TypeError(f"{message}, and has shape {np.shape(number)}")
