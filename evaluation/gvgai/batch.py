"""Many agents on one track in parallel: every lane has its own phase, level and clock.

In each turn the lanes that wait for `init`, for `act` and for `result` are called together, and
`evaluation.abreast` steps all of them. Lane i plays the same as a `TrackLifetime` of the same
seed and lifetime `first_lifetime` + i, tick for tick.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np

from evaluation.abreast import Abreast, Status
from evaluation.clock import Clock
from evaluation.gvgai import phases
from evaluation.gvgai.observation import ACTIONS, ESCAPE, NIL, WINNERS, push
from evaluation.gvgai.phases import Call, CallOutcome, Lane, Phase
from evaluation.gvgai.results import PHASES, LevelResult, final_score
from evaluation.gvgai.rules import SCORE_DISQUALIFIED, Rules
from evaluation.gvgai.track import Track
from jaxsim import rng
from jaxsim.embedding import Embedded
from jaxsim.env import Env
from jaxsim.pytrees import Leaf, Observation

Charge = Literal["whole", "share"]


class Clocks(Protocol):
    """Monotonic clocks, one a lane."""

    def now(self) -> np.ndarray:
        """Time of every lane, (L,) float64, s."""
        ...


@dataclass(frozen=True)
class SharedClock:
    """One clock for all lanes.

    Attributes:
      clock: measures time.
      lanes: number of lanes, L.
      charge: "whole" charges every lane the whole time of a call, "share" an L-th of it.
    """

    clock: Clock
    lanes: int
    charge: Charge = "whole"

    def now(self) -> np.ndarray:
        """Time of every lane, (L,) float64, s."""
        return np.full(self.lanes, self.clock.now() / (self.lanes if self.charge == "share" else 1))


class LaneViews(NamedTuple):
    """What the agents of all lanes see; leaves (L,), NumPy."""

    observation: Observation  # of the sensors, as CartPole3D's
    score: np.ndarray  # float32, sum of rewards
    tick: np.ndarray  # int32, steps played
    over: np.ndarray  # bool, the level ended by itself
    play: np.ndarray  # int32, number of the play in the lifetime
    validation: np.ndarray  # bool, the level is one of validation


class BatchAgent(Protocol):
    """Agents of all lanes; each method is called for the lanes in which `due`, (L,), is set."""

    def init(self, sight: LaneViews, due: np.ndarray) -> None:
        """Prepare for a level."""
        ...

    def act(self, sight: LaneViews, due: np.ndarray) -> np.ndarray:
        """Return codes of actions, (L,) int, as in `evaluation.gvgai.observation.ACTIONS`."""
        ...

    def result(self, sight: LaneViews, due: np.ndarray) -> np.ndarray:
        """Return training levels to play next, (L,) int."""
        ...


@partial(jax.jit, static_argnames="rules")
def _advance(
    lanes: Lane, answers: Leaf, chosen: Leaf, late: Leaf, keys: rng.Words, rules: Rules
) -> Lane:
    one = partial(phases.advance, validation_times=rules.validation_times, scope=rules.scope)
    return jax.vmap(one)(lanes, answers, chosen, late, keys)


def play_batch(
    track: Track,
    agent: BatchAgent,
    clocks: Clocks,
    *,
    lanes: int,
    seed: int = 0,
    first_lifetime: int = 0,
) -> list[list[LevelResult]]:
    """Play a track in every lane to its end.

    The limits are those of a single agent, measured by each lane's own clock. The agents exist
    already: the limit of the constructor does not apply.

    Args:
      track: levels and rules.
      agent: the agents of all lanes.
      clocks: their clocks.
      lanes: number of lanes, L.
      seed: root of all randomness, from 0 to 2^32 - 1.
      first_lifetime: number of the first lane's lifetime.

    Returns:
      The results of each lane, level by level.

    Raises:
      ValueError: numbers out of bounds, or an agent that returns another number of values.
    """
    batch = _Batch(track, clocks, lanes, seed, first_lifetime)
    while batch.waiting:
        batch.turn(agent)
    return batch.results


class _Batch:
    """All lanes, on the host between two turns."""

    def __init__(
        self, track: Track, clocks: Clocks, lanes: int, seed: int, first_lifetime: int
    ) -> None:
        self.results: list[list[LevelResult]] = [[] for _ in range(lanes)]
        self._track, self._clocks, self._lanes = track, clocks, lanes
        self._first_lifetime = first_lifetime
        self._abreast = Abreast(
            track.schedule, lanes=lanes, seed=seed, first_lifetime=first_lifetime
        )
        self._variants = track.schedule.block_variants()
        self._dt = self._abreast.tasks.dt
        self._pushes = _push_table(self._abreast.envs)
        filled = self._abreast.filled
        self._state = _on_host(phases.first((filled,)))
        self._state.call[lanes:] = Call.CLOSED
        self._act_max = np.zeros(lanes)
        self._open(np.ones(filled, bool))
        self._start = clocks.now()

    @property
    def waiting(self) -> bool:
        """Whether any lane waits for a call."""
        return bool(np.any(self._state.call < Call.FINISH))

    def turn(self, agent: BatchAgent) -> None:
        """Call the agents of all lanes, and advance the lanes."""
        state, count = self._state, self._lanes
        call, sight = state.call[:count], self._sight()
        answer = np.full(len(state.call), CallOutcome.DONE, np.int32)
        chosen = np.full(len(state.call), phases.NO_LEVEL, np.int32)
        actions = np.full(len(state.call), NIL, np.int32)
        if np.any(due := call == Call.INIT):
            answer[:count][due] = self._init(agent, sight, due)[due]
        if np.any(due := call == Call.ACT):
            codes, answers = self._act(agent, sight, due)
            actions[:count][due], answer[:count][due] = codes[due], answers[due]
        if np.any(due := call == Call.RESULT):
            levels, answers = self._result(agent, sight, due)
            chosen[:count][due], answer[:count][due] = levels[due], answers[due]
        acting = state.call == Call.ACT
        moving = acting & (answer == CallOutcome.DONE)
        if np.any(moving):
            self._abreast.step(self._pushes[self._abreast.world, actions], moving)
            over = self._abreast.status(observation=False).over
            answer = np.where(moving & over, CallOutcome.OVER, answer)
        failed = (state.call == Call.INIT) & (answer != CallOutcome.DONE)
        self._note(np.flatnonzero(failed | (acting & (answer != CallOutcome.DONE))), answer)
        self._advance(answer, chosen)

    # Calls of the agents --------------------------------------------------------------------------

    def _init(self, agent: BatchAgent, sight: LaneViews, due: np.ndarray) -> np.ndarray:
        before = self._clocks.now()
        agent.init(sight, due)
        late = self._track.rules.init_late(self._clocks.now() - before)
        return np.where(late, CallOutcome.FAILED, CallOutcome.DONE)

    def _act(
        self, agent: BatchAgent, sight: LaneViews, due: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the actions to play, and answers."""
        rules, before = self._track.rules, self._clocks.now()
        codes = self._array("act", agent.act(sight, due))
        seconds = self._clocks.now() - before
        self._act_max[due] = np.maximum(self._act_max, seconds)[due]
        answers = np.where(codes == ESCAPE, CallOutcome.ABORT, CallOutcome.DONE)
        answers = np.where(rules.act_late(seconds), CallOutcome.DONE, answers)
        answers = np.where(rules.act_overspent(seconds), CallOutcome.OVERSPENT, answers)
        valid = (codes >= 0) & (codes < len(ACTIONS)) & ~rules.act_late(seconds)
        return np.where(valid, codes, NIL), answers

    def _result(
        self, agent: BatchAgent, sight: LaneViews, due: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Levels that were chosen, and answers."""
        rules, before = self._track.rules, self._clocks.now()
        levels = self._array("result", agent.result(sight, due))
        seconds, elapsed = self._clocks.now() - before, before - self._start
        answers = np.where(
            rules.learning_over(elapsed + seconds), CallOutcome.END, CallOutcome.DONE
        )
        late = rules.result_overspent(elapsed, seconds)
        return levels, np.where(late, CallOutcome.OVERSPENT, answers)

    def _array(self, method: str, values: Any) -> np.ndarray:
        array = np.asarray(values)
        if array.shape != (self._lanes,) or not np.issubdtype(array.dtype, np.integer):
            raise ValueError(
                f"{method} of the agents returned {array.dtype} of shape {array.shape}; it must be "
                f"whole numbers of shape ({self._lanes},)"
            )
        return array

    def _sight(self) -> LaneViews:
        """Observations of all lanes."""
        game = jax.tree.map(lambda leaf: leaf[: self._lanes], self._abreast.status())
        play, phase = self._state.play[: self._lanes], self._state.phase[: self._lanes]
        return LaneViews(
            game.observation, game.score, game.tick, game.over, play, phase == Phase.VALIDATION
        )

    # Next calls -----------------------------------------------------------------------------------

    def _advance(self, answer: np.ndarray, chosen: np.ndarray) -> None:
        """Advance to the next calls, and open the levels that begin."""
        rules, before = self._track.rules, self._state
        late = before.play + 1 >= rules.most_plays
        late[: self._lanes] |= rules.learning_over(self._clocks.now() - self._start)
        self._state = _on_host(_advance(before, answer, chosen, late, self._abreast.keys, rules))
        fresh = self._state.play > before.play
        if np.any(fresh):
            self._open(fresh)
            self._act_max[fresh[: self._lanes]] = 0.0

    def _open(self, fresh: np.ndarray) -> None:
        """Open the levels that begin."""
        self._abreast.open(self._variants[self._state.level], self._state.play, fresh)

    def _note(self, lanes: np.ndarray, answer: np.ndarray) -> None:
        """Add the results of levels that have ended."""
        if not lanes.size:
            return
        game = self._abreast.status(observation=False)
        for lane in map(int, lanes):
            self.results[lane].append(self._result_of(lane, CallOutcome(answer[lane]), game))

    def _result_of(self, lane: int, answer: CallOutcome, game: Status) -> LevelResult:
        """The result of one lane's level; `game` is on the host."""
        out = self._track.rules.on_overspent == "disqualify" and answer == CallOutcome.OVERSPENT
        complete = bool(answer == CallOutcome.OVER and not game.nonfinite[lane])
        winner = WINNERS["NO_WINNER"]
        if out or answer == CallOutcome.FAILED:
            winner = WINNERS["PLAYER_DISQ"]
        elif complete:
            winner = WINNERS["PLAYER_LOSES" if game.terminated[lane] else "PLAYER_WINS"]
        score = final_score(winner, float(game.score[lane]))
        level, ticks = int(self._state.level[lane]), int(game.tick[lane])
        return LevelResult(
            game=self._track.name,
            lifetime=self._first_lifetime + lane,
            phase=PHASES[Phase(self._state.phase[lane])],
            level=level,
            play=int(self._state.play[lane]),
            winner=winner,
            score=SCORE_DISQUALIFIED if winner == WINNERS["PLAYER_DISQ"] else score,
            ticks=ticks,
            aborted=answer == CallOutcome.ABORT,
            overspent=answer == CallOutcome.OVERSPENT,
            act_max_ms=round(1e3 * float(self._act_max[lane]), 3),
            performance=float(game.performance[lane]),
            complete=complete,
            seconds=float(np.float32(ticks * self._dt[self._variants[level]])),
        )


def _push_table(envs: Sequence[Env]) -> np.ndarray:
    """Codes of pushes by world and action, (W, 7) int32."""
    codes = range(len(ACTIONS))
    rows = [[push(code, isinstance(env, Embedded)) for code in codes] for env in envs]
    return np.array(rows, np.int32)


def _on_host(lane: Lane) -> Lane:
    return Lane(*(np.array(leaf, np.int32) for leaf in jax.device_get(lane)))
