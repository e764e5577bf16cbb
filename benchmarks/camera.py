"""Pictures a second of our camera, and of MuJoCo's software renderer on the same scene.

    MUJOCO_GL=osmesa python -m benchmarks.camera --rounds 5

Both draw level 200 with four blocks, 64 x 64 pixels, from the corner: ours in batches, MuJoCo's one
after the other, without multisampling. Ours always draws shadows; MuJoCo is measured with shadows
(a map of 512 x 512) and without. Rounds take turns and processor time counts, so that other work
on the machine hits all alike. MuJoCo needs OSMesa (Debian: libosmesa6) or EGL.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import jax

import jaxsim
from benchmarks.peers.mujoco_rollout import scene
from jaxsim import render

SIZE, LANES, FRAMES = 64, 64, 100
CAMERA = (
    '<camera name="corner" pos="-7.75 -16.5 11.2" xyaxes="0.905 -0.425 0 0.149 0.317 0.936" '
    'fovy="47.5"/><light pos="0 0 9" dir="0 0 -1"/></worldbody>'
)


def ours() -> Callable[[], int]:
    """Return what draws a batch and gives the number of its pictures."""
    env, params = jaxsim.make("CartPole3D-v0")
    states = jax.jit(env.start)(jax.random.split(jax.random.key(0), LANES), params)
    places = render.scene(env, params, states)
    draw = jax.jit(lambda s: render.image(s, render.Camera("corner", SIZE, SIZE)))

    def play() -> int:
        draw(places).block_until_ready()
        return LANES

    return play


def mujoco(shadows: bool) -> Callable[[], int]:
    """Return what draws some pictures one after the other, and gives their number."""
    os.environ.setdefault("MUJOCO_GL", "osmesa")
    import mujoco

    text = scene(4).replace("</worldbody>", CAMERA)
    size = (
        f'<visual><global offwidth="{SIZE}" offheight="{SIZE}"/><quality offsamples="0"/></visual>'
    )
    model = mujoco.MjModel.from_xml_string(text.replace("<default>", f"{size}<default>", 1))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = mujoco.Renderer(model, SIZE, SIZE)
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows

    def play() -> int:
        for _ in range(FRAMES):
            renderer.update_scene(data, "corner")
            renderer.render()
        return FRAMES

    return play


def main() -> None:
    """Measure in turns and print medians."""
    parser = argparse.ArgumentParser(description="Measure the camera beside MuJoCo's renderer.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="measurements (5)")
    rounds = parser.parse_args().rounds
    players = {"jaxsim": ours(), "mujoco": mujoco(True), "mujoco without shadows": mujoco(False)}
    rates: dict[str, list[float]] = {name: [] for name in players}
    for number in range(rounds + 1):  # the first compiles
        for name, play in players.items():
            started = time.process_time()
            pictures = play()
            if number:
                rates[name].append(pictures / (time.process_time() - started))
    for name, found in rates.items():
        print(f"{name}: {statistics.median(found):,.0f} pictures a second of one core")
    for name in list(players)[1:]:
        ratios = [a / b for a, b in zip(rates["jaxsim"], rates[name], strict=True)]
        middle, ends = statistics.median(ratios), (min(ratios), max(ratios))
        print(f"over {name}: {middle:.1f}, from {ends[0]:.1f} to {ends[1]:.1f}")
    print(f"load: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
