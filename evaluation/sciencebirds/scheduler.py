"""The scheduler of trials as one pure function of a plan, a state and an event.

    state = start(plan)
    state, reply = step(plan, state, event)

Everything is int32 or bool data of a fixed shape, so that the same function runs one evaluation
behind a socket and, with `jax.vmap`, thousands with different plans in parallel. `Single` is the
one run, `lanes` the batch; both are `step`.

The states of the protocol are codes: 1 a menu is shown, 5 playing, 6 won, 7 lost; 8 a test set, 9 a
training set, 10 the old training set and 11 a trial comes next; 12 novelty is asked for; 13 the
evaluation has ended. States 11 and 13 abort a running level and 12 pauses it; 8, 9 and 10 follow
when it ends.

Time is in ms, of the training while training and of each test while testing; it stands still from
an announcement until the agent is ready. Quirks are differences of the original.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.sciencebirds.codes import (
    EVALUATION_TERMINATED,
    MAIN_MENU,
    NEW_TEST_SET,
    NEW_TRAINING_SET,
    NEW_TRIAL,
    PLAYING,
    REQUEST_NOVELTY_LIKELIHOOD,
    RESUME_TRAINING,
)
from evaluation.sciencebirds.document import LARGEST, ConfiguredTrial, Evaluation

TICK, SHOT, LOAD, NEXT, RESTART, LIKELIHOOD, READY = range(7)
"""Kinds of events: time passes; a shot was played; a level by its number, the next level or the
current level is requested; novelty is reported; the agent is ready for a new set."""

TRAINING, TESTING = 0, 1
NO_ANSWER = -1
"""Value of a reply that the original never sends."""
UNLIMITED = 0
SMALLEST = 16
"""Least size of a plan's arrays, so that small plans share compiled functions."""

Array = Any


class Quirks(NamedTuple):
    """Differences of the original; () bool each, False for the behaviour in its document."""

    direct_start: Array = False  # begins with 9 in place of 11, and never says 9 after 11
    nine_for_eight: Array = False  # announces the first test set of a checkpoint by 9
    all_tests: Array = False  # plays the whole list of test sets at every checkpoint
    spent_tests: Array = False  # levels of tests that were loaded stay spent at later checkpoints
    count_loads: Array = False  # a load is an interaction
    count_tests: Array = False  # interactions and time of tests count as training, too
    one_execution: Array = False  # repeats are ignored
    lost_position: Array = False  # forgets the level when training resumes; may never answer again
    no_unlimited: Array = False  # without a limit of attempts, level 1 is never served
    off_by_one: Array = False  # a level by its number is looked up one place too far
    ready_always: Array = False  # an unasked "ready" restarts the checkpoint's clock
    load_always: Array = False  # while a level runs, the next may be loaded at any time


QUIRKS = Quirks._fields


class TrialPlan(NamedTuple):
    """An evaluation as arrays; T trials, S sets. All int32 or, where noted, bool."""

    step: Array  # () interactions between two questions for novelty, 0 for never
    asks: Array  # (2,) bool, whether they are asked in training and in tests
    trials: Array  # () number of trials that are run
    executions: Array  # (T,) of each trial
    checkpoint_time: Array  # (T,) s of training, 0 for no limit
    checkpoint_interactions: Array  # (T,) 0 for no limit
    notify: Array  # (T,) bool, whether the agent may ask for novelty
    training: Array  # (T,) index of the training set, -1 if there is none
    tests: Array  # (T,) index of the first test set
    test_count: Array  # (T,) number of test sets
    levels: Array  # (S,) number of levels
    time: Array  # (S,) s, 0 for no limit
    interactions: Array  # (S,) 0 for no limit
    attempts: Array  # (S,) loads of each level, 0 for no limit
    selection: Array  # (S,) bool, True for an unordered set
    slots: Array  # (L,) 0, 1, ..., the places of levels in the state
    per_episode: Array  # () bool, an interaction is a level that was played, not a shot
    quirks: Quirks


class Progress(NamedTuple):
    """Progress in a set."""

    level: Array  # () index of the current level, -1 for none yet
    remaining: Array  # (L,) remaining loads of each level
    time: Array  # () ms
    interactions: Array  # ()
    count: Array  # () interactions that questions for novelty are counted by


class RunState(NamedTuple):
    """State of a run of an evaluation; all () int32 or, where noted, bool."""

    trial: Array
    execution: Array  # of this trial, from 0
    mode: Array  # TRAINING or TESTING
    set: Array  # index of the current set
    test: Array  # place in the trial's list of the current test set, or else of the next one
    pending: Array  # announcement that is due, 0 for none
    asked: Array  # bool, novelty is asked for
    status: Array  # MAIN_MENU, PLAYING, WON or LOST
    current: Progress
    training: Progress  # of the training set, while tests are run
    checkpoint_time: Array  # ms of training since the last checkpoint
    checkpoint_interactions: Array
    refused: Array  # bool, a load was asked for when no level was left
    last: Array  # bool, the training is over: the test is the final one
    tested: Array  # bool, a checkpoint of this execution has had its tests
    lost: Array  # bool, quirk: loads are not answered any more


class Event(NamedTuple):
    """An event; () int32 each."""

    kind: Array  # TICK to READY
    value: Array = 0  # LOAD: number of the level, from 1; SHOT: status after it
    elapsed: Array = 0  # ms since the last event


class Reply(NamedTuple):
    """Reply to an event, and where the run is; () int32 or as noted."""

    value: Array  # 1 for accepted, 0 for refused, NEXT: number of the level
    reported: Array  # code of the state
    playable: Array  # bool, whether a shot would be accepted
    header: Array  # (7,) READY: fields of the reply to "ready for new set"
    trial: Array  # as in the state, like all fields below
    execution: Array
    mode: Array
    set: Array
    level: Array
    status: Array
    count: Array  # interactions of the set


class Shape(NamedTuple):
    """Sizes of a plan's arrays."""

    trials: int
    sets: int
    levels: int


def shape_of(evaluation: Evaluation) -> Shape:
    """Sizes that hold an evaluation, rounded up so that many evaluations share them."""
    trials = runnable(evaluation)
    sets = [level_set for trial in trials for level_set in trial.sets]
    most = max((len(each.levels) for each in sets), default=0)
    return Shape(*(_rounded_up(n) for n in (len(trials), len(sets), most)))


def _rounded_up(number: int) -> int:
    return max(SMALLEST, 1 << (number - 1).bit_length())


def runnable(evaluation: Evaluation) -> tuple[ConfiguredTrial, ...]:
    """Trials that are executed at all, in order; the trials of a plan."""
    return tuple(trial for trial in evaluation.trials if trial.executions > 0 and trial.sets)


def plan_of(
    evaluation: Evaluation,
    *,
    per_episode: bool = False,
    quirks: Quirks | None = None,
    shape: Shape | None = None,
) -> TrialPlan:
    """Lay an evaluation out as arrays.

    Args:
      evaluation: the trials.
      per_episode: whether an interaction is a level that was played rather than a shot.
      quirks: differences of the original that are adopted.
      shape: sizes of the arrays; None for those of this evaluation.

    Raises:
      ValueError: sizes that are too small.
    """
    fits = shape_of(evaluation)
    shape = shape or fits
    if any(size < needed for size, needed in zip(shape, fits, strict=True)):
        raise ValueError(f"shape is {shape}; this evaluation needs {fits}")
    trials = runnable(evaluation)
    sets = [level_set for trial in trials for level_set in trial.sets]
    firsts = np.cumsum([0, *(len(trial.sets) for trial in trials)]).tolist()
    trained = [trial.training is not None for trial in trials]
    first_tests = [first + has for first, has in zip(firsts, trained, strict=False)]
    measurement = evaluation.measurement
    per_trial = partial(_column, shape.trials)
    per_set = partial(_column, shape.sets)
    return TrialPlan(
        step=np.int32(max(measurement.step, 0)),
        asks=np.array([measurement.training, measurement.testing]),
        trials=np.int32(len(trials)),
        executions=per_trial([trial.executions for trial in trials]),
        checkpoint_time=per_trial([trial.checkpoint_time for trial in trials]),
        checkpoint_interactions=per_trial([trial.checkpoint_interactions for trial in trials]),
        notify=per_trial([trial.notify for trial in trials]).astype(bool),
        training=per_trial([f if has else -1 for f, has in zip(firsts, trained, strict=False)]),
        tests=per_trial(first_tests),
        test_count=per_trial([len(trial.tests) for trial in trials]),
        levels=per_set([len(each.levels) for each in sets]),
        time=per_set([each.limits.time for each in sets]),
        interactions=per_set([each.limits.interactions for each in sets]),
        attempts=per_set([each.limits.attempts for each in sets]),
        selection=per_set([each.limits.selection for each in sets]).astype(bool),
        slots=np.arange(shape.levels, dtype=np.int32),
        per_episode=np.bool_(per_episode),
        quirks=Quirks(*(np.bool_(value) for value in quirks or Quirks())),
    )


def _column(size: int, values: Sequence[int]) -> np.ndarray:
    """Numbers, padded with zeros; numbers below -1 become -1, which is no limit or no index."""
    column = np.zeros(size, np.int32)
    column[: len(values)] = np.maximum(values, -1) if values else []
    return column


def stack(plans: Sequence[TrialPlan]) -> TrialPlan:
    """Join plans of one shape into a batch: every leaf gets a leading axis of lanes."""
    batch: TrialPlan = jax.tree.map(lambda *leaves: np.stack(leaves), *plans)
    return batch


def start(plan: TrialPlan) -> RunState:
    """State before the first event."""
    state = _execution(plan, jnp.int32(0), jnp.int32(0))
    direct = plan.quirks.direct_start & (state.mode == TRAINING)
    first = jnp.where(direct, NEW_TRAINING_SET, NEW_TRIAL)
    code = jnp.where(plan.trials == 0, EVALUATION_TERMINATED, first)
    return state._replace(pending=code.astype(jnp.int32))


def step(plan: TrialPlan, state: RunState, event: Event) -> tuple[RunState, Reply]:
    """Let time pass, process one event and announce what follows from it.

    Args:
      plan: of the evaluation.
      state: before the event.
      event: the event.

    Returns:
      (state, reply). A refused event changes nothing but the time that has passed.
    """
    state = _due(plan, _pass_time(plan, state, jnp.asarray(event.elapsed, jnp.int32)))
    value = jnp.asarray(event.value, jnp.int32)
    handlers = (_tick, _shot, _load, _next, _restart, _likelihood, _ready)
    branches = [partial(handler, plan) for handler in handlers]
    state, answer, header = jax.lax.switch(event.kind, branches, state, value)
    state = _due(plan, state)
    reply = Reply(
        answer,
        reported(plan, state),
        _playable(state),
        header,
        state.trial,
        state.execution,
        state.mode,
        state.set,
        state.current.level,
        state.status,
        state.current.count,
    )
    return state, reply


class Single:
    """One run, event by event; `step`, compiled once for all plans of a shape.

    Args:
      plan: of the evaluation.

    Attributes:
      state: after the last event.
    """

    def __init__(self, plan: TrialPlan) -> None:
        self._plan = jax.device_put(plan)
        self.state = _start(self._plan)

    def happens(self, kind: int, value: int = 0, elapsed: int = 0) -> Reply:
        """Process an event; return the reply as Python integers, the header as a tuple."""
        event = np.array((kind, value, elapsed), np.int32)
        self.state, packed = _packed_step(self._plan, self.state, event)
        answer, state, playable, *rest = np.asarray(packed).tolist()
        return Reply(answer, state, bool(playable), tuple(rest[:7]), *rest[7:])


_start = jax.jit(start)


@jax.jit
def _packed_step(plan: TrialPlan, state: RunState, event: Array) -> tuple[RunState, Array]:
    """`step` with the reply in one array: each array that leaves the device costs time."""
    state, reply = step(plan, state, Event(*event))
    return state, jnp.concatenate([jnp.ravel(leaf).astype(jnp.int32) for leaf in reply])


start_lanes = jax.jit(jax.vmap(start))
"""`start` for a batch of runs."""
lanes = jax.jit(jax.vmap(step))
"""`step` for a batch of runs: plans from `stack`, states and events with the same leading axis."""


def reported(plan: TrialPlan, state: RunState) -> Array:
    """Code of the state that an agent is told, () int32."""
    waits = _waits(state.pending) & (state.status == PLAYING)
    early = (state.pending == NEW_TEST_SET) & (state.mode == TRAINING) & plan.quirks.nine_for_eight
    announcement = jnp.where(early, NEW_TRAINING_SET, state.pending)
    shown = jnp.where((state.pending == 0) | waits, state.status, announcement)
    return jnp.where(state.asked, REQUEST_NOVELTY_LIKELIHOOD, shown).astype(jnp.int32)


def _waits(pending: Array) -> Array:
    """Whether an announcement waits for the end of a level."""
    return (pending == NEW_TEST_SET) | (pending == NEW_TRAINING_SET) | (pending == RESUME_TRAINING)


def _playable(state: RunState) -> Array:
    return (state.status == PLAYING) & ~state.asked


def _may_load(plan: TrialPlan, state: RunState) -> Array:
    always = plan.quirks.load_always & (state.status == PLAYING)
    return always | (~state.asked & (state.pending == 0))


# Levels of a set --------------------------------------------------------------------------------


def _fresh(plan: TrialPlan, index: Array) -> Progress:
    """Progress of a set that begins."""
    zero = jnp.int32(0)
    attempts = jnp.asarray(plan.attempts, jnp.int32)[index]
    remaining = jnp.full(plan.slots.shape, jnp.maximum(attempts, 0))
    return Progress(jnp.int32(-1), remaining, zero, zero, zero)


def _limited(plan: TrialPlan, state: RunState) -> Array:
    return plan.attempts[state.set] > UNLIMITED


def _accessible(plan: TrialPlan, state: RunState) -> Array:
    """Which levels of the current set may be loaded at all, (L,) bool."""
    inside = plan.slots < plan.levels[state.set]
    # A sequence does not go back.
    reached = plan.selection[state.set] | (plan.slots >= state.current.level)
    served = ~plan.quirks.no_unlimited | (plan.slots > 0)
    limited = _limited(plan, state)
    return inside & jnp.where(limited, (state.current.remaining > 0) & reached, served)


def _successor(plan: TrialPlan, state: RunState) -> Array:
    """Index of the accessible level after the current one; the first follows the last."""
    distance = (plan.slots - state.current.level - 1) % jnp.maximum(plan.levels[state.set], 1)
    far = jnp.iinfo(jnp.int32).max
    return jnp.argmin(jnp.where(_accessible(plan, state), distance, far)).astype(jnp.int32)


def _attempts_left(plan: TrialPlan, state: RunState) -> Array:
    """Whether the current level may be loaded once more."""
    level = state.current.level
    return (level >= 0) & (~_limited(plan, state) | (state.current.remaining[level] > 0))


def _over(plan: TrialPlan, state: RunState) -> Array:
    """Whether the current set has met a limit or has no level left."""
    current, seconds, most = state.current, plan.time[state.set], plan.interactions[state.set]
    late = (seconds > 0) & (current.time // 1000 >= seconds)
    used = (most > 0) & (current.interactions >= most)
    empty = ~jnp.any(_accessible(plan, state)) & (state.status != PLAYING)
    return late | used | empty | state.refused


# Limits and announcements -----------------------------------------------------------------------


def _pass_time(plan: TrialPlan, state: RunState, elapsed: Array) -> RunState:
    """Let time pass for a set that has begun and is not over."""
    runs = (state.pending == 0) | (state.status == PLAYING)
    elapsed = jnp.where(runs, jnp.maximum(elapsed, 0), 0)
    training = state.mode == TRAINING

    def later(time: Array, condition: Array) -> Array:
        return time + jnp.where(condition, jnp.minimum(elapsed, LARGEST - time), 0)

    current, progress = state.current, state.training
    return state._replace(
        current=current._replace(time=later(current.time, jnp.bool_(True))),
        training=progress._replace(time=later(progress.time, ~training & plan.quirks.count_tests)),
        checkpoint_time=later(state.checkpoint_time, training),
    )


def _interact(plan: TrialPlan, state: RunState, number: Array) -> RunState:
    """Count interactions, and ask for novelty after every so many."""
    training = state.mode == TRAINING
    current, progress = state.current, state.training
    count = current.count + number
    due = (number > 0) & (plan.step > 0) & (count % jnp.maximum(plan.step, 1) == 0)
    asks = plan.asks[state.mode] & ~plan.notify[state.trial]
    shared = ~training & plan.quirks.count_tests
    return state._replace(
        current=current._replace(interactions=current.interactions + number, count=count),
        training=progress._replace(
            interactions=progress.interactions + jnp.where(shared, number, 0)
        ),
        checkpoint_interactions=state.checkpoint_interactions + jnp.where(training, number, 0),
        asked=state.asked | (due & asks),
    )


def _due(plan: TrialPlan, state: RunState) -> RunState:
    """Announce what follows from limits that are met."""
    trial, over = state.trial, _over(plan, state)
    training, tests = state.mode == TRAINING, plan.test_count[trial] > 0
    time, interactions = plan.checkpoint_time[trial], plan.checkpoint_interactions[trial]
    checkpoint = ((time > 0) & (state.checkpoint_time // 1000 >= time)) | (
        (interactions > 0) & (state.checkpoint_interactions >= interactions)
    )
    sweep = _sweeps(plan, state)
    more = sweep & (state.test < plan.test_count[trial])
    to_test = jnp.where(training, (over | checkpoint) & tests, over & more)
    to_training = ~training & over & ~more & ~state.last
    finished = jnp.where(training, over & ~tests, over & ~more & state.last)
    finished &= ~state.asked  # the last question is about the execution that ends
    announced = state._replace(
        pending=jnp.where(to_test, NEW_TEST_SET, jnp.where(to_training, RESUME_TRAINING, 0)),
        last=state.last | (training & over),
        test=jnp.where(to_test & training & sweep, 0, state.test),
        tested=state.tested | to_training,
    )
    after = _select(finished, _after_execution(plan, state), announced)
    return _select(state.pending == 0, after, state)


def _sweeps(plan: TrialPlan, state: RunState) -> Array:
    """Whether all test sets are run in turn: where no training has checkpoints for them."""
    return plan.quirks.all_tests | (plan.training[state.trial] < 0)


def _after_execution(plan: TrialPlan, state: RunState) -> RunState:
    """Announce the next execution, the next trial or the end."""
    again = ~plan.quirks.one_execution & (state.execution + 1 < plan.executions[state.trial])
    trial = jnp.where(again, state.trial, state.trial + 1)
    execution = jnp.where(again, state.execution + 1, 0)
    ended = trial >= plan.trials
    next_state = _execution(plan, jnp.minimum(trial, plan.trials - 1), execution)
    stopped = state._replace(pending=jnp.int32(EVALUATION_TERMINATED), status=jnp.int32(MAIN_MENU))
    return _select(ended, stopped, next_state)


def _execution(plan: TrialPlan, trial: Array, execution: Array) -> RunState:
    """State that announces an execution of a trial."""
    zero, no = jnp.int32(0), jnp.bool_(False)
    training = jnp.asarray(plan.training)[trial]
    tests_only = training < 0
    first = jnp.where(tests_only, jnp.asarray(plan.tests)[trial], training)
    first = jnp.minimum(first, plan.levels.shape[-1] - 1).astype(jnp.int32)
    fresh = _fresh(plan, first)
    return RunState(
        trial=trial,
        execution=execution,
        mode=jnp.where(tests_only, TESTING, TRAINING).astype(jnp.int32),
        set=first,
        test=zero,
        pending=jnp.int32(NEW_TRIAL),
        asked=no,
        status=jnp.int32(MAIN_MENU),
        current=fresh,
        training=fresh,
        checkpoint_time=zero,
        checkpoint_interactions=zero,
        refused=no,
        last=tests_only,
        tested=no,
        lost=no,
    )


def _select(condition: Array, yes: RunState, no: RunState) -> RunState:
    selection: RunState = jax.tree.map(
        lambda a, b: jnp.where(condition, a, b).astype(jnp.result_type(b)), yes, no
    )
    return selection


# Events -----------------------------------------------------------------------------------------

Outcome = tuple[RunState, Array, Array]
"""State, value of the reply and its header."""


def _outcome(state: RunState, value: Array, header: Array | None = None) -> Outcome:
    zeros = jnp.zeros(7, jnp.int32)
    return state, jnp.asarray(value, jnp.int32), zeros if header is None else header


def _tick(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    return _outcome(state, jnp.int32(1))


def _shot(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    """A shot was played, after which the level has status `value`."""
    accepted = _playable(state)
    counts = ~plan.per_episode | (value != PLAYING)
    state = _interact(plan, state, (accepted & counts).astype(jnp.int32))
    return _outcome(state._replace(status=jnp.where(accepted, value, state.status)), accepted)


def _next(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    """Load the current level while it has attempts, or else the one after it."""
    may, exists = _may_load(plan, state) & ~state.lost, jnp.any(_accessible(plan, state))
    same = _limited(plan, state) & _attempts_left(plan, state)
    index = jnp.where(same, state.current.level, _successor(plan, state))
    new_state, accepted = _load_level(plan, state, index, may & exists)
    new_state = new_state._replace(refused=new_state.refused | (may & ~exists))
    number = jnp.where(accepted, index + 1, 0)
    return _outcome(new_state, jnp.where(state.lost, NO_ANSWER, number))


def _load(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    """Load a level by its number, from 1."""
    accessible, limited = _accessible(plan, state), _limited(plan, state)
    may, exists = _may_load(plan, state) & ~state.lost, jnp.any(accessible)
    selection, index = plan.selection[state.set], value - 1
    looked_up = index + (plan.quirks.off_by_one & selection)
    size = plan.slots.shape[-1]
    inside = (index >= 0) & (looked_up < size)
    is_accessible = inside & accessible[jnp.clip(looked_up, 0, size - 1)]
    current = (index == state.current.level) & _attempts_left(plan, state)
    in_order = selection | current | (index == _successor(plan, state))
    new_state, accepted = _load_level(plan, state, index, may & is_accessible & in_order)
    new_state = new_state._replace(refused=new_state.refused | (may & limited & ~exists))
    stuck = plan.quirks.off_by_one & ~selection & (state.current.level < 0)
    state = _select(stuck, state, new_state)
    return _outcome(state, jnp.where(state.lost | stuck, NO_ANSWER, accepted))


def _restart(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    """Load the current level once more."""
    allowed = _may_load(plan, state) & ~state.lost & _attempts_left(plan, state)
    return _outcome(*_load_level(plan, state, state.current.level, allowed))


def _load_level(
    plan: TrialPlan, state: RunState, index: Array, allowed: Array
) -> tuple[RunState, Array]:
    """Leave the current level and load one, which takes an attempt.

    The level that is left counts first. If that makes a question or an announcement due, no level
    is loaded.

    Returns:
      (state, whether a level was loaded).
    """
    playing = state.status == PLAYING
    number = (plan.per_episode & playing).astype(jnp.int32) + plan.quirks.count_loads
    counted = _interact(plan, state, jnp.where(allowed, number, 0))
    status = jnp.where(allowed & playing, MAIN_MENU, state.status)
    left = _due(plan, counted._replace(status=status))
    # In the original, a level that counts by its load is played even if that meets a limit.
    always = (plan.quirks.load_always & playing) | plan.quirks.count_loads
    free = (left.pending == 0) & ~left.asked
    ended = (left.pending == NEW_TRIAL) | (left.pending == EVALUATION_TERMINATED)
    accepted = allowed & (free | always) & ~ended
    current = left.current
    takes = accepted & _limited(plan, left)
    loaded = left._replace(
        current=current._replace(
            level=jnp.where(accepted, index, current.level),
            remaining=current.remaining.at[jnp.maximum(index, 0)].add(-takes.astype(jnp.int32)),
        ),
        status=jnp.where(accepted, PLAYING, left.status),
    )
    return loaded, accepted


def _likelihood(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    return _outcome(state._replace(asked=jnp.bool_(False)), jnp.int32(1))


def _ready(plan: TrialPlan, state: RunState, value: Array) -> Outcome:
    """Start what was announced; without an announcement, change nothing."""
    waits = _waits(state.pending) & (state.status == PLAYING)
    announced = (state.pending != 0) & (state.pending != EVALUATION_TERMINATED)
    in_time = ~state.asked & ~waits
    accepted = announced & (in_time | plan.quirks.ready_always)
    new = state
    for code, handler in (
        (NEW_TRIAL, _begin_trial),
        (NEW_TRAINING_SET, _begin_training),
        (NEW_TEST_SET, _begin_test),
        (RESUME_TRAINING, _resume_training),
    ):
        new = _select(accepted & (state.pending == code), handler(plan, state), new)
    restarted = plan.quirks.ready_always & (state.pending == 0)
    new = _select(restarted, _restarted(state), new)
    # After NEW_TRIAL the set is still to come.
    test = (new.pending == NEW_TEST_SET) & (new.mode == TESTING)
    index = jnp.where(test, _test_set(plan, new), new.set)
    header = jnp.where(accepted | restarted, _header(plan, new, index), 0)
    return _outcome(new, accepted | restarted, header)


def _header(plan: TrialPlan, state: RunState, index: Array) -> Array:
    """Limits and kind of a set, (7,) int32."""
    limits = (plan.time, plan.interactions, plan.levels, plan.attempts)
    numbers = [jnp.maximum(jnp.asarray(limit)[index], 0) for limit in limits]
    order = ~jnp.asarray(plan.selection)[index]
    values = (*numbers, state.mode, order, plan.notify[state.trial])
    return jnp.stack([jnp.asarray(value, jnp.int32) for value in values])


def _test_set(plan: TrialPlan, state: RunState) -> Array:
    """Index of the next test set; the last one again at the end of the list."""
    last = jnp.maximum(plan.test_count[state.trial] - 1, 0)
    return plan.tests[state.trial] + jnp.minimum(state.test, last)


def _begin_trial(plan: TrialPlan, state: RunState) -> RunState:
    """Announce the first set of a trial."""
    training = state.mode == TRAINING
    code = jnp.where(training, NEW_TRAINING_SET, NEW_TEST_SET)
    announced = state._replace(pending=code.astype(jnp.int32))
    return _select(training & plan.quirks.direct_start, _begin_training(plan, announced), announced)


def _begin_training(plan: TrialPlan, state: RunState) -> RunState:
    zero = jnp.int32(0)
    return state._replace(
        current=_fresh(plan, state.set),
        checkpoint_time=zero,
        checkpoint_interactions=zero,
        pending=zero,
        status=jnp.int32(MAIN_MENU),
    )


def _begin_test(plan: TrialPlan, state: RunState) -> RunState:
    """Begin a test set; after training, keep the training's progress."""
    training = state.mode == TRAINING
    index = _test_set(plan, state)
    fresh = _fresh(plan, index)
    spent = plan.quirks.spent_tests & state.tested
    progress = _select_progress(training, state.current, state.training)
    progress = progress._replace(time=jnp.where(plan.quirks.count_tests, 0, progress.time))
    return state._replace(
        mode=jnp.int32(TESTING),
        set=index,
        test=state.test + 1,
        pending=jnp.int32(0),
        status=jnp.int32(MAIN_MENU),
        current=fresh._replace(remaining=jnp.where(spent, 0, fresh.remaining)),
        training=progress,
        refused=jnp.bool_(False),
        last=state.last | (training & _over(plan, state)),
    )


def _resume_training(plan: TrialPlan, state: RunState) -> RunState:
    """Resume the training where it was interrupted."""
    progress, zero = state.training, jnp.int32(0)
    index = plan.training[state.trial]
    forgets = plan.quirks.lost_position
    spent = (plan.attempts[index] > UNLIMITED) & (
        progress.remaining[jnp.maximum(progress.level, 0)] <= 0
    )
    return state._replace(
        mode=jnp.int32(TRAINING),
        set=index,
        pending=zero,
        status=jnp.int32(MAIN_MENU),
        current=progress._replace(
            level=jnp.where(forgets, -1, progress.level),
            count=jnp.where(forgets, 0, progress.count),
        ),
        checkpoint_time=zero,
        checkpoint_interactions=zero,
        refused=jnp.bool_(False),
        lost=forgets & spent & (progress.level >= 0),
    )


def _restarted(state: RunState) -> RunState:
    """State after a "ready" without an announcement, in the original."""
    return state._replace(
        current=state.current._replace(level=jnp.int32(-1)),
        checkpoint_time=jnp.int32(0),
        status=jnp.int32(MAIN_MENU),
    )


def _select_progress(condition: Array, yes: Progress, no: Progress) -> Progress:
    selection: Progress = jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
    return selection
