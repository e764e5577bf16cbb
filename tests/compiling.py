"""Programs that are compiled in less time than those that users run, where that changes no result.

XLA decides about fusions, flops, bytes and buffers; then kernels are written, and LLVM optimises
them, which takes most of the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, lru_cache, partial
from typing import Any

import jax
import pytest

from jaxsim import stepper
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


_programs_of = stepper._Programs.of


@lru_cache(maxsize=64)
def hurried_steps(*described: Any) -> Any:
    """Programs of single steps like `stepper._Programs.of`, with slower kernels."""
    programs = _programs_of(*described)
    compiled = cache(partial(jax.jit, compiler_options=HURRIED))
    parts = {field.name: getattr(programs, field.name) for field in fields(programs)}
    return replace(programs, **{name: compiled(part.__wrapped__) for name, part in parts.items()})


@contextmanager
def hurry() -> Iterator[None]:
    """Compile programs of lanes and of single steps in a hurry, where no rounding decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "executable", hurried)
        patch.setattr(stepper._Programs, "of", staticmethod(hurried_steps))
        yield
