"""Errors of the sensors, from readings alone."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.identification.estimates import between, greatest
from jaxsim.identification.kinematics import repaired, sizes_after
from jaxsim.identification.readings import (
    KINDS,
    error_scale,
    noisy,
    rotation_vector,
    rounded_or_dropped,
    step_of,
)
from jaxsim.identification.starts import STEPS, of_ends, of_supply
from jaxsim.identification.starts import ReportedEpisode as Reported
from jaxsim.identification.ticks import CARTPOLE, NUMBERS, Ticks
from jaxsim.worlds.cartpole3d.types import DT, Vector

LENGTH = 200
RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("step", [0.001, 0.0213, 0.15])
def test_a_step_is_the_greatest_common_one(step):
    numbers = step * RANDOM.integers(-40, 40, 200)
    estimate = step_of(np.round(numbers, 6))
    assert estimate.value == pytest.approx(step, rel=1e-4)
    assert abs(estimate.value - step) < 4 * estimate.deviation + 1e-9


@pytest.mark.parametrize("numbers", [RANDOM.normal(size=500), np.zeros(5), np.ones(3)])
def test_numbers_that_are_not_rounded_have_no_step(numbers):
    assert step_of(numbers) is None


def turns(rates):
    """Orientations after turns by rates, rad/s, in the world frame, (T, 4)."""
    q = np.zeros((len(rates), 4))
    q[0, 3] = 1
    for tick, rate in enumerate(rates[:-1]):
        size = np.linalg.norm(rate) * DT
        axis = np.append(rate / np.linalg.norm(rate) * np.sin(size / 2), np.cos(size / 2))
        a, b = axis, q[tick]
        vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
        q[tick + 1] = np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
    return q


@pytest.fixture(scope="module")
def exact():
    """Reports of bodies that move freely, with smooth velocities; leaves (T, ...)."""
    t = DT * np.arange(LENGTH)
    speed = np.stack([np.sin(t + k) for k in range(2)], axis=-1)
    place = np.cumsum(np.vstack([np.zeros(2), DT * speed[:-1]]), axis=0)
    # About one axis, so that rotation vectors add up.
    rates = np.stack([0.3 * np.cos(3 * t) + 0.01, 0 * t, 0 * t], axis=-1)
    q = turns(rates)
    v = np.stack([np.stack([np.cos(t + b + k) for k in range(3)]) for b in range(SLOTS)], axis=-1)
    p = np.cumsum(DT * v, axis=1) + 3.7
    nothing = jax.tree.map(lambda leaf: jnp.stack([leaf] * LENGTH), Sighting.nothing())
    return with_numbers(nothing, place, speed, q, rates, p, v)


def with_numbers(report, place, speed, q, rates, p, v):
    def leaf(numbers):
        return jnp.asarray(numbers, jnp.float32)

    x, y = (leaf(place[:, k]) for k in range(2))
    quaternion = dict(zip(("qx", "qy", "qz", "qw"), map(leaf, q.T), strict=True))
    block = replace(
        report.block,
        p=Vector(*map(leaf, p)),
        v=Vector(*map(leaf, v)),
        alive=jnp.ones((LENGTH, SLOTS), bool),
    )
    return replace(
        report,
        reported=replace(report.reported, x=x, y=y, **quaternion),
        vx=leaf(speed[:, 0]),
        vy=leaf(speed[:, 1]),
        spin=Vector(*map(leaf, rates.T)),
        block=block,
        count=jnp.full(LENGTH, SLOTS, jnp.int32),
    )


def spoilt(report, kind, size):
    """The report with noise of one kind."""

    def shaken(leaf):
        return leaf + size * jnp.asarray(RANDOM.normal(size=leaf.shape), jnp.float32)

    r, block = report.reported, report.block
    if kind == "position":
        moved = replace(block, p=Vector(*map(shaken, block.p)))
        return replace(report, reported=replace(r, x=shaken(r.x), y=shaken(r.y)), block=moved)
    if kind == "velocity":
        faster = replace(block, v=Vector(*map(shaken, block.v)))
        return replace(report, vx=shaken(report.vx), vy=shaken(report.vy), block=faster)
    if kind == "rate":
        return replace(report, spin=Vector(*map(shaken, report.spin)))
    half = {name: 0.5 * size * RANDOM.normal(size=LENGTH) for name in ("qx", "qy", "qz")}
    return replace(report, reported=replace(r, **{n: getattr(r, n) + h for n, h in half.items()}))


def ticks_of(report):
    """Transitions of free motion, of which every number counts."""
    before, after = (jax.tree.map(lambda leaf, s=s: np.asarray(leaf)[s], report) for s in SLICES)
    number = LENGTH - 1
    counts = np.ones((number, NUMBERS), bool)
    ticks = np.arange(number)
    return Ticks(before, after, np.zeros((number, 12), int), counts, np.zeros(number, int), ticks)


SLICES = (slice(None, -1), slice(1, None))


def kinematic_errors(report):
    """Errors of predicted places and angles, which need no forces, (T, 34)."""
    off = np.zeros((LENGTH - 1, NUMBERS))
    r = report.reported
    for column, (place, speed) in enumerate(((r.x, report.vx), (r.y, report.vy))):
        place, speed = np.asarray(place, float), np.asarray(speed, float)
        off[:, column] = place[:-1] + DT * speed[:-1] - place[1:]
    angle = rotation_vector(report)
    rate = np.stack([np.asarray(c, float) for c in report.spin], axis=-1)
    off[:, 4:7] = angle[:-1] + DT * rate[:-1] - angle[1:]
    return off


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_estimated_by_its_kind(exact, kind):
    size = {"position": 0.02, "velocity": 0.3, "angle": 0.03, "rate": 1.0}[kind]
    report = spoilt(exact, kind, size)
    noise = noisy(ticks_of(report), kinematic_errors(report))
    assert set(noise.values) == {f"noise_{kind}"}
    estimate = noise.values[f"noise_{kind}"]
    assert abs(estimate.value - size) < 5 * estimate.deviation
    assert estimate.deviation < 0.15 * size


@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_readings_follow_from_exact_ones(exact, kind):
    size = 0.02
    sizes = np.where(np.array(KINDS) == kind, size, 0.0)
    after = repaired(spoilt(exact, kind, size), sizes)
    left = dict(zip(KINDS, sizes_after(sizes), strict=True))
    assert left[kind] < size
    # A mean of readings decides about the start of what is summed up.
    for numbers, expected in zip(read(after, kind), read(exact, kind), strict=True):
        error = np.abs(np.asarray(numbers)[1:-1] - np.asarray(expected)[1:-1])
        assert error.max() < 2 * left[kind]


def read(report, kind):
    r, block = report.reported, report.block
    if kind == "position":
        return r.x, r.y, *block.p
    if kind == "velocity":
        return report.vx, report.vy, *block.v
    return report.spin if kind == "rate" else rotation_vector(report).T


def test_two_spoilt_kinds_cannot_repair_each_other(exact):
    sizes = np.array([0.1, 0.1, 0.0, 0.0])
    report = spoilt(spoilt(exact, "position", 0.1), "velocity", 0.1)
    same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), repaired(report, sizes), report)
    assert jax.tree.all(same)
    assert (sizes_after(sizes) == sizes).all()


def test_errors_at_walls_grow_with_the_uncertainty_of_places(exact):
    ticks = ticks_of(exact)
    deep = np.asarray(ticks.before.block.p.x) > 4.5
    assert deep.any() and not deep.all()
    scale = error_scale(ticks, np.array([0.01, 0.0, 0.0, 0.0]))
    speeds = scale[:, CARTPOLE:].reshape(len(scale), SLOTS, 6)[:, :, 3]
    assert (speeds[deep] >= 0.03).all()
    assert speeds.min() < 1e-3
    # Whether a block touches the wall at 4.95 m decides about its next speed.
    gap = 4.45 - np.asarray(ticks.before.block.p.x)
    assert (speeds[np.abs(gap) < 0.02] > 10).all()


def test_a_new_block_shows_the_period_and_its_speed(exact):
    count = jnp.asarray(2 + (np.arange(LENGTH) + 1) // 40, jnp.int32)
    moving = Vector(*(jnp.full(LENGTH, speed, jnp.float32) for speed in (3.0, -4.0, 4.5)))
    still = Vector(*(jnp.zeros(LENGTH) for _ in range(3)))
    flood = of_supply([Reported(replace(exact, count=count, newest=moving), False)])
    supply = of_supply([Reported(replace(exact, count=count, newest=still), False)])
    assert set(flood) == {"block_flood"} and set(supply) == {"block_supply"}
    assert flood["block_flood"]["spawn_period"].value == 40
    speed = flood["block_flood"]["spawn_speed_max"]
    assert 4.5 <= speed.value <= 5.0 and speed.deviation > 0
    assert of_supply([Reported(exact, False)]) == {}


def test_the_lean_at_an_end_shows_the_fall_angle(exact):
    angle = np.linspace(0, 0.3, LENGTH)
    r = replace(
        exact.reported,
        qx=jnp.sin(angle / 2),
        qy=jnp.zeros(LENGTH),
        qz=jnp.zeros(LENGTH),
        qw=jnp.cos(angle / 2),
    )
    late = replace(exact, reported=r)
    fall = of_ends([Reported(late, True)])["fall_angle"]["lean_limit"]
    assert fall.value == pytest.approx(0.3, abs=2e-3)
    early = jax.tree.map(lambda leaf: leaf[:80], late)
    assert of_ends([Reported(early, True)])["fall_angle"]["lean_limit"].value < 0.13
    assert of_ends([Reported(early, False)]) == {}
    cut = of_ends([Reported(late, False)])["fall_angle"]["lean_limit"]
    assert cut.value - 3**0.5 * cut.deviation == pytest.approx(0.3, abs=1e-5)


def test_a_few_readings_show_no_step(exact):
    """Of one tick, the only rate that is not 0 is a multiple of itself."""
    ticks = ticks_of(exact)
    assert step_of(np.concatenate([np.ravel(c[:1]) for c in ticks.after.spin])) is not None
    assert rounded_or_dropped(ticks.at(np.arange(1))).values.keys() <= {"gain_velocity"}


def leaning(exact, angles):
    """Reports with these leans, rad."""
    angles = np.asarray(angles)
    report = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf])[: len(angles)], exact)
    zeros = jnp.zeros(len(angles))
    q = {"qx": jnp.sin(angles / 2), "qy": zeros, "qz": zeros, "qw": jnp.cos(angles / 2)}
    return replace(report, reported=replace(report.reported, **q))


@pytest.mark.parametrize(
    "leans",
    [
        pytest.param([[0.0, 0.05, 0.01], [0.0, 0.02, 0.03, 0.04]], id="less lean than before"),
        pytest.param([[0.0, 0.01, 0.02], [0.0, 0.02, 0.04]], id="equally long"),
        pytest.param([np.linspace(0, 0.05, STEPS + 1)], id="as long as in the nominal world"),
    ],
)
def test_ends_by_a_limit_of_steps_show_no_fall_angle(exact, leans):
    assert of_ends([Reported(leaning(exact, one), True) for one in leans]) == {}


def test_an_episode_of_more_steps_than_usual_may_end_by_a_fall(exact):
    leans = np.linspace(0, 0.17, STEPS + 30)
    leans[-1] = 0.19
    assert of_ends([Reported(leaning(exact, leans), True)]) == {}


def test_leans_of_several_falls_bound_the_fall_angle(exact):
    leans = [[0.0, 0.05, 0.11], [0.0, 0.02, 0.09, 0.12], [0.0, 0.01]]
    fall = of_ends([Reported(leaning(exact, one), True) for one in leans])["fall_angle"]
    estimate = fall["lean_limit"]
    assert estimate.value == pytest.approx(0.1, abs=1e-6)
    assert estimate.deviation == pytest.approx(0.02 / 12**0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("estimate", "low"), [(greatest, 0.0), (lambda draws: between(draws, 0.6), 0.6)]
)
def test_ends_of_ranges_are_unbiased_with_honest_errors(estimate, low):
    end, number, repeats = 7.0, 12, 4000
    draws = RANDOM.uniform(low * end, end, (repeats, number))
    estimates = np.array([estimate(row) for row in draws])
    values, deviations = estimates.T
    spread = values.std()
    assert abs(values.mean() - end) < 4 * spread / repeats**0.5
    assert deviations.mean() == pytest.approx(spread, rel=0.5)
