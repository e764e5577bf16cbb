"""Programs that are compiled to count their work, and never run."""

from typing import Any

# LLVM works behind XLA's optimiser, which decides about fusions, flops, bytes and buffers; it takes
# half of the time of compiling.
UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def counted(function: Any, *args: Any) -> Any:
    """Compile a jitted function as far as its counts need it."""
    return function.lower(*args).compile(compiler_options=UNOPTIMISED)
