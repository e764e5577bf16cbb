"""What a function calls with which arguments, where nothing is to be played.

Some of the functions that it would call are replaced and write down their arguments; where the last
of them is called, it ends.
"""

import contextlib
import dataclasses
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

PLAIN = (bool, int, float, str, Path, type(None))


class Call(NamedTuple):
    """A call of a replaced function: its dotted name, and what it was given by name."""

    target: str
    arguments: dict[str, Any]


class _Reached(Exception):
    """The last of the replaced functions was called."""


@contextlib.contextmanager
def reached(results: Mapping[str, Any]) -> Iterator[list[Call]]:
    """Replace functions and classes, and end what stands below where the last is called.

    Args:
      results: what each returns, by dotted name.

    Yields:
      Their calls.
    """
    calls: list[Call] = []
    *_, last = results
    originals: dict[Any, Any] = {}
    known = set(sys.modules)

    def replaced(target: str, original: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(original).bind(*args, **kwargs)
            calls.append(Call(target, dict(bound.arguments)))
            if target == last:
                raise _Reached
            return results[target]

        originals[called] = original
        return called

    with pytest.MonkeyPatch.context() as patch:
        for target in results:
            parent, _, name = target.rpartition(".")
            place = pkgutil.resolve_name(parent)
            patch.setattr(place, name, replaced(target, getattr(place, name)))
        try:
            with contextlib.suppress(_Reached):
                yield calls
        finally:
            _restore([sys.modules[name] for name in sys.modules.keys() - known], originals)


def _restore(modules: Iterable[ModuleType], originals: Mapping[Any, Any]) -> None:
    """Give modules that were imported meanwhile the functions that had been replaced."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value in originals:
                setattr(module, name, originals[value])


def arguments(calls: Iterable[Call]) -> set[tuple[str, str, Any]]:
    """Plain values among the arguments: (call, dotted name of the argument, value)."""
    return {(call.target, *leaf) for call in calls for leaf in leaves(call.arguments)}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Plain values inside of an argument, by their dotted names."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if _is_plain(value):
        yield name, _hashable(value)
    elif isinstance(value, list | tuple):
        yield from leaves({str(number): one for number, one in enumerate(value)}, name)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from leaves(one, f"{name}.{key}")


def _is_plain(value: Any) -> bool:
    inside = isinstance(value, list | tuple | range)
    return all(map(_is_plain, value)) if inside else isinstance(value, PLAIN)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple | range) else value
