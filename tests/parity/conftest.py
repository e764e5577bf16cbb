"""The recordings of the original as arrays, one tick a row."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import Observation
from tests.oracles.recordings import Recording, observation_arrays, read_recording


@pytest.fixture(scope="session")
def recording(recorded_data: Callable[[str], Path]) -> Callable[..., Recording]:
    """Read a recorded file by name, with so many block slots, or skip the test."""
    return lambda name, slots=4: read_recording(recorded_data(f"oracle/{name}.npz"), slots)


@pytest.fixture(scope="session")
def observed() -> Callable[[Observation], dict[str, np.ndarray]]:
    """Turn an observation into arrays named as in the recordings."""
    return observation_arrays
