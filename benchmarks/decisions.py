"""Measure what one decision costs, and what compiling an agent costs, one lane at a time.

    taskset -c 0 python -m benchmarks.decisions --agents pd+residual mpc --levels 200 203

Times are of the processor, ms by decision, so that a busy machine does not count; on one core they
are what a decision takes. Compilation is the processor's time as well, s.
"""

import argparse
from collections.abc import Iterator
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.detection import cells
from benchmarks.output import add_out, put_lines
from jaxsim import agents
from jaxsim.agents import Agent
from jaxsim.pytrees import Observation
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES


def compiled(agent: Agent, observation: Observation) -> tuple[Any, float]:
    """The agent's compiled decision, and the time of compiling, s."""
    key = jax.random.key(0)
    start = process_time()
    act = jax.jit(agent.act).lower(agent.init(key), observation, key).compile()
    return act, process_time() - start


def measured(agent: Agent, cell: tuple[int, str], episodes: int, seed: int) -> str:
    """Play one cell and give its row."""
    env, params = jaxsim.make("CartPole3D-v0", level=cell[0], difficulty=cell[1])
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    root = jax.random.key(seed)
    act, compiling = compiled(agent, reset(root, params)[0])
    first, later, performances = [], [], []
    for episode in range(episodes):
        key = jax.random.fold_in(root, episode)
        observation, state = reset(key, params)
        memory, over, info = agent.begin(agent.init(key), key), False, {}
        times = first
        while not over:
            chance = jax.random.fold_in(key, int(state.step))
            start = process_time()
            action, _, memory = jax.block_until_ready(act(memory, observation, chance))
            times.append(1e3 * (process_time() - start))
            times = later
            observation, state, _, fell, late, info = step(key, state, jnp.int32(action), params)
            over = bool(fell) or bool(late)
        performances.append(float(info["performance"]))
    parts = [f"{agent.name}", f"{cell[0]} {cell[1]}", str(len(first) + len(later))]
    parts += [f"{np.mean(first + later):.2f}", f"{np.median(later):.2f}"]
    parts += [f"{np.percentile(later, 95):.1f}", f"{np.mean(first):.1f}", f"{compiling:.1f}"]
    return "| " + " | ".join([*parts, f"{np.mean(performances):.3f}"]) + " |"


HEADER = ("agent", "cell", "decisions", "mean ms", "median", "95 %", "first of an episode")


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """Lines of the table, as they are measured."""
    header = [*HEADER, "compilation, s", "performance"]
    yield "| " + " | ".join(header) + " |"
    yield "| " + " | ".join("---" for _ in header) + " |"
    for name in arguments.agents:
        for cell in cells(arguments.levels, arguments.difficulties):
            yield measured(agents.get(name), cell, arguments.episodes, arguments.seed)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the cost of one decision.")
    parser.add_argument("--agents", nargs="+", default=["pd+residual", "wow", "mpc"])
    parser.add_argument("--levels", type=int, nargs="+", default=[200, 203])
    parser.add_argument("--difficulties", nargs="+", default=["hard"], choices=DIFFICULTIES)
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="a cell (10)")
    parser.add_argument("--seed", type=int, default=23, metavar="N", help="of all episodes (23)")
    add_out(parser)
    arguments = parser.parse_args()
    put_lines(rows(arguments), arguments.out)


if __name__ == "__main__":
    main()
