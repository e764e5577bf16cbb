"""Any episode of any run, by its coordinates."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from evaluation import records as tables
from evaluation.checkpoints.configuration import versions
from evaluation.checkpoints.loading import player
from evaluation.records import Records
from evaluation.session import PurePlayer, Session
from evaluation.tasks import entries
from evaluation.view.recording import Recording
from evaluation.view.replays import memory_before, taught
from jaxsim import registry
from jaxsim.render.viewer import Film

CLOSE = 1e-3
"""Difference of two sums of rewards that rounding explains: a single lane rounds differently."""


def of_run(run: Path, *, lifetime: int, episode: int, agent: str | None = None) -> Film:
    """Play an episode of a run again and film it.

    Agents that remember or learn first live their lifetime again up to the episode, from its start
    or from the nearest checkpoint that the run has kept.

    Args:
      run: directory of a run, or its records file.
      lifetime: number of the lifetime.
      episode: number of the episode in it.
      agent: who plays, where it has moved, as "FILE.py"; None for the agent of the records.

    Raises:
      ValueError: no records, no such episode, or an agent that is gone.
    """
    held = tables.read_run(run)
    first, last = held.first_lifetime, held.first_lifetime + held.num_lifetimes - 1
    if not first <= lifetime <= last:
        raise ValueError(f"lifetime is {lifetime}; {run} has {first} to {last}")
    total = held.schedule.num_episodes
    if not 0 <= episode < total:
        raise ValueError(f"episode is {episode}; a lifetime of {run} has 0 to {total - 1}")
    task = held.schedule.blocks[int(held.schedule.episode_blocks()[episode])].task
    if task.startswith(registry.GYMNAX):
        raise ValueError(f"there is no picture of {task}; the run's report.html has its numbers")
    name = agent or str(held.metadata.get("agent", ""))
    try:
        known = player(name, 1, lifetime, held.schedule)
    except ValueError as error:
        raise ValueError(f"{error}; say who played {run} with --agent") from error

    index = int(held.schedule.episode_blocks()[episode])
    blocks = [block.count for block in held.schedule.blocks]
    start, width = sum(blocks[:index]), int(held.metadata.get("width", 1))
    # The first of those that were played side by side with it.
    group = start + (episode - start) // width * width
    folder = run if run.is_dir() else run.parent
    memory, origin = memory_before(held, folder, known, lifetime, group)

    seed = int(held.metadata["seed"])
    playing = PurePlayer(taught(known.agent, memory), seed=seed, lifetime=lifetime)
    if group == start:
        entry = entries(held.schedule)
        playing.enter(jax.tree.map(lambda leaf: leaf[index], entry))
    session = Session(held.schedule, seed=seed, lifetime=lifetime)
    recording = Recording(session.episode(episode))
    recording.play(playing)
    block = held.schedule.blocks[index]
    facts = (
        f"lifetime {lifetime}, episode {episode}: {block.task}, {block.mode}ing in phase "
        f"{block.phase}; seed {seed}; replayed from {origin}"
    )
    level = int(held.novelty_levels[held.schedule.block_variants()[index]])
    note = _difference(held, lifetime - first, episode, recording.episode.result())
    return recording.film(name, facts, note, level)


def _difference(held: Records, lane: int, episode: int, played: Any) -> str:
    """What was recorded, where the replay differs from it; "" where it does not."""
    length = int(held.columns["length"][lane, episode])
    reward = float(held.columns["reward"][lane, episode])
    if played.length == length and np.isclose(played.reward, reward, rtol=CLOSE, atol=CLOSE):
        return ""
    then, now = dict(held.metadata.get("versions", {})), versions()
    other = [f"{name} {then[name]}" for name in then if name in now and then[name] != now[name]]
    cause = f" The run was of {', '.join(other)}, which is not installed." if other else ""
    return (
        f"This replay differs from the run: recorded were {length} steps and a reward of "
        f"{reward:.4g}, and here are {played.length} and {played.reward:.4g}.{cause}"
    )
