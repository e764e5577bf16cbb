"""Play a track with an agent in this process."""

from collections.abc import Callable

from evaluation.clock import Clock
from evaluation.gvgai.observation import Form
from evaluation.gvgai.phases import Call
from evaluation.gvgai.player import TimedAgent
from evaluation.gvgai.results import Announcer
from evaluation.gvgai.track import Track
from evaluation.gvgai.trial import TrackLifetime, check, warm_up


def run(
    track: Track,
    make: Callable[..., object],
    clock: Clock,
    announcer: Announcer | None = None,
    *,
    seed: int = 0,
    lifetime: int = 0,
    form: Form = "JSON",
) -> TrackLifetime:
    """Play a track with an agent, with its limits.

    A method is measured when it returns, and never interrupted; a server hangs up on a client whose
    agent does not return (`evaluation.gvgai.server`).

    Args:
      track: levels and rules.
      make: the agent's class, or a function that makes one.
      clock: measures the agent.
      announcer: called with results and phases.
      seed: root of all randomness, from 0 to 2^32 - 1.
      lifetime: number of the lifetime.
      form: of observations.

    Returns:
      The trial at its end; `trial.log.records()` are the records of its levels.

    Raises:
      ValueError: a seed or a number of lifetime out of bounds.
    """
    check(track, seed, lifetime)
    warm_up(track)
    name = getattr(make, "__name__", type(make).__name__)
    trial = TrackLifetime(
        track, clock, announcer, seed=seed, lifetime=lifetime, agent=name, form=form
    )
    player = TimedAgent(make, clock, track.rules)
    while trial.waiting:
        sso = trial.observation()
        ask = {
            Call.START: player.start,
            Call.INIT: player.init,
            Call.ACT: player.act,
            Call.RESULT: player.result,
        }[trial.call]
        trial.reply(ask(sso), form, seconds=player.seconds, error=player.error)
    return trial
