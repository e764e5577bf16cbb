"""An agent's memory before an episode of a run, from a replay of its lifetime."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import scanner
from evaluation.checkpoints import store
from evaluation.checkpoints.loading import SavedAgent
from evaluation.records import Records
from evaluation.scanner import Snapshot
from jaxsim.agents import Agent
from jaxsim.agents.base import Memory
from jaxsim.pytrees import Leaf

FROM_START = "the lifetime's start"


class _Reached(Exception):
    """The episode comes next."""


@dataclass
class _Until:
    """Ends a run of one lifetime before an episode, and keeps its snapshot.

    Attributes:
      episode: number of the first that is not played.
      find: returns the snapshot to resume from, given that of the start; None for the start.
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
        """Return the snapshot to resume from."""
        snapshot = self.find(start())
        if snapshot is not None and self._episodes(snapshot) == self.episode:
            self.snapshot = snapshot
            raise _Reached
        return snapshot

    @staticmethod
    def _episodes(snapshot: Snapshot) -> int:
        return int(jax.tree.leaves(snapshot.outcome)[0].shape[1])

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """End the run if the episode comes next."""
        if episodes >= self.episode:
            self.snapshot = take()
            raise _Reached


def memory_before(
    records: Records, run: Path, player: SavedAgent, lifetime: int, episode: int
) -> tuple[Memory, str]:
    """Return an agent's memory before an episode, and where the replay started.

    Args:
      records: of the run.
      run: its directory, whose checkpoints are used.
      player: the agent, with the memory that the lifetime starts with.
      lifetime: number of the lifetime.
      episode: number of the first episode that is not played.

    Returns:
      (memory, origin): leaves (1, ...) as in a snapshot, None for the agent's initial memory; and
      a text.
    """
    # An agent without a memory is the same in every episode.
    no_memory = not jax.tree.leaves(jax.eval_shape(player.agent.init, jax.random.key(0)))
    if episode == 0 or no_memory:
        return player.memory, FROM_START
    origin = [FROM_START]

    def find(start: Snapshot) -> Snapshot | None:
        match = _from_checkpoint(records, run, lifetime, episode, start)
        if match is None:
            return None
        snapshot, step = match
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
            all_lanes = jax.tree.map(
                lambda leaf, lanes=about["lifetimes"]: np.repeat(np.asarray(leaf)[:1], lanes, 0),
                (start.memory, start.outcome),
            )
            snapshot = store.load(step, manifest, Snapshot(0, *all_lanes))
        except (store.CheckpointError, KeyError, TypeError):
            continue
        memory, outcome = jax.tree.map(
            lambda leaf, lane=lane: leaf[lane : lane + 1], (snapshot.memory, snapshot.outcome)
        )
        return Snapshot(snapshot.rounds, memory, outcome), step
    return None


def with_memory(agent: Agent, memory: Memory) -> Agent:
    """Return an agent whose lifetimes start with a memory.

    Args:
      agent: pure agent.
      memory: leaves (1, ...), of typed keys their data; None for the agent as it is.
    """
    if memory is None:
        return agent

    def init(key: jax.Array) -> Memory:
        return jax.tree.map(_typed, agent.init(key), memory)

    return replace(agent, init=init, assign=lambda initial, number: initial)


def _typed(initial: Leaf, leaf: Leaf) -> jax.Array:
    like, value = jnp.asarray(initial), jnp.asarray(leaf)[0]
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(value, impl=jax.random.key_impl(like))
    return value
