"""What a sweep can play: one module a base command, behind one interface."""

from importlib import import_module
from typing import Final

from evaluation.sweep.bases.base import Base, Played
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
      ValueError: there is none of that name.
    """
    if name not in HOMES:
        raise ValueError(unknown("base", name, HOMES))
    found: Base = import_module(f"evaluation.sweep.bases.{HOMES[name]}").BASE
    return found


__all__ = ["HOMES", "Base", "Played", "get"]
