"""cartpole.json is what its generator writes."""

import json

import numpy as np
import pytest

from evaluation import cli
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES
from jaxsim.worlds.cartpole3d.original.messages import domain_specification
from tools import domain

FILE = "jaxsim/worlds/cartpole3d/original/cartpole.json"
AGAIN = f"write it anew: python -m tools.domain --out {FILE}"
NOMINAL = 200


def ends(ranges):
    """Ends of ranges, (sensors, 2)."""
    return np.array([pair for of in ranges.values() for pair in of.values()])


def test_what_ships_is_what_is_generated_of_its_own_ranges(monkeypatch):
    """Everything but the ranges, which are those of the file."""
    shipped = domain_specification()
    levels = shipped["observed"]["levels"]
    assert set(levels) == set(map(str, CATALOGUE)), AGAIN

    def ranges(level):
        for difficulty, of in levels[str(level.number)]["difficulties"].items():
            yield (
                difficulty,
                {
                    part: {name: tuple(pair) for name, pair in sensors.items()}
                    for part, sensors in of.items()
                },
            )

    monkeypatch.setattr(domain, "_by_difficulty", ranges)
    assert json.loads(domain.dumps(domain.domain())) == shipped, AGAIN


@pytest.mark.slow
@pytest.mark.long
def test_what_ships_is_what_is_generated():
    shipped = domain_specification()
    again = json.loads(domain.dumps(domain.domain([CATALOGUE[NOMINAL]])))
    for specification in (shipped, again):
        for of in specification["feature_vector"]["sensors"].values():
            for sensor in of.values():
                del sensor["observed"]
    observed, observed_again = shipped.pop("observed"), again.pop("observed")
    assert shipped == again, AGAIN
    assert set(observed["levels"]) == set(map(str, CATALOGUE)), AGAIN
    for number, level in CATALOGUE.items():
        assert observed["levels"][str(number)]["change"] == level.change, AGAIN
    nominal, regenerated = (
        s.pop("levels")[str(NOMINAL)]["difficulties"] for s in (observed, observed_again)
    )
    assert observed == observed_again, AGAIN
    for difficulty in DIFFICULTIES:
        old, new = ends(nominal[difficulty]), ends(regenerated[difficulty])
        # Hits are chaotic: processors that round differently see other extremes of velocities.
        wide = np.maximum(old[:, 1] - old[:, 0], new[:, 1] - new[:, 0])
        assert np.all(np.abs(old - new) <= 0.5 * wide[:, None]), AGAIN


def test_the_ranges_of_the_domain_hold_those_of_its_levels():
    shipped = domain_specification()
    overall = {
        part: {name: sensor["observed"] for name, sensor in of.items()}
        for part, of in shipped["feature_vector"]["sensors"].items()
    }
    levels = shipped["observed"]["levels"].values()
    rows = np.array([ends(r) for level in levels for r in level["difficulties"].values()])
    np.testing.assert_array_equal(ends(overall)[:, 0], rows[..., 0].min(axis=0))
    np.testing.assert_array_equal(ends(overall)[:, 1], rows[..., 1].max(axis=0))
    assert np.all(np.isfinite(rows))


@pytest.mark.parametrize(
    ("number", "way", "expected"),
    [
        (3.1234, 1, 3.13),
        (3.1234, -1, 3.12),
        (-3.1234, 1, -3.12),
        (-3.1234, -1, -3.13),
        (0.0, 1, 0.0),
        (0.00012345, 1, 0.000124),
        (99.99, 1, 100.0),
    ],
)
def test_ranges_are_rounded_outwards(number, way, expected):
    assert domain.outward(number, way) == expected


def test_the_command_prints_it(capsys):
    assert cli.main(["sailon", "domain"]) == 0
    assert json.loads(capsys.readouterr().out) == domain_specification()


def test_no_range_leaves_its_bounds():
    shipped = domain_specification()
    for of in shipped["feature_vector"]["sensors"].values():
        for sensor in of.values():
            low, high = sensor["bounds"] or (-np.inf, np.inf)
            assert low <= sensor["observed"][0] <= sensor["observed"][1] <= high
