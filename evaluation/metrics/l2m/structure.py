"""Which regime of a lifetime is compared with which: found on the host, from the plan alone.

A regime is a run of episodes of one task in one block, R of them in a lifetime. The kernels of the
metrics only fetch what the positions found here point to, so lifetimes of one plan share them.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]


class Structure(NamedTuple):
    """Positions of partners; L is 1 where all lifetimes have the same plan. No partner is -1.

    Attributes:
      tasks: (L, R) task of each regime, 0 to K - 1; -1 where there is no regime.
      counts: (L, R) its episodes.
      train: (L, R) whether the agent learns in it.
      training: (L, M) the regimes in which the agent learns, in order.
      counted: (L, R) whether averages, maintenance and transfer use it.
      previous_training: (L, R) for a training regime awake, the last one of its task before it.
      recoveries: (L, K, N) the regimes with a recovery time, task by task.
      reference: (L, R) for a test regime that maintenance is measured at, the last test before it
        that followed training directly.
      latest_training: (L, R) for the same test regime, the last training before it.
      baseline: (L, R) for a test regime, the test of the same task before it.
      forward: (L, R, K) whether task k was trained between baseline and test, the task tested not
        yet.
      backward: (L, R, K) the same, the task tested trained before.
      last_forward: (L, R) the one of these tasks that appeared last for the first time.
      last_backward: (L, R) the same.
      own_training: (L, R) whether the tested task itself was trained between the two.
      curves: (L, K, X) episodes awake in training, task by task, as positions in R * T.
    """

    tasks: Integers
    counts: Integers
    train: Booleans
    training: Integers
    counted: Booleans
    previous_training: Integers
    recoveries: Integers
    reference: Integers
    latest_training: Integers
    baseline: Integers
    forward: Booleans
    backward: Booleans
    last_forward: Integers
    last_backward: Integers
    own_training: Booleans
    curves: Integers


def find_structure(
    tasks: npt.ArrayLike,
    counts: npt.ArrayLike,
    train: npt.ArrayLike,
    sleep: npt.ArrayLike,
    num_tasks: int,
    room: int,
) -> Structure:
    """Find the partners of every regime.

    Args:
      tasks: (L, R) integer task of each regime, -1 behind the last.
      counts: (L, R) integer episodes of each regime; a regime without episodes is nobody's partner.
      train: (L, R) whether the agent learns.
      sleep: (L, R) whether the regime is of subtype sleep.
      num_tasks: K, at least 1.
      room: T, the episodes that the arrays of values have room for.

    Source: l2metrics 3.1; a lifetime that sleeps anywhere is tested only asleep.
    """
    tasks, counts = np.asarray(tasks, np.int32), np.asarray(counts, np.int32)
    train, sleep = np.asarray(train, bool), np.asarray(sleep, bool)
    there = (tasks >= 0) & (counts > 0)
    sleeps = (sleep & there).any(axis=-1, keepdims=True)
    counted = there & (train | sleep | ~sleeps)
    awake = there & train & ~sleep
    member = (tasks[:, None, :] == np.arange(num_tasks)[:, None]) & there[:, None, :]
    own = np.clip(tasks, 0, None)
    previous = np.where(awake, _own(_last_before(member & awake[:, None]), own), -1)
    reference, latest = _maintenance(member, counted, train, own)
    transfer = _transfer(member, counted, train, own)
    return Structure(
        tasks,
        counts,
        train,
        _packed(train),
        counted,
        previous.astype(np.int32),
        _packed(member & (previous >= 0)[:, None]),
        reference,
        latest,
        *transfer,
        _curves(member & awake[:, None], counts, room),
    )


def _last_before(flags: Booleans) -> Integers:
    """(..., R + 1) the last position below each that is flagged, -1 for none."""
    positions = np.where(flags, np.arange(flags.shape[-1], dtype=np.int32), np.int32(-1))
    none = np.full((*flags.shape[:-1], 1), -1, np.int32)
    return np.concatenate([none, np.maximum.accumulate(positions, axis=-1)], axis=-1)


def _own(by_task: Integers, own: Integers) -> Integers:
    """(L, R) of an (L, K, R + 1) array, each regime its own task's."""
    return np.take_along_axis(by_task[..., : own.shape[-1]], own[:, None], axis=1)[:, 0]


def _maintenance(
    member: Booleans, counted: Booleans, train: Booleans, own: Integers
) -> tuple[Integers, Integers]:
    """Last reference test and last training before each test that maintenance is measured at."""
    trained = _own(_last_before(member & (counted & train)[:, None]), own)
    before = _own(_last_before(member & counted[:, None]), own)
    test = counted & ~train
    follows = test & (before >= 0) & (before == trained)
    reference = _own(_last_before(member & follows[:, None]), own)
    measured = test & ~follows & (reference >= 0)
    return np.where(measured, reference, -1), np.where(measured, trained, -1)


def _transfer(
    member: Booleans, counted: Booleans, train: Booleans, own: Integers
) -> tuple[Integers, Booleans, Booleans, Integers, Integers, Booleans]:
    """Fields of `Structure` from ``baseline`` to ``own_training``."""
    lifetimes, tasks, regimes = member.shape
    test = counted & ~train
    training = member & (counted & train)[:, None]
    before = _own(_last_before(member & test[:, None]), own)
    baseline = np.where(test, before, -1)
    start = np.clip(baseline, 0, None)
    first = np.where(training.any(axis=-1), training.argmax(axis=-1), regimes)  # (L, K)
    cut = np.take_along_axis(first, own, axis=-1)
    here = np.broadcast_to(np.arange(regimes), own.shape)
    last = np.swapaxes(_last_before(training), 1, 2)  # (L, R + 1, K)
    shape = (lifetimes, regimes, tasks)
    until_cut = np.take_along_axis(
        last, np.broadcast_to(np.minimum(here, cut)[..., None], shape), axis=1
    )
    until_here = last[:, :regimes]
    after = np.maximum(start, cut)[..., None]
    other = (own[..., None] != np.arange(tasks)) & (baseline >= 0)[..., None]
    forward = other & (until_cut > start[..., None])
    backward = other & (until_here > after)
    seen = member & counted[:, None]
    appeared = np.where(seen.any(axis=-1), seen.argmax(axis=-1), -1)[:, None]
    own_training = (baseline >= 0) & (_own(_last_before(training), own) > start)
    return (
        baseline.astype(np.int32),
        forward,
        backward,
        _latest_task(forward, appeared),
        _latest_task(backward, appeared),
        own_training,
    )


def _latest_task(flags: Booleans, appeared: Integers) -> Integers:
    """(L, R) the flagged task that appeared last, -1 where none is flagged."""
    latest = np.where(flags, appeared, -1).argmax(axis=-1)
    return np.where(flags.any(axis=-1), latest, -1).astype(np.int32)


def _packed(flags: Booleans) -> Integers:
    """(..., N) flagged positions of the last axis in order, -1 behind them."""
    counts = flags.sum(axis=-1)
    packed = np.full((*flags.shape[:-1], max(int(counts.max(initial=0)), 1)), -1, np.int32)
    *rows, positions = np.nonzero(flags)
    slots = (np.cumsum(flags, axis=-1) - 1)[flags]
    packed[(*rows, slots)] = positions
    return packed


def _curves(flags: Booleans, counts: Integers, room: int) -> Integers:
    """(L, K, X) positions of the flagged regimes' episodes in R * T, regime after regime."""
    episodes = np.arange(room) < counts[..., None]
    lifetimes, regimes = counts.shape
    tasks = [
        (flags[:, task, :, None] & episodes).reshape(lifetimes, regimes * room)
        for task in range(flags.shape[1])
    ]
    return _packed(np.stack(tasks, axis=1))
