"""Task and parameters of an episode of a syllabus, in canonical form."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluation.l2m.document import Document, short, show
from evaluation.positions import Path
from evaluation.schedule import Parameters, Value, Variant
from jaxsim import novelty, parameters, registry
from jaxsim.env_spec import EnvSpec
from jaxsim.parameters import Parameter

PACKAGE = "jaxsim"
"""Package of the tasks of this project, in names such as "$jaxsim:CartPole3D"."""

_IN_PACKAGE = re.compile(r"\$(?P<package>[^\s:$]+):(?P<task>[^\s:$]+)")


@dataclass(frozen=True)
class Variants:
    """Reader of the tasks and parameters of one syllabus.

    Attributes:
      document: text of the syllabus.
      defaults: parameters of every episode that does not set them itself.
      foreign: whether unknown tasks are accepted, with any parameters.
    """

    document: Document
    defaults: Mapping[str, object]
    foreign: bool = False
    _specs: dict[str, EnvSpec | None] = field(default_factory=dict)
    _checked_defaults: dict[str, dict[str, Value]] = field(default_factory=dict)

    def variant(self, path: Path, episode: Mapping[str, object]) -> Variant:
        """Return task and parameters of an episode, in canonical form.

        Args:
          path: place of the episode.
          episode: ``{"$episode": TASK, PATH: VALUE, ...}``.

        Raises:
          SyllabusError: an unknown task or parameter, or an invalid value.
        """
        task_path = (*path, "$episode")
        task = self.document.string(task_path, episode["$episode"])
        entries = {name: value for name, value in episode.items() if name != "$episode"}
        if task not in self._specs:
            self._specs[task] = self._spec(task_path, task)
        spec = self._specs[task]
        if spec is None:
            merged = {**self.defaults, **entries}
            return task, tuple(sorted((name, _plain(value)) for name, value in merged.items()))
        values = self._defaults_of(spec) | self._values(spec, path, entries)
        try:
            spec.check(values)
        except ValueError as error:
            self.document.fail(path, f"{spec.task}: {error}")
        newest = registry.spec(spec.task) is spec
        return spec.task if newest else spec.env_id, _distinct(spec, values)

    def _spec(self, path: Path, task: str) -> EnvSpec | None:
        """Look up a task; None for a foreign task that is accepted unchecked."""
        name = task
        if task.startswith("$"):
            match = _IN_PACKAGE.fullmatch(task)
            if match is None:
                reason = f"'$episode' is {show(task)}; a task of a package is \"$package:Task\""
                self.document.fail(path, reason)
            if match["package"] == PACKAGE:
                name = match["task"]
            elif not self.foreign:
                self.document.fail(path, _foreign_task(task, match["package"]))
        try:
            return registry.spec(short(name))
        except ValueError as error:
            if self.foreign:
                return None
            self.document.fail(path, str(error))

    def _defaults_of(self, spec: EnvSpec) -> dict[str, Value]:
        """Return the syllabus's default parameters, checked for a task."""
        if spec.env_id not in self._checked_defaults:
            checked = self._values(spec, ("default_params",), self.defaults)
            self._checked_defaults[spec.env_id] = checked
        return self._checked_defaults[spec.env_id]

    def _values(self, spec: EnvSpec, path: Path, entries: Mapping[str, object]) -> dict[str, Value]:
        """Return checked parameters of a task, including those of a novelty."""
        try:
            entries = spec.expand(entries)
        except ValueError as error:
            self.document.fail((*path, novelty.KEY), str(error))
        checked = {}
        for name, value in entries.items():
            if name not in spec.parameters:
                reason = parameters.unknown("parameter", short(name), spec.parameters)
                self.document.fail((*path, name), f"{spec.task}: {reason}", key=True)
            result = _accept(spec.parameters[name], value)
            if isinstance(result, _Problem):
                self.document.fail((*path, name), result.reason)
            checked[name] = result
        return checked


def _foreign_task(task: str, package: str) -> str:
    """Reason why a task of another package is an error."""
    return (
        f"task {show(task)} is of the package {show(package)}, which is not played here; write one "
        f"of {', '.join(registry.task_names())} (jaxsim validate --foreign checks the structure)"
    )


def _plain(value: object) -> Value:
    """Return a value of an unknown task; lists and objects as JSON text."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    return json.dumps(value, sort_keys=True)


def _distinct(spec: EnvSpec, values: dict[str, Value]) -> Parameters:
    """Leave out values that follow from the other ones or are defaults; sorted by path."""

    def is_needed(name: str, value: Value) -> bool:
        rest = {path: v for path, v in values.items() if path != name}
        return bool(spec.fill(rest)[name] != value)

    return tuple(sorted(item for item in values.items() if is_needed(*item)))


@dataclass(frozen=True)
class _Problem:
    """Reason why a value is invalid."""

    reason: str


def _accept(parameter: Parameter, value: object) -> Value | _Problem:
    """Return `value` in the type of the parameter, or its problem."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        shown = f"parameter {parameter.path!r} is {show(value)}"
        return _Problem(f"{shown}; it must be {parameter.allowed}")
    problem = parameter.problem(value)
    if problem:
        return _Problem(problem)
    if parameter.choices:
        return next(choice for choice in parameter.choices if choice == value)
    return float(value) if isinstance(parameter.default, float) else value
