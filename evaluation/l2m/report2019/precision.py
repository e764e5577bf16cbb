"""64-bit types for as long as a report computes, whatever the process has set."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import jax


@contextmanager
def double_precision() -> Iterator[None]:
    """Enable 64-bit types inside the block; newer versions of JAX have the switch at the top."""
    switch: Any = getattr(jax, "enable_x64", None)
    if switch is None:
        switch = import_module("jax.experimental").enable_x64
    with switch(True):
        yield
