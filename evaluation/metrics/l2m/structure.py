"""Positions of the regimes that metrics compare, computed on the host from the plan alone.

A regime is a sequence of episodes of one task in one block; a lifetime has R of them. The kernels
only gather values at these positions, so lifetimes of one plan share them.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]


class Structure(NamedTuple):
    """Positions of partners, -1 for none; L is 1 if all lifetimes have the same plan.

    Attributes:
      tasks: (L, R) task of each regime, 0 to K - 1; -1 for no regime.
      counts: (L, R) episodes of each regime.
      train: (L, R) whether the agent learns in it.
      training: (L, M) the regimes in which the agent learns, in order.
      counted: (L, R) whether averages, maintenance and transfer use it.
      previous_training: (L, R) for a training regime awake, the last one of its task before it.
      recoveries: (L, K, N) the regimes with a recovery time, by task.
      reference: (L, R) for a test regime with maintenance, the last test before it that followed
        training directly.
      latest_training: (L, R) for a test regime with maintenance, the last training before it.
      baseline: (L, R) for a test regime, the test of the same task before it.
      forward: (L, R, K) whether task k was trained between baseline and test, before any training
        of the tested task.
      backward: (L, R, K) whether task k was trained between baseline and test, after training of
        the tested task.
      last_forward: (L, R) the task of ``forward`` whose first appearance is the latest.
      last_backward: (L, R) the task of ``backward`` whose first appearance is the latest.
      own_training: (L, R) whether the tested task itself was trained between the two tests.
      curves: (L, K, X) episodes of training awake, by task, as positions in R * T.
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
      counts: (L, R) integer episodes of each regime; a regime without episodes is never a partner.
      train: (L, R) whether the agent learns.
      sleep: (L, R) whether the regime has the subtype sleep.
      num_tasks: K, at least 1.
      room: T, the size of the arrays' axis of episodes.

    Source: l2metrics 3.1; in a lifetime with sleep, only tests during sleep count.
    """
    tasks, counts = np.asarray(tasks, np.int32), np.asarray(counts, np.int32)
    train, sleep = np.asarray(train, bool), np.asarray(sleep, bool)
    exists = (tasks >= 0) & (counts > 0)
    has_sleep = (sleep & exists).any(axis=-1, keepdims=True)
    counted = exists & (train | sleep | ~has_sleep)
    awake = exists & train & ~sleep
    member = (tasks[:, None, :] == np.arange(num_tasks)[:, None]) & exists[:, None, :]
    task_index = np.clip(tasks, 0, None)
    previous = np.where(awake, _of_task(_last_before(member & awake[:, None]), task_index), -1)
    reference, latest = _maintenance(member, counted, train, task_index)
    transfer = _transfer(member, counted, train, task_index)
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
    """(..., R + 1) the last flagged position below each, -1 for none."""
    positions = np.where(flags, np.arange(flags.shape[-1], dtype=np.int32), np.int32(-1))
    none = np.full((*flags.shape[:-1], 1), -1, np.int32)
    return np.concatenate([none, np.maximum.accumulate(positions, axis=-1)], axis=-1)


def _of_task(by_task: Integers, task_index: Integers) -> Integers:
    """Select the task of each regime, (L, R) from (L, K, R + 1)."""
    before = by_task[..., : task_index.shape[-1]]
    return np.take_along_axis(before, task_index[:, None], axis=1)[:, 0]


def _maintenance(
    member: Booleans, counted: Booleans, train: Booleans, task_index: Integers
) -> tuple[Integers, Integers]:
    """Last reference test and last training before each test with maintenance."""
    trained = _of_task(_last_before(member & (counted & train)[:, None]), task_index)
    before = _of_task(_last_before(member & counted[:, None]), task_index)
    test = counted & ~train
    follows = test & (before >= 0) & (before == trained)
    reference = _of_task(_last_before(member & follows[:, None]), task_index)
    maintained = test & ~follows & (reference >= 0)
    return np.where(maintained, reference, -1), np.where(maintained, trained, -1)


def _transfer(
    member: Booleans, counted: Booleans, train: Booleans, task_index: Integers
) -> tuple[Integers, Booleans, Booleans, Integers, Integers, Booleans]:
    """Fields of `Structure` from ``baseline`` to ``own_training``."""
    lifetimes, tasks, regimes = member.shape
    test = counted & ~train
    training = member & (counted & train)[:, None]
    before = _of_task(_last_before(member & test[:, None]), task_index)
    baseline = np.where(test, before, -1)
    start = np.clip(baseline, 0, None)
    first = np.where(training.any(axis=-1), training.argmax(axis=-1), regimes)  # (L, K)
    cut = np.take_along_axis(first, task_index, axis=-1)
    here = np.broadcast_to(np.arange(regimes), task_index.shape)
    last = np.swapaxes(_last_before(training), 1, 2)  # (L, R + 1, K)
    shape = (lifetimes, regimes, tasks)
    until_cut = np.take_along_axis(
        last, np.broadcast_to(np.minimum(here, cut)[..., None], shape), axis=1
    )
    until_here = last[:, :regimes]
    after = np.maximum(start, cut)[..., None]
    other = (task_index[..., None] != np.arange(tasks)) & (baseline >= 0)[..., None]
    forward = other & (until_cut > start[..., None])
    backward = other & (until_here > after)
    present = member & counted[:, None]
    appearance = np.where(present.any(axis=-1), present.argmax(axis=-1), -1)[:, None]
    own_training = (baseline >= 0) & (_of_task(_last_before(training), task_index) > start)
    return (
        baseline.astype(np.int32),
        forward,
        backward,
        _latest_task(forward, appearance),
        _latest_task(backward, appearance),
        own_training,
    )


def _latest_task(flags: Booleans, appearance: Integers) -> Integers:
    """(L, R) the flagged task with the latest appearance, -1 for none."""
    latest = np.where(flags, appearance, -1).argmax(axis=-1)
    return np.where(flags.any(axis=-1), latest, -1).astype(np.int32)


def _packed(flags: Booleans) -> Integers:
    """(..., N) flagged positions of the last axis in order, padded with -1."""
    counts = flags.sum(axis=-1)
    packed = np.full((*flags.shape[:-1], max(int(counts.max(initial=0)), 1)), -1, np.int32)
    *rows, positions = np.nonzero(flags)
    slots = (np.cumsum(flags, axis=-1) - 1)[flags]
    packed[(*rows, slots)] = positions
    return packed


def _curves(flags: Booleans, counts: Integers, room: int) -> Integers:
    """(L, K, X) positions of the flagged regimes' episodes in R * T, in order."""
    episodes = np.arange(room) < counts[..., None]
    lifetimes, regimes = counts.shape
    tasks = [
        (flags[:, task, :, None] & episodes).reshape(lifetimes, regimes * room)
        for task in range(flags.shape[1])
    ]
    return _packed(np.stack(tasks, axis=1))
