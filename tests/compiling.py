"""Programs of tests are compiled in less time than those of users, unless rounding decides.

XLA decides about fusions, flops, bytes and buffers; then kernels are written, and LLVM optimises
them. The older of XLA's two ways to write kernels takes half of the time that compiling takes, and
half of the rest goes into two passes over loops. Kernels are slower then, and round otherwise.

    XLA_FLAGS="$(python -m tests.compiling)" command...
"""

import os
from typing import Any

import jax
import pytest
from jax._src import compiler

from jaxsim.lanes import crew

UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
EMITTERS = "xla_cpu_use_fusion_emitters"
LEFT_OUT = "xla_disable_hlo_passes"
# Each of the two copies all computations of a loop several times.
LOOPS = "while-loop-invariant-code-motion,simplify-while-loops"
HURRIED = UNOPTIMISED | {EMITTERS: False, LEFT_OUT: LOOPS}
OF_USERS = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    EMITTERS: True,
    LEFT_OUT: "",
}
"""XLA's defaults, for single programs of modules without the mark."""

_options_of_users = compiler.get_compile_options


def flags(options: dict[str, Any]) -> str:
    """Options in the form that a process takes them from its environment."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in options.items())


def _options_in_a_hurry(*args: Any, env_options_overrides: Any = None, **rest: Any) -> Any:
    """Options of a compilation; those that its caller names come first."""
    options = HURRIED | dict(env_options_overrides or {})
    return _options_of_users(*args, env_options_overrides=options, **rest)


def hurry(patch: pytest.MonkeyPatch, *, wanted: bool) -> None:
    """Compile in a hurry, or as for users, from now on: in this process and those it starts.

    JAX reads the flags of the environment once, when it starts. The attribute is private to JAX,
    which has no other way to set the options of everything that a process compiles.
    """
    options = _options_in_a_hurry if wanted else _options_of_users
    if compiler.get_compile_options is not options:
        compiler.get_compile_options = options
        forget_programs()
    if wanted:
        patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {flags(HURRIED)}".strip())


def forget_programs() -> None:
    """Let go of everything that this process has compiled."""
    jax.clear_caches()
    crew.executable.cache_clear()


def counted(function: Any, *args: Any) -> Any:
    """Compile a jitted function that nobody runs, as far as XLA's counts of its work need it."""
    return function.lower(*args).compile(compiler_options=UNOPTIMISED | {EMITTERS: True})


if __name__ == "__main__":
    print(flags(HURRIED))
