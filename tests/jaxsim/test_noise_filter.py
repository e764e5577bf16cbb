"""Noise estimates, limits, filter and sequential test against NumPy in float64."""

from dataclasses import fields, replace
from functools import cache, partial
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import bank, directions, filtering, limits, martingale, sequential, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.filtering import SPREADS, FilterState, Scores
from jaxsim.agents.martingale import GRID, Mixture
from jaxsim.agents.noise_scale import NoiseScale
from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import DT, Sphere, Vector

DEVIATIONS = np.array([0.01, 0.02, 0.005, 0.03])  # m, m/s, rad, rad/s
COUNTS = np.array([500.0, 900.0, 300.0, 400.0])
KINDS = range(4)


def scale_of(deviations, counts=COUNTS):
    """Sums of squares whose upper estimates are these deviations."""
    position, velocity, angle, rate = np.square(deviations)
    factor = filtering.rate_per_angle() ** 2
    means = [
        2 * position + DT**2 * velocity,
        2 * velocity,
        2 * angle + DT**2 * rate,
        2 * rate + factor * angle,
    ]
    squares = counts * np.array(means) / (1 + 2 * np.sqrt(3 / counts))
    return NoiseScale(jnp.float32(squares), jnp.float32(counts))


deviations_of = jax.jit(lambda noise: noise.deviations(filtering.rate_per_angle()))


# Noise scale --------------------------------------------------------------------------------------


def test_deviations_solve_the_equations_of_the_mean_squares():
    # Differences of squares in float32.
    np.testing.assert_allclose(deviations_of(scale_of(DEVIATIONS)), DEVIATIONS, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_noisy_from_30_millionths_on(kind):
    for size in (2.8e-5, 3.2e-5):
        deviations = DEVIATIONS.copy()
        deviations[kind] = size
        estimate = deviations_of(scale_of(deviations))
        assert (estimate[kind] > 0) == (size > 3e-5)
        assert np.all(np.delete(estimate, kind) > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_noise_is_known_from_fewer_than_200_numbers_of_each_kind(kind):
    for count in (199, 200):
        counts = COUNTS.copy()
        counts[kind] = count
        estimate = np.asarray(deviations_of(scale_of(DEVIATIONS, counts)))
        assert np.all(estimate > 0) if count == 200 else np.all(estimate == 0)


# Limits -------------------------------------------------------------------------------------------


def test_limits_follow_from_the_deviations():
    """Every field: a multiple of the deviation of what is compared."""
    d, motion, sigmas = DEVIATIONS, filtering.motion().astype(float), martingale.LIMIT

    def spread(row):
        by_other_kinds = sum(((abs(motion[row, k]) + 1e-3) * d[k]) ** 2 for k in KINDS if k != row)
        return 1.1 * sigmas * np.sqrt(2 * d[row] ** 2 + by_other_kinds)

    expected = {
        "deviations": d,
        "noisy": True,
        "position": sigmas * d[0],
        "velocity": sigmas * d[1],
        "angle": sigmas * d[2],
        "rate": sigmas * d[3],
        "place": spread(0),
        "cart_speed": spread(1),
        "block_speed": 1.1 * sigmas * np.sqrt(2) * d[1],
        "turn": spread(2) / 2,  # a component of a quaternion is half an angle
        "spin": spread(3),
        # Of two blocks, or of a block and the tip, which reported speeds have moved on.
        "blur": sigmas * np.linalg.norm([np.sqrt(2) * d[0], DT * d[1], d[2], DT * d[3]]),
    }
    of = jax.jit(limits.of)
    limit = of(scale_of(d), jnp.asarray(False))
    assert set(expected) == {field.name for field in fields(limit)}
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(limit, name), value, rtol=2e-4, err_msg=name)
    assert float(of(scale_of(d), jnp.asarray(True)).blur) == 0.5
    one = of(scale_of([0, 0, 0, 0.01]), jnp.asarray(False))
    assert one.noisy and float(one.spin) > 0
    np.testing.assert_allclose(one.blur, sigmas * DT * 0.01, rtol=2e-4)


def test_a_reading_beyond_the_limit_is_a_false_alarm_once_in_a_thousand_lifetimes():
    tails = 2 * NormalDist().cdf(-martingale.LIMIT)
    assert tails * 1e6 == pytest.approx(0.1 * 0.01, rel=1e-6)


def leaning(seed=0):
    """An observation of a leaning pole and of three blocks in flight."""
    random = np.random.default_rng(seed)
    number = partial(jnp.asarray, dtype=jnp.float32)
    turn = np.array([0.02, -0.03, 0.0])
    q = (*turn, np.sqrt(1 - np.sum(turn**2)))
    nothing = sight.Sighting.nothing()
    pose = dict(zip(("qx", "qy", "qz", "qw"), map(number, q), strict=True))
    places, speeds = (random.normal(size=(3, 4)) * size for size in (2.0, 5.0))
    places[2] += 5.0
    alive = jnp.array([True, True, False, True])
    return replace(
        nothing,
        reported=replace(nothing.reported, x=number(0.4), y=number(-0.7), **pose),
        vx=number(0.3),
        vy=number(-0.2),
        spin=Vector(number(0.2), number(-0.1), number(0.0)),
        block=Sphere(Vector(*number(places)), Vector(*number(speeds)), alive),
        count=jnp.int32(3),
    )


@jax.jit
def following(before, action):
    """What the nominal world makes of an observation."""
    nominal = Params()
    pose, _ = sight.moving(before)
    _, speed = sight.predicted(nominal, before, sight.push(nominal, action))
    v = bank.blocks_after(nominal, before.block)
    return replace(
        before,
        reported=pose,
        vx=speed.vx,
        vy=speed.vy,
        spin=sight.spin_of(pose, speed),
        block=Sphere(sight.place_next(before.block.p, v), v, before.block.alive),
    )


def off(report, random):
    """An observation with errors of every kind of reading, and the errors by kind."""
    errors = {
        "place": random.normal(size=2) * 0.1,
        "speed": random.normal(size=2) * 0.1,
        "tilt": random.normal(size=2) * 0.01,
        "spin": random.normal(size=2) * 0.1,
        "block_place": random.normal(size=(3, 4)) * 0.1,
        "block_speed": random.normal(size=(3, 4)) * 0.1,
    }
    r, e = report.reported, {name: np.float32(error) for name, error in errors.items()}
    tilted = filtering._turned(r, jnp.asarray(e["tilt"]))
    place, speed = np.stack(report.block.p), np.stack(report.block.v)
    return replace(
        report,
        reported=replace(r, x=r.x + e["place"][0], y=r.y + e["place"][1], **tilted),
        vx=report.vx + e["speed"][0],
        vy=report.vy + e["speed"][1],
        # Rates about the axes of a lean along x, which is y, and of one along y, which is -x.
        spin=Vector(report.spin.x - e["spin"][1], report.spin.y + e["spin"][0], report.spin.z),
        block=Sphere(
            Vector(*(place + e["block_place"])),
            Vector(*(speed + e["block_speed"])),
            report.block.alive,
        ),
    ), errors


differences = jax.jit(limits.differences)


@pytest.mark.parametrize("touched", [False, True])
def test_noise_is_estimated_from_squares_of_what_predictions_miss(touched):
    before, action = leaning(), jnp.int32(3)
    after, errors = off(following(before, action), np.random.default_rng(1))
    free = np.array([True, False, False, True])
    given = jnp.asarray(touched), jnp.asarray(free)
    shown = Transition(before, action, after, jnp.asarray(False))
    squares, counts = differences(shown, jnp.asarray(True), *given)
    # Blocks are predicted to move by the velocity that is reported.
    moved = errors["block_place"] - DT * errors["block_speed"]
    alone = not touched
    expected = [
        np.sum(moved[:, free] ** 2) + alone * np.sum(errors["place"] ** 2),
        np.sum(errors["block_speed"][:, free] ** 2),
        alone * np.sum(errors["tilt"] ** 2),
        alone * np.sum(errors["spin"] ** 2),
    ]
    np.testing.assert_allclose(squares, expected, rtol=1e-3)
    np.testing.assert_array_equal(counts, [6 + 2 * alone, 6, 2 * alone, 2 * alone])
    # Neither episodes that may be novel nor first observations, which nothing leads to.
    for learning, first in ((False, False), (True, True)):
        shown = replace(shown, first=jnp.asarray(first))
        for sums in differences(shown, jnp.asarray(learning), *given):
            np.testing.assert_array_equal(sums, 0)


# The linear motion --------------------------------------------------------------------------------


def test_the_motion_about_upright_is_that_of_a_pole_on_a_cart():
    """Newton's equations in a plane, with drag; places move before speeds change."""
    p, step = Params(), 0.02
    inertia = p.pole_mass / 12 * ((2 * 0.03 + 0.006) ** 2 + (p.pole_length + 0.006) ** 2)
    arm, moment = p.pole_com, p.pole_mass * p.pole_com
    masses = [[p.cart_mass + p.pole_mass, moment], [moment, inertia + moment * arm]]

    def drag(speed):
        return p.drag * (1 + abs(speed)) * speed

    def after(state, force=0.0):
        place, speed, angle, rate = state
        place, angle = place + DT * speed, angle + DT * rate
        of_com = p.pole_mass * drag(speed + arm * rate)
        push = force - p.cart_mass * drag(speed) - of_com
        turn = p.gravity * moment * np.sin(angle) - arm * of_com - inertia * drag(rate)
        change = np.linalg.solve(masses, [push, turn])
        return np.array([place, speed + DT * change[0], angle, rate + DT * change[1]])

    columns = [(after(step * d) - after(-step * d)) / (2 * step) for d in np.eye(4)]
    # Float32 by the width of a quotient of differences.
    np.testing.assert_allclose(filtering.motion(), np.stack(columns, axis=1), atol=2e-5)
    push = (after(np.zeros(4), 10.0) - after(np.zeros(4), -10.0))[[1, 3]] / 20
    np.testing.assert_allclose(filtering.push_response(), push, rtol=1e-4)
    assert filtering.rate_per_angle() == filtering.motion()[3, 2]


# The filter ---------------------------------------------------------------------------------------


class Update:
    """A Kalman update by readings of all components at once, by matrices."""

    def __init__(self, covariance, variance, sensitivity, shift, innovation):
        """Covariance (N, N), variance (N,), sensitivity and shift (J, N, A), innovation (N, A)."""
        spread = covariance + np.diag(variance)
        gain = covariance @ np.linalg.inv(spread)
        expected = sensitivity + shift
        weighted = np.linalg.solve(spread, innovation)
        self.covariance = covariance - gain @ covariance
        self.mean = gain @ innovation
        self.sensitivity = sensitivity - np.einsum("mn,jna->jma", gain, expected)
        self.slope = np.einsum("jna,na->j", expected, weighted)
        inverse = np.linalg.inv(spread)
        self.information = np.einsum("jna,nm,jma->j", expected, inverse, expected)
        self.surprise, self.largest = self.one_by_one(covariance, variance, innovation)

    @staticmethod
    def one_by_one(covariance, variance, innovation):
        """Log likelihood ratios of noise of other sizes, (N, V), and the largest innovation."""
        p, mean, surprise, largest = covariance, np.zeros_like(innovation), [], 0.0
        for place, noise in enumerate(variance):
            left, spread = innovation[place] - mean[place], p[place, place] + noise
            usual = [NormalDist(0, spread**0.5).pdf(one) for one in left]
            row = []
            for factor in SPREADS.astype(float):
                wide = NormalDist(0, (p[place, place] + factor**2 * noise) ** 0.5)
                row.append(sum(np.log([wide.pdf(one) for one in left]) - np.log(usual)))
            surprise.append(row)
            largest = max(largest, np.abs(left).max() / spread**0.5)
            gain = p[:, place] / spread
            mean = mean + np.outer(gain, left)
            p = p - np.outer(gain, p[place])
        return np.array(surprise), largest


def rows(matrix):
    return tuple(tuple(jnp.float32(c) for c in row) for row in matrix)


def matrix(covariance):
    return np.array([[float(c) for c in row] for row in covariance])


@jax.jit
def take_all(covariance, sensitivity, innovations, variance, shifts, counted):
    return filtering._take_all(covariance, sensitivity, innovations, variance, shifts, counted)


def test_readings_one_after_the_other_are_an_update_of_all_at_once():
    random = np.random.default_rng(2)
    root = random.normal(size=(4, 4))
    covariance, variance = root @ root.T, random.uniform(0.5, 2.0, size=4)
    sensitivity, shift = random.normal(size=(2, 5, 4, 2))
    innovation = random.normal(size=(4, 2)) * 2
    twin = Update(covariance, variance, sensitivity, shift, innovation)
    given = jax.tree.map(
        jnp.float32,
        (
            rows(covariance),
            tuple(sensitivity.swapaxes(0, 1)),
            list(innovation),
            tuple(variance),
            list(shift.swapaxes(0, 1)),
        ),
    )
    mean, (after, moved, slope, information, surprise, largest) = take_all(*given, True)
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    close(np.stack(mean), twin.mean)
    close(matrix(after), twin.covariance)
    close(np.stack(moved, axis=1), twin.sensitivity)
    close(slope, twin.slope)
    close(information, twin.information)
    close(np.stack(surprise), twin.surprise)
    close(largest, twin.largest)
    # What is no evidence moves the belief all the same.
    mean, (after, _, *scores) = take_all(*given, False)
    close(np.stack(mean), twin.mean)
    close(matrix(after), twin.covariance)
    for score in jax.tree.leaves(scores):
        np.testing.assert_array_equal(score, 0)


def propagated(covariance, motion):
    """F P F' with 5 % of each change as an independent error."""
    change = (motion - np.eye(len(motion))) ** 2 * 0.05**2
    return motion @ covariance @ motion.T + np.diag(change @ np.diag(covariance))


follow = jax.jit(filtering.follow)


def variance_of(deviations):
    """Of readings: the noise, and .1 mm and 30 % of what others do in a tick."""
    floor = 1e-4 + 0.3 * np.abs(filtering.motion() - np.eye(4)) @ deviations
    return deviations**2 + floor**2, deviations > 3 * floor


ACTION = jnp.int32(2)


@cache
def two_ticks():
    """The filter at a first observation and behind a second one, with the errors of the latter."""
    no, yes = jnp.asarray(False), jnp.asarray(True)
    deviations, free = jnp.float32(DEVIATIONS), jnp.array([True, False, False, True])
    first = leaning()
    initial = follow(FilterState.none(), Scores.none(), deviations, ACTION, first, no, free & no)
    expected = following(initial[0].mean, ACTION)
    second, errors = off(expected, np.random.default_rng(3))
    return (
        (first, second),
        errors,
        initial,
        follow(*initial, deviations, ACTION, second, yes, free),
        expected,
    )


def test_a_filter_begins_with_its_first_observation():
    (first, _), _, (track, scores), _, _ = two_ticks()
    variance, _ = variance_of(DEVIATIONS)
    np.testing.assert_allclose(matrix(track.covariance), np.diag(variance), rtol=1e-5)
    for i in range(2):
        for j in range(2):
            block = np.full(4, variance[i] * (i == j))
            np.testing.assert_allclose(track.block_covariance[i][j], block, rtol=1e-5)
    angles = np.asarray(directions.of_angles())
    for kind, sensitivity in enumerate(track.sensitivity):
        np.testing.assert_array_equal(sensitivity, -angles if kind == 2 else 0 * angles)
    for sensitivity in track.block_sensitivity:
        np.testing.assert_array_equal(sensitivity, 0)
    for score in jax.tree.leaves(scores):
        np.testing.assert_array_equal(score, 0)
    for name in ("x", "y", "qx", "qy", "qz", "qw"):
        value, reading = getattr(track.mean.reported, name), getattr(first.reported, name)
        np.testing.assert_allclose(value, reading, rtol=1e-6, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(np.stack(track.mean.block.p), np.stack(first.block.p))
    np.testing.assert_array_equal(np.stack(track.mean.block.v), np.stack(first.block.v))


def test_cart_and_pole_are_followed_as_by_matrices():
    _, errors, (before, _), (track, scores), expected = two_ticks()
    variance, _ = variance_of(DEVIATIONS)
    motion = filtering.motion().astype(float)
    covariance = propagated(np.diag(variance), motion)
    pose, speed = sight.predicted(directions.models(), before.mean, sight.push(Params(), ACTION))
    by_axis = directions.along_axes(speed, sight.spin_of(pose, speed))
    added = np.zeros((11, 4, 2))
    added[:, 1], added[:, 3] = directions.of_motion(*by_axis, ACTION, filtering.push_response())
    angles = np.asarray(directions.of_angles())
    shift = np.zeros((11, 4, 2))
    shift[:, 2] = angles
    sensitivity = np.einsum("mn,jna->jma", motion, -shift) + added
    innovation = np.stack([errors[name] for name in ("place", "speed", "tilt", "spin")])
    twin = Update(covariance, variance, sensitivity, shift, innovation)
    # Errors of angles and rates are known to a part in some thousands.
    close = partial(np.testing.assert_allclose, rtol=2e-3)
    close(matrix(track.covariance), twin.covariance, atol=1e-9)
    close(np.stack(track.sensitivity, axis=1), twin.sensitivity, atol=1e-5)
    close(scores.slope[:11], twin.slope, atol=0.05)
    close(scores.information[:11], twin.information, atol=1e-4)
    mean, moved = track.mean, twin.mean
    place = [mean.reported.x - expected.reported.x, mean.reported.y - expected.reported.y]
    close(place, moved[0], atol=1e-6)
    close([mean.vx - expected.vx, mean.vy - expected.vy], moved[1], atol=1e-6)
    close(filtering.tilt_between(expected.reported, mean.reported), moved[2], atol=1e-5)
    spin = [mean.spin.y - expected.spin.y, expected.spin.x - mean.spin.x]
    close(spin, moved[3], atol=1e-5)
    assert float(scores.largest) >= twin.largest * (1 - 2e-3)


def test_blocks_are_followed_as_by_matrices():
    (_, second), errors, (before, _), (track, scores), expected = two_ticks()
    variance, _ = variance_of(DEVIATIONS)
    motion = np.array([[1, DT], [0, 1]])
    covariance = propagated(np.diag(variance[:2]), motion)
    added = np.asarray(directions.of_blocks(before.mean))
    sums = np.zeros((2, 6))
    largest = 0.0
    for slot in (0, 3):
        each = added[:, :, slot]
        sensitivity = np.stack([DT * each, each], axis=1)
        innovation = np.stack([errors[n][:, slot] for n in ("block_place", "block_speed")])
        twin = Update(covariance, variance[:2], sensitivity, 0, innovation)
        sums += twin.slope, twin.information
        largest = max(largest, twin.largest)
        close = partial(np.testing.assert_allclose, rtol=2e-3)
        for i in range(2):
            for j in range(2):
                close(track.block_covariance[i][j][slot], twin.covariance[i, j], atol=1e-9)
        of_block = [s[:, :, slot] for s in track.block_sensitivity]
        close(np.stack(of_block, axis=1), twin.sensitivity, atol=1e-7)
        for vectors, prediction, moved in (
            (track.mean.block.p, expected.block.p, twin.mean[0]),
            (track.mean.block.v, expected.block.v, twin.mean[1]),
        ):
            change = [a[slot] - b[slot] for a, b in zip(vectors, prediction, strict=True)]
            close(change, moved, atol=2e-6)
    np.testing.assert_allclose(scores.slope[11:], sums[0], rtol=2e-3, atol=1e-2)
    np.testing.assert_allclose(scores.information[11:], sums[1], rtol=2e-3)
    assert float(scores.largest) >= largest * (1 - 2e-3)
    # Slot 1 is followed by nothing: it begins with its reading, as slot 2, which is empty.
    for slot in (1, 2):
        assert float(track.block_covariance[0][0][slot]) == pytest.approx(variance[0], rel=1e-5)
        assert float(track.block_covariance[0][1][slot]) == 0
        assert not any(np.any(s[:, :, slot]) for s in track.block_sensitivity)
        assert float(track.mean.block.p.x[slot]) == float(second.block.p.x[slot])


def test_what_begins_anew_forgets_what_it_was_followed_with():
    """A cart that may have been hit, and blocks that touch something, behind a tick of evidence."""
    (_, second), _, (fresh, _), (track, scores), _ = two_ticks()
    no = jnp.asarray(False)
    deviations, free = jnp.float32(DEVIATIONS), jnp.zeros(4, bool)
    again, same = follow(track, scores, deviations, ACTION, second, no, free)
    for name in ("covariance", "sensitivity", "block_covariance", "block_sensitivity"):
        jax.tree.map(np.testing.assert_array_equal, getattr(again, name), getattr(fresh, name))
    jax.tree.map(np.testing.assert_array_equal, same, scores)


def test_surprise_adds_up_by_kind_where_noise_is_larger_than_what_is_left_out():
    """Of position and velocity by blocks too; none where the filter's own errors are as large."""
    _, errors, (before, _), (_, scores), _ = two_ticks()
    variance, counted = variance_of(DEVIATIONS)
    motion = filtering.motion().astype(float)
    innovation = np.stack([errors[name] for name in ("place", "speed", "tilt", "spin")])
    of_cart, _ = Update.one_by_one(propagated(np.diag(variance), motion), variance, innovation)
    fall = propagated(np.diag(variance[:2]), np.array([[1, DT], [0, 1]]))
    for slot in (0, 3):
        innovation = np.stack([errors[n][:, slot] for n in ("block_place", "block_speed")])
        of_cart[:2] += Update.one_by_one(fall, variance[:2], innovation)[0]
    expected = np.where(counted[:, None], of_cart, 0)
    assert counted.all()
    np.testing.assert_allclose(scores.surprise, expected, rtol=5e-3, atol=1e-2)
    # A rate that is read a hundred times better than its floor, by the noise of the angle.
    quiet = jnp.float32([0.01, 0.02, 0.05, 1e-4])
    assert variance_of(np.asarray(quiet, float))[1].tolist() == [True, True, True, False]
    arguments = ACTION, leaning(), jnp.asarray(True), jnp.ones(4, bool)
    after = follow(before, Scores.none(), quiet, *arguments)[1]
    assert not np.any(after.surprise[3]) and np.all(after.surprise[:3] != 0)


def test_tilts_of_opposite_signs_of_a_quaternion_are_one():
    a = leaning().reported
    b = replace(a, **filtering._turned(a, jnp.array([0.01, -0.02])))
    negative = replace(b, **{name: -getattr(b, name) for name in ("qx", "qy", "qz", "qw")})
    for pose in (b, negative):
        # Small angles, to the second order.
        np.testing.assert_allclose(filtering.tilt_between(a, pose), [0.01, -0.02], rtol=5e-3)


# Directions ---------------------------------------------------------------------------------------


@jax.jit
def motions_of(mean, action):
    pose, speed = sight.predicted(directions.models(), mean, sight.push(Params(), action))
    by_axis = directions.along_axes(speed, sight.spin_of(pose, speed))
    return directions.of_motion(*by_axis, action, filtering.push_response())


@jax.jit
def speeds_after(params, mean, force):
    pose, speed = sight.predicted(params, mean, force)
    return directions.along_axes(speed, sight.spin_of(pose, speed))


@pytest.mark.parametrize("action", [0, 1, 4])
def test_every_direction_of_cart_and_pole_is_a_derivative(action):
    """Of the parameter, or of the force, that it is named after."""
    mean = leaning()
    changes = motions_of(mean, jnp.int32(action))
    float32 = partial(jax.tree.map, jnp.float32)
    push = np.array([float(c) for c in sight.push(Params(), jnp.int32(action))])
    along, across = push[:2], np.array([-push[1], push[0]])
    usual = speeds_after(float32(Params()), mean, Vector(*push))

    def change(force=(0.0, 0.0), size=1.0, **parameter):
        params = float32(replace(Params(), **parameter))
        other = speeds_after(params, mean, Vector(push[0] + force[0], push[1] + force[1], 0.0))
        return (
            np.stack([np.asarray(a) - np.asarray(b) for a, b in zip(other, usual, strict=True)])
            / size
        )

    expected = {
        name: change(**{name: 1.1 * getattr(Params(), name)}, size=0.1)
        for name in ("cart_mass", "pole_mass", "pole_length", "pole_com")
    } | {
        "push_size": change(0.1 * along, size=0.1),
        "push_turn": change(0.01 * across, size=0.01),
        "force_right": change((1.0, 0.0)),
        "force_forward": change((0.0, 1.0)),
        "torque_right": np.array([[0, 0], [DT, 0]]),
        "torque_forward": np.array([[0, 0], [0, DT]]),
        "offset_angle": np.zeros((2, 2)),
    }
    assert tuple(expected) == directions.OF_CARTPOLE
    for place, (name, derivative) in enumerate(expected.items()):
        quotient = np.stack([of[place] for of in changes])
        # The response to a force is that of an upright pole; quotients are of float32.
        np.testing.assert_allclose(quotient, derivative, rtol=0.01, atol=2e-4, err_msg=name)


def test_an_offset_of_angles_turns_readings_about_both_axes():
    """By one angle about x and y of the world, of which a lean along y has the other sign."""
    upright = replace(sight.Sighting.nothing().reported, qw=jnp.float32(1))
    turned = replace(upright, qx=jnp.float32(0.5e-3), qy=jnp.float32(0.5e-3))
    expected = np.zeros((11, 2))
    expected[directions.OF_CARTPOLE.index("offset_angle")] = 1, -1
    np.testing.assert_array_equal(directions.of_angles(), expected)
    tilt = filtering.tilt_between(upright, turned) / 1e-3
    np.testing.assert_allclose(tilt, expected[-1], rtol=1e-5)


def test_every_direction_of_blocks_is_an_acceleration_along_its_line():
    mean = leaning()
    p, alive = np.stack(mean.block.p).astype(float), np.asarray(mean.block.alive)
    targets = {
        "pull_origin": np.zeros(3),
        "pull_cart": np.array([0.4, -0.7, 0.5]),
        "pull_centroid": p[:, alive].mean(axis=1),
    }
    pulls = {}
    for name, target in targets.items():
        away = target[:, None] - p
        pulls[name] = away / np.sqrt((away**2).sum(axis=0))
    slab = np.asarray(bank.wind_on_block(mean.block.p.z))
    axes = np.eye(3)[:, :, None]
    down = np.broadcast_to(-axes[2], (3, 4))
    expected = {"block_weight": down, **pulls, "wind_x": slab * axes[0], "wind_y": slab * axes[1]}
    assert tuple(expected) == directions.OF_BLOCKS
    changes = directions.of_blocks(mean)
    for place, (name, direction) in enumerate(expected.items()):
        np.testing.assert_allclose(
            changes[place], DT * direction, rtol=1e-5, atol=1e-8, err_msg=name
        )


# The sequential test ------------------------------------------------------------------------------


def drawn_scores(random, evidence=1.0):
    j = len(directions.NAMES)
    return Scores(
        *map(
            jnp.float32,
            (
                random.normal(size=j) * evidence,
                random.uniform(0.5, 2.0, size=j) * (np.arange(j) != 4),
                random.normal(size=(4, len(SPREADS))) * evidence,
                random.uniform(0, 0.5),
            ),
        )
    )


def test_the_mixture_is_the_weighted_mean_of_likelihood_ratios():
    """By the definition: over times of change, directions and sizes, with loops in float64."""
    random = np.random.default_rng(6)
    mixture, learn = Mixture.none(), jax.jit(Mixture.learn)
    usual = [drawn_scores(random) for _ in range(3)]
    for scores in (*usual, Scores.none()):
        mixture = learn(mixture, scores)
    assert int(mixture.learned) == 3  # an episode without information teaches nothing
    information = np.mean([np.asarray(s.information, float) for s in usual], axis=0)
    unit = np.divide(1, np.sqrt(information), where=information > 0, out=0 * information)
    sizes = np.array([-8, -4, -2, -1, 1, 2, 4, 8])[None, :] * unit[:, None]
    np.testing.assert_array_equal(GRID, [-8, -4, -2, -1, 1, 2, 4, 8])

    @jax.jit
    def episode(mixture, scores):
        opened = mixture.opened()
        return opened.ended(scores), opened.strength(scores)

    earned = []
    for place in range(6):
        scores = drawn_scores(random, evidence=2.0)
        slope, info = (np.asarray(a, float)[:, None] for a in (scores.slope, scores.information))
        ratios = (
            np.exp(sizes * slope - sizes**2 * info / 2),
            np.exp(np.asarray(scores.surprise, float)),
        )
        earned.append(ratios)
        mixture, strength = episode(mixture, scores)
        total = 30 / (place + 1 + 30)  # a change that is still to come
        for initial in range(place + 1):
            weight = 30 / (initial + 30) - 30 / (initial + 31)
            of_sizes, of_spreads = (
                np.prod([pair[kind] for pair in earned[initial:]], axis=0).mean() for kind in (0, 1)
            )
            total += weight * (0.9 * of_sizes + 0.1 * of_spreads)
        needed = np.log(1 / (0.9 * 0.01))
        expected = max(np.log(total) / needed, float(scores.largest) / martingale.LIMIT)
        assert float(strength) == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert int(mixture.episodes) == place + 1


@jax.jit
def sequence_after(sequence, tick):
    return sequential._follow(sequence, tick)


def test_a_sequence_counts_each_episode_once(monkeypatch):
    """Scores begin anew with an episode; training sets what is usual, all else is evidence."""
    one = drawn_scores(np.random.default_rng(8))

    def add(track, scores, *tick):
        return track, jax.tree.map(jnp.add, scores, one)

    monkeypatch.setattr(sequential, "take_in", add)
    step = jax.jit(lambda *given: sequential._follow(*given))
    yes, no = jnp.asarray(True), jnp.asarray(False)

    def tick(first, nominal):
        rest = jnp.full(4, 0.01), ACTION, sight.Sighting.nothing()
        return sequential.Tick(*rest, first, ~first, jnp.ones(4, bool), nominal)

    sequence, mixture, number = sequential.Sequence.none(), Mixture.none(), 0
    twice = jax.tree.map(lambda leaf: 2 * leaf, one)
    for before, nominal in ((None, yes), (yes, yes), (yes, no), (no, no), (no, yes), (yes, no)):
        if before is not None:
            mixture = mixture.learn(twice) if before else mixture.ended(twice)
        mixture = mixture if nominal else mixture.opened()
        for count, first in ((1, yes), (2, no)):
            sequence, strength = step(sequence, tick(first, nominal))
            scores = jax.tree.map(lambda leaf, count=count: count * leaf, one)
            close = partial(np.testing.assert_allclose, rtol=1e-5)
            jax.tree.map(close, sequence.scores, scores)
            jax.tree.map(close, sequence.mixture, mixture)
            assert bool(sequence.nominal) == bool(nominal)
            expected = 0.0 if nominal else float(mixture.strength(scores))
            assert float(strength) == pytest.approx(expected, rel=1e-4)
            number += 1
    assert int(sequence.mixture.episodes) == 3 and int(sequence.mixture.learned) == 3


def test_noise_that_becomes_known_in_an_episode_teaches_nothing_of_it():
    """Training whose first observation was skipped is not usual; it is no evidence either."""
    yes, no = jnp.asarray(True), jnp.asarray(False)
    one = drawn_scores(np.random.default_rng(9))
    rest = jnp.full(4, 0.01), ACTION, sight.Sighting.nothing()
    midst = sequential.Tick(*rest, no, no, jnp.zeros(4, bool), yes)
    sequence, strength = sequence_after(sequential.Sequence.none(), midst)
    assert not sequence.nominal and float(strength) == 0
    begins = sequential.Tick(*rest, yes, no, jnp.zeros(4, bool), yes)
    after, _ = sequence_after(replace(sequence, scores=one), begins)
    assert int(after.mixture.learned) == 0 and not np.any(after.mixture.information)
    assert after.nominal
