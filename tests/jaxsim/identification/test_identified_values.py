"""What is identified from given episodes is what it was: families, estimates and their errors.

Worlds differ in numbers of the physics, sensors in what they report of them, and actions in the
push that they stand for. A change that is meant is accepted by `JAXSIM_RENEW_SNAPSHOTS=1 pytest`
with this file.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.identification import ObservedEpisode, identify
from jaxsim.worlds.cartpole3d.levels import params_of
from tests.jaxsim.given_episodes import play_worlds
from tests.snapshots import kept

TICKS, EPISODES = 61, 3
USUAL = params_of(200, "easy", jnp.float32)
WORLDS = {
    "usual": USUAL,
    "heavy": replace(USUAL, cart_mass=2.5, pole_length=1.5),
    "aimed": params_of(203, "medium", jnp.float32),
    "bouncy": params_of(204, "hard", jnp.float32),
    "wide": params_of(104, "hard", jnp.float32),
}
POSITIONS, VELOCITIES = ("cart_position", "block_position"), ("cart_velocity", "block_velocity")


def noisy(names: tuple[str, ...], size: float, observation: Any) -> Any:
    """Readings of some sensors with noise; an empty block slot still reads zero."""
    draw = np.random.default_rng(7)

    def disturbed(leaf: np.ndarray) -> np.ndarray:
        noise = size * draw.standard_normal(leaf.shape)
        return np.where(leaf == 0, leaf, leaf + noise).astype(leaf.dtype)

    return _changed(names, disturbed, observation)


def rounded(names: tuple[str, ...], step: float, observation: Any) -> Any:
    """Readings of some sensors in multiples of a step."""

    def multiple(leaf: np.ndarray) -> np.ndarray:
        return (np.round(leaf / step) * step).astype(leaf.dtype)

    return _changed(names, multiple, observation)


def dropped(names: tuple[str, ...], observation: Any) -> Any:
    """Sensors that always read zero."""
    return _changed(names, np.zeros_like, observation)


def _changed(names: tuple[str, ...], change: Callable[..., Any], observation: Any) -> Any:
    values = {name: jax.tree.map(change, getattr(observation, name)) for name in names}
    return replace(observation, **values)


def late(ticks: int, observation: Any) -> Any:
    """What sensors read some ticks ago, and before the first report that report."""
    return jax.tree.map(lambda leaf: np.append([leaf[0]] * ticks, leaf)[: len(leaf)], observation)


def exact(observation: Any) -> Any:
    return observation


class Case(NamedTuple):
    """Episodes in a world, what sensors make of them, and the push of actions 0 to 4."""

    world: str
    sensors: Callable[[Any], Any] = exact
    pushes: tuple[int, ...] = (0, 1, 2, 3, 4)
    early: int = 0  # ticks by which an action comes before its push


CASES = {
    "aimed": Case("aimed"),
    "bouncy": Case("bouncy"),
    "late": Case("bouncy", partial(late, 2)),
    "wide blocks and noisy positions": Case("wide", partial(noisy, POSITIONS, 0.02)),
    "heavy and noisy velocities": Case("heavy", partial(noisy, VELOCITIES, 0.05)),
    "aimed and noisy angles": Case("aimed", partial(noisy, ("pole_quaternion",), 0.01)),
    "heavy and turned": Case("heavy", pushes=(0, 3, 4, 2, 1)),
    "rounded": Case("usual", partial(rounded, ("cart_velocity", "pole_velocity"), 0.05)),
    "dropped": Case("usual", partial(dropped, ("pole_velocity",))),
    "late pushes": Case("usual", early=2),
}
QUICK = ("aimed", "late", "wide blocks and noisy positions", "heavy and turned", "dropped")
"""Cases of `make test`. The remaining ones take longer and are in `make test-nightly`, as most of
their fits are in these."""
TICK = 1.5 / 96  # of the ticks that are fitted to: one may be explained or not by rounding
DEVIATION_RTOL = 0.02  # a fit may end a step earlier or later, by rounding
VALUE_RTOL, DEVIATIONS = 1e-3, 0.1
"""Of values: what `test_identify.py` calls exact, or a tenth of their own standard error."""


def marked(name):
    return pytest.param(name, marks=[pytest.mark.nightly] * (name not in QUICK))


@pytest.fixture(scope="module")
def reports(lanes32):
    """Episodes of `pd`, by the name of their world."""
    of_worlds = play_worlds(lanes32, [[params] * EPISODES for params in WORLDS.values()], TICKS)
    places = enumerate(WORLDS)
    return {name: jax.tree.map(lambda leaf, k=k: leaf[k], of_worlds) for k, name in places}


def episodes(case, reports):
    """Episodes of a case, up to their last tick."""
    for number in range(EPISODES):
        row = jax.tree.map(lambda leaf, n=number: leaf[n], reports[case.world])
        steps = int(row.real.sum()) - 1
        observed = jax.tree.map(lambda leaf, n=steps: leaf[: n + 1], row.observations)
        actions = np.array(case.pushes, np.int32)[row.actions[1 : steps + 1]]
        actions = np.roll(actions, -case.early)
        yield ObservedEpisode(case.sensors(observed), actions, steps < TICKS - 1)


@pytest.mark.parametrize("name", [marked(name) for name in CASES])
def test_what_is_identified_is_what_it_was(name, reports):
    result = identify(list(episodes(CASES[name], reports)))
    values = {path: [float(f"{x:.6g}") for x in one] for path, one in result.values.items()}
    families, share = list(result.families), round(result.unexplained, 6)
    text = {"families": families, "unexplained": share, "values": values}
    expected = json.loads(kept(f"identified {name}.json", json.dumps(text, indent=1) + "\n"))
    assert list(result.families) == expected["families"]
    assert result.unexplained == pytest.approx(expected["unexplained"], abs=TICK)
    assert result.values.keys() == expected["values"].keys()
    for parameter, (value, deviation) in expected["values"].items():
        estimate = result.values[parameter]
        assert estimate.value == pytest.approx(value, rel=VALUE_RTOL, abs=DEVIATIONS * deviation), (
            parameter
        )
        assert estimate.deviation == pytest.approx(deviation, rel=DEVIATION_RTOL), parameter
