"""Records and results whose numbers are made up, for tests of what is written of them."""

from dataclasses import replace

import numpy as np

from evaluation.records import COLUMNS, Records
from evaluation.sailon import experiment
from evaluation.sailon.results import Results, planned
from evaluation.sailon.settings import ExperimentSettings
from evaluation.schedule import Block, Schedule

LEVEL = (("novelty/difficulty", "hard"), ("novelty/level", 203))
BLOCKS = (
    ("test", ()),
    ("train", ()),
    ("test", ()),
    ("train", LEVEL),
    ("test", ()),
    ("test", LEVEL),
    ("train", ()),
    ("test", ()),
    ("test", LEVEL),
)


def schedule(blocks=9, name="made up"):
    """Blocks of twelve episodes of a task and of a novelty level, tested before and after."""
    return Schedule(
        name,
        tuple(
            Block(index, 1 + index // 2, mode, "CartPole3D", parameters, 12, mode == "train")
            for index, (mode, parameters) in enumerate(BLOCKS[:blocks])
        ),
        source="made_up.json",
        author="nobody",
    )


def run(seed, lifetimes=9, blocks=9):
    """Records of lifetimes that learn and say something of novelty, each by itself."""
    random, plan = np.random.default_rng(seed), schedule(blocks)
    shape = lifetimes, plan.num_episodes
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    rise = 0.4 * (1 - np.exp(-np.arange(shape[1]) / 30))
    noise = random.uniform(0, 0.15, shape) + random.uniform(0.1, 0.4, (lifetimes, 1))
    columns["performance"][:] = rise + noise
    columns["reward"][:] = columns["length"][:] = 200 * columns["performance"]
    columns["seconds"][:] = columns["length"] / 50
    columns["complete"][:] = random.uniform(size=shape) < 0.99
    columns["predicted_probability"][:] = random.uniform(0, 1, shape)
    columns["threshold"][:] = 0.6
    columns["predicted_level"][:] = random.integers(0, 4, shape)
    about = {"agent": f"agent {seed}", "seed": 0, "lifetimes": lifetimes}
    return Records(plan, columns, np.array([0, 3], np.int32), metadata=about)


def turned(records):
    """The same records with the level where the unchanged task was, and the other way round."""
    plan = records.schedule
    blocks = [replace(block, parameters=() if block.parameters else LEVEL) for block in plan.blocks]
    return replace(records, schedule=replace(plan, blocks=tuple(blocks)))


def trials(seed, visibilities=(0, 1)):
    """Results of trials that an agent plays well or badly."""
    random = np.random.default_rng(seed)
    drawn = experiment.generate(
        ExperimentSettings(
            novelty=(200, 203),
            difficulty=("hard",),
            novelty_visibility=visibilities,
            trials=8,
            testing_episodes=20,
            pre_novel_episodes=8,
            testing_novelty_p2=1.0,
        )
    )
    rows = planned(drawn)
    count = len(rows["performance"])
    rows["performance"][:] = random.uniform(0.2, 1, count)
    rows["novelty_probability"][:] = random.uniform(0, 1, count)
    rows["novelty_threshold"][:] = 0.9
    rows["complete"][:] = True
    return Results(rows, drawn, {"agent": f"agent {seed}"})
