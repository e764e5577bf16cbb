"""Contacts against a dense projected Gauss-Seidel, and the versions of the tick."""

import numpy as np
import pytest

from jaxsim.worlds.cartpole3d import state_to_arrays
from tests.jaxsim.worlds.cartpole3d import twin
from tests.jaxsim.worlds.cartpole3d.near_contact import random_parameters, random_states

COMPARED = 400  # states that the slow twin works through


@pytest.fixture(scope="module")
def scenes(ticks, lanes64):
    """Random states near contact: named arrays, parameters, and the batch itself."""
    draw = np.random.default_rng(20)
    values = random_parameters(draw, lanes64.width)
    arrays = random_states(draw, values)
    return arrays, values, *ticks.inputs(values, arrays)


@pytest.fixture(scope="module")
def solved(scenes, ticks):
    """The full tick of these states, with no push."""
    arrays, _, params, state = scenes
    return ticks.run("full", params, state, np.zeros((len(arrays["cart_yaw"]), 3)))[0]


def pick(values, lane):
    return {name: float(numbers[lane]) for name, numbers in values.items()}


def twin_tick(w, force=(0.0, 0.0, 0.0)):
    """Local velocity components after one tick, the rows, and the passes taken."""
    free = twin.free_motion(w, np.asarray(force))
    rows = twin.contacts(w)
    u, sweeps = twin.resolve(w, free, rows)
    local = twin.local_components(w, u)
    clamped = {name: np.clip(part, -100, 100) for name, part in local.items()}
    clamped["block_vel"] = np.where(w.alive[:, None], clamped["block_vel"], 0)
    return clamped, rows, sweeps


def worst_difference(ours, theirs, lane):
    named = {"block_vel": "block_vel", "cart": "cart_local", "yaw_rate": "cart_yaw_rate"}
    named["pole"] = "pole_jw"
    return max(np.abs(ours[named[n]][lane] - part).max() for n, part in theirs.items())


def test_velocities_equal_those_of_a_dense_solver(scenes, solved):
    arrays, values, *_ = scenes
    lanes = len(arrays["cart_yaw"])
    kinds = dict.fromkeys(("wall", "pair", "cart", "pole", "cart at wall", "pole at wall"), 0)
    most = 0
    for lane in range(0, lanes, lanes // COMPARED):
        w = twin.world(arrays, lane, pick(values, lane))
        after, rows, sweeps = twin_tick(w)
        count_kinds(kinds, rows)
        most = max(most, sweeps)
        # Rounding of 1e-16 through K^-1 of up to 1e6 (spin of a thin pole) and tens of passes.
        assert worst_difference(solved, after, lane) < 1e-9, f"lane {lane}, {len(rows)} contacts"
    # Every class is met often enough for the comparison to say something.
    assert min(kinds.values()) >= 20, kinds
    assert most >= 10  # and some need many passes


def count_kinds(kinds, rows):
    """Count rows by what they read: blocks before cart (2), yaw (1) and pole (3)."""
    for row in rows:
        blocks, cart, yaw, pole = np.split(row.jacobian, [-6, -4, -3])
        touched = int(np.any(blocks.reshape(-1, 3), axis=1).sum())
        if touched == 2:
            kind = "pair"
        elif touched and pole.any():
            kind = "pole"
        elif touched and cart.any():
            kind = "cart"
        elif touched:
            kind = "wall"
        else:
            kind = "pole at wall" if pole.any() else "cart at wall"
        kinds[kind] += 1


def level200(lanes):
    return {
        name: np.full(lanes, float(values[0]))
        for name, values in random_parameters(np.random.default_rng(0), 2).items()
    }


def one_scene(lanes, **changes):
    """The same state in every lane: upright at rest, empty room, with changes."""
    state = {
        "cart_pos": np.zeros(2),
        "cart_yaw": np.array(0.0),
        "cart_vel": np.zeros(2),
        "cart_yaw_rate": np.array(0.0),
        "pole_jq": np.array([0.0, 0.0, 0.0, 1.0]),
        "pole_jw": np.zeros(3),
        "block_pos": np.tile([0.0, 0.0, 5.0], (4, 1)) + np.arange(4)[:, None] * [0, 0, 1.2],
        "block_vel": np.zeros((4, 3)),
        "block_alive": np.zeros(4),
    } | {name: np.asarray(value, float) for name, value in changes.items()}
    return {name: np.repeat(value[None], lanes, axis=0) for name, value in state.items()}


def full_tick_of(scene, ticks, values):
    params, state = ticks.inputs(values, scene)
    return ticks.run("full", params, state, np.zeros((len(scene["cart_yaw"]), 3)))[0]


def test_two_blocks_head_on_exchange_their_velocities(ticks, lanes64):
    values = level200(lanes64.width) | {"drag": np.zeros(lanes64.width)}
    scene = one_scene(
        lanes64.width,
        block_pos=[[-2, 0, 5], [-1.001, 0, 5], [3, 3, 3], [3, 3, 7]],
        block_vel=[[3, 1, 0], [-5, 0, 2], [0, 0, 0], [0, 0, 0]],
        block_alive=[1, 1, 0, 0],
    )
    v = full_tick_of(scene, ticks, values)["block_vel"][0]
    # Equal masses, e = 1: the normal parts are exchanged, the others kept. The gap is -0.001, of
    # which 0.08 (0.001 - 1e-5) / 0.02 = 0.00396 m/s are added to the parting speed, half to each.
    np.testing.assert_allclose(v[0], [-5 - 0.00198, 1, 0], atol=1e-12)
    np.testing.assert_allclose(v[1], [3 + 0.00198, 0, 2], atol=1e-12)


def test_a_block_that_hits_the_cart_sticks_and_turns_it(ticks, lanes64):
    """Against the side of the prism, off a face's middle: conservation fixes the outcome."""
    off = {"drag": 0.0, "room_floor": -3.0}  # at the cart's height a block would be in the floor
    values = level200(lanes64.width) | {n: np.full(lanes64.width, v) for n, v in off.items()}
    # Face 0 has its normal at 5.625 degrees; a centre 0.02 m beside it hits it off the middle.
    normal = np.array([np.cos(np.pi / 32), np.sin(np.pi / 32), 0])
    side = np.array([-normal[1], normal[0], 0])
    face = 0.5 * np.cos(np.pi / 32)
    centre = (face + 0.001 + 0.5 - 1e-5) * normal + 0.02 * side + [0, 0, 0.2]
    scene = one_scene(
        lanes64.width,
        block_pos=[centre, [3, 3, 3], [3, 3, 5], [3, 3, 7]],
        block_vel=[[-2, 0.5, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
        block_alive=[1, 0, 0, 0],
    )
    after = full_tick_of(scene, ticks, values)
    v, cart, spin = after["block_vel"][0, 0], after["cart_local"][0], after["cart_yaw_rate"][0]
    impulse = v - [-2, 0.5, 0]
    # The impulse is along the normal, the relative normal velocity at the point is gone.
    np.testing.assert_allclose(np.cross(impulse, normal), 0, atol=1e-12)
    arm = (face * normal + 0.02 * side)[:2]
    at_point = np.array([cart[0] - spin * arm[1], cart[1] + spin * arm[0], 0])
    np.testing.assert_allclose((v - at_point) @ normal, 0, atol=1e-9)
    # Cart: angular momentum about its axis; its inertia is that of the enlarged box.
    inertia = 1 / 12 * 2 * 1.006**2
    turn = arm[0] * -impulse[1] - arm[1] * -impulse[0]
    np.testing.assert_allclose(spin, turn / inertia, rtol=1e-12)
    # Momentum: block + cart + pole, whose centre of mass hangs 1 m above the pivot.
    pole = cart + np.array([after["pole_jw"][0, 1], -after["pole_jw"][0, 0]])
    np.testing.assert_allclose(impulse[:2] + cart + 0.1 * pole, 0, atol=1e-12)


def test_overlapping_centres_separate_along_x(ticks, lanes64):
    scene = one_scene(
        lanes64.width,
        block_pos=[[1, 1, 5], [1, 1, 5], [3, 3, 3], [3, 3, 7]],
        block_alive=[1, 1, 0, 0],
    )
    v = full_tick_of(scene, ticks, level200(lanes64.width))["block_vel"][0]
    # 0.08 / 0.02 of the depth of 1 m, half to each.
    np.testing.assert_allclose(v[:2], [[1.99998, 0, 0], [-1.99998, 0, 0]], atol=1e-12)


# --- the versions of the tick -----------------------------------------------------------------

SAME = 1e-9  # rounding, as above


@pytest.fixture(scope="module")
def compared(ticks, lanes64):
    """Many states near contact: each version of the tick, what it says of itself, env step."""
    cases = []
    for seed, crowd in enumerate((0.85, 0.3, 0.3, 0.15, 0.15, 0.15)):
        draw = np.random.default_rng(100 + seed)
        values = random_parameters(draw, lanes64.width)
        arrays = random_states(draw, values, crowd)
        arrays["tick"] = np.ones(lanes64.width, int)
        params, state = ticks.inputs(values, arrays)
        action = draw.integers(5, size=lanes64.width)
        force = np.array([[0, 0, 0], [10, 0, 0], [-10, 0, 0], [0, 10, 0], [0, -10, 0]])[action]
        versions = {name: ticks.run(name, params, state, force) for name in ticks.compiled}
        _, after, *_ = lanes64.step(state, action, params)
        cases.append((versions, after))
    return cases


def judged(compared, name):
    """Lanes in which a version of the tick is not the full one, and in which it may not be."""
    wrong = [~(difference(v[name][0], v["full"][0]) <= SAME) for v, _ in compared]
    return np.concatenate(wrong), np.concatenate([v[name][1] for v, _ in compared])


def difference(a, b):
    """Largest difference of any number, by lane."""
    names = ("cart_pos", "pole_jq", "cart_local", "cart_yaw_rate", "pole_jw")
    lanes = len(a["cart_yaw"])
    parts = [np.abs(a[n] - b[n]).reshape(lanes, -1).max(axis=1) for n in names]
    for name in ("block_pos", "block_vel"):
        parts.append(np.abs(a[name] - b[name]).reshape(lanes, -1).max(axis=1))
    return np.max(parts, axis=0)


def test_the_cheap_tick_knows_when_it_may_be_wrong(compared):
    wrong, touching = judged(compared, "cheap")
    assert wrong.sum() >= 1500, "too few contacts to say anything"
    assert (~touching).sum() >= 1000, "too few near misses to say anything"
    assert not (wrong & ~touching).any()
    # Conservative, not lazy, although many of these states are a hair from contact.
    assert touching.sum() <= 1.5 * wrong.sum()


def test_ticks_with_one_contact_know_when_they_may_be_wrong(compared):
    """Also that for walls, in which a block may be past a face, or cart or pole at a wall."""
    met = judged(compared, "cheap")[0]
    resolved = {}
    for name in ("single", "walled"):
        wrong, unsure = judged(compared, name)
        assert not (wrong & ~unsure).any(), name
        resolved[name] = met & ~unsure
    # Of 6,144 states, 366 and, only with that for walls, 253.
    assert resolved["single"].sum() >= 300, "too few single contacts to say anything"
    assert (resolved["walled"] & ~resolved["single"]).sum() >= 200, "too few at walls"
    assert not (resolved["single"] & ~resolved["walled"]).any()


def test_a_batch_takes_each_lane_as_if_the_full_tick_did(compared):
    for versions, after in compared:
        ours = state_to_arrays(after)
        ours["cart_local"] = np.stack([after.velocity.vx, after.velocity.vy], axis=-1)
        assert difference(ours, versions["full"][0]).max() < SAME
