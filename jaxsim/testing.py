"""A kit of properties that every environment must have.

    from jaxsim.testing import Programs, check_env
    check_env(*jaxsim.make("CartPole3D-v0"))

It checks what `jaxsim.env` promises, on a batch whose lanes have ten different physics. Most of its
time goes into compiling; share a `Programs` to check many parameters of one environment.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Leaf, Params, State, Tree

VARIANTS = 10  # different params in one batch
SPREAD = 0.02  # every float parameter is scaled by 1 - this to 1 + this
ALIGNED = 64  # batches of multiples of this many lanes agree bit for bit
LEVEL_NUMBER = "novelty_level"  # a parameter that is a name and not a quantity
SPOILT = (np.nan, np.inf, -np.inf)


class _Counted:
    """A compiled function that counts how often it is traced for each shape of its keys."""

    def __init__(self, function: Callable[..., Tree]) -> None:
        self.traces: Counter[tuple[int, ...]] = Counter()

        def counted(*args: Tree) -> Tree:
            self.traces[args[0].shape] += 1
            return function(*args)

        self._compiled = jax.jit(counted)

    def __call__(self, *args: Tree) -> Tree:
        return self._compiled(*args)


class Programs:
    """The compiled functions of one environment, to be shared by several checks of it.

    Args:
      env: an environment, see `jaxsim.env.Env`.
      uncompiled: whether a step without compilation is checked as well, which can take minutes
        where a step has long loops.
    """

    def __init__(self, env: Env, *, uncompiled: bool = True) -> None:
        self.env, self.uncompiled = env, uncompiled
        self.reset, self.step = _Counted(env.reset), _Counted(env.step)
        self.start, self.observe = jax.jit(env.start), jax.jit(env.observe)
        self.vmapped = jax.jit(jax.vmap(env.step))
        self.other_sizes = jax.jit(env.step)
        self.fresh = True  # properties that hold for all parameters are still to be checked


class _Step(NamedTuple):
    """One step of the batch, recorded to be repeated in other ways."""

    keys: jax.Array
    state: State
    action: jax.Array
    result: Tree  # all that `step` returned


def check_env(
    env: Env,
    params: Params,
    *,
    key: jax.Array | None = None,
    lanes: int = 64,
    steps: int = 30,
    one_start: bool = False,
    programs: Programs | None = None,
) -> None:
    """Raise `AssertionError`, with a sentence that says what is wrong, unless `env` is sound.

    Args:
      env: an environment, see `jaxsim.env.Env`.
      params: its parameters, scalar leaves.
      key: () typed key that decides starts and actions; `jax.random.key(0)` if None.
      lanes: size of the batch, more than 10; bits are compared with a larger batch if it is a
        multiple of 64.
      steps: steps to play; more, up to `env.max_steps`, until an episode has ended.
      one_start: whether these parameters are meant to start every episode alike, for any key.
      programs: made from an equal environment, to compile nothing anew for other parameters. Two
        properties that hold for all parameters or for none are checked the first time only: that
        keys are typed, and that a step without compilation is the same.

    Raises:
      AssertionError: the environment breaks its contract.
      ValueError: too few lanes, or programs of another environment.

    Results of differently compiled programs are compared to the square root of the type's
    rounding, relative or absolute: programs may round differently, and contacts amplify that.
    """
    check_whole("lanes", lanes, VARIANTS + 1)
    programs = programs or Programs(env)
    if programs.env != env:
        raise ValueError("programs are of another environment; make them from this one")
    key = jax.random.key(0) if key is None else key
    if programs.fresh:
        _check_keys_are_typed(env, key, params)
    mixed = _mix(params, lanes)
    _check_dt(env, mixed, lanes)
    keys = jax.random.split(key, lanes)
    first = programs.reset(keys, mixed)
    history = _play(programs, key, first[1], mixed, steps)
    _check_types(first, history)
    _check_finite(first, history)
    if one_start:
        _check_one_start(programs, keys, mixed, first)
    else:
        _check_keys_decide(programs, keys, mixed, first, history)
    _check_start(programs, keys, mixed, first)
    _check_repeats(programs, mixed, history)
    _check_traces(programs, keys, mixed, history)
    _check_ends(history)
    if hasattr(env, "carried"):
        _check_carried(env, history)
    _check_other_ways(programs, mixed, history)
    _check_spoilt(programs, mixed, history)
    if lanes % ALIGNED == 0:
        _check_company(programs, mixed, history)
    programs.fresh = False


# --- playing ----------------------------------------------------------------------------------


def _mix(params: Params, lanes: int) -> Params:
    """Parameters by lane: every float but a level's number scaled by one of `VARIANTS` factors."""
    factor = np.linspace(1 - SPREAD, 1 + SPREAD, VARIANTS)[np.arange(lanes) % VARIANTS]

    def by_lane(path: tuple[object, ...], leaf: Leaf) -> jax.Array:
        leaf = jnp.asarray(leaf)
        is_name = LEVEL_NUMBER in jax.tree_util.keystr(path)
        if is_name or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.broadcast_to(leaf, (lanes,))
        return leaf * jnp.asarray(factor, leaf.dtype)

    return jax.tree_util.tree_map_with_path(by_lane, params)


def _play(
    programs: Programs, key: jax.Array, state: State, params: Params, steps: int
) -> list[_Step]:
    """Play random actions until `steps` are over and an episode has ended."""
    env = programs.env
    history: list[_Step] = []
    while len(history) < max(steps, 2) or (
        len(history) < env.max_steps and not _is_over(history[-1].result).any()
    ):
        chance = jax.random.fold_in(key, len(history) + 1)
        lanes = len(jax.tree.leaves(params)[0])
        keys = jax.random.split(chance, lanes)
        action = jax.random.randint(chance, (lanes,), 0, env.num_actions)
        result = programs.step(keys, state, action, params)
        history.append(_Step(keys, state, action, result))
        state = result[1]
    return history


def _is_over(result: Tree) -> np.ndarray:
    _, _, _, terminated, truncated, _ = result
    return np.asarray(terminated | truncated)


# --- comparing --------------------------------------------------------------------------------


def _require(condition: object, sentence: str) -> None:
    if not bool(condition):
        raise AssertionError(sentence)


def _named(tree: Tree) -> list[tuple[str, Leaf]]:
    """Leaves with readable paths."""
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]


def _equal(a: Tree, b: Tree) -> bool:
    """Whether two trees hold the same bits."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(
        np.array_equal(np.asarray(x), np.asarray(y), equal_nan=_is_float(x)) for x, y in pairs
    )


def _is_float(leaf: Leaf) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating))


def _check_close(ours: Tree, expected: Tree, what: str) -> None:
    """Compare two trees to the square root of the rounding; whole numbers exactly."""
    _check_same_tree(ours, expected, what)
    for (path, a), (_, b) in zip(_named(ours), _named(expected), strict=True):
        if not _is_float(a):
            _require(np.array_equal(a, b), f"{what}: {path} differs")
            continue
        tolerance = float(jnp.finfo(jnp.result_type(a)).eps) ** 0.5
        error = np.abs(np.asarray(a) - np.asarray(b)) / np.maximum(1.0, np.abs(np.asarray(b)))
        worst = float(np.max(error, initial=0.0))
        _require(worst <= tolerance, f"{what}: {path} differs by {worst:.2g}")


def _check_same_tree(a: Tree, b: Tree, what: str) -> None:
    """Compare structure, shapes and types."""
    shapes: list[PyTreeDef] = [jax.tree.structure(tree) for tree in (a, b)]
    _require(shapes[0] == shapes[1], f"{what}: the trees differ, {shapes[0]} and {shapes[1]}")
    for (path, x), (_, y) in zip(_named(a), _named(b), strict=True):
        kinds = [(jnp.shape(leaf), str(jnp.result_type(leaf))) for leaf in (x, y)]
        _require(kinds[0] == kinds[1], f"{what}: {path} is {kinds[0]} and {kinds[1]}")


def _lane(tree: Tree, index: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[index], jax.device_get(tree))


# --- the properties ---------------------------------------------------------------------------


def _check_keys_are_typed(env: Env, key: jax.Array, params: Params) -> None:
    raw = jnp.zeros(2, jnp.uint32)
    state = jax.eval_shape(env.reset, key, params)[1]
    action = jax.ShapeDtypeStruct((), jnp.int32)
    for name, function, rest in (
        ("reset", env.reset, (params,)),
        ("step", env.step, (state, action, params)),
    ):
        try:
            jax.eval_shape(function, raw, *rest)
        except TypeError:
            continue
        raise AssertionError(f"{name} accepts a raw uint32 key; it must raise TypeError")


def _check_dt(env: Env, params: Params, lanes: int) -> None:
    dt = np.asarray(env.dt(params))
    _require(dt.shape in ((), (lanes,)), f"dt has shape {dt.shape}, not () or ({lanes},)")
    _require(np.all(np.isfinite(dt) & (dt > 0)), f"dt is {dt.min()}; it must be above 0")


def _check_traces(
    programs: Programs, keys: jax.Array, params: Params, history: list[_Step]
) -> None:
    """Call the compiled functions with other parameters and states, and count traces."""
    other = jax.tree.map(lambda leaf: jnp.roll(leaf, 1), params)
    programs.reset(keys, other)
    last = history[-1]
    programs.step(last.keys, last.result[1], last.action, other)
    for name, function in (("reset", programs.reset), ("step", programs.step)):
        traces = function.traces[keys.shape]
        _require(
            traces == 1,
            f"{name} was traced {traces} times for batches that differ in numbers only",
        )


def _check_types(first: Tree, history: list[_Step]) -> None:
    lanes = np.shape(history[0].action)
    for one in (history[0], history[-1]):
        observation, state, reward, terminated, truncated, info = one.result
        _check_same_tree(observation, first[0], "observations of step and reset")
        _check_same_tree(state, first[1], "states of step and reset")
        for name in ("performance", "nonfinite"):
            _require(name in info, f"info has no {name!r}")
        _require(info["nonfinite"].dtype == bool, "info['nonfinite'] is not bool")
        _require(_is_float(reward), f"the reward is {reward.dtype}, not a floating type")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            _require(flag.dtype == bool, f"{name} is {flag.dtype}, not bool")
        for path, leaf in _named((reward, terminated, truncated, info)):
            _require(leaf.shape == lanes, f"{path} of step has shape {leaf.shape}, not {lanes}")


def _check_finite(first: Tree, history: list[_Step]) -> None:
    for number, result in enumerate([first, *(one.result for one in history)]):
        for path, leaf in _named(result):
            if _is_float(leaf):
                _require(np.isfinite(leaf).all(), f"{path} is not finite after {number} steps")
    for one in history:
        info = one.result[-1]
        share = np.asarray(info["performance"])
        _require(np.all((share >= 0) & (share <= 1)), "the performance leaves [0, 1]")
        _require(not np.any(info["nonfinite"]), "info['nonfinite'] is set, yet all is finite")


def _other_starts(programs: Programs, keys: jax.Array, params: Params, first: Tree) -> Tree:
    """Result of `reset` for other keys, after a check that equal keys give equal results."""
    _require(_equal(first, programs.reset(keys, params)), "the same keys give another start")
    return programs.reset(jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys), params)


def _check_keys_decide(
    programs: Programs, keys: jax.Array, params: Params, first: Tree, history: list[_Step]
) -> None:
    """Other keys give other states, and other observations, if not at once.

    Sensors may be too coarse to tell two starts apart at first.
    """
    ignored = "reset ignores its key: "
    observation, state = _other_starts(programs, keys, params, first)
    _require(not _equal(first[1], state), ignored + "other keys, same start")
    row = [_lane(first[1], i) for i in (0, VARIANTS)]
    _require(not _equal(*row), ignored + "two lanes with one physics start alike")
    if not _equal(first[0], observation):
        return
    for one in history:
        observation, state, *_ = programs.step(one.keys, state, one.action, params)
        if not _equal(one.result[0], observation):
            return
    raise AssertionError(ignored + "other keys are never seen to make a difference")


def _check_one_start(programs: Programs, keys: jax.Array, params: Params, first: Tree) -> None:
    other = _other_starts(programs, keys, params, first)
    _require(_equal(first, other), "one_start is set, but other keys give another start")
    row = [_lane(first, i) for i in (0, VARIANTS)]
    _require(_equal(*row), "one_start is set, but two lanes with one physics start differently")


def _check_start(programs: Programs, keys: jax.Array, params: Params, first: Tree) -> None:
    """`reset` is `start` and one step whose action is ignored."""
    start = programs.start(keys, params)
    _check_same_tree(start, first[1], "states of start and reset")
    for action in (0, programs.env.num_actions - 1):
        actions = jnp.full(len(keys), action, jnp.int32)
        observation, state, *_ = programs.step(keys, start, actions, params)
        what = f"reset, and start with a first step of action {action}"
        _check_close((observation, state), first, what)
    _check_close(programs.observe(first[1]), first[0], "observe of the state of reset")


def _check_repeats(programs: Programs, params: Params, history: list[_Step]) -> None:
    for number, one in enumerate(history[:3]):
        again = programs.step(one.keys, one.state, one.action, params)
        _require(_equal(one.result, again), f"step {number} taken twice gives two results")


def _check_ends(history: list[_Step]) -> None:
    """Finished episodes stay as they are."""
    _require(_is_over(history[-1].result).any(), "no episode ended within max_steps")
    for before, after in pairwise(history):
        over = _is_over(before.result)
        if not over.any():
            continue
        # As NumPy: a mask of varying size would be compiled anew each time.
        _, state, _, terminated, truncated, _ = jax.device_get(before.result)
        _, new, reward, still_terminated, still_truncated, _ = jax.device_get(after.result)
        for was, now in ((terminated, still_terminated), (truncated, still_truncated)):
            same = np.array_equal(was[over], now[over])
            _require(same, "the flags of a finished episode change")
        _require(not np.any(reward[over]), "a finished episode still gets rewards")
        for (path, x), (_, y) in zip(_named(state), _named(new), strict=True):
            same = np.array_equal(x[over], y[over])
            _require(same, f"the state of a finished episode changes: {path}")


def _check_carried(env: Any, history: list[_Step]) -> None:
    """The carried part of a running episode's state gives the same observation as the state."""
    observe = jax.jit(lambda state, length: env.observe(env.resumed(env.carried(state), length)))
    for length in {1, len(history)}:
        observation, state, *_ = history[length - 1].result
        over = _is_over(history[length - 1].result)
        again = observe(state, jnp.full(over.shape, length, jnp.int32))
        running = np.flatnonzero(~over)
        again, expected = (
            jax.tree.map(lambda leaf, at=running: leaf[at], tree) for tree in (again, observation)
        )
        _check_close(again, expected, "what is observed of a carried state")


def _check_spoilt(programs: Programs, params: Params, history: list[_Step]) -> None:
    """A non-finite number in the state is flagged and ends the episode, or vanishes.

    Each lane has it in another number of the state.
    """
    one = history[0]
    leaves, tree = jax.tree.flatten(jax.device_get(one.state))
    numbers = [
        (leaf, row)
        for leaf, values in enumerate(leaves)
        if _is_float(values)
        for row in range(values[0].size)
    ]
    lanes = len(one.action)
    paths = [path for path, _ in _named(one.state)]
    for value in SPOILT:
        for begin in range(0, len(numbers), lanes):
            spoilt = [np.array(leaf) for leaf in leaves]
            where = [""] * lanes
            for lane, (leaf, row) in enumerate(numbers[begin : begin + lanes]):
                spoilt[leaf].reshape(lanes, -1)[lane, row] = value
                where[lane] = f"{value} in {paths[leaf]} of the state"
            state = jax.tree.unflatten(tree, spoilt)
            for _ in range(2):
                result = programs.step(one.keys, state, one.action, params)
                _check_flagged(result, where)
                state = result[1]


def _check_flagged(result: Tree, where: list[str]) -> None:
    """A result that is not finite is flagged, and its episode is over."""
    over, flagged = _is_over(result), np.asarray(result[-1]["nonfinite"])
    for path, leaf in _named(result):
        if not _is_float(leaf):
            continue
        finite = np.isfinite(leaf).reshape(len(where), -1).all(axis=1)
        for lane in np.flatnonzero(~finite & ~flagged):
            _require(
                where[lane], f"a number of one lane that is not finite spoils {path} of others"
            )
            raise AssertionError(f"{where[lane]} comes out of step as {path}, without a flag")
    for lane in np.flatnonzero(flagged & ~over):
        raise AssertionError(f"{where[lane]} is flagged, but the episode continues")


def _check_other_ways(programs: Programs, params: Params, history: list[_Step]) -> None:
    """The same step by vmap, for one lane, and without compilation."""
    one = history[len(history) // 2]
    vmapped = programs.vmapped(one.keys, one.state, one.action, params)
    _check_close(vmapped, one.result, "vmap, and the batch given directly")
    for index in sorted({0, 1, len(one.action) - 1}):
        alone = (one.keys[index], *_lane((one.state, one.action, params), index))
        result = programs.other_sizes(*alone)
        _check_close(result, _lane(one.result, index), f"lane {index} alone, and in the batch")
        if index == 0 and programs.fresh and programs.uncompiled:
            with jax.disable_jit():
                plain = programs.env.step(*alone)
            _check_close(plain, result, "without jit, and with it")


def _check_company(programs: Programs, params: Params, history: list[_Step]) -> None:
    """A batch twice as large, with other lanes in its second half, gives the same bits."""

    def double(a: Tree, b: Tree) -> Tree:
        return jax.tree.map(lambda x, y: np.concatenate([x, y]), *jax.device_get((a, b)))

    lanes = len(history[0].action)
    backwards = jax.tree.map(lambda leaf: leaf[::-1], params)
    for one, other in zip(history, reversed(history), strict=True):
        mine = (one.state, one.action, params)
        theirs = (other.state, other.action, backwards)
        keys = jnp.concatenate([one.keys, other.keys])
        result = programs.other_sizes(keys, *double(mine, theirs))
        mine = jax.tree.map(lambda leaf: leaf[:lanes], jax.device_get(result))
        _require(_equal(mine, one.result), "a lane's result depends on the size of the batch")
