"""What the registry knows of an environment: its name, parameters and factory."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxsim.env import Env
from jaxsim.parameters import Parameter, Values
from jaxsim.pytrees import Params

VERSIONED = re.compile(r"(?P<task>[A-Za-z][A-Za-z0-9]*)-v(?P<version>[0-9]+)")

GYMNAX = "gymnax/"
"""Prefix of tasks that are environments of gymnax."""


@dataclass(frozen=True)
class EnvSpec:
    """A registered environment.

    Attributes:
      env_id: versioned name, "CartPole3D-v0"; the version rises when behaviour changes. Of gymnax,
        its name there with "gymnax/" in front.
      factory: (values by parameter path, keyword options) -> (env, params).
      parameters: what a user may set, by path.
      fill: completes values by path, with defaults that depend on other values.
      check: raises `ValueError` for values that contradict one another.
      limits: paths of parameters that limit, score or picture episodes and change nothing in the
        world.
      expand: replaces a value that stands for several parameters, as a novelty, by these.
    """

    env_id: str
    factory: Callable[..., tuple[Env, Params]]
    parameters: Mapping[str, Parameter]
    fill: Callable[[Values], Values]
    check: Callable[[Values], None]
    limits: frozenset[str] = frozenset()
    expand: Callable[[Values], dict[str, Any]] = dict

    @property
    def task(self) -> str:
        """Name without the version, as syllabi use it."""
        match = VERSIONED.fullmatch(self.env_id)
        return match["task"] if match else self.env_id
