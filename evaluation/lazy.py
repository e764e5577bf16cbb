"""Public names of a package that are imported when they are first used.

A command builds the parsers of all commands before it runs one. It must not wait for JAX there, nor
must metrics of logs, which need NumPy only.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Args:
      package: its name, `__name__`.
      homes: module below the package, by the public name that it defines.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: sorted(homes)
