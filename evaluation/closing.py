"""A base class for objects that `close` or the end of a ``with`` statement closes."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """A context manager that closes itself."""

    @abstractmethod
    def close(self) -> None:
        """Close all files; nothing can be written afterwards."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close, also after an error."""
        self.close()
