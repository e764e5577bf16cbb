"""The order of calls and levels as a pure function of one lane, batched with `jax.vmap`.

    START -> first phase: levels 0, 1, 2 -> second: chosen levels -> validation: 3, 4 -> FINISH

A level is INIT, then ACT until it is over or broken off, then RESULT. Engines call `advance` once
for every reply: of a Python object, of a client at a socket, or a row of an array.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from evaluation.gvgai.rules import TRAINING, VALIDATION, Scope
from jaxsim import rng
from jaxsim.pytrees import Leaf

LEVEL_CHOICE = 2
"""Counter below a lifetime's key that random levels use; 0 and 1 are agents and episodes."""

NO_LEVEL = -1
"""Choice of no level."""


class Call(IntEnum):
    """The call that a lane waits for; in the last two states it waits for none."""

    START = 0
    INIT = 1
    ACT = 2
    RESULT = 3
    FINISH = 4  # it has come to its end
    CLOSED = 5  # it was ended early: FINISH is not sent


class Phase(IntEnum):
    """Part of the track that a lane is in."""

    FIRST = 0
    SECOND = 1
    VALIDATION = 2


class CallOutcome(IntEnum):
    """Outcome of the call that a lane waited for."""

    DONE = 0  # START, INIT: ready. ACT: the level continues. RESULT: a level is chosen
    FAILED = 1  # START, INIT: not ready
    OVER = 2  # ACT: the level ended by itself
    ABORT = 3  # ACT: the agent breaks the level off
    OVERSPENT = 4  # ACT, RESULT: too late
    END = 5  # RESULT: no more training
    GONE = 6  # the agent or client is gone


class Lane(NamedTuple):
    """Place of an agent in the track; leaves () or (L,), int32."""

    call: Leaf  # a Call
    phase: Leaf  # a Phase
    level: Leaf  # 0 to 4
    repetition: Leaf  # of the validation, from 0
    play: Leaf  # number of the level's play in the lifetime, from 0


def first(shape: tuple[int, ...] = ()) -> Lane:
    """Return lanes before their agents are made."""
    zero = jnp.zeros(shape, jnp.int32)
    return Lane(zero + Call.START, zero + Phase.FIRST, zero, zero, zero)


@partial(jax.jit, static_argnames=("validation_times", "scope"))
def advance(
    lane: Lane,
    answer: Leaf,
    chosen: Leaf,
    late: Leaf,
    key: rng.Words,
    validation_times: int,
    scope: Scope,
) -> Lane:
    """Advance one lane to its next call.

    Args:
      lane: leaves ().
      answer: () int, an `CallOutcome` to its call.
      chosen: () int, the level a RESULT named; any other number than 0, 1, 2 is none.
      late: () bool, whether the time for training is used up.
      key: of the lifetime; random levels are drawn from it.
      validation_times: how often the validation levels are played.
      scope: cost of an INIT that failed; see `Rules.scope`.

    Returns:
      The lane; unchanged if it waits for no call.
    """
    ready = answer == CallOutcome.DONE
    closed = lane._replace(call=jnp.int32(Call.CLOSED))
    if scope == "level":
        out = lane._replace(call=jnp.int32(Call.RESULT))
    else:
        again = _next_repetition(lane, validation_times)
        out = _if(lane.phase == Phase.VALIDATION, again, closed)
    after = {
        Call.START: _if(ready, lane._replace(call=jnp.int32(Call.INIT)), closed),
        Call.INIT: _if(ready, lane._replace(call=jnp.int32(Call.ACT)), out),
        Call.ACT: lane._replace(call=jnp.where(ready, Call.ACT, Call.RESULT).astype(jnp.int32)),
        Call.RESULT: _if(
            lane.phase == Phase.VALIDATION,
            _after_validation_level(lane, answer, validation_times),
            _after_training_level(lane, answer, chosen, late, key),
        ),
        Call.FINISH: lane,
        Call.CLOSED: lane,
    }
    waiting = lane.call < Call.FINISH
    next_lane = jax.tree.map(
        lambda *options: jnp.select(_is(lane.call, after), options), *after.values()
    )
    return _if(waiting & (answer == CallOutcome.GONE), closed, Lane(*next_lane))


def random_level(key: rng.Words, play: Leaf) -> jax.Array:
    """Draw the training level that follows a play; the bias of the remainder is below 2^-30.

    Args:
      key: of the lifetime.
      play: () int, number of the play that is over.
    """
    level = rng.bits(rng.fold(key, LEVEL_CHOICE), play) % jnp.uint32(len(TRAINING))
    return level.astype(jnp.int32)


def _after_training_level(
    lane: Lane, answer: Leaf, chosen: Leaf, late: Leaf, key: rng.Words
) -> Lane:
    """The next level of training, the first of validation, or the end."""
    valid = (chosen >= 0) & (chosen < len(TRAINING))
    choice = jnp.where(valid, chosen, random_level(key, lane.play)).astype(jnp.int32)
    unmet = (lane.phase == Phase.FIRST) & (lane.level < TRAINING[-1])
    training = _begin(
        lane,
        phase=jnp.where(unmet, Phase.FIRST, Phase.SECOND),
        level=jnp.where(unmet, lane.level + 1, choice),
    )
    validation = _begin(lane, phase=Phase.VALIDATION, level=VALIDATION[0])
    training_over = late | (answer == CallOutcome.END)
    closed = lane._replace(call=jnp.int32(Call.CLOSED))
    return _if(answer == CallOutcome.OVERSPENT, closed, _if(training_over, validation, training))


def _after_validation_level(lane: Lane, answer: Leaf, validation_times: int) -> Lane:
    """The next level; an overspent result costs the rest of the repetition."""
    last = (lane.level == VALIDATION[-1]) | (answer == CallOutcome.OVERSPENT)
    following = _begin(lane, phase=Phase.VALIDATION, level=lane.level + 1)
    return _if(last, _next_repetition(lane, validation_times), following)


def _next_repetition(lane: Lane, validation_times: int) -> Lane:
    """The first level of validation again, or the end."""
    again = _begin(lane, phase=Phase.VALIDATION, level=VALIDATION[0])
    again = again._replace(repetition=lane.repetition + 1)
    finished = lane._replace(call=jnp.int32(Call.FINISH))
    return _if(lane.repetition + 1 < validation_times, again, finished)


def _begin(lane: Lane, phase: Leaf, level: Leaf) -> Lane:
    """The next play, of a level."""
    as_int = partial(jnp.asarray, dtype=jnp.int32)
    return lane._replace(
        call=as_int(Call.INIT), phase=as_int(phase), level=as_int(level), play=lane.play + 1
    )


def _if(condition: Leaf, yes: Lane, no: Lane) -> Lane:
    return Lane(*(jnp.where(condition, a, b) for a, b in zip(yes, no, strict=True)))


def _is(call: Leaf, options: Iterable[int]) -> list[Leaf]:
    return [call == option for option in options]
