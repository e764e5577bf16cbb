"""Every public name is documented on the site, or the build fails."""

import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isroutine
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

PACKAGES = ("jaxsim", "evaluation")
PRIVATE = ("evaluation.shims.packages",)  # names of other projects, for their programs
LOG = logging.getLogger(__name__)


def packages() -> Iterator[str]:
    """Packages with public names, those that have `__all__`."""
    for name in PACKAGES:
        top = import_module(name)
        yield name
        for found in pkgutil.walk_packages(top.__path__, f"{name}."):
            public = found.ispkg and not found.name.startswith(PRIVATE)
            if public and hasattr(import_module(found.name), "__all__"):
                yield found.name


def public_names(package: str) -> list[str]:
    """Names of a package that are documented with it; modules have pages of their own."""
    module = import_module(package)
    names = (name for name in module.__all__ if not name.startswith("__"))
    return [name for name in names if not isinstance(getattr(module, name), ModuleType)]


def classes_elsewhere() -> dict[str, list[str]]:
    """Classes of each package that an earlier one documents; Sphinx knows a class by one page."""
    home: dict[type, str] = {}
    again: dict[str, list[str]] = {}
    for package in packages():
        for name in public_names(package):
            value = getattr(import_module(package), name)
            if isinstance(value, type) and home.setdefault(value, package) != package:
                again.setdefault(package, []).append(name)
    return again


def comments(module: str) -> dict[str, str]:
    """Docstrings below the constants of a module, by name."""
    found = ModuleAnalyzer.for_module(module).find_attr_docs()
    return {name: "\n".join(lines) for (owner, name), lines in found.items() if not owner}


def constants() -> dict[str, list[tuple[str, str]]]:
    """Constants that packages export from modules, with their text; autodoc leaves them out."""
    found: dict[str, list[tuple[str, str]]] = {}
    for package in packages():
        local = comments(package)
        for name in public_names(package):
            value = getattr(import_module(package), name)
            if name not in local and not isinstance(value, type) and not isroutine(value):
                found.setdefault(package, []).append((name, text_of(name, value)))
    return found


def text_of(name: str, value: Any) -> str:
    """Docstring of a constant in the module that defines it, or its value."""
    for module, content in list(sys.modules.items()):
        if module.split(".")[0] in PACKAGES and vars(content).get(name) is value:
            known = comments(module)
            if name in known:
                return known[name].strip()
    return f"``{value!r}``" if len(repr(value)) < 200 else f"A ``{type(value).__name__}``."


def undocumented(known: set[str]) -> list[str]:
    """Public names that are not among those known to the site, in full."""
    again = classes_elsewhere()
    names = [
        f"{package}.{name}"
        for package in packages()
        for name in public_names(package)
        if name not in again.get(package, ())
    ]
    return [name for name in names if name not in known]


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of public names without documentation."""
    known = set(env.get_domain("py").data["objects"])
    for name in undocumented(known):
        LOG.warning("%s is public and not documented: add it in docs/reference/api.md", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check when all pages are read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
