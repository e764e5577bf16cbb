"""Programs of tests are compiled with other options, which reach XLA."""

import os

import jax
import pytest
from jax._src import compiler

from tests import compiling


def options():
    """Options that a compilation gets besides those of its caller."""
    made = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    return dict(made.env_option_overrides)


def test_a_module_without_a_mark_compiles_in_a_hurry(monkeypatch):
    assert options() == compiling.HURRIED
    assert "--xla_cpu_use_fusion_emitters=false" in os.environ["XLA_FLAGS"]
    monkeypatch.setattr(compiling, "HURRIED", {"xla_no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        jax.jit(lambda x: x + 1).lower(1.0).compile()


def test_a_module_with_the_mark_compiles_as_users_do(monkeypatch):
    before = os.environ["XLA_FLAGS"]
    compiled = jax.jit(lambda x: x * 3)
    compiled(1.0)
    compiling.hurry(monkeypatch, wanted=False)
    try:
        assert options() == {} and os.environ["XLA_FLAGS"] == before
        assert not compiled._cache_size()  # what was compiled otherwise is forgotten
    finally:
        compiling.hurry(monkeypatch, wanted=True)


def test_options_of_a_caller_come_first():
    given = {"xla_backend_optimization_level": 2}
    made = compiler.get_compile_options(1, 1, env_options_overrides=given)
    assert dict(made.env_option_overrides) == compiling.HURRIED | given


def test_a_process_takes_the_options_from_its_environment():
    wanted = {"xla_a": True, "xla_b": 0, "xla_c": "one,two"}
    assert compiling.flags(wanted) == "--xla_a=true --xla_b=0 --xla_c=one,two"
