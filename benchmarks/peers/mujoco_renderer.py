"""Images of CartPole3D level 200 by MuJoCo's renderer, in software, one after the other.

The scene has four blocks. Images have 64 x 64 pixels and show it from a corner, without
multisampling and without shadows: the shadow map makes rendering about seventy times slower.
MUJOCO_GL chooses the library: by default OSMesa if installed (Debian: libosmesa6), else EGL.

    python -m benchmarks.peers.mujoco_renderer 2
"""

import os
from ctypes.util import find_library
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.mujoco_rollout import scene
from evaluation.bench.program import Unavailable, missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.json_types import JsonObject

SIZE, BLOCKS, FRAMES = 64, 4, 100
VISUAL = f"""
  <visual><global offwidth="{SIZE}" offheight="{SIZE}"/><quality offsamples="0"/></visual>
"""
CAMERA = """
  <camera name="corner" pos="-7.75 -16.5 11.2" xyaxes="0.905 -0.425 0 0.149 0.317 0.936"
    fovy="47.5"/>
  <light pos="0 0 9" dir="0 0 -1"/>
"""


def scene_with_camera() -> str:
    """Description of the scene with the camera and its light."""
    text = scene(BLOCKS).replace("</worldbody>", f"{CAMERA}</worldbody>")
    return text.replace("<default>", f"{VISUAL}<default>", 1)


@dataclass
class MujocoPictures:
    """MuJoCo's renderer with its scene."""

    renderer: Any = field(init=False)
    data: Any = field(init=False)

    def prepare(self, workload: str) -> JsonObject:
        """Build the scene and the renderer."""
        library = "osmesa" if find_library("OSMesa") else "egl"
        os.environ.setdefault("MUJOCO_GL", library)
        try:
            import mujoco
        except ModuleNotFoundError as error:
            raise missing("mujoco", "bench") from error
        model = mujoco.MjModel.from_xml_string(scene_with_camera())
        self.data = mujoco.MjData(model)
        mujoco.mj_forward(model, self.data)
        try:
            self.renderer = mujoco.Renderer(model, SIZE, SIZE)
        # The exception for a missing graphics library depends on the library.
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
        """Draw `FRAMES` images and return their number."""
        for _ in range(FRAMES):
            self.renderer.update_scene(self.data, "corner")
            self.renderer.render()
        return FRAMES


if __name__ == "__main__":
    serve(MujocoPictures())
