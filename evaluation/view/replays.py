"""An agent as it is before an episode, from a replay of its lifetime."""

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
from evaluation.scanner import Snapshot
from evaluation.schedule import Schedule
from evaluation.session import PurePlayer
from evaluation.tasks import entries
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
      seed: root of all randomness.
      lifetime: number of the lifetime.
      episode: number of the first that is not played.
      run: directory whose checkpoints are used; None for none.
      origin: where the run started, as a text.
      snapshot: of the lifetime, when the episode is reached.
    """

    seed: int
    lifetime: int
    episode: int
    run: Path | None
    origin: str = FROM_START
    snapshot: Snapshot | None = None

    @property
    def ends(self) -> Collection[int]:
        """Numbers of episodes after which the run returns to the host."""
        return (self.episode,)

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return the snapshot to resume from, None for the start."""
        match = self.run and _from_checkpoint(
            self.run, self.seed, self.lifetime, self.episode, start()
        )
        if not match:
            return None
        snapshot, step = match
        self.origin = f"the checkpoint {step}"
        if self._episodes(snapshot) == self.episode:
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


def player_before(
    schedule: Schedule,
    saved: SavedAgent,
    *,
    seed: int,
    lifetime: int,
    episode: int,
    width: int = 1,
    run: Path | None = None,
) -> tuple[PurePlayer, str]:
    """Return a player with the memory that an agent has before an episode.

    Args:
      schedule: of the lifetime.
      saved: the agent, with the memory that the lifetime starts with.
      seed: root of all randomness.
      lifetime: number of the lifetime.
      episode: number of the episode in it.
      width: number of episodes that the lifetime plays in parallel.
      run: directory whose checkpoints are used; None for a replay from the start.

    Returns:
      (player, origin): the player, which has entered the episode's block, and where the replay
      started, as a text.
    """
    index = int(schedule.episode_blocks()[episode])
    start = sum(block.count for block in schedule.blocks[:index])
    # The first of the episodes that are played in parallel with it.
    group = start + (episode - start) // width * width
    memory, origin = saved.memory, FROM_START
    # An agent without a memory is the same in every episode.
    if group and jax.tree.leaves(jax.eval_shape(saved.agent.init, jax.random.key(0))):
        until = _Until(seed, lifetime, group, run)
        with contextlib.suppress(_Reached):
            scanner.play(
                schedule,
                saved.agent,
                lifetimes=1,
                first_lifetime=lifetime,
                seed=seed,
                width=width,
                memory=memory,
                keeper=until,
            )
        assert until.snapshot is not None, "the run was to end before its last episode"
        memory, origin = until.snapshot.memory, until.origin
    player = PurePlayer(with_memory(saved.agent, memory), seed=seed, lifetime=lifetime)
    if group == start:
        player.enter(jax.tree.map(lambda leaf: leaf[index], entries(schedule)))
    return player, origin


def _from_checkpoint(
    run: Path, seed: int, lifetime: int, episode: int, start: Snapshot
) -> tuple[Snapshot, Path] | None:
    """One lifetime of the newest checkpoint before an episode; None if there is none."""
    for step in reversed(store.steps(run / store.FOLDER)):
        try:
            manifest = store.read_manifest(step)
            about = manifest["configuration"]
            lane = lifetime - int(about["first_lifetime"])
            fits = about["seed"] == seed
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
