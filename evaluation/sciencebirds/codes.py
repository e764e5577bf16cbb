"""Codes of the states of an evaluation, and what an agent has to do in each."""

from enum import IntEnum
from typing import Final


class GameState(IntEnum):
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
MAIN_MENU: Final = int(GameState.MAIN_MENU)
PLAYING: Final = int(GameState.PLAYING)
WON: Final = int(GameState.WON)
LOST: Final = int(GameState.LOST)
NEW_TEST_SET: Final = int(GameState.NEWTESTSET)
NEW_TRAINING_SET: Final = int(GameState.NEWTRAININGSET)
RESUME_TRAINING: Final = int(GameState.RESUMETRAINING)
NEW_TRIAL: Final = int(GameState.NEWTRIAL)
REQUEST_NOVELTY_LIKELIHOOD: Final = int(GameState.REQUESTNOVELTYLIKELIHOOD)
EVALUATION_TERMINATED: Final = int(GameState.EVALUATION_TERMINATED)

DUTIES: Final[dict[GameState, str]] = {
    GameState.UNKNOWN: "never sent",
    GameState.MAIN_MENU: "load a level",
    GameState.EPISODE_MENU: "never sent",
    GameState.LEVEL_SELECTION: "never sent",
    GameState.LOADING: "never sent: a level is loaded before the reply",
    GameState.PLAYING: "act",
    GameState.WON: "load a level",
    GameState.LOST: "load a level",
    GameState.NEWTESTSET: "stop learning, keep a copy of what was learned, then 68",
    GameState.NEWTRAININGSET: "back up, forget, begin anew, then 68",
    GameState.RESUMETRAINING: "restore what was learned before the test, learn again, then 68",
    GameState.NEWTRIAL: "back up, forget, expect nothing of the next set, then 68",
    GameState.REQUESTNOVELTYLIKELIHOOD: "report the likelihood of novelty, 66",
    GameState.EVALUATION_TERMINATED: "back up and exit",
}
