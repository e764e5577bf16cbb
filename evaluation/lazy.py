"""Public names of a package that are imported when they are first used.

Every command builds the parsers of all commands first, and must not import JAX for that. Nor must
metrics of logs, which need NumPy only.
"""

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Its public names, `__all__`, are those that it imports as themselves, ``from module import name
    as name``, under ``if TYPE_CHECKING``.

    Args:
      package: its name, `__name__`.
    """

    @functools.cache
    def homes() -> dict[str, str]:
        """Module of each public name."""
        imports = ast.walk(ast.parse(inspect.getsource(sys.modules[package])))
        return {
            name.asname: node.module
            for node in imports
            if isinstance(node, ast.ImportFrom) and node.module
            for name in node.names
            if name.asname
        }

    def names() -> list[str]:
        return sorted(homes())

    def get(name: str) -> Any:
        if name == "__all__":
            return names()
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return get, names
