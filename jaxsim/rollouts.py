"""Whole episodes as fast as the machine allows.

    result = jaxsim.rollout(*jaxsim.make("CartPole3D-v0"), agents.get("pd"), episodes=65536)

An episode's result depends on its number and the seed alone. Lanes play lists of episodes one after
the other (`jaxsim.lanes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np

from jaxsim import backend, counters
from jaxsim.agents.base import Agent
from jaxsim.agents.contract import check_agent
from jaxsim.inputs import check_whole
from jaxsim.lanes.crew import Crew, Spread, power_of_two
from jaxsim.lanes.lists import Rounds
from jaxsim.pytrees import Leaf, Params
from jaxsim.worlds.world import NONFINITE, TERMINATED, World, rows_of

MAX_EPISODES = 1 << 28
MAX_ROUNDS = 256
"""Most episodes of one list; a lane with more plays several lists."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Totals:
    """Results of episodes; leaves (E,)."""

    length: Leaf  # int32, steps
    performance: Leaf  # in [0, 1]
    reward: Leaf  # sum over the steps
    terminated: Leaf  # bool; False where a limit ended the episode
    complete: Leaf  # bool; False where a number was not finite


def rollout(
    env: World,
    params: Params,
    agent: Agent,
    episodes: int,
    *,
    seed: int = 0,
    variant: Leaf = None,
    numbers: Leaf = None,
    spread: Spread | None = None,
    divided: bool = True,
) -> Totals:
    """Play whole episodes with a pure agent, each with a memory of its own.

    Args:
      env: environment, see `jaxsim.env`.
      params: physics; scalar leaves, or (V,) together with `variant`.
      agent: pure agent; it does not learn here, and its predictions of novelty are ignored.
      episodes: number of episodes, E.
      seed: root of all randomness, from 0 to 2^32 - 1.
      variant: (E,) row of the parameters that each episode plays.
      numbers: (E,) number of each episode, from which its randomness follows; None for its index.
        Variants that play the same numbers have the same starts.
      spread: how episodes are spread over the machine.
      divided: whether the simplest environment that has the terms of a row plays it, each with a
        program of its own. One program for all rows takes a third of the CPU time to compile, and
        twice as long to play. It rounds differently: in a mixture of levels 200 to 207, one episode
        in ten thousand has another length.

    Returns:
      NumPy arrays (E,) of each episode's result, the same for any spread.

    Raises:
      ValueError: a count, seed, size or shape that does not fit, or an environment whose scores do
        not follow from the number of steps, as a wrapped one.
      TypeError: another object than an agent.
    """
    check_agent(agent)
    if not hasattr(env, "score"):
        raise ValueError(_no_score(env))
    check_whole("episodes", episodes, 1, MAX_EPISODES)
    counters.root(seed)
    table, rows = _table(params, variant, episodes)
    numbers = _numbers(numbers, episodes)
    parts, part = env.parts(table) if divided else ((env,), np.zeros(rows_of(table), np.int32))
    # Without its detector, whose predictions are ignored and which takes long to compile.
    agent = agent.acting or agent
    shares = []
    for index, world in enumerate(parts):
        place = np.flatnonzero(part[rows] == index)
        if place.size:
            lists = numbers[place], rows[place]
            shares.append((place, _Share(world, table, agent, seed, lists, spread or Spread())))
    if len(shares) > 1:  # in parallel; one alone is compiled as it is played
        threads = min(len(shares), (spread or Spread()).compilers)
        backend.in_threads(_Share.compile, threads, [of for _, of in shares])
    length, ending = np.zeros((2, episodes), np.int32)
    reward, performance = np.zeros((2, episodes), np.float32)
    for place, share in shares:
        results = share.play()
        length[place], ending[place], reward[place], performance[place] = results
    return Totals(length, performance, reward, ending == TERMINATED, ending != NONFINITE)


class _Share:
    """Episodes that one program plays.

    Args:
      env: environment.
      table: its parameters.
      agent: pure agent.
      seed: root of all randomness.
      lists: numbers of the episodes and rows of the table, (E,) each.
      spread: how they are spread over the machine.
    """

    def __init__(
        self,
        env: World,
        table: Params,
        agent: Agent,
        seed: int,
        lists: tuple[np.ndarray, np.ndarray],
        spread: Spread,
    ) -> None:
        self.numbers, rows = lists
        # Parameters that differ only between rows of other programs stay scalars.
        rows, places = np.unique(rows, return_inverse=True)
        self.rows = places.astype(np.int32)
        table = jax.tree.map(lambda leaf: leaf[rows] if leaf.ndim else leaf, table)
        episodes, layout, threads = self.numbers.size, env.layout, spread.number
        target = max(-(-episodes // layout.rounds), threads * layout.enough)
        # Calls for similar numbers of episodes share a program.
        self.lanes = power_of_two(min(target, episodes, threads * layout.lanes))
        self.rounds = min(MAX_ROUNDS, power_of_two(-(-episodes // self.lanes)))
        self.crew = Crew(
            agent,
            [env],
            [table],
            counters.root(seed),
            np.arange(self.lanes),
            spread=spread,
            predicts=False,
            independent=True,
        )

    def compile(self) -> None:
        """Compile the program."""
        self.crew.compile(next(self.lists()))

    def play(self) -> list[np.ndarray]:
        """Lengths, endings, rewards and performances of the episodes, (E,) each."""
        rows = [self.crew.play(rounds) for rounds in self.lists()]
        parts = [(one.length, one.ending, one.reward, one.performance) for one in rows]
        return [
            np.concatenate([leaf.ravel() for leaf in leaves])[: self.numbers.size]
            for leaves in zip(*parts, strict=True)
        ]

    def lists(self) -> Iterator[Rounds]:
        """Yield lists of (R, P) episodes; neighbouring episodes are in neighbouring lanes."""
        most = self.rounds * self.lanes
        for first in range(0, self.numbers.size, most):
            number, row = (of[first : first + most] for of in (self.numbers, self.rows))
            yield Rounds(
                self._dealt(number),
                self._dealt(np.ones_like(row)),
                np.zeros((self.rounds, 1), np.int32),
                self._dealt(row),
            )

    def _dealt(self, values: np.ndarray) -> np.ndarray:
        padded = np.pad(values, (0, self.rounds * self.lanes - values.size))
        return padded.reshape(self.rounds, self.lanes)


def _no_score(env: World) -> str:
    """Error for an environment whose scores do not follow from the number of steps."""
    inside, path = env, "env"
    while not hasattr(inside, "score") and hasattr(inside, "env"):
        inside, path = inside.env, f"{path}.env"
    if inside is env or not hasattr(inside, "score"):
        return f"{env.name} has no method `score`; play a schedule with evaluation.scanner"
    return (
        f"a {type(env).__name__} cannot be rolled out: pass {path}, the {type(inside).__name__} "
        "inside. A rollout starts and ends episodes itself, and its agents get the observation as "
        "it is; an agent for vectors calls jaxsim.spaces.flatten"
    )


def _table(params: Params, variant: Leaf, episodes: int) -> tuple[Params, np.ndarray]:
    """Parameters as a table of rows, and the row of each episode, (E,) int32."""
    params = jax.tree.map(np.asarray, params)
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    if variant is None:
        if shapes != {()}:
            raise ValueError("parameters must be scalars unless variant says who plays which row")
        return params, np.zeros(episodes, np.int32)
    rows = _integers("variant", variant, episodes)
    if len(shapes) != 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError("with variant all parameters must have shape (V,)")
    number = min(shapes)[0]
    if rows.min() < 0 or rows.max() >= number:
        raise ValueError(f"variant holds rows beyond the {number} of the parameters")
    return params, rows.astype(np.int32)


def _numbers(numbers: Leaf, episodes: int) -> np.ndarray:
    """Numbers of the episodes, (E,) int32."""
    if numbers is None:
        return np.arange(episodes, dtype=np.int32)
    numbers = _integers("numbers", numbers, episodes)
    if numbers.min() < 0 or numbers.max() >= MAX_EPISODES:
        raise ValueError(f"numbers must be from 0 to {MAX_EPISODES - 1}")
    return numbers.astype(np.int32)


def _integers(name: str, values: Leaf, episodes: int) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != (episodes,) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"{name} must be ({episodes},) integers")
    return values
