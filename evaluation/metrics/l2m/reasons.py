"""Why a metric of lifelong learning is missing."""

import enum
from typing import Final


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

    @property
    def sentence(self) -> str:
        """The reason in words; empty for `NONE`."""
        return _SENTENCES[self]


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
}
