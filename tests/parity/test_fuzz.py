"""Nothing that is not finite leaves a step unflagged, in any level; see docs/fuzz.md."""

import json
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import bounds, fuzz
from benchmarks.catalogue import CaseGroup, cases, groups
from jaxsim.wrappers import Wrapper
from tools import fuzz_page

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def case_groups():
    return groups()


def test_groups_hold_every_case_once(case_groups):
    names = [name for group in case_groups for name in group.params]
    assert sorted(names) == sorted(name for name, *_ in cases())
    assert len(names) == len(set(names))
    assert {"CartPole", "CartPole2D 53 hard", "CartPole3D 203 medium"} <= set(names)
    for level in jaxsim.levels():
        assert f"{level.task} {level.number} hard" in names


@pytest.mark.long
def test_two_thousand_random_episodes_and_made_up_states(case_groups):
    """The programs that play most levels; the others take longer to compile than to play."""
    by_name = {g.env.name: g for g in sorted(case_groups, key=lambda g: len(g.params))}
    hunts = list(fuzz.hunts(list(by_name.values()), 2000, seed=1))
    assert {leak for *_, hunt in hunts for leak in hunt.leaks} == set()
    random = [hunt for _, kind, hunt in hunts if kind == "random episodes"]
    assert sum(hunt.tries for hunt in random) == 2000
    assert sum(hunt.steps for hunt in random) > 20_000
    assert sum(hunt.flagged for hunt in random) == 0
    for kind in ("crowded states", "spoilt states"):
        assert sum(hunt.tries for _, k, hunt in hunts if k == kind) > 10_000
    # A number that is not finite cannot be mended: most of the spoilt states must be flagged.
    assert sum(hunt.flagged for _, k, hunt in hunts if k == "spoilt states") > 8_000


@pytest.mark.nightly
@pytest.mark.long
def test_a_hundred_thousand_random_episodes(tmp_path):
    out = tmp_path / "fuzz.json"
    words = ["--episodes", "100000", "--settings", "-1", "--seed", "0", "--out", str(out)]
    assert fuzz.main(words) == 0
    assert fuzz_page.islands_of(json.loads(out.read_text()))["leaks"] == "**0 leaks**"


@pytest.mark.parametrize("name", ["CartPole", "CartPole2D"])
def test_settings_at_bounds_in_two_dimensions(name):
    check_bounds(name, 200, least=200)


@pytest.mark.long
def test_settings_at_bounds_in_three_dimensions():
    check_bounds("CartPole3D", 2000, least=1200)  # the others need more than four slots


def test_every_world_plays_as_many_episodes_as_were_asked_for(monkeypatch):
    episodes_by_group = {}

    class Programs:
        def __init__(self, group):
            self.group = group

        def episodes(self, count, seed):
            episodes_by_group[self.group.name] = count, len(self.group.params)

    def group(env_id, number, **values):
        env, params = jaxsim.make(env_id, values)
        return CaseGroup(env, {str(index): params for index in range(number)})

    drawn = [
        group("CartPole3D-v0", 70, **{"blocks/count_max": 200}),
        group("CartPole3D-v0", 90),
        group("CartPole-v1", 205),
    ]
    monkeypatch.setattr(fuzz, "GroupPrograms", Programs)
    monkeypatch.setattr(bounds, "groups", lambda *words: drawn)
    list(fuzz.hunts_at_bounds(200, 2))
    many, few, flat = (each.name for each in drawn)
    assert episodes_by_group == {few: (193, 90), many: (7, 7), flat: (205, 205)}


def check_bounds(name, settings, least):
    """Every parameter at both bounds and random settings: no leak, and one program for all."""
    (group,) = (g for g in bounds.groups(settings, 1, 4) if g.env.name == name)
    player = fuzz.GroupPrograms(group)
    hunt = player.episodes(len(group.params), 0)
    assert hunt.leaks == ()
    assert hunt.tries >= least
    assert hunt.steps > 10 * hunt.tries
    assert player.programs == 1


def test_every_parameter_is_played_at_both_bounds():
    (spec,) = (jaxsim.spec(i) for i in jaxsim.registered_envs() if i.startswith("CartPole3D-"))
    settings = list(bounds.at_bounds(spec.parameters))
    for path, parameter in spec.parameters.items():
        parameter_values = {values[path] for values in settings if path in values}
        ends = set(parameter.choices) or {parameter.low, parameter.high}
        assert ends <= parameter_values, path


def test_random_settings_follow_from_their_seed():
    table = jaxsim.spec("CartPole3D-v0").parameters
    first, again, other = (bounds.drawn(table, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == again != other


def test_crowded_states_are_all_different():
    names, arrays = fuzz.crowds(3)
    assert len(names) == len(set(names)) == 12 * 2 * 2 * 3 * 2
    assert arrays["block_pos"].shape == (len(names), 3, 3)
    together = np.array(["all at one point" in name for name in names])
    spread = np.ptp(arrays["block_pos"], axis=1).max(axis=1)
    np.testing.assert_array_equal(spread, np.where(together, 0, 2))


# --- environments that leak -------------------------------------------------------------------


@dataclass(frozen=True)
class Leaks(Wrapper):
    """What is observed stops being finite after three steps, and nothing says so."""

    def step(self, key, state, action, params):
        observation, new, *rest = super().step(key, state, action, params)
        spoilt = jnp.where(new.step > 3, jnp.nan, observation.x)
        return replace(observation, x=spoilt), new, *rest


@dataclass(frozen=True)
class GoesOn(Wrapper):
    """Every episode is flagged at once, and does not end."""

    def step(self, key, state, action, params):
        *rest, info = super().step(key, state, action, params)
        return *rest, info | {"nonfinite": jnp.ones_like(info["nonfinite"])}


def cartpole(wrapper):
    env, params = jaxsim.make("CartPole-v1", {"start/spread": 0.0}, max_steps=20)
    return [CaseGroup(wrapper(env), {"CartPole": params})]


@pytest.mark.parametrize("wrapper", [Leaks, GoesOn])
def test_leaks_are_found_and_fail_the_command(wrapper, monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "groups", lambda: cartpole(wrapper))
    assert fuzz.main(["--episodes", "30", "--settings", "-1", "--seed", "3"]) == 1
    islands = fuzz_page.islands_of(json.loads(capsys.readouterr().out))
    assert any(row.startswith("| CartPole | random episodes | 30 |") for row in islands["hunts"])
    assert "* CartPole, episode 0" in list(islands["list"])
    assert islands["leaks"] != "**0 leaks**"


def test_a_hunt_is_repeated_by_its_seed():
    (group,) = cartpole(Wrapper)
    player = fuzz.GroupPrograms(group)
    few, many, other = (player.episodes(n, seed) for n, seed in ((300, 0), (600, 0), (300, 1)))
    assert few == player.episodes(300, 0)
    assert few.steps < many.steps
    assert few.steps != other.steps
