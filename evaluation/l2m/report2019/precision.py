"""64-bit types during the computation of a report, for any setting of the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import jax


@contextmanager
def double_precision() -> Iterator[None]:
    """Enable 64-bit types in a context; the switch of JAX depends on its version."""
    switch: Any = getattr(jax, "enable_x64", None)
    if switch is None:
        switch = import_module("jax.experimental").enable_x64
    with switch(True):
        yield
