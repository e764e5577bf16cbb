"""Films of episodes of SAIL-ON transcripts, by path or by trial and episode."""

from pathlib import Path

from evaluation.json_types import JsonMapping
from evaluation.sailon import transcript
from evaluation.sailon.transcript import Coordinates
from evaluation.session import Episode, Prediction
from evaluation.view.recording import Recording
from jaxsim.render.viewer import Film
from jaxsim.worlds.cartpole3d.original.hints import LEVELS_PER_GROUP

HIGHEST_PREDICTION = 10
"""The highest prediction of phase 1."""


class _Watch:
    """Films an episode while `transcript.replay` plays it."""

    def __init__(self) -> None:
        self.where: Coordinates | None = None
        self.recording: Recording | None = None
        self.messages: list[JsonMapping] = []

    def begin(self, where: Coordinates, episode: Episode) -> None:
        self.where, self.recording = where, Recording(episode)

    def step(self, action: int) -> None:
        assert self.recording
        self.recording.step(action)

    def hear(self, message: JsonMapping) -> None:
        self.messages.append(message)

    def prediction(self) -> Prediction | None:
        """The agent's last report."""
        for message in reversed(self.messages):
            if "novelty_probability" in message:
                level, chance = int(message["novelty"]), float(message["novelty_probability"])
                return Prediction(level, chance, float(message["novelty_threshold"])).checked()
            if "novelty_prediction" in message:
                level = int(message["novelty_prediction"])
                return Prediction(level, float(level > 0), 0.5)
        return None


def of_transcript(path: Path) -> Film:
    """Replay the episode of a transcript and film it.

    Raises:
      ValueError: it is not a transcript; the message says where.
    """
    watch = _Watch()
    replay = transcript.replay(path, watch)
    assert watch.where and watch.recording
    prediction = watch.prediction()
    if prediction is not None:
        watch.recording.predict(prediction)
    note = ""
    if replay.differences:
        note = f"This replay differs from the transcript: line {replay.differences[0]}"
    plan = watch.where.plan
    facts = f"episode {plan.index}, level {plan.level} {plan.difficulty}, seed {plan.seed}"
    return watch.recording.film(path.name, facts, note, plan.level % LEVELS_PER_GROUP)


def of_trial(folder: Path, *, trial: int, episode: int) -> Film:
    """Film an episode of a trial whose messages were kept.

    Args:
      folder: the results, or their folder "transcripts".
      trial: number of the trial.
      episode: number of the episode in it.

    Raises:
      ValueError: there is no such transcript; the message says which there are.
    """
    home = folder / "transcripts" if (folder / "transcripts").is_dir() else folder
    path = home / f"trial-{trial:05}" / f"episode-{episode:05}.jsonl"
    if path.is_file():
        return of_transcript(path)
    trials = sorted(int(p.name[6:]) for p in home.glob("trial-[0-9]*") if p.name[6:].isdigit())
    if not trials:
        raise ValueError(
            f"{folder} has no transcripts; `jaxsim sailon run --transcripts` writes them"
        )
    if trial not in trials:
        raise ValueError(f"trial is {trial}; {home} has {trials[0]} to {trials[-1]}")
    files = sorted(path.parent.glob("episode-*.jsonl"))
    numbers = [p.stem.removeprefix("episode-").lstrip("0") or "0" for p in files]
    span = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
    raise ValueError(f"episode is {episode}; trial {trial} of {home} has {span}")
