"""The processor for the runs of a command; before JAX's first computation."""

import contextlib

import jaxsim
from evaluation.scanner import Options


def configure(options: Options) -> None:
    """Check options, and compile for the processor as a command should.

    A process that has used JAX before keeps its options: programs are slower then.

    Raises:
      ValueError: as `Options.spread`.
    """
    options.spread()
    with contextlib.suppress(RuntimeError):
        jaxsim.configure_cpu()
