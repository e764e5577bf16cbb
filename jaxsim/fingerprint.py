"""Fingerprints of values: equal in two processes only if the values behave alike.

A function is described by its place in the source and the values that it closes over. The source
itself is not part of a fingerprint: whoever keeps one on a disk adds a digest of the source, as
`program_store` does.
"""

import enum
import functools
import hashlib
import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PACKAGE = "jaxsim"
"""Package whose source `program_store` digests."""
DEPENDENCIES = ("chex", "jax", "jaxlib", "numpy", "optax")
"""Packages whose source follows from their version."""
VERSIONED = frozenset({"builtins", "functools", "math", *DEPENDENCIES})
"""The same, with modules of Python."""

JITTED: Any = type(jax.jit(lambda: None))


class Undescribable(Exception):
    """A value of which no fingerprint can be made, such as a function of a user's file."""


def fingerprint(value: object) -> str:
    """Return a digest of a value: data, functions, and objects that consist of them.

    Raises:
      Undescribable: something in the value is defined outside of this package and its dependencies,
        or is of a type that has no description.
    """
    digest = hashlib.sha256()
    for word in _words(value):
        # The length in front, so that no two lists of words are one text.
        digest.update(b"%d:" % len(word) + word)
    return digest.hexdigest()


def _words(value: Any, inside: tuple[Any, ...] = ()) -> Iterator[bytes]:
    """Yield the description of a value.

    Args:
      value: to be described.
      inside: objects that it is a part of, the outermost first. One of them is described by its
        place. Other identities do not count: constants of a module are shared in another way after
        it was read from its cache.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        yield f"{kind.__name__} {value!r}".encode()
    elif kind in (float, complex):
        yield f"{kind.__name__} {np.asarray(value, np.complex128).tobytes().hex()}".encode()
    elif isinstance(value, (np.ndarray, np.generic, jax.Array)):
        yield from _array(value)
    elif isinstance(value, np.dtype):
        yield f"dtype {value!r}".encode()
    elif any(value is whole for whole in inside):
        yield b"place %d" % next(i for i, whole in enumerate(inside) if value is whole)
    else:
        yield _name(kind)
        for part in _parts(value):
            yield from (part,) if isinstance(part, _Word) else _words(part, (*inside, value))
        yield b"end"


class _Word(bytes):
    """A word of a description, apart from values that are bytes."""


def _array(value: Any) -> Iterator[bytes]:
    """Words of an array of numbers or keys."""
    if isinstance(value, jax.core.Tracer):
        raise Undescribable("a value of a trace")
    yield f"array {value.shape} {value.dtype} {getattr(value, 'weak_type', False)}".encode()
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise Undescribable("an array of objects")
    yield array.tobytes()


def _parts(value: Any) -> Iterator[Any]:
    """Values that an object consists of, and words."""
    if isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, (dict, types.MappingProxyType)):
        yield from _items(value)
    elif isinstance(value, (set, frozenset)):
        yield from map(_Word, sorted(fingerprint(one).encode() for one in value))
    elif isinstance(value, type):
        yield _Word(_name(value))
    elif isinstance(value, enum.Enum):
        yield value.name
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        yield from _function(value)
    elif isinstance(value, types.CodeType):
        # Tells functions of one name and line apart, as two lambdas are.
        yield from (value.co_firstlineno, value.co_code, value.co_names, value.co_freevars)
        yield value.co_consts
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, types.BuiltinFunctionType):
        yield _Word(_name(value))
    elif is_dataclass(value):
        for field in fields(value):
            yield from (_Word(field.name.encode()), getattr(value, field.name))
    elif _is_public(value):
        yield _Word(_name(value))
    elif isinstance(value, JITTED):
        yield value.__wrapped__
    elif hasattr(value, "__dict__"):
        yield from _items(vars(value))
    else:
        raise Undescribable(f"a {type(value).__name__}")


def _items(mapping: Mapping[Any, Any]) -> Iterator[Any]:
    """Keys and values in their order, which pytrees follow too."""
    for key, value in mapping.items():
        yield key
        yield value


def _function(function: types.FunctionType) -> Iterator[Any]:
    """Place of a function in the source, and the values that it uses from outside."""
    yield _Word(_name(function))
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError as error:
            raise Undescribable("an empty cell") from error


def _is_public(value: Any) -> bool:
    """Whether a value is what a dependency has under its name, as `jax.nn.relu` is."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or module.partition(".")[0] not in VERSIONED:
        return False
    return getattr(importlib.import_module(module), str(name), None) is value


def _name(definition: type | Callable[..., Any]) -> bytes:
    """Module and name of a class or function.

    Raises:
      Undescribable: its source is not known to the fingerprint.
    """
    module = getattr(definition, "__module__", None) or "builtins"
    if module.partition(".")[0] not in VERSIONED | {PACKAGE}:
        raise Undescribable(f"{module}.{definition.__qualname__}")
    return f"{module}.{definition.__qualname__}".encode()
