"""Identification of novelties from episodes of `pd`."""

import json
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

from benchmarks.identification import alone, errors_of, recorded
from benchmarks.novelty_space import groups
from evaluation import cli
from evaluation.sailon import transcript
from jaxsim.identification import ObservedEpisode, episodes, identify, readings
from jaxsim.identification.kinematics import FROM_PLACES
from jaxsim.identification.ticks import reports_of
from jaxsim.novelty import Novelty
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.types import ACTIONS

EPISODES, SEED = 3, 4
NOVELTIES = {
    "gravity": Novelty.of(["gravity"], {"gravity": 12.5}),
    "wind": Novelty.of(["wind"], {"wind/speed": 9.0}),
    "delay": Novelty.of(["push_delay"], {"actions/delay": 2}),
    "radius": Novelty.of(["block_size"], {"blocks/radius": 0.7}),
    "spread": Novelty.of(["bounce_spread"], {"walls/bounce_spread": 0.1}),
    "speed": Novelty.of(["block_speed"], {"blocks/speed_max": 14.0, "blocks/speed_min": 8.4}),
    "number": Novelty.of(["block_number"], {"blocks/count_min": 1, "blocks/count_max": 1}),
    "start": Novelty.of(["start_push"], {"start/push": 8.0}),
    "step": Novelty.of(["step_angle"], {"sensors/step_angle": 0.01}),
    "two": Novelty.of(["cart_mass", "push_turn"], {"cart/mass": 2.5, "actions/turn": 30.0}),
    "hidden": Novelty.of(
        ["noise_rate", "pole_length"], {"sensors/noise_rate": 0.05, "pole/length": 1.5}
    ),
    "three": Novelty.of(
        ["cart_mass", "gravity", "pull_cart"],
        {"cart/mass": 3.0, "gravity": 15.0, "blocks/pull_cart": 5.0},
    ),
    "dropped velocity": Novelty.of(
        ["sensor_dropped", "wind"], {"sensors/gain_velocity": 0.0, "wind/speed": 9.0}
    ),
    "dropped angle": Novelty.of(
        ["block_size", "sensor_dropped"], {"blocks/radius": 0.3, "sensors/gain_angle": 0.0}
    ),
    "sensors": Novelty.of(
        ["noise_position", "offset_angle"],
        {"sensors/noise_position": 0.05, "sensors/offset_angle": 0.02},
    ),
}
SLACK = {"bounce_spread": 0.5, "block_speed": 0.05, "start_push": 0.4, "noise": 0.05}
"""Relative errors of parameters that only bound what is drawn, or of which there are few draws."""
EXACT = 1e-3
NOMINAL = "nominal"
SIMPLE = ("gravity", "number")
"""Worlds without optional parts, which compile in no time."""


def record(names):
    """Episodes in some worlds, and in the nominal one."""
    novelties = [NOVELTIES[name] for name in names]
    (group,) = groups([*novelties, novelties[0]])
    rows = [*range(len(names) + 1), 0]
    params = jax.tree.map(lambda leaf: leaf[rows], group.params)
    records = list(recorded(replace(group, params=params), EPISODES, SEED))
    named = dict(zip((*names, NOMINAL), records, strict=True))
    assert [name for name, row in named.items() if not row.differs] == [NOMINAL]
    return {name: row.episodes for name, row in named.items()}


@pytest.fixture(scope="module")
def simple():
    return record(SIMPLE)


@pytest.fixture(scope="module")
def worlds():
    return record(NOVELTIES)


@pytest.fixture(scope="module")
def identified(worlds):
    """What is identified in a world, by its name."""
    return cache(lambda name: identify(worlds[name]))


@pytest.mark.slow
def test_nothing_is_named_in_the_nominal_world(simple):
    result = identify(simple[NOMINAL])
    assert result.families == ()
    assert result.values == {}
    assert result.unexplained == 0
    assert result.novelty is None
    assert not result.none_of_these


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NOVELTIES if name not in ("gravity", "three")])
def test_families_and_values_are_those_of_the_world(identified, name):
    novelty = NOVELTIES[name]
    result = identified(name)
    assert result.families == novelty.families
    assert result.words == novelty.words
    assert not result.none_of_these
    assert result.novelty is not None
    assert result.novelty.families == novelty.families
    for family, error in errors_of(novelty, result).items():
        assert error < SLACK.get(family, SLACK.get(family.split("_")[0], EXACT)), family


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "path", "value"), [("speed", "blocks/speed_max", 14.0), ("start", "start/push", 8.0)]
)
def test_deviations_of_draws_cover_the_errors(identified, name, path, value):
    estimate = identified(name).values[path]
    assert abs(estimate.value - value) < 4 * estimate.deviation
    assert estimate.deviation < 0.3 * value


@pytest.mark.long
def test_many_episodes_of_which_few_show_anything(worlds, identified):
    whole = worlds["spread"]
    first = [
        ObservedEpisode(
            jax.tree.map(lambda leaf, n=n: leaf[: n + 1], one.observations), one.actions[:n], False
        )
        for one in whole
        for n in range(2, 32)
    ]
    result = identify([*first, *whole])
    assert result.families == ("bounce_spread",)
    draws = identified("spread").values["walls/bounce_spread"].value * EPISODES / (EPISODES + 1)
    assert result.values["walls/bounce_spread"].value == pytest.approx(draws, rel=0.05)


@pytest.mark.long
def test_three_changes_of_a_tick_are_none_of_these(identified):
    result = identified("three")
    assert result.none_of_these
    assert set(result.families) < set(NOVELTIES["three"].families)


@pytest.mark.slow
def test_one_episode_suffices_for_a_change_of_every_tick(simple):
    result = identify(simple["gravity"][:1])
    assert result.families == ("gravity",)
    assert np.isclose(result.values["gravity"].value, 12.5, rtol=EXACT)
    assert result.words == NOVELTIES["gravity"].words
    assert result.novelty.families == ("gravity",)
    assert not result.none_of_these


def without(episode, *kinds):
    """The episode with readings of some kinds that are all zero."""
    fields = {
        "position": ("cart_position", "block_position"),
        "velocity": ("cart_velocity", "block_velocity"),
        "rate": ("pole_velocity",),
    }
    o = episode.observations
    names = [name for kind in kinds for name in fields.get(kind, ())]
    zeros = {name: jax.tree.map(np.zeros_like, getattr(o, name)) for name in names}
    if "angle" in kinds:
        none = np.zeros_like(o.pole_quaternion[0])
        zeros["pole_quaternion"] = (none, none, none, none + 1)
    return episode._replace(observations=replace(o, **zeros))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        (("velocity",), ("gravity",)),
        (("rate",), ("gravity",)),
        (("angle",), ()),  # gravity shows in the pole's motion
        (("position", "velocity"), ()),
    ],
)
def test_what_a_dropped_sensor_does_not_hide_is_named(simple, kinds, named):
    result = identify([without(episode, *kinds) for episode in simple["gravity"]])
    assert result.families == (*named, "sensor_dropped")
    assert {f"sensors/gain_{kind}" for kind in kinds} <= result.values.keys()
    assert not result.none_of_these
    if named:
        assert np.isclose(result.values["gravity"].value, 12.5, rtol=EXACT)


def test_a_first_push_is_not_named_where_a_wind_could_be_it(simple):
    """Without places no tick is fitted, and a wind moves the cart as well."""

    def pushed(episode):
        v = episode.observations.cart_velocity
        faster = v._replace(x=np.asarray(v.x) + 0.3 * (np.arange(len(v.x)) == 0))
        return episode._replace(observations=replace(episode.observations, cart_velocity=faster))

    result = identify([without(pushed(episode), "position") for episode in simple[NOMINAL]])
    assert result.families == ("sensor_dropped",)


@pytest.mark.slow
def test_how_a_new_block_moves_is_not_told_without_velocities(simple):
    """The first block appears in the course of the episodes."""

    def supplied(episode):
        first, *rest = episode.observations.block_alive
        late = np.asarray(first) & (np.arange(len(first)) >= 31)
        alive = (late, *rest)
        return episode._replace(observations=replace(episode.observations, block_alive=alive))

    shown = [supplied(episode) for episode in simple[NOMINAL]]
    new = {"block_flood", "block_supply"}
    assert new & {*identify(shown).families}
    names = {*identify([without(episode, "velocity") for episode in shown]).families}
    assert "sensor_dropped" in names and not new & names


def test_a_first_speed_that_follows_from_places_is_a_tick_later(simple):
    """Unusual forces have changed it for one tick longer."""
    reports = tuple(reports_of(one) for one in simple["gravity"])
    record = episodes._Record(reports, tuple(np.asarray(o.actions) for o in simple["gravity"]))
    ticks = record.ticks
    data = episodes.Data(ticks, readings.error_scale(ticks, np.zeros(4)), {"drag": 0.5})
    slack = [
        episodes._Fitted(record, np.array([0.0, size, 0.0, 0.0]), None, 0.0, data).slack
        for size in (0.0, FROM_PLACES)
    ]
    assert slack[1] / slack[0] == pytest.approx((episodes.SLACK + 1) / episodes.SLACK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["velocity", "position"])
def test_a_dropped_sensor_alone_is_all_that_is_named(simple, kind):
    result = identify([without(episode, kind) for episode in simple[NOMINAL]])
    assert result.families == ("sensor_dropped",)
    assert result.values[f"sensors/gain_{kind}"].value == 0
    assert result.unexplained == 0


@pytest.mark.long
def test_transcripts_say_as_much_as_observations(worlds, tmp_path, capsys):
    paths = [tmp_path / f"{number}.jsonl" for number in range(EPISODES)]
    for path, episode in zip(paths, worlds["two"], strict=True):
        write_transcript(path, episode)
    out = tmp_path / "novelty.json"
    assert cli.main(["sailon", "identify", *map(str, paths), "--out", str(out)]) == 0
    values = json.loads(out.read_text())
    novelty = Novelty.from_json(values["novelty"])
    assert novelty.families == NOVELTIES["two"].families
    for (path, value), (other, expected) in zip(
        novelty.parameters, NOVELTIES["two"].parameters, strict=True
    ):
        assert path == other
        assert np.isclose(value, expected, rtol=EXACT)
    shown = capsys.readouterr().out
    assert "cart_mass (cart, mass, increase); push_turn (push, direction, left)" in shown
    assert "2.5 kg" in shown


def write_transcript(path, episode):
    """Write an episode as the messages of an interactive experiment."""
    plan = {"index": 0, "seed": 0, "novel": True, "told": None, "hint_level": -1}
    plan |= {"level": 200, "difficulty": "easy"}
    header = {"format": transcript.FORMAT, "mode": "test", "seed": 0, "lifetime": 1}
    header |= {"starts": "counter", "flat": False, "plan": plan, "played": [[200, "easy"]]}
    lines = [{"episode": header}]
    for tick, action in enumerate(episode.actions):
        observation = jax.tree.map(lambda leaf, tick=tick: leaf[tick], episode.observations)
        vector = messages.feature_vector(observation, first=tick == 0, time_stamp=0.0)
        lines += [vector, {"action": ACTIONS[int(action)]}, {"performance": 0.0}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("number", [0, 1])
def test_episodes_are_needed(simple, number):
    whole = simple["gravity"][0]
    first = jax.tree.map(lambda leaf: leaf[:1], whole.observations)
    start = ObservedEpisode(first, whole.actions[:0])
    with pytest.raises(ValueError, match="one episode or more, each with an action"):
        identify([start] * number)


def test_observations_and_actions_must_fit(simple):
    whole = simple["gravity"][0]
    with pytest.raises(ValueError, match="needs one observation more than actions"):
        identify([ObservedEpisode(whole.observations, whole.actions[:-1])])


def test_a_single_episode_stands_in_a_list(simple):
    with pytest.raises(ValueError, match="must be a list of ObservedEpisode, also for one"):
        identify(simple["gravity"][0])


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_observations_must_be_finite(simple, number):
    whole = simple["gravity"][0]
    speed = whole.observations.cart_velocity._replace(y=np.full(len(whole.actions) + 1, number))
    odd = whole._replace(observations=replace(whole.observations, cart_velocity=speed))
    with pytest.raises(ValueError, match="episode 1 has a number that is not finite"):
        identify([whole, odd])


@pytest.mark.parametrize("action", [9, -1, 0.5])
def test_actions_must_be_those_of_the_world(simple, action):
    whole = simple["gravity"][0]
    with pytest.raises(ValueError, match=r"action .*it must be an integer from 0 to 4 \(nothing"):
        identify([whole._replace(actions=np.full(len(whole.actions), action))])


def test_a_composition_is_taken_apart():
    assert alone(NOVELTIES["two"]) == {
        "cart_mass": Novelty.of(["cart_mass"], {"cart/mass": 2.5}),
        "push_turn": Novelty.of(["push_turn"], {"actions/turn": 30.0}),
    }
