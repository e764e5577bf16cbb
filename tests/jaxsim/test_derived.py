"""Speeds that follow from places, in the simulator with sensors that err."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxsim
from jaxsim.agents import derived, sight
from jaxsim.agents.derived import SpeedEvidence
from jaxsim.agents.detection import Transition
from jaxsim.agents.sight import Sighting, see
from jaxsim.worlds.cartpole3d.types import Pose

TICKS = 25


def test_rates_are_those_between_two_orientations():
    draw = np.random.default_rng(0)
    for size in (0.0, 1e-4, 0.02, 1.0):
        a = Rotation.random(rng=draw)
        vector = draw.normal(size=3)
        vector *= size / np.linalg.norm(vector)
        b = Rotation.from_rotvec(vector) * a
        zero = np.float32(0)
        poses = [Pose(zero, zero, zero, zero, *np.float32(r.as_quat())) for r in (a, b)]
        for sign in (1, -1):  # both quaternions of an orientation
            second = Pose(zero, zero, zero, zero, *np.float32(sign * b.as_quat()))
            rate = sight.rate_between(poses[0], second)
            # Quaternions in float32, 6e-8, over a tick.
            np.testing.assert_allclose(rate, vector / 0.02, atol=3e-5, rtol=1e-5)


@cache
def _world():
    env = jaxsim.make("CartPole3D-v0", {"sensors/noise_rate": 0.1, "sensors/delay": 1})[0]

    @jax.jit
    def play(params):
        """What reports show of their speeds, and the reports."""
        key = jax.random.key(3)

        def tick(carry, number):
            state, evidence, before = carry
            first = number == 0  # the tick without a push that `reset` plays
            action = jnp.where(first, 0, jnp.array([0, 1, 3, 2, 4])[number % 5])
            report, state, *_ = env.step(jax.random.fold_in(key, number), state, action, params)
            after = see(report)
            shown = derived.follow(
                evidence, Transition(before, action, after, first), jnp.bool_(True)
            )
            return (state, shown.evidence, after), (shown, after)

        start = env.start(key, params), SpeedEvidence.none(), Sighting.nothing()
        return jax.lax.scan(tick, start, jnp.arange(TICKS))[1]

    return play


def followed(blocks=0, **errors):
    """What is shown by reports of a room with such sensors, and the reports; leaves (T, ...)."""
    values = {f"sensors/{name}": value for name, value in errors.items()}
    values |= {"blocks/count_min": blocks, "blocks/count_max": blocks}
    _, params = jaxsim.make("CartPole3D-v0", values)
    return jax.device_get(_world()(params))


def speeds(report):
    return np.stack([report.vx, report.vy, *report.spin], axis=-1)


@pytest.mark.parametrize(
    ("errors", "wrong"),
    [
        ({}, (False, False)),
        ({"noise_rate": 0.3}, (False, True)),
        ({"noise_velocity": 0.3}, (True, False)),
        ({"noise_velocity": 0.3, "noise_rate": 0.3}, (True, True)),
        ({"offset_rate": 0.1}, (False, True)),
        ({"step_rate": 1.0}, (False, True)),
        ({"gain_rate": 0}, (False, True)),
        ({"gain_velocity": 0}, (True, False)),
        # Places are wrong here, or all is late, and the reported speeds are right.
        ({"noise_position": 0.01}, (False, False)),
        ({"step_position": 0.05}, (False, False)),
        ({"noise_angle": 0.005}, (False, False)),
        ({"step_angle": 0.01}, (False, False)),
        ({"gain_position": 0}, (False, False)),
        ({"gain_angle": 0}, (False, False)),
        ({"offset_position": 0.5}, (False, False)),
        ({"delay": 3}, (False, False)),
    ],
    ids=lambda value: "+".join(value) or "none" if isinstance(value, dict) else "",
)
def test_wrong_speeds_are_replaced_and_right_ones_are_not(errors, wrong):
    shown, reports = followed(**errors)
    assert shown.evidence.wrong[-1].tolist() == list(wrong)
    newest = speeds(shown.transition.after)
    if not any(wrong):
        np.testing.assert_array_equal(newest, speeds(reports))
        assert not shown.changed.any()
        return
    # From the third report on, speeds are those of one tick ago in an exact world.
    exact = speeds(followed()[1])
    late = shown.evidence.wrong.any(axis=1)
    assert late[2:].all() and not late[:2].any()
    # Places of float32 within 5 m, 2e-7, over a tick.
    np.testing.assert_allclose(newest[2:], exact[1:-1], atol=3e-5)
    np.testing.assert_allclose(speeds(shown.transition.before)[2:], exact[:-2], atol=3e-5)
    assert shown.transition.action[2:].tolist() == [
        [1, 3, 2, 4, 0][t % 5] for t in range(TICKS - 2)
    ]
    assert shown.changed.tolist() == [False, False, True, *[False] * (TICKS - 3)]


def test_nothing_is_learnt_of_speeds_once_something_has_touched_the_cart():
    """Its yaw, which no report has, turns the pole."""
    nothing = Sighting.nothing()
    evidence = SpeedEvidence.none()
    draw = np.random.default_rng(0)
    for number in range(6):
        vx, vy = np.float32(draw.normal(size=2))
        report = replace(nothing, vx=vx, vy=vy)
        step = Transition(report, jnp.int32(0), nothing, jnp.bool_(number == 0))
        evidence = derived.follow(evidence, step, jnp.bool_(False)).evidence
    assert int(evidence.reports) == 6 and float(evidence.ticks) == 0
    assert not evidence.contradictions.any() and not bool(evidence.late)


def test_speeds_of_blocks_are_those_from_their_last_two_places():
    (shown, _), (_, exact) = (followed(blocks=4, noise_velocity=size) for size in (0.5, 0))
    ours, exact = (np.stack(report.block.v, -1) for report in (shown.transition.after, exact))
    assert np.abs(exact).max() > 1
    # Places of float32 within 10 m, 5e-7 each, over a tick.
    np.testing.assert_allclose(ours[2:], exact[1:-1], atol=1e-4)
