"""What an agent knew before an episode of a run: its lifetime is played again to there."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import scanner
from evaluation.checkpoints import store
from evaluation.checkpoints.loading import SavedAgent
from evaluation.records import Records
from evaluation.scanner import Snapshot
from jaxsim.agents import Agent

FROM_START = "the lifetime's start"


class _Reached(Exception):
    """The episode comes next."""


@dataclass
class _Until:
    """Ends a run of one lifetime before an episode, and keeps what it was then.

    Attributes:
      episode: number of the first that is not played.
      find: is given the start and returns where to go on from, None for the start.
      snapshot: of the lifetime, when the episode is reached.
    """

    episode: int
    find: Callable[[Snapshot], Snapshot | None]
    snapshot: Snapshot | None = None

    @property
    def ends(self) -> Collection[int]:
        """Numbers of episodes after which the run returns to the host."""
        return (self.episode,)

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return what to go on from."""
        found = self.find(start())
        if found is not None and self._episodes(found) == self.episode:
            self.snapshot = found
            raise _Reached
        return found

    @staticmethod
    def _episodes(snapshot: Snapshot) -> int:
        return int(jax.tree.leaves(snapshot.outcome)[0].shape[1])

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """End the run where the episode comes next."""
        if episodes >= self.episode:
            self.snapshot = take()
            raise _Reached


def memory_before(
    records: Records, run: Path, player: SavedAgent, lifetime: int, episode: int
) -> tuple[Any, str]:
    """Return what an agent knew before an episode, and from where it was played to there.

    Args:
      records: of the run.
      run: its directory, whose checkpoints are used.
      player: the agent, with the memory that the lifetime starts with.
      lifetime: number of the lifetime.
      episode: number of the first episode that is not played.

    Returns:
      (memory, origin): leaves (1, ...) as in a snapshot, None for the agent's first; and words.
    """
    # An agent without a memory is the same in every episode.
    nothing = not jax.tree.leaves(jax.eval_shape(player.agent.init, jax.random.key(0)))
    if episode == 0 or nothing:
        return player.memory, FROM_START
    origin = [FROM_START]

    def find(start: Snapshot) -> Snapshot | None:
        found = _from_checkpoint(records, run, lifetime, episode, start)
        if found is None:
            return None
        snapshot, step = found
        origin[0] = f"the checkpoint {step}"
        return snapshot

    until = _Until(episode, find)
    with contextlib.suppress(_Reached):
        scanner.play(
            records.schedule,
            player.agent,
            lifetimes=1,
            first_lifetime=lifetime,
            seed=int(records.metadata["seed"]),
            width=int(records.metadata.get("width", 1)),
            memory=player.memory,
            keeper=until,
        )
    assert until.snapshot is not None, "the run was to end before its last episode"
    return until.snapshot.memory, origin[0]


def _from_checkpoint(
    records: Records, run: Path, lifetime: int, episode: int, start: Snapshot
) -> tuple[Snapshot, Path] | None:
    """One lifetime of the newest checkpoint before an episode; None if there is none."""
    for step in reversed(store.steps(run / store.FOLDER)):
        try:
            manifest = store.read_manifest(step)
            about = manifest["configuration"]
            lane = lifetime - int(about["first_lifetime"])
            fits = about["seed"] == records.metadata["seed"]
            if not fits or manifest["episodes"] > episode or not 0 <= lane < about["lifetimes"]:
                continue
            every = jax.tree.map(
                lambda leaf, lanes=about["lifetimes"]: np.repeat(np.asarray(leaf)[:1], lanes, 0),
                (start.memory, start.outcome),
            )
            snapshot = store.load(step, manifest, Snapshot(0, *every))
        except (store.CheckpointError, KeyError, TypeError):
            continue
        memory, outcome = jax.tree.map(
            lambda leaf, lane=lane: leaf[lane : lane + 1], (snapshot.memory, snapshot.outcome)
        )
        return Snapshot(snapshot.rounds, memory, outcome), step
    return None


def taught(agent: Agent, memory: Any) -> Agent:
    """Return an agent whose lifetimes start with a memory.

    Args:
      agent: pure agent.
      memory: leaves (1, ...), of typed keys their data; None for the agent as it is.
    """
    if memory is None:
        return agent

    def init(key: jax.Array) -> Any:
        return jax.tree.map(_typed, agent.init(key), memory)

    return replace(agent, init=init, assign=lambda known, number: known)


def _typed(own: Any, leaf: Any) -> jax.Array:
    like, value = jnp.asarray(own), jnp.asarray(leaf)[0]
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(value, impl=jax.random.key_impl(like))
    return value
