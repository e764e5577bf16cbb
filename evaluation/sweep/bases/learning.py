"""What the bases `run` and `train` have in common: schedules, learners, records, checkpoints."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
import pyarrow as pa

from evaluation import agents, scanner
from evaluation.checkpoints.configuration import configuration
from evaluation.checkpoints.keeper import Busy, Checkpoints, Pace
from evaluation.checkpoints.loading import PREFIX, SavedAgent, player
from evaluation.files import ResultFiles
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Schedule
from evaluation.sweep.bases.base import METRICS, Place, Values, agent_of, below
from evaluation.sweep.grid import Cell
from evaluation.tasks import Tasks
from jaxsim import registry, training
from jaxsim.agents import Agent
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
"""Hyper-parameters of learners whose own are not those of `Settings`, which values change."""
COPIES: Final = 4
"""Of a learner's memory, in the device and on the host; measured."""


def schedule_with(schedule: Schedule, values: Mapping[str, Any]) -> Schedule:
    """A schedule with parameters of its tasks set, whatever its blocks say.

    Raises:
      ValueError: a parameter that no task of it has.
    """
    tables = {block.task: registry.spec(block.task).parameters for block in schedule.blocks}
    for path in values:
        if not any(path in table for table in tables.values()):
            known = [name for table in tables.values() for name in table]
            raise ValueError(unknown("parameter", path, dict.fromkeys(known)))
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
    """Hyper-parameters that values name; `hidden` is text, as "64,64"."""
    found = below(values, SETTINGS)
    if "hidden" in found:
        try:
            found["hidden"] = tuple(int(part) for part in str(found["hidden"]).split(","))
        except ValueError as error:
            raise ValueError(
                f'settings/hidden is {found["hidden"]!r}; it must be text, as "64,64"'
            ) from error
    return found


def fixed_settings(values: Values) -> tuple[tuple[str, Any], ...]:
    """Hyper-parameters that shape the program."""
    found = settings_of(values)
    return tuple(sorted((name, v) for name, v in found.items() if name not in BOUNDS))


def agent_with(cells: Sequence[Values], lifetimes: int, place: Place) -> Agent:
    """The agent of some cells, each with as many lifetimes, in this order.

    Raises:
      ValueError: no such agent or hyper-parameter, or one out of bounds.
    """
    name = agent_of(cells[0], place)
    each = [settings_of(values) for values in cells]
    if not each[0]:
        return agents.get(name)
    if name not in training.LEARNERS:
        known = ", ".join(training.LEARNERS)
        raise ValueError(f"settings/... are of learners ({known}); agent is {name!r}")
    joined: dict[str, Any] = {}
    for key, value in each[0].items():
        if key in BOUNDS and len(cells) > 1:
            # Lifetime k takes value k: a sweep over them is one program.
            joined[key] = [one[key] for one in each for _ in range(lifetimes)]
        else:
            joined[key] = value
    try:
        settings = replace(OWN_SETTINGS.get(name, training.Settings()), **joined)
    except TypeError as error:
        known = ", ".join(training.Settings.__dataclass_fields__)
        raise ValueError(f"settings are {', '.join(joined)}; allowed: {known}") from error
    return training.get(name, settings)


def player_with(cells: Sequence[Values], lifetimes: int, place: Place) -> SavedAgent:
    """The agent with what it knows; one of a checkpoint is alone in its pack."""
    name = str(cells[0]["agent"])
    if name.startswith(PREFIX):
        return player(name, lifetimes)
    return SavedAgent(agent_with(cells, lifetimes, place), name)


def play(
    cells: Sequence[Cell], schedule: Schedule, lifetimes: int, width: int, place: Place
) -> list[Records]:
    """Play the cells of a pack side by side, saved as it goes; records of each cell."""
    seed = int(cells[0].values["seed"])
    values = [cell.values for cell in cells]
    number = len(cells) * lifetimes
    who = player_with(values, lifetimes, place)

    def played(keeper: scanner.Keeper | None) -> Records:
        return scanner.play(
            schedule,
            who.agent,
            lifetimes=number,
            seed=seed,
            width=width,
            memory=who.memory,
            keeper=keeper,
        )

    records = _kept(cells, schedule, who, number, width, place, played)
    about = {**records.metadata, "lifetimes": lifetimes}
    return [
        Records(
            schedule,
            {
                name: column[k * lifetimes : (k + 1) * lifetimes]
                for name, column in records.columns.items()
            },
            records.novelty_levels,
            0,
            about,
        )
        for k in range(len(cells))
    ]


FILES: Final = ResultFiles("done", ())


def _kept(
    cells: Sequence[Cell],
    schedule: Schedule,
    who: SavedAgent,
    lifetimes: int,
    width: int,
    place: Place,
    play: Any,
) -> Records:
    """Play with checkpoints in the sweep's folder, which are gone when it is over."""
    if place.folder is None:
        found: Records = play(None)
        return found
    out = place.folder / "checkpoints" / f"cell-{cells[0].number}"
    matters = configuration(
        schedule,
        agent=who.built_in,
        lifetimes=lifetimes,
        seed=int(cells[0].values["seed"]),
        width=width,
        cells=[dict(cell.values) for cell in cells],
        knows=who.origin,
    )
    blocks = schedule.block_counts().tolist()
    keeper = Checkpoints(out, blocks, matters, FILES, Pace(), resume=True, stop=place.stop)
    try:
        with contextlib.closing(keeper):
            records: Records = play(keeper)
            keeper.discard()
    except Busy:
        # Another process plays the same pack: it writes the same, so it is only slower.
        records = play(None)
    with contextlib.suppress(OSError):
        Path(out).rmdir()
    return records


def rows(cells: Sequence[Cell], records: Sequence[Records]) -> pa.Table:
    """One row an episode."""
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


def metrics(cells: Sequence[Cell], found: Sequence[Mapping[str, Mapping[str, Any]]]) -> pa.Table:
    """One row a metric.

    Args:
      cells: of a pack.
      found: for each, entries by the name of the metric: "mean", "low", "high", "lifetimes", and
        "reason" where one is missing.
    """
    listed = [
        {
            "cell": cell.number,
            "metric": name,
            "value": entry["mean"],
            "low": entry["low"],
            "high": entry["high"],
            "count": entry["lifetimes"],
            "reason": entry.get("reason"),
        }
        for cell, entries in zip(cells, found, strict=True)
        for name, entry in entries.items()
    ]
    return pa.Table.from_pylist(listed, schema=METRICS)


def worlds(schedule: Schedule) -> tuple[Any, ...]:
    """Environments that a schedule is played in, which its program depends on."""
    return tuple(world.env for world in Tasks.of(schedule).worlds)


def most_steps(schedule: Schedule) -> int:
    """Steps of a lifetime, if every episode is as long as it can be."""
    tasks = Tasks.of(schedule)
    longest = [tasks.env(index).max_steps for index in range(len(tasks.world))]
    variants = schedule.block_variants()
    return sum(
        int(longest[variant]) * block.count
        for variant, block in zip(variants, schedule.blocks, strict=True)
    )


def bytes_of(values: Values, lifetimes: int, episodes: int, place: Place) -> int:
    """Memory of some lifetimes: what the agent remembers, and the records."""
    if str(values["agent"]).startswith(PREFIX):
        return BYTES_AN_EPISODE * lifetimes * episodes
    agent = agent_with([values], 1, place)
    shapes = jax.eval_shape(agent.init, jax.random.key(0))
    memory = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    return lifetimes * (COPIES * memory + BYTES_AN_EPISODE * episodes)
