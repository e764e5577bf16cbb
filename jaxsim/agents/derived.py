"""Speeds from places, where the reported speeds are wrong.

A place changes by its velocity times the length of a tick, under any forces, and an angle by its
rate. Where reports contradict this and what follows from places obeys the physics at least as well,
it replaces the reported speeds. The last report but one is then exact, and one tick late.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents import pushes, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import DT, Sphere, Vector

CONTRADICTION = 5e-3  # m/s and rad/s
FEWEST = 2  # ticks with a contradiction
LIMITS = (1.02 * pushes.NOMINAL.force, 2e-3)
"""N and rad/s, root mean squares of the force on the cart, and of the turn of the pole that no
force explains, up to which speeds from places obey the physics."""
SLACK = 1.05  # factor by which they may exceed those of the reported speeds


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SpeedEvidence:
    """Evidence of an episode about reported speeds; arrays (2,) are of the cart and of the pole."""

    reports: jax.Array  # () int32, number so far
    older: Sighting  # the last report but one
    derived: Sighting  # the same with speeds from places
    action: jax.Array  # () int32, after that report
    ticks: jax.Array  # () compared
    contradictions: jax.Array  # (2,) ticks in which reported speeds contradict places
    reported: jax.Array  # (2,) N^2 and (rad/s)^2, sums of squares as in `LIMITS`
    placed: jax.Array  # (2,) the same with speeds from places
    wrong: jax.Array  # (2,) bool, whether reported speeds are wrong

    @classmethod
    def none(cls) -> "SpeedEvidence":
        """Before any report."""
        zero, zeros, nothing = jnp.int32(0), jnp.zeros(2), Sighting.nothing()
        return cls(zero, nothing, nothing, zero, jnp.float32(0), zeros, zeros, zeros, zeros > 0)

    @property
    def late(self) -> jax.Array:
        """Whether speeds come from places, so that the state is one tick old; () bool."""
        return jnp.any(self.wrong)


class Shown(NamedTuple):
    """What an observation adds."""

    evidence: SpeedEvidence
    transition: Transition  # the last one with exact speeds
    changed: jax.Array  # () bool, whether transitions until now had wrong speeds


def follow(evidence: SpeedEvidence, transition: Transition, free: jax.Array) -> Shown:
    """Add a report.

    Args:
      evidence: so far.
      transition: to the report.
      free: () bool, whether nothing has touched cart and pole so far.
    """
    before = transition.before
    derived = _derived(evidence.older, before, transition.after)
    moved = [
        jnp.stack([jnp.asarray(c) for c in (s.vx, s.vy, s.spin.x, s.spin.y)]).reshape(2, 2)
        for s in (before, derived)
    ]
    # Late sensors and those that drop a quantity report no motion at all.
    off = jnp.max(jnp.abs(moved[0] - moved[1]), axis=1) > CONTRADICTION
    off = off & jnp.any(moved[1] != 0, axis=1)
    first, second = evidence.reports > 0, evidence.reports > 1
    reported, placed = (
        jnp.where(free & second, _squares(a, b), 0.0)
        for a, b in ((evidence.older, before), (evidence.derived, derived))
    )
    grown = replace(
        evidence,
        reports=evidence.reports + 1,
        older=before,
        derived=derived,
        action=transition.action,
        ticks=evidence.ticks + (free & first),
        contradictions=evidence.contradictions + (off & free & first),
        reported=evidence.reported + reported,
        placed=evidence.placed + placed,
    )
    wrong = jnp.where(free, _wrong(grown), evidence.wrong)
    grown = replace(grown, wrong=wrong)
    exact = Transition(
        _chosen(wrong, evidence.older, evidence.derived),
        evidence.action,
        _chosen(wrong, before, derived),
        jnp.asarray(False),
    )
    latest = jax.tree.map(lambda a, b: jnp.where(grown.late, a, b), exact, transition)
    return Shown(grown, latest, jnp.any(wrong != evidence.wrong))


def _wrong(evidence: SpeedEvidence) -> jax.Array:
    """Whether reported speeds are wrong and those from places are not, (2,) bool."""
    often = evidence.contradictions >= jnp.maximum(0.5 * evidence.ticks, FEWEST)
    ticks = jnp.maximum(evidence.ticks - 1, 1)
    limits = jnp.square(jnp.array(LIMITS)) * ticks
    return often & (evidence.placed <= jnp.maximum(limits, SLACK**2 * evidence.reported))


def _squares(a: Sighting, b: Sighting) -> jax.Array:
    """Squares of the force between two reports, N^2, and of the unexplained turn, (rad/s)^2."""
    force, turn = pushes.force_between(a, b)
    return jnp.stack([force @ force, turn * turn])


def _derived(older: Sighting, report: Sighting, newer: Sighting) -> Sighting:
    """A report with speeds from places; those of cart and pole are reported one tick late."""
    vx, vy = (
        (b - a) / DT
        for a, b in ((getattr(s.reported, axis) for s in (report, newer)) for axis in "xy")
    )
    both = report.block.alive & older.block.alive
    v = geo.scale(geo.sub(report.block.p, older.block.p), 1 / DT)
    v = Vector(*(jnp.where(both, a, b) for a, b in zip(v, report.block.v, strict=True)))
    block = Sphere(report.block.p, v, report.block.alive)
    spin = sight.rate_between(report.reported, newer.reported)
    return replace(report, vx=vx, vy=vy, spin=spin, block=block)


def _chosen(wrong: jax.Array, report: Sighting, derived: Sighting) -> Sighting:
    """A report with those speeds replaced that are wrong."""
    cart, pole = wrong[0], wrong[1]
    spin, v = (
        Vector(*(jnp.where(use, a, b) for a, b in zip(x, y, strict=True)))
        for use, x, y in (
            (pole, derived.spin, report.spin),
            (cart, derived.block.v, report.block.v),
        )
    )
    vx, vy = jnp.where(cart, derived.vx, report.vx), jnp.where(cart, derived.vy, report.vy)
    return replace(report, vx=vx, vy=vy, spin=spin, block=replace(report.block, v=v))
