"""Settings and checks of all runs with checkpoints."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np

from evaluation import agents, memory, scanner
from evaluation.checkpoints.configuration import configuration
from evaluation.checkpoints.keeper import Pace, check_output
from evaluation.checkpoints.loading import SavedAgent, player
from evaluation.files import ResultFiles, check_room
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Schedule
from jaxsim import counters
from jaxsim.agents import Agent

HELD_BYTES = sum(np.dtype(dtype).itemsize for dtype in COLUMNS.values())
"""Least memory of an episode."""
LEAST_BYTES = 4
"""Least size of an episode in records on the disk."""


@dataclass(frozen=True, kw_only=True)
class Playing:
    """Settings of a run, without what is played.

    Attributes:
      out: directory for the results.
      agent: name of a built-in agent, or "checkpoint:" and the directory of a run that was saved.
      lifetimes: number of lifetimes.
      seed: root of all randomness, of the bootstrap as well.
      first_lifetime: number of the first lifetime, to play a part of a longer run again.
      width: episodes of a block that a lifetime plays in parallel, see `scanner.play`.
      overwrite: whether files in `out` may be replaced.
      options: how the run is spread over the machine.
      pace: how often the run is saved.
      resume: whether to continue from its newest checkpoint in `out`.
    """

    out: Path
    agent: str = "pd"
    lifetimes: int = 256
    seed: int = 0
    first_lifetime: int = 0
    width: int = 1
    overwrite: bool = False
    options: scanner.MachineOptions = field(default_factory=scanner.MachineOptions)
    pace: Pace = field(default_factory=Pace)
    resume: bool = False
    files: ClassVar[ResultFiles]

    def check_playing(self, schedule: Schedule) -> SavedAgent:
        """Check all settings before anything is traced or written.

        Args:
          schedule: what is played.

        Returns:
          The agent, as from `player`.

        Raises:
          ValueError: says what to change.
        """
        player = self.player(schedule)
        scanner.check_lifetimes(self.lifetimes, self.first_lifetime)
        scanner.check_width(self.width)
        counters.root(self.seed)
        self.pace.check()
        self.options.spread()
        check_output(self.out, self.overwrite, self.resume, self.files)
        return player

    def check_room(self, episodes: int, player: SavedAgent) -> None:
        """Check that memory and disk have room for the least that the run needs.

        Args:
          episodes: of each lifetime.
          player: the agent, whose memories take room.

        Raises:
          ValueError: it does not fit into memory; says how many lifetimes do.
          OSError: it does not fit on the disk.
        """
        remedy = "play them in parts, with --lifetime-idx for the first of each"
        what = f"lifetimes of {episodes:,} episodes"
        size = HELD_BYTES * episodes + _memory_bytes(player.agent)
        memory.check_fits(self.lifetimes, size, what, remedy)
        check_room(self.out, LEAST_BYTES * episodes * self.lifetimes, "results")

    def player(self, schedule: Schedule) -> SavedAgent:
        """Return the agent with the memories that lifetimes start with.

        Args:
          schedule: what is played.

        Raises:
          ValueError: no such agent.
        """
        return player(self.agent, self.lifetimes, self.first_lifetime, schedule)

    def configuration(self, schedule: Schedule | JsonMapping, player: SavedAgent) -> JsonObject:
        """Return everything that must be equal in a run that resumes this one.

        Args:
          schedule: what is played, see `configuration.configuration`.
          player: from `player()`.
        """
        return configuration(
            schedule,
            agent=player.built_in,
            lifetimes=self.lifetimes,
            first_lifetime=self.first_lifetime,
            seed=self.seed,
            width=self.width,
            **({"knows": player.origin} if player.origin else {}),
            **agents.files_of([player.built_in]),
        )

    def play(
        self,
        schedule: Schedule,
        player: SavedAgent,
        keeper: scanner.Keeper,
        progress: scanner.Progress | None,
    ) -> Records:
        """Play a schedule, see `scanner.play`; records also have the hash of the agent's file."""
        records = scanner.play(
            schedule,
            player.agent,
            lifetimes=self.lifetimes,
            seed=self.seed,
            first_lifetime=self.first_lifetime,
            width=self.width,
            options=self.options,
            progress=progress,
            memory=player.memory,
            keeper=keeper,
        )
        files = agents.files_of([player.built_in])
        return replace(records, metadata={**records.metadata, **files})


def _memory_bytes(agent: Agent) -> int:
    """Size of an agent's memory of one lifetime, bytes."""
    shapes = jax.eval_shape(agent.init, jax.eval_shape(lambda: jax.random.key(0)))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
