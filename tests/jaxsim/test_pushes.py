"""What pushes do, by plain loops in float64 and in the simulator."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import pushes, repair, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.pushes import PushEvidence
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d.types import Params, Pose, Vector

SIGNS = {0: (0, 0), 1: (1, 0), 2: (-1, 0), 3: (0, 1), 4: (0, -1)}

force_between = jax.jit(pushes.force_between)
add = jax.jit(pushes.add)
fitted = jax.jit(pushes.fitted)


def leaning(draw):
    """A report of a pole that leans and turns."""
    half = draw.uniform(-0.05, 0.05, 2)
    zero, one = np.float32(0), np.float32(1)
    pose = Pose(
        zero, zero, one, zero, *np.float32(half), zero, np.float32(np.sqrt(1 - half @ half))
    )
    vx, vy, *spin = np.float32(draw.uniform(-0.5, 0.5, 5))
    return replace(Sighting.nothing(), reported=pose, vx=vx, vy=vy, spin=Vector(*spin))


@jax.jit
def following(params, report, fx, fy):
    pose, velocity = sight.predicted(params, report, Vector(fx, fy, 0.0 * fx))
    spin = sight.spin_of(pose, velocity)
    return replace(report, reported=pose, vx=velocity.vx, vy=velocity.vy, spin=spin)


def test_the_force_of_a_tick_follows_from_two_reports():
    draw = np.random.default_rng(4)
    for _ in range(20):
        before, (fx, fy) = leaning(draw), np.float32(draw.uniform(-30, 30, 2))
        force, turn = force_between(before, following(Params(), before, fx, fy))
        # Speeds in float32, 6e-8 m/s and rad/s: 1 N changes them by 0.016 and 0.018 in a tick.
        # Products of speeds and leans, which the force changes too, add the rest.
        np.testing.assert_allclose(force, [fx, fy], atol=2e-3)
        assert float(turn) < 1e-5
        # Another pole is no force on the cart.
        _, turn = force_between(before, following(Params(pole_length=4.0), before, fx, fy))
        assert float(turn) > 1e-3


def evidence_of(force, delay, actions, late=0):
    """Evidence of actions whose pushes have some forces."""
    evidence = PushEvidence.none()
    for tick, action in enumerate(actions):
        acting = actions[tick - delay] if tick >= delay else 0
        pushed = np.float32(np.array(SIGNS[acting]) @ force)
        evidence = add(evidence, jnp.int32(action), pushed, jnp.float32(0), jnp.bool_(tick >= late))
    return evidence


@pytest.mark.parametrize("delay", range(9))
@pytest.mark.parametrize("force", [[[10, 0], [0, 10]], [[-7, 3], [0.5, 22]], [[0, 0], [0, -10]]])
def test_forces_and_delay_are_those_of_the_pushes(delay, force):
    draw = np.random.default_rng(delay)
    actions = draw.integers(0, 5, 30).tolist()
    fit = fitted(evidence_of(np.array(force), delay, actions))
    assert int(fit.delay) == delay
    # The prior is worth a thousandth of a tick; a push of at most 22 N acts in several.
    np.testing.assert_allclose(fit.force, force, atol=1e-2)
    assert float(fit.error) < 1e-2


def test_the_fit_is_that_of_least_squares():
    """With forces that vary, and a part of each tick that only a turn of the pole shows."""
    draw, evidence = np.random.default_rng(1), PushEvidence.none()
    actions, forces = draw.integers(1, 5, 40), draw.normal(size=(40, 2)) * 5
    turns = draw.uniform(0, 0.02, 40)
    for action, force, turn in zip(actions, np.float32(forces), np.float32(turns), strict=True):
        evidence = add(evidence, jnp.int32(action), force, turn, jnp.bool_(True))
    signs = np.array([SIGNS[action] for action in actions])
    errors, solutions = [], []
    for delay in range(9):
        rows = np.concatenate([np.zeros((delay, 2)), signs[: 40 - delay]])
        solutions.append(np.linalg.lstsq(rows, forces, rcond=None)[0])
        errors.append(((forces - rows @ solutions[-1]) ** 2).sum() + ((55 * turns) ** 2).sum())
    fit = fitted(evidence)
    assert int(fit.delay) == int(np.argmin(errors))
    # The prior draws forces of some 20 ticks towards 10 N by a thousandth of a tick.
    np.testing.assert_allclose(fit.force, solutions[int(fit.delay)], atol=5e-3)
    assert float(fit.error) == pytest.approx(np.sqrt(min(errors) / 40), rel=1e-3)


def test_of_two_delays_that_explain_alike_the_one_with_usual_pushes_is_chosen():
    # A push in each second tick: the forces of delay 1 are those of delay 0 with the other sign.
    ticks = [1, 2] * 8
    evidence = evidence_of(np.array([[-10.0, 0.0], [0.0, -10.0]]), 0, ticks, late=1)
    fit = fitted(evidence)
    assert int(fit.delay) == 1
    # The prior is worth a thousandth of a tick, and its push is the same.
    np.testing.assert_allclose(fit.force[0, 0], 10.0, rtol=1e-5)


def test_ticks_that_show_nothing_are_left_out():
    evidence = evidence_of(np.eye(2), 0, [1, 1, 2, 3], late=2)
    assert (float(evidence.ticks), float(evidence.square)) == (2, 2)
    assert evidence.number[:2].tolist() == [[1, 1], [2, 0]]
    assert evidence.actions.tolist() == [3, 2, 1, 1, 0, 0, 0, 0, 0]


def test_a_force_is_compared_with_that_of_the_push_that_acts():
    evidence = evidence_of(np.array([[4.0, 0], [0, -6]]), 2, [1, 3, 3, 2, 4, 1, 3])
    fit = fitted(evidence)
    assert int(fit.delay) == 2
    # The fifth action, backward, acts in the seventh tick; the prior adds a thousandth.
    assert float(pushes.missed(fit, evidence, jnp.array([0.5, 6.0]))) == pytest.approx(
        0.5, abs=1e-2
    )


@pytest.mark.parametrize(
    ("force", "actions", "expected"),
    [
        ([[10, 0], [0, 10]], [1], False),
        ([[-10, 0], [0, -10]], [1], True),
        ([[-10, 0], [0, -10]], [1, 0], False),  # the last tick had no push
        ([[0, 0], [0, 0]], [3], True),
        ([[0, 10], [-10, 0]], [4], True),
        ([[-1.5, 0], [0, -1.5]], [2], False),  # as a wind of 11.5 N has it
    ],
)
def test_pushes_that_do_not_move_the_cart_their_way_are_unclear(force, actions, expected):
    assert bool(pushes.unclear(evidence_of(np.array(force), 0, actions))) == expected


def repaired(force, delay, actions, wind=(0.0, 0.0)):
    """What is fitted in a world of such pushes, after each tick."""
    update = jax.jit(repair.update)
    report = leaning(np.random.default_rng(2))
    fit = update(repair.no_fit(), Transition(report, jnp.int32(0), report, jnp.bool_(True)))
    for tick, action in enumerate(actions):
        acting = actions[tick - delay] if tick >= delay else 0
        fx, fy = np.float32(np.array(SIGNS[acting]) @ np.array(force) + wind)
        after = following(Params(), report, fx, fy)
        fit = update(fit, Transition(report, jnp.int32(action), after, jnp.bool_(False)))
        report = after
        yield fit, repair.model_of(fit, report)


def test_a_model_has_other_pushes_once_nothing_else_explains_the_cart():
    (first, before), *_, (last, (model, _, trusted)) = repaired([[-10, 0], [0, -10]], 0, [1, 0, 3])
    # After one tick, a force against the push is as likely. The prior of 10 N counts a thousandth
    # of a tick, 0.02 N here.
    assert bool(repair.unclear(first)) and not bool(repair.unclear(last))
    assert float(before[0].force.x) == pytest.approx(-20, abs=0.05)
    assert bool(trusted) and int(last.doubt) == 0
    np.testing.assert_allclose(
        [*model.pushes.right, *model.pushes.forward], [-1, 0, 0, -1], atol=1e-3
    )
    np.testing.assert_allclose(model.pushes.sizes, 10, atol=0.05)
    np.testing.assert_allclose([*model.force], 0)
    assert int(model.delay) == 0


def test_a_wind_against_the_pushes_is_no_other_push():
    *_, (fit, (model, *_)) = repaired([[10, 0], [0, 10]], 0, [1, 0, 3], wind=(-20.0, 0.0))
    assert float(model.force.x) == pytest.approx(-20, abs=0.05)
    assert [*model.pushes.right, *model.pushes.forward, *model.pushes.sizes] == [1, 0, 0, 1, 10, 10]
    assert not bool(repair.unclear(fit))


def test_late_pushes_are_expected_late():
    models = [model for _, (model, *_) in repaired([[10, 0], [0, 10]], 4, [1, 0, 4, 2, 3, 1, 1, 3])]
    assert [int(model.delay) for model in models[1:]] == [2, 3, 4, 4, 4, 4, 4]
    np.testing.assert_allclose(models[-1].pushes.sizes, 10, atol=0.05)


def test_pushes_that_the_pole_contradicts_are_doubted():
    """Its turn shows another force than the cart's speed does."""
    report = leaning(np.random.default_rng(2))
    *_, (fit, _) = repaired([[-10, 0], [0, -10]], 0, [1, 0, 3, 2, 4])
    assert int(fit.doubt) == 0
    after = replace(
        following(Params(), report, np.float32(-10), np.float32(0)),
        spin=Vector(*np.float32([1, 0, 0])),
    )
    update = jax.jit(repair.update)
    assert (
        int(update(fit, Transition(report, jnp.int32(1), after, jnp.bool_(False))).doubt)
        == repair.DOUBT
    )
