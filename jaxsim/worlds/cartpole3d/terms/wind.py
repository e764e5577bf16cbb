"""The wind of level 206: a turbulent channel profile across the room.

Quirks of the original that are kept: blocks are always blown towards -x and -y, no wind acts on the
pole, and the cart's wind ends up along world x.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import Params, Pose, Scalar, State, Vector

AIR = 1.225  # kg/m^3, density
CELLS = 200  # of the profile's mesh
PER_METRE = 20  # cells per metre of height
BLOCK_DRAG = 0.5 * AIR * 0.5 * np.pi * 0.25 * 0.5  # kg/m, drag coefficient and area of a block
BLOCK_REACH = 0.25  # m, half of the slab of air that pushes a block
CART_AREA = 0.05  # m^2, scale of the cart's area
CART_CELLS = 4  # lowest cells, which push the cart


def on_blocks(params: Params, state: State) -> list[Vector]:
    """Wind force on each block, N, world frame."""
    table = jnp.asarray(np.concatenate([[0.0], np.cumsum(PROFILE**2)]))
    wx, wy = params.wind_speed * state.wind.x, params.wind_speed * state.wind.y
    forces = []
    for block in state.blocks:
        low = _cell(block.p.z - BLOCK_REACH)
        high = _cell(block.p.z + BLOCK_REACH)
        total = jnp.maximum(table[high] - table[low], 0.0).astype(jnp.result_type(block.p.z))
        total = jnp.where(high > low, total, 0.0) * -BLOCK_DRAG
        forces.append(Vector(total * wx * wx, total * wy * wy, jnp.zeros_like(total)))
    return forces


def _cell(z: Scalar) -> jax.Array:
    """Mesh index of a height, as a slice bound: truncated, and counted from the end if negative."""
    index = jnp.trunc(PER_METRE * jnp.clip(z, -1e4, 1e4)).astype(jnp.int32)
    return jnp.clip(jnp.where(index < 0, index + CELLS, index), 0, CELLS)


def on_cart(params: Params, state: State) -> Vector:
    """Wind force on the cart, N, world frame.

    The original computes it for the link frame but applies the yaw twice, which leaves almost only
    the part along world x.
    """
    wx, wy = state.wind.x, state.wind.y
    # The wind angle is -delta: wx = sin(delta), wy = cos(delta); four times it by doubling.
    cos2 = wy * wy - wx * wx
    cos4 = 2 * cos2 * cos2 - 1
    bulge = 0.5 * (math.sqrt(2.0) - 1)
    area = CART_AREA * (-bulge * cos4 + 1 + bulge)
    coefficient = 0.5 * cos4 + 1.5
    pressure = 0.5 * AIR * area * coefficient * float(np.sum(PROFILE[:CART_CELLS] ** 2))
    pressure = pressure * params.wind_speed * params.wind_speed
    fx = pressure * wx * jnp.abs(wx)
    fy = pressure * wy * jnp.abs(wy)
    old: Pose = state.reported
    return geo.yaw(old.cos, old.sin, Vector(fx * old.cos, -fy * old.sin, jnp.zeros_like(fx)))


PROFILE = np.array(
    [
        0,
        0.292659820067,
        0.408892724327,
        0.470367836002,
        0.511260719535,
        0.542248297284,
        0.566789835385,
        0.587651707902,
        0.605719831196,
        0.621667344069,
        0.636007333569,
        0.649131734443,
        0.661340443581,
        0.672594964067,
        0.683063461645,
        0.69316286485,
        0.702447625186,
        0.711494485288,
        0.719980521326,
        0.72825994859,
        0.736044583734,
        0.743776344305,
        0.750940722936,
        0.758105101568,
        0.764907295451,
        0.771518910033,
        0.778130524614,
        0.78425017002,
        0.790365008344,
        0.796445037704,
        0.802109405146,
        0.807773772588,
        0.81343814003,
        0.818729678165,
        0.823981713518,
        0.829233748872,
        0.834310006779,
        0.839180879786,
        0.844051752792,
        0.848922625798,
        0.853529699232,
        0.858044454517,
        0.862559209802,
        0.867073965087,
        0.871339935964,
        0.875517930053,
        0.879695924141,
        0.88387391823,
        0.887904998547,
        0.891759858326,
        0.895614718105,
        0.899469577885,
        0.903324437664,
        0.906897453791,
        0.910436458708,
        0.913975463624,
        0.917514468541,
        0.921034347446,
        0.92425710323,
        0.927479859014,
        0.930702614798,
        0.933925370581,
        0.937148126365,
        0.940053177005,
        0.942949436626,
        0.945845696248,
        0.94874195587,
        0.951638215492,
        0.954307384293,
        0.956854006945,
        0.959400629598,
        0.96194725225,
        0.964493874903,
        0.966995918792,
        0.969153578492,
        0.971311238192,
        0.973468897892,
        0.975626557593,
        0.977784217293,
        0.979764274522,
        0.981476195822,
        0.983188117122,
        0.984900038422,
        0.986611959722,
        0.988323881022,
        0.989760142103,
        0.990957579004,
        0.992155015905,
        0.993352452806,
        0.994549889707,
        0.995747326608,
        0.996617302307,
        0.997235621992,
        0.997853941678,
        0.998472261364,
        0.99909058105,
        0.999708900736,
        1,
        1,
        1,
        1,
        1,
        1,
        0.999708900736,
        0.99909058105,
        0.998472261364,
        0.997853941678,
        0.997235621992,
        0.996617302307,
        0.995747326608,
        0.994549889707,
        0.993352452806,
        0.992155015905,
        0.990957579004,
        0.989760142103,
        0.988323881022,
        0.986611959722,
        0.984900038422,
        0.983188117122,
        0.981476195822,
        0.979764274522,
        0.977784217293,
        0.975626557593,
        0.973468897892,
        0.971311238192,
        0.969153578492,
        0.966995918792,
        0.964493874903,
        0.96194725225,
        0.959400629598,
        0.956854006945,
        0.954307384293,
        0.951638215492,
        0.94874195587,
        0.945845696248,
        0.942949436626,
        0.940053177005,
        0.937148126365,
        0.933925370581,
        0.930702614798,
        0.927479859014,
        0.92425710323,
        0.921034347446,
        0.917514468541,
        0.913975463624,
        0.910436458708,
        0.906897453791,
        0.903324437664,
        0.899469577885,
        0.895614718105,
        0.891759858326,
        0.887904998547,
        0.88387391823,
        0.879695924141,
        0.875517930053,
        0.871339935964,
        0.867073965087,
        0.862559209802,
        0.858044454517,
        0.853529699232,
        0.848922625798,
        0.844051752792,
        0.839180879786,
        0.834310006779,
        0.829233748872,
        0.823981713518,
        0.818729678165,
        0.81343814003,
        0.807773772588,
        0.802109405146,
        0.796445037704,
        0.790365008344,
        0.78425017002,
        0.778130524614,
        0.771518910033,
        0.764907295451,
        0.758105101568,
        0.750940722936,
        0.743776344304,
        0.736044583734,
        0.72825994859,
        0.719980521326,
        0.711494485288,
        0.702447625185,
        0.69316286485,
        0.683063461645,
        0.672594964067,
        0.661340443581,
        0.649131734443,
        0.636007333569,
        0.621667344069,
        0.605719831196,
        0.587651707901,
        0.566789835385,
        0.542248297284,
        0.511260719535,
        0.470367836001,
        0.408892724326,
        0.292659820065,
        0,
    ]
)  # wind speed at the mesh's heights, share of the greatest
