"""The planner's estimate of the physics, by plain loops in float64 and by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import pushes, repair, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d.types import Params, Pose, Sphere, Vector

DT, DRAG = 0.02, float(np.float32(0.04))
PAIRS = [
    (length, mass)
    for length in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    for mass in (1.0, 2.0, 5.0, 10.0)
]


def vector(rows):
    return Vector(*np.asarray(rows, np.float32).T)


def report(p, v, x=0.0, count=4):
    """An observation of four blocks and an upright pole."""
    zero = np.float32(0)
    pose = Pose(np.float32(x), zero, zero + 1, zero, zero, zero, zero, zero + 1)
    block = Sphere(vector(p), vector(v), np.ones(4, bool))
    return Sighting(
        pose, zero, zero, Vector(zero, zero, zero), block, Vector(zero, zero, zero), np.int32(count)
    )


def slowed(v):
    """Velocities after a tick of drag, and of no gravity: blocks float."""
    return v * (1 - DT * DRAG * (1 + np.linalg.norm(v, axis=-1, keepdims=True)))


update = jax.jit(repair.update)


def learnt(fit, before, after, action=0, first=False):
    return jax.device_get(update(fit, Transition(before, np.int32(action), after, np.bool_(first))))


def test_the_best_pair_has_the_least_score():
    draw, chosen = np.random.default_rng(3), set()
    best_of = jax.jit(repair._best)
    for _ in range(60):
        ticks = draw.integers(1, 9)
        residual = draw.uniform(0, 4e-3, 32) * ticks
        force = draw.choice([0.03, 0.06, 3.0]) * draw.normal(size=(2, 32))
        square = (force**2).sum(0) * (1 + draw.uniform(0, 0.2, 32))
        fit = replace(
            repair.no_fit(),
            ticks=np.float32(ticks),
            residual=np.float32(residual),
            force_x=np.float32(force[0] * ticks),
            force_y=np.float32(force[1] * ticks),
            square=np.float32(square * ticks),
        )
        size = np.hypot(*force)
        score = residual / ticks + 0.01 * np.sqrt(square - size**2) + 1e-4 * size
        score += 4e-3 * (size > 0.05) + 1.5e-3 * (np.arange(32) > 0)
        best, *mean = best_of(fit)
        assert int(best) == np.argmin(score)
        np.testing.assert_allclose(mean, force[:, best], rtol=1e-5)
        length, mass, _ = repair.structure(fit)
        assert (float(length), float(mass)) == PAIRS[int(best)]
        chosen.add(int(best))
    assert len(chosen) > 8


def test_a_field_is_fitted_with_forgetting():
    """Four forces that are all at work; an odd tick then counts as unexplained."""
    draw = np.random.default_rng(8)
    sizes = np.array([-6.0, 2.0, -1.5, 0.8])
    p = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    fit, normal, moment, unexplained = repair.no_fit(), np.zeros((4, 4)), np.zeros(4), 0.0
    for tick in range(12):
        p = p + draw.uniform(-0.3, 0.3, p.shape)
        v = draw.uniform(-5, 5, p.shape)
        targets = (np.array([0.5, 0, 0.5]), p.mean(0), np.zeros(3))
        basis = np.stack(
            [np.tile([0, 0, 1.0], (4, 1))]
            + [(t - p) / np.linalg.norm(t - p, axis=1, keepdims=True) for t in targets]
        )
        pulled = np.einsum("i,ibc->bc", sizes, basis)
        if tick == 8:
            pulled[0] += [20, -15, 10]
        before, after = report(p, v, x=0.5), report(p, slowed(v) + DT * pulled, x=0.5)
        fit = learnt(fit, before, after)
        normal = 0.97 * normal + np.einsum("ibc,jbc->ij", basis, basis)
        moment = 0.97 * moment + np.einsum("ibc,bc->i", basis, pulled)
        solved = np.linalg.solve(normal + 1e-3 * np.eye(4), moment)
        off = np.linalg.norm(pulled - np.einsum("i,ibc->bc", solved, basis), axis=1)
        odd = np.mean(off > 0.5 + 0.5 * np.linalg.norm(pulled, axis=1))
        unexplained = 0.7 * unexplained + 0.3 * odd
        np.testing.assert_allclose(fit.normal, normal, atol=2e-3)
        # Velocities of 10 m/s in float32 are off by 1e-6, and accelerations by 1e-4.
        np.testing.assert_allclose(fit.moment, moment, atol=2e-2)
        np.testing.assert_allclose(list(repair.field(fit)), solved, atol=2e-2)
        assert float(fit.unexplained) == pytest.approx(unexplained, abs=1e-5)
        assert bool(fit.strays)
    assert unexplained > 0.01
    assert max(np.abs(repair.field(replace(fit, still=jnp.asarray(True))))) == 0


def test_what_is_hit_or_moves_freely_is_no_field():
    p = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    v = np.full((4, 3), 3.0)
    for extra, strays in ((0.0, False), (0.0015, False), (0.0025, True), (2.5, False)):
        # 2 mm/s in a tick is a field; 100 m/s^2, or 2 m/s, is a blow.
        after = slowed(v) + np.array([0, 0, extra])
        fit = learnt(repair.no_fit(), report(p, v), report(p, after))
        assert bool(fit.strays) == strays
        assert bool(np.any(fit.normal)) == strays


@pytest.mark.parametrize(
    ("depth", "speed", "factor", "restitution"),
    [
        (0.1, 3.0, 1.35**2, 1.35**2),
        (0.1, 3.0, 1.02, 1.0),  # up to 1.03, walls are nominal
        (0.1, 3.0, 5.0, 3.0),  # at most 3
        (0.1, 0.9, 1.5, None),  # a bounce below 1 m/s shows nothing
        (0.47, 3.0, 1.5, None),  # nor does one of a block deep in the wall
    ],
)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [-1, 1])
def test_the_last_bounce_shows_the_restitution(depth, speed, factor, restitution, axis, side):
    # Blocks touch walls at 4.45 m, the floor at 0.45 m and the ceiling at 9.45 m.
    p = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    v = np.zeros((4, 3))
    p[1, axis] = side * (4.45 + depth) if axis < 2 else 4.95 + side * (4.5 + depth)
    v[1, axis] = side * speed
    after = slowed(v)
    # Overlaps beyond 1e-5 m are pushed out at 0.08 of their depth in a tick.
    after[1, axis] = -side * (factor * abs(after[1, axis]) + 0.08 / DT * (depth - 1e-5))
    fit = learnt(
        replace(repair.no_fit(), restitution=np.float32(2.5)), report(p, v), report(p, after)
    )
    assert float(fit.restitution) == pytest.approx(restitution or 2.5, rel=1e-4)


def test_a_bounce_early_off_a_wall_is_one_of_wide_blocks():
    """A block of 1 m turns at 3.95 m, where one of 0.5 m flies on."""
    p = np.array([[3.96, 3, 5], [-3, 2, 6], [-3, -3, 2.5], [1, -3, 7.0]])
    v = np.zeros((4, 3))
    v[0, 0] = 4.0
    after = slowed(v)
    wide = after.copy()
    wide[0, 0] = -after[0, 0] - 0.08 / DT * (0.01 - 1e-5)
    assert bool(learnt(repair.no_fit(), report(p, v), report(p, wide)).wide)
    assert not bool(learnt(repair.no_fit(), report(p, v), report(p, after)).wide)
    assert not bool(learnt(repair.no_fit(), report(p, v), report(p, 1.5 * wide)).wide)


def test_what_was_learnt_stays_where_no_block_shows_more():
    fit = replace(
        repair.no_fit(),
        wide=np.bool_(True),
        restitution=np.float32(1.7),
        unexplained=np.float32(0.4),
        normal=np.eye(4, dtype=np.float32),
        moment=np.ones(4, np.float32),
    )
    p, v = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]]), np.full((4, 3), 3.0)
    before = report(p, v)
    odd = report(p, v + 1)
    gone = replace(odd, block=replace(odd.block, alive=np.zeros(4, bool)))
    after = learnt(fit, before, gone)
    for name in ("wide", "restitution", "unexplained", "normal", "moment", "strays"):
        np.testing.assert_array_equal(getattr(after, name), getattr(fit, name), err_msg=name)
    assert bool(learnt(fit, before, odd).strays)


def test_wide_blocks_are_away_from_cart_and_pole_farther_off():
    """A block 0.8 m from the pole moves freely, unless blocks are 1 m wide."""
    p = np.array([[0.8, 0, 1.0], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    v = np.full((4, 3), 1.0)
    after = slowed(v)
    after[0] += [0, 0, 0.5]
    for wide, strays in ((False, True), (True, False)):
        fit = replace(repair.no_fit(), wide=np.bool_(wide))
        fit = learnt(fit, report(p, v), report(p, after))
        assert bool(fit.strays) == strays
        assert bool(fit.touched) == wide
        assert float(fit.ticks) == (0 if wide else 1)


def test_blocks_on_lines_and_crowds_are_noticed():
    p, none = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]]), np.zeros((4, 3))
    still = learnt(repair.no_fit(), report(p, none), report(p, none), first=True)
    assert (bool(still.still), bool(still.moved), bool(still.crowded)) == (True, False, False)
    assert float(still.ticks) == 0  # a first observation shows velocities only
    stays = learnt(still, report(p, none), report(p, none))
    moves = learnt(still, report(p, none), report(p + 0.01, none))
    wakes = learnt(moves, report(p, none), report(p, none + 1))
    assert [(bool(f.still), bool(f.moved)) for f in (stays, moves, wakes)] == [
        (True, False),
        (True, True),
        (False, True),
    ]
    assert not bool(learnt(wakes, report(p, none), report(p, none)).still)
    crowd = learnt(repair.no_fit(), report(p, none + 1), report(p, none + 1, count=5))
    assert bool(crowd.crowded)
    assert bool(learnt(crowd, report(p, none + 1), report(p, none + 1)).crowded)


def test_a_touched_cart_is_fitted_no_more():
    """A cart at a wall, or a block at the pole, ends the fit for the episode."""
    p, v = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]]), np.ones((4, 3))
    near = p.copy()
    near[2] = [0.5, 0, 1]
    for place, x, touched in ((p, 0.0, False), (p, 4.41, True), (near, 0.0, True)):
        fit = learnt(repair.no_fit(), report(place, v, x=x), report(place, slowed(v), x=x))
        assert bool(fit.touched) == touched
        assert float(fit.ticks) == (not touched)
        again = learnt(fit, report(p, v), report(p, slowed(v)))
        assert float(again.ticks) == 2 * (not touched)


def test_forces_on_the_cart_are_summed_for_each_pair():
    """A cart of 1 kg that is blown at -3 N along y, and pushed."""
    p, v = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]]), np.ones((4, 3))
    before, fit = report(p, v), repair.no_fit()
    for action in (1, 4, 3):
        force = sight.push(Params(), jnp.int32(action))
        pose, velocity = sight.predicted(Params(), before, force._replace(y=force.y - 3.0))
        after = replace(
            before,
            reported=pose,
            vx=velocity.vx,
            vy=velocity.vy,
            spin=sight.spin_of(pose, velocity),
            block=Sphere(before.block.p, vector(slowed(v)), before.block.alive),
        )
        fit, before, v = learnt(fit, before, after, action), after, slowed(v)
    length, mass, force = repair.structure(fit)
    assert (float(length), float(mass), float(fit.ticks), int(fit.doubt)) == (1, 1, 3, 0)
    np.testing.assert_allclose(force, [0, -3, 0], atol=2e-3)
    assert float(fit.square[0]) == pytest.approx(27, rel=1e-3)
    np.testing.assert_allclose([fit.force_x[0], fit.force_y[0]], [0, -9], atol=5e-3)
    # Another mass needs another force; another length explains the pole by none.
    assert np.all(fit.residual[4:] > 0.01)
    assert np.all(fit.residual[:4] < 1e-4)


def test_the_model_has_every_part_of_the_evidence():
    yes = np.bool_(True)
    fit = replace(
        repair.no_fit(),
        ticks=np.float32(2),
        residual=np.where(np.arange(32) == 25, 0, 1).astype(np.float32),
        force_x=np.full(32, 5.0, np.float32),
        force_y=np.full(32, -7.0, np.float32),
        square=np.full(32, 2 * (2.5**2 + 3.5**2), np.float32),
        normal=np.diag([1.0, 2, 4, 5]).astype(np.float32),
        moment=np.float32([-9, 4, 12, 20]),
        strays=yes,
        restitution=np.float32(1.44),
        wide=yes,
        unexplained=np.float32(0.59),
    )
    p = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    shown = report(p, p)
    model, block, trusted = repair.model_of(fit, shown)
    params = model.params
    assert PAIRS[25] == (8.0, 2.0)
    assert (float(params.pole_length), float(params.cart_mass)) == (8.0, 2.0)
    assert (float(params.block_radius), float(params.block_mass)) == (1.0, 1.0)
    walls = float(params.restitution_wall), float(params.restitution_block)
    assert walls == (pytest.approx(1.2), pytest.approx(1.2))
    np.testing.assert_allclose(model.force, [2.5, -3.5, 0])
    np.testing.assert_allclose(model.field, [-9, 2, 3, 4], rtol=2e-3)
    assert not bool(model.on_lines) and bool(trusted) and np.all(block.alive)
    np.testing.assert_array_equal(np.stack(block.p, -1), p.astype(np.float32))

    def changed(**values):
        return repair.model_of(replace(fit, **values), shown)

    assert not bool(changed(doubt=np.int32(1))[2])
    assert not np.any(changed(unexplained=np.float32(0.61))[1].alive)
    still, _, _ = changed(still=yes)
    assert bool(still.on_lines) and float(still.params.block_mass) == 1e6
    assert float(changed(still=yes, moved=yes)[0].params.block_mass) == 1.0
    crowd, blocks, _ = changed(crowded=yes, unexplained=np.float32(0.9))
    assert np.all(blocks.alive)
    assert float(crowd.params.restitution_wall) == float(crowd.params.restitution_block) == 1.0


@pytest.mark.parametrize(("error", "pushed"), [(0.1, True), (1.9, True), (2.1, False)])
def test_other_pushes_are_in_the_model_where_they_explain_more(monkeypatch, error, pushed):
    """Best other physics: 2.236 N from tick to tick, and 7 N of force; pushes count below 1.936."""
    turned = jnp.array([[0.0, 10.0], [-8.0, 0.0]], jnp.float32)
    other = pushes.PushFit(jnp.int32(3), turned, jnp.float32(error), jnp.float32(1e3))
    assert bool(other.explains)
    monkeypatch.setattr(pushes, "fitted", lambda evidence: other)
    fit = replace(
        repair.no_fit(),
        ticks=np.float32(2),
        residual=np.where(np.arange(32) == 25, 0, 1).astype(np.float32),
        force_y=np.full(32, 14.0, np.float32),
        square=np.full(32, 2 * (49 + 5.0), np.float32),
    )
    p = np.array([[3, 3, 3], [-3, 3, 6], [-3, -3, 2.5], [3, -3, 7.0]])
    model, _, _ = repair.model_of(fit, report(p, p))
    forces = turned if pushed else 10 * jnp.eye(2)
    of_model = pushes.Pushes.of(*((forces[axis, 0], forces[axis, 1]) for axis in range(2)))
    np.testing.assert_array_equal(jax.tree.leaves(model.pushes), jax.tree.leaves(of_model))
    assert int(model.delay) == (3 if pushed else 0)
    sizes = float(model.params.pole_length), float(model.params.cart_mass)
    assert sizes == ((1.0, 1.0) if pushed else PAIRS[25])
    np.testing.assert_array_equal(model.force, [0, 0 if pushed else 7, 0])


def test_inertias_of_the_grid_are_those_of_its_pairs():
    grid = repair._grid()
    assert list(zip(grid.pole_length.tolist(), grid.cart_mass.tolist(), strict=True)) == PAIRS
    assert np.shape(dynamics.bodies(grid).m0) == (32,)
