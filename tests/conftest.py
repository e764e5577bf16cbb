"""Shared fixtures: a compilation cache, recorded data, and one compiled step per precision.

Compiling the step takes far longer than running it, so tests share the two programs here: batches
of any size up to `WIDTH` lanes are padded to it.
"""

import functools
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.worlds.cartpole3d import CartPole3D, Observation, Params, State
from tests.compiling import forget_programs, hurry

ROOT = Path(__file__).parents[1]

# In the environment too, so that subprocesses of tests share the cache.
CACHE = os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
WORTH = os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
jax.config.update("jax_compilation_cache_dir", CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", float(WORTH))
# JAX has started: no command that a test calls in this process can configure it for those behind.
jax.devices()

WIDTH = 1024  # lanes of the shared programs
SHARED = Path(os.environ.get("JAXSIM_SHARED_DATA", ROOT.parent / "shared" / "data"))
TEST_DATA = ROOT / "tests" / "data"

Step = tuple[Observation, State, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]


MAPPINGS = Path("/proc/self/maps")
MOST_MAPPINGS = 20_000  # of the 65,530 that Linux grants a process unless told otherwise


@pytest.fixture(autouse=True, scope="module")
def few_mappings() -> Iterator[None]:
    """Let compiled programs go where there are many.

    XLA maps the code and data of each kernel by itself: hundreds of mappings a program. A process
    that has used up what Linux grants it dies of a segmentation fault, while it compiles.
    """
    yield
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MOST_MAPPINGS:
        forget_programs()


@pytest.fixture(autouse=True, scope="module")
def compiling(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile in a hurry, but for modules with the mark `optimised`."""
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch, wanted=request.node.get_closest_marker("optimised") is None)
        yield


def pytest_collection_finish() -> None:
    """Collect garbage less often, and leave out the objects that all tests share.

    Tracing makes many objects. In 67 tests that compile, Python collected garbage for 3.4 s of the
    processor's 55, and for .8 s of 54 with this.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with the mark come last, so that a process changes how it compiles once."""
    items.sort(key=lambda item: item.get_closest_marker("optimised") is not None)


@contextmanager
def double_precision() -> Iterator[None]:
    """Enable 64-bit types; newer versions of jax have the switch at the top level."""
    switch = getattr(jax, "enable_x64", None)
    if switch is None:
        from jax.experimental import enable_x64 as switch
    with switch(True):
        yield


def _widen(tree: Any, lanes: int) -> Any:
    """Repeat the last lane up to `WIDTH`; scalars are repeated for every lane."""

    def one(leaf: Any) -> Any:
        leaf = np.asarray(leaf) if not isinstance(leaf, jax.Array) else leaf
        if leaf.shape == (WIDTH,):
            return leaf
        leaf = np.asarray(leaf)
        if leaf.shape == ():
            return np.broadcast_to(leaf, (WIDTH,))
        return np.concatenate([leaf, np.repeat(leaf[-1:], WIDTH - lanes)])

    return jax.tree.map(one, tree)


@dataclass(frozen=True)
class Lanes:
    """CartPole3D level 200 in one precision, compiled for `WIDTH` lanes.

    `step` takes lanes in any number up to `WIDTH` and parameters as scalars or by lane. Random
    keys are of no account: nothing is drawn in a step of this level.
    """

    env: CartPole3D
    params: Params
    precision: Callable[[], AbstractContextManager[None]]
    width: int = WIDTH

    @functools.cached_property
    def _step(self) -> Any:
        return jax.jit(self.env.step)

    @functools.cached_property
    def _start(self) -> Any:
        return jax.jit(self.env.start)

    def start(self, seed: int, params: Params | None = None) -> State:
        """Draw `WIDTH` starts, before the hidden first tick."""
        with self.precision():
            keys = jax.random.split(jax.random.key(seed), WIDTH)
            return self._start(keys, _widen(params or self.params, WIDTH))

    def step(self, state: State, action: Any, params: Params | None = None) -> Step:
        """Advance a batch by one step; a batch narrower than `WIDTH` comes back as NumPy."""
        lanes = np.shape(state.step)[0]
        action = np.broadcast_to(np.asarray(action, np.int32), (lanes,))
        with self.precision():
            args = _widen((state, action, params or self.params), lanes)
            result = self._step(jax.random.key(0), *args)
            if lanes == WIDTH:
                return result
            return jax.tree.map(lambda leaf: np.asarray(leaf)[:lanes], result)

    def play(
        self, start: State, policy: Callable[[Observation, int], Any], params: Params | None = None
    ) -> np.ndarray:
        """Episode lengths under `policy`, which maps (observation, step) to actions."""
        observation, state, *_ = self.step(start, 0, params)
        for k in range(self.env.max_steps):
            observation, state, *_ = self.step(state, policy(observation, k), params)
            if np.all(state.done):
                break
        return np.asarray(state.step)


@pytest.fixture
def x64() -> Iterator[None]:
    """Run the test with 64-bit types."""
    with double_precision():
        yield


@pytest.fixture(scope="session")
def lanes32() -> Lanes:
    """CartPole3D in float32, compiled once."""
    return Lanes(*jaxsim.make("CartPole3D-v0"), precision=contextmanager(lambda: iter([None])))


@pytest.fixture(scope="session")
def lanes64() -> Lanes:
    """CartPole3D in float64, compiled once; it switches the precision by itself."""
    with double_precision():
        return Lanes(*jaxsim.make("CartPole3D-v0", dtype="float64"), precision=double_precision)


@pytest.fixture(scope="session")
def recorded_data() -> Callable[[str], Path]:
    """Find recorded data: all of it where it lies, else the excerpt here.

    It lies in the folder that JAXSIM_SHARED_DATA names, or else beside the checkout.
    """

    def find(name: str) -> Path:
        for folder in (SHARED, TEST_DATA):
            if (folder / name).exists():
                return folder / name
        pytest.skip(f"no {name} in {SHARED} or {TEST_DATA}; JAXSIM_SHARED_DATA may name a folder")

    return find
