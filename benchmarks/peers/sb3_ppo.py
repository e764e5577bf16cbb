"""PPO of stable-baselines3 on the scene of CartPole3D in PyBullet: steps per second of training.

It needs PyTorch, so it is installed in a separate environment, outside the project's lock file:

    python3.11 -m venv sb3
    sb3/bin/pip install -e '.[parity]' stable-baselines3
    sb3/bin/python -m benchmarks.peers.sb3_ppo --steps 16384

`benchmarks.learning` runs it with `--peer sb3/bin/python`. It prints one line of JSON. Building the
scene of an episode is timed separately, and the result also has a rate without it, which favours
PyBullet. With `--like-ours`, a step of the optimiser uses as many decisions as in our learner, and
each is used about as often; otherwise the library's defaults apply. Updates are 2,048 steps apart.
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
    BulletEpisode,
    draw_episodes,
    has_fallen,
    silence,
)
from evaluation.json_types import JsonObject

SLOTS, NUMBERS = 4, 11 + 4 * 7
LIKE_OURS = {"batch_size": 512, "n_epochs": 4, "gamma": 0.98}


def make_env(folder: Path, building_seconds: list[float]) -> Any:
    """The scene as a Gymnasium environment; adds the time of building it to `building_seconds`."""
    import gymnasium
    import numpy as np

    params, starts = draw_episodes(200, "easy", range(EPISODES))

    class Scene(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (NUMBERS,), np.float32)
        action_space = gymnasium.spaces.Discrete(len(DIRECTIONS))

        def __init__(self) -> None:
            self.starts, self.episode = cycle(starts), None
            self.tick = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            start_time = time.perf_counter()
            if self.episode is not None:
                self.episode.close()
            start = next(self.starts)
            self.episode = BulletEpisode(params, start, folder)
            building_seconds[0] += time.perf_counter() - start_time
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
            observation, scene = np.zeros(NUMBERS, np.float32), self.episode
            cart = scene.link(scene.cartpole, scene.world.CART, 1)
            observation[:11] = (*scene.place[:2], *cart[6][:2], *self.pole[0], *self.pole[1])
            for slot, (p, v) in enumerate(zip(scene.places, scene.speeds, strict=True)):
                observation[11 + 7 * slot : 18 + 7 * slot] = (1, *p, *v)
            return observation

    return Scene()


def measure(steps: int, like_ours: bool, envs: int, threads: int) -> JsonObject:
    """Learn for a number of steps, after the untimed steps of one update."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(threads)
    building_seconds = [0.0]
    with tempfile.TemporaryDirectory() as name:
        env_functions = [lambda: make_env(Path(name), building_seconds)] * envs
        steps_per_update = 2048 // envs
        options = LIKE_OURS if like_ours else {}
        model = stable_baselines3.PPO(
            "MlpPolicy",
            DummyVecEnv(env_functions),
            n_steps=steps_per_update,
            device="cpu",
            seed=0,
            **options,
        )
        model.learn(2048)
        building_seconds[0], start_time, used = 0.0, time.perf_counter(), processor_seconds()
        model.learn(steps, reset_num_timesteps=False)
        seconds, used = time.perf_counter() - start_time, processor_seconds() - used
        model.get_env().close()
    played_steps = -(-steps // 2048) * 2048
    versions = {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__}
    return {
        "steps": played_steps,
        "seconds": seconds,
        "processor_seconds": used,
        "building_seconds": building_seconds[0],
        "steps_per_second": played_steps / seconds,
        "steps_per_processor_second": played_steps / used,
        "without_building": played_steps / (seconds - building_seconds[0]),
        "settings": {"like_ours": like_ours, "envs": envs, "threads": threads, **options},
        "versions": versions,
    }


def processor_seconds() -> float:
    """Processor time of this process on all cores."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16_384, help="environment steps (16,384)")
    parser.add_argument("--envs", type=int, default=1, help="environments, stepped in turn (1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (2)")
    parser.add_argument(
        "--like-ours", action="store_true", help="use batches of 512 and four epochs"
    )
    arguments = parser.parse_args()
    # The engine prints on standard output for every scene.
    out = os.fdopen(os.dup(1), "w")
    silence()
    result = measure(arguments.steps, arguments.like_ours, arguments.envs, arguments.threads)
    print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
