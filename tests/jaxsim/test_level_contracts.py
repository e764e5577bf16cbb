"""The property kit over every level of every registered environment, compiled as for users.

Compiled in a hurry, lanes would be rounded by the size of the batch.
"""

from functools import cache

import pytest

import jaxsim
from benchmarks import catalogue
from jaxsim.testing import Programs, check_env
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, SAME_START
from jaxsim.worlds.cartpole3d.types import UNROLLED

pytestmark = [pytest.mark.optimised, pytest.mark.slow, pytest.mark.long]

CROWDED = "CartPole3D 208 "
"""Its program, of stacked slots, takes minutes to compile; `test_crowd.py` checks such slots."""


@cache
def checked(crowded):
    """Parameters and shared programs by case, of level 208 or of all other levels."""
    by_program, cases = {}, {}
    for name, env_id, values in catalogue.cases():
        if name in one_difficulty_each() and name.startswith(CROWDED) == crowded:
            catalogue.add_to(by_program, name, *jaxsim.make(env_id, values))
    for group in by_program.values():
        # Without compilation, the loops over contacts of stacked slots take minutes.
        uncompiled = getattr(group.env.config, "max_blocks", 0) <= UNROLLED
        programs = Programs(group.env, uncompiled=uncompiled)
        cases |= {name: (programs, params) for name, params in group.params.items()}
    return cases


@cache
def one_difficulty_each():
    """Cases of the catalogue: of each level one difficulty, in turn; difficulties are numbers."""
    by_level = {}
    for name, *_ in catalogue.cases():
        level, _, difficulty = name.rpartition(" ")
        by_level.setdefault(level if difficulty in DIFFICULTIES else name, []).append(name)
    return [cases[i % len(cases)] for i, cases in enumerate(by_level.values())]


def marked(name):
    return pytest.param(name, marks=[pytest.mark.nightly] * name.startswith(CROWDED))


@pytest.mark.parametrize("name", [marked(name) for name in one_difficulty_each()])
def test_every_level_of_every_environment_keeps_the_contract(name):
    programs, params = checked(name.startswith(CROWDED))[name]
    one_start = f" {SAME_START} " in name
    check_env(programs.env, params, programs=programs, one_start=one_start)
