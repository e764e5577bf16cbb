"""Programs that are compiled in less time than those that users run, where that changes no result.

XLA decides about fusions, flops, bytes and buffers; then kernels are written, and LLVM optimises
them, which takes most of the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pytest

from jaxsim.lanes import crew

UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
HURRIED = UNOPTIMISED | {"xla_cpu_use_fusion_emitters": False}


def counted(function: Any, *args: Any) -> Any:
    """Compile a jitted function that nobody runs, as far as XLA's counts of its work need it."""
    return function.lower(*args).compile(compiler_options=UNOPTIMISED)


@lru_cache(maxsize=crew.MAX_EXECUTABLES)
def hurried(*described: Any) -> Any:
    """Compile like `crew.executable`, with slower kernels that round otherwise."""
    return crew.lowered(*described).compile(compiler_options=HURRIED)


@contextmanager
def hurry() -> Iterator[None]:
    """Compile programs of lanes in a hurry, for tests whose outcome no rounding decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "executable", hurried)
        yield
