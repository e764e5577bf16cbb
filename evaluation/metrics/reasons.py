"""Why a metric of lifelong learning or of novelty is missing."""

import enum
from typing import Any, Final


class Reason(enum.IntEnum):
    """Why a number is missing. The codes are part of the result files: never renumber them."""

    NONE = 0
    BLOCK_TOO_SHORT = 1
    NON_FINITE_VALUE = 2
    OVERFLOW = 3
    NOT_A_TRAINING_BLOCK = 4
    NOT_A_TEST_BLOCK = 5
    NO_LATER_TRAINING = 6
    NOT_TRAINED_BEFORE = 7
    NEVER_RECOVERED = 8
    PARTNER_TOO_SHORT = 9
    PARTNER_NON_FINITE = 10
    PARTNER_OVERFLOW = 11
    TOO_FEW_LIFETIMES = 12
    NO_BLOCK_HAS_VALUE = 13
    EMPTY = 14
    ASLEEP = 15
    NO_TRAINING = 16
    NO_TEST = 17
    NO_EARLIER_TRAINING = 18
    TOO_FEW_RECOVERIES = 19
    NO_REFERENCE_TEST = 20
    NO_TRANSFER = 21
    ZERO_BASELINE = 22
    NO_STE = 23
    ZERO_STE = 24
    SATURATED_AT_START = 25
    NO_TASK_HAS_VALUE = 26
    OWN_TRAINING = 27
    NO_STE_CURVE = 28
    NO_VALUE_IN_FILE = 29
    # Of the reports of 2019 over blocks.
    NO_STE_SATURATION = 101
    ZERO_STE_SATURATION = 102
    TOO_MANY_TRAININGS = 103
    NEVER_TRAINED = 104
    NOTHING_TRAINED_YET = 105
    TRAINED_BEFORE = 106
    NOT_TRAINED_YET = 107
    TRAINED_LAST = 108
    NO_TEST_OF_PAIR = 109
    FIRST_TRAINING = 110
    NO_CHANGE = 111
    TRAINED_IN_PHASE = 112
    NOT_TRAINED_IN_EARLIER_PHASE = 113
    NO_STEPS = 114
    SATURATED_AT_ZERO = 115
    NO_EPISODES = 116
    NOT_RECOVERED = 117
    # Of novelty experiments.
    NO_NOVELTY = 201
    NOTHING_BEFORE = 202
    NOT_DETECTED = 203
    WINDOW_EMPTY = 204
    NO_BASELINE = 205
    NOT_PLAYED = 206
    NOT_CHARACTERISED = 207
    NOTHING_TO_NAME = 208
    NO_TRIAL_HAS_VALUE = 209
    VISIBLE = 210
    NOT_VISIBLE = 211
    NOMINAL_BLOCK = 212
    NOT_REPORTED_IN_BLOCK = 213
    ALL_NOVEL = 214
    NO_LEVEL = 215

    @property
    def sentence(self) -> str:
        """The reason in words; empty for `NONE`."""
        return _SENTENCES[self]


OWN: Final = 1000
"""Codes from here on are reasons of metrics of users, by the order in which they came up."""

_own_sentences: list[str] = []


def code_of(text: str) -> int:
    """The code of a reason that a metric of a user gives in words."""
    if text not in _own_sentences:
        _own_sentences.append(text)
    return OWN + _own_sentences.index(text)


def sentence_of(code: Any) -> str:
    """A reason in words, by its code."""
    number = int(code)
    return _own_sentences[number - OWN] if number >= OWN else Reason(number).sentence


_SENTENCES: Final = {
    Reason.NONE: "",
    Reason.BLOCK_TOO_SHORT: "the block has fewer episodes than the smoothing window",
    Reason.NON_FINITE_VALUE: (
        "an episode of the block has a performance that is not a finite number"
    ),
    Reason.OVERFLOW: "the result is too large for the floating-point type",
    Reason.NOT_A_TRAINING_BLOCK: "defined for training blocks only, and this is a test block",
    Reason.NOT_A_TEST_BLOCK: "defined for test blocks only, and this is a training block",
    Reason.NO_LATER_TRAINING: "no later training block has the same task",
    Reason.NOT_TRAINED_BEFORE: (
        "no training block before this test block has the same task and parameters"
    ),
    Reason.NEVER_RECOVERED: (
        "the next training block of the task never came within 2 % of the saturation value"
    ),
    Reason.PARTNER_TOO_SHORT: (
        "the block it is compared with has fewer episodes than the smoothing window"
    ),
    Reason.PARTNER_NON_FINITE: (
        "an episode of the block it is compared with has a performance that is not a finite number"
    ),
    Reason.PARTNER_OVERFLOW: (
        "the result of the block it is compared with is too large for the floating-point type"
    ),
    Reason.TOO_FEW_LIFETIMES: "fewer than two lifetimes have a value, so there is no interval",
    Reason.NO_BLOCK_HAS_VALUE: "no block of the lifetime has a value",
    Reason.EMPTY: "there is no episode with a value",
    Reason.ASLEEP: "tests while awake do not count in a lifetime that sleeps",
    Reason.NO_TRAINING: "the task has no training block",
    Reason.NO_TEST: "the task has no test block that counts",
    Reason.NO_EARLIER_TRAINING: "no training block of the task comes before, so nothing to recover",
    Reason.TOO_FEW_RECOVERIES: (
        "a slope needs two recovery times, so three training blocks of the task"
    ),
    Reason.NO_REFERENCE_TEST: (
        "the task has no test after the first test that follows its training"
    ),
    Reason.NO_TRANSFER: (
        "no other task is trained between two tests of a task in the order that this needs"
    ),
    Reason.ZERO_BASELINE: "the performance that would be divided by is zero",
    Reason.NO_STE: "the store has no single-task expert for the task",
    Reason.ZERO_STE: "the performance of the single-task expert sums up to zero",
    Reason.SATURATED_AT_START: (
        "the learner or the single-task expert is at its saturation value from the start"
    ),
    Reason.NO_TASK_HAS_VALUE: "no task of the lifetime has a value",
    Reason.OWN_TRAINING: "the task itself was trained between the two tests",
    Reason.NO_STE_CURVE: (
        "the store has only a saturation value of the task's single-task expert, and this needs "
        "its training curve; add a log or a run of it"
    ),
    Reason.NO_VALUE_IN_FILE: "the file of results has no value and gives no reason",
    Reason.NO_STE_SATURATION: (
        "taskinfo/info.json has no saturation value of a single-task expert for exactly this task"
    ),
    Reason.ZERO_STE_SATURATION: (
        "the single-task expert's saturation value is 0, so nothing can be divided by it"
    ),
    Reason.TOO_MANY_TRAININGS: "the task has more than one training block",
    Reason.NEVER_TRAINED: "the task has no training block in this syllabus",
    Reason.NOTHING_TRAINED_YET: "no training block comes before this test block",
    Reason.TRAINED_BEFORE: "what is tested has been trained before, so this is not forward",
    Reason.NOT_TRAINED_YET: "what is tested has not been trained yet, so this is not reverse",
    Reason.TRAINED_LAST: "what is tested was trained last, so nothing was learned in between",
    Reason.NO_TEST_OF_PAIR: "no test block shows this pair",
    Reason.FIRST_TRAINING: "the first training block has none before it to recover from",
    Reason.NO_CHANGE: "task and parameters are those of the training block before",
    Reason.TRAINED_IN_PHASE: "the task was trained in this very phase",
    Reason.NOT_TRAINED_IN_EARLIER_PHASE: "the task was not trained in an earlier phase",
    Reason.NO_STEPS: "the block has no steps",
    Reason.SATURATED_AT_ZERO: "the block saturates at episode 0, so nothing can be divided by",
    Reason.NO_EPISODES: "the block has no episodes",
    Reason.NOT_RECOVERED: (
        "performance never came back to the saturation value of the training block before"
    ),
    Reason.NO_NOVELTY: "the trial has no novel episode",
    Reason.NOTHING_BEFORE: "the trial has no episode before the first novel one",
    Reason.NOT_DETECTED: (
        "the novelty was never reported, or it was reported before there was any"
    ),
    Reason.WINDOW_EMPTY: "the window of episodes at the ends of the novel part is empty",
    Reason.NO_BASELINE: "the baseline did not play this trial",
    Reason.NOT_PLAYED: "an episode of the trial was not played to its end",
    Reason.NOT_CHARACTERISED: "the agent did not say what the novelty is",
    Reason.NOTHING_TO_NAME: "the novelty has no such word in the generator's hints",
    Reason.NO_TRIAL_HAS_VALUE: "no trial has a value",
    Reason.VISIBLE: "measured only where the agent is not told of the novelty",
    Reason.NOT_VISIBLE: "measured only where the agent is told of the novelty",
    Reason.NOMINAL_BLOCK: "the block plays the unchanged world, so there is nothing to detect",
    Reason.NOT_REPORTED_IN_BLOCK: "the agent did not report novelty before the block ended",
    Reason.ALL_NOVEL: "the lifetime has no episode in the unchanged world",
    Reason.NO_LEVEL: "what changes here is no level of the novelty catalogue",
}
