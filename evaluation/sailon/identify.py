"""What changed in the world of some transcripts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.report.terminal import console
from evaluation.sailon import transcript
from evaluation.sailon.text import ExperimentError
from jaxsim.identification import Identification, ObservedEpisode, identify
from jaxsim.worlds.cartpole3d.original.messages import parse_feature_vectors
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS, capacity
from jaxsim.worlds.cartpole3d.types import Config

MOST_FILES = 64


def of_transcripts(paths: Sequence[Path]) -> Identification:
    """Identify what changed in the world of transcripts, from their messages alone.

    Args:
      paths: one episode each, all in the same world.

    Raises:
      ExperimentError: a file is not a transcript, or a message is not a feature vector.
      ValueError: too many files.
    """
    if len(paths) > MOST_FILES:
        raise ValueError(f"{len(paths)} transcripts; name at most {MOST_FILES} of one world")
    return identify([_observed(path) for path in paths])


def _observed(path: Path) -> ObservedEpisode:
    vectors, actions = transcript.recorded(path)
    # The end of an episode has no message of its own.
    length = min(len(vectors) - 1, len(actions))
    if length < 1:
        raise ExperimentError(str(path), 1, 1, "the episode has no two observations")
    most = max(len(vector.get("blocks") or ()) for vector in vectors)
    config = Config(max_blocks=capacity(most))
    try:
        observations, _ = parse_feature_vectors(vectors[: length + 1], config)
    except ValueError as error:
        raise ExperimentError(str(path), 1, 1, f"observation {error}") from error
    return ObservedEpisode(observations, np.array(actions[:length], np.int32), to_its_end=False)


def to_json(result: Identification) -> JsonObject:
    """Plain JSON values; "novelty" is a value wherever a novelty may be given."""
    novelty = result.novelty
    return {
        "families": list(result.families),
        "words": [list(words) for words in result.words],
        "values": {
            path: {"value": one.value, "deviation": one.deviation}
            for path, one in sorted(result.values.items())
        },
        "unexplained": result.unexplained,
        "none_of_these": result.none_of_these,
        "novelty": None if novelty is None else novelty.to_json(),
    }


def show(result: Identification) -> None:
    """Print an identification as a table."""
    from rich.table import Table

    if result.none_of_these:
        print(f"No family explains these episodes: {result.unexplained:.0%} of the ticks differ.")
    elif not result.families:
        print("Nothing differs from level 200.")
    if not result.families:
        return
    words = zip(result.families, result.words, strict=True)
    print("; ".join(f"{name} ({', '.join(each)})" for name, each in words))
    table = Table("parameter", "value", "standard error", "nominal")
    for path, one in sorted(result.values.items()):
        row = PARAMETERS[path]
        unit = f" {row.unit}" if row.unit else ""
        table.add_row(path, f"{one.value:.6g}{unit}", f"{one.deviation:.2g}", f"{row.default:g}")
    console().print(table)
