"""One small experiment for everything that plays, so that one compiled step serves all tests."""

import pytest

from evaluation.sailon.experiment import generate
from evaluation.sailon.settings import ExperimentSettings


def settings(**values):
    """Levels 200 and 203: neither needs an optional part, so that programs are small."""
    defaults = {
        "novelty": (203,),
        "difficulty": ("hard",),
        "novelty_visibility": (0,),
        "trials": 2,
        "training_episodes": 2,
        "testing_episodes": 3,
        "pre_novel_episodes": 1,
        "testing_novelty_p2": 1.0,
        "normal_timeout_seconds": 60.0,
    }
    return ExperimentSettings(**{**defaults, **values})


@pytest.fixture(scope="session")
def draw():
    """Draw an experiment from values that differ from those of `settings`."""
    return lambda **values: generate(settings(**values))
