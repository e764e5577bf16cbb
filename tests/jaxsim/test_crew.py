"""Lifetimes dealt to threads: what a process keeps of it."""

import gc
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import agents, backend, rng
from jaxsim.embedding import embed
from jaxsim.lanes.crew import Crew, Spread, _uncollected, executable
from jaxsim.lanes.lists import Rounds

MAPPINGS = Path("/proc/self/maps")


def mappings():
    """Mappings of memory that this process has."""
    gc.collect()
    return MAPPINGS.read_bytes().count(b"\n")


def play(rounds, lifetimes=1, threads=1, agent=None):
    """Lengths of the episodes of lifetimes of CartPole in so many rounds, (R, P, 1)."""
    agent = agent or agents.get("random")
    env, params = jaxsim.make("CartPole-v1")
    table = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
    root, spread = rng.words(jax.random.key(0)), Spread(threads=threads)
    crew = Crew(agent, [env], [table], root, np.arange(lifetimes), spread=spread)
    one = np.ones((rounds, 1), np.int32)
    return crew.play(Rounds(np.arange(rounds)[:, None], one, 0 * one, 0 * one)).length


def test_a_run_compiles_one_program_for_all_threads():
    lengths = []
    for threads in (1, 2, 4):
        executable.cache_clear()
        lengths.append(play(1, 32, threads))
        assert executable.cache_info().misses == 1
    assert lengths[0].std() > 0
    for length in lengths[1:]:
        np.testing.assert_array_equal(length, lengths[0])


@pytest.mark.parametrize("function", ["init", "begin"])
def test_an_exception_in_a_callback_of_an_agent_is_named(function):
    def fail():
        raise KeyError("first line\nand second")

    def calls(*_):
        return jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.int32))

    plain = replace(agents.get("random"), name="late", init=lambda key: jnp.int32(0))
    agent = replace(plain, **{function: calls})
    with pytest.raises(ValueError, match=r"^a callback of agent 'late' raised KeyError: .*second"):
        play(1, agent=agent)


@pytest.mark.parametrize(
    ("values", "exact"),
    [
        ([{}], True),
        ([{"gravity": 5.0}, {}], True),
        ([{"sensors/noise_position": 0.01}], False),
        ([{"sensors/delay": 1}], False),
        ([{}, {"sensors/offset_angle": 0.01}], False),
    ],
)
def test_noise_is_estimated_only_where_sensors_are_not_exact(values, exact):
    worlds = [jaxsim.make("CartPole3D-v0", one) for one in values]
    agent, root = agents.get("pd+residual"), rng.words(jax.random.key(0))
    envs, tables = zip(*worlds, strict=True)
    crew = Crew(agent, envs, tables, root, np.arange(1))
    assert crew.agent is (agent.exact if exact else agent)
    assert Crew(agents.get("pd"), envs, tables, root, np.arange(1)).agent is agents.get("pd")


def test_in_a_world_of_two_dimensions_errors_of_the_model_count_as_noise():
    env, params = jaxsim.make("CartPole2D-v0")
    agent, root = agents.get("pd+residual"), rng.words(jax.random.key(0))
    assert Crew(agent, [embed(env)], [params], root, np.arange(1)).agent is agent


def test_cores_compile_programs_also_for_accelerators(monkeypatch):
    monkeypatch.setattr(backend, "cores", lambda: 5)
    for platform in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda platform=platform: platform)
        assert (Spread().compilers, Spread(threads=3).compilers) == (5, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="mappings of memory are counted by Linux")
def test_a_process_keeps_few_programs():
    """What it has compiled is mapped kernel by kernel, and Linux grants a process 65,530."""
    executable.cache_clear()
    before, lengths = mappings(), play(1)
    one = mappings() - before
    np.testing.assert_array_equal(play(2)[:1], lengths)
    assert mappings() - before > 1.5 * one > 0
    # As many as are kept leave room for all else, of level 200 with six times the mappings too.
    assert 6 * one * executable.cache_info().maxsize < 30_000
    executable.cache_clear()
    assert mappings() - before < 0.5 * one


@pytest.mark.parametrize("before", [True, False])
def test_a_trace_leaves_the_collection_of_garbage_as_it_was(before):
    was = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with pytest.raises(ArithmeticError), _uncollected():
            assert not gc.isenabled()
            raise ArithmeticError
        assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()
