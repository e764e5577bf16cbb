"""Pictures of CartPole3D level 200 by MuJoCo's renderer, in software, one after the other.

Four blocks, 64 x 64 pixels from the corner, without multisampling and without shadows: its map of
shadows makes it some seventy times slower. MUJOCO_GL chooses the library; without it OSMesa is
taken where it is installed (Debian: libosmesa6), else EGL.

    python -m benchmarks.peers.mujoco_renderer 2
"""

import os
from ctypes.util import find_library
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.mujoco_rollout import scene
from evaluation.bench.program import Unavailable, missing, serve, timed
from evaluation.bench.rate import Rate

SIZE, BLOCKS, FRAMES = 64, 4, 100
VISUAL = f"""
  <visual><global offwidth="{SIZE}" offheight="{SIZE}"/><quality offsamples="0"/></visual>
"""
CAMERA = """
  <camera name="corner" pos="-7.75 -16.5 11.2" xyaxes="0.905 -0.425 0 0.149 0.317 0.936"
    fovy="47.5"/>
  <light pos="0 0 9" dir="0 0 -1"/>
"""


def described() -> str:
    """Describe the scene with the camera and its light."""
    text = scene(BLOCKS).replace("</worldbody>", f"{CAMERA}</worldbody>")
    return text.replace("<default>", f"{VISUAL}<default>", 1)


@dataclass
class Pictures:
    """MuJoCo's renderer with its scene."""

    renderer: Any = field(init=False)
    data: Any = field(init=False)

    def prepare(self, workload: str) -> dict[str, Any]:
        """Build the scene and the renderer."""
        library = "osmesa" if find_library("OSMesa") else "egl"
        os.environ.setdefault("MUJOCO_GL", library)
        try:
            import mujoco
        except ModuleNotFoundError as error:
            raise missing("mujoco", "bench") from error
        model = mujoco.MjModel.from_xml_string(described())
        self.data = mujoco.MjData(model)
        mujoco.mj_forward(model, self.data)
        try:
            self.renderer = mujoco.Renderer(model, SIZE, SIZE)
        # What a library of graphics that is not there raises depends on the library.
        except Exception as error:
            raise Unavailable(
                f"MuJoCo cannot draw with {os.environ['MUJOCO_GL']}: install libosmesa6"
            ) from error
        self.renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self.draw()
        return {"library": os.environ["MUJOCO_GL"], "pixels": SIZE}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Draw for at least so many seconds."""
        return timed(self.draw, seconds)

    def draw(self) -> int:
        """Draw some pictures."""
        for _ in range(FRAMES):
            self.renderer.update_scene(self.data, "corner")
            self.renderer.render()
        return FRAMES


if __name__ == "__main__":
    serve(Pictures())
