"""Draw a still of every level for docs/pictures: the start of seed 7 at hard.

    python -m tools.pictures

This makes the GIF beside them:

    jaxsim view --level 203 --difficulty hard --agent mpc --seed 7 --gif docs/pictures/episode.gif
"""

import argparse
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np

import jaxsim
from evaluation.files import write_whole
from jaxsim import render
from jaxsim.worlds import cartpole2d
from jaxsim.worlds.cartpole3d import CartPole3D, Config
from jaxsim.worlds.cartpole3d.generate.wsu import wsu_start

ROOT = Path(__file__).resolve().parents[1]
SEED = 7
DIFFICULTY = "hard"
STYLE = render.Style(("corner",), 200, samples=2)


def scene(level: Any) -> render.Scene:
    """Return the scene at the start of a level."""
    values = {"novelty/level": level.number, "novelty/difficulty": DIFFICULTY}
    env, params = jaxsim.make(level.task, values)
    if level.task == "CartPole2D":
        state = cartpole2d.from_seed(SEED, level.number, DIFFICULTY)
    else:
        env, state = CartPole3D(Config()), wsu_start(SEED, level.number, DIFFICULTY, "float32")
    return render.scene(env, params, state)


def main() -> None:
    """Draw all levels."""
    parser = argparse.ArgumentParser(description="Draw a still of every level.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures", metavar="DIR")
    out = parser.parse_args().out
    for level in jaxsim.levels():
        pixels = np.ascontiguousarray(render.draw(scene(level), STYLE))
        png = imageio.imwrite("<bytes>", pixels, extension=".png", optimize=True)
        write_whole(out / f"level-{level.number}.png", png)
        print(f"level {level.number}: {len(png) / 1000:.1f} kB", flush=True)


if __name__ == "__main__":
    main()
