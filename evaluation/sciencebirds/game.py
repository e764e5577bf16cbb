"""The game of a level: an episode of CartPole3D that is played by the shots of the protocol.

A shot is an action. Its vector (x, y) is a push along the larger of its components:

| vector | action |
| --- | --- |
| x > 0, at least as large as y either way | 1, right |
| x < 0, at least as large as y either way | 2, left |
| y > 0, larger than x either way | 3, forward |
| y < 0, larger than x either way | 4, backward |
| x = y = 0 | 0, nothing |

A polar shot is the vector of its radius and its angle, degrees counter-clockwise from +x, rounded
to 1/1000 of the radius. Times of a shot are ignored: a push lasts one step of 0.02 s, or as many as
`--steps-per-shot` says.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.schedule import Schedule
from evaluation.sciencebirds.codec import NO_PICTURE, Picture
from evaluation.sciencebirds.codes import LOST, PLAYING, WON
from evaluation.sciencebirds.levels import LevelPath

if TYPE_CHECKING:
    from evaluation.session import EpisodeResult, Session
    from jaxsim.worlds.cartpole3d.types import Observation

POLAR_UNIT = 1000
"""Components of a polar shot are rounded to its radius divided by this."""


def action_of(x: int, y: int) -> int:
    """Action code of a shot by its vector."""
    if x == 0 and y == 0:
        return 0
    if abs(x) >= abs(y):
        return 1 if x > 0 else 2
    return 3 if y > 0 else 4


def polar_action(radius: int, angle: int) -> int:
    """Action code of a polar shot; the angle in degrees."""
    if radius == 0:
        return 0
    direction = math.radians(angle % 360 + (180 if radius < 0 else 0))
    return action_of(
        round(POLAR_UNIT * math.cos(direction)), round(POLAR_UNIT * math.sin(direction))
    )


class Counts(NamedTuple):
    """Counts of the table of results, in the words of the original.

    In CartPole a bird is a step, and the one pig is the time to survive.
    """

    birds_remaining: int
    pigs_remaining: int
    birds_at_start: int
    pigs_at_start: int


class LevelOutcome(NamedTuple):
    """Result of a level.

    Attributes:
      session: that played it.
      variant: index of its physics in the session's schedule.
      result: totals.
    """

    session: "Session"
    variant: int
    result: "EpisodeResult"


class Game(Protocol):
    """One level at a time; without one, `shoot` is never called."""

    def load(self, level: LevelPath) -> None:
        """Start a level in place of the one before."""
        ...

    def shoot(self, action: int) -> int:
        """Play an action; return PLAYING, WON or LOST."""
        ...

    def record(self, action: int, frequency: int) -> tuple[int, list[JsonMapping]]:
        """Play an action; return the status and the vector after every `frequency` steps."""
        ...

    @property
    def score(self) -> int:
        """Score of the level so far."""
        ...

    @property
    def counts(self) -> Counts:
        """Counts for the table of results."""
        ...

    def feature_vector(self) -> JsonMapping:
        """Feature vector of the level, as JSON values; {} without a level."""
        ...

    def picture(self) -> Picture:
        """Picture of the level."""
        ...

    def first_picture(self) -> Picture:
        """Picture at the start of the level."""
        ...

    def hint(self) -> JsonValue:
        """Hint on the level's novelty, as JSON values."""
        ...


class CartPoleGame:
    """Levels as episodes of a session.

    Args:
      schedule: of `document_order.schedule`, so that every level is one of its variants.
      seed: root of all randomness.
      steps_per_shot: steps that an action is held.

    Raises:
      ValueError: a seed or a number of steps out of bounds.
    """

    def __init__(self, schedule: Schedule, *, seed: int = 0, steps_per_shot: int = 1) -> None:
        from evaluation.session import Session

        if not 1 <= steps_per_shot <= 10_000:
            raise ValueError(f"steps per shot is {steps_per_shot}; it must be from 1 to 10000")
        self._session = Session(schedule, seed=seed) if schedule.blocks else None
        self._variants = {variant: index for index, variant in enumerate(schedule.variants)}
        self._steps = steps_per_shot
        self._episode: Any = None
        self._level: LevelPath | None = None
        self._first: Any = None

    def warm(self) -> None:
        """Compile the session's programs, so that no agent waits for them."""
        if self._session is not None:
            self._session.compile()

    def load(self, level: LevelPath) -> None:
        """Begin a level."""
        assert self._session is not None, "a schedule without levels has none to load"
        self._level = level
        self._episode = self._session.start(self._variants[level.variant], level.number)
        self._first = self._episode.observation

    def shoot(self, action: int) -> int:
        """Hold an action for the steps of a shot, or until the episode is over."""
        return self.record(action, 0)[0]

    def record(self, action: int, frequency: int) -> tuple[int, list[JsonMapping]]:
        """Play an action; return the status and the vector after every `frequency` steps."""
        vectors = []
        for step in range(1, self._steps + 1):
            self._episode.step(action)
            if frequency > 0 and step % frequency == 0:
                vectors.append(self.feature_vector())
            if self._episode.over:
                break
        return self._status(), vectors

    def _status(self) -> int:
        if not self._episode.over:
            return PLAYING
        result = self._episode.result()
        return WON if result.complete and not result.terminated else LOST

    def level_result(self) -> LevelOutcome:
        """Result of the level so far, for a log."""
        assert self._session is not None and self._level is not None, "no level was loaded"
        variant = self._variants[self._level.variant]
        return LevelOutcome(self._session, variant, self._episode.result())

    @property
    def score(self) -> int:
        """Steps survived."""
        return int(self._episode.length) if self._episode else 0

    @property
    def counts(self) -> Counts:
        """Steps left and whether they are still to be survived."""
        max_steps = int(self._episode.env.max_steps)
        won = self._status() == WON
        return Counts(max_steps - self.score, 0 if won else 1, max_steps, 1)

    def feature_vector(self) -> JsonMapping:
        """The observation as the feature vector of the original CartPole3D."""
        from jaxsim.worlds.cartpole3d.original.messages import feature_vector

        if self._episode is None:
            return {}
        seconds = round(float(self._episode.length * self._episode.env.dt(self._episode.params)), 6)
        return feature_vector(self._episode.observation, first=False, time_stamp=seconds)

    def picture(self) -> Picture:
        """Side and top view."""
        return NO_PICTURE if self._episode is None else self._draw(self._episode.observation)

    def first_picture(self) -> Picture:
        """Side and top view at the start of the level."""
        return NO_PICTURE if self._episode is None else self._draw(self._first)

    def _draw(self, observation: "Observation") -> Picture:
        from jaxsim import render

        scene = render.observed(observation, self._episode.params)
        pixels = render.draw(scene, render.Style(("side", "top")))
        return Picture(pixels.shape[1], pixels.shape[0], pixels.tobytes())

    def hint(self) -> JsonValue:
        """The catalogue's full hint on the level's novelty; none for the nominal world."""
        from jaxsim.worlds.cartpole3d.original.hints import hint

        if self._level is None or not self._level.novel:
            return []
        return hint(self._level.catalogue[0], 3)
