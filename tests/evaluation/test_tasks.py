"""Which environments a schedule needs, and that of several only one is computed."""

import json
from dataclasses import replace

import jax
import pytest
from jax.extend.core import ClosedJaxpr

from evaluation import l2m, scanner
from evaluation.l2m import episodes
from evaluation.tasks import Tasks, entries
from jaxsim import spaces
from jaxsim.agents import reference
from jaxsim.embedding import Embedded
from jaxsim.worlds.cartpole3d import CartPole3D
from tests.evaluation import toy
from tests.evaluation.toy import repeat


def tasks_of(*items):
    return Tasks.of(l2m.Syllabus("s").train(*items).schedule())


def shape(env, params):
    """What an agent sees of an environment."""
    keys = jax.random.split(jax.random.key(0), 2)
    return jax.eval_shape(lambda k: env.observe(env.start(k, params)), keys)


@pytest.fixture(scope="module")
def three():
    return tasks_of(
        episodes("CartPole3D", 1),
        episodes("CartPole2D", 1, {"novelty/level": 53}),
        episodes("CartPole", 1, {"tau": 0.01}),
        episodes("CartPole3D", 1, {"novelty/level": 204}),
        episodes("CartPole2D", 1),
        episodes("CartPole", 1),
    )


def test_one_environment_a_world(three):
    assert [world.env.name for world in three.worlds] == ["CartPole3D", "CartPole2D", "CartPole"]
    assert three.world.tolist() == [0, 1, 2, 0, 1, 2]
    assert three.row.tolist() == [0, 0, 0, 1, 1, 1]
    assert three.novelty_levels.tolist() == [0, 3, 0, 4, 0, 0]
    assert three.dt.tolist() == pytest.approx([0.02, 0.02, 0.01, 0.02, 0.02, 0.02])
    for world in three.worlds:
        assert {leaf.shape for leaf in jax.tree.leaves(world.params)} == {(2,)}


def test_a_schedule_that_was_checked_is_not_built_again():
    schedule = l2m.Syllabus("s").train(episodes("CartPole", 1)).schedule()
    first = Tasks.of(schedule)
    assert Tasks.of(schedule) is first
    # An equal schedule is built: 2 and 2.0 are equal, and not accepted alike.
    assert Tasks.of(replace(schedule)) is not first


def test_all_worlds_have_one_observation_and_action_space(three):
    shapes = [shape(*three.variant(index)) for index in range(6)]
    assert all(other == shapes[0] for other in shapes)
    actions = {spaces.action_space(world.env) for world in three.worlds}
    assert actions == {spaces.Discrete(5)}
    boxes = {
        spaces.observation_space(env, params).shape for env, params in map(three.variant, range(3))
    }
    assert boxes == {(39,)}


def test_a_variant_is_what_was_asked_for(three):
    env, params = three.variant(2)
    assert isinstance(env, Embedded) and float(params.tau) == pytest.approx(0.01)
    assert float(three.variant(5)[1].tau) == pytest.approx(0.02)
    env, params = three.variant(3)
    assert isinstance(env, CartPole3D) and float(params.novelty_level) == 204


def test_a_world_of_two_dimensions_alone_looks_the_same(three):
    alone = tasks_of(episodes("CartPole", 1))
    assert shape(*alone.variant(0)) == shape(*three.variant(0))


def test_many_blocks_give_every_world_their_slots():
    tasks = tasks_of(
        episodes("CartPole", 1),
        episodes("CartPole3D", 1, {"blocks/count_max": 6}),
        episodes("CartPole2D", 1),
    )
    slots = {w.env.slots for w in tasks.worlds if isinstance(w.env, Embedded)}
    assert slots == {tasks.worlds[1].env.config.max_blocks} == {8}
    shapes = [shape(*tasks.variant(index)) for index in range(3)]
    assert shapes[0] == shapes[1] == shapes[2]


def test_worlds_that_no_agent_can_play_both():
    with toy.registered(), pytest.raises(ValueError, match="'Toy' has other observations or act"):
        tasks_of(episodes("CartPole2D", 1), episodes("Toy", 1))


# What is computed ---------------------------------------------------------------------------------


def depths(jaxpr, primitive, depth=0):
    """For each equation of a primitive, in how many conditionals it stands."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == primitive:
            yield depth
        inside = depth + (equation.primitive.name == "cond")
        for leaf in jax.tree.leaves(tuple(equation.params.values())):
            if isinstance(leaf, ClosedJaxpr):
                yield from depths(leaf.jaxpr, primitive, inside)


def test_an_episode_computes_its_own_world_only():
    """The ticks of each world stand in the program once, where one asks for lanes in that world."""
    with toy.registered():
        rules = [repeat(1, rules=rules) for rules in ("plain", "other", "third")]
        schedule = toy.schedule(("1.train", rules))
        run = scanner._ScannerRun(schedule, reference.nothing, range(64), seed=0, width=1)
    crew, (stretch,) = run.crew(scanner.MachineOptions(threads=1)), run.stretches(4, 0, ())
    program = jax.make_jaxpr(crew.program(4))(crew.batch(stretch.rounds, 0))
    distances = depths(program.jaxpr, "abs")  # taken in the toy's step only
    # One conditional asks whether a chunk plays at all.
    assert list(distances) == [2, 2, 2]


def test_a_schedule_of_three_worlds_survives_its_text():
    syllabus = l2m.transfer("s", ["CartPole3D", "CartPole2D", "CartPole"], train=2, test=1)
    written = json.loads(syllabus.dumps())
    assert len(l2m.loads(json.dumps(written)).variants) == 3


def test_the_hash_of_a_task_is_the_same_in_all_schedules():
    """And another one for other parameters, or the same ones of another task."""
    lengths = [{"pole/length": length} for length in (1.5, 2.0)]
    first = l2m.Syllabus("s").train(episodes("CartPole3D", 1, values) for values in lengths)
    second = l2m.Syllabus("t").train(
        episodes("CartPole", 1, {"pole/length": 1.5}),
        episodes("CartPole3D", 1),
        *(episodes("CartPole3D", 1, values) for values in reversed(lengths)),
    )
    one, two = (entries(syllabus.schedule()).identity.tolist() for syllabus in (first, second))
    assert two[2:] == one[::-1]
    assert len(set(two)) == 4
    assert min(two) >= 0
