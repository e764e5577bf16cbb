"""What agents conclude from given episodes is what it was: all of their memories, number by number.

Detectors and the planner's estimate of the physics read episodes of `pd` in the nominal world and
in novel ones, with exact and with noisy sensors. A change that is meant is accepted by
`JAXSIM_RENEW_SNAPSHOTS=1 pytest` with this file.
"""

import json
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import derived, mpc, repair, residual, wow
from jaxsim.agents.base import NoveltyHint
from jaxsim.agents.detection import Detector, Transition
from jaxsim.agents.sight import see
from jaxsim.worlds.cartpole3d.levels import params_of
from tests.jaxsim.given_episodes import play_worlds
from tests.snapshots import kept

WORLDS = (
    *((200, "easy"), (200, "medium"), (200, "hard")),
    *((101, "hard"), (102, "medium"), (103, "hard"), (104, "hard"), (106, "easy")),
    *((201, "hard"), (203, "medium"), (204, "hard"), (205, "hard"), (206, "hard"), (207, "medium")),
)
NOISY = ((200, "easy"), (101, "hard"), (104, "hard"), (207, "medium"))
DROPPED = ((200, "easy"), (204, "hard"))
NOMINAL, EPISODES = 3, 6  # episodes of level 200, which each lifetime begins with; of a lifetime
TICKS = 61  # reports of an episode, with its first; in more, pushes hang on rounding
NOISE = 0.003  # m, m/s, rad/s and of quaternions
RTOL, ATOL = 1e-3, 1e-3
"""Of sums over hundreds of ticks in float32; other vectors, and full optimisation, stay below."""
ROUNDING = 0.2  # strength up to which evidence is the rounding of reports; 1 is a detection
LARGEST_SHOWN = 6  # leaves up to this size are shown in full, larger ones by mean and extremes


@pytest.fixture(scope="module")
def reports(lanes32):
    """A lifetime for each world, and some of them again with sensors that err or say nothing."""
    usual = params_of(*WORLDS[0], jnp.float32)
    novel = [params_of(*world, jnp.float32) for world in WORLDS]
    worlds = [[usual] * NOMINAL + [params] * (EPISODES - NOMINAL) for params in novel]
    exact = play_worlds(lanes32, worlds, TICKS)
    draw = np.random.default_rng(5)

    def disturbed(leaf):
        if leaf.dtype != np.float32:
            return leaf
        return leaf + (NOISE * draw.standard_normal(leaf.shape)).astype(np.float32)

    def of(worlds):
        places = [WORLDS.index(world) for world in worlds]
        return jax.tree.map(lambda leaf: leaf[places], exact)

    def without(field):
        reports = of(DROPPED)
        zeros = jax.tree.map(np.zeros_like, getattr(reports.observations, field))
        return reports._replace(observations=replace(reports.observations, **{field: zeros}))

    more = jax.tree.map(disturbed, of(NOISY)), *map(without, ("cart_velocity", "pole_velocity"))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), exact, *more)


def memories(reports, init, begin, watch):
    """Memories after all episodes of each world, leaves (W, ...).

    Args:
      reports: of the worlds.
      init: memory of a new lifetime.
      begin: (memory, number of the episode) -> memory.
      watch: (memory, transition, observation) -> memory.
    """

    def episode(memory, row):
        number, observations, actions, real = row

        def tick(carry, row):
            memory, before = carry
            observation, action, counts, number = row
            report = see(observation)
            after = watch(memory, Transition(before, action, report, number == 0), observation)
            return (jax.tree.map(partial(jnp.where, counts), after, memory), report), None

        first = see(jax.tree.map(lambda leaf: leaf[0], observations))
        rows = observations, actions, real, jnp.arange(TICKS)
        return jax.lax.scan(tick, (begin(memory, number), first), rows)[0][0], None

    def lifetime(*rows):
        return jax.lax.scan(episode, init, (jnp.arange(EPISODES), *rows))[0]

    return jax.jit(jax.vmap(lifetime))(*reports)


def start_episode(detector: Detector, memory, number):
    """Begin an episode, of which the detector hears that it is nominal, if it is."""
    unknown = jnp.int32(-1)
    hint = NoveltyHint(jnp.where(number < NOMINAL, 0, -1), unknown, unknown, unknown, unknown)
    memory = detector.begin(detector.tell(memory, hint))
    if isinstance(memory, residual.Memory):
        # So that episodes end in time: an early end is evidence that hides all other.
        memory = replace(memory, now=replace(memory.now, ticks=jnp.int32(residual.STEPS - TICKS)))
    return memory


def of_detector(detector: Detector, **start):
    """Memories of a detector that begins with some values."""

    def watch(memory, transition, observation):
        return detector.watch(memory, transition)[0]

    def whole(reports):
        # Where sensors drop a quantity, a detector's numbers are the rounding of zeros.
        reports = jax.tree.map(lambda leaf: leaf[: len(WORLDS) + len(NOISY)], reports)
        init = replace(detector.init(), **start)
        return memories(reports, init, partial(start_episode, detector), watch)

    return whole


def of_planner(reports):
    """The planner's evidence, and the model that it would plan with."""

    def watch(memory, transition, observation):
        speeds, fit = memory[:2]
        free = ~fit.touched & ~fit.crowded
        speeds, transition, changed = derived.follow(speeds, transition, free)
        fit = jax.tree.map(partial(jnp.where, changed), repair.no_fit(), fit)
        fit = repair.update(fit, transition)
        model, block, trusted = repair.model_of(fit, transition.after)
        world = mpc._world(transition, fit, block)
        return speeds, fit, (model, world, trusted, repair.unclear(fit))

    start = derived.SpeedEvidence.none(), repair.no_fit()
    first = jax.tree.map(lambda leaf: leaf[0, 0, 0], reports.observations)
    report = see(first)
    none = Transition(report, jnp.int32(0), report, jnp.asarray(True))
    shapes = jax.eval_shape(watch, start, none, first)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes[2])
    return memories(reports, (*start, blank), lambda memory, number: (*start, blank), watch)


LATE = jnp.int32(wow.QUIET - NOMINAL)
"""Episode that `wow` begins with, since it declares nothing in the first ones."""

SUBJECTS = {
    "residual": of_detector(residual.residual),
    "wow": of_detector(wow.detector(), episode=LATE),
    "wow as published": of_detector(wow.detector(published=True), episode=LATE),
    "mpc": of_planner,
}


def shown(values):
    """A leaf of one world as numbers of the snapshot."""
    values = np.asarray(values, float).ravel()
    if values.size > LARGEST_SHOWN:
        values = np.array([values.mean(), values.min(), values.max()])
    return [float(f"{value:.6g}") for value in values]


def lines(memory):
    """One line a leaf: its place, and its numbers in each world."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(memory):
        name = jax.tree_util.keystr(path)
        yield name, [shown(of_world) for of_world in np.asarray(leaf)]


@pytest.mark.parametrize("name", SUBJECTS)
def test_evidence_of_given_episodes_is_what_it_was(name, reports):
    numbers = dict(lines(SUBJECTS[name](reports)))
    expected = json.loads(kept(f"evidence {name}.json", json_lines(numbers)))
    assert numbers.keys() == expected.keys()
    for leaf, values in expected.items():
        atol = ROUNDING if leaf.endswith("strength") else ATOL
        np.testing.assert_allclose(numbers[leaf], values, rtol=RTOL, atol=atol, err_msg=leaf)


def json_lines(leaves):
    """JSON with a line for each leaf."""
    rows = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in leaves.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"
