"""Devices for the runs of a command; before JAX's first computation."""

import contextlib
import math

import jax

from evaluation import scanner
from jaxsim import backend


def use_cores(lifetimes: int, devices: int | None) -> None:
    """Make one CPU device a core that a run can use.

    Args:
      lifetimes: number of lifetimes; each device takes at least one chunk of them.
      devices: the user's wish; None for one a core.

    Raises:
      ValueError: fewer than one device, or more than 256.
    """
    if devices is not None and not 1 <= devices <= 256:
        raise ValueError(f"devices is {devices}; it must be from 1 to 256")
    chunks = max(1, math.ceil(lifetimes / scanner.CHUNK))
    # A process that has used JAX before keeps its devices; the scanner checks their number.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or min(backend.cores(), chunks))
