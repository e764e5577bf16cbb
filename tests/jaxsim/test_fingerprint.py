"""Fingerprints: equal for values that are built alike, different where behaviour differs."""

import functools
import subprocess
import sys
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxsim
from jaxsim import agents
from jaxsim.fingerprint import Undescribable, fingerprint

PRINTED = """
import sys
import jaxsim
from jaxsim import agents
from jaxsim.fingerprint import fingerprint
for name in sys.argv[1:]:
    print(fingerprint((agents.get(name), jaxsim.make("CartPole3D-v0", level=201))))
"""
NAMES = ("pd", "random", "pd+residual", "mpc", "wow")


def test_it_is_the_same_in_another_process():
    command = [sys.executable, "-c", PRINTED, *NAMES]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    world = jaxsim.make("CartPole3D-v0", level=201)
    assert printed == [fingerprint((agents.get(name), world)) for name in NAMES]
    assert len(set(printed)) == len(NAMES)


VALUES = [
    None,
    False,
    0,
    0.0,
    -0.0,
    1,
    1.0,
    "1",
    b"1",
    (1,),
    [1],
    {1: 1},
    {1},
    (1, (2, 3)),
    ((1, 2), 3),
    (1, 2, 3),
    ("ab", "c"),
    ("a", "bc"),
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    np.float32(1),
    np.float64(1),
    np.int32(1),
    np.zeros(2),
    np.zeros((1, 2)),
    np.zeros(2, np.float32),
    np.dtype("float32"),
    int,
    float,
    optax.adam,
    jnp.sin,
    jax.nn.relu,
    jax.random.key(0),
    jax.random.key(1),
]


def test_values_that_differ_have_other_fingerprints():
    marks = list(map(fingerprint, VALUES))
    assert len(set(marks)) == len(VALUES)
    assert marks == list(map(fingerprint, VALUES))


def test_a_number_is_read_to_its_last_bit():
    assert fingerprint(0.1) != fingerprint(np.nextafter(0.1, 1).item())
    assert fingerprint(float("nan")) == fingerprint(float("nan"))


def test_the_type_that_an_array_takes_from_others_counts():
    weak = jnp.asarray(1.0)
    assert weak.weak_type
    assert fingerprint(weak) != fingerprint(weak.astype(jnp.float32))


def test_the_device_of_an_array_does_not_matter():
    assert fingerprint(jnp.arange(3)) == fingerprint(np.arange(3, dtype=np.int32))


def of_package(function):
    """A function as if it were defined in the package."""
    function.__module__ = "jaxsim.made_up"
    return function


def scaled(by):
    return of_package(lambda x: by * x)


def test_a_function_is_its_place_and_what_it_closes_over():
    assert fingerprint(scaled(2.0)) == fingerprint(scaled(2.0))
    assert fingerprint(scaled(2.0)) != fingerprint(scaled(3.0))
    assert fingerprint(scaled(np.zeros(2))) != fingerprint(scaled(np.ones(2)))
    one, two = of_package(lambda x: x + 1), of_package(lambda x: x + 2)
    assert fingerprint(one) != fingerprint(two)
    # fmt: off
    pairs = [
        (lambda x: x + 1, lambda x: x - 1),
        (lambda x: jnp.sin(x), lambda x: jnp.cos(x)),
        (lambda x: [x + y for y in (1, 2)], lambda x: [x - y for y in (1, 2)]),
    ]
    # fmt: on
    for pair in pairs:
        assert len({fingerprint(of_package(function)) for function in pair}) == 2


def test_defaults_and_bound_arguments_count():
    def once(x, by=1, *, more=2):
        return x * by + more

    def again(x, by=1, *, more=2):
        return x * by + more

    again.__code__ = once.__code__
    base = fingerprint(of_package(once))
    again.__defaults__, again.__kwdefaults__ = (2,), {"more": 2}
    again.__qualname__ = once.__qualname__
    assert fingerprint(of_package(again)) != base
    again.__defaults__, again.__kwdefaults__ = (1,), {"more": 3}
    assert fingerprint(of_package(again)) != base
    again.__kwdefaults__ = {"more": 2}
    assert fingerprint(of_package(again)) == base
    marks = [fingerprint(functools.partial(once, **bound)) for bound in ({}, {"by": 1}, {"by": 2})]
    assert len({*marks, base}) == 4


def test_a_function_under_jit_is_described():
    assert fingerprint(jax.jit(scaled(2.0))) != fingerprint(jax.jit(scaled(3.0)))
    assert fingerprint(jax.jit(scaled(2.0))) == fingerprint(jax.jit(scaled(2.0)))


def test_a_transformation_of_optax_is_its_numbers():
    assert fingerprint(optax.adam(0.1)) == fingerprint(optax.adam(0.1))
    assert fingerprint(optax.adam(0.1)) != fingerprint(optax.adam(0.2))


@pytest.mark.parametrize("name", ["name", "costly", "faults", "init"])
def test_each_field_of_an_agent_counts(name):
    agent = agents.get("pd")
    changed = {"name": "dp", "costly": True, "faults": ("a",), "init": agents.get("wow").init}
    assert fingerprint(replace(agent, **{name: changed[name]})) != fingerprint(agent)


@dataclass(frozen=True)
class OfTheUser:
    number: int = 0


def test_what_is_defined_elsewhere_has_none():
    def defined_here(x):
        return x

    elsewhere = (defined_here, OfTheUser, OfTheUser(), scaled(defined_here), [OfTheUser()])
    for value in (*elsewhere, iter(())):
        with pytest.raises(Undescribable):
            fingerprint(value)
    with pytest.raises(Undescribable, match="array of objects"):
        fingerprint(np.array([None]))
    with pytest.raises(Undescribable, match="trace"):
        jax.jit(fingerprint)(1)


def test_an_object_that_holds_itself_ends():
    loop: list[object] = [1]
    loop.append(loop)
    other: list[object] = [1]
    other.append([1])
    assert fingerprint(loop) != fingerprint(other)


def test_equal_parts_may_be_one_object_or_two():
    """Constants of a module are shared in another way after it was read from its cache."""
    part = (1, 2)
    copy = (*part,)
    assert part is not copy
    assert fingerprint((part, part)) == fingerprint((part, copy))
