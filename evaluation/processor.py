"""Configures JAX on the processor for a command, before JAX's first computation."""

import contextlib

import jaxsim
from evaluation.scanner import MachineOptions


def configure(options: MachineOptions) -> None:
    """Check options, then call `jaxsim.configure_cpu`.

    If the process has used JAX before, JAX keeps its options, and programs are slower.

    Raises:
      ValueError: as `MachineOptions.spread`.
    """
    options.spread()
    with contextlib.suppress(RuntimeError):
        jaxsim.configure_cpu()
