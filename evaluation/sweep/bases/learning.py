"""Common parts of the bases `run` and `train`: schedules, learners, records, checkpoints."""

import contextlib
import filecmp
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
import pyarrow as pa

from evaluation import agents, scanner
from evaluation.checkpoints.configuration import configuration, digest, versions
from evaluation.checkpoints.keeper import Busy, Checkpoints, Pace
from evaluation.checkpoints.loading import PREFIX, SavedAgent, newest, player
from evaluation.checkpoints.store import MANIFEST, CheckpointError
from evaluation.files import ResultFiles
from evaluation.json_types import JsonMapping
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Schedule
from evaluation.sweep.bases.base import (
    METRICS,
    SweepFiles,
    Values,
    agent_files,
    agent_of,
    below,
)
from evaluation.sweep.grid import SweepCell
from evaluation.tasks import Tasks
from jaxsim import registry, training
from jaxsim.agents import Agent
from jaxsim.env import Env
from jaxsim.parameters import unknown
from jaxsim.training import a2c, ppo_leans
from jaxsim.training.settings import BOUNDS

SETTINGS: Final = "settings/"
"""Prefix of the hyper-parameters of a learner, as settings/learning_rate."""
ROWS: Final = pa.schema(
    [
        ("cell", pa.int64()),
        ("lifetime", pa.int32()),
        ("experiment", pa.int32()),  # number of the episode in its lifetime
        ("block", pa.int32()),
        *((name, pa.from_numpy_dtype(dtype)) for name, dtype in COLUMNS.items()),
    ]
)
BYTES_AN_EPISODE: Final = 64
OWN_SETTINGS: Final = {"a2c": a2c.SETTINGS, "ppo+leans": ppo_leans.SETTINGS}
"""Defaults of learners whose hyper-parameters differ from those of `Settings`."""
USED_BY: Final = {
    "updates": tuple(name for name in training.LEARNERS if name != "a2c"),
    "consolidation": ("ppo+ewc",),
    "rehearsal": ("ppo+replay",),
    "rehearsed": ("ppo+replay",),
}
"""Learners that use a hyper-parameter, of those that some do without."""
COPIES: Final = 4
"""Copies of a learner's memory on the device and the host; measured."""


def schedule_with(schedule: Schedule, values: Values) -> Schedule:
    """Set parameters in all blocks whose task has them.

    Raises:
      ValueError: no task of the schedule has a parameter.
    """
    tables = {block.task: registry.spec(block.task).parameters for block in schedule.blocks}
    for path in values:
        if not any(path in table for table in tables.values()):
            names = [name for table in tables.values() for name in table]
            raise ValueError(unknown("parameter", path, dict.fromkeys(names)))
    blocks = [
        replace(
            block,
            parameters=tuple(
                sorted(
                    {
                        **dict(block.parameters),
                        **{p: v for p, v in values.items() if p in tables[block.task]},
                    }.items()
                )
            ),
        )
        for block in schedule.blocks
    ]
    return replace(schedule, blocks=tuple(blocks))


def settings_of(values: Values) -> dict[str, Any]:
    """Hyper-parameters among values; `hidden` is text, as "64,64"."""
    settings = below(values, SETTINGS)
    if "hidden" in settings:
        try:
            settings["hidden"] = tuple(int(part) for part in str(settings["hidden"]).split(","))
        except ValueError as error:
            raise ValueError(
                f'settings/hidden is {settings["hidden"]!r}; it must be text, as "64,64"'
            ) from error
    return settings


def fixed_settings(values: Values) -> tuple[tuple[str, Any], ...]:
    """Hyper-parameters that are static in the program."""
    settings = settings_of(values)
    return tuple(sorted((name, v) for name, v in settings.items() if name not in BOUNDS))


def agent_with(
    cells: Sequence[Values], schedule: Schedule, lifetimes: int, place: SweepFiles
) -> Agent:
    """The agent of some cells, each with `lifetimes` lifetimes, in this order.

    Raises:
      ValueError: an agent or hyper-parameter is unknown, out of bounds, or without effect.
    """
    name = agent_of(cells[0], place)
    settings_of_cells = [settings_of(values) for values in cells]
    if not settings_of_cells[0]:
        return agents.of_schedule(name, schedule)
    if name not in training.LEARNERS:
        names = ", ".join(training.LEARNERS)
        raise ValueError(f"settings/... are of learners ({names}); agent is {name!r}")
    for key in settings_of_cells[0]:
        if name not in USED_BY.get(key, training.LEARNERS):
            raise ValueError(f"{SETTINGS}{key} has no effect on {name}; leave it out")
    combined: dict[str, Any] = {}
    for key, value in settings_of_cells[0].items():
        if key in BOUNDS and len(cells) > 1:
            # Lifetime k of the call takes value k, so that a sweep over them is one program.
            combined[key] = [one[key] for one in settings_of_cells for _ in range(lifetimes)]
        else:
            combined[key] = value
    try:
        settings = replace(OWN_SETTINGS.get(name, training.Settings()), **combined)
    except TypeError as error:
        names = ", ".join(training.Settings.__dataclass_fields__)
        raise ValueError(f"settings are {', '.join(combined)}; allowed: {names}") from error
    return agents.of_schedule(name, schedule, settings)


def files(values: Values) -> list[str]:
    """The file of an agent, or the manifest of the checkpoint that it is from."""
    directory = _checkpoint_of(values)
    return [str(newest(directory) / MANIFEST)] if directory else agent_files(values)


def check(values: Values, schedule: Schedule, place: SweepFiles) -> None:
    """Check the agent of a cell, and that it can play the tasks.

    Raises:
      ValueError: as `agent_with`, or settings for an agent from a checkpoint, which are fixed.
    """
    if _checkpoint_of(values) and settings_of(values):
        raise ValueError(f"{SETTINGS}... are those of the checkpoint; leave them out")
    agent = player_with([values], schedule, values["lifetimes"], place).agent
    agents.check_worlds(agent, str(values["agent"]), schedule)


def _checkpoint_of(values: Values) -> Path | None:
    name = str(values["agent"])
    return Path(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def player_with(
    cells: Sequence[Values], schedule: Schedule, lifetimes: int, place: SweepFiles
) -> SavedAgent:
    """The agent with its memory; an agent from a checkpoint is alone in its pack.

    Raises:
      ValueError: as `agent_with`, or a checkpoint that is not the one that was planned with.
    """
    name = str(cells[0]["agent"])
    if _checkpoint_of(cells[0]) is None:
        return SavedAgent(agent_with(cells, schedule, lifetimes, place), name)
    (manifest,) = files(cells[0])
    planned = place.inputs.get(manifest)
    if place.folder and (planned is None or not filecmp.cmp(planned, manifest, shallow=False)):
        raise ValueError(f"{name} has another checkpoint than when the sweep was planned")
    return player(name, lifetimes, schedule=schedule)


def play(
    cells: Sequence[SweepCell], schedule: Schedule, lifetimes: int, width: int, place: SweepFiles
) -> list[Records]:
    """Play the cells of a pack in parallel, with checkpoints; return the records of each cell."""
    seed = int(cells[0].values["seed"])
    values = [cell.values for cell in cells]
    count = len(cells) * lifetimes
    saved_agent = player_with(values, schedule, lifetimes, place)

    def play_with(keeper: scanner.Keeper | None) -> Records:
        return scanner.play(
            schedule,
            saved_agent.agent,
            lifetimes=count,
            seed=seed,
            width=width,
            memory=saved_agent.memory,
            keeper=keeper,
            randomness=[*range(lifetimes)] * len(cells),  # cells of one seed begin alike
        )

    records = _play_with_checkpoints(cells, schedule, saved_agent, count, width, place, play_with)
    metadata = {**records.metadata, "lifetimes": lifetimes}
    return [
        Records(
            schedule,
            {
                name: column[k * lifetimes : (k + 1) * lifetimes]
                for name, column in records.columns.items()
            },
            records.novelty_levels,
            0,
            metadata,
        )
        for k in range(len(cells))
    ]


FILES: Final = ResultFiles("done", ())


def _play_with_checkpoints(
    cells: Sequence[SweepCell],
    schedule: Schedule,
    saved_agent: SavedAgent,
    lifetimes: int,
    width: int,
    place: SweepFiles,
    play: Callable[[Checkpoints | None], Records],
) -> Records:
    """Play with checkpoints in the sweep's folder, and remove them in the end.

    Checkpoints are of the cells, their values and versions: those of a plan that was replaced do
    not count, and a pack whose checkpoints are damaged begins at the start.
    """
    if place.folder is None:
        return play(None)
    run_configuration = configuration(
        schedule,
        agent=saved_agent.built_in,
        lifetimes=lifetimes,
        seed=int(cells[0].values["seed"]),
        width=width,
        cells=[dict(cell.values) for cell in cells],
        knows=saved_agent.origin,
    )
    name = f"cell-{cells[0].number}-{digest([run_configuration, versions()])[:8]}"
    out, blocks = place.folder / "checkpoints" / name, schedule.block_counts().tolist()

    def play_keeping(resume: bool) -> Records:
        keeper = Checkpoints(
            out, blocks, run_configuration, FILES, Pace(), resume=resume, stop=place.stop
        )
        with contextlib.closing(keeper):
            records = play(keeper)
            keeper.discard()
        return records

    try:
        records = play_keeping(resume=True)
    except Busy:
        # Another process plays the same pack. Both give the same results, so this only costs time.
        records = play(None)
    except CheckpointError:
        records = play_keeping(resume=False)
    with contextlib.suppress(OSError):
        out.rmdir()
    return records


def rows(cells: Sequence[SweepCell], records: Sequence[Records]) -> pa.Table:
    """Table with one row per episode."""
    parts = []
    for cell, one in zip(cells, records, strict=True):
        lifetimes, episodes = one.columns["length"].shape
        arrays = [
            np.full(lifetimes * episodes, cell.number, np.int64),
            np.repeat(np.arange(lifetimes, dtype=np.int32), episodes),
            np.tile(np.arange(episodes, dtype=np.int32), lifetimes),
            np.tile(one.schedule.episode_blocks().astype(np.int32), lifetimes),
            *(np.ascontiguousarray(one.columns[n], dtype).ravel() for n, dtype in COLUMNS.items()),
        ]
        parts.append(pa.Table.from_arrays([pa.array(a) for a in arrays], schema=ROWS))
    return pa.concat_tables(parts)


def metrics(
    cells: Sequence[SweepCell], entries_of_cells: Sequence[Mapping[str, JsonMapping]]
) -> pa.Table:
    """Table with one row per cell and metric.

    Args:
      cells: cells of a pack.
      entries_of_cells: for each cell, entries by the name of the metric: "mean", "low", "high",
        "lifetimes", and "reason" if a number is missing.
    """
    table_rows = [
        {
            "cell": cell.number,
            "metric": name,
            "value": entry["mean"],
            "low": entry["low"],
            "high": entry["high"],
            "count": entry["lifetimes"],
            "reason": entry.get("reason"),
        }
        for cell, entries in zip(cells, entries_of_cells, strict=True)
        for name, entry in entries.items()
    ]
    return pa.Table.from_pylist(table_rows, schema=METRICS)


def worlds(schedule: Schedule) -> tuple[Env, ...]:
    """Environments of a schedule, on which its program depends."""
    return tuple(world.env for world in Tasks.of(schedule).worlds)


def most_steps(schedule: Schedule) -> int:
    """Steps of a lifetime, if every episode has its greatest length."""
    tasks = Tasks.of(schedule)
    longest = [tasks.env(index).max_steps for index in range(len(tasks.world))]
    variants = schedule.block_variants()
    return sum(
        int(longest[variant]) * block.count
        for variant, block in zip(variants, schedule.blocks, strict=True)
    )


def bytes_of(values: Values, lifetimes: int, schedule: Schedule, place: SweepFiles) -> int:
    """Memory of some lifetimes: the agent's memory and the records."""
    episodes = schedule.num_episodes
    agent = player_with([values], schedule, 1, place).agent
    shapes = jax.eval_shape(agent.init, jax.random.key(0))
    memory = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    return lifetimes * (COPIES * memory + BYTES_AN_EPISODE * episodes)
