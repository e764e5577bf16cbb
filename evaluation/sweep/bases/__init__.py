"""The base commands of a sweep: one module for each, with a common interface."""

from importlib import import_module
from typing import Final

from evaluation.sweep.bases.base import Base, PackResults
from jaxsim.parameters import unknown

HOMES: Final = {
    "evaluate": "evaluate",
    "run": "run",
    "train": "train",
    "sailon evaluate": "sailon",
}
"""Module of each base command."""


def get(name: str) -> Base:
    """Return a base.

    Raises:
      ValueError: there is no base of that name.
    """
    if name not in HOMES:
        raise ValueError(unknown("base", name, HOMES))
    base: Base = import_module(f"evaluation.sweep.bases.{HOMES[name]}").BASE
    return base


__all__ = ["HOMES", "Base", "PackResults", "get"]
