"""Episodes of a level and a seed."""

from evaluation.agents import check_fit
from evaluation.checkpoints.loading import player
from evaluation.schedule import Block, Schedule
from evaluation.session import Session
from evaluation.view.recording import Recording
from evaluation.view.replays import player_before
from jaxsim import levels, parameters
from jaxsim.inputs import check_whole
from jaxsim.render.viewer import Film
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
from jaxsim.worlds.cartpole3d.original.hints import LEVELS_PER_GROUP


def of_level(
    level: int, difficulty: str = "easy", *, agent: str = "pd", seed: int = 0, episode: int = 0
) -> Film:
    """Play an episode of a level and film it.

    Two agents with the same seed and episode meet the same start. The episodes test the agent,
    which does not learn from them; one with a memory first replays the earlier episodes.

    Args:
      level: of the novelty catalogue.
      difficulty: easy, medium or hard.
      agent: by name, as "mpc" or "FILE.py", or "checkpoint:DIR".
      seed: root of all randomness.
      episode: number of the episode under that seed.

    Raises:
      ValueError: no such level, difficulty or agent, or a seed or an episode out of bounds.
    """
    tasks = {entry.number: entry.task for entry in levels()}
    if level not in tasks:
        listed = ", ".join(map(str, tasks))
        raise ValueError(f"level is {level}; it must be one of {listed}")
    if difficulty not in DIFFICULTIES:
        raise ValueError(parameters.unknown("difficulty", difficulty, DIFFICULTIES))
    check_whole("episode", episode, 0, 2**31 - 1)
    values = (("novelty/difficulty", difficulty), ("novelty/level", level))
    block = Block(0, 1, "test", tasks[level], values, episode + 1, False)
    schedule = Schedule("view", (block,))
    session = Session(schedule, seed=seed)
    saved = player(agent, 1)
    check_fit(saved.agent, agent, *session.tasks.variant(0))
    pure_player, origin = player_before(schedule, saved, seed=seed, lifetime=0, episode=episode)
    recording = Recording(session.episode(episode))
    recording.play(pure_player)
    facts = f"level {level} {difficulty}, seed {seed}, episode {episode}"
    if episode:
        facts += f"; replayed from {origin}"
    return recording.film(agent, facts, "", level % LEVELS_PER_GROUP)
