"""The two documents: configMeta.xml, which people write, and config.xml, which trials are run from.

    config_generation
      novelty_detection_measurement  step  measure_in_training  measure_in_testing
      trials
        trial  notify_novelty  count  repeats
          checkpoint    limits: time, interaction
          training
            limits      time, interaction, attempt_per_level, allow_level_selection
            game_level_sets
              game_level_set  novelty_level  novelty_type  amount
                              novelty_absence_portion  no_diff_portion
          test  ordered
            game_level_sets
              game_level_set  the same, set_appearance_percentage, and the limits once more

    evaluation
      novelty_detection_measurement  step  measure_in_training  measure_in_testing
      trials
        trial  id  number_of_executions  checkpoint_time_limit  checkpoint_interaction_limit
               notify_novelty
          game_level_set  mode  time_limit  total_interaction_limit  attempt_limit_per_level
                          allow_level_selection
            game_levels  level_path

A number or boolean is an attribute, or a child element of that name with the value as its text or
as its attribute `value`. A limit may also be `<limit type="time">600</limit>`: in `<training>` with
`<limits>` around it, in `<checkpoint>` without, in a test set either way. Booleans are true and
false in either case of the first letter.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from evaluation.sciencebirds import markup
from evaluation.sciencebirds.levels import LevelPath, LevelPathError
from evaluation.sciencebirds.markup import DocumentError, Element

LARGEST = 2**31 - 1
"""Largest absolute value of a number in a document."""
MAX_TRIALS = 10_000
MAX_LEVELS = 1_000_000
"""Most levels of all sets of a document together."""

MEASUREMENT = ("step", "measure_in_training", "measure_in_testing")
LIMITS = ("time", "interaction", "attempt_per_level", "allow_level_selection")
POOL = (
    "novelty_level",
    "novelty_type",
    "amount",
    "novelty_absence_portion",
    "no_diff_portion",
)

PERCENTAGE = "set_appearance_percentage"


@dataclass(frozen=True)
class Measurement:
    """When an agent is asked how likely the levels hold novelty.

    Attributes:
      step: interactions between two questions; 0 or less for never.
      training: whether it is asked in training.
      testing: whether it is asked in tests.
    """

    step: int = 0
    training: bool = False
    testing: bool = False


@dataclass(frozen=True)
class SetLimits:
    """Limits of a set of levels; 0 or less is none.

    Attributes:
      time: s.
      interactions: of the whole set.
      attempts: loads of each level.
      selection: True for an unordered set, False for a sequence.
    """

    time: int = 0
    interactions: int = 0
    attempts: int = 0
    selection: bool = False


@dataclass(frozen=True)
class PoolSet:
    """Levels to be drawn from one pool.

    Attributes:
      novelty_level: of the pool.
      novelty_type: of the pool.
      amount: fewest levels, and the end of the range, exclusive if it is above the fewest.
      absence: share of levels in which the novelty is absent.
      no_difference: share of levels in which the novelty cannot be seen.
      percentage: of a trial's test sets that are of this kind.
      limits: of a test set; those of training are the trial's.
    """

    novelty_level: int
    novelty_type: int
    amount: tuple[int, int]
    absence: float = 0.0
    no_difference: float = 0.0
    percentage: int = 0
    limits: SetLimits = SetLimits()


@dataclass(frozen=True)
class MetaTrial:
    """A trial to be generated.

    Attributes:
      count: number of such trials; 0 or less for none.
      repeats: executions of each before the next trial.
      notify: whether agents are told of novelty: one value, or both in the order of the trials.
      checkpoint_time: s of training between two tests, 0 or less for no such limit.
      checkpoint_interactions: of training between two tests, 0 or less for no such limit.
      limits: of the training.
      training: pools of the training.
      ordered: whether test sets come in the order of `tests`.
      tests: pools of the test sets.
    """

    count: int
    repeats: int
    notify: tuple[bool, ...]
    checkpoint_time: int
    checkpoint_interactions: int
    limits: SetLimits
    training: tuple[PoolSet, ...]
    ordered: bool
    tests: tuple[PoolSet, ...]


@dataclass(frozen=True)
class Meta:
    """A configMeta.xml."""

    measurement: Measurement
    trials: tuple[MetaTrial, ...]


@dataclass(frozen=True)
class LevelSet:
    """Levels that are played one after the other, under common limits.

    Attributes:
      limits: of the set and of the loads of its levels.
      levels: in the order of the document.
    """

    limits: SetLimits
    levels: tuple[LevelPath, ...]


@dataclass(frozen=True)
class ConfiguredTrial:
    """A trial as it is run.

    Attributes:
      number: its id.
      executions: how often it is run before the next one; 0 or less for not at all.
      checkpoint_time: s of training between two tests, 0 or less for no such limit.
      checkpoint_interactions: of training between two tests, 0 or less for no such limit.
      notify: whether the agent may ask for novelty.
      training: the training set; None for a trial of tests.
      tests: the test sets, in order.
    """

    number: int
    executions: int
    checkpoint_time: int
    checkpoint_interactions: int
    notify: bool
    training: LevelSet | None
    tests: tuple[LevelSet, ...]

    @property
    def sets(self) -> tuple[LevelSet, ...]:
        """All sets, that of the training first."""
        return (*([self.training] if self.training else []), *self.tests)


@dataclass(frozen=True)
class Evaluation:
    """A config.xml."""

    measurement: Measurement
    trials: tuple[ConfiguredTrial, ...]


# Reading ----------------------------------------------------------------------------------------


def load_meta(path: str | Path) -> Meta:
    """Read a configMeta.xml.

    Raises:
      DocumentError: with line and column, what is wrong and what is allowed.
      OSError: it cannot be read.
    """
    return read_meta(markup.read(Path(path)))


def load(path: str | Path) -> Evaluation:
    """Read a config.xml.

    Raises:
      DocumentError: with line and column, what is wrong and what is allowed.
      OSError: it cannot be read.
    """
    return read_evaluation(markup.read(Path(path)))


def read_meta(root: Element) -> Meta:
    """Read a configMeta.xml from its outermost element; raises as `load_meta`."""
    _check_tag(root, "config_generation")
    # `repeats` of the whole document is part of the grammar, and nothing ever used it.
    root.only(attributes=("repeats",), children=("novelty_detection_measurement", "trials"))
    trials = [_meta_trial(trial) for trial in _trials(root)]
    return Meta(_measurement(root), tuple(trials))


def read_evaluation(root: Element) -> Evaluation:
    """Read a config.xml from its outermost element; raises as `load`."""
    _check_tag(root, "evaluation")
    root.only(children=("novelty_detection_measurement", "trials"))
    trials: dict[int, ConfiguredTrial] = {}
    for index, element in enumerate(_trials(root)):
        trial = _trial(element, index)
        if trial.number in trials:
            raise element.error(f"a second trial with id {trial.number}; give it another")
        trials[trial.number] = trial
    levels = sum(len(level_set.levels) for trial in trials.values() for level_set in trial.sets)
    if levels > MAX_LEVELS:
        raise root.error(f"holds {levels} levels; at most {MAX_LEVELS} are played")
    return Evaluation(_measurement(root), tuple(trials.values()))


def _check_tag(root: Element, tag: str) -> None:
    if root.tag != tag:
        names = {"evaluation": "config.xml", "config_generation": "configMeta.xml"}
        hint = f"; this is a {names[root.tag]}" if root.tag in names else ""
        raise root.error(f"the outermost element must be <{tag}>{hint}")


def _trials(root: Element) -> list[Element]:
    trials = root.child("trials")
    if trials is None:
        raise root.error("holds no <trials>")
    trials.only(children=("trial",))
    if len(trials.children) > MAX_TRIALS:
        raise trials.error(f"holds {len(trials.children)} trials; at most {MAX_TRIALS} are run")
    return trials.children


def _measurement(root: Element) -> Measurement:
    element = root.child("novelty_detection_measurement")
    if element is None:
        return Measurement()
    element.only(attributes=MEASUREMENT, children=MEASUREMENT)
    step, training, testing = MEASUREMENT
    return Measurement(
        _integer(element, step, 0), _boolean(element, training), _boolean(element, testing)
    )


def _meta_trial(trial: Element) -> MetaTrial:
    values = ("count", "repeats", "notify_novelty")
    trial.only(attributes=values, children=(*values, "checkpoint", "training", "test"))
    notify = {"true": (True,), "false": (False,), "both": (False, True)}
    word = (trial.value("notify_novelty") or "false").lower()
    if word not in notify:
        raise trial.error(f"notify_novelty is {word!r}; it must be true, false or both")
    if trial.value("repeats") is None:
        raise trial.error("holds no <repeats>, the number of times that it is run")
    checkpoint = trial.child("checkpoint")
    limits = SetLimits() if checkpoint is None else _limits(checkpoint, LIMITS[:2])
    ordered, tests = _tests(trial.child("test"))
    training = trial.child("training")
    pools: tuple[PoolSet, ...] = ()
    if training is not None:
        training.only(children=("limits", "game_level_sets"))
        pools = tuple(_pool_set(each, test=False) for each in _sets(training))
    limits_element = None if training is None else training.child("limits")
    return MetaTrial(
        count=_integer(trial, "count", 1),
        repeats=_integer(trial, "repeats", 1),
        notify=notify[word],
        checkpoint_time=limits.time,
        checkpoint_interactions=limits.interactions,
        limits=SetLimits() if limits_element is None else _limits(limits_element, LIMITS),
        training=pools,
        ordered=ordered,
        tests=tests,
    )


def _tests(test: Element | None) -> tuple[bool, tuple[PoolSet, ...]]:
    """Whether test sets are ordered, and their pools."""
    if test is None:
        return True, ()
    test.only(attributes=("ordered",), children=("ordered", "game_level_sets"))
    ordered = _boolean(test, "ordered", True)
    return ordered, tuple(_pool_set(each, test=True) for each in _sets(test))


def _sets(parent: Element) -> Iterator[Element]:
    sets = parent.child("game_level_sets")
    if sets is None:
        return iter(())
    sets.only(children=("game_level_set",))
    return iter(sets.children)


def _pool_set(element: Element, *, test: bool) -> PoolSet:
    names = (*POOL, PERCENTAGE, *LIMITS) if test else POOL
    element.only(attributes=names, children=(*names, "limits", "limit") if test else names)
    for name in POOL[:3]:
        if element.value(name) is None:
            raise element.error(f"holds no {name}")
    percentage = _integer(element, PERCENTAGE, 0) if test else 0
    if not 0 <= percentage <= 100:
        raise element.error(f"{PERCENTAGE} is {percentage}; it must be from 0 to 100")
    limits = SetLimits()
    if test:
        inner = element.child("limits")
        limits = _limits(inner or element, LIMITS, also=() if inner else (*POOL, PERCENTAGE))
        if inner and (attributes := [name for name in LIMITS if element.value(name) is not None]):
            raise inner.error(f"stands beside the attribute {attributes[0]!r}; keep one of them")
        if inner and element.child("limit"):
            raise inner.error("stands beside a <limit>; keep one of them")
    pool_set = PoolSet(
        _integer(element, "novelty_level", 0),
        _integer(element, "novelty_type", 0),
        _amount(element),
        _portion(element, "novelty_absence_portion"),
        _portion(element, "no_diff_portion"),
        percentage,
        limits,
    )
    try:
        LevelPath.of(pool_set.novelty_level, pool_set.novelty_type, 0).check()
    except LevelPathError as error:
        raise element.error(str(error)) from error
    return pool_set


def _limits(element: Element, names: Sequence[str], also: Sequence[str] = ()) -> SetLimits:
    """Read limits from `<limit type=NAME>`, or from attributes or children NAME.

    Args:
      element: holds the limits.
      names: allowed limits, of `LIMITS`.
      also: other allowed attributes and children.
    """
    element.only(attributes=(*names, *also), children=("limit", *names, *also))
    values: dict[str, str] = {}
    for limit in element.all("limit"):
        limit.only(attributes=("type", "value"))
        name = limit.attributes.get("type", "")
        if name not in names:
            raise limit.error(f"type is {name!r}; it must be one of {', '.join(names)}")
        if name in values:
            raise limit.error(f"a second limit of type {name!r}; keep one of them")
        values[name] = limit.content()
    for name in names:
        value = element.value(name)
        if value is not None and name in values:
            raise element.error(f"{name!r} is given twice; keep one of them")
        if value is not None:
            values[name] = value
    time, interactions, attempts = (
        _as_integer(element, name, values.get(name, "0")) for name in LIMITS[:3]
    )
    selection = _as_boolean(element, LIMITS[3], values.get(LIMITS[3], "false"))
    return SetLimits(time, interactions, attempts, selection)


def _trial(trial: Element, index: int) -> ConfiguredTrial:
    values = (
        "id",
        "number_of_executions",
        "checkpoint_time_limit",
        "checkpoint_interaction_limit",
        "notify_novelty",
    )
    trial.only(attributes=values, children=(*values, "game_level_set"))
    training, tests = None, []
    for element in trial.all("game_level_set"):
        mode, level_set = _level_set(element)
        if mode == "test":
            tests.append(level_set)
        elif training is not None:
            raise element.error("is a second training set; a trial has one")
        else:
            training = level_set
    if training is None and not tests:
        raise trial.error("holds no <game_level_set>")
    number, executions, time, interactions, notify = values
    return ConfiguredTrial(
        _integer(trial, number, index),
        _integer(trial, executions, 1),
        _integer(trial, time, 0),
        _integer(trial, interactions, 0),
        _boolean(trial, notify),
        training,
        tuple(tests),
    )


SET_LIMITS = (
    "time_limit",
    "total_interaction_limit",
    "attempt_limit_per_level",
    "allow_level_selection",
)


def _level_set(element: Element) -> tuple[str, LevelSet]:
    """Mode and contents of a set of a config.xml."""
    values = ("mode", *SET_LIMITS)
    element.only(attributes=values, children=(*values, "game_levels"))
    mode = element.value("mode")
    if mode not in ("training", "test"):
        raise element.error(f"mode is {mode!r}; it must be training or test")
    time, interactions, attempts = (_integer(element, name, 0) for name in SET_LIMITS[:3])
    limits = SetLimits(time, interactions, attempts, _boolean(element, SET_LIMITS[3]))
    return mode, LevelSet(limits, tuple(map(_level, element.all("game_levels"))))


def _level(element: Element) -> LevelPath:
    element.only(attributes=("level_path",), children=("level_path",))
    path = element.value("level_path")
    if path is None:
        raise element.error("holds no level_path")
    try:
        return LevelPath.parse(path)
    except LevelPathError as error:
        raise element.error(str(error)) from error


def _integer(element: Element, name: str, default: int) -> int:
    text = element.value(name)
    return default if text is None else _as_integer(element, name, text)


def _as_integer(element: Element, name: str, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 12):
        raise element.error(f"{name} is {text[:40]!r}; it must be a whole number")
    if abs(int(text)) > LARGEST:
        raise element.error(f"{name} is {text}; it must be from {-LARGEST} to {LARGEST}")
    return int(text)


def _boolean(element: Element, name: str, default: bool = False) -> bool:
    text = element.value(name)
    return default if text is None else _as_boolean(element, name, text)


def _as_boolean(element: Element, name: str, text: str) -> bool:
    if text not in ("true", "True", "false", "False"):
        raise element.error(f"{name} is {text[:40]!r}; it must be true or false")
    return text.lower() == "true"


def _amount(element: Element) -> tuple[int, int]:
    text = element.value("amount") or ""
    low, dash, high = text.partition("-")
    numbers = [
        _as_integer(element, "amount", part.strip()) for part in ([low, high] if dash else [low])
    ]
    fewest, most = numbers[0], numbers[-1]
    if not 0 <= fewest <= most <= MAX_LEVELS:
        raise element.error(
            f"amount is {text!r}; it must be a number or a range from 0 to {MAX_LEVELS}"
        )
    return fewest, most


def _portion(element: Element, name: str) -> float:
    text = element.value(name)
    if text is None:
        return 0.0
    try:
        portion = float(text)
    except ValueError:
        portion = math.nan
    if not 0 <= portion <= 1:
        raise element.error(f"{name} is {text[:40]!r}; it must be a number from 0 to 1")
    return portion


# Writing ----------------------------------------------------------------------------------------


def dumps(evaluation: Evaluation, comment: str = "") -> str:
    """Return the text of a config.xml; `load` reads it back.

    Args:
      evaluation: its content.
      comment: a remark on its second line; without "--".
    """
    return "\n".join(_lines(evaluation, comment)) + "\n"


def _lines(evaluation: Evaluation, comment: str) -> Iterator[str]:
    measurement = evaluation.measurement
    values = (measurement.step, measurement.training, measurement.testing)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    if comment:
        yield f"<!-- {comment} -->"
    yield "<evaluation>"
    yield f"  <novelty_detection_measurement{_attributes(MEASUREMENT, values)} />"
    yield "  <trials>"
    for trial in evaluation.trials:
        yield from _trial_lines(trial)
    yield "  </trials>"
    yield "</evaluation>"


def _trial_lines(trial: ConfiguredTrial) -> Iterator[str]:
    values = {
        "id": trial.number,
        "number_of_executions": trial.executions,
        "checkpoint_time_limit": trial.checkpoint_time,
        "checkpoint_interaction_limit": trial.checkpoint_interactions,
        "notify_novelty": trial.notify,
    }
    yield f"    <trial{_attributes(tuple(values), tuple(values.values()))}>"
    for level_set in trial.sets:
        mode, limits = "training" if level_set is trial.training else "test", level_set.limits
        set_values = (mode, limits.time, limits.interactions, limits.attempts, limits.selection)
        yield f"      <game_level_set{_attributes(('mode', *SET_LIMITS), set_values)}>"
        for level in level_set.levels:
            yield f"        <game_levels{_attributes(('level_path',), (level.path,))} />"
        yield "      </game_level_set>"
    yield "    </trial>"


def _attributes(names: Sequence[str], values: Sequence[object]) -> str:
    parts = (f" {n}={quoteattr(str(v))}" for n, v in zip(names, values, strict=True))
    return "".join(parts)


__all__ = [
    "ConfiguredTrial",
    "DocumentError",
    "Evaluation",
    "LevelSet",
    "Measurement",
    "Meta",
    "MetaTrial",
    "PoolSet",
    "SetLimits",
    "dumps",
    "load",
    "load_meta",
    "read_evaluation",
    "read_meta",
]
