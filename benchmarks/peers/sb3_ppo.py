"""PPO of stable-baselines3 on the scene of CartPole3D in PyBullet: steps a second while it learns.

It needs PyTorch, so it lives in an environment of its own, outside of the project's lock:

    python3.11 -m venv sb3
    sb3/bin/pip install -e '.[parity]' stable-baselines3
    sb3/bin/python -m benchmarks.peers.sb3_ppo --steps 16384

`benchmarks.learning` runs it with `--peer sb3/bin/python`. It prints one line of JSON. Building the
scene of an episode is timed apart, and a rate without it is given as well, which favours PyBullet.
With `--like-ours` it takes as many decisions for a step of the optimiser as our learner, and uses
each about as often; else the library's own defaults hold, with 2,048 steps between two updates.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.peers.bullet_scene import (
    DIRECTIONS,
    EPISODES,
    MAX_STEPS,
    Episode,
    drawn,
    has_fallen,
    silence,
)

SLOTS, NUMBERS = 4, 11 + 4 * 7
LIKE_OURS = {"batch_size": 512, "n_epochs": 4, "gamma": 0.98}


def make_env(folder: Path, spent: list[float]) -> Any:
    """The scene as an environment of Gymnasium; adds the seconds of building it to `spent`."""
    import gymnasium
    import numpy as np

    params, starts = drawn(200, "easy", range(EPISODES))

    class Scene(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (NUMBERS,), np.float32)
        action_space = gymnasium.spaces.Discrete(len(DIRECTIONS))

        def __init__(self) -> None:
            self.starts, self.episode = cycle(starts), None
            self.tick = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            began = time.perf_counter()
            if self.episode is not None:
                self.episode.close()
            start = next(self.starts)
            self.episode = Episode(params, start, folder)
            spent[0] += time.perf_counter() - began
            self.tick = 0
            self.pole = self.episode._tick(0, start.push)
            return self._observe(), {}

        def step(self, action: Any) -> Any:
            self.tick += 1
            x, y = DIRECTIONS[int(action)]
            self.pole = self.episode._tick(self.tick, (params.force * x, params.force * y))
            fallen = has_fallen(self.pole[0], params.lean_limit)
            late = self.tick >= MAX_STEPS
            return self._observe(), self.tick / MAX_STEPS, fallen, late and not fallen, {}

        def _observe(self) -> Any:
            seen, scene = np.zeros(NUMBERS, np.float32), self.episode
            cart = scene.link(scene.cartpole, scene.world.CART, 1)
            seen[:11] = (*scene.place[:2], *cart[6][:2], *self.pole[0], *self.pole[1])
            for slot, (p, v) in enumerate(zip(scene.places, scene.speeds, strict=True)):
                seen[11 + 7 * slot : 18 + 7 * slot] = (1, *p, *v)
            return seen

    return Scene()


def measure(steps: int, like_ours: bool, envs: int, threads: int) -> dict[str, Any]:
    """Learn for a number of steps, after as many that are not timed as one update takes."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(threads)
    spent = [0.0]
    with tempfile.TemporaryDirectory() as name:
        made = [lambda: make_env(Path(name), spent)] * envs
        between = 2048 // envs
        options = LIKE_OURS if like_ours else {}
        model = stable_baselines3.PPO(
            "MlpPolicy", DummyVecEnv(made), n_steps=between, device="cpu", seed=0, **options
        )
        model.learn(2048)
        spent[0], began, used = 0.0, time.perf_counter(), processor_seconds()
        model.learn(steps, reset_num_timesteps=False)
        seconds, used = time.perf_counter() - began, processor_seconds() - used
        model.get_env().close()
    played = -(-steps // 2048) * 2048
    versions = {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__}
    return {
        "steps": played,
        "seconds": seconds,
        "processor_seconds": used,
        "building_seconds": spent[0],
        "steps_per_second": played / seconds,
        "steps_per_processor_second": played / used,
        "without_building": played / (seconds - spent[0]),
        "settings": {"like_ours": like_ours, "envs": envs, "threads": threads, **options},
        "versions": versions,
    }


def processor_seconds() -> float:
    """Time of this process on all cores."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16_384, help="environment steps (16,384)")
    parser.add_argument("--envs", type=int, default=1, help="environments in turn (1)")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch (2)")
    parser.add_argument("--like-ours", action="store_true", help="batches of 512, four epochs")
    given = parser.parse_args()
    # The engine prints on standard output for every scene.
    out = os.fdopen(os.dup(1), "w")
    silence()
    result = measure(given.steps, given.like_ours, given.envs, given.threads)
    print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
