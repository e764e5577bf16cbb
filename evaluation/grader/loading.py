"""Load suites and submissions by name: a module, a file or a package's folder, and a name in it."""

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluation import errors
from evaluation.grader.agent import CreateAgent
from evaluation.grader.exceptions import AgentError, AgentNotFound, TestSuiteNotFound

SUITE, AGENT = "test_suite", "create_agent"
"""Default names in a module."""


@dataclass(frozen=True)
class Reference:
    """A name in a module.

    Attributes:
      module: dotted name, path of a file, or path of a folder with `__init__.py`.
      name: in the module.
    """

    module: str
    name: str

    @classmethod
    def parse(cls, text: str, default: str) -> "Reference":
        """Split `MODULE:NAME`; without a colon, or with only that of a drive, it is a module."""
        module, colon, name = text.rpartition(":")
        if colon and name.isidentifier():
            return cls(module, name)
        return cls(text, default)

    @property
    def path(self) -> Path | None:
        """File of a module that is given by its path; None for a dotted name."""
        path = Path(self.module)
        if path.is_dir() and (path / "__init__.py").is_file():
            return path.resolve() / "__init__.py"
        is_path = path.suffix == ".py" or len(path.parts) > 1
        return path.resolve() if is_path else None

    def exists(self) -> bool:
        """Whether the module can be found; a dotted name's parents are imported for it."""
        if self.path is not None:
            return self.path.is_file()
        _look_here()
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False

    def load(self) -> Any:
        """Import the module and return the named object.

        Raises:
          FileNotFoundError: there is no such module.
          AttributeError: nothing of that name is in it.
          ImportError: it cannot be imported, with what it raised as the cause.
        """
        if not self.exists():
            raise FileNotFoundError(f"there is no {self.in_words()}")
        try:
            module = self._import()
        except (Exception, SystemExit) as error:
            reason = errors.one_line(error)
            raise ImportError(f"{self.in_words()} cannot be imported: {reason}") from error
        if not hasattr(module, self.name):
            raise AttributeError(f"{self.in_words()} has no {self.name!r}")
        return getattr(module, self.name)

    def in_words(self) -> str:
        """Kind and name of the module, for messages."""
        return f"{'module' if self.path is None else 'file'} {self.module!r}"

    def _import(self) -> ModuleType:
        path = self.path
        if path is None:
            return importlib.import_module(self.module)
        package = path.name == "__init__.py"
        home = path.parent.parent if package else path.parent
        # Submissions import modules beside them.
        if str(home) not in sys.path:
            sys.path.insert(0, str(home))
        # A unique name: two submissions may have the same one.
        name = (path.parent if package else path).stem
        name = f"{name}_{zlib.crc32(str(path).encode()):x}" if name in sys.modules else name
        return _execute(name, path, package)


def _execute(name: str, path: Path, package: bool) -> ModuleType:
    """Import a file under a name."""
    places = [str(path.parent)] if package else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _look_here() -> None:
    """Find modules in the working directory, as `python -m` does."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def load_suite(text: str) -> Any:
    """Return the test suite that a text names.

    Args:
      text: module, file or folder, and after a colon the name of the suite if it is not
        `test_suite`.

    Raises:
      TestSuiteNotFound: there is none.
    """
    from evaluation.grader.suite import TestSuite

    reference = Reference.parse(text, SUITE)
    suite = _load(reference, TestSuiteNotFound, "test suite")
    if not isinstance(suite, TestSuite):
        raise TestSuiteNotFound(
            f"test suite not found: {reference.name!r} in {reference.module!r} is a "
            f"{type(suite).__name__}; it must be a TestSuite"
        )
    return suite


def load_agent(text: str) -> CreateAgent:
    """Return the submission's function that a text names.

    Args:
      text: module, file or folder, and after a colon the name of the function or class if it is
        not `create_agent`.

    Raises:
      AgentNotFound: there is none.
    """
    reference = Reference.parse(text, AGENT)
    function: CreateAgent = _load(reference, AgentNotFound, "agent")
    if not callable(function):
        raise AgentNotFound(
            f"agent not found: {reference.name!r} in {reference.module!r} is a "
            f"{type(function).__name__}; it must be a function or a class that makes an agent"
        )
    return function


def _load(reference: Reference, kind: Callable[[str], Exception], what: str) -> Any:
    try:
        return reference.load()
    except (FileNotFoundError, AttributeError, ImportError) as error:
        raise kind(f"{what} not found: {error}") from error


class Submission:
    """A submission that is imported only where it is called: in the process of the agent.

    Args:
      text: as for `load_agent`.

    Raises:
      AgentNotFound: there is no such module.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        reference = Reference.parse(text, AGENT)
        if not reference.exists():
            raise AgentNotFound(f"agent not found: there is no {reference.in_words()}")

    def check(self) -> None:
        """Import it in a process of its own, as an agent's process will.

        Raises:
          AgentNotFound: that fails, or there is no function in it that makes an agent.
        """
        from evaluation.grader.processes import ProcessHost

        try:
            with ProcessHost(self, {}, None):
                pass
        except AgentError as error:
            words = str(error)
            not_found = type(error).__name__ == AgentNotFound.__name__
            raise AgentNotFound(
                words if not_found else f"agent not found: {self.text}: {words}"
            ) from None

    def __call__(self, **agent_init: object) -> Any:
        """Import it and make an agent."""
        return load_agent(self.text)(**agent_init)

    def __reduce__(self) -> tuple[object, ...]:
        """Unpickle in another process as the submission's own function."""
        return load_agent, (self.text,)
