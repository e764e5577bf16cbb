"""Codes of the states of an evaluation, and what an agent has to do in each."""

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """Replies to the request for the state."""

    UNKNOWN = 0
    MAIN_MENU = 1
    EPISODE_MENU = 2
    LEVEL_SELECTION = 3
    LOADING = 4
    PLAYING = 5
    WON = 6
    LOST = 7
    NEWTESTSET = 8
    NEWTRAININGSET = 9
    RESUMETRAINING = 10
    NEWTRIAL = 11
    REQUESTNOVELTYLIKELIHOOD = 12
    EVALUATION_TERMINATED = 13


# Plain integers for compiled code.
MAIN_MENU: Final = int(State.MAIN_MENU)
PLAYING: Final = int(State.PLAYING)
WON: Final = int(State.WON)
LOST: Final = int(State.LOST)
NEW_TEST_SET: Final = int(State.NEWTESTSET)
NEW_TRAINING_SET: Final = int(State.NEWTRAININGSET)
RESUME_TRAINING: Final = int(State.RESUMETRAINING)
NEW_TRIAL: Final = int(State.NEWTRIAL)
REQUEST_NOVELTY_LIKELIHOOD: Final = int(State.REQUESTNOVELTYLIKELIHOOD)
EVALUATION_TERMINATED: Final = int(State.EVALUATION_TERMINATED)

DUTIES: Final[dict[State, str]] = {
    State.UNKNOWN: "never sent",
    State.MAIN_MENU: "load a level",
    State.EPISODE_MENU: "never sent",
    State.LEVEL_SELECTION: "never sent",
    State.LOADING: "never sent: a level is loaded before the reply",
    State.PLAYING: "act",
    State.WON: "load a level",
    State.LOST: "load a level",
    State.NEWTESTSET: "stop learning, keep a copy of what was learned, then 68",
    State.NEWTRAININGSET: "back up, forget, begin anew, then 68",
    State.RESUMETRAINING: "restore what was learned before the test, learn again, then 68",
    State.NEWTRIAL: "back up, forget, expect nothing of the next set, then 68",
    State.REQUESTNOVELTYLIKELIHOOD: "report the likelihood of novelty, 66",
    State.EVALUATION_TERMINATED: "back up and exit",
}
