"""Sweeps of CartPole, whose programs compile in a few seconds, for tests."""

from evaluation import cli
from evaluation.sweep import store

VALUES = {
    "base": "evaluate",
    "name": "small",
    "lanes": 64,
    "fixed": {"task": "CartPole", "episodes": 16},
    "axes": {
        "pole/length": {"linear": [0.3, 2.0], "count": 6},
        "agent": ["nothing", "random"],
        "seed": {"integers": [0, 2]},
    },
}
"""36 cells of 16 episodes: four cells are a pack, 12 packs, two programs."""

TOML = """base = "evaluate"
name = "small"
lanes = 64
[fixed]
task = "CartPole"
episodes = 16
[axes]
"pole/length" = {linear = [0.3, 2.0], count = 6}
agent = ["nothing", "random"]
seed = {integers = [0, 2]}
"""
MERGED = ("rows.parquet", "cells.parquet", "sweep.json", "report.json", "report.html")
A_PACK = 1e-6
"""Minutes of a unit that make every pack a unit."""


def sweep(*words):
    """Exit code of `jaxsim sweep`."""
    return cli.main(["sweep", *map(str, words)])


def finished(plan):
    """Results of finished units by number."""
    return {number: units for number, units in store.listing(plan) if units}


def merged(folder):
    """Bytes of merged results."""
    return [(folder / "merged" / name).read_bytes() for name in MERGED]
