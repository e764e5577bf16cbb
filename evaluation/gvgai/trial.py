"""One agent's way through a track on the server's side: messages to it, and effects of its replies.

A `TrackLifetime` neither calls an agent nor uses a socket. Its caller sends `payload` while
`waiting`, and passes the answer to `reply`.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.clock import Clock
from evaluation.gvgai import phases, protocol
from evaluation.gvgai.observation import (
    ACTIONS,
    ESCAPE,
    NIL,
    WINNERS,
    Form,
    SerializableStateObservation,
    View,
    disqualified,
    push,
    serialise,
)
from evaluation.gvgai.phases import Call, CallOutcome, Lane, Phase
from evaluation.gvgai.picture import draw
from evaluation.gvgai.results import (
    END_LINE,
    PHASES,
    START_PHASE,
    Announcer,
    LevelResult,
    final_score,
    phase_line,
)
from evaluation.gvgai.rules import SCORE_DISQUALIFIED
from evaluation.gvgai.track import TRAINING_PHASE, VALIDATION_PHASE, Track
from evaluation.session import Episode, Log, Session
from evaluation.tasks import Tasks
from jaxsim import counters, image_settings, rng
from jaxsim.embedding import Embedded
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Params
from jaxsim.worlds.cartpole3d.types import Observation


@dataclass
class _Play:
    """The level in play, or just over.

    Attributes:
      episode: of the session.
      last_action: code of the last action.
      answer: how it ended, None before its end.
      act_max_seconds: longest time for an action, s.
      error: exception of the agent that ended it.
    """

    episode: Episode
    last_action: int = NIL
    answer: CallOutcome | None = None
    act_max_seconds: float = 0.0
    error: str = ""


def check(track: Track, seed: int, lifetime: int) -> None:
    """Check what is played before anything is compiled.

    Raises:
      ValueError: a seed or a number of lifetime that is not from 0 to 2^32 - 1, or a level that
        no agent can play.
    """
    counters.root(seed)
    check_whole("lifetime", lifetime, 0, 2**32 - 1)
    _check_levels(track)


@lru_cache(maxsize=8)
def _check_levels(track: Track) -> None:
    """Refuse levels that report something else than CartPole3D does."""
    tasks = Tasks.of(track.schedule)
    for index, (task, values) in enumerate(track.schedule.variants):
        env, params = tasks.variant(index)
        start = jax.eval_shape(env.start, jax.random.key(0), params)
        if not isinstance(jax.eval_shape(env.observe, start), Observation):
            pictures = [path for path, _ in values if path.startswith(image_settings.GROUP)]
            what = f"with {pictures[0]}, task {task!r}" if pictures else f"task {task!r}"
            raise ValueError(
                f"{what} does not report what CartPole3D reports, so no observation can be made "
                f"of it; {'leave that out' if pictures else 'choose another task'}"
            )


@lru_cache(maxsize=8)
def warm_up(track: Track) -> None:
    """Compile all that a trial of the track needs, so that no agent's time is spent on it."""
    Session(track.schedule).compile()
    _advance(phases.first(), CallOutcome.GONE, phases.NO_LEVEL, False, counters.root(0), track)


class TrackLifetime:
    """One lifetime of a track.

    Args:
      track: levels and rules.
      clock: measures the time for training, which begins here.
      announcer: called with results and phases.
      seed: root of all randomness, from 0 to 2^32 - 1.
      lifetime: number of the lifetime.
      agent: name of the agent, for the records.
      form: of observations, until the agent asks for another.

    Raises:
      ValueError: numbers out of bounds, or tasks that no agent of the track can play.

    Attributes:
      log: the levels played so far, for records.
      reason: why it ended early, "" if it did not.
    """

    def __init__(
        self,
        track: Track,
        clock: Clock,
        announcer: Announcer | None = None,
        *,
        seed: int = 0,
        lifetime: int = 0,
        agent: str = "",
        form: Form = "JSON",
    ) -> None:
        _check_levels(track)
        self.track, self._clock = track, clock
        self._announcer = announcer or Announcer()
        self._lifetime = lifetime
        self._session = Session(track.schedule, seed=seed, lifetime=lifetime)
        self._variants = track.schedule.block_variants()
        self._key = rng.fold(counters.root(seed), jnp.uint32(lifetime))
        self._lane = _on_host(phases.first())
        self._form = form
        self.reason = ""
        self._play = self._open()
        self._start_time = clock.now()
        source = track.source or track.name
        origin = {"agent": agent, "seed": seed, "lifetime": lifetime}
        self.log = Log(track.name, source, origin, lifetime)

    # Messages -------------------------------------------------------------------------------------

    @property
    def call(self) -> Call:
        """The call that it waits for."""
        return Call(self._lane.call)

    @property
    def waiting(self) -> bool:
        """Whether it waits for a reply."""
        return self.call < Call.FINISH

    @property
    def elapsed(self) -> float:
        """Time since training began, s."""
        return self._clock.now() - self._start_time

    @property
    def payload(self) -> str:
        """The message to the agent: START, an observation, or FINISH."""
        if self.call == Call.START:
            return protocol.START
        return self.observation() if self.waiting else protocol.FINISH

    def limit(self) -> float:
        """Time limit of the reply that is waited for, s."""
        rules = self.track.rules
        if self.call == Call.RESULT:
            return float(rules.result_limit(self.elapsed))
        return {
            Call.START: rules.start_seconds,
            Call.INIT: rules.init_seconds,
            Call.ACT: rules.act_hard_seconds,
        }[self.call]

    def observation(self) -> SerializableStateObservation:
        """The current observation, in the form that the agent asked for last."""
        view = self.view()
        return serialise(view, self._form, None if self._form == "JSON" else draw(view))

    def view(self) -> View:
        """Data of the current observation."""
        play, episode = self._play, self._play.episode
        broken_off = play.answer in (CallOutcome.ABORT, CallOutcome.OVERSPENT)
        view = View(
            phase=self._phase_name(broken_off),
            validation=self._validation_flag(),
            score=episode.reward,
            tick=self._tick(),
            winner=_winner(episode, broken_off),
            over=episode.over,
            last_action=ACTIONS[ESCAPE if broken_off else play.last_action],
            alive=not episode.result().terminated,
            planar=isinstance(episode.env, Embedded),
            half_width=_half_width(episode.params),
            observation=episode.observation,
        )
        return disqualified(view) if self._disqualifies(play.answer) else view

    # Replies --------------------------------------------------------------------------------------

    def reply(
        self, text: str, form: Form | None = None, *, seconds: float = 0.0, error: str = ""
    ) -> None:
        """Take the reply to the call that is waited for.

        Args:
          text: the reply.
          form: of the observations to come; None for no change.
          seconds: how long it took, s, for the record.
          error: the agent's exception, for the record.

        Raises:
          RuntimeError: no reply is waited for.
        """
        if not self.waiting:
            raise RuntimeError("the trial is over; it takes no reply")
        self._form = form or self._form
        self._take(protocol.meaning(self.call, text), seconds, error)

    def hang_up(self, error: str = "") -> None:
        """End the trial of an agent that is gone; the level in play counts as broken off."""
        if self.waiting:
            self._take(protocol.Meaning(CallOutcome.GONE), 0.0, error)

    def _take(self, meaning: protocol.Meaning, seconds: float, error: str) -> None:
        """Process a reply, and advance to the next call."""
        call, answer = self.call, meaning.answer
        if call == Call.START:
            self._announce_start(answer, error)
        elif call == Call.INIT and answer != CallOutcome.DONE:
            self._finish(answer, error)
        elif call == Call.ACT:
            answer = self._play_action(meaning, seconds)
            if answer != CallOutcome.DONE:
                self._finish(answer, error)
        self._advance(answer, meaning.level)
        if self.call == Call.CLOSED:
            self.reason = _reason(call, answer) + (f" ({error})" if error else "")

    def _announce_start(self, answer: CallOutcome, error: str) -> None:
        if answer == CallOutcome.DONE:
            self._announcer.say(phase_line(Phase.FIRST))
        elif answer == CallOutcome.FAILED:
            self._announcer.result(
                LevelResult(
                    game=self.track.name,
                    lifetime=self._lifetime,
                    phase=START_PHASE,
                    level=None,
                    play=0,
                    winner=WINNERS["PLAYER_DISQ"],
                    score=SCORE_DISQUALIFIED,
                    ticks=0,
                    error=error,
                )
            )

    def _play_action(self, meaning: protocol.Meaning, seconds: float) -> CallOutcome:
        """Play an action; return the outcome for the level."""
        play = self._play
        play.act_max_seconds = max(play.act_max_seconds, seconds)
        if meaning.answer != CallOutcome.DONE:
            return meaning.answer
        planar = isinstance(play.episode.env, Embedded)
        code = push(meaning.action, planar)
        play.last_action = meaning.action if code else NIL
        play.episode.step(code)
        return CallOutcome.OVER if play.episode.over else CallOutcome.DONE

    def _finish(self, answer: CallOutcome, error: str) -> None:
        """Record and announce the end of the level in play."""
        play, episode, lane = self._play, self._play.episode, self._lane
        play.answer, play.error = answer, error
        totals = episode.result()
        out = self._disqualifies(answer)
        winner = "PLAYER_DISQ" if out else _winner(episode, answer != CallOutcome.OVER)
        code = WINNERS[winner]
        score = SCORE_DISQUALIFIED if out else final_score(code, episode.reward)
        validation = lane.phase == Phase.VALIDATION
        self.log.add(
            self._session,
            int(self._variants[lane.level]),
            totals,
            phase=VALIDATION_PHASE if validation else TRAINING_PHASE,
            mode="test" if validation else "train",
            learning=not validation,
        )
        self._announcer.result(
            LevelResult(
                game=self.track.name,
                lifetime=self._lifetime,
                phase=PHASES[Phase(lane.phase)],
                level=int(lane.level),
                play=int(lane.play),
                winner=code,
                score=score,
                ticks=totals.length,
                aborted=answer in (CallOutcome.ABORT, CallOutcome.GONE),
                overspent=answer == CallOutcome.OVERSPENT,
                act_max_ms=round(1e3 * play.act_max_seconds, 3),
                performance=totals.performance,
                complete=totals.complete,
                seconds=totals.seconds,
                error=error,
            )
        )

    def _disqualifies(self, answer: CallOutcome | None) -> bool:
        """Whether the level ended in disqualification."""
        overspent = (
            self.track.rules.on_overspent == "disqualify" and answer == CallOutcome.OVERSPENT
        )
        return answer == CallOutcome.FAILED or overspent

    def _advance(self, answer: CallOutcome, level: int) -> None:
        """Advance to the next call, and open the level that it begins."""
        before, rules = self._lane, self.track.rules
        late = bool(rules.learning_over(self.elapsed)) or before.play + 1 >= rules.most_plays
        self._lane = _advance(before, answer, level, late, self._key, self.track)
        if self._lane.play > before.play:
            if self._lane.phase != before.phase:
                self._announcer.say(phase_line(Phase(self._lane.phase)))
            self._play = self._open()
        if self.call == Call.FINISH:
            self._announcer.say(END_LINE)

    def _open(self) -> _Play:
        variant = int(self._variants[self._lane.level])
        return _Play(self._session.start(variant, int(self._lane.play)))

    # Fields of an observation ---------------------------------------------------------------------

    def _phase_name(self, broken_off: bool) -> str:
        if self.call == Call.RESULT:
            return "ABORT" if broken_off else "END"
        return "ACT" if self.call == Call.ACT else "INIT"

    def _validation_flag(self) -> bool:
        validation = bool(self._lane.phase == Phase.VALIDATION)
        if self.track.rules.original_fields:
            return validation and self.call == Call.INIT
        return validation

    def _tick(self) -> int:
        first = self._lane.play == 0
        if self.track.rules.original_fields and self.call == Call.INIT and not first:
            return -1
        return self._play.episode.length


def _reason(call: Call, answer: CallOutcome) -> str:
    """Why a trial ended early."""
    if answer == CallOutcome.GONE:
        return f"no more replies while it waited for one to {call.name}"
    return {
        Call.START: "the constructor failed or was late",
        Call.INIT: "init failed or was late",
        Call.RESULT: "result failed or was late",
    }[call]


def _winner(episode: Episode, broken_off: bool) -> str:
    """Key of `WINNERS` for the game as it stands."""
    totals = episode.result()
    if broken_off or not totals.complete:
        return "NO_WINNER"
    return "PLAYER_LOSES" if totals.terminated else "PLAYER_WINS"


def _half_width(params: Params) -> float:
    """Half of the room's or the track's width, m."""
    room = getattr(params, "room_half_width", None)
    return float(params.position_limit if room is None else room)


def _advance(
    lane: Lane, answer: CallOutcome, level: int, late: bool, key: rng.Words, track: Track
) -> Lane:
    """Advance to the next call; see `phases.advance`."""
    arguments = np.int32(answer), np.int32(level), np.bool_(late)
    rules = track.rules
    return _on_host(phases.advance(lane, *arguments, key, rules.validation_times, rules.scope))


def _on_host(lane: Lane) -> Lane:
    return Lane(*(np.int32(leaf) for leaf in jax.device_get(lane)))
