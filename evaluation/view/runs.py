"""Any episode of any run, by its coordinates."""

from pathlib import Path

import numpy as np

from evaluation import records as tables
from evaluation.checkpoints.configuration import versions
from evaluation.checkpoints.loading import player
from evaluation.records import Records
from evaluation.session import EpisodeResult, Session
from evaluation.view.recording import Recording
from evaluation.view.replays import player_before
from jaxsim.env_spec import GYMNAX
from jaxsim.render.viewer import Film

CLOSE = 1e-3
"""Difference of two sums of rewards that rounding explains: a single lane rounds differently."""


def of_run(run: Path, *, lifetime: int, episode: int, agent: str | None = None) -> Film:
    """Replay an episode of a run and film it.

    Agents with a memory first replay their lifetime up to the episode, from its start or from the
    nearest checkpoint of the run.

    Args:
      run: directory of a run, or its records file.
      lifetime: number of the lifetime.
      episode: number of the episode in it.
      agent: new name of an agent that has moved, as "FILE.py"; None for the agent of the records.

    Raises:
      ValueError: no records, no such episode, or an agent that is gone.
    """
    records = tables.read_run(run)
    first, last = records.first_lifetime, records.first_lifetime + records.num_lifetimes - 1
    if not first <= lifetime <= last:
        raise ValueError(f"lifetime is {lifetime}; {run} has {first} to {last}")
    total = records.schedule.num_episodes
    if not 0 <= episode < total:
        raise ValueError(f"episode is {episode}; a lifetime of {run} has 0 to {total - 1}")
    index = int(records.schedule.episode_blocks()[episode])
    block = records.schedule.blocks[index]
    if block.task.startswith(GYMNAX):
        raise ValueError(
            f"there is no picture of {block.task}; the run's report.html has its numbers"
        )
    name = agent or str(records.metadata.get("agent", ""))
    try:
        saved = player(name, 1, lifetime, records.schedule)
    except ValueError as error:
        raise ValueError(f"{error}; say who played {run} with --agent") from error

    seed = int(records.metadata["seed"])
    pure_player, origin = player_before(
        records.schedule,
        saved,
        seed=seed,
        lifetime=lifetime,
        episode=episode,
        width=int(records.metadata.get("width", 1)),
        run=run if run.is_dir() else run.parent,
    )
    session = Session(records.schedule, seed=seed, lifetime=lifetime)
    recording = Recording(session.episode(episode))
    recording.play(pure_player)
    facts = (
        f"lifetime {lifetime}, episode {episode}: {block.task}, {block.mode}ing in phase "
        f"{block.phase}; seed {seed}; replayed from {origin}"
    )
    level = int(records.novelty_levels[records.schedule.block_variants()[index]])
    note = _difference(records, lifetime - first, episode, recording.episode.result())
    return recording.film(name, facts, note, level)


def _difference(records: Records, lane: int, episode: int, result: EpisodeResult) -> str:
    """Warning that the replay differs from the records; "" if it does not."""
    length = int(records.columns["length"][lane, episode])
    reward = float(records.columns["reward"][lane, episode])
    if result.length == length and np.isclose(result.reward, reward, rtol=CLOSE, atol=CLOSE):
        return ""
    then, now = dict(records.metadata.get("versions", {})), versions()
    changed = [f"{name} {then[name]}" for name in then if name in now and then[name] != now[name]]
    cause = f" The run was of {', '.join(changed)}, which is not installed." if changed else ""
    return (
        f"This replay differs from the run: recorded were {length} steps and a reward of "
        f"{reward:.4g}, and here are {result.length} and {result.reward:.4g}.{cause}"
    )
