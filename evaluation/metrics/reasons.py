"""Reasons why a metric of lifelong learning or of novelty is missing."""

import enum
from typing import Final, SupportsInt


class Reason(enum.IntEnum):
    """Why a number is missing. The codes are part of the result files: never renumber them."""

    sentence: str
    """The reason in words; empty for `NONE`."""

    def __new__(cls, code: int, sentence: str = "") -> "Reason":
        """Make the reason with a code and a sentence."""
        reason = int.__new__(cls, code)
        reason._value_, reason.sentence = code, sentence
        return reason

    NONE = 0, ""
    BLOCK_TOO_SHORT = 1, "the block has fewer episodes than the smoothing window"
    NON_FINITE_VALUE = 2, "an episode of the block has a performance that is not a finite number"
    OVERFLOW = 3, "the result is too large for the floating-point type"
    NOT_A_TRAINING_BLOCK = 4, "defined for training blocks only, and this is a test block"
    NOT_A_TEST_BLOCK = 5, "defined for test blocks only, and this is a training block"
    NO_LATER_TRAINING = 6, "no later training block has the same task"
    NOT_TRAINED_BEFORE = (
        7,
        "no training block before this test block has the same task and parameters",
    )
    NEVER_RECOVERED = (
        8,
        "the next training block of the task never came within 2 % of the saturation value",
    )
    PARTNER_TOO_SHORT = (
        9,
        "the block it is compared with has fewer episodes than the smoothing window",
    )
    PARTNER_NON_FINITE = (
        10,
        "an episode of the block it is compared with has a performance that is not a finite number",
    )
    PARTNER_OVERFLOW = (
        11,
        "the result of the block it is compared with is too large for the floating-point type",
    )
    TOO_FEW_LIFETIMES = 12, "fewer than two lifetimes have a value, so there is no interval"
    NO_BLOCK_HAS_VALUE = 13, "no block of the lifetime has a value"
    EMPTY = 14, "there is no episode with a value"
    ASLEEP = 15, "tests while awake do not count in a lifetime that sleeps"
    NO_TRAINING = 16, "the task has no training block"
    NO_TEST = 17, "the task has no test block that counts"
    NO_EARLIER_TRAINING = 18, "no training block of the task comes before, so nothing to recover"
    TOO_FEW_RECOVERIES = (
        19,
        "a slope needs two recovery times, so three training blocks of the task",
    )
    NO_REFERENCE_TEST = 20, "the task has no test after the first test that follows its training"
    NO_TRANSFER = (
        21,
        "no other task is trained between two tests of a task in the order that this needs",
    )
    ZERO_BASELINE = 22, "the performance that would be divided by is zero"
    NO_STE = 23, "the store has no single-task expert for the task"
    ZERO_STE = 24, "the performance of the single-task expert sums up to zero"
    SATURATED_AT_START = (
        25,
        "the learner or the single-task expert is at its saturation value from the start",
    )
    NO_TASK_HAS_VALUE = 26, "no task of the lifetime has a value"
    OWN_TRAINING = 27, "the task itself was trained between the two tests"
    NO_STE_CURVE = (
        28,
        "the store has only a saturation value of the task's single-task expert, and this needs "
        "its training curve; add a log or a run of it",
    )
    NO_VALUE_IN_FILE = 29, "the file of results has no value and gives no reason"
    # Reports of 2019 over blocks.
    NO_STE_SATURATION = (
        101,
        "taskinfo/info.json has no saturation value of a single-task expert for exactly this task",
    )
    ZERO_STE_SATURATION = (
        102,
        "the single-task expert's saturation value is 0, so nothing can be divided by it",
    )
    TOO_MANY_TRAININGS = 103, "the task has more than one training block"
    NEVER_TRAINED = 104, "the task has no training block in this syllabus"
    NOTHING_TRAINED_YET = 105, "no training block comes before this test block"
    TRAINED_BEFORE = 106, "what is tested has been trained before, so this is not forward"
    NOT_TRAINED_YET = 107, "what is tested has not been trained yet, so this is not reverse"
    TRAINED_LAST = 108, "what is tested was trained last, so nothing was learned in between"
    NO_TEST_OF_PAIR = 109, "no test block shows this pair"
    FIRST_TRAINING = (
        110,
        "no training block comes before this one, so there is nothing to recover from",
    )
    NO_CHANGE = 111, "task and parameters are those of the training block before"
    TRAINED_IN_PHASE = 112, "the task was trained in this phase"
    NOT_TRAINED_IN_EARLIER_PHASE = 113, "the task was not trained in an earlier phase"
    NO_STEPS = 114, "the block has no steps"
    SATURATED_AT_ZERO = 115, "the block saturates at episode 0, so nothing can be divided by"
    NO_EPISODES = 116, "the block has no episodes"
    NOT_RECOVERED = (
        117,
        "performance never came back to the saturation value of the training block before",
    )
    # Novelty experiments.
    NO_NOVELTY = 201, "the trial has no novel episode"
    NOTHING_BEFORE = 202, "the trial has no episode before the first novel one"
    NOT_DETECTED = 203, "the novelty was never reported, or a false alarm came before it"
    WINDOW_EMPTY = 204, "the window of episodes at the ends of the novel part is empty"
    NO_BASELINE = 205, "the baseline did not play this trial"
    NOT_PLAYED = 206, "an episode of the trial was not played to its end"
    NOT_CHARACTERISED = 207, "the agent did not say what the novelty is"
    NOTHING_TO_NAME = 208, "the novelty has no such word in the generator's hints"
    NO_TRIAL_HAS_VALUE = 209, "no trial has a value"
    VISIBLE = 210, "measured only where the agent is not told of the novelty"
    NOT_VISIBLE = 211, "measured only where the agent is told of the novelty"
    NOMINAL_BLOCK = 212, "the block plays the unchanged world, so there is nothing to detect"
    NOT_REPORTED_IN_BLOCK = 213, "the agent did not report novelty before the block ended"
    ALL_NOVEL = 214, "the lifetime has no episode in the unchanged world"
    NO_LEVEL = 215, "the change here is not a level of the novelty catalogue"
    FEW_DETECTED = 216, "the novelty was detected in fewer than half of the trials"


CUSTOM: Final = 1000
"""First code of the reasons of custom metrics, which are numbered in order of first use."""

_custom_sentences: list[str] = []


def code_of(text: str) -> int:
    """The code of a reason that a custom metric gives in words."""
    if text not in _custom_sentences:
        _custom_sentences.append(text)
    return CUSTOM + _custom_sentences.index(text)


def sentence_of(code: SupportsInt) -> str:
    """A reason in words, by its code."""
    number = int(code)
    return _custom_sentences[number - CUSTOM] if number >= CUSTOM else Reason(number).sentence
