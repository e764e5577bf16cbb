"""The program that measures the camera: pictures of level 200, a batch of lanes at a call.

A step of its rates is a picture of `SIZE` x `SIZE` pixels from the corner, with shadows.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import jax

import jaxsim
from evaluation.bench.program import serve, timed
from evaluation.bench.rate import Rate
from evaluation.bench.settings import ProgramSettings
from evaluation.json_types import JsonObject
from jaxsim import render

SIZE, LANES = 64, 64


@dataclass
class CameraProgram:
    """The ray caster in one compiled program."""

    settings: ProgramSettings
    draw: Callable[[], int] = field(init=False)

    def prepare(self, workload: str) -> JsonObject:
        """Compile the program by drawing a batch."""
        env, params = jaxsim.make("CartPole3D-v0")
        keys = jax.random.split(jax.random.key(self.settings.seed), LANES)
        scene = render.scene(env, params, jax.jit(env.start)(keys, params))
        camera = render.Camera("corner", SIZE, SIZE)
        program = jax.jit(lambda scene: render.image(scene, camera))

        def draw() -> int:
            program(scene).block_until_ready()
            return LANES

        self.draw = draw
        draw()
        return {"pixels": SIZE, "lanes": LANES}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Draw whole batches for at least `seconds`."""
        return timed(self.draw, seconds)


def main() -> None:
    """Serve with the settings on the command line."""
    serve(CameraProgram(ProgramSettings.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
