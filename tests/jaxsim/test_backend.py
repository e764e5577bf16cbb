"""What differs between backends: sizes, advice to the compiler, and options of XLA:CPU."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import backend
from jaxsim.backend import EXTRA_OPTION, EXTRA_OPTIONS, SMALL_LOOPS

pytestmark = pytest.mark.optimised

OURS = f"{EXTRA_OPTIONS}={EXTRA_OPTION}"
WHOLE = backend.LOOPS_AS_TRACED | backend.WHOLE_LOOPS


@pytest.fixture
def platform(monkeypatch):
    """Set what JAX says that it runs on."""
    return lambda name: monkeypatch.setattr(jax, "default_backend", lambda: name)


# Options of XLA:CPU -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS),
        ("--xla_dump_to=here", f"--xla_dump_to=here {OURS}"),
        (f"{EXTRA_OPTIONS}=xla_a=1,xla_b", f"{EXTRA_OPTIONS}={EXTRA_OPTION},xla_a=1,xla_b"),
        (f'{EXTRA_OPTIONS}="xla_a=1"', f'{EXTRA_OPTIONS}="{EXTRA_OPTION},xla_a=1"'),
        (f"{EXTRA_OPTIONS}={SMALL_LOOPS}=7", f"{EXTRA_OPTIONS}={SMALL_LOOPS}=7"),
        (f"{EXTRA_OPTIONS}= --xla_x=1", f"{EXTRA_OPTIONS}= --xla_x=1 {OURS}"),
    ],
    ids=["none", "another", "joined", "quoted", "threshold", "empty"],
)
def test_options_extend_those_that_are_there(before, after):
    assert backend.extended(before) == after
    assert backend.extended(after) == after


def test_a_file_of_flags_is_refused():
    with pytest.raises(ValueError, match=rf"file of flags: add .*{SMALL_LOOPS}=30000000"):
        backend.extended("flags.txt")


PROGRAM = """
import json, os
import jax, jax.numpy as jnp
import evaluation.scanner, jaxsim  # importing makes no array

def refusal():
    try:
        jaxsim.configure_cpu()
    except RuntimeError as error:
        return str(error)

if %(configured)s:
    jaxsim.configure_cpu()
x = jnp.linspace(0.0, 1.0, 1000)
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, y: jnp.sin(1.7 * y) + x * y, x))
def loop_remains(number_of):
    def outer(state):
        return number_of(state[0]) + 1, loop(state[1])
    program = jax.jit(lambda x: jax.lax.while_loop(lambda state: state[0] < 9, outer, (0, x)))
    compiled = program.lower(x).compile(compiler_options=jaxsim.backend.WHOLE_LOOPS)
    main = compiled.as_text().split("ENTRY ")[1]
    return " while(" in main, int(compiled(x)[0])
functions = "sin cos tan exp expm1 log1p tanh sinh arctan arcsinh sqrt cbrt".split()
report = {
    "functions": {name: jax.jit(getattr(jnp, name))(x).tolist() for name in functions},
    "flags": os.environ.get("XLA_FLAGS"),
    "one_function": "small_call" in loop.lower(x).compile().as_text(),
    "whole": loop_remains(lambda number: number),
    "in_parts": loop_remains(jaxsim.backend.in_parts),
    "result": loop(x).tolist(),
    "again": refusal(),
    "devices": len(jax.devices()),
}
print(json.dumps(report))
"""


def run(configured, flags=None):
    """What the program finds in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    environment |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % {"configured": configured}],
        env=environment | ({"XLA_FLAGS": flags} if flags else {}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def plain():
    return run(configured=False)


@pytest.fixture(scope="module")
def configured():
    return run(configured=True)


def test_the_options_reach_the_compiler(plain, configured):
    assert (plain["one_function"], configured["one_function"]) == (False, True)
    assert (plain["flags"], configured["flags"]) == (None, OURS)


def test_a_loop_over_loops_is_compiled_in_parts(configured):
    """Otherwise it is one function, which takes long to compile; it ends after as many passes."""
    assert (configured["whole"], configured["in_parts"]) == ([False, 9], [True, 9])


def test_results_are_the_same_to_rounding(plain, configured):
    np.testing.assert_allclose(configured["result"], plain["result"], rtol=1e-4)


@pytest.mark.parametrize("which", ["plain", "configured"])
def test_functions_are_right(which, request):
    """With vectors of 512 bits, as one might like to configure, the arctangent is not."""
    functions, x = request.getfixturevalue(which)["functions"], np.linspace(0.0, 1.0, 1000)
    for name, values in functions.items():
        np.testing.assert_allclose(values, getattr(np, name)(x), atol=1e-6, rtol=1e-5)


def test_there_is_one_device_whoever_asks(plain, configured):
    assert plain["devices"] == configured["devices"] == 1


def test_it_is_too_late_once_jax_has_started(plain, configured):
    assert plain["again"] == backend.TOO_LATE
    assert configured["again"] is None  # nothing to change


def test_unknown_extra_options_are_ignored():
    """As the options of `configure_cpu` would be, should they vanish."""
    result = run(configured=True, flags=f"{EXTRA_OPTIONS}=xla_cpu_no_such_option=3")
    assert result["flags"] == f"{EXTRA_OPTIONS}={EXTRA_OPTION},xla_cpu_no_such_option=3"
    assert result["one_function"]


class Lowered:
    """Notes what it is compiled with; fails with an error if that is any option."""

    def __init__(self, error=""):
        self.error, self.calls = error, []
        self.compiler_ir = jax.jit(lambda x: x + 1).lower(1.0).compiler_ir

    def compile(self, compiler_options=None):
        self.calls.append(compiler_options)
        if compiler_options and self.error:
            raise jax.errors.JaxRuntimeError(self.error)
        return self


@pytest.mark.parametrize(
    ("name", "flags", "options"),
    [
        ("cpu", OURS, WHOLE),
        ("cpu", "", backend.LOOPS_AS_TRACED),
        ("gpu", OURS, backend.GRAPHS),
        ("tpu", OURS, None),
    ],
)
def test_the_platform_decides_what_the_compiler_is_told(
    name, flags, options, platform, monkeypatch
):
    platform(name)
    monkeypatch.setenv("XLA_FLAGS", flags)
    lowered = Lowered()
    assert backend.compiled(lowered) is lowered
    assert lowered.calls == [options]


@pytest.mark.parametrize(("name", "options"), [("cpu", WHOLE), ("gpu", backend.GRAPHS)])
@pytest.mark.parametrize("message", backend.UNKNOWN)
def test_an_xla_without_an_option_compiles_as_usual(name, options, message, platform, monkeypatch):
    platform(name)
    monkeypatch.setenv("XLA_FLAGS", OURS)
    lowered = Lowered(f"INVALID_ARGUMENT: {message}: 'xla_x'")
    assert backend.compiled(lowered) is lowered
    assert lowered.calls == [options, None]


def test_another_error_of_the_compiler_is_not_hidden(platform):
    platform("gpu")
    lowered = Lowered("RESOURCE_EXHAUSTED: Out of memory")
    with pytest.raises(jax.errors.JaxRuntimeError, match="Out of memory"):
        backend.compiled(lowered)
    assert len(lowered.calls) == 1


@pytest.mark.parametrize("options", [WHOLE, backend.GRAPHS])
def test_xla_knows_the_options(options):
    """Otherwise programs would be slower, and nothing would say so."""
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    assert lowered.compile(compiler_options=options)(1.0) == 2.0


def test_xla_knows_the_passes_that_are_left_out():
    """Without them the sine stays in the loop; XLA says nothing of a pass that it does not have."""

    def body(state):
        number, x = state
        return number + jnp.sin(x), x

    loop = jax.jit(lambda x: jax.lax.while_loop(lambda state: state[0] < 9, body, (x, x)))
    lowered = loop.lower(jnp.float32(1))
    passes = dict.fromkeys(backend.LOOPS_AS_TRACED, "")
    usual, as_traced = (
        lowered.compile(compiler_options=options).as_text()
        for options in (passes, backend.LOOPS_AS_TRACED)
    )
    start = "ENTRY"
    assert "sine" in usual[usual.index(start) :]
    assert "sine" not in as_traced[as_traced.index(start) :]


@pytest.mark.parametrize(
    "options", [{"xla_no_option": True}, backend.GRAPHS | {"xla_gpu_enable_command_buffer": "NONE"}]
)
def test_the_messages_of_unknown_options_are_those_of_xla(options):
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        lowered.compile(compiler_options=options)
    assert any(words in str(raised.value) for words in backend.UNKNOWN)


def test_operations_of_an_executable_have_no_names():
    """They are a third of what a later process loads."""

    def named(x):
        with jax.named_scope("a_name"):
            return jnp.sin(x) + 1

    lowered = jax.jit(named).lower(1.0)
    assert "a_name" in lowered.as_text(debug_info=True)
    executable = backend.compiled(lowered)
    assert "a_name" not in executable.as_text()
    assert "op_name" not in executable.as_text()
    assert executable(1.0) == jnp.sin(1.0) + 1


# Sizes --------------------------------------------------------------------------------------------


def test_sizes_by_backend(platform, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    platform("cpu")
    assert backend.layout() == backend.CPU
    monkeypatch.setenv("XLA_FLAGS", OURS)
    assert backend.layout() == backend.CPU_CONFIGURED
    for name in ("gpu", "tpu"):
        platform(name)
        assert backend.layout() == backend.ACCELERATOR


# Advice to the compiler ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "divisions"), [("cpu", 2), ("gpu", 0), ("tpu", 0)])
def test_advice_is_for_the_processor_only_and_changes_no_value(platform, name, divisions):

    def advised(x, condition):  # a new one each time: JAX keeps what it has traced
        one = backend.opaque_one(x)
        return backend.materialise(x, one), backend.mask(condition, one)

    platform(name)
    x, condition = jnp.array([1.0, -2.5, 3.0]), jnp.array([True, False, True])
    assert str(jax.make_jaxpr(advised)(x, condition)).count(" div ") == divisions
    same, mask = advised(x, condition)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(mask, condition)


@pytest.mark.parametrize("number", [0.0, -2.5, np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_is_one_whatever_it_is_made_of(number, dtype):
    with jax.enable_x64(dtype == np.float64):
        one = jax.jit(backend.opaque_one)(np.full(3, number, dtype))
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, 1)


def test_a_materialised_value_is_computed_once():
    """XLA keeps the division, and with it the border between two kernels."""

    def twice(x):
        root = backend.materialise(3 * x * x + x, backend.opaque_one(x))
        return root * x, root + x

    text = jax.jit(twice).lower(jnp.ones(512)).compile().as_text()
    assert text.count(" divide(") == 1


FOLDED = """
import jax, jax.numpy as jnp
from jaxsim import backend

def twice(_, x):
    middle = backend.materialise(3 * x * x + x, backend.opaque_one(x))
    return middle * x[::-1] - middle

jax.jit(lambda x: jax.lax.fori_loop(0, 8, twice, x))(jnp.ones(512)).block_until_ready()
"""


def test_materialising_divides_by_nothing_when_it_runs(tmp_path):
    """What LLVM makes of a loop whose numbers change has no division left."""
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_module_re=jit__lambda"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    subprocess.run([sys.executable, "-c", FOLDED], env=environment, check=True, timeout=120)

    def divisions(kind):
        files = list(tmp_path.glob(f"*.ir-{kind}-opt.ll"))
        assert files
        return sum(file.read_text().count(" fdiv ") for file in files)

    assert divisions("no") >= 1
    assert divisions("with") == 0


LOWERED = """
import sys

import jax, numpy as np
import jaxsim
from jaxsim import agents, counters
from jaxsim.lanes.crew import Crew, Spread
from jaxsim.lanes.lists import Rounds

jax.default_backend = lambda: sys.argv[1]
env, params = jaxsim.make("CartPole3D-v0", level=203, difficulty="hard")
crew = Crew(
    agents.get("pd"), [env], [params], counters.root(0), np.arange(64),
    spread=Spread(threads=1), predicts=False, independent=True,
)
one = np.ones((4, 1), np.int32)
batch = crew.batch(Rounds(0 * one, one, 0 * one, 0 * one), 0)
program = jax.jit(crew.program(4))
print(program.trace(batch).lower(lowering_platforms=(sys.argv[1],)).as_text())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cuda", "tpu"])
def test_a_whole_rollout_is_lowered_for_an_accelerator(name):
    """Nothing is compiled or run, but there is nothing in it that calls back to the host.

    In a process of its own, as JAX keeps what it has traced for another platform.
    """
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-c", LOWERED, name]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "stablehlo.while" in done.stdout
    for word in ("custom_call", "callback", "infeed", "outfeed", "stablehlo.send"):
        assert word not in done.stdout
