"""How soon `residual` finds small changes through noisy sensors, beside the best possible test.

    python -m benchmarks.noise_detection --out docs/noise-detection.json

Each lifetime has episodes that are known to be nominal, from which the noise is learned, then more
nominal ones, and then novel ones. The best test is CUSUM with the true direction and
size of the change and the true noise, on the same innovations (Page, 1954; optimal by Moustakides,
1986); its threshold is the one with which one in a hundred lifetimes without a change has a false
alarm. Sizes are given in standard errors of an estimate from one episode.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from evaluation.files import write_whole
from evaluation.json_types import JsonObject
from jaxsim import agents
from jaxsim.agents import directions
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d import Params

TRAINING, BEFORE, NOVEL = 10, 5, 30
"""Episodes that are known not to be novel, further nominal ones, and novel ones."""
LIFETIME = 45  # episodes of a lifetime without a change, behind the training
STEPS = 200
KINDS = ("noise_position", "noise_velocity", "noise_angle", "noise_rate")
NOISES: dict[str, tuple[float, ...]] = {
    "small": (0.001, 0.002, 0.0005, 0.002),
    "middle": (0.01, 0.02, 0.005, 0.02),
    "large": (0.1, 0.2, 0.03, 0.2),
}
"""Standard deviations by kind: m, m/s, rad, rad/s."""
EFFECTS = (1.0, 2.0, 4.0, 8.0)
FALSE_ALARMS = 0.01
AGENT = "pd+residual"

_NOMINAL = Params()


def _relative(path: str, nominal: float) -> tuple[str, Callable[[float], float]]:
    return path, lambda size: nominal * (1 + size)


CHANGES: dict[str, tuple[str, Callable[[float], float]]] = {
    "cart_mass": _relative("cart/mass", float(_NOMINAL.cart_mass)),
    "pole_length": _relative("pole/length", float(_NOMINAL.pole_length)),
    "push_size": _relative("force", float(_NOMINAL.force)),
    "push_turn": ("actions/turn", np.degrees),
    "block_weight": ("blocks/buoyancy", lambda size: 1 - size / float(_NOMINAL.gravity)),
    "pull_cart": ("blocks/pull_cart", lambda size: size * float(_NOMINAL.block_mass)),
    "offset_angle": ("sensors/offset_angle", lambda size: size),
}
"""Parameter and value by direction; a size is that of `jaxsim.agents.directions`."""


@dataclass(frozen=True)
class Played:
    """Results of lifetimes at the ends of their episodes.

    Attributes:
      alarm: (E, L) bool, whether novelty was reported.
      slope: (E, L, J) see `filtering.Scores`.
      information: (E, L, J)
    """

    alarm: np.ndarray
    slope: np.ndarray
    information: np.ndarray


def play(rows: list[dict[str, float]], noise: tuple[float, ...], novel: int, seed: int) -> Played:
    """Play lifetimes in parallel.

    Args:
      rows: parameters of the novel episodes of each lifetime, by path.
      noise: standard deviations by kind, in all episodes.
      novel: number of novel episodes.
      seed: root of all randomness.
    """
    sensors = {f"sensors/{kind}": size for kind, size in zip(KINDS, noise, strict=True)}
    env, nominal = jaxsim.make("CartPole3D-v0", sensors, level=200)
    # Every lane has every term that any of them needs.
    several = [jaxsim.make("CartPole3D-v0", {**sensors, **row}, level=200) for row in rows]
    terms = sorted({term for one, _ in several for term in one.config.terms})
    env = replace(env, config=replace(env.config, terms=tuple(terms)))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(_floats(p) for _, p in several))
    plain = jax.tree.map(lambda leaf: jnp.full(len(rows), leaf), _floats(nominal))
    agent = agents.get(AGENT)
    episode = jax.jit(jax.vmap(partial(_episode, env, agent), in_axes=(0, 0, 0, None)))
    keys = partial(jax.random.split, num=len(rows))
    memory = jax.vmap(agent.init)(keys(jax.random.key(seed)))
    reports = []
    for number in range(TRAINING + BEFORE + novel):
        params = stacked if number >= TRAINING + BEFORE else plain
        is_nominal = jnp.asarray(number < TRAINING)
        memory, report = episode(
            memory, keys(jax.random.key(seed + number + 1)), params, is_nominal
        )
        if number >= TRAINING:
            reports.append(jax.tree.map(np.asarray, report))
    return Played(*(np.stack(leaves) for leaves in zip(*reports, strict=True)))


def _floats(params: Params) -> Any:
    return jax.tree.map(jnp.float32, params)


def _episode(
    env: Any, agent: Any, memory: Tree, key: jax.Array, params: Params, is_nominal: jax.Array
) -> tuple[Any, Any]:
    """Play an episode of one lane; return the memory, and a report of it."""
    memory = replace(memory, detector=replace(memory.detector, nominal=is_nominal))
    memory = agent.begin(memory, key)
    observation, state = env.reset(key, params)

    def tick(carry: Tree, _: Any) -> tuple[Any, None]:
        memory, observation, state, done, probability = carry
        action, prediction, after = agent.act(memory, observation, key)
        observation_after, state_after, _, ended, cut, _ = env.step(key, state, action, params)
        new_carry = after, observation_after, state_after, ended | cut, prediction.probability
        return jax.tree.map(partial(jnp.where, done), carry, new_carry), None

    start = memory, observation, state, jnp.asarray(False), jnp.float32(0)
    (memory, _, _, _, probability), _ = jax.lax.scan(tick, start, None, length=STEPS)
    scores = memory.detector.sequence.scores
    return memory, (probability >= 0.5, scores.slope, scores.information)


def cusum(slope: np.ndarray, information: np.ndarray, size: float) -> np.ndarray:
    """CUSUM of the log likelihood ratio of a known change, at the end of each episode, (E, L)."""
    total = np.zeros(slope.shape[1])
    values = []
    for s, v in zip(slope, information, strict=True):
        total = np.maximum(total, 0) + size * s - 0.5 * size**2 * v
        values.append(total)
    return np.stack(values)


def delays(alarms: np.ndarray) -> np.ndarray:
    """Episodes up to and including the first alarm, (L,); one more than all for none."""
    return np.where(alarms.any(axis=0), alarms.argmax(axis=0) + 1, len(alarms) + 1)


def measure(noise: str, lifetimes: int, repeats: int, seed: int) -> JsonObject:
    """False alarms with a noise, and delays of changes of several sizes.

    Args:
      noise: one of `NOISES`.
      lifetimes: without a change.
      repeats: lifetimes of each change; 0 for none.
      seed: root of all randomness.
    """
    sizes = NOISES[noise]
    quiet = play([{}] * lifetimes, sizes, LIFETIME - BEFORE, seed)
    usual = quiet.information.mean(axis=(0, 1))
    rows = [
        (name, effect, effect / float(np.sqrt(usual[directions.NAMES.index(name)])))
        for name in CHANGES
        for effect in EFFECTS
    ]
    changed = [{CHANGES[name][0]: CHANGES[name][1](size)} for name, _, size in rows]
    report: JsonObject = {
        "noise": dict(zip(KINDS, sizes, strict=True)),
        "lifetimes": lifetimes,
        "episodes": LIFETIME,
        "false_alarms": int(quiet.alarm.any(axis=0).sum()),
        "changes": [],
    }
    if not repeats:
        return report
    after = play([row for row in changed for _ in range(repeats)], sizes, NOVEL, seed + 1_000)
    for place, (name, effect, size) in enumerate(rows):
        index, lanes = directions.NAMES.index(name), slice(place * repeats, (place + 1) * repeats)
        null = cusum(quiet.slope[..., index], quiet.information[..., index], size)
        threshold = float(np.quantile(null.max(axis=0), 1 - FALSE_ALARMS))
        slope, information = (a[:, lanes, index] for a in (after.slope, after.information))
        alarm, best = after.alarm[:, lanes], cusum(slope, information, size) > threshold
        # A lifetime with an alarm before the change has no delay.
        true = ~alarm[:BEFORE].any(axis=0) & ~best[:BEFORE].any(axis=0)
        ours, optimum = (delays(a[BEFORE:, true]) for a in (alarm, best))
        report["changes"].append(
            {
                "change": name,
                "parameter": CHANGES[name][0],
                "value": float(CHANGES[name][1](size)),
                "effect": effect,
                "lifetimes": int(true.sum()),
                "delay": float(np.mean(ours)) if true.any() else None,
                "optimum": float(np.mean(optimum)) if true.any() else None,
                "missed": int((ours > NOVEL).sum()),
                "missed_by_optimum": int((optimum > NOVEL).sum()),
            }
        )
    return report


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--lifetimes", type=int, default=1000, metavar="N", help="without a change")
    parser.add_argument("--repeats", type=int, default=64, metavar="N", help="of each change")
    parser.add_argument(
        "--noise", default=",".join(NOISES), metavar="LIST", help="which ones (all)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    names = options.noise.split(",")
    if unknown := [name for name in names if name not in NOISES]:
        parser.error(f"--noise has {', '.join(unknown)}; there are {', '.join(NOISES)}")
    started, reports = time.process_time(), {}
    for name in names:
        repeats = options.repeats if name == "middle" else 0
        reports[name] = measure(name, options.lifetimes, repeats, options.seed)
        print(name, json.dumps({k: v for k, v in reports[name].items() if k != "changes"}))
    values = {
        "command": f"python -m benchmarks.noise_detection --seed {options.seed}",
        "agent": AGENT,
        "processor_seconds": round(time.process_time() - started),
        "noises": reports,
    }
    write_whole(options.out, json.dumps(values, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
