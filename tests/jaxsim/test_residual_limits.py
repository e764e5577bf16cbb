"""Allowances for noise in every comparison of `residual`, each against all the others."""

from dataclasses import fields, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.agents import bank, limits, residual, sequential, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.limits import NoiseLimits
from jaxsim.agents.noise_scale import NoiseScale
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d.types import DT, Sphere, Vector

NONE = limits.of(NoiseScale.none(), jnp.asarray(False))
SIZES = {
    "position": 0.05,
    "velocity": 0.2,
    "angle": 0.05,
    "rate": 0.05,
    "place": 0.01,
    "cart_speed": 0.05,
    "block_speed": 0.01,
    "turn": 0.01,
    "spin": 0.05,
    "blur": 0.5,
    "noisy": True,
}
"""Allowances that are tried one by one."""


def allowing(name):
    """Limits of exact sensors but for one allowance."""
    value = jnp.asarray(SIZES[name], getattr(NONE, name).dtype)
    return replace(NONE, **{name: value})


@pytest.fixture(scope="module")
def watch():
    """`residual.watch` with given limits, in which any three blocks hit otherwise than foretold.

    Neither the sequential test nor the tick that foretells hits is compiled; both take long.
    """
    with pytest.MonkeyPatch.context() as patch:

        def hit(old, shown, near, pose):
            return jnp.where((shown.after.count == 3) & ~shown.first, 2.0, 0.0)

        def watched(memory, shown, limit):
            patch.setattr(limits, "of", lambda noise, nominal: limit)
            return residual.residual.watch(memory, shown)[0]

        patch.setattr(residual, "_compare_hits", hit)
        patch.setattr(sequential, "follow", lambda needed, sequence, tick: (sequence, 0.0))
        yield jax.jit(watched)


def standing(**values):
    """An observation of an upright pole in the middle of the room, without blocks."""
    nothing = Sighting.nothing()
    pose = {"qw": jnp.float32(1)} | {
        name: jnp.float32(value) for name, value in values.pop("pose", {}).items()
    }
    numbers = {
        name: value if isinstance(value, Vector | Sphere) else jnp.float32(value)
        for name, value in values.items()
    }
    return replace(nothing, reported=replace(nothing.reported, **pose), **numbers)


def with_blocks(report, places, speeds):
    """With blocks at places, m, of velocities, m/s, (N, 3) each."""
    alive = jnp.arange(sight.SLOTS) < len(places)
    rows = (np.zeros((sight.SLOTS, 3), np.float32) for _ in range(2))
    vectors = []
    for row, values in zip(rows, (places, speeds), strict=True):
        row[: len(values)] = values
        vectors.append(Vector(*jnp.asarray(row.T)))
    return replace(report, block=Sphere(*vectors, alive), count=jnp.int32(len(places)))


FAR = [(3.0, 3.0, 2.5), (-3.0, 3.0, 5.0), (3.0, -3.0, 7.5)]
FLYING = [(7.0, -8.0, 9.0)] * 3


def start(**values):
    return with_blocks(standing(**values), FAR, FLYING)


def start_of(place=FAR[0], speed=FLYING[0]):
    return with_blocks(standing(), [place, *FAR[1:]], [speed, *FLYING[1:]])


STARTS = {
    "cart far out": (start(pose={"x": 3.02}), {"position"}),
    "cart far back": (start(pose={"y": -3.02}), {"position"}),
    "fast cart": (start(vy=0.021), {"velocity"}),
    "leaning pole": (start(pose={"qx": 0.0102}), {"angle"}),
    "turning pole": (start(spin=Vector(*jnp.float32([0.0, -0.034, 0.0]))), {"rate"}),
    "slow block": (start_of(speed=(5.9, -8.0, 9.0)), {"velocity"}),
    "fast block": (start_of(speed=(7.0, -10.0, 9.0)), {"velocity"}),
    "odd block beside the cart": (start_of((1.3, 0.6, 0.6), (3.0, -8.0, 9.0)), {"blur"}),
    "odd block beside another": (start_of((3.0, -1.8, 7.5), (3.0, -8.0, 9.0)), {"blur"}),
    "aimed block": (start_of((3.5, 3.5, 4.0), (-7.0, -7.0, -7.0)), {"noisy"}),
}
"""Odd starts, and which allowances excuse them."""


@pytest.mark.parametrize("name", STARTS)
def test_odd_starts_are_excused_by_their_allowances_only(name, watch):
    report, excuses = STARTS[name]
    memory = residual.residual.init()
    shown = Transition(report, jnp.int32(0), report, jnp.asarray(True))
    assert float(watch(memory, shown, NONE).now.strength) >= 1
    excused = {
        name for name in SIZES if float(watch(memory, shown, allowing(name)).now.strength) < 1
    }
    assert excused == excuses


@cache
def next_of():
    """Compiled: what the nominal world makes of an observation without a push."""

    @jax.jit
    def following(before):
        pose, _ = sight.moving(before)
        push = sight.push(residual.NOMINAL, jnp.int32(0))
        _, speed = sight.predicted(residual.NOMINAL, before, push)
        v = bank.blocks_after(residual.NOMINAL, before.block)
        block = Sphere(sight.place_next(before.block.p, v), v, before.block.alive)
        spin = sight.spin_of(pose, speed)
        return replace(before, reported=pose, vx=speed.vx, vy=speed.vy, spin=spin, block=block)

    return following


def pushed(block, by):
    """The first block with another velocity, and moved by it."""
    change = jnp.zeros(sight.SLOTS).at[0].set(by)
    v = block.v._replace(x=block.v.x + change)
    return replace(block, v=v, p=block.p._replace(x=block.p.x + DT * change))


def of_pose(after, **by):
    r = after.reported
    return replace(after, reported=replace(r, **{n: getattr(r, n) + v for n, v in by.items()}))


def faster(after, by=1e-4):
    return replace(after, block=pushed(after.block, by))


def jumped(after):
    p = after.block.p
    return replace(after, block=replace(after.block, p=p._replace(x=p.x + 1e-3)))


def unchanged(after):
    return after


MIDDLE = standing(vx=0.3, spin=Vector(*jnp.float32([0.1, 0.2, 0.0])))
WALL = 4.95 - 0.5
STEPS = {
    "cart elsewhere": (MIDDLE, lambda after: of_pose(after, x=1e-3), {"place"}),
    "fast cart": (MIDDLE, lambda after: replace(after, vy=after.vy + 0.01), {"cart_speed"}),
    "turned pole": (MIDDLE, lambda after: of_pose(after, qy=1e-3), {"turn"}),
    "turning pole": (
        MIDDLE,
        lambda after: replace(after, spin=after.spin._replace(x=after.spin.x + 0.01)),
        {"spin"},
    ),
    "fast cart at a wall": (
        standing(pose={"x": 4.2}),
        lambda after: replace(after, vx=after.vx + 0.01),
        {"cart_speed", "blur"},
    ),
    "fast cart near a block": (
        with_blocks(standing(), [(1.3, 0.6, 0.6)], [(0.0, 0.0, 1.0)]),
        lambda after: replace(after, vx=after.vx + 0.01),
        {"cart_speed", "blur"},
    ),
    "block elsewhere": (with_blocks(MIDDLE, FAR[:1], FLYING[:1]), jumped, {"place"}),
    "fast block": (with_blocks(MIDDLE, FAR[:1], FLYING[:1]), faster, {"block_speed"}),
    "fast block near the cart": (
        with_blocks(standing(), [(1.3, 0.6, 0.6)], [(0.0, 0.0, 1.0)]),
        faster,
        {"block_speed", "blur"},
    ),
    "fast block near another": (
        with_blocks(MIDDLE, [(3.0, 3.0, 5.0), (3.0, 1.8, 5.0)], [(1.0, 0.0, 1.0)] * 2),
        faster,
        {"block_speed", "blur"},
    ),
    "fast block near a wall": (
        with_blocks(MIDDLE, [(WALL - 0.2, 3.0, 5.0)], [(1.0, 0.0, 1.0)]),
        faster,
        {"block_speed", "blur"},
    ),
    "block that a wall returns too fast": (
        with_blocks(MIDDLE, [(WALL + 0.01, 3.0, 5.0)], [(5.0, 0.0, 1.0)]),
        lambda after: faster(after, -0.5),
        {"noisy"},
    ),
    "hit of three blocks": (with_blocks(MIDDLE, FAR, FLYING), unchanged, {"noisy"}),
}
"""Observations, what is odd about the next ones, and which allowances excuse it."""


@pytest.mark.parametrize("name", STEPS)
def test_odd_steps_are_excused_by_their_allowances_only(name, watch):
    before, odd, excuses = STEPS[name]
    memory = residual.residual.init()
    after = odd(next_of()(before))
    shown = Transition(before, jnp.int32(0), after, jnp.asarray(False))
    assert float(watch(memory, shown, NONE).now.strength) >= 1
    excused = {
        name for name in SIZES if float(watch(memory, shown, allowing(name)).now.strength) < 1
    }
    assert excused == excuses


def test_every_allowance_is_tried():
    excuses = set.union(*(excuse for _, excuse in STARTS.values()))
    excuses |= set.union(*(excuse for *_, excuse in STEPS.values()))
    assert excuses == set(SIZES)
    assert set(SIZES) == {field.name for field in fields(NoiseLimits)} - {"deviations"}


def lean(angle):
    half = jnp.float32(angle / 2)
    return standing(pose={"qx": jnp.sin(half), "qw": jnp.cos(half)})


def test_the_end_of_an_episode_is_known_as_well_as_angles_are(watch):
    """Neither a pole that has fallen for sure goes on, nor one that stands for sure ends."""
    limit, memory = float(residual.NOMINAL.lean_limit), residual.residual.init()
    for excess, angle, goes_on, falls in (
        (0.01, "rate", True, True),
        (0.01, "angle", False, True),
        (0.06, "angle", True, True),
        (-0.01, "rate", False, False),
        (-0.01, "angle", False, True),
        (-0.06, "angle", False, False),
    ):
        pose = lean(limit + excess)
        shown = Transition(pose, jnp.int32(0), pose, jnp.asarray(False))
        now = watch(memory, shown, allowing(angle)).now
        assert (float(now.strength) == residual.SURE) == goes_on, (excess, angle)
        assert bool(now.falls) == falls, (excess, angle)
    # A present pose is a reported one, moved on by a reported rate.
    pose = lean(limit - 0.01)
    shown = Transition(pose, jnp.int32(0), pose, jnp.asarray(False))
    for rate, falls in ((0.4, False), (0.6, True)):
        allowances = replace(NONE, rate=jnp.float32(rate))
        assert bool(watch(memory, shown, allowances).now.falls) == falls, rate


def test_blocks_are_named_from_a_limit_on(watch):
    """Errors count as another level's where they exceed .1 mm and the allowance."""
    memory, before = residual.residual.init(), with_blocks(MIDDLE, FAR[:1], FLYING[:1])
    for size, name, counts in (
        (5e-5, "rate", False),
        (5e-3, "rate", True),
        (5e-3, "block_speed", False),
        (5e-2, "block_speed", True),
    ):
        after = faster(next_of()(before), size)
        shown = Transition(before, jnp.int32(0), after, jnp.asarray(False))
        now = watch(memory, shown, allowing(name)).now
        assert int(now.block_ticks) == counts, (size, name)


def test_evidence_of_blocks_adds_up_from_the_first_that_strays(monkeypatch):
    """For twelve ticks, whether blocks stray in the later ones or not."""
    models = jnp.arange(1.0, bank.MODELS + 1)
    errors = bank.Errors(models, 2 * models, 3 * models, jnp.float32(5))
    monkeypatch.setattr(bank, "unexplained", lambda *given: errors)
    block = MIDDLE.block
    now, pose = residual._no_evidence(), MIDDLE.reported

    @jax.jit
    def count(now, astray):
        free = jnp.zeros(sight.SLOTS, bool)
        return residual._count_blocks(now, MIDDLE, block, MIDDLE, free, astray, pose)

    for tick in range(16):
        now = count(now, jnp.asarray(tick == 2))
        ticks = min(max(tick - 1, 0), 12)
        assert int(now.block_ticks) == ticks
        for name, each in (
            ("block_errors", models),
            ("block_missed", 2 * models),
            ("block_counts", 3 * models),
            ("inward", 5),
        ):
            np.testing.assert_allclose(getattr(now, name), ticks * each, err_msg=name)
