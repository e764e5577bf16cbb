"""The one place for what differs between backends: advice to the compiler, sizes, options.

XLA:CPU fuses cheap producers into every consumer, so a chain of impulses is recomputed
exponentially often: measured on this step, 23,136 flops an environment step without `mask` in
three places and 2,321 with it. It never duplicates a division whose divisor it does not know,
and that is the tool used there. (`jax.lax.optimization_barrier` is dropped before fusion on CPU.)
XLA:GPU and XLA:TPU weigh recomputation themselves, so on any platform but "cpu" a value is left as
it is. What is decided by the platform is decided while a program is traced.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.mlir.passmanager import PassManager

from jaxsim import program_store
from jaxsim.pytrees import Tree

S = TypeVar("S")
T = TypeVar("T")

SMALL_LOOPS = "xla_cpu_small_while_loop_byte_threshold"
EXTRA_OPTION = f"{SMALL_LOOPS}=30000000"
EXTRA_OPTIONS = "--xla_backend_extra_options"

LOOPS_AS_TRACED: dict[str, str | bool] = {
    "xla_disable_hlo_passes": "while-loop-invariant-code-motion,simplify-while-loops"
}
"""Options of XLA for programs on a processor. Each of the two passes copies all computations of a
loop several times, which takes up to a fifth of the time that compiling takes. Programs of level
200, 208 hard, `mpc` and `ppo` are as fast without them, and give the same lengths of episodes."""

WHOLE_LOOPS: dict[str, str | bool] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": "1",
}
"""Options of XLA for programs whose loops are compiled whole."""

GRAPHS: dict[str, str | bool] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,"
    "DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": "1",
}
"""Options of XLA that put loops into graphs of kernels, which a GPU repeats without the host."""

UNKNOWN = ("No such compile option", "is not a valid enum value")
"""What XLA says of an option that it does not have, or of a value."""

TOO_LATE = (
    "JAX has started its backends already, which read their options once: call "
    "jaxsim.configure_cpu() right after the imports, before any array is made and before "
    "jax.devices() is called"
)


class Layout(NamedTuple):
    """Sizes that suit a backend. No result depends on them.

    Attributes:
      lanes: most episodes in parallel for a thread or accelerator.
      chunk: lanes that advance together.
      ticks: cheap steps of a chunk before the next chunk has its turn.
      groups: lanes that are packed together, by effort above the cheapest step; the last for all
        higher efforts.
      turns: lanes that start their next episodes together.
      rounds: episodes that a lane of `jaxsim.rollout` plays one after the other, if that leaves
        enough lanes.
      enough: lanes per thread or accelerator above which more do not help.
    """

    lanes: int
    chunk: int
    ticks: int
    groups: tuple[int, ...]
    turns: int
    rounds: int
    enough: int


# Few lanes need a high effort, and a group waits for its slowest lane. If starting an operation is
# cheap, small groups are best. If it is most of the time, a step of many lanes takes hardly longer
# than one of few.
FINE = (128, 128, 32, 16)
COARSE = (256, 256, 256, 64)

# The state and the temporaries of a chunk stay in a core's cache. A loop that is compiled whole
# needs a smaller chunk than one whose operations are started one by one. Lanes with lists are
# seldom idle. But with many contacts (level 201), a thousand lanes fill their groups so badly that
# four thousand are three times as fast.
CPU = Layout(lanes=32_768, chunk=512, ticks=8, groups=COARSE, turns=256, rounds=8, enough=4096)
CPU_CONFIGURED = Layout(
    lanes=32_768, chunk=256, ticks=16, groups=FINE, turns=256, rounds=8, enough=4096
)
# All lanes at once: an accelerator needs enough work for every start of a kernel.
ACCELERATOR = Layout(
    lanes=262_144,
    chunk=262_144,
    ticks=16,
    groups=(32_768, 16_384, 8192, 4096),
    turns=32_768,
    rounds=1,
    enough=262_144,
)


def layout() -> Layout:
    """Return the sizes for the platform that JAX runs on."""
    if not on_cpu():
        return ACCELERATOR
    return CPU_CONFIGURED if SMALL_LOOPS in os.environ.get("XLA_FLAGS", "") else CPU


def on_cpu() -> bool:
    """Whether JAX runs on the processor."""
    return jax.default_backend() == "cpu"


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(function: Callable[[S], T], number: int, items: Iterable[S]) -> list[T]:
    """Call a function for every item in a number of threads, with the precision of this one.

    JAX sets 64-bit types per thread. With one thread the calls run in this thread, which may have
    other settings of JAX as well.

    Args:
      function: of one item.
      number: of threads.
      items: what it is called with.

    Returns:
      The results, in the order of the items.
    """
    if number == 1:
        return [function(item) for item in items]
    wide = bool(jax.config.read("jax_enable_x64"))

    def call(item: S) -> T:
        with _enable_x64(wide):
            return function(item)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(call, items))


def _enable_x64(wide: bool) -> AbstractContextManager[None]:
    """Set 64-bit types; newer versions of JAX have the switch at the top level."""
    switch: Any = getattr(jax, "enable_x64", None)
    if switch is None:
        from jax.experimental import enable_x64 as switch  # type: ignore[attr-defined, no-redef]
    context: AbstractContextManager[None] = switch(wide)
    return context


def configure_cpu() -> None:
    """Make XLA two to three times as fast on a processor; never needed for right results.

    Call it before JAX's first computation. It extends the environment variable XLA_FLAGS by
    `--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=30000000`: a loop of
    which a pass reads and writes less than 30 MB is compiled as one function, instead of a list of
    operations that are started one by one in every iteration. Programs of lanes are then compiled
    by XLA's older emitters, see `compiled`.

    The option holds for everything that the process compiles. It is undocumented and may vanish
    from XLA, which ignores unknown options: programs are only slower then. If XLA_FLAGS has it
    already, its value stays; other flags stay as well. Numbers are rounded differently than without
    it, within the accuracy of float32. Calling it again changes nothing.

    Vectors of 512 bits (`--xla_cpu_prefer_vector_width=512`) would be some per cent faster still,
    but XLA's arctangent of 16 numbers is wrong in jaxlib 0.10.2: `jnp.arctan` is off by up to 2.4.

    Raises:
      RuntimeError: JAX has started its backends already.
      ValueError: XLA_FLAGS names a file.
    """
    before = os.environ.get("XLA_FLAGS", "")
    flags = extended(before)
    if flags == before:
        return
    config: Any = jax.config
    devices = config.jax_num_cpu_devices
    try:
        # Another number of devices is refused once the backends have started.
        config.update("jax_num_cpu_devices", devices + 1)
    except RuntimeError as error:
        raise RuntimeError(TOO_LATE) from error
    config.update("jax_num_cpu_devices", devices)
    os.environ["XLA_FLAGS"] = flags


def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile a lowered program.

    After `configure_cpu` XLA's older emitters compile it, if XLA still has them: they need less
    memory and, for loops that are compiled whole, less time, and the loops are at least as fast.
    On a GPU loops are graphs, as far as XLA and the driver can do that.
    """
    _strip_names(lowered)
    options = _options()
    try:
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            if options is None or not any(words in str(error) for words in UNKNOWN):
                raise
            return lowered.compile()
    finally:
        _give_back()


def _strip_names(lowered: jax.stages.Lowered) -> None:
    """Take the names and source lines of operations out of a lowered program.

    Of the executable of level 200 they are a third, which a later process reads for nothing.
    """
    module = lowered.compiler_ir("stablehlo")
    assert module is not None  # every program of `jax.jit` has this form
    passes = PassManager.parse("builtin.module(strip-debuginfo)", context=module.context)
    passes.run(module.operation)


def _options() -> dict[str, str | bool] | None:
    """Options of XLA on the present platform."""
    if on_cpu():
        whole = WHOLE_LOOPS if SMALL_LOOPS in os.environ.get("XLA_FLAGS", "") else {}
        return LOOPS_AS_TRACED | whole
    return GRAPHS if jax.default_backend() == "gpu" else None


def _give_back() -> None:
    """Return the memory that the compiler has freed to the system.

    glibc keeps it for later: 1.0 of the 1.5 GB of a process that has compiled level 200. Other C
    libraries have no such function.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def keep_compiled(folder: str, most_bytes: int = 2 << 30) -> None:
    """Keep compiled programs in a folder, so that the next process need not compile them.

    This is JAX's persistent compilation cache with options that suit this package. Programs of
    lanes are kept as they were traced, too (`program_store`), also by processes that this one
    starts; a process that replaces functions of this package at run time must not call it. Call it
    before JAX compiles anything. Several processes may share a folder.

    Args:
      folder: is made if it is not there.
      most_bytes: size from which the least recently used programs are removed.
    """
    config: Any = jax.config
    config.update("jax_compilation_cache_dir", str(folder))
    config.update("jax_compilation_cache_max_size", most_bytes)
    config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    os.environ[program_store.VARIABLE] = str(folder)


def extended(flags: str) -> str:
    """Add the option of `configure_cpu` to a value of XLA_FLAGS, where it lacks it.

    Raises:
      ValueError: XLA would take the value for the name of a file.
    """
    flags = flags.strip()
    if flags and not flags.startswith("--"):
        raise ValueError(
            f"XLA_FLAGS is {flags!r}, which XLA takes for a file of flags: add "
            f"{EXTRA_OPTIONS}={EXTRA_OPTION} to the file, or unset XLA_FLAGS"
        )
    if SMALL_LOOPS not in flags:
        # Before the first of the options that are there, within the quotes if there are any.
        flags, count = re.subn(
            rf"""({EXTRA_OPTIONS}=["']?)(?=\w)""", rf"\g<1>{EXTRA_OPTION},", flags, count=1
        )
        if not count:
            flags += f" {EXTRA_OPTIONS}={EXTRA_OPTION}"
    return flags.strip()


def opaque_one(number: jax.Array | float) -> jax.Array:
    """Return 1.0 in a form that XLA cannot fold, but LLVM can, so that dividing by it is free.

    XLA's simplifier does not see that shifting a word out in two steps gives zero. LLVM does, and
    that the divisor is one, if both are in the same kernel. They are if the number changes in each
    pass of a loop, which keeps XLA from moving this out of it.

    It separates values of its own shape. XLA turns a division by fewer numbers than are divided
    into a product, and recomputes the dividend for each consumer. If little is divided (a full tick
    of four blocks), a scalar costs least: 11,224 flops, with a number for each lane 13,776.

    Args:
      number: () or (L,) float32 or float64; a part of the state, or a parameter.
    """
    number = jnp.asarray(number)
    width = 8 * number.dtype.itemsize
    kind = np.dtype(f"uint{width}")
    half = jnp.asarray(width // 2, kind)
    word = jax.lax.bitcast_convert_type(number, kind)
    zero = jax.lax.shift_right_logical(jax.lax.shift_right_logical(word, half), half)
    one = zero | jnp.asarray(np.ones((), number.dtype).view(kind))
    return jax.lax.bitcast_convert_type(one, number.dtype)


def in_parts(number: jax.Array) -> jax.Array:
    """Return a number unchanged, so that XLA:CPU does not compile the loop around it whole.

    After `configure_cpu` XLA compiles a loop over loops as one function, too. LLVM needs twice as
    long for it as for the inner loops, and all on one core: 50 to 70 s instead of 25 to 35 at level
    200. XLA compiles no loop whole that multiplies matrices which are not tiny; one of eight by
    eight takes a few microseconds.

    Args:
      number: () integer that changes in the passes of the loop; else XLA moves the product out.
    """
    if not on_cpu():
        return number
    matrix = jnp.ones((8, 8)) * opaque_one(number.astype(jnp.float32))
    return jnp.where((matrix @ matrix)[0, 0] > 0, number, 0)


def batch_rule(of_lanes: Callable[..., Tree]) -> Callable[..., Tree]:
    """Make a rule of `jax.custom_batching.custom_vmap` from a function of whole batches.

    Args:
      of_lanes: function of the same arguments, all of which have a leading axis of lanes.
    """

    def rule(size: int, batched: Tree, *arguments: Tree) -> Tree:
        filled = jax.tree.map(
            lambda leaf, has: leaf if has else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf))),
            arguments,
            tuple(batched),
        )
        out = of_lanes(*filled)
        return out, jax.tree.map(lambda _: True, out)

    return rule


def materialise(tree: T, one: jax.Array) -> T:
    """Compute floating-point arrays once, however many later values use them.

    Args:
      tree: arrays, or None.
      one: from `opaque_one`.

    Returns:
      The same values; off the processor, the same arrays.
    """
    return jax.tree.map(lambda leaf: leaf / one, tree) if on_cpu() else tree


def mask(condition: jax.Array, one: jax.Array) -> jax.Array:
    """Compute a boolean once, as a number; off the processor, it is returned unchanged."""
    return jnp.where(condition, one, 0.0 * one) / one > 0.5 if on_cpu() else condition


def whole(numbers: jax.Array, one: jax.Array) -> jax.Array:
    """Compute integers below 2^24 once, as `mask` does a boolean."""
    if not on_cpu():
        return numbers
    return (numbers.astype(jnp.result_type(one)) / one).astype(numbers.dtype)
