"""Groups of trials that share environments, and the starts of their episodes.

Trials that need about the same number of block slots share one compiled program. The number changes
no result beyond four, so both engines compute an episode alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from evaluation import schedule as plans_of
from evaluation.sailon.experiment import (
    EpisodePlan,
    Experiment,
    LevelVariant,
    Trial,
)
from evaluation.tasks import Tasks
from jaxsim import registry
from jaxsim.embedding import SLOTS
from jaxsim.worlds.cartpole3d import CartPole3D
from jaxsim.worlds.cartpole3d.generate.start import fitted
from jaxsim.worlds.cartpole3d.generate.wsu import wsu_starts
from jaxsim.worlds.cartpole3d.parameter_table import slots_for
from jaxsim.worlds.cartpole3d.types import CAPACITIES, UNROLLED, Config, Rail, Sphere, State

SIZES = (UNROLLED, 32, CAPACITIES[-1])
"""Block slots up to which trials share a program; compiling one takes longer than playing it."""
FEW_EPISODES = 1 << 13
"""Episodes whose empty slots cost a batch less than another program. They change no result."""


@dataclass(frozen=True)
class TrialGroup:
    """Trials that are played in the same environments.

    Attributes:
      trials: of the experiment, in its order.
      variants: physics of all their episodes, level 200 first.
    """

    trials: tuple[Trial, ...]
    variants: tuple[LevelVariant, ...]

    @cached_property
    def schedule(self) -> plans_of.Schedule:
        """A schedule with one episode of each variant."""
        blocks = [
            plans_of.Block(index, 1, "test", *variant.of_schedule, 1, True)
            for index, variant in enumerate(self.variants)
        ]
        return plans_of.Schedule("sailon", tuple(blocks), "SAIL-ON")

    @cached_property
    def tasks(self) -> Tasks:
        """Environments and parameters of the schedule."""
        return Tasks.of(self.schedule)

    def variant(self, plan: EpisodePlan) -> int:
        """Index of an episode's variant."""
        return self._places[plan.variant]

    @cached_property
    def _places(self) -> dict[LevelVariant, int]:
        return {variant: place for place, variant in enumerate(self.variants)}


def groups(experiment: Experiment, few: int = 0) -> tuple[TrialGroup, ...]:
    """Sort the trials of an experiment by the block slots that they need, the fewest first.

    Args:
      experiment: whose trials.
      few: episodes up to which trials join those of more slots, such as `FEW_EPISODES`.
    """
    members: dict[int, list[Trial]] = {}
    needed = {cell: _size(_slots(experiment.variant(cell))) for cell in experiment.cells}
    for trial in experiment.trials:
        members.setdefault(needed[trial.cell], []).append(trial)
    for size, larger in pairwise(sorted(members)):
        episodes = sum(len(trial.seeds) for trial in members[size])
        if size > UNROLLED and episodes <= few:
            together = members.pop(size) + members[larger]
            members[larger] = sorted(together, key=lambda trial: trial.number)
    return tuple(
        TrialGroup(tuple(trials), _variants(experiment, trials))
        for _, trials in sorted(members.items())
    )


def training_group(experiment: Experiment) -> TrialGroup:
    """The group in whose environments the training is played."""
    first = groups(experiment)
    return first[0] if first else TrialGroup((), (experiment.unchanged,))


def _variants(experiment: Experiment, trials: Sequence[Trial]) -> tuple[LevelVariant, ...]:
    novel = (experiment.variant(trial.cell) for trial in trials)
    return tuple(dict.fromkeys([experiment.unchanged, *novel]))


def _size(slots: int) -> int:
    """Number of slots of the program for `slots`."""
    return next(size for size in SIZES if slots <= size)


def _slots(variant: LevelVariant) -> int:
    task, values = variant.of_schedule
    if task != CartPole3D.name:
        return SLOTS
    return slots_for(registry.spec(task).expand(dict(values)), Config().max_steps)


# Starts of the original -------------------------------------------------------------------------


def drawn_by_seed(plan: EpisodePlan) -> bool:
    """Whether the original draws the start of an episode: only at its levels, not a list's."""
    return plan.level >= plans_of.FIRST_3D and plan.variant.novelty is None


def original_starts(plans: Sequence[EpisodePlan], env: CartPole3D) -> State:
    """Starts that the original draws for the seeds of episodes.

    Randomness of later ticks comes from the keys of the steps, as everywhere.

    Args:
      plans: E episodes, all of three-dimensional levels.
      env: environment that is to play them.

    Returns:
      States before the hidden first tick, leaves (E, ...) of NumPy, in the form of `env.start`
      without noise of the sensors.
    """
    states = wsu_starts([(plan.seed, plan.level, plan.difficulty) for plan in plans], "float32")
    if "lines" in env.config.terms:
        states = replace(states, blocks=tuple(replace(b, rail=_line(b)) for b in states.blocks))
    return jax.tree.map(np.asarray, _fitted(states, env))


def starts_of_trial(
    plans: Sequence[EpisodePlan], group: TrialGroup, tasks: Tasks
) -> dict[int, State]:
    """Starts that the original draws for the episodes of a trial, by their indices.

    Args:
      plans: episodes; those of two-dimensional levels have no such start.
      group: group of the episodes.
      tasks: of the group.

    Returns:
      As `original_starts`, scalar leaves. It is faster to draw them together.
    """
    by_env: dict[CartPole3D, list[EpisodePlan]] = {}
    for plan in plans:
        if drawn_by_seed(plan):
            by_env.setdefault(tasks.env(group.variant(plan)), []).append(plan)
    starts = {}
    for env, members in by_env.items():
        leaves, tree = jax.tree.flatten(original_starts(members, env))
        for place, plan in enumerate(members):
            starts[plan.index] = jax.tree.unflatten(tree, [leaf[place] for leaf in leaves])
    return starts


def _line(block: Sphere) -> Rail:
    """Rail of a block; a rail of zeros, which leaves it free, if it has none."""
    zero = jnp.zeros_like(block.p.x)
    return block.rail or Rail(zero, zero, zero, zero)


@partial(jax.jit, static_argnames="env")
def _fitted(starts: State, env: CartPole3D) -> State:
    return jax.vmap(partial(fitted, config=env.config))(starts)
