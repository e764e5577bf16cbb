"""Motion without contacts against a twin with mass matrices, and what must be conserved."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxsim.worlds.cartpole3d import Params, dynamics, state_from_arrays, state_to_arrays
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import Config, Pose, Sphere, Vector, Velocity
from tests.jaxsim.worlds.cartpole3d import twin
from tests.jaxsim.worlds.cartpole3d.near_contact import random_parameters, random_states

STATES = 300
DOUBLE = Config(dtype="float64")


def batch_params(values: dict[str, np.ndarray]) -> Params:
    return Params(**{name: jnp.asarray(v) for name, v in values.items()})


def test_accelerations_equal_those_of_the_mass_matrix(x64):
    draw = np.random.default_rng(1)
    values = random_parameters(draw, STATES)
    arrays = random_states(draw, values)
    force = draw.normal(size=(STATES, 3)) * 10
    params = batch_params(values)
    state = state_from_arrays(arrays, DOUBLE)
    pose = state.pose
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    body = dynamics.bodies(params)
    push = Vector(*force.T)
    after = dynamics.accelerate(params, body, pose, r, state.velocity, push)
    blocks = [dynamics.accelerate_block(params, block, None) for block in state.blocks]
    for lane in range(STATES):
        w = twin.world(arrays, lane, {name: float(v[lane]) for name, v in values.items()})
        local = twin.local_components(w, twin.free_motion(w, force[lane]))
        ours = np.array([getattr(after, f)[lane] for f in Velocity.__dataclass_fields__])
        theirs = np.array([*local["cart"], local["yaw_rate"], *local["pole"]])
        # Relative to the fastest component: the 6 x 6 solve mixes them.
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale, err_msg=str(lane))
        for i, alive in enumerate(w.alive):
            if alive:
                ours = [c[lane] for c in blocks[i]]
                np.testing.assert_allclose(ours, local["block_vel"][i], rtol=1e-12, atol=1e-14)


def test_unit_impulses_respond_as_the_inverse_mass_matrix(x64):
    """`pivot_response` is what contacts use; linear, so unit loads say everything."""
    draw = np.random.default_rng(2)
    values = random_parameters(draw, 40)
    arrays = random_states(draw, values)
    params, state = batch_params(values), state_from_arrays(arrays, DOUBLE)
    q = state.pose
    r = geo.rotation(q.qx, q.qy, q.qz, q.qw)
    zero = Vector(*(jnp.zeros(40) for _ in range(3)))
    body = dynamics.bodies(params)
    for axis in range(3):
        unit = Vector(*(jnp.full(40, float(axis == k)) for k in range(3)))
        a, alpha = dynamics.pivot_response(params, body, r, zero, zero, unit)
        for lane in range(40):
            p = {name: float(v[lane]) for name, v in values.items()}
            w = twin.world(arrays, lane, p)
            inverse = np.linalg.inv(twin.mass_matrix(w)[-6:, -6:])
            response = inverse @ np.concatenate([np.zeros(3), w.r[:, axis]])
            ours = w.yaw @ np.array([a.x[lane], a.y[lane], 0])
            np.testing.assert_allclose(ours[:2], response[:2], rtol=1e-9, atol=1e-10)
            ours = w.r @ np.array([c[lane] for c in alpha])
            np.testing.assert_allclose(ours, response[3:], rtol=1e-9, atol=1e-8)


def test_moving_turns_the_pole_and_the_cart_as_rotations_do(x64):
    draw = np.random.default_rng(3)
    arrays = random_states(draw, random_parameters(draw, STATES))
    arrays["pole_jw"] = draw.uniform(-22, 22, (STATES, 3))  # below the limit of 39 rad/s
    state = state_from_arrays(arrays, DOUBLE)
    moved = dynamics.move(state.pose, state.velocity, jnp.float64(1))
    q = Rotation.from_quat(arrays["pole_jq"])
    turned = Rotation.from_rotvec(q.apply(arrays["pole_jw"]) * twin.DT) * q
    ours = Rotation.from_quat(np.stack([moved.qx, moved.qy, moved.qz, moved.qw], axis=1))
    assert (turned.inv() * ours).magnitude().max() < 1e-14
    yaw = arrays["cart_yaw"] + twin.DT * arrays["cart_yaw_rate"]
    np.testing.assert_allclose(moved.cos, np.cos(yaw), atol=1e-14)
    np.testing.assert_allclose(moved.sin, np.sin(yaw), atol=1e-14)
    # The local velocity is held while the cart turns; the position moves with the new frame.
    local = Rotation.from_rotvec(-arrays["cart_yaw"][:, None] * twin.UP).apply(
        np.column_stack([arrays["cart_vel"], np.zeros(STATES)])
    )
    step = Rotation.from_rotvec(yaw[:, None] * twin.UP).apply(local)[:, :2] * twin.DT
    np.testing.assert_allclose(moved.x, arrays["cart_pos"][:, 0] + step[:, 0], atol=1e-14)
    np.testing.assert_allclose(moved.y, arrays["cart_pos"][:, 1] + step[:, 1], atol=1e-14)


@pytest.mark.parametrize("rate", [39.0, 60.0, 100.0])
def test_a_pole_that_spins_too_fast_is_turned_as_bullet_does(rate, x64):
    """Above (pi/4)/dt the angle saturates but the axis keeps its length; then normalised."""
    limit = np.pi / 4 / 0.02
    spin = rate * np.array([0.6, 0.0, 0.8])
    n = min(rate, limit)
    dq = np.array([*(spin * np.sin(n * 0.01) / n), np.cos(n * 0.01)])
    pose = Pose(*(jnp.float64(v) for v in (0, 0, 1, 0, 0, 0, 0, 1)))
    moved = dynamics.move(
        pose, Velocity(*(jnp.float64(v) for v in (0, 0, 0, *spin))), jnp.float64(1)
    )
    ours = np.array([moved.qx, moved.qy, moved.qz, moved.qw])
    np.testing.assert_allclose(ours, dq / np.linalg.norm(dq), atol=1e-13)


def test_the_end_test_is_roll_and_pitch_of_the_pole(x64):
    draw = np.random.default_rng(4)
    x, y, z, w = Rotation.from_rotvec(draw.normal(size=(4000, 3)) * [0.15, 0.15, 2]).as_quat().T
    roll = np.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z)
    pitch = np.arcsin(-2 * (x * z - w * y))
    limit = np.deg2rad(10)
    clear = (np.abs(np.abs(roll) - limit) > 1e-9) & (np.abs(np.abs(pitch) - limit) > 1e-9)
    fallen = dynamics.has_fallen(geo.rotation(x, y, z, w), limit)
    expected = (np.abs(roll) > limit) | (np.abs(pitch) > limit)
    assert 500 < expected.sum() < 3500
    np.testing.assert_array_equal(np.asarray(fallen)[clear], expected[clear])


# --- what must be conserved -------------------------------------------------------------------


def scene(**changes):
    state = {
        "cart_pos": np.zeros(2),
        "cart_yaw": 0.0,
        "cart_vel": np.zeros(2),
        "cart_yaw_rate": 0.0,
        "pole_jq": np.array([0.0, 0.0, 0.0, 1.0]),
        "pole_jw": np.zeros(3),
        "tick": 0,
    }
    batch = {name: np.asarray(value)[None] for name, value in (state | changes).items()}
    return state_from_arrays(batch, DOUBLE)


def test_an_upright_pole_that_nobody_pushes_stays(lanes64):
    """Unstable, but nothing breaks the symmetry."""
    with lanes64.precision():
        state = scene()
    for _ in range(200):
        _, state, *_ = lanes64.step(state, 0)
    after = state_to_arrays(state)
    assert bool(state.done[0])
    assert int(state.step[0]) == 200
    for name in ("cart_pos", "cart_vel", "cart_yaw", "cart_yaw_rate", "pole_jw"):
        np.testing.assert_array_equal(after[name], 0)
    np.testing.assert_array_equal(after["pole_jq"], [[0, 0, 0, 1]])


def test_a_free_block_keeps_its_speed_between_bounces(lanes64):
    """Without drag; a bounce at depth h parts with four times h more."""
    with lanes64.precision():
        state = scene(
            block_pos=np.array([[3.0, -2.0, 6.0]]), block_vel=np.array([[7.0, 3.0, -4.0]])
        )
        params = Params(**{**vars(lanes64.params), "drag": jnp.float64(0.0)})
    before = state_to_arrays(state)
    bounces = 0
    for _ in range(100):
        _, state, *_ = lanes64.step(state, 0, params)
        after = state_to_arrays(state)
        v, u = after["block_vel"][0, 0], before["block_vel"][0, 0]
        p = before["block_pos"][0, 0]
        depth = np.maximum(np.abs(p - [0, 0, 4.95]) - [4.45, 4.45, 4.5], 0)
        hit = depth > 0
        bounces += hit.sum()
        np.testing.assert_allclose(v[~hit], u[~hit], rtol=1e-12)
        # 0.08 / 0.02 per metre, of which the first 1e-5 m is left alone
        faster = np.abs(u) + 4 * np.maximum(depth - 1e-5, 0)
        np.testing.assert_allclose(np.abs(v[hit]), faster[hit], rtol=1e-12)
        assert (v[hit] * u[hit] < 0).all()
        before = after
    assert bounces >= 3


def mirrored(arrays):
    """The state seen in a mirror across x = 0."""
    flip = np.array([-1.0, 1.0, 1.0])
    return arrays | {
        "cart_pos": arrays["cart_pos"] * flip[:2],
        "cart_vel": arrays["cart_vel"] * flip[:2],
        "cart_yaw": -arrays["cart_yaw"],
        "cart_yaw_rate": -arrays["cart_yaw_rate"],
        "pole_jq": arrays["pole_jq"] * [1, -1, -1, 1],
        "pole_jw": arrays["pole_jw"] * [1, -1, -1],
        "block_pos": arrays["block_pos"] * flip,
        "block_vel": arrays["block_vel"] * flip,
    }


def test_a_mirrored_world_has_a_mirrored_tick(lanes64):
    """With contacts: the prism, the room and the order of the rows are all symmetric."""
    draw = np.random.default_rng(5)
    values = random_parameters(draw, lanes64.width)
    arrays = random_states(draw, values, crowd=0.5)
    arrays["tick"] = np.ones(lanes64.width, int)
    after = []
    with lanes64.precision():
        params = batch_params(values)
        states = [state_from_arrays(a, DOUBLE) for a in (arrays, mirrored(arrays))]
    for state, action in zip(states, (1, 2), strict=True):
        _, new, *_ = lanes64.step(state, action, params)
        after.append(state_to_arrays(new))
    image = mirrored(after[0])
    for name in ("cart_pos", "cart_vel", "cart_yaw_rate", "pole_jq", "pole_jw", "block_vel"):
        # Rounding, times up to 1e6 where a thin pole is spun
        np.testing.assert_allclose(after[1][name], image[name], rtol=0, atol=1e-9, err_msg=name)


def test_an_empty_slot_moves_nothing(x64):
    block = Sphere(*(Vector(*(jnp.float64(0.0),) * 3) for _ in range(2)), jnp.asarray(False))
    v = dynamics.accelerate_block(Params(block_buoyancy=1.0), block, None)
    np.testing.assert_array_equal(np.array(v), 0)
