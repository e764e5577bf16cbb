"""What an episode of a syllabus plays: its task and its parameters, in one canonical form."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluation.l2m.document import Document, short, show
from evaluation.positions import Path
from evaluation.schedule import Value
from jaxsim import novelty, parameters, registry
from jaxsim.parameters import Parameter
from jaxsim.registry import EnvSpec

OWN_PACKAGE = "jaxsim"
"""The package whose tasks are played here, in names such as "$jaxsim:CartPole3D"."""

_IN_PACKAGE = re.compile(r"\$(?P<package>[^\s:$]+):(?P<task>[^\s:$]+)")

Variant = tuple[str, tuple[tuple[str, Value], ...]]


@dataclass(frozen=True)
class Variants:
    """Reads what the episodes of one syllabus play.

    Attributes:
      document: where they stand.
      defaults: parameters of every episode, unless it sets them itself.
      foreign: whether tasks that are not known here are accepted, with any parameters.
    """

    document: Document
    defaults: Mapping[str, object]
    foreign: bool = False
    _specs: dict[str, EnvSpec | None] = field(default_factory=dict)
    _checked_defaults: dict[str, dict[str, Value]] = field(default_factory=dict)

    def variant(self, path: Path, episode: Mapping[str, object]) -> Variant:
        """Return task and parameters of an episode, in their one canonical form.

        Args:
          path: where the episode stands.
          episode: ``{"$episode": TASK, PATH: VALUE, ...}``.

        Raises:
          SyllabusError: an unknown task, or parameters that it does not have or take.
        """
        task_path = (*path, "$episode")
        task = self.document.string(task_path, episode["$episode"])
        own = {name: value for name, value in episode.items() if name != "$episode"}
        if task not in self._specs:
            self._specs[task] = self._spec(task_path, task)
        spec = self._specs[task]
        if spec is None:
            merged = {**self.defaults, **own}
            return task, tuple(sorted((name, _plain(value)) for name, value in merged.items()))
        values = self._defaults_of(spec) | self._values(spec, path, own)
        try:
            spec.check(values)
        except ValueError as error:
            self.document.fail(path, f"{spec.task}: {error}")
        newest = registry.spec(spec.task) is spec
        return spec.task if newest else spec.env_id, _distinct(spec, values)

    def _spec(self, path: Path, task: str) -> EnvSpec | None:
        """Look a task up; None for one of another package that is accepted unseen."""
        name = task
        if task.startswith("$"):
            match = _IN_PACKAGE.fullmatch(task)
            if match is None:
                reason = f"'$episode' is {show(task)}; a task of a package is \"$package:Task\""
                self.document.fail(path, reason)
            if match["package"] == OWN_PACKAGE:
                name = match["task"]
            elif not self.foreign:
                self.document.fail(path, _elsewhere(task, match["package"]))
        try:
            return registry.spec(short(name))
        except ValueError as error:
            if self.foreign:
                return None
            self.document.fail(path, str(error))

    def _defaults_of(self, spec: EnvSpec) -> dict[str, Value]:
        """Return the syllabus's default parameters as a task takes them."""
        if spec.env_id not in self._checked_defaults:
            checked = self._values(spec, ("default_params",), self.defaults)
            self._checked_defaults[spec.env_id] = checked
        return self._checked_defaults[spec.env_id]

    def _values(self, spec: EnvSpec, path: Path, given: Mapping[str, object]) -> dict[str, Value]:
        """Return checked parameters of a task, those of a novelty among them."""
        try:
            given = spec.expand(given)
        except ValueError as error:
            self.document.fail((*path, novelty.KEY), str(error))
        checked = {}
        for name, value in given.items():
            if name not in spec.parameters:
                reason = parameters.unknown("parameter", short(name), spec.parameters)
                self.document.fail((*path, name), f"{spec.task}: {reason}", key=True)
            result = _accept(spec.parameters[name], value)
            if isinstance(result, _Problem):
                self.document.fail((*path, name), result.reason)
            checked[name] = result
        return checked


def _elsewhere(task: str, package: str) -> str:
    """Say why a task of another package is not played."""
    return (
        f"task {show(task)} is of the package {show(package)}, which is not played here; write one "
        f"of {', '.join(registry.task_names())} (jaxsim validate --foreign checks the structure)"
    )


def _plain(value: object) -> Value:
    """Return a value of a task that is not known here; lists and the like as their JSON text."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    return json.dumps(value, sort_keys=True)


def _distinct(spec: EnvSpec, values: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
    """Leave out what would be the same without being said; sorted by path."""

    def said(name: str, value: Value) -> bool:
        others = {other: own for other, own in values.items() if other != name}
        return bool(spec.fill(others)[name] != value)

    return tuple(sorted(item for item in values.items() if said(*item)))


@dataclass(frozen=True)
class _Problem:
    """Why a value is refused."""

    reason: str


def _accept(parameter: Parameter, value: object) -> Value | _Problem:
    """Return `value` in the type of the parameter, or what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        shown = f"parameter {parameter.path!r} is {show(value)}"
        return _Problem(f"{shown}; it must be {parameter.allowed}")
    problem = parameter.problem(value)
    if problem:
        return _Problem(problem)
    if parameter.choices:
        return next(choice for choice in parameter.choices if choice == value)
    return float(value) if isinstance(parameter.default, float) else value
